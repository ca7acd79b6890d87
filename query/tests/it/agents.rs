//! The route policy over HTTP, the usage log, and the index for instructions files.

use crate::support::{Daemon, Fixture};
use serde_json::{Value, json};
use std::process::Command;

const TREE: &str = "//- ports.md\n# Ports\n\n## Ports on app1\n\nThe unit harbor-web.service opens port 8080.\n//- net/dns.md\n# Name service\n\n## Flush\n\nresolvectl flush-caches\n";

#[test]
fn a_search_waits_for_a_look_where_the_operator_says_so() {
    let fixture = Fixture::lexical(TREE);
    let config = fixture.dir.path().join("query.toml");
    std::fs::write(&config, "[agents]\nfiles_first = \"always\"\n").unwrap();
    let args = ["--embedder", "none", "--config", config.to_str().unwrap()];
    let daemon = Daemon::start(&fixture.data(), &args);
    let steered = daemon.json("/v1/search?q=harbor-web&session=a");
    assert_eq!(steered["steered"], true);
    assert!(steered["next"][0].as_str().unwrap().contains("harbor-web"), "{steered}");
    assert!(steered.get("results").is_none(), "nothing that looks like an empty result");
    assert!(steered["next"][0].as_str().unwrap().contains("session=a"), "{steered}");
    // A look that finds nothing is one.
    daemon.json("/v1/fs/grep?pattern=nowhere-at-all&session=a");
    assert!(daemon.json("/v1/search?q=harbor-web&session=a")["results"].is_array());
    assert_eq!(daemon.json("/v1/search?q=harbor-web&session=b")["steered"], true);
    // A question for an answer is exempt.
    assert_eq!(daemon.json("/v1/ask?q=which+unit+opens+8080&session=a")["band"], "answer");
    let by_default = Daemon::start(&fixture.data(), &["--embedder", "none"]);
    assert!(by_default.json("/v1/search?q=harbor-web")["results"].is_array());
}

#[test]
fn a_setting_that_is_none_is_refused() {
    let fixture = Fixture::lexical(TREE);
    let config = fixture.dir.path().join("query.toml");
    std::fs::write(&config, "[agents]\nfiles_first = \"sometimes\"\n").unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_runbook-query"))
        .args(["ask", "--embedder", "none", "--config", config.to_str().unwrap(), "--data"])
        .arg(fixture.data())
        .arg("x")
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
}

fn usage(state: &std::path::Path) -> Value {
    let output = Command::new(env!("CARGO_BIN_EXE_runbook-query"))
        .args(["usage", "--json", "--state"])
        .arg(state)
        .output()
        .unwrap();
    assert!(output.status.success());
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn usage_is_logged_without_content_and_summarised() {
    let fixture = Fixture::lexical(TREE);
    let state = fixture.dir.path().join("state");
    let args = ["--embedder", "none", "--state", state.to_str().unwrap()];
    let daemon = Daemon::start(&fixture.data(), &args);
    daemon.json("/v1/ask?q=which+unit+opens+8080");
    daemon.json("/v1/ask?q=what+is+the+root+password+of+zebra");
    daemon.json("/v1/ask?q=what+is+the+capital+of+Peru");
    daemon.json("/v1/search?q=flush");
    daemon.get("/v1/ask?q=x&k=99");
    daemon.json("/v1/fs/grep?pattern=resolvectl");
    daemon.json("/v1/fs/grep?pattern=kafka-nowhere");
    daemon.get("/v1/fs/read?path=/runbooks/none.md");
    daemon.post("/v1/shell", &json!({"command": "cat /runbooks/ports.md"}).to_string());
    daemon.post("/v1/cite", &json!({"session": "s", "answer": "nothing"}).to_string());
    let log = std::fs::read_to_string(state.join("usage.jsonl")).unwrap();
    assert!(!log.contains("harbor-web") && !log.contains("zebra"), "{log}");
    let summary = usage(&state);
    assert_eq!(summary["lines"], 10, "{summary}");
    let of = |command: &str| {
        let all = summary["commands"].as_array().unwrap();
        all.iter().find(|c| c["command"] == command).cloned().unwrap_or_default()
    };
    assert_eq!((of("grep")["calls"].as_u64(), of("grep")["empty"].as_u64()), (Some(2), Some(1)));
    assert_eq!((of("read")["failed"].as_u64(), of("shell")["calls"].as_u64()), (Some(1), Some(1)));
    let ask = &summary["commands"][0];
    assert_eq!((ask["command"].as_str(), ask["calls"].as_u64()), (Some("ask"), Some(4)));
    assert_eq!((ask["refused"].as_u64(), ask["failed"].as_u64()), (Some(2), Some(1)));
    let nothing: Vec<&str> = summary["without_result"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|s| s["words"].as_str())
        .collect();
    assert!(nothing.contains(&"capital peru") && nothing.contains(&"kafka-nowhere"), "{nothing:?}");

    let quiet = fixture.dir.path().join("quiet");
    let config = fixture.dir.path().join("query.toml");
    std::fs::write(&config, "[usage]\nlog = false\n").unwrap();
    let args = [
        "--embedder",
        "none",
        "--state",
        quiet.to_str().unwrap(),
        "--config",
        config.to_str().unwrap(),
    ];
    let daemon = Daemon::start(&fixture.data(), &args);
    daemon.json("/v1/ask?q=which+unit+opens+8080");
    assert!(!quiet.join("usage.jsonl").exists());
    assert_eq!(usage(&quiet)["lines"], 0);
}

#[test]
fn the_index_fits_an_instructions_file() {
    let fixture = Fixture::lexical(TREE);
    let daemon = Daemon::start(&fixture.data(), &["--embedder", "none"]);
    let (status, small) = daemon.get("/v1/index");
    assert_eq!(status, 200);
    assert!(
        small.contains("net/\n  dns.md - Name service") && small.contains("2 documents"),
        "{small}"
    );
    for (files, part) in [(150, "many-with-a-long-name-1.md"), (3000, "d7/ 30")] {
        let file = |n: usize| {
            format!("//- top/d{}/many-with-a-long-name-{n}.md\n# T{n} and a title\n\nx\n", n % 100)
        };
        let fixture = Fixture::lexical(&(0..files).map(file).collect::<String>());
        let index = runbook_query::agents::index(&fixture.service().snapshot());
        assert!(index.len() <= runbook_query::agents::INDEX_BYTES_MAX, "{}", index.len());
        assert!(index.contains(part), "{index}");
    }
}
