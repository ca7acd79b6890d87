//! Gaps and promoted reports, through the program: what the daemon wrote goes in.
#![expect(clippy::print_stdout, reason = "figures, for whoever tunes")]

use runbook_eval::gaps::{Refused, embedder, group, group_at, purity};
use runbook_shared::embed::Embedder;
use serde_json::{Value, json};
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

fn rows(name: &str) -> (Vec<Refused>, Vec<String>) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("gaps").join(name);
    let text = std::fs::read_to_string(file).unwrap();
    let rows = text.lines().map(|l| l.split_once('\t').unwrap());
    rows.map(|(topic, q)| {
        (Refused { question: q.into(), times: 1, near: Vec::new() }, topic.to_owned())
    })
    .unzip()
}

fn measure(name: &str, embedder: Option<&dyn Embedder>) -> (f64, f64, usize) {
    let (questions, topics) = rows(name);
    let topics: Vec<&str> = topics.iter().map(String::as_str).collect();
    let gaps = group(&questions, embedder).unwrap();
    let (pure, whole) = purity(&gaps, &topics);
    println!("{name}: purity {pure:.3}, whole {whole:.3}, {} groups", gaps.len());
    if std::env::var_os("SHOW_GAPS").is_some() {
        for gap in &gaps {
            let of: Vec<String> = gap
                .members
                .iter()
                .map(|m| format!("{}: {}", topics[*m], questions[*m].question))
                .collect();
            println!("== {}\n{}", gap.heading, of.join("\n"));
        }
    }
    (pure, whole, gaps.len())
}

/// What the limits in gaps.rs were chosen by: TUNE_GAPS=1 prints it, with the tuning topics alone.
fn tune(embedder: Option<&dyn Embedder>) {
    if std::env::var_os("TUNE_GAPS").is_none() {
        return;
    }
    let (questions, topics) = rows("tune.tsv");
    let topics: Vec<&str> = topics.iter().map(String::as_str).collect();
    for step in 1..20u8 {
        let limit = f32::from(step) * 0.02;
        let gaps = group_at(&questions, embedder, limit).unwrap();
        let (pure, whole) = purity(&gaps, &topics);
        println!("limit {limit:.2}: purity {pure:.3}, whole {whole:.3}, {} groups", gaps.len());
    }
}

#[test]
fn two_hundred_questions_of_twenty_topics_fall_apart_again() {
    let embedder = embedder(None).unwrap();
    let embedder = embedder.as_ref().map(|e| e as &dyn Embedder);
    tune(embedder);
    measure("tune.tsv", embedder);
    let (pure, whole, groups) = measure("test.tsv", embedder);
    // Singletons would be pure as well: their number is bounded, and topics stay together.
    assert!(pure >= 0.8, "purity {pure}");
    assert!(whole >= 0.6 && groups <= 60, "{whole} in the main group, {groups} groups");
}

#[test]
fn words_alone_give_pure_groups_too() {
    tune(None);
    measure("tune.tsv", None);
    let (pure, _, groups) = measure("test.tsv", None);
    assert!(pure >= 0.8 && groups < 160, "purity {pure}, {groups} groups");
}

fn program(args: &[&str], input: &str) -> (Option<i32>, String, String) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_runbook-eval"))
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let out = child.wait_with_output().unwrap();
    let text = |b: &[u8]| String::from_utf8_lossy(b).into_owned();
    (out.status.code(), text(&out.stdout), text(&out.stderr))
}

#[test]
fn reports_become_cases_and_a_cut_line_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let report = |id: &str, question: &str, page: &str| {
        json!({"report": id, "at": "2026-01-01T00:00:00Z", "verdict": "wrong", "question": question, "band": "nothing",
               "page": page, "citations": [], "retrieved": [{"path": "a.md", "heading": "One"}], "typed": "x"})
        .to_string()
    };
    let text = format!(
        "{}\n{}\n{{\"report\": \"cut\n{}\n",
        report("f1", "where is one", "a.md"),
        report("f2", "Where is one?", ""),
        report("f3", "what is two", "")
    );
    std::fs::write(dir.path().join("reports.jsonl"), text).unwrap();
    let feedback = dir.path().to_str().unwrap();
    let out = dir.path().join("cases.jsonl");
    let run = |input: &str, more: &[&str]| {
        let mut args = vec!["promote", "--feedback", feedback, "--out", out.to_str().unwrap()];
        args.extend(more);
        program(&args, input)
    };
    let (code, said, talk) = run("", &["--no-input"]);
    assert_eq!(code, Some(0), "{talk}");
    assert!(talk.contains("1 lines cannot be read"), "{talk}");
    assert!(said.contains("1 new cases") && said.contains("pending: what is two"), "{said}");
    let (_, said, talk) = run("refuse\n", &[]);
    assert!(talk.contains("question: what is two") && said.contains("1 new cases"), "{said}{talk}");
    let cases: Vec<Value> = std::fs::read_to_string(&out)
        .unwrap()
        .lines()
        .map(|l| serde_json::from_str(l).unwrap())
        .collect();
    assert_eq!(cases[0]["gold"], json!([{"path": "a.md", "heading": "One"}]));
    assert_eq!(
        (&cases[1]["expect"], &cases[1]["reason"]),
        (&json!("refuse"), &json!("no_evidence"))
    );
    assert!(run("", &[]).1.contains("0 new cases"), "again adds nothing");
    let (code, _, talk) = program(&["promote", "--feedback", "/nowhere"], "");
    assert!(code == Some(1) && talk.contains("--state"), "{talk}");
}

