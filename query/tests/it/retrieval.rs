//! The retrieval cases that comparable tools failed at (shared case ids RT-04 to RT-16) as small corpora.
//! RT-01, RT-02 and RT-08 are in `ask`, RT-13 is in `scan`.

use crate::support::{Fixture, request};
use runbook_query::service::Service;

/// Headings and paths of what is found, best first.
fn found(service: &Service, question: &str) -> Vec<(String, String)> {
    let (results, _) = service.search(&request(question)).unwrap();
    results.into_iter().map(|(c, ..)| (c.heading, c.path)).collect()
}

fn first(service: &Service, question: &str) -> String {
    found(service, question).into_iter().next().map(|f| f.0).unwrap_or_default()
}

/// RT-04, RT-05: numbers and identifiers as wholes and in parts, the whole first.
#[test]
fn identifiers_are_found_as_wholes_and_in_parts() {
    let tree = "\
//- a.md
# Notes

## Proxy

The proxy runs 7.23 and listens on 8080.

## Admin

The admin page listens on 8443, its host is 10.2.0.14.

## Limits

Raise max_connections when the pool is full.

## Pool

The connections of the pool are at their max on Mondays.

## Trust

HTTPSConnection fails when the bundle is old.

## Source

Set spring.datasource.url to the primary.

## Balancer

Edit /etc/haproxy/haproxy.cfg and reload.

## Node

kube-proxy writes the rules.
";
    let fixture = Fixture::hybrid(tree);
    let service = fixture.service();
    for (question, heading) in [
        ("7.23", "Proxy"),
        ("8080", "Proxy"),
        ("8443", "Admin"),
        ("10.2.0.14", "Admin"),
        ("max_connections", "Limits"),
        ("HTTPSConnection", "Trust"),
        ("https connection", "Trust"),
        ("spring.datasource.url", "Source"),
        ("datasource url", "Source"),
        ("/etc/haproxy/haproxy.cfg", "Balancer"),
        ("haproxy.cfg", "Balancer"),
        ("kube-proxy", "Node"),
    ] {
        assert_eq!(first(&service, question), heading, "{question}");
    }
}

/// RT-07: a stop word is dropped on both sides or on none.
#[test]
fn stop_words_do_not_matter() {
    let tree = "//- a.md\n# Work\n\n## Restart of the queue\n\nStop the worker, then start it.\n\n## The colour of the door\n\nGreen.\n";
    let fixture = Fixture::lexical(tree);
    let service = fixture.service();
    for question in ["restart of the queue", "restart queue", "Restart Of The Queue"] {
        assert_eq!(first(&service, question), "Restart of the queue", "{question}");
    }
}

/// RT-10: two sections of one document answer, and both are named.
#[test]
fn two_sections_of_a_document_are_both_named() {
    let tree = "//- a.md\n# Certificates\n\n## Renew the certificate of the mail host\n\nRun certbot renew on the mail host.\n\n## Reload after the certificate of the mail host was renewed\n\nReload postfix so that the mail host shows the new certificate.\n\n## Colours\n\nGreen.\n//- b.md\n# Doors\n\nThey are green.\n";
    let fixture = Fixture::hybrid(tree);
    let named = found(&fixture.service(), "renew the certificate of the mail host");
    let headings: Vec<&str> = named.iter().take(2).map(|f| f.0.as_str()).collect();
    assert!(headings.contains(&"Renew the certificate of the mail host"), "{named:?}");
    assert!(
        headings.contains(&"Reload after the certificate of the mail host was renewed"),
        "{named:?}"
    );
}

/// RT-11: documents that differ in one name: the named one first, both where none is named.
#[test]
fn twins_are_told_apart_by_their_name() {
    let page = |name: &str, host: &str| {
        format!(
            "//- {name}.md\n# Runbook for cluster-{name}\n\n## Fail over\n\nPromote the standby of cluster-{name}, then point the traffic at {host}.\n\n"
        )
    };
    let tree = format!("{}{}", page("eu1", "10.1.0.5"), page("eu2", "10.2.0.5"));
    let fixture = Fixture::hybrid(&tree);
    let service = fixture.service();
    for (question, path) in
        [("failover CLUSTER-EU2", "eu2.md"), ("how do i fail over cluster-eu1", "eu1.md")]
    {
        assert_eq!(found(&service, question)[0].1, path, "{question}");
        let reply = service.ask(&request(question)).unwrap();
        let other = if path == "eu1.md" { "eu2.md" } else { "eu1.md" };
        assert!(reply.citations.iter().all(|c| c.path != other), "{question}");
    }
    let both = found(&service, "fail over");
    let pages: Vec<&str> = both.iter().take(2).map(|f| f.1.as_str()).collect();
    assert!(pages.contains(&"eu1.md") && pages.contains(&"eu2.md"), "{both:?}");
}

/// RT-14: what only points to other pages is not what was asked for.
#[test]
fn a_list_of_links_stands_behind_the_section_itself() {
    let mut tree = String::new();
    for n in 0..8 {
        tree.push_str(&format!(
            "//- page-{n}.md\n# Page {n}\n\n## Table of contents\n\n- [Drain the message queue](queue.md)\n- [Rotate the signing key](key.md)\n\n## Matter {n}\n\nSomething about number {n}.\n\n## Related links\n\n- [Drain the message queue](queue.md)\n\n"
        ));
    }
    tree.push_str("//- queue.md\n# Queue\n\n## Empty it\n\nTo drain the message queue, stop the producers, then wait until the depth is zero.\n");
    let fixture = Fixture::hybrid(&tree);
    assert_eq!(found(&fixture.service(), "drain the message queue")[0].1, "queue.md");
}

/// RT-16: inflected forms are found, and words that only look alike are not.
#[test]
fn inflections_score_and_look_alikes_do_not() {
    let tree = "//- a.md\n# Notes\n\n## Databases\n\nBefore you restart the database, tell the channel.\n\n## University\n\nThe university runs the mirror.\n\n## Sky\n\nThe universe is large.\n";
    let fixture = Fixture::lexical(tree);
    let service = fixture.service();
    assert_eq!(first(&service, "before restarting the databases"), "Databases");
    assert_eq!(first(&service, "universe"), "Sky");
    assert!(found(&service, "universe").iter().all(|f| f.0 != "University"));
}
