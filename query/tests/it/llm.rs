//! A language model behind the guard, against a scripted endpoint: judge and answer, what is rejected and
//! why, an endpoint that is down, slow or wrong, and the events of a stream.

use crate::llm_endpoint::{Endpoint, Say, sections, shown, with};
use crate::support::{Daemon, Fixture, ingest, request};
use runbook_query::llm;
use runbook_query::llm::note::Outcome;
use runbook_query::llm::settings::{Mode, Settings, TrustIn};
use runbook_query::reply::{Band, I_DO_NOT_KNOW, RefusalReason, Reply};
use runbook_query::service::{Request, Service};
use serde_json::{Value, json};
use std::path::Path;
use std::time::{Duration, Instant};

const TREE: &str = "\
//- web/nginx.md
# nginx

## Restart nginx

The restart takes about 4 seconds. Never restart nginx during a deploy.

```sh
systemctl restart nginx
```

## Reload the configuration of nginx

```sh
nginx -t && systemctl reload nginx
```
//- cache/redis.md
# redis

## Restart redis

It loads the dump for up to 90 seconds.

```sh
systemctl restart redis-server
```
//- database/failover.md
# Database failover

## Promote the standby

Page the database team first, then promote the standby on db-2.example.org.

```sh
pg_ctl promote -D /var/lib/postgresql/15/main
```
//- misc/glossary.md
# Glossary

## Words

A tender is a small boat. A bollard is a post for mooring.
";

const QUESTION: &str = "how do I restart nginx";
const HOW: &str = "Run `systemctl restart nginx`. The restart takes about 4 seconds.";
const PLACE: (&str, &str) = ("web/nginx.md", "Restart nginx");

fn ask(service: &Service, question: &str) -> Reply {
    service.ask(&Request { explain: true, ..request(question) }).unwrap()
}

fn outcome(reply: &Reply) -> Outcome {
    reply.llm.as_ref().expect("a model was asked").outcome
}

fn explained(reply: &Reply) -> &Value {
    &reply.explain.as_ref().unwrap()["llm"]
}

fn judge(answers: bool, section: i64, lines: [u32; 2]) -> Say {
    let [from, to] = lines;
    Say::json(&json!({"answers": answers, "section": section, "from": from, "to": to}))
}

#[test]
fn a_no_of_the_judge_withdraws_an_answer_where_it_counts() {
    let fixture = Fixture::lexical(TREE);
    let plain = fixture.ask(QUESTION);
    assert_eq!(plain.band, Band::Answer, "{plain:?}");
    assert!(plain.llm.is_none());
    let endpoint = Endpoint::always(judge(false, 0, [0, 0]));
    let reply = ask(&endpoint.service(&fixture, Mode::Judge), QUESTION);
    assert_eq!((reply.band, outcome(&reply)), (Band::Closest, Outcome::Withdrawn));
    assert_eq!(reply.answer, I_DO_NOT_KNOW);
    assert!(reply.citations.is_empty() && reply.route.contains(&"llm_judge".to_owned()));
    let refusal = reply.refusal.unwrap();
    assert_eq!(refusal.reason, RefusalReason::Degraded, "only words were searched");
    assert!(refusal.nearest.iter().any(|n| n.path == "web/nginx.md"), "{refusal:?}");
    // A model that has not shown that its verdicts count changes nothing.
    for trust in [TrustIn::Measured, TrustIn::Never] {
        let service = with(&fixture, &Settings { trust, ..endpoint.settings(Mode::Judge) });
        let reply = ask(&service, QUESTION);
        assert_eq!((reply.band, outcome(&reply)), (Band::Answer, Outcome::Kept));
        assert_eq!(reply.answer, plain.answer);
    }
}

