//! The agent: its tools, its budgets, what it may cite, and what it remembers.

use crate::llm_endpoint::{Endpoint, Say, shown, with};
use crate::support::{Fixture, request};
use runbook_query::llm::note::Outcome;
use runbook_query::llm::settings::{Mode, Settings};
use runbook_query::reply::{Band, Reply};
use runbook_query::service::{Request, Service};
use serde_json::Value;

const TREE: &str = "\
//- web/nginx.md
# nginx

## Restart nginx

The restart takes about 4 seconds.

```sh
systemctl restart nginx
```
//- cache/redis.md
# redis

## Restart redis

It loads the dump for up to 90 seconds; the harbourmaster is told before.

```sh
systemctl restart redis-server
```
//- misc/people.md
# People

## Roles

The harbourmaster answers for the quay.
";

const QUESTION: &str = "how do I restart redis";
const HOW: &str = "Run `systemctl restart redis-server`. It loads the dump for up to 90 seconds.";
const PLACE: (&str, &str) = ("/runbooks/cache/redis.md", "Restart redis");

fn ask(service: &Service, session: Option<&str>, question: &str) -> Reply {
    let session = session.map(str::to_owned);
    service.ask(&Request { session, explain: true, ..request(question) }).unwrap()
}

fn steps(reply: &Reply) -> Vec<(String, String)> {
    let steps = reply.explain.as_ref().unwrap()["llm"]["steps"].as_array().unwrap().clone();
    let word = |v: &Value| v.as_str().unwrap().to_owned();
    steps.iter().map(|s| (word(&s["tool"]), word(&s["outcome"]))).collect()
}

fn names(reply: &Reply) -> Vec<String> {
    steps(reply).into_iter().map(|(tool, outcome)| format!("{tool} {outcome}")).collect()
}

#[test]
fn files_come_first_and_what_was_read_is_cited() {
    let fixture = Fixture::lexical(TREE);
    let endpoint = Endpoint::turns(vec![
        Say::tool("search", QUESTION),
        Say::tool("grep", "redis"),
        Say::tool("search", QUESTION),
        Say::done(HOW, &[PLACE]),
        Say::tool("read", "cache/redis.md"),
        Say::done(HOW, &[PLACE]),
    ]);
    let service = endpoint.service(&fixture, Mode::Agent);
    let reply = ask(&service, Some("person"), QUESTION);
    assert_eq!(
        names(&reply),
        ["search steered", "grep ok", "search ok", "answer nothing_read", "read ok", "answer ok"]
    );
    let note = reply.llm.as_ref().unwrap();
    assert_eq!((note.outcome, reply.answer.as_str()), (Outcome::Phrased, HOW));
    assert_eq!(reply.citations[0].path, "cache/redis.md");
    assert!(reply.citations[0].quote.contains("redis-server"));
    // What the agent has read, the person's session may cite.
    let cited = service.cite("person", "Run `systemctl restart redis-server`.", None).unwrap().0;
    assert!(cited.unsupported.is_empty() && !cited.citations.is_empty());
    let first = shown(&endpoint.seen()[0]);
    assert!(first.contains("Directories:") && first.contains("I do not know"), "{first}");
}

#[test]
fn nothing_is_cited_that_was_not_touched_and_nothing_is_written() {
    let fixture = Fixture::lexical(TREE);
    let endpoint = Endpoint::turns(vec![
        Say::tool("exec", "systemctl restart redis-server"),
        Say::tool("shell", "echo x > /artifacts/x; echo y > /runbooks/y; cat /etc/passwd"),
        Say::tool("read", "web/nginx.md:1-3"),
        Say::done(HOW, &[PLACE]),
        Say::done(HOW, &[("web/nginx.md", "Restart nginx")]),
    ]);
    let service = endpoint.service(&fixture, Mode::Agent);
    let plain = fixture.ask(QUESTION);
    let reply = ask(&service, None, QUESTION);
    assert_eq!(reply.llm.as_ref().unwrap().outcome, Outcome::Rejected);
    assert_eq!((&reply.answer, &reply.citations), (&plain.answer, &plain.citations));
    let names = names(&reply);
    assert_eq!(names[0], "exec no_such_tool");
    assert_eq!(names[3..], ["answer not_given", "answer unsupported"], "{names:?}");
    let view = service.view(Some("other")).unwrap();
    assert!(view.stat("/artifacts/x").is_err() && view.stat("/runbooks/y").is_err());
    assert!(!shown(&endpoint.seen()[2]).contains("root:x:0"));
}

