//! Counting, listing and absence over trees whose counts are known.

use crate::support::{Fixture, ingest, request};
use runbook_query::citation;
use runbook_query::engine::Policy;
use runbook_query::reply::{Band, RefusalReason, Reply};
use runbook_query::service::{Options, Request, Service};
use runbook_query::snapshot::Repo;
use runbook_shared::locate::Places;

/// 60 documents: `widget-ctl` in every third, twice in every sixth; `Certificates` in each tenth,
/// in front matter or a comment in two more.
fn tree() -> String {
    let mut text = String::new();
    for n in 0..60 {
        let folder = ["db", "net", "web"][n % 3];
        text.push_str(&format!("//- {folder}/page-{n:02}.md\n"));
        if n == 1 {
            text.push_str("---\ntitle: One\nowner: hidden-owner\n---\n");
        }
        text.push_str(&format!("# Page {n}\n\n## First\n\nSomething of number {n}.\n\n"));
        if n % 3 == 0 {
            text.push_str("Run `widget-ctl` here.\n\n");
        }
        if n % 6 == 0 {
            text.push_str(
                "## Second\n\n```sh\nsudo Widget-Ctl --stop\n```\n\nNot my_widget-ctl.\n\n",
            );
        }
        if n % 10 == 0 {
            text.push_str("Certificates expire, and a certificate\nauthority signs.\n\n");
        }
        if n == 2 {
            text.push_str("<!-- the commented-marker is not shown -->\n");
        }
    }
    text
}

fn listed(reply: &Reply) -> Vec<String> {
    let items = reply.answer.lines().filter_map(|l| l.strip_prefix("- "));
    items.filter(|l| !l.starts_with("and ")).map(str::to_owned).collect()
}

#[test]
fn counts_are_those_of_the_tree() {
    let fixture = Fixture::lexical(&tree());
    let service = fixture.service();
    for (question, head, count) in [
        ("how many runbooks mention widget-ctl?", "20 documents mention \"widget-ctl\":", 20),
        ("which files name WIDGET-CTL", "20 documents mention \"WIDGET-CTL\":", 20),
        (
            "how many times is widget-ctl mentioned",
            "\"widget-ctl\" is mentioned 30 times in 20 documents:",
            20,
        ),
        (
            "how many sections mention widget-ctl",
            "30 sections in 20 documents mention \"widget-ctl\":",
            20,
        ),
        ("which pages mention certificates", "6 documents mention \"certificates\":", 6),
        ("which pages mention \"certificates\"", "6 documents mention \"certificates\":", 6),
        (
            "which pages mention certificate authorities",
            "6 documents mention \"certificate authorities\":",
            6,
        ),
        (
            "which docs mention both widget-ctl and certificates",
            "2 documents mention \"widget-ctl\" and \"certificates\":",
            2,
        ),
        (
            "which docs mention widget-ctl or certificates",
            "24 documents mention \"widget-ctl\" or \"certificates\":",
            24,
        ),
        (
            "which runbooks do not mention widget-ctl",
            "40 documents do not mention \"widget-ctl\":",
            40,
        ),
        ("how many documents are there", "60 documents:", 50),
        (
            "how many pages in db/ mention certificates",
            "2 documents in `db` mention \"certificates\":",
            2,
        ),
        ("is hidden-owner mentioned anywhere", "1 document mentions \"hidden-owner\":", 1),
        (
            "does any runbook mention commented-marker",
            "1 document mentions \"commented-marker\":",
            1,
        ),
    ] {
        let reply = service.ask(&request(question)).unwrap();
        assert_eq!(reply.answer.lines().next(), Some(head), "{question}");
        assert_eq!(reply.route, ["request_gate", "scan"], "{question}");
        assert_eq!((reply.band, reply.citations.len()), (Band::Answer, count), "{question}");
        let cited: Vec<&str> = reply.citations.iter().map(|c| c.path.as_str()).collect();
        assert_eq!(listed(&reply), cited, "{question}");
        assert!(
            reply.answer.contains("60 documents were scanned") || question.contains("db/"),
            "{}",
            reply.answer
        );
    }
    let more = service.ask(&request("how many documents are there")).unwrap();
    assert!(more.answer.contains("- and 10 more\n"), "{}", more.answer);
    let few = Request { k: Some(3), ..request("how many runbooks mention widget-ctl") };
    let few = service.ask(&few).unwrap();
    assert_eq!(few.citations.len(), 3);
    assert!(few.answer.starts_with("20 documents") && few.answer.contains("- and 17 more\n"));
}