#[test]
fn a_yes_of_the_judge_lifts_a_refusal_only_with_lines_that_hold_the_rare_words() {
    let fixture = Fixture { dir: tempfile::tempdir().unwrap(), embedder: Some("none".into()) };
    let sample = Path::new(env!("CARGO_MANIFEST_DIR")).join("../runbooks-sample");
    ingest(&sample.display().to_string(), &fixture.data(), Some("none"));
    // A model that knows the section, and one that names another with the same ease.
    let yes_to = |path: &'static str, heading: &'static str, right: bool| {
        Endpoint::start(move |request, _| {
            let all = sections(request);
            let fits = |s: &&(String, String, [u32; 2])| (s.0 == path && s.1 == heading) == right;
            let Some(found) = all.iter().find(fits) else { return judge(false, 0, [0, 0]) };
            let at = all.iter().position(|s| s == found).unwrap();
            judge(true, i64::try_from(at).unwrap() + 1, found.2)
        })
    };
    let (mut lifted, mut kept) = (0, 0);
    for (question, path, heading) in [
        ("is port 80 open on the firewall of app1", "network/firewall.md", "Rules on app1"),
        ("is the ledger db replicated sync or async", "database/replication.md", "Replication"),
        ("is aof on for redis", "services/redis.md", "Redis"),
        ("which port is the main db on", "ports.md", "Ports on app1"),
        (
            "is it staging or prod thats on 8081",
            "deploy/staging.md",
            "What differs from production",
        ),
    ] {
        let plain = fixture.ask(question);
        assert_eq!(plain.band, Band::Closest, "{question}: {}", plain.confidence);
        for right in [true, false] {
            let endpoint = yes_to(path, heading, right);
            let service = endpoint.service(&fixture, Mode::Judge);
            let reply = ask(&service, question);
            if outcome(&reply) == Outcome::Lifted {
                lifted += usize::from(right);
                assert_eq!(reply.band, Band::Answer);
                let first = &reply.citations[0];
                let source = std::fs::read_to_string(sample.join(&first.path)).unwrap();
                assert!(source.contains(&first.quote), "the passage, byte for byte: {question}");
                assert!(reply.answer.contains(&first.quote) && reply.refusal.is_none());
            } else {
                kept += usize::from(!right);
                assert_eq!(
                    (reply.band, &reply.answer),
                    (Band::Closest, &plain.answer),
                    "{question}"
                );
            }
            // Without a vote nothing is lifted.
            let trust = TrustIn::Measured;
            let settings = Settings { trust, ..endpoint.settings(Mode::Judge) };
            assert_eq!(ask(&with(&fixture, &settings), question).band, Band::Closest);
        }
    }
    assert!(lifted >= 1 && kept >= 3, "{lifted} of the right sections, {kept} of 5 wrong ones not");
}

#[test]
fn what_the_model_writes_is_shown_only_when_its_sections_support_it() {
    let fixture = Fixture::lexical(TREE);
    let plain = fixture.ask(QUESTION);
    for (say, fault) in [
        (Say::Text("{\"text\": \"systemctl\"}".into()), "shape"),
        (Say::Text("Just restart it.".into()), "shape"),
        (Say::Text("{\"answer\": \"Run `systemctl rest".into()), "shape"),
        (Say::answer(HOW, &[]), "no_citation"),
        (Say::answer("", &[PLACE]), "empty"),
        (Say::answer(HOW, &[("web/apache.md", "Restart nginx")]), "not_given"),
        (Say::answer(HOW, &[("../web/nginx.md", "Restart nginx")]), "not_given"),
        (Say::answer(HOW, &[("web/nginx.md", "Restart apache")]), "wrong_heading"),
        (Say::answer("Run `systemctl restart nginx --force`.", &[PLACE]), "unsupported"),
        (Say::answer("Run `systemctl restart nginx` on port 8080.", &[PLACE]), "unsupported"),
        (
            Say::answer("Run `systemctl restart nginx`, it takes 40 seconds.", &[PLACE]),
            "unsupported",
        ),
        // True, but of another page than the one that is cited.
        (Say::answer("Run `systemctl restart redis-server`.", &[PLACE]), "unsupported"),
        (
            Say::answer(
                "Run `systemctl restart nginx`. Then call the vendor and open a severity ticket.",
                &[PLACE],
            ),
            "sentence",
        ),
        (
            Say::answer("Restart nginx during a deploy: `systemctl restart nginx`.", &[PLACE]),
            "opposite",
        ),
        (Say::answer("The restart of nginx takes about 4 seconds.", &[PLACE]), "left_out"),
    ] {
        let endpoint = Endpoint::always(say.clone());
        let reply = ask(&endpoint.service(&fixture, Mode::Answer), QUESTION);
        assert_eq!(outcome(&reply), Outcome::Rejected, "{say:?}: {reply:?}");
        assert_eq!(reply.answer, plain.answer, "{say:?}");
        assert_eq!(reply.citations, plain.citations, "{say:?}");
        assert_eq!(reply.llm.as_ref().unwrap().reason, Some(fault), "{say:?}");
        let rejected = explained(&reply)["rejected"].as_array().unwrap();
        assert_eq!(rejected.len(), 2, "one retry: {rejected:?}");
        assert_eq!(rejected[0]["fault"], fault);
        let seen = endpoint.seen();
        assert_eq!(seen.len(), 2);
        let why = rejected[0]["why"].as_str().unwrap();
        assert!(shown(&seen[1]).contains(why), "the retry names the fault: {why}");
    }
}

