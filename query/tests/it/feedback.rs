//! Reports, refused questions, counters and log lines of the daemon.

use crate::support::{Daemon, Fixture};
use serde_json::{Value, json};
use std::path::Path;

const TREE: &str =
    "//- ports.md\n# Ports\n\n## Ports on app1\n\nThe unit harbor-web.service opens port 8080.\n";

fn daemon(fixture: &Fixture, state: &Path) -> Daemon {
    let state = state.to_str().unwrap();
    Daemon::start(&fixture.data(), &["--embedder", "none", "--state", state])
}

fn lines(state: &Path, name: &str) -> Vec<Value> {
    let text = std::fs::read_to_string(state.join("feedback").join(name)).unwrap_or_default();
    text.lines().map(|l| serde_json::from_str(l).unwrap_or_else(|e| panic!("{e}: {l}"))).collect()
}

#[test]
fn a_report_holds_what_a_fixture_needs_and_no_address() {
    let fixture = Fixture::lexical(TREE);
    let state = fixture.dir.path().join("state");
    let daemon = daemon(&fixture, &state);
    let reply = daemon.json("/v1/ask?q=which+unit+opens+8080");
    let body = json!({"id": reply["id"], "verdict": "wrong", "note": "it is the other\u{1b}[1m unit", "page": "ports.md#ports-on-app1"});
    let (status, text) = daemon.post("/v1/feedback", &body.to_string());
    assert_eq!(status, 201, "{text}");
    let report = &lines(&state, "reports.jsonl")[0];
    assert_eq!(report["question"], "which unit opens 8080");
    assert_eq!(report["generation"], reply["generation"]);
    assert_eq!(report["citations"][0]["heading"], "Ports on app1");
    assert_eq!(report["retrieved"][0]["path"], "ports.md");
    assert!(report["retrieved"][0]["bm25"].as_f64().unwrap() > 0.0);
    assert_eq!(report["retrieved_in"], reply["generation"]);
    assert!(report["signals"].as_array().is_some_and(|s| s.len() > 5), "{report}");
    assert_eq!((&report["verdict"], &report["page_indexed"]), (&json!("wrong"), &json!(true)));
    assert_eq!(report["note"], "it is the other[1m unit");
    assert!(!report.to_string().contains("127.0.0.1"), "{report}");
}

#[test]
fn a_follow_up_is_reported_as_it_was_understood() {
    let fixture = Fixture::lexical(
        "//- a.md\n# Services\n\n## Restart nginx\n\nRun `systemctl restart nginx`.\n\n## Restart redis\n\nRun `systemctl restart redis`.\n",
    );
    let state = fixture.dir.path().join("state");
    let daemon = daemon(&fixture, &state);
    let first = daemon.json("/v1/ask?q=how+do+I+restart+nginx");
    let session = first["session"].as_str().unwrap();
    let next = daemon.json(&format!("/v1/ask?q=what+about+redis%3F&session={session}"));
    let body = json!({"id": next["id"], "verdict": "right"});
    assert_eq!(daemon.post("/v1/feedback", &body.to_string()).0, 201);
    let report = &lines(&state, "reports.jsonl")[0];
    assert_eq!(report["typed"], "what about redis?");
    assert_eq!(report["question"], "how do i restart redis");
}

#[test]
fn a_report_of_a_forgotten_reply_needs_its_question() {
    let fixture = Fixture::lexical(TREE);
    let state = fixture.dir.path().join("state");
    let daemon = daemon(&fixture, &state);
    let send = |body: Value| {
        let (status, text) = daemon.post("/v1/feedback", &body.to_string());
        (status, serde_json::from_str::<Value>(&text).unwrap())
    };
    let (status, error) = send(json!({"id": "r0", "verdict": "wrong"}));
    assert_eq!((status, &error["error"]["code"]), (404, &json!("no_such_reply")));
    let (status, _) =
        send(json!({"id": "r0", "verdict": "wrong", "question": "which unit opens 8080"}));
    assert_eq!(status, 201);
    assert_eq!(lines(&state, "reports.jsonl")[0]["remembered"], false);
    for (body, code) in [
        (json!({"id": "r0"}), "bad_json"),
        (json!({"id": "r0", "verdict": "maybe"}), "bad_json"),
        (json!({"id": "r0", "verdict": "wrong", "address": "x"}), "bad_json"),
        (json!({"id": "r0", "verdict": "wrong", "note": "x".repeat(9000)}), "note_too_long"),
    ] {
        let (status, error) = send(body);
        assert_eq!((status, &error["error"]["code"]), (400, &json!(code)), "{error}");
    }
}