#[test]
fn budgets_end_the_loop() {
    let fixture = Fixture::lexical(TREE);
    let plain = fixture.ask(QUESTION);
    let endpoint = Endpoint::always(Say::tool("grep", "restart"));
    let of = |settings: Settings| {
        let before = endpoint.seen().len();
        let reply = ask(&with(&fixture, &settings), None, QUESTION);
        assert_eq!(reply.answer, plain.answer);
        let note = reply.llm.as_ref().unwrap();
        assert_eq!((note.outcome, note.reason), (Outcome::Rejected, Some("budget")));
        endpoint.seen().len() - before
    };
    assert_eq!(of(Settings { agent_calls: 3, ..endpoint.settings(Mode::Agent) }), 3);
    // The endpoint counts 100 tokens a call.
    assert_eq!(
        of(Settings { agent_tokens: 1000, agent_calls: 50, ..endpoint.settings(Mode::Agent) }),
        10
    );
}

#[test]
fn long_results_are_cut_and_point_to_the_rest() {
    let page: String = (0..4000).map(|n| format!("line {n} of the long log\n\n")).collect();
    let fixture = Fixture::lexical(&format!("{TREE}//- long.md\n# Long\n\n## Log\n\n{page}"));
    let endpoint =
        Endpoint::turns(vec![Say::tool("shell", "cat long.md"), Say::done("I do not know", &[])]);
    let service = endpoint.service(&fixture, Mode::Agent);
    ask(&service, None, QUESTION);
    let shown = shown(&endpoint.seen()[1]);
    assert!(
        shown.contains("are left out here") && shown.contains("/tmp/overflow"),
        "{}",
        &shown[shown.len() - 900..]
    );
    assert!(shown.len() < 20_000, "{}", shown.len());
}

#[test]
fn each_of_a_list_is_read_again() {
    let fixture = Fixture::lexical(TREE);
    let endpoint = Endpoint::always(Say::done(
        "The restart of redis: the harbourmaster is told before. The harbourmaster answers for the quay.",
        &[("cache/redis.md", "Restart redis"), ("misc/people.md", "Roles")],
    ));
    let service = endpoint.service(&fixture, Mode::Agent);
    let list = ask(&service, Some("s"), "which pages mention harbourmaster");
    assert_eq!(list.band, Band::Answer, "{list:?}");
    assert!(list.llm.is_none() && endpoint.seen().is_empty(), "a count needs no model");
    let reply = ask(&service, Some("s"), "can you explain each?");
    let text = shown(&endpoint.seen()[0]);
    for page in ["loads the dump for up to 90 seconds", "answers for the quay"] {
        assert!(text.contains(page), "{page}: {text}");
    }
    assert!(!text.contains("systemctl restart nginx"), "only the list's pages");
    assert_eq!(names(&reply), ["read ok", "read ok", "answer ok"]);
    assert_eq!((reply.band, reply.llm.unwrap().outcome), (Band::Answer, Outcome::Phrased));
    let paths: Vec<&str> = reply.citations.iter().map(|c| c.path.as_str()).collect();
    assert!(paths.contains(&"cache/redis.md") && paths.contains(&"misc/people.md"), "{paths:?}");
    // Without a session there is no list.
    let before = endpoint.seen().len();
    let alone = ask(&service, None, "can you explain each?");
    assert!(alone.band != Band::Answer, "{alone:?}");
    assert!(!shown(&endpoint.seen()[before]).contains("the quay"));
}