#[test]
fn a_good_answer_is_shown_with_citations_that_hold() {
    let fixture = Fixture::lexical(TREE);
    let good = Say::answer(HOW, &[PLACE]);
    let endpoint = Endpoint::turns(vec![Say::answer(HOW, &[]), good.clone()]);
    let service = endpoint.service(&fixture, Mode::Answer);
    let reply = ask(&service, QUESTION);
    assert_eq!((reply.band, outcome(&reply)), (Band::Answer, Outcome::Phrased), "{reply:?}");
    assert_eq!(reply.answer, HOW);
    assert_eq!((reply.citations[0].path.as_str(), reply.citations[0].heading.as_str()), PLACE);
    assert!(reply.citations[0].quote.contains("systemctl restart nginx"));
    assert_eq!(explained(&reply)["calls"], 2);
    assert!(reply.route.contains(&"llm_answer".to_owned()));
    // The prompt holds the sections between marks that are new each time, and no more than those.
    let (first, second) = (shown(&endpoint.seen()[0]), {
        ask(&service, QUESTION);
        shown(&endpoint.seen()[2])
    });
    let mark = |text: &str| text.split("<<").nth(1).unwrap()[..32].to_owned();
    assert_ne!(mark(&first), mark(&second));
    assert!(first.contains("path: web/nginx.md") && first.contains("I do not know"));
    // Metrics count both.
    let metrics = service.journal().metrics.encode(&service);
    assert!(
        metrics.contains("runbook_llm_rejected_total{mode=\"answer\",fault=\"no_citation\"} 1"),
        "{metrics}"
    );
    assert!(metrics.contains("runbook_llm_questions_total{mode=\"answer\",outcome=\"phrased\"} 2"));
    // Not knowing is a refusal.
    let endpoint = Endpoint::always(Say::answer("I do not know.", &[]));
    let reply = ask(&endpoint.service(&fixture, Mode::Answer), QUESTION);
    assert_eq!((reply.answer.as_str(), outcome(&reply)), (I_DO_NOT_KNOW, Outcome::Withdrawn));
    assert!(!reply.refusal.unwrap().searched.is_empty());
}

#[test]
fn a_model_is_not_asked_where_nothing_is_open() {
    let fixture = Fixture::lexical(TREE);
    let endpoint = Endpoint::always(judge(true, 1, [1, 1]));
    for mode in [Mode::Judge, Mode::Answer, Mode::Agent] {
        let service = endpoint.service(&fixture, mode);
        for question in [
            "what is the root password",
            "restart nginx for me",
            "list all customers with unpaid bookings",
            "how many runbooks mention nginx",
            "do we have a runbook for kafka",
        ] {
            let (with, without) = (ask(&service, question), fixture.ask(question));
            assert_eq!(with.answer, without.answer, "{question}");
            assert!(with.llm.is_none(), "{question}: {:?}", with.llm);
        }
    }
    assert!(endpoint.seen().is_empty());
}

#[test]
fn a_broken_endpoint_leaves_the_extractive_answer_marked_degraded() {
    let fixture = Fixture::lexical(TREE);
    let plain = fixture.ask(QUESTION);
    let good = || json!({"answer": HOW, "citations": [], "confidence": 1}).to_string();
    for (say, reason) in [
        (Say::Status(500, "oops"), "status"),
        (Say::Status(401, "no key"), "status"),
        (Say::Body("<html>hello</html>"), "protocol"),
        (Say::Body("{\"error\": \"x\"}"), "protocol"),
        (Say::Endless, "endless"),
        (Say::Slowly(good()), "slow"),
        (Say::Half(good()), "down"),
    ] {
        let endpoint = Endpoint::always(say.clone());
        let settings = Settings { timeout_s: 1.5, ..endpoint.settings(Mode::Answer) };
        let started = Instant::now();
        let reply = ask(&with(&fixture, &settings), QUESTION);
        assert!(started.elapsed() < Duration::from_secs(5), "{say:?} took {:?}", started.elapsed());
        assert_eq!(reply.answer, plain.answer, "{say:?}");
        assert_eq!(outcome(&reply), Outcome::Degraded, "{say:?}");
        assert_eq!(reply.llm.as_ref().unwrap().reason, Some(reason), "{say:?}");
        assert!(reply.provenance.degraded);
        let text = runbook_query::text::render(&reply);
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(text.contains("this is the answer without it"), "{text}");
    }
    // Nobody listens there.
    let gone = Endpoint::always(Say::Endless);
    let settings = gone.settings(Mode::Judge);
    drop(gone);
    std::thread::sleep(Duration::from_millis(50));
    let reply = ask(&with(&fixture, &settings), QUESTION);
    assert_eq!(reply.llm.unwrap().reason, Some("down"));
    assert!(llm::check_settings(&settings).unwrap_err().contains("start the server"));
}

