//! Questions over small corpora.

use crate::support::{Fixture, request};
use runbook_query::reply::{Band, RefusalReason};
use runbook_query::service::{AskError, Request};

const TREE: &str = "\
//- db/restore.md
# Restore

## Restore last night's dump

> **Warning:** never into the live database.

```sh
pg_restore -d app /var/backups/app.dump
```

## Retention

Dumps are kept 7 days.
//- net/ports.md
# Ports

## Ports on app1

| port | unit |
|---|---|
| 8080 | `harbor-web.service` |
| 8443 | `harbor-admin.service` |

## Versions

nginx is v1.27.3 and haproxy is 2.9.1.
//- net/errors.md
# Errors

## ORA-00600

Call the vendor.

## E11000

Duplicate key.

## Pods in CrashLoopBackOff

Look at the log of the pod that died.

## Flags

Use --dry-run=client first.
//- preamble.md
Text before any heading names the bastion host jump.example.org.
";

#[test]
fn every_key_is_there_and_the_answer_is_cited() {
    let fixture = Fixture::hybrid(TREE);
    let reply = fixture.ask("how do we restore last night's dump");
    assert_eq!(reply.band, Band::Answer);
    assert!(reply.answer.contains("pg_restore -d app /var/backups/app.dump"), "{}", reply.answer);
    assert!(reply.answer.contains("never into the live database"), "{}", reply.answer);
    let citation = &reply.citations[0];
    assert_eq!(
        (citation.path.as_str(), citation.heading.as_str()),
        ("db/restore.md", "Restore last night's dump")
    );
    assert_eq!(citation.heading_path, ["Restore", "Restore last night's dump"]);
    assert_eq!(citation.lines, [5, 9]);
    assert!(reply.citations.len() + reply.related.len() <= 5);
    let json = serde_json::to_value(&reply).unwrap();
    for key in [
        "id",
        "answer",
        "band",
        "citations",
        "related",
        "confidence",
        "refusal",
        "generation",
        "commit",
        "indexed_at",
        "source_checked_at",
        "age_s",
        "degraded",
        "pinned",
        "route",
        "session",
        "took_ms",
    ] {
        assert!(json.get(key).is_some(), "{key} is missing");
    }
    assert_eq!(json["degraded"], false);
    assert!(json["refusal"].is_null());
}

#[test]
fn a_refusal_says_what_was_searched() {
    let fixture = Fixture::hybrid(TREE);
    for question in [
        "what is the capital of Peru",
        "how do I reset my bank PIN",
        "what is our Mongo sharding policy",
    ] {
        let reply = fixture.ask(question);
        assert_ne!(reply.band, Band::Answer, "{question}");
        assert_eq!(reply.answer, "I do not know");
        assert!(reply.citations.is_empty() && reply.related.is_empty());
        let refusal = reply.refusal.unwrap();
        assert_eq!(refusal.reason, RefusalReason::NoEvidence);
        assert!(!refusal.searched.is_empty() && refusal.searched.len() <= 20);
        assert!(!refusal.nearest.is_empty() && refusal.nearest.iter().all(|n| n.cosine.is_some()));
    }
}

#[test]
fn exact_tokens_come_first() {
    let fixture = Fixture::hybrid(TREE);
    let service = fixture.service();
    for (question, heading) in [
        ("ORA-00600", "ORA-00600"),
        ("E11000", "E11000"),
        ("CrashLoopBackOff", "Pods in CrashLoopBackOff"),
        ("--dry-run=client", "Flags"),
        ("8080", "Ports on app1"),
        ("v1.27.3", "Versions"),
        ("1.27.3", "Versions"),
        ("harbor-admin.service", "Ports on app1"),
        ("jump.example.org", "preamble"),
    ] {
        let (results, _) = service.search(&request(question)).unwrap();
        assert_eq!(results[0].0.heading, heading, "{question}");
    }
}

#[test]
fn no_text_is_an_error() {
    let fixture = Fixture::lexical(TREE);
    let service = fixture.service();
    for question in [
        "error: dial tcp 10.0.0.1:8080",
        "C:\\logs",
        "\"unbalanced",
        "foo(",
        ">>>",
        "-v",
        "a AND",
        "*",
        "a:(^",
        "~",
        "[1 TO",
        "+-&|!(){}[]^\"~*?:\\/",
        "the of and",
        "\u{0}\u{1}x",
        "🚨🚨",
        "' OR 1=1 --",
    ] {
        let reply = service.ask(&request(question)).unwrap();
        assert!(reply.refusal.is_some() || !reply.citations.is_empty(), "{question}");
    }
    let trace = (0..300)
        .map(|n| format!("\tat com.example.Class{n}.method{n}(Class{n}.java:{n})\n"))
        .collect::<String>();
    let reply = service
        .ask(&request(&format!("java.lang.IllegalStateException: E11000\n{trace}")))
        .unwrap();
    let first = reply.citations.first().map(|c| c.heading.clone());
    let near = reply.refusal.and_then(|r| r.nearest.first().map(|n| n.heading.clone()));
    assert_eq!(first.or(near).as_deref(), Some("E11000"));
    assert!(matches!(service.ask(&request(" ")), Err(AskError::Question(_))));
    assert!(matches!(service.ask(&request(&"x".repeat(200_000))), Err(AskError::Question(_))));
    assert!(matches!(service.ask(&Request { k: Some(0), ..request("x") }), Err(AskError::K(0))));
}