#[test]
fn every_citation_of_a_list_holds() {
    let fixture = Fixture::lexical(&tree());
    let service = fixture.service();
    let corpora = service.snapshot().corpora();
    for question in
        ["which runbooks mention widget-ctl", "which runbooks mention certificate authorities"]
    {
        for cited in service.ask(&request(question)).unwrap().citations {
            citation::check(&corpora[0], &cited).unwrap();
            let source = std::fs::read_to_string(fixture.source().join(&cited.path)).unwrap();
            let lines: Vec<&str> = source.lines().collect();
            let at = lines[cited.lines[0] as usize - 1..cited.lines[1] as usize].join("\n");
            assert!(at.contains(&cited.quote), "{}: {} in {at}", cited.path, cited.quote);
            let quote = cited.quote.to_lowercase();
            assert!(
                quote.contains("widget-ctl") || quote.contains("certificate\nauthority"),
                "{quote}"
            );
        }
    }
}

#[test]
fn a_heading_without_text_is_cited_as_itself() {
    let tree = "//- a.md\n# Frobnicator\n\n## Meaning\n\nIt is worn.\n\n## The frobulator\n\n## Steps\n\nTurn it.\n";
    let fixture = Fixture::lexical(tree);
    let service = fixture.service();
    for (word, heading_path, lines) in [
        ("frobnicator", vec!["Frobnicator"], [1, 1]),
        ("frobulator", vec!["Frobnicator", "The frobulator"], [7, 7]),
        ("worn", vec!["Frobnicator", "Meaning"], [5, 5]),
    ] {
        let reply = service.ask(&request(&format!("how many runbooks mention {word}?"))).unwrap();
        let cited = &reply.citations[0];
        assert_eq!(
            (&cited.heading_path, cited.lines),
            (&heading_path.iter().map(|h| (*h).to_owned()).collect(), lines),
            "{word}"
        );
        assert_eq!(cited.heading_path.last(), Some(&cited.heading));
    }
}

#[test]
fn what_no_document_holds_is_refused_with_what_was_scanned() {
    let fixture = Fixture::lexical(&tree());
    let service = fixture.service();
    for (question, named) in [
        ("how many runbooks mention velero", "\"velero\""),
        ("is there a runbook for velero backups", "\"velero\""),
        ("do we have anything on our_gadget", "\"our_gadget\""),
        ("which pages mention widget", "none"),
    ] {
        let reply = service.ask(&request(question)).unwrap();
        if question.ends_with("mention widget") {
            assert!(
                reply.answer.starts_with("20 documents"),
                "whole at the dash, as grep -w: {}",
                reply.answer
            );
            continue;
        }
        let refusal = reply.refusal.unwrap();
        assert_eq!(refusal.reason, RefusalReason::NoEvidence, "{question}");
        assert!(refusal.message.contains("all 60 documents were scanned"), "{}", refusal.message);
        assert!(refusal.message.contains(named), "{question}: {}", refusal.message);
        assert_eq!(reply.route, ["request_gate", "scan"]);
        assert!(reply.citations.is_empty() && !reply.provenance.degraded);
    }
}

#[test]
fn a_scope_holds_before_anything_is_counted() {
    let fixture = Fixture::lexical(&tree());
    let service = fixture.service();
    let scoped = |scope: &str, question: &str| {
        service.ask(&Request { scope: Some(scope.into()), ..request(question) }).unwrap()
    };
    let reply = scoped("db", "how many runbooks mention certificates");
    assert!(reply.answer.starts_with("2 documents in `db` mention"), "{}", reply.answer);
    assert!(reply.citations.iter().all(|c| c.path.starts_with("db/")));
    let reply = scoped("net", "which runbooks mention widget-ctl");
    assert!(reply.refusal.unwrap().message.contains("all 20 documents were scanned in `net`"));
}