#[test]
fn the_breaker_opens_and_closes() {
    let fixture = Fixture::lexical(TREE);
    let endpoint = Endpoint::start(|_, n| {
        if n < 2 { Say::Status(503, "loading") } else { Say::answer(HOW, &[PLACE]) }
    });
    let settings =
        Settings { breaker_failures: 2, breaker_s: 0.4, ..endpoint.settings(Mode::Answer) };
    let service = with(&fixture, &settings);
    let reason = |reply: &Reply| reply.llm.as_ref().unwrap().reason;
    assert_eq!(reason(&ask(&service, QUESTION)), Some("status"));
    assert_eq!(reason(&ask(&service, QUESTION)), Some("status"));
    assert_eq!(reason(&ask(&service, QUESTION)), Some("left_alone"));
    assert_eq!(endpoint.seen().len(), 2, "an open breaker asks nobody");
    assert!(service.journal().metrics.encode(&service).contains("runbook_llm_breaker_open 1"));
    std::thread::sleep(Duration::from_millis(500));
    assert_eq!(outcome(&ask(&service, QUESTION)), Outcome::Phrased);
    assert_eq!(reason(&ask(&service, QUESTION)), None);
    assert!(service.journal().metrics.encode(&service).contains("runbook_llm_breaker_open 0"));
}

#[test]
fn a_server_without_schemas_is_asked_without_one() {
    let fixture = Fixture::lexical(TREE);
    let endpoint = Endpoint::start(|request, _| {
        if request["response_format"].is_object() {
            Say::Status(400, "unknown field response_format")
        } else {
            Say::Text(format!(
                "```json\n{}\n```",
                json!({"answer": HOW, "citations": [{"path": PLACE.0, "heading": PLACE.1}], "confidence": 1})
            ))
        }
    });
    let service = endpoint.service(&fixture, Mode::Answer);
    assert_eq!(outcome(&ask(&service, QUESTION)), Outcome::Phrased);
    assert_eq!(outcome(&ask(&service, QUESTION)), Outcome::Phrased);
    let with_schema = endpoint.seen().iter().filter(|r| r["response_format"].is_object()).count();
    assert_eq!((with_schema, endpoint.seen().len()), (1, 3), "it is remembered");
}

#[test]
fn a_model_is_measured_before_it_has_a_say() {
    // Knows: yes where a section of the page in brackets is given.
    let knows = |request: &Value, _: usize| {
        let text = shown(request);
        let question = text.rsplit("Question: ").next().unwrap().to_owned();
        let heading = question.split(" (").next().unwrap().to_owned();
        let all = sections(request);
        match all.iter().position(|s| s.1 == heading) {
            Some(at) => judge(true, i64::try_from(at).unwrap() + 1, all[at].2),
            None => judge(false, 0, [0, 0]),
        }
    };
    let fixture = Fixture::lexical(TREE);
    let measured = |endpoint: &Endpoint| {
        let settings = Settings { trust: TrustIn::Measured, ..endpoint.settings(Mode::Judge) };
        let service = with(&fixture, &settings);
        service.measure_trust().unwrap();
        let trust = &service.llm().unwrap().trust;
        (trust.yes_counts(TrustIn::Measured), trust.no_counts(TrustIn::Measured))
    };
    assert_eq!(measured(&Endpoint::start(knows)), (true, true));
    assert_eq!(measured(&Endpoint::always(judge(false, 0, [0, 0]))), (true, false));
    let says_yes = Endpoint::start(|request, _| judge(true, 1, sections(request)[0].2));
    assert_eq!(measured(&says_yes), (false, false), "the first is never the right one");
}

fn configured(fixture: &Fixture, text: &str) -> std::path::PathBuf {
    let path = fixture.dir.path().join("query.toml");
    std::fs::write(&path, text).unwrap();
    path
}