#[test]
fn a_scope_is_a_prefix_at_a_boundary() {
    let fixture = Fixture::lexical(&format!(
        "{TREE}//- net2/other.md\n# Other\n\n## More ports\n\nPort 8080 again.\n"
    ));
    let service = fixture.service();
    let paths = |scope: &str| {
        let request = Request { scope: Some(scope.into()), k: Some(20), ..request("port 8080") };
        let (results, _) = service.search(&request).unwrap();
        let mut paths: Vec<String> = results.into_iter().map(|r| r.0.path).collect();
        paths.dedup();
        paths.sort();
        paths.dedup();
        paths
    };
    assert!(paths("net").iter().all(|p| p.starts_with("net/")), "{:?}", paths("net"));
    assert_eq!(paths("net2/"), ["net2/other.md"]);
    assert_eq!(paths("net/ports.md"), ["net/ports.md"]);
    let nowhere = service.search(&Request { scope: Some("ne".into()), ..request("port") });
    assert!(matches!(nowhere, Err(AskError::NoScope(_))));
    assert!(matches!(
        service.search(&Request { scope: Some("repo:x".into()), ..request("port") }),
        Err(AskError::NoRepo(_))
    ));
}

#[test]
fn without_vectors_the_reply_says_so() {
    let fixture = Fixture::lexical(TREE);
    let reply = fixture.ask("which unit opens 8080");
    assert!(reply.provenance.degraded);
    let refused = fixture.ask("what is the capital of Peru");
    assert_eq!(refused.refusal.unwrap().reason, RefusalReason::Degraded);
}

#[test]
fn an_empty_tree_says_so() {
    let fixture = Fixture::lexical("//- note.txt\nnot Markdown\n");
    let reply = fixture.ask("anything at all");
    assert_eq!(reply.refusal.unwrap().reason, RefusalReason::EmptyIndex);
}

#[test]
fn requests_are_refused_with_their_own_words() {
    let fixture = Fixture::lexical(TREE);
    for (question, reason) in [
        ("restart nginx for me", RefusalReason::Action),
        ("what is the root password", RefusalReason::Secret),
        ("what is the phone number of customer 4411", RefusalReason::Customer),
    ] {
        let refusal = fixture.ask(question).refusal.unwrap();
        assert_eq!(refusal.reason, reason, "{question}");
        assert_eq!(refusal.message, reason.explanation());
    }
}

#[test]
fn warnings_and_prerequisites_above_are_shown_with_the_commands() {
    let tree = "//- a.md\n# Service\n\n> **Warning:** the page of all warnings.\n\n## Restart\n\nBefore you start: tell the channel.\n\n### Restart the widget\n\n```sh\nsystemctl restart widget\n```\n\n### Colour of the widget\n\nThe widget is green.\n";
    let fixture = Fixture::hybrid(tree);
    let reply = fixture.ask("restart the widget");
    assert!(reply.answer.contains("systemctl restart widget"), "{}", reply.answer);
    let warning = reply.answer.find("tell the channel").expect("the parent's prerequisite");
    assert!(reply.answer.find("all warnings").expect("the page's warning") < warning);
    assert!(warning < reply.answer.find("systemctl").unwrap());
    assert_eq!(reply.citations[0].heading, "Restart the widget");
    let headings: Vec<_> = reply.citations.iter().map(|c| c.heading.as_str()).collect();
    assert_eq!(headings, ["Restart the widget", "Service", "Restart"]);
    let reply = fixture.ask("colour of the widget");
    assert!(!reply.answer.contains("channel"), "no command, no warning: {}", reply.answer);
}

#[test]
fn a_long_procedure_is_whole_or_says_how_many_steps_follow() {
    let steps = |words: usize| -> String {
        (1..=40)
            .map(|n| format!("{n}. Turn knob {n} {}\n", "with a steady hand ".repeat(words)))
            .collect()
    };
    for (words, whole) in [(8, true), (30, false)] {
        let tree = format!(
            "//- a.md\n# Reactor\n\n## Cool the reactor down\n\nTo cool the reactor down, slowly:\n\n{}",
            steps(words)
        );
        let fixture = Fixture::hybrid(&tree);
        let reply = fixture.ask("how do I cool the reactor down");
        assert_eq!(reply.band, Band::Answer);
        let shown = (1..=40).filter(|n| reply.answer.contains(&format!("Turn knob {n} "))).count();
        if whole {
            assert_eq!(shown, 40);
            assert!(!reply.answer.contains("more steps"));
        } else {
            assert!(
                shown < 40 && reply.answer.contains(&format!("{} more steps: ", 40 - shown)),
                "{shown}: {}",
                reply.answer
            );
        }
    }
}

#[test]
fn a_fact_in_a_large_table_is_shown_with_its_header() {
    let rows: String = (9000..9090)
        .map(|n| format!("| {n} | unit-{n}.service | the purpose of number {n} |\n"))
        .collect();
    let tree = format!(
        "//- p.md\n# Ports\n\n## Units by port\n\n| port | unit | purpose |\n|---|---|---|\n{rows}"
    );
    let fixture = Fixture::hybrid(&tree);
    let reply = fixture.ask("which unit opens port 9042");
    assert_eq!(
        reply.answer,
        "| port | unit | purpose |\n|---|---|---|\n| 9042 | unit-9042.service | the purpose of number 9042 |"
    );
    assert_eq!(
        reply.citations[0].quote,
        "| 9042 | unit-9042.service | the purpose of number 9042 |"
    );
    assert_eq!(reply.citations[0].lines, [49, 49]);
}
