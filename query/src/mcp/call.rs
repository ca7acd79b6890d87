//! The tools that answer, search and cite.

use super::args::Args;
use super::files;
use super::result::{done, failed};
use super::tools::Spec;
use crate::evidence::guard::Guarded;
use crate::http::{self, ApiError, App};
use crate::reply::{Citation, Provenance};
use crate::route::{self, Via};
use crate::service::{Request, SearchResult};
use crate::text;
use rmcp::model::CallToolResult;
use serde_json::{Value, json};
use std::fmt::Write;
use std::time::Instant;

/// Runs a tool.
pub(super) async fn run(app: &App, spec: &Spec, args: Args, session: String) -> CallToolResult {
    match spec.name {
        "ask" => ask(app, &args, &session).await,
        "search" => search(app, &args, &session).await,
        "cite" => cite(app, &args, &session).await,
        name => files::run(app, name, args, session).await,
    }
}

fn request(args: &Args, session: &str) -> Request {
    Request {
        question: args.text("question"),
        k: args.count("k"),
        scope: args.some_text("scope"),
        session: Some(session.to_owned()),
        explain: false,
    }
}

fn refused(e: &ApiError, session: &str) -> CallToolResult {
    failed(e.code, &e.message, &e.hint, Some(json!({"session": session})))
}

async fn ask(app: &App, args: &Args, session: &str) -> CallToolResult {
    let (started, request) = (Instant::now(), request(args, session));
    let question = request.question.clone();
    let reply = app.answer(request, |_| {}).await;
    app.note_ask(Via::Mcp, &question, started, &reply);
    match reply {
        Ok(reply) => done(text::render(&reply), serde_json::to_value(&reply).unwrap_or_default()),
        Err(e) => refused(&e, session),
    }
}

async fn search(app: &App, args: &Args, session: &str) -> CallToolResult {
    let (started, request) = (Instant::now(), request(args, session));
    if app.steers(Via::Mcp, session) {
        app.note(Via::Mcp, "search", "steered", started, 0);
        let (note, next) = route::steering_note(&request.question, Via::Mcp, session);
        let text = format!("{note}\nnext: {}", next.join("\nnext: "));
        return done(
            text,
            json!({"steered": true, "note": note, "next": next, "session": session}),
        );
    }
    let question = request.question.clone();
    let found = app.work(move |service| service.search(&request)).await;
    app.note_search(Via::Mcp, &question, started, &found);
    match found {
        Ok((results, provenance)) => found_result(&results, &provenance, session),
        Err(e) => refused(&e, session),
    }
}

fn found_result(
    results: &[SearchResult],
    provenance: &Provenance,
    session: &str,
) -> CallToolResult {
    let mut text = String::new();
    for (n, (citation, ..)) in (1..).zip(results) {
        place(n, citation, &mut text);
        for line in citation.quote.lines().filter(|l| !l.trim().is_empty()).take(3) {
            let _ = writeln!(text, "      {line}");
        }
    }
    if results.is_empty() {
        text.push_str("no section was found\n");
    }
    let value = json!({"results": http::search::results_json(results), "session": session});
    done(text, http::with_provenance(value, provenance))
}

async fn cite(app: &App, args: &Args, session: &str) -> CallToolResult {
    let (started, answer, k) = (Instant::now(), args.text("answer"), args.count("k"));
    let on = session.to_owned();
    let guarded = app.work(move |service| service.cite(&on, &answer, k)).await;
    match guarded {
        Ok((guarded, provenance)) => {
            let ruling = http::cite::ruling(&guarded);
            app.note(Via::Mcp, "cite", ruling, started, guarded.citations.len());
            let structured = http::cite::reply(session, &guarded, &provenance);
            done(cited_text(&guarded, ruling), structured)
        }
        Err(e) => {
            app.note(Via::Mcp, "cite", &format!("error:{}", e.code), started, 0);
            refused(&e, session)
        }
    }
}

fn cited_text(guarded: &Guarded, ruling: &str) -> String {
    let mut text = format!(
        "verdict: {ruling} ({} exact words checked against {} documents)\n",
        guarded.checked, guarded.sources
    );
    for unsupported in &guarded.unsupported {
        let reason = serde_json::to_value(unsupported.reason).unwrap_or(Value::Null);
        let _ = writeln!(
            text,
            "unsupported {}: {} ({})",
            unsupported.kind,
            unsupported.token,
            reason.as_str().unwrap_or("").replace('_', " ")
        );
    }
    for (n, citation) in (1..).zip(&guarded.citations) {
        place(n, citation, &mut text);
    }
    if guarded.sources == 0 {
        text.push_str("this session has seen no document yet: ask, grep or read first\n");
    }
    text
}

fn place(n: usize, citation: &Citation, text: &mut String) {
    let repo = citation.repo.as_ref().map_or(String::new(), |r| format!("{r}:"));
    let [from, to] = citation.lines;
    let _ =
        writeln!(text, "[{n}] {repo}{} > {} (lines {from}-{to})", citation.path, citation.heading);
    if let Some(url) = &citation.url {
        let _ = writeln!(text, "      {url}");
    }
}
