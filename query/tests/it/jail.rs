//! The jail: nothing but the generation's documents and the mounts exists, over every entry point.

use crate::hostile;
use crate::support::{Daemon, Fixture};
use runbook_query::shell;
use runbook_query::tree::envelope::Envelope;
use runbook_query::tree::limits::Limits;
use runbook_query::tree::request;
use runbook_query::tree::router::{Options, Tree};
use serde_json::json;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

const TREE: &str = "//- ports.md\n# Ports\n\nnginx opens 8080.\n//- hosts.md\n# Hosts\n\napp1\n//- deploy/staging.md\n# Staging\n\nHarbor.\n";

/// Every file beneath a directory with its content's hash.
fn state(dir: &Path) -> BTreeMap<String, String> {
    let mut files = BTreeMap::new();
    let mut open = vec![dir.to_owned()];
    while let Some(dir) = open.pop() {
        for entry in std::fs::read_dir(&dir).unwrap() {
            let path = entry.unwrap().path();
            let meta = std::fs::symlink_metadata(&path).unwrap();
            if meta.is_dir() {
                open.push(path);
            } else if meta.is_file() {
                let hash = blake3::hash(&std::fs::read(&path).unwrap()).to_string();
                files.insert(path.display().to_string(), hash);
            }
        }
    }
    files
}

/// Says nothing of the machine, in any field.
fn check(envelope: &Envelope, what: &str, words: &[String]) {
    let text = format!("{}", serde_json::to_value(envelope).unwrap());
    for word in words {
        // A message may repeat what was asked.
        if !what.contains(word.as_str()) {
            assert!(!text.contains(word.as_str()), "{what:?} shows {word:?}: {text}");
        }
    }
}

fn quick() -> Limits {
    Limits { wall_clock_s: 1.0, ..Limits::default() }
}

#[test]
fn no_hostile_path_leads_out() {
    let fixture = Fixture::lexical(TREE);
    let before = state(fixture.dir.path());
    let service = fixture.service();
    let words = hostile::machine_words(&fixture.data());
    let view = service.view(Some("jail")).unwrap();
    for path in hostile::paths() {
        let mut results = vec![
            view.ls(&request::Ls { path: Some(path.clone()) }),
            view.read(&request::Read { path: path.clone(), ..request::Read::default() }),
            view.draw(&request::Draw { path: Some(path.clone()), depth: None }),
            view.find(&request::Find { path: Some(path.clone()), ..request::Find::default() }),
            view.grep(&request::Grep {
                pattern: "root".into(),
                path: Some(path.clone()),
                ..request::Grep::default()
            }),
            view.load(&request::Load { path: Some(path.clone()), limit: None }),
            view.history(&request::History { path: path.clone() }),
            view.edit(&request::Edit {
                path: path.clone(),
                old: "a".into(),
                new: "b".into(),
                all: true,
            }),
            view.delete(&request::Delete { path: path.clone(), recursive: true }),
            view.write(&request::Write { path: path.clone(), content: "x".into() }),
        ];
        let quoted = path.replace('\'', "'\\''");
        for command in
            ["cat", "ls -la", "grep -r root", "find", "head", "stat", "cp ports.md", "rm -rf", "cd"]
        {
            let request = shell::Request {
                command: format!("{command} '{quoted}'"),
                ..shell::Request::default()
            };
            results.push(shell::run(&view, &request));
        }
        for envelope in &results {
            check(envelope, &path, &words);
        }
    }
    assert_eq!(state(fixture.dir.path()), before, "something was written");
    let left = view.ls(&request::Ls { path: Some("/".into()) });
    assert_eq!(left.content.lines().count(), 2, "{}", left.content);
}

#[test]
fn no_hostile_script_leads_out_or_goes_on() {
    let fixture = Fixture::lexical(TREE);
    let before = state(fixture.dir.path());
    let words = hostile::machine_words(&fixture.data());
    let tree = Arc::new(Tree::new(Options { limits: quick(), ..Options::default() }));
    let service = fixture.service().with_tree(tree);
    for script in hostile::scripts() {
        let view = service.view(None).unwrap();
        let request = shell::Request { command: script.clone(), ..shell::Request::default() };
        let started = Instant::now();
        let envelope = shell::run(&view, &request);
        let took = started.elapsed();
        let shown: String = script.chars().take(80).collect();
        assert!(took < Duration::from_secs(8), "{shown:?} took {took:?}");
        assert!(envelope.exit_code.is_some(), "{shown:?}");
        assert!(envelope.content.len() < 100_000, "{shown:?} printed {}", envelope.content.len());
        check(&envelope, &script, &words);
    }
    assert_eq!(state(fixture.dir.path()), before, "something was written");
}