#[test]
fn a_form_of_the_own_page_works_and_no_other() {
    let fixture = Fixture::lexical(TREE);
    let state = fixture.dir.path().join("state");
    let daemon = daemon(&fixture, &state);
    let reply = daemon.json("/v1/ask?q=which+unit+opens+8080");
    let id = reply["id"].as_str().unwrap();
    let body = format!("id={id}&question=which+unit+opens+8080&note=a%26b&page=&verdict=wrong");
    let send = |origin: &str| {
        daemon.raw(&format!(
            "POST /v1/feedback HTTP/1.1\r\nHost: {}\r\n{origin}Content-Type: application/x-www-form-urlencoded\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
            daemon.address,
            body.len()
        ))
    };
    let own = send(&format!("Origin: http://{}\r\n", daemon.address));
    assert!(own.starts_with("HTTP/1.1 303"), "{own}");
    assert!(own.contains("location: /reported?q=which+unit+opens+8080"), "{own}");
    assert_eq!(lines(&state, "reports.jsonl")[0]["note"], "a&b");
    assert!(send("").starts_with("HTTP/1.1 415"));
    assert!(send("Origin: null\r\n").starts_with("HTTP/1.1 403"));
    assert!(send("Origin: http://evil.example\r\n").starts_with("HTTP/1.1 403"));
    let ask = format!(
        "POST /v1/ask HTTP/1.1\r\nHost: {0}\r\nOrigin: http://{0}\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: 3\r\nConnection: close\r\n\r\nq=x",
        daemon.address
    );
    assert!(daemon.raw(&ask).starts_with("HTTP/1.1 415"), "only reports are forms");
    assert_eq!(lines(&state, "reports.jsonl").len(), 1);
}

#[test]
fn acknowledged_reports_survive_a_kill() {
    let fixture = Fixture::lexical(TREE);
    let state = fixture.dir.path().join("state");
    let mut acknowledged = 0;
    for round in 0..3 {
        let mut daemon = daemon(&fixture, &state);
        let address = daemon.address.clone();
        let sending = std::thread::spawn(move || {
            let mut acknowledged = 0usize;
            for n in 0..5000 {
                let body = json!({"id": "r0", "verdict": "wrong", "question": "8080", "note": format!("{round}-{n}-{}", "x".repeat(3000))}).to_string();
                let request = format!(
                    "POST /v1/feedback HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
                    body.len()
                );
                if !Daemon::send_to(&address, &request).starts_with("HTTP/1.1 201") {
                    break;
                }
                acknowledged += 1;
            }
            acknowledged
        });
        std::thread::sleep(std::time::Duration::from_millis(400));
        daemon.signal("-KILL");
        let _ = daemon.exit_code();
        acknowledged += sending.join().unwrap();
    }
    let path = state.join("feedback/reports.jsonl");
    let text = std::fs::read_to_string(path).unwrap();
    let whole = text.lines().filter(|l| serde_json::from_str::<Value>(l).is_ok()).count();
    let cut = text.lines().count() - whole;
    assert!(acknowledged > 3, "{acknowledged}");
    // One that was written and not acknowledged may be there, too; at most one line a kill is cut.
    assert!((acknowledged..=acknowledged + 3).contains(&whole) && cut <= 3, "{whole} {cut}");
}

#[test]
fn refused_questions_are_recorded_counted_and_shown() {
    let fixture = Fixture::lexical(TREE);
    let state = fixture.dir.path().join("state");
    let daemon = daemon(&fixture, &state);
    for q in [
        "who+owns+the+toaster",
        "Who+owns+the+toaster%3F",
        "restart+nginx+for+me",
        "which+unit+opens+8080",
    ] {
        daemon.json(&format!("/v1/ask?q={q}"));
    }
    let rows = lines(&state, "refused.jsonl");
    assert_eq!(rows.len(), 2, "requests to act are no gaps: {rows:?}");
    let (_, page) = daemon.get("/status");
    assert!(page.contains("who owns the toaster") && page.contains("<td>2</td>"), "{page}");
}