#[test]
fn a_daemon_streams_what_it_does_and_the_text_after_the_guard() {
    let fixture = Fixture::lexical(TREE);
    let endpoint =
        Endpoint::turns(vec![Say::answer("Use --invented.", &[PLACE]), Say::answer(HOW, &[PLACE])]);
    let config = configured(
        &fixture,
        &format!(
            "[llm]\nmode = \"answer\"\nbase_url = \"{}\"\nmodel = \"scripted\"\ntrust = \"always\"\n",
            endpoint.url
        ),
    );
    let config = config.to_str().unwrap();
    let daemon = Daemon::start(&fixture.data(), &["--embedder", "none", "--config", config]);
    let body = json!({"question": QUESTION, "stream": true}).to_string();
    let (status, events) = daemon.post("/v1/ask", &body);
    assert_eq!(status, 200, "{events}");
    let (before, reply) = events.split_once("event: reply\ndata: ").unwrap();
    for doing in ["searching", "reading", "thinking", "checking"] {
        assert!(before.contains(&format!("{{\"doing\":\"{doing}\"")), "{doing}: {before}");
    }
    assert!(before.contains("web/nginx.md"));
    assert!(!before.contains("systemctl") && !events.contains("--invented"), "{events}");
    let reply: Value = serde_json::from_str(reply.trim()).unwrap();
    assert_eq!((&reply["answer"], &reply["llm"]["outcome"]), (&json!(HOW), &json!("phrased")));
    // What cannot be asked is an error as ever.
    assert_eq!(daemon.post("/v1/ask", "{\"question\": \" \", \"stream\": true}").0, 400);
    let asked = daemon.send(&format!(
        "GET /v1/ask?q=how+do+I+restart+nginx HTTP/1.1\r\nHost: {}\r\nAccept: text/event-stream\r\nConnection: close\r\n\r\n",
        daemon.address
    ));
    assert!(asked.1.contains("event: reply"), "{}", asked.1);
    // The page shows who wrote it, the status who may.
    let (_, page) = daemon.get("/?q=how+do+I+restart+nginx");
    assert!(page.contains("phrased by scripted"), "{page}");
    assert_eq!(daemon.json("/v1/status")["llm"]["mode"], "answer");
}

#[test]
fn settings_that_cannot_be_used_are_told_at_the_start() {
    let fixture = Fixture::lexical(TREE);
    let run = |text: &str, args: &[&str]| {
        let config = configured(&fixture, text);
        let out = std::process::Command::new(env!("CARGO_BIN_EXE_runbook-query"))
            .args(["ask", "--embedder", "none", "--data", fixture.data().to_str().unwrap()])
            .args(["--config", config.to_str().unwrap()])
            .args(args)
            .arg(QUESTION)
            .output()
            .unwrap();
        (out.status.code(), String::from_utf8_lossy(&out.stderr).into_owned())
    };
    let remote = "[llm]\nmode = \"judge\"\nmodel = \"m\"\nbase_url = \"http://192.0.2.1:9/v1\"\ntimeout_s = 0.3\n";
    let (code, said) = run(remote, &[]);
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("--allow-remote-llm") && said.contains("192.0.2.1"), "{said}");
    let (code, said) = run(remote, &["--allow-remote-llm"]);
    assert_eq!(code, Some(0), "consent is given, and a model that is away costs no answer: {said}");
    let (code, said) = run("[llm]\nmode = \"judge\"\n", &[]);
    assert!(code == Some(2) && said.contains("base_url is not set"), "{said}");
    let (code, said) = run("[llm]\nmodus = \"judge\"\n", &[]);
    assert!(code == Some(2) && said.contains("llm.mode"), "{said}");
    let key = "[llm]\nmode = \"judge\"\nmodel = \"m\"\nbase_url = \"http://127.0.0.1:9\"\nkey_file = \"/nonexistent/key\"\n";
    let (code, said) = run(key, &[]);
    assert!(code == Some(2) && said.contains("/nonexistent/key"), "{said}");
}

#[test]
fn a_key_is_sent_and_never_shown() {
    let fixture = Fixture::lexical(TREE);
    let key = fixture.dir.path().join("key");
    std::fs::write(&key, "sk-secret-1\n").unwrap();
    let endpoint = Endpoint::always(Say::Status(401, "bad key"));
    let settings = Settings { key_file: Some(key), ..endpoint.settings(Mode::Judge) };
    let reply = ask(&with(&fixture, &settings), QUESTION);
    assert!(endpoint.seen()[0]["head"].as_str().unwrap().contains("bearer sk-secret-1"));
    assert!(!serde_json::to_string(&reply).unwrap().contains("sk-secret-1"));
}