#[test]
fn the_same_over_http() {
    let fixture = Fixture::lexical(TREE);
    let data_before = state(&fixture.data());
    let words = hostile::machine_words(&fixture.data());
    let config = fixture.dir.path().join("query.toml");
    std::fs::write(&config, "[tree]\nwall_clock_s = 1.0\n").unwrap();
    let state_dir = fixture.dir.path().join("state");
    let daemon = Daemon::start(
        &fixture.data(),
        &[
            "--embedder",
            "none",
            "--config",
            config.to_str().unwrap(),
            "--state",
            state_dir.to_str().unwrap(),
        ],
    );
    let encode = |path: &str| path.bytes().map(|b| format!("%{b:02X}")).collect::<String>();
    let check = |what: &str, (status, body): (u16, String)| {
        assert!((200..600).contains(&status) && status != 500, "{what:?}: {status} {body}");
        for word in &words {
            assert!(
                what.contains(word.as_str()) || !body.contains(word.as_str()),
                "{what:?} shows {word:?}: {body}"
            );
        }
    };
    for path in hostile::paths() {
        for route in ["ls", "read", "tree", "find", "load", "history"] {
            check(&path, daemon.get(&format!("/v1/fs/{route}?path={}", encode(&path))));
        }
        check(&path, daemon.get(&format!("/v1/fs/grep?pattern=root&path={}", encode(&path))));
        // As it is, where it is a line of HTTP at all.
        if path.bytes().all(|b| b.is_ascii_graphic()) && path.len() < 4000 {
            check(&path, daemon.get(&format!("/v1/fs/read?path={path}")));
            check(&path, daemon.get(&format!("/{path}")));
        }
        for (route, body) in [
            ("write", json!({"path": path, "content": "x"})),
            ("edit", json!({"path": path, "old": "a", "new": "b"})),
            ("delete", json!({"path": path, "recursive": true})),
        ] {
            if !path.starts_with("/artifacts/") && !path.starts_with("/tmp/") {
                check(&path, daemon.post(&format!("/v1/fs/{route}"), &body.to_string()));
            }
        }
    }
    for script in hostile::scripts() {
        check(&script, daemon.post("/v1/shell", &json!({"command": script}).to_string()));
    }
    assert_eq!(daemon.get("/livez").0, 200);
    assert_eq!(state(&fixture.data()), data_before, "something was written");
}

#[test]
fn a_document_replaced_by_a_link_is_an_error() {
    // JL-01, JL-04: what is opened is compared with the manifest, and links are not followed.
    let fixture = Fixture::lexical(TREE);
    let service = fixture.service();
    let docs = std::fs::canonicalize(fixture.data().join("current")).unwrap().join("docs");
    std::fs::remove_file(docs.join("ports.md")).unwrap();
    std::os::unix::fs::symlink("/etc/passwd", docs.join("ports.md")).unwrap();
    std::fs::write(docs.join("hosts.md"), "# Hosts\n\nevil\n").unwrap();
    std::fs::write(docs.join("new.md"), "# New\n").unwrap();
    let view = service.view(None).unwrap();
    for path in ["ports.md", "hosts.md"] {
        let read = view.read(&request::Read { path: path.into(), ..request::Read::default() });
        assert_eq!(read.error.unwrap().code, "unavailable", "{path}: {}", read.content);
        assert!(read.content.is_empty());
    }
    let read = view.read(&request::Read { path: "new.md".into(), ..request::Read::default() });
    assert_eq!(read.error.unwrap().code, "not_found", "only documents of the generation exist");
    let grep = view.grep(&request::Grep { pattern: "Harbor".into(), ..request::Grep::default() });
    assert!(grep.content.contains("deploy/staging.md:3:Harbor."), "the others are searched");
    assert!(
        grep.error.is_some() && grep.stderr.contains("unavailable")
            || grep.stderr.contains("cannot be reached"),
        "{grep:?}"
    );
}