#[test]
fn the_state_directory_may_be_unusable() {
    let fixture = Fixture::lexical(TREE);
    let file = fixture.dir.path().join("file");
    std::fs::write(&file, "").unwrap();
    let daemon = daemon(&fixture, &file);
    assert_eq!(daemon.json("/v1/ask?q=which+unit+opens+8080")["band"], "answer");
    let (status, text) = daemon.post("/v1/feedback", r#"{"id":"r0","verdict":"wrong"}"#);
    assert_eq!(status, 503);
    assert!(text.contains("no_state") && text.contains("--state"), "{text}");
}

#[test]
fn counters_tell_what_happened() {
    let fixture = Fixture::lexical(TREE);
    let state = fixture.dir.path().join("state");
    let daemon = daemon(&fixture, &state);
    daemon.json("/v1/ask?q=which+unit+opens+8080");
    daemon.json("/v1/ask?q=restart+nginx+for+me");
    daemon.get("/v1/ask?question=x");
    daemon.get("/?q=which+unit+opens+8080");
    daemon.post("/v1/feedback", r#"{"id":"r0","verdict":"right","question":"8080"}"#);
    let (status, text) = daemon.get("/metrics");
    assert_eq!(status, 200);
    for line in [
        "runbook_questions_total{outcome=\"answer\",reason=\"\",degraded=\"true\"} 2",
        "runbook_rejected_requests_total{code=\"bad_query\"} 1",
        "runbook_feedback_total{verdict=\"right\"} 1",
        "runbook_question_seconds_count 3",
        "runbook_stage_seconds_count{stage=\"render\"} 1",
        "runbook_documents{repo=\"\",state=\"indexed\"} 1",
        "runbook_ingest_last_outcome{repo=\"\",outcome=\"published\"} 1",
        "runbook_generation_problem{repo=\"\"} 0",
        "runbook_ready 1",
        "runbook_reloads_total 1",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
    assert!(text.contains("reason=\"action\""), "{text}");
    assert!(text.contains("runbook_source_check_age_seconds{repo=\"\"}"), "{text}");
    assert!(text.ends_with("# EOF\n"), "{text}");
}

#[test]
fn one_log_line_a_question_and_its_text_can_be_a_hash() {
    let fixture = Fixture::lexical(TREE);
    let state = fixture.dir.path().join("state");
    let logged = |args: &[&str]| {
        let state = state.to_str().unwrap();
        let mut all = vec!["--embedder", "none", "--state", state];
        all.extend(args);
        let mut daemon = Daemon::start(&fixture.data(), &all);
        daemon.json("/v1/ask?q=which+unit+opens+8080%0Aforged");
        daemon.json("/v1/ask?q=who+owns+the+toaster");
        daemon.signal("-TERM");
        let _ = daemon.exit_code();
        daemon.log()
    };
    let log = logged(&[]);
    let lines: Vec<&str> = log.lines().filter(|l| l.contains("outcome=")).collect();
    assert_eq!(lines.len(), 2, "{log}");
    for part in ["id=", "outcome=\"answer\"", "8080\\nforged", "ports.md#Ports on app1", "took_ms="]
    {
        assert!(lines[0].contains(part), "{part}: {}", lines[0]);
    }
    assert!(
        lines[1].contains("reason=\"no_evidence\"") || lines[1].contains("reason=\"degraded\"")
    );
    let before = std::fs::read_to_string(state.join("feedback/refused.jsonl")).unwrap();
    let log = logged(&["--log-questions", "hash"]);
    assert!(!log.contains("8080") && !log.contains("toaster"), "{log}");
    assert!(log.contains("blake3:"), "{log}");
    let after = std::fs::read_to_string(state.join("feedback/refused.jsonl")).unwrap();
    assert_eq!(before, after, "with hashes, no question is on disk");
}

#[test]
fn log_lines_can_be_json() {
    let fixture = Fixture::lexical(TREE);
    let data = fixture.data();
    let args = ["--data", data.to_str().unwrap(), "--embedder", "none"];
    let mut daemon = Daemon::start_env(&args, &[("RUNBOOK_LOG_FORMAT", "json")]);
    daemon.json("/v1/ask?q=which+unit+opens+8080");
    daemon.signal("-TERM");
    let _ = daemon.exit_code();
    let log = daemon.log();
    let rows: Vec<Value> = log
        .lines()
        .map(|l| serde_json::from_str(l).unwrap_or_else(|e| panic!("{e}: {l}")))
        .collect();
    let row = rows.iter().find(|r| r["message"] == "question").unwrap_or_else(|| panic!("{log}"));
    assert_eq!(row["outcome"], "answer");
    assert!(row["took_ms"].is_number(), "{row}");
}
