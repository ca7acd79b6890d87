//! One question of each class of the sample suite through the agent: which way it goes, and that what
//! leaves is cited.

use crate::llm_endpoint::{Endpoint, Say, shown};
use crate::support::{Fixture, ingest, request};
use runbook_query::citation;
use runbook_query::llm::note::Outcome;
use runbook_query::llm::settings::Mode;
use runbook_query::service::Request;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// Classes whose questions the model sees, and those that are counted, listed or refused without it.
const OPEN: [&str; 5] = ["how_to", "how_to_twin", "exact_identifier", "disambiguation", "scope"];
const CLOSED: [&str; 5] = ["aggregation", "negative_existence", "secret", "action", "customer"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// What a capable agent would do with a case: look for a word, read the page, quote the line.
struct Plan {
    question: String,
    scope: Option<String>,
    word: String,
    path: String,
    heading: String,
    answer: String,
}

fn plan(case: &Value) -> Option<Plan> {
    let gold = case["gold"].get(0)?;
    let word = case["must_contain"].get(0)?.as_str()?.to_owned();
    let (path, heading) = (gold["path"].as_str()?.to_owned(), gold["heading"].as_str()?.to_owned());
    let text = std::fs::read_to_string(root().join("runbooks-sample").join(&path)).ok()?;
    let mut inside = false;
    let line = text.lines().find(|line| {
        if line.starts_with('#') {
            inside = line.trim_start_matches('#').trim() == heading;
        }
        inside && !line.starts_with('#') && line.contains(&word)
    })?;
    let line = line.trim().trim_start_matches(['-', '*', ' ']).to_owned();
    // A table row or a long line is no sentence.
    if line.contains('|') || line.len() > 160 || line.starts_with("```") {
        return None;
    }
    let question = case["question"].as_str()?.to_owned();
    let scope = case["scope"].as_str().map(str::to_owned);
    Some(Plan {
        question,
        scope,
        word,
        path,
        answer: format!("{heading}:\n\n    {line}\n"),
        heading,
    })
}

fn cases(class: &str) -> Vec<Value> {
    let text = std::fs::read_to_string(root().join("evals/cases/sample.jsonl")).unwrap();
    let rows = text.lines().map(|l| serde_json::from_str::<Value>(l).unwrap());
    rows.filter(|c| c["class"] == class && c["follow_up_to"].is_null()).collect()
}

#[test]
fn ten_classes_take_their_way() {
    let fixture = Fixture { dir: tempfile::tempdir().unwrap(), embedder: Some("none".into()) };
    ingest(&root().join("runbooks-sample").display().to_string(), &fixture.data(), Some("none"));
    let mut phrased = 0;
    for class in OPEN {
        let plans: Vec<Plan> = cases(class).iter().filter_map(plan).collect();
        assert!(!plans.is_empty(), "{class}");
        for plan in plans.into_iter().take(3) {
            let at = format!("{class}: {}", plan.question);
            let (word, path, heading) =
                (plan.word.clone(), plan.path.clone(), plan.heading.clone());
            let answer = plan.answer.clone();
            let endpoint = Endpoint::start(move |_, n| match n {
                0 => Say::tool("grep", &escaped(&word)),
                1 => Say::tool("read", &path),
                _ => Say::done(&answer, &[(&path, &heading)]),
            });
            let service = endpoint.service(&fixture, Mode::Agent);
            let asked = Request { scope: plan.scope, explain: true, ..request(&plan.question) };
            let reply = service.ask(&asked).unwrap();
            let corpora = service.snapshot().corpora();
            citation::check_answer(&reply.answer, &reply.citations, |_| Some(&*corpora[0]))
                .unwrap_or_else(|e| panic!("{at}: {e}"));
            // A lone identifier and a page's name are found in the files, without a model.
            let Some(note) = &reply.llm else {
                assert!(reply.route.contains(&"files".to_owned()), "{at}: {:?}", reply.route);
                continue;
            };
            let steps = reply.explain.as_ref().unwrap()["llm"]["steps"].as_array().unwrap();
            let tools: Vec<&str> = steps.iter().map(|s| s["tool"].as_str().unwrap()).collect();
            assert_eq!(tools[..2], ["grep", "read"], "{at}");
            assert!(shown(&endpoint.seen()[1]).contains(&plan.word), "{at}: grep shows the line");
            if note.outcome == Outcome::Phrased {
                phrased += 1;
                assert!(reply.citations.iter().any(|c| c.path == plan.path), "{at}");
                assert!(reply.answer.contains(&plan.word), "{at}");
            }
        }
    }
    assert!(phrased >= 8, "{phrased} of 15 are phrased");
    let endpoint = Endpoint::always(Say::done("nothing", &[]));
    let service = endpoint.service(&fixture, Mode::Agent);
    for class in CLOSED {
        let question = cases(class)[0]["question"].as_str().unwrap().to_owned();
        let reply = service.ask(&request(&question)).unwrap();
        assert!(reply.llm.is_none(), "{class}: {question}: {:?}", reply.route);
    }
    assert!(endpoint.seen().is_empty());
}

fn escaped(word: &str) -> String {
    let special = |c: char| "\\.+*?()|[]{}^$".contains(c);
    word.chars().flat_map(|c| special(c).then_some('\\').into_iter().chain([c])).collect()
}