fn git(dir: &Path, args: &[&str]) -> String {
    let out = Command::new("git").arg("-C").arg(dir).args(args).output().unwrap();
    assert!(out.status.success(), "{args:?}: {}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8_lossy(&out.stdout).trim_end().to_owned()
}

#[test]
fn reports_become_a_branch_and_nothing_else_changes() {
    let dir = tempfile::tempdir().unwrap();
    let (feedback, clone) = (dir.path().join("feedback"), dir.path().join("clone"));
    for d in [&feedback, &clone] {
        std::fs::create_dir(d).unwrap();
    }
    let report = |id: &str, question: &str| {
        json!({"report": id, "at": "2026-01-01T00:00:00Z", "verdict": "wrong", "question": question, "band": "nothing",
               "page": "a.md", "citations": [], "retrieved": [{"path": "a.md", "heading": "One"}]})
        .to_string()
    };
    let rows =
        [report("f1", "where is one"), report("f2", "where is two"), report("f3", "WHERE is one?")];
    std::fs::write(feedback.join("reports.jsonl"), rows.join("\n")).unwrap();
    git(&clone, &["init", "-q", "-b", "main"]);
    let known = json!({"question": "Where is two"}).to_string();
    std::fs::create_dir_all(clone.join("evals/cases")).unwrap();
    std::fs::write(clone.join("evals/cases/feedback.jsonl"), format!("{known}\n")).unwrap();
    std::fs::write(clone.join("other.md"), "committed").unwrap();
    git(&clone, &["add", "."]);
    let who = ["-c", "user.name=A", "-c", "user.email=a@example.org"];
    git(&clone, &[&who[..], &["commit", "-qm", "first"]].concat());
    std::fs::write(clone.join("other.md"), "being written").unwrap();
    std::fs::write(clone.join("new.md"), "staged").unwrap();
    git(&clone, &["add", "new.md"]);
    let state = |dir: &Path| {
        (
            git(dir, &["status", "--porcelain"]),
            git(dir, &["rev-parse", "HEAD"]),
            git(dir, &["symbolic-ref", "HEAD"]),
        )
    };
    let before = state(&clone);
    let repository = clone.join("evals");
    let run = |branch: &str, out: &str| {
        let args = [
            "promote",
            "--no-input",
            "--feedback",
            feedback.to_str().unwrap(),
            "--repository",
            repository.to_str().unwrap(),
            "--branch",
            branch,
            "--out",
            out,
        ];
        program(&args, "")
    };
    let (code, _, talk) = run("feedback", "evals/cases/feedback.jsonl");
    if code != Some(0) {
        // A machine where git knows nobody.
        assert!(talk.contains("git config user.name"), "{talk}");
        assert_eq!(git(&clone, &["branch", "--list", "feedback"]), "");
    }
    git(&clone, &["config", "user.name", "A"]);
    git(&clone, &["config", "user.email", "a@example.org"]);
    let (code, said, talk) = run("feedback-cases", "evals/cases/feedback.jsonl");
    assert_eq!(code, Some(0), "{talk}");
    assert!(said.contains("1 new cases in evals/cases/feedback.jsonl of commit "), "{said}");
    assert_eq!(state(&clone), before, "work tree, index and HEAD are as they were");
    assert_eq!(
        git(&clone, &["diff", "--name-only", "main", "feedback-cases"]),
        "evals/cases/feedback.jsonl"
    );
    let text = git(&clone, &["show", "feedback-cases:evals/cases/feedback.jsonl"]);
    let rows: Vec<&str> = text.lines().collect();
    assert!(rows.len() == 2 && rows[0] == known && rows[1].contains("WHERE is one?"), "{text}");
    assert_eq!(git(&clone, &["rev-parse", "feedback-cases^"]), before.1);
    assert!(
        git(&clone, &["log", "-1", "--format=%B", "feedback-cases"]).contains("- WHERE is one?")
    );
    for (branch, out, says) in [
        ("feedback-cases", "a.jsonl", "is there already"),
        ("a..b", "a.jsonl", "cannot be the name"),
        ("x", "../a.jsonl", "not in the repository"),
        ("x", ".git/config", "not in the repository"),
        ("x", "evals", "is no file"),
    ] {
        let (code, _, talk) = run(branch, out);
        assert!(code == Some(1) && talk.contains(says), "{branch} {out}: {talk}");
    }
    git(
        &clone,
        &["-c", "advice.detachedHead=false", "checkout", "-q", "--detach", "feedback-cases"],
    );
    let (_, said, _) = run("again", "evals/cases/feedback.jsonl");
    assert!(said.contains("0 new cases in no branch"), "{said}");
    assert_eq!(git(&clone, &["branch", "--list", "again"]), "");
}

#[test]
fn gaps_are_printed_for_a_writer() {
    let dir = tempfile::tempdir().unwrap();
    let row = |q: &str| {
        json!({"at": "2026-01-01T00:00:00Z", "question": q, "nearest": [{"path": "net.md", "heading": "VPN"}]}).to_string()
    };
    let questions =
        ["how do I reset the vpn?", "reset the vpn", "How do I reset the VPN", "toner is empty"];
    std::fs::write(dir.path().join("refused.jsonl"), questions.map(row).join("\n") + "\n").unwrap();
    let feedback = dir.path().to_str().unwrap();
    let (code, out, talk) = program(&["gaps", "--feedback", feedback, "--embedder", "none"], "");
    assert_eq!(code, Some(0), "{talk}");
    assert!(out.starts_with("4 refusals of 3 questions, 2 headings worth writing"), "{out}");
    assert!(out.contains("   3  Reset the vpn\n") && out.contains("net.md#VPN"), "{out}");
    let (_, out, _) =
        program(&["gaps", "--feedback", feedback, "--embedder", "none", "--json"], "");
    let value: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(value["gaps"][0]["times"], 3);
}
