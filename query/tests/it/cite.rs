//! The guard on an agent's answer: what the session has seen supports it, or nothing does.

use crate::support::{Daemon, Fixture, request};
use runbook_query::evidence::guard::{Guarded, Reason, Ruling};
use runbook_query::evidence::{How, Source};
use runbook_query::service::{Request, Service};
use serde_json::{Value, json};
use std::time::Instant;

const TREE: &str = "//- database/failover.md\n# Database failover\n\n## Fail over\n\nWait 5 minutes for the replicas, then promote the standby:\n\n```sh\nkubectl drain node-1 --ignore-daemonsets\npg_ctl promote -D /var/lib/postgresql/15/main\n```\n\nThe unit harbor-db.service opens port 5432 on db-01.example.org (v15.4).\n\n## Remove a pod\n\nRun `kubectl delete pod web --force` when it hangs, and set `max_connections=200`.\n\n## Times\n\nBackups are kept for 30 days.\n//- web/nginx.md\n# Nginx\n\n## Restart\n\nsystemctl restart nginx\n\nIt listens on port 8443, see https://grafana.example.org:3000/d/web.\n//- hidden/other.md\n# Other\n\n## Kafka\n\nkafka-topics.sh --list --bootstrap-server kafka-1:9092\n";

fn seen(service: &Service, paths: &[&str]) {
    let sources = paths.iter().map(|p| Source::new("", p, How::Read));
    service.evidence().record("s", sources, Instant::now());
}

fn cite(service: &Service, answer: &str) -> Guarded {
    service.cite("s", answer, None).unwrap().0
}

fn unsupported(guarded: &Guarded) -> Vec<&str> {
    guarded.unsupported.iter().map(|u| u.token.as_str()).collect()
}

#[test]
fn what_stands_there_is_supported() {
    let fixture = Fixture::lexical(TREE);
    let service = fixture.service();
    seen(&service, &["database/failover.md", "web/nginx.md"]);
    for (answer, path, heading) in [
        ("Wait 5 minutes, then promote the standby.", "database/failover.md", "Fail over"),
        ("Wait 5m for the replicas.", "database/failover.md", "Fail over"),
        (
            "```sh\nkubectl drain node-1 --ignore-daemonsets\n```",
            "database/failover.md",
            "Fail over",
        ),
        ("Use `kubectl drain <node> --ignore-daemonsets`.", "database/failover.md", "Fail over"),
        ("Run pg_ctl promote -D /var/lib/postgresql/15/main.", "database/failover.md", "Fail over"),
        ("The data is in /var/lib/postgresql.", "database/failover.md", "Fail over"),
        (
            "harbor-db.service opens port 5432 on DB-01.example.org.",
            "database/failover.md",
            "Fail over",
        ),
        ("It runs 15.4.", "database/failover.md", "Fail over"),
        ("`kubectl delete pod web --force`", "database/failover.md", "Remove a pod"),
        ("Set max_connections to 200.", "database/failover.md", "Remove a pod"),
        ("Backups are kept for thirty or 30 days [1].", "database/failover.md", "Times"),
        ("1. Run systemctl restart nginx and see step 2.\n2. Done.", "web/nginx.md", "Restart"),
        ("Grafana is at https://grafana.example.org:3000/d/web", "web/nginx.md", "Restart"),
        ("Promote the standby after the replicas waited.", "database/failover.md", "Fail over"),
        ("See /runbooks/web/nginx.md.", "web/nginx.md", "Restart"),
    ] {
        let guarded = cite(&service, answer);
        assert_eq!(unsupported(&guarded), [""; 0], "{answer}");
        assert_eq!(guarded.verdict, Ruling::Supported, "{answer}");
        let first = &guarded.citations[0];
        assert_eq!((first.path.as_str(), first.heading.as_str()), (path, heading), "{answer}");
        assert!(!first.quote.is_empty() && first.lines[0] <= first.lines[1]);
    }
}

