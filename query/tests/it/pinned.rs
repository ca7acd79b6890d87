//! A generation that somebody pinned: the daemon goes back to it while it serves, and every reply says so.

use crate::support::{Daemon, Fixture};
use runbook_ingest::rollback;
use serde_json::{Value, json};
use std::process::Command;

fn ports(unit: &str) -> String {
    format!(
        "//- ports.md\n# Ports\n\n## Ports on app1\n\nThe unit {unit}.service opens port 8080.\n"
    )
}

const ASK: &str = "/v1/ask?q=which+unit+opens+8080";

fn says(reply: &Value, unit: &str) -> bool {
    reply["answer"].as_str().is_some_and(|a| a.contains(unit))
}

#[test]
fn a_rollback_is_served_at_once_and_every_reply_shows_the_pin() {
    let fixture = Fixture::lexical(&ports("harbor-web"));
    let old = fixture.service().snapshot().corpora()[0].generation.id.clone();
    // Ids carry seconds, and their order is that of the runs.
    std::thread::sleep(std::time::Duration::from_millis(1100));
    fixture.write(&ports("quay-web"));
    fixture.ingest();
    let daemon = Daemon::start(&fixture.data(), &["--embedder", "none"]);
    let before = daemon.json(ASK);
    assert!(says(&before, "quay-web") && before["pinned"].is_null(), "{before}");
    assert!(before.as_object().unwrap().contains_key("pinned"));
    assert!(daemon.get("/metrics").1.contains("runbook_generation_pinned{repo=\"\"} 0"));

    rollback::roll_back(&fixture.data(), None, Some("wrong <b>unit</b>"), true).unwrap();
    let after = daemon.wait(ASK, |r| says(r, "harbor-web"));
    assert_eq!(after["generation"], old.as_str());
    let pin = daemon.wait(ASK, |r| r["pinned"].is_object())["pinned"].clone();
    assert_eq!((&pin["generation"], &pin["reason"]), (&json!(old), &json!("wrong <b>unit</b>")));
    assert!(pin["by"].is_string() && pin["pinned_at"].is_string(), "{pin}");
    // A run of the timer leaves it so.
    fixture.ingest();
    assert!(says(&daemon.json(ASK), "harbor-web"));

    let refused = daemon.json("/v1/ask?q=what+is+the+capital+of+Peru");
    assert_eq!((&refused["answer"], &refused["pinned"]), (&json!("I do not know"), &pin));
    assert_eq!(daemon.json("/v1/search?q=8080")["pinned"], pin);
    let status = daemon.wait("/v1/status", |s| s["last_run"]["outcome"] == "pinned");
    assert_eq!((&status["pinned"], &status["repos"][0]["pinned"]), (&pin, &pin));
    assert_eq!(status["stale"], false);
    let (_, metrics) = daemon.get("/metrics");
    assert!(metrics.contains("runbook_generation_pinned{repo=\"\"} 1"), "{metrics}");
    assert!(metrics.contains("outcome=\"pinned\"} 1"), "{metrics}");
    for page in ["/?q=which+unit+opens+8080", "/?q=capital+of+Peru", "/"] {
        let (_, html) = daemon.get(page);
        assert!(html.contains("Pinned ") && html.contains("newer ones are not shown"), "{html}");
        assert!(html.contains("wrong &lt;b&gt;unit") && !html.contains("<b>unit"), "{html}");
    }
    let (_, html) = daemon.get("/status");
    assert!(html.contains("runbook-ingest unpin") && html.contains(&old), "{html}");
    let text = daemon.raw(&format!(
        "GET {ASK} HTTP/1.1\r\nHost: {}\r\nAccept: text/plain\r\nConnection: close\r\n\r\n",
        daemon.address
    ));
    assert!(text.contains("\npinned since 20") && text.contains("newer runbooks are"), "{text}");
    assert!(text.lines().all(|l| l.len() <= 80 || l.starts_with("x-")), "{text}");
    let asked = Command::new(env!("CARGO_BIN_EXE_runbook-query"))
        .args(["ask", "--embedder", "none", "--data"])
        .arg(fixture.data())
        .arg("which unit opens 8080")
        .output()
        .unwrap();
    assert!(String::from_utf8_lossy(&asked.stdout).contains("\npinned since 20"), "{asked:?}");

    rollback::unpin(&fixture.data(), true).unwrap();
    daemon.wait(ASK, |r| r["pinned"].is_null());
    assert!(says(&daemon.json(ASK), "harbor-web"), "unpin alone changes nothing");
    fixture.ingest();
    daemon.wait(ASK, |r| says(r, "quay-web"));
}

#[test]
fn a_pin_that_cannot_be_read_is_told_and_stops_nothing() {
    let fixture = Fixture::lexical(&ports("harbor-web"));
    let mut daemon = Daemon::start(&fixture.data(), &["--embedder", "none"]);
    std::fs::write(fixture.data().join("pin.json"), "{").unwrap();
    rollback::list(&fixture.data()).unwrap_err();
    let id = fixture.service().snapshot().corpora()[0].generation.id.clone();
    // It is looked at twice a second, and nothing but the log shows that it was.
    std::thread::sleep(std::time::Duration::from_millis(1200));
    assert!(says(&daemon.json(ASK), "harbor-web"));
    rollback::roll_back(&fixture.data(), Some(&id), None, true).unwrap();
    daemon.wait(ASK, |r| r["pinned"]["generation"] == id.as_str());
    daemon.signal("-TERM");
    assert_eq!(daemon.exit_code(), Some(0));
    assert!(daemon.log().contains("pin.json"));
}
