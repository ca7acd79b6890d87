//! The page without a browser: what the server renders. evals/page-checks drives it in a real one.

use crate::support::{Daemon, Fixture};

const TREE: &str = "//- net/ports.md\n# Ports\n\nIntro, see [the other](../db/dump.md#restore).\n\n## Ports on app1\n\nThe unit harbor-web.service opens port 8080:\n\n```sh\nss -ltn sport = :8080\n```\n\n## Ports on app2\n\nNothing.\n//- db/dump.md\n# Dumps\n\n## Restore\n\nRun `pg_restore -d <database>`.\n";

fn daemon(fixture: &Fixture, more: &[&str]) -> Daemon {
    let mut args = vec!["--embedder", "none"];
    args.extend(more);
    Daemon::start(&fixture.data(), &args)
}

#[test]
fn a_question_becomes_a_page_by_a_plain_link() {
    let fixture = Fixture::lexical(TREE);
    let daemon = daemon(&fixture, &[]);
    let raw = daemon.raw(&format!(
        "GET /?q=which+unit+opens+8080 HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n",
        daemon.address
    ));
    let (head, body) = raw.split_once("\r\n\r\n").unwrap();
    let head = head.to_ascii_lowercase();
    assert!(head.starts_with("http/1.1 200") && head.contains("text/html"), "{head}");
    assert!(head.contains("content-security-policy: default-src 'none'"), "{head}");
    assert!(head.contains("referrer-policy: same-origin"), "{head}");
    for part in [
        "value=\"which unit opens 8080\"",
        "harbor-web.service",
        "net/ports.md",
        "Ports on app1",
        "href=\"/read/net/ports.md?lines=",
        "indexed <time",
    ] {
        assert!(body.contains(part), "{part}: {body}");
    }
    assert!(!body.contains("/v1/feedback"), "without a state directory nothing is reported");
    for (path, status, part) in [
        ("/", 200, "autofocus"),
        ("/?q=+", 200, "autofocus"),
        ("/?q=what+is+the+capital+of+Peru", 200, "I do not know"),
        ("/?q=restart+nginx+for+me", 200, "cannot act"),
        ("/?scope=nowhere&q=x", 400, "nowhere"),
        ("/browse", 200, "net/"),
        ("/browse/net", 200, "Ports"),
        ("/browse/nowhere", 404, "is not here"),
        ("/read/nowhere.md", 404, "is not here"),
        ("/read/../../etc/passwd", 404, ""),
        ("/status", 200, "Calibration"),
    ] {
        let (got, text) = daemon.get(path);
        assert_eq!(got, status, "{path}: {text}");
        assert!(text.contains(part), "{path}: {text}");
    }
}

#[test]
fn the_reader_shows_the_document_and_its_links() {
    let fixture = Fixture::lexical(TREE);
    let daemon = daemon(&fixture, &[]);
    let (status, text) = daemon.get("/read/net/ports.md?lines=9-11");
    assert_eq!(status, 200);
    for part in [
        "href=\"/read/db/dump.md#restore\"",
        "id=\"ports-on-app1\"",
        "id=\"cited-lines\"",
        // Which section an address names is known to the browser alone, so every heading has its links.
        "</h3>\n<div class=\"beside\"><a href=\"#",
        "class=\"line cited\"",
        "Next section",
        "Next runbook",
    ] {
        // The last document has no next one; the tree's order is db, net.
        if part == "Next runbook" {
            assert!(text.contains("Previous runbook"), "{text}");
        } else {
            assert!(text.contains(part), "{part}: {text}");
        }
    }
    let (_, source) = daemon.get("/read/net/ports.md?lines=9-11&view=source");
    assert_eq!(source.matches("class=\"cited\"").count(), 3, "{source}");
    for bad in ["lines=x", "lines=9-3", "lines=0", "view=nonsense", "nonsense=1"] {
        assert_eq!(daemon.get(&format!("/read/net/ports.md?{bad}")).0, 200, "{bad}");
    }
    let (status, _) = daemon.get("/read/net");
    assert_eq!(status, 303, "a directory leads to the tree");
}

#[test]
fn several_repositories_are_told_apart() {
    let one =
        Fixture::lexical("//- a.md\n# One\n\n## Apples\n\nThe apple unit is apple.service.\n");
    let two = Fixture::lexical("//- a.md\n# Two\n\n## Pears\n\nThe pear unit is pear.service.\n");
    let config = one.dir.path().join("query.toml");
    let text = format!(
        "embedder = \"none\"\n[[repo]]\nname = \"one\"\ndata = {:?}\n[[repo]]\nname = \"two\"\ndata = {:?}\n",
        one.data(),
        two.data()
    );
    std::fs::write(&config, text).unwrap();
    let daemon = Daemon::start_with(&["--config", config.to_str().unwrap()]);
    let (_, page) = daemon.get("/?q=what+is+the+pear+unit");
    assert!(page.contains("href=\"/read/a.md?repo=two&amp;lines="), "{page}");
    assert!(daemon.get("/read/a.md?repo=two").1.contains("pear.service"));
    assert!(daemon.get("/read/a.md?repo=one").1.contains("apple.service"));
    assert_eq!(daemon.get("/read/a.md?repo=three").0, 404);
    assert!(daemon.get("/browse").1.contains("/browse?repo=two"));
}

#[test]
fn files_of_the_page_are_kept_by_their_hash() {
    let fixture = Fixture::lexical(TREE);
    let daemon = daemon(&fixture, &[]);
    let (_, home) = daemon.get("/");
    let paths: Vec<&str> = home.split('"').filter(|p| p.starts_with("/assets/")).collect();
    assert_eq!(paths.len(), 3, "{home}");
    for path in paths {
        let raw = daemon.raw(&format!(
            "GET {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n",
            daemon.address
        ));
        assert!(raw.starts_with("HTTP/1.1 200") && raw.contains("immutable"), "{path}");
    }
    assert_eq!(daemon.get("/assets/page-0000000000000000.css").0, 404);
}

#[test]
fn what_is_stale_says_so() {
    let fixture = Fixture::lexical(TREE);
    let file = fixture.data().join("last-run.json");
    let mut last: serde_json::Value =
        serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    last["source_checked_at"] = "2020-01-01T00:00:00Z".into();
    std::fs::write(&file, last.to_string()).unwrap();
    let daemon = daemon(&fixture, &[]);
    let ask = "/?q=which+unit+opens+8080";
    let (_, page) = daemon.get(ask);
    assert!(page.contains("Stale: the source was last checked"), "{page}");
    assert!(page.contains("Degraded"), "one arm alone is told: {page}");
    last["outcome"] = "failed".into();
    last["error"] = "host key".into();
    std::fs::write(&file, last.to_string()).unwrap();
    for _ in 0..100 {
        if daemon.get(ask).1.contains("the last update failed") {
            assert!(daemon.get("/status").1.contains("host key"));
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    panic!("{}", daemon.get(ask).1);
}