#[test]
fn what_is_invented_is_named() {
    let fixture = Fixture::lexical(TREE);
    let service = fixture.service();
    seen(&service, &["database/failover.md", "web/nginx.md"]);
    for (answer, token, reason) in [
        // Invented outright.
        (
            "`kubectl drain node-1 --delete-emptydir-data`",
            "--delete-emptydir-data",
            Reason::NotInSources,
        ),
        ("Pass --grace-period=0.", "--grace-period", Reason::NotInSources),
        ("Pass —grace-period.", "--grace-period", Reason::NotInSources),
        ("Edit /etc/nginx/nginx.conf.", "/etc/nginx/nginx.conf", Reason::NotInSources),
        ("Connect to db-02.example.org.", "db-02.example.org", Reason::NotInSources),
        ("Start harbor-web.service.", "harbor-web.service", Reason::NotInSources),
        ("It runs v15.5.", "v15.5", Reason::NotInSources),
        ("Set shared_buffers.", "shared_buffers", Reason::NotInSources),
        ("The pod is in CrashLoopBackOff.", "CrashLoopBackOff", Reason::NotInSources),
        ("nginx opens port 8444.", "8444", Reason::NotInSources),
        ("Wait 6 minutes for the replicas.", "6 minutes", Reason::NotInSources),
        ("Run `systemctl reload nginx`.", "reload", Reason::NotInSources),
        ("Then run systemctl stop nginx.", "stop", Reason::NotInSources),
        ("```\nrm -rf /var/lib/postgresql/15/main\n```", "rm", Reason::NotInSources),
        (
            "See https://grafana.example.org:3000/d/db",
            "https://grafana.example.org:3000/d/db",
            Reason::NotInSources,
        ),
        // Real, but of something else.
        ("`kubectl drain node-1 --force`", "--force", Reason::NotTogether),
        ("nginx listens on port 5432.", "5432", Reason::NumberOfAnother),
        ("Wait 30 minutes for the replicas.", "30 minutes", Reason::NotInSources),
        ("Backups are kept for 5 days.", "5 days", Reason::NotInSources),
        // Real, but never seen by this session.
        ("`kafka-topics.sh --list`", "kafka-topics.sh", Reason::NotInSources),
        ("Kafka is at kafka-1:9092.", "kafka-1:9092", Reason::NotInSources),
        // Hidden in a comment, split by markup, in other dashes.
        ("<!-- use --purge -->", "--purge", Reason::NotInSources),
        ("Use **--pur**ge.", "--purge", Reason::NotInSources),
    ] {
        let guarded = cite(&service, answer);
        let named = guarded.unsupported.iter().find(|u| u.token == token);
        let named = named.unwrap_or_else(|| panic!("{answer}: {:?}", guarded.unsupported));
        assert_eq!(named.reason, reason, "{answer}");
        assert_eq!(guarded.verdict, Ruling::Unsupported, "{answer}");
    }
}

#[test]
fn a_flag_belongs_to_its_command() {
    let tree = "//- a.md\n# A\n\n## Both\n\nkubectl drain node-1\n\ngit push --force\n";
    let fixture = Fixture::lexical(tree);
    let service = fixture.service();
    seen(&service, &["a.md"]);
    let guarded = cite(&service, "`kubectl drain node-1 --force`");
    assert_eq!(guarded.unsupported[0].reason, Reason::FlagOfAnother);
    assert_eq!(cite(&service, "`git push --force`").verdict, Ruling::Supported);
}

#[test]
fn nothing_seen_supports_nothing() {
    let fixture = Fixture::lexical(TREE);
    let service = fixture.service();
    let guarded = cite(&service, "`systemctl restart nginx`");
    assert_eq!((guarded.verdict, guarded.sources), (Ruling::NoEvidence, 0));
    assert!(guarded.citations.is_empty());
    let sources =
        [Source::new("", "gone.md", How::Read), Source::new("other", "web/nginx.md", How::Read)];
    service.evidence().record("s", sources, Instant::now());
    assert_eq!(cite(&service, "`systemctl restart nginx`").verdict, Ruling::NoEvidence);
    seen(&service, &["web/nginx.md"]);
    let other = cite(&service, "The capital of Peru is Lima, a city of millions.");
    assert_eq!((other.verdict, other.citations.len()), (Ruling::NoEvidence, 0));
    assert_eq!(cite(&service, "I do not know.").verdict, Ruling::Refusal);
    assert!(service.cite("s", "  ", None).is_err());
    assert!(service.cite("bad name", "x", None).is_err());
    assert!(service.cite("s", &"x ".repeat(40_000), None).is_err());
    assert!(service.cite("s", &"`a b` ".repeat(9000), None).is_err());
}