#[test]
fn a_page_of_that_name_is_a_yes_and_the_rest_is_for_retrieval() {
    let tree = "//- pg.md\n# Postgres\n\n## Failing over to the standby\n\nPromote it.\n//- redis.md\n# Redis\n\n## Flush\n\nThe standby of postgres is not redis; over and out, failing that.\n";
    let fixture = Fixture::lexical(tree);
    let reply = fixture.ask("do we have a runbook for failing over postgres?");
    assert!(
        reply.answer.starts_with("Yes, 1 document has \"failing over postgres\""),
        "{}",
        reply.answer
    );
    assert_eq!(reply.citations.len(), 1);
    assert_eq!(
        (reply.citations[0].path.as_str(), reply.citations[0].heading.as_str()),
        ("pg.md", "Failing over to the standby")
    );
    let reply = fixture.ask("is there a runbook for redis standby flushes");
    assert!(
        reply.route.starts_with(&["request_gate".into(), "scan".into(), "lexical".into()]),
        "{:?}",
        reply.route
    );
    let reply = fixture.ask("how do I fail over postgres");
    assert!(!reply.route.contains(&"scan".to_owned()));
    let reply = fixture.ask("do we have a runbook for standby");
    assert!(reply.answer.starts_with("Yes, 1 document has \"standby\""), "{}", reply.answer);
    let reply = fixture.ask("is there a runbook for promote");
    assert!(
        reply.answer.starts_with(
            "No document has \"promote\" in its title or headings, but 1 document mentions"
        ),
        "{}",
        reply.answer
    );
}

#[test]
fn several_repositories_are_one_list() {
    let one = Fixture::lexical("//- a.md\n# A\n\nThe quux is here.\n//- b.md\n# B\n\nNothing.\n");
    let two = Fixture::lexical("//- a.md\n# A\n\nAnother quux.\n");
    let other = two.dir.path().join("data2");
    ingest(&two.source().display().to_string(), &other, Some("none"));
    let service = Service::new(Options {
        repos: vec![
            Repo { name: "ops".into(), data: one.data() },
            Repo { name: "web".into(), data: other },
        ],
        policy: Policy::default(),
        embedder: Some("none".into()),
        places: Places::from_env(None, None),
    });
    service.open().unwrap();
    let reply = service.ask(&request("which runbooks mention quux")).unwrap();
    assert_eq!(listed(&reply), ["ops: a.md", "web: a.md"]);
    assert!(reply.answer.contains("All 3 documents were scanned"));
    let repos: Vec<_> = reply.citations.iter().filter_map(|c| c.repo.clone()).collect();
    assert_eq!(repos, ["ops", "web"]);
    let reply = service
        .ask(&Request { scope: Some("repo:web".into()), ..request("which runbooks mention quux") })
        .unwrap();
    assert_eq!(reply.citations.len(), 1);
}

#[test]
fn an_unreadable_document_ends_in_no_claim() {
    let fixture = Fixture::lexical(&tree());
    let service = fixture.service();
    let dir = service.snapshot().corpora()[0].generation.dir.clone();
    std::fs::remove_file(dir.join("docs/db/page-00.md")).unwrap();
    let refusal =
        service.ask(&request("how many runbooks mention widget-ctl")).unwrap().refusal.unwrap();
    assert_eq!(refusal.reason, RefusalReason::Degraded);
    assert!(refusal.message.contains("could be read"), "{}", refusal.message);
}

#[test]
fn a_request_is_refused_before_anything_is_scanned() {
    let fixture = Fixture::lexical(&tree());
    let reply = fixture.ask("list all customers with their emails please");
    assert_eq!(reply.refusal.unwrap().reason, RefusalReason::Customer);
    assert!(!reply.route.contains(&"scan".to_owned()));
}
