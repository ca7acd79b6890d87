//! Secrets: redacted in all that is written, reported by path, line and rule, never by value.

use super::{SOURCE, fs, ingested, write};
use serde_json::{Value, json};
use std::path::Path;

/// Made at run time, so that no scanner takes it for a live token.
fn token() -> String {
    format!("gh{}_{}", "p", "x7Kq2LmZ9aRt4VwB8nCd3EfGh6JkPs1QyTuM")
}

/// Every file beneath a directory that holds the text.
fn holders(dir: &Path, text: &str) -> Vec<String> {
    let mut out = Vec::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && !path.is_symlink() {
            out.extend(holders(&path, text));
        } else if path.is_file()
            && memchr::memmem::find(&fs::read(&path).unwrap(), text.as_bytes()).is_some()
        {
            out.push(path.display().to_string());
        }
    }
    out
}

#[test]
fn a_secret_is_redacted_and_reported_without_its_value() {
    let world = ingested();
    let token = token();
    write(&world, "db.md", &format!("# Db\n\n## Login\n\nUse this:\r\n\r\n    TOKEN={token}\r\n"));
    let run = world.ingest(SOURCE, &[]).expect(0, "published");
    let wanted = json!([{"path": "db.md", "line": 7, "rule": "github-pat"}]);
    assert_eq!(run.report()["secrets"], wanted);
    assert_eq!(run.last["report"]["secrets"], wanted);
    assert!(!run.stdout.contains(&token) && !run.stderr.contains(&token), "{run}");
    assert_eq!(holders(&world.data(), &token), Vec::<String>::new());
    assert_eq!(
        world.stored("db.md"),
        "# Db\n\n## Login\n\nUse this:\r\n\r\n    TOKEN=[REDACTED:github-pat]\r\n"
    );
    assert_eq!(world.generation().manifest.counts.secrets, 1);
    // A run that finds nothing new names them again, and so does one that reads another document anew.
    assert_eq!(world.ingest(SOURCE, &[]).expect(0, "up_to_date").report()["secrets"], wanted);
    write(&world, "guide.md", "# Guide\n\nOther text.\n");
    assert_eq!(world.ingest(SOURCE, &[]).expect(0, "published").report()["secrets"], wanted);
    let text = world
        .program()
        .args(["--embedder", "none", "--source", SOURCE, "--data"])
        .arg(world.data())
        .output();
    let text = String::from_utf8(text.unwrap().stdout).unwrap();
    assert!(text.contains("db.md:7: redacted: github-pat"), "{text}");
    let chunks = world.program().args(["chunks", "--source", SOURCE]).output().unwrap();
    let (out, err) =
        (String::from_utf8(chunks.stdout).unwrap(), String::from_utf8(chunks.stderr).unwrap());
    assert!(out.contains("[REDACTED:github-pat]") && !out.contains(&token), "{out}");
    assert!(err.contains("db.md:7: redacted") && !err.contains(&token), "{err}");
}

#[test]
fn with_fail_on_secret_nothing_is_published() {
    let world = ingested();
    let before = world.generation().id;
    write(&world, "db.md", &format!("# Db\n\ntoken {}\n", token()));
    let run = world.ingest(SOURCE, &["--fail-on-secret"]).expect(1, "failed");
    let run = run.says(&[
        "1 secrets were found, and nothing is published:",
        "\ndb.md:3: github-pat",
        "runbook-secrets: allow",
    ]);
    assert!(!run.stderr.contains(&token()) && !run.last.to_string().contains(&token()), "{run}");
    assert_eq!(world.generation().id, before);
    // The same where the secret was there before.
    world.ingest(SOURCE, &[]).expect(0, "published");
    world.ingest(SOURCE, &["--fail-on-secret"]).expect(1, "failed").says(&["db.md:3: github-pat"]);
    write(&world, "db.md", "# Db\n\ntoken elsewhere\n");
    world.ingest(SOURCE, &["--fail-on-secret"]).expect(0, "published");
}

#[test]
fn exceptions_are_configured_and_another_policy_reads_all_anew() {
    let world = ingested();
    let token = token();
    write(&world, "db.md", &format!("# Db\n\ntoken {token}\n"));
    let run = |file: &str| {
        fs::write(world.path("i.toml"), file).unwrap();
        world.ingest(SOURCE, &["--config", "i.toml"])
    };
    let count =
        |run: &super::super::support::Run| run.report()["secrets"].as_array().map_or(0, Vec::len);
    let off = run("[secrets]\nenabled = false\n").expect(0, "published");
    assert_eq!((count(&off), off.state().as_str()), (0, "OptionMismatch"));
    assert!(!holders(&world.data(), &token).is_empty());
    let on = run("").expect(0, "published");
    assert_eq!((count(&on), on.state().as_str()), (1, "OptionMismatch"));
    // The generation before may still be about to be opened; the next run removes it.
    world.ingest(SOURCE, &[]).expect(0, "up_to_date");
    assert_eq!(holders(&world.data(), &token), Vec::<String>::new());
    let allowed =
        run("[[secrets.allow]]\nrule = \"github-pat\"\npath = \"db.md\"\n").expect(0, "published");
    assert_eq!(count(&allowed), 0);
    let other = run("[[secrets.allow]]\npath = \"db.md\"\nline = 2\n").expect(0, "published");
    assert_eq!(count(&other), 1);
    run("[[secrets.allow]]\n").says(&["names no rule, path or line"]);
    run("[secrets]\nenable = false\n")
        .says(&["unknown key `secrets.enable`; did you mean `secrets.enabled`"]);
}

#[test]
fn a_name_of_a_file_is_redacted_as_well() {
    let world = ingested();
    let token = token();
    write(&world, &format!("keys/{token}.md"), "# Key\n\nText.\n");
    write(&world, &format!("keys/{token}-broken.md"), "\0");
    let run = world.ingest(SOURCE, &[]).expect(0, "published");
    assert!(!run.to_string().contains(&token), "{run}");
    let secrets: Vec<Value> = run.report()["secrets"].as_array().unwrap().clone();
    assert_eq!(
        secrets[0],
        json!({"path": "keys/[REDACTED:github-pat].md", "line": 0, "rule": "github-pat"})
    );
    assert_eq!(run.problems()[0].0, "keys/[REDACTED:github-pat]-broken.md");
    assert_eq!(world.documents(), ["disk.md", "guide.md", "keys/[REDACTED:github-pat].md"]);
    assert_eq!(holders(&world.data(), &token), Vec::<String>::new());
}
