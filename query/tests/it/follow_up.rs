//! Conversations: what a follow-up means, and what must not change by one.

use crate::support::{Fixture, request};
use runbook_query::reply::{Band, RefusalReason, Reply};
use runbook_query::service::{Request, Service};

const TREE: &str = "\
//- nginx.md
# nginx

## Restart nginx

```sh
systemctl restart nginx
```

## How long a restart of nginx takes

It takes about 4 seconds.

## Restart nginx on staging

```sh
ssh staging systemctl restart nginx
```
//- redis.md
# redis

## Restart redis

```sh
systemctl restart redis-server
```

## How long a restart of redis takes

Up to 90 seconds, it loads the dump.
//- passwords.md
# Secrets

## Root password

It is kept in the safe of the office.
";

fn ask(service: &Service, session: Option<&str>, question: &str) -> Reply {
    let session = session.map(str::to_owned);
    service.ask(&Request { session, explain: true, ..request(question) }).unwrap()
}

#[test]
fn a_follow_up_is_completed_from_the_question_before() {
    let fixture = Fixture::hybrid(TREE);
    let service = fixture.service();
    let first = ask(&service, None, "how do I restart nginx");
    assert!(!first.route.contains(&"follow_up".to_owned()));
    for (question, heading) in [
        ("what about redis?", "Restart redis"),
        ("how long does that take?", "How long a restart of redis takes"),
    ] {
        let reply = ask(&service, Some(&first.session), question);
        assert_eq!(reply.band, Band::Answer, "{question}: {:?}", reply.explain);
        assert_eq!(reply.citations[0].heading, heading, "{question}: {:?}", reply.explain);
        assert_eq!(reply.route[1], "follow_up");
        assert!(
            reply.explain.unwrap()["follow_up"]["completed"].as_str().unwrap().contains("redis")
        );
        assert_eq!(reply.session, first.session);
    }
    let other = ask(&service, Some("mine"), "restart nginx");
    let reply = ask(&service, Some(&other.session), "and on staging?");
    assert!(reply.answer.contains("ssh staging"), "{}", reply.answer);
}

#[test]
fn an_answer_about_something_else_is_none() {
    let fixture = Fixture::hybrid(TREE);
    let service = fixture.service();
    ask(&service, Some("s"), "how do I restart nginx");
    for question in ["what about kafka?", "and on the gondola?"] {
        let reply = ask(&service, Some("s"), question);
        let refusal = reply.refusal.unwrap_or_else(|| panic!("{question}: {}", reply.answer));
        assert_eq!(refusal.reason, RefusalReason::NoEvidence, "{question}");
        assert!(!refusal.nearest.is_empty() && reply.route[1] == "follow_up", "{:?}", reply.route);
    }
}

#[test]
fn and_then_shows_what_stands_next() {
    let fixture = Fixture::hybrid(TREE);
    let service = fixture.service();
    let first = ask(&service, Some("s"), "how do I restart nginx");
    assert_eq!(first.citations[0].heading, "Restart nginx");
    let next = ask(&service, Some("s"), "and then?");
    assert_eq!(next.citations[0].heading, "How long a restart of nginx takes");
    assert_eq!(
        ask(&service, Some("s"), "what next?").citations[0].heading,
        "Restart nginx on staging"
    );
    let end = ask(&service, Some("s"), "and then?");
    assert_ne!(end.citations.first().map(|c| c.heading.as_str()), Some("Root password"));
}

#[test]
fn a_question_of_its_own_is_not_changed_by_history() {
    let fixture = Fixture::hybrid(TREE);
    let (with, without) = (fixture.service(), fixture.service());
    ask(&with, Some("s"), "how do I restart redis");
    for question in [
        "how do I restart nginx",
        "restart nginx on staging",
        "where is the root password kept",
        "what is the capital of Peru",
    ] {
        let (a, b) = (ask(&with, Some("s"), question), ask(&without, None, question));
        assert_eq!(a.answer, b.answer, "{question}");
        assert_eq!(a.citations, b.citations);
        assert_eq!(a.confidence.to_bits(), b.confidence.to_bits());
        assert_eq!(a.route, b.route);
    }
}

#[test]
fn there_is_no_history_without_its_name() {
    let fixture = Fixture::hybrid(TREE);
    let service = fixture.service();
    ask(&service, None, "how do I restart redis");
    ask(&service, Some("a"), "how do I restart redis");
    for session in [None, Some("b")] {
        let reply = ask(&service, session, "how long does that take?");
        assert!(!reply.route.contains(&"follow_up".to_owned()), "{:?}", reply.route);
    }
}

#[test]
fn a_follow_up_gets_nothing_past_the_gate() {
    let fixture = Fixture::hybrid(TREE);
    let service = fixture.service();
    ask(&service, Some("s"), "where is the root password kept");
    let reply = ask(&service, Some("s"), "and what is it?");
    assert_eq!(reply.refusal.map(|r| r.reason), Some(RefusalReason::Secret), "{}", reply.answer);
    ask(&service, Some("t"), "how do I restart nginx");
    let reply = ask(&service, Some("t"), "please do it for me");
    assert_eq!(reply.refusal.map(|r| r.reason), Some(RefusalReason::Action));
}

#[test]
fn a_scan_goes_on_with_another_subject() {
    let fixture = Fixture::lexical(TREE);
    let service = fixture.service();
    let first = ask(&service, Some("s"), "how many runbooks mention nginx");
    assert!(first.answer.starts_with("1 document mentions \"nginx\""), "{}", first.answer);
    let reply = ask(&service, Some("s"), "and redis?");
    assert!(reply.answer.starts_with("1 document mentions \"redis\""), "{}", reply.answer);
    assert_eq!(reply.route, ["request_gate", "follow_up", "scan"]);
}