#[test]
fn two_pages_are_both_cited_and_the_ranking_is_by_rare_words() {
    let fixture = Fixture::lexical(TREE);
    let service = fixture.service();
    seen(&service, &["database/failover.md", "web/nginx.md", "hidden/other.md"]);
    let answer =
        "Run `pg_ctl promote -D /var/lib/postgresql/15/main`, then `systemctl restart nginx`.";
    let guarded = cite(&service, answer);
    let paths: Vec<&str> = guarded.citations.iter().map(|c| c.path.as_str()).collect();
    assert_eq!(paths.len(), 2, "{paths:?}");
    assert!(paths.contains(&"database/failover.md") && paths.contains(&"web/nginx.md"));
    let quote = &guarded.citations.iter().find(|c| c.path == "web/nginx.md").unwrap().quote;
    assert_eq!(quote, "systemctl restart nginx");
}

#[test]
fn hostile_answers_do_no_harm() {
    let fixture = Fixture::lexical(TREE);
    let service = fixture.service();
    seen(&service, &["database/failover.md"]);
    for answer in [
        "`",
        "```",
        "[1] citation: database/failover.md#L1",
        "\u{0}\u{1}\u{202e}--force",
        &"`a b` ".repeat(9000),
        &"[".repeat(60_000),
        &"a_1 ".repeat(12_000),
        "| a | b |\n|---|---|\n| `--x` | 1 |",
        "9".repeat(5000).as_str(),
    ] {
        let started = Instant::now();
        // What is too much to be checked as a whole is refused, never half checked.
        if let Ok((guarded, _)) = service.cite("s", answer, None) {
            assert!(guarded.citations.iter().all(|c| c.path == "database/failover.md"));
        }
        assert!(started.elapsed().as_secs() < 5, "{answer:.40}");
    }
}

#[test]
fn what_retrieval_showed_can_be_cited() {
    let fixture = Fixture::lexical(TREE);
    let service = fixture.service();
    let reply = service.ask(&request("which unit opens port 5432")).unwrap();
    let answer = "harbor-db.service opens port 5432.";
    let (guarded, provenance) = service.cite(&reply.session, answer, None).unwrap();
    assert_eq!(guarded.verdict, Ruling::Supported);
    assert_eq!(provenance.generation, reply.provenance.generation);
    let named = Request { session: Some("mine".into()), ..request("nginx restart") };
    service.search(&named).unwrap();
    assert!(!service.evidence().sources("mine", Instant::now()).is_empty());
    assert!(service.evidence().sources("other", Instant::now()).is_empty());
}

/// The guard holds our own answers to the same rule: what `ask` says, `cite` supports.
#[test]
fn our_own_answers_pass() {
    let fixture = Fixture::lexical(TREE);
    let service = fixture.service();
    for question in ["which unit opens port 5432", "how do I restart nginx", "how do I fail over"] {
        let reply = service.ask(&request(question)).unwrap();
        assert!(reply.refusal.is_none(), "{question}");
        let (guarded, _) = service.cite(&reply.session, &reply.answer, None).unwrap();
        assert_eq!(guarded.verdict, Ruling::Supported, "{question}: {:?}", guarded.unsupported);
    }
}

#[test]
fn over_http() {
    let fixture = Fixture::lexical(TREE);
    let daemon = Daemon::start(&fixture.data(), &["--embedder", "none"]);
    let found = daemon.json("/v1/search?q=nginx+restart&k=2");
    let session = found["session"].as_str().unwrap();
    let post = |body: Value| {
        let (status, text) = daemon.post("/v1/cite", &body.to_string());
        (status, serde_json::from_str::<Value>(&text).unwrap())
    };
    let (status, reply) = post(json!({"session": session, "answer": "`systemctl restart nginx`"}));
    assert_eq!((status, &reply["verdict"]), (200, &json!("supported")), "{reply}");
    assert_eq!(reply["citations"][0]["path"], "web/nginx.md");
    assert!(reply["generation"].is_string() && reply["checked"].as_u64() == Some(1));
    let (_, reply) = post(json!({"session": session, "answer": "`systemctl mask nginx`"}));
    assert_eq!(reply["verdict"], "unsupported");
    assert_eq!(
        reply["unsupported"],
        json!([{"token": "mask", "kind": "command", "reason": "not_in_sources"}])
    );
    for (body, code) in [
        (json!({"answer": "x"}), "bad_json"),
        (json!({"session": "s", "answer": "x", "anwser": "y"}), "bad_json"),
        (json!({"session": "a b", "answer": "x"}), "bad_session"),
        (json!({"session": "s", "answer": " "}), "bad_answer"),
        (json!({"session": "s", "answer": "x", "k": 0}), "k_out_of_range"),
    ] {
        let (status, reply) = post(body.clone());
        assert_eq!((status, &reply["error"]["code"]), (400, &json!(code)), "{body}");
    }
}
