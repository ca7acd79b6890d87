//! `GET /v1/search` and `/v1/index`, and the lines that questions and searches leave in the usage log.

use super::{ApiError, App, AskQuery, from_query, with_provenance};
use crate::agents;
use crate::reply::{Provenance, Reply, round4};
use crate::route::{self, Via};
use crate::service::SearchResult;
use crate::usage;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use serde_json::json;
use std::time::Instant;

pub(super) async fn search(
    State(app): State<App>,
    query: Result<Query<AskQuery>, QueryRejection>,
) -> Result<Response, ApiError> {
    let mut request = from_query(query)?;
    let started = Instant::now();
    let session = app.service.session_name(request.session.as_deref())?;
    if app.steers(Via::Http, &session) {
        app.note(Via::Http, "search", "steered", started, 0);
        let (note, next) = route::steering_note(&request.question, Via::Http, &session);
        let body = json!({"steered": true, "note": note, "next": next, "session": session});
        return Ok(axum::Json(body).into_response());
    }
    request.session = Some(session.clone());
    let question = request.question.clone();
    let found = app.work(move |service| service.search(&request)).await;
    app.note_search(Via::Http, &question, started, &found);
    let (results, provenance) = found?;
    let body = json!({"results": results_json(&results), "session": session});
    Ok(axum::Json(with_provenance(body, &provenance)).into_response())
}

/// Search results with their raw scores.
pub(crate) fn results_json(results: &[SearchResult]) -> Vec<serde_json::Value> {
    let value = |(citation, bm25, cosine): &SearchResult| {
        let mut value = serde_json::to_value(citation).unwrap_or_default();
        value["bm25"] = json!(round4(*bm25));
        value["cosine"] = json!(cosine.map(round4));
        value
    };
    results.iter().map(value).collect()
}

impl App {
    /// Whether a search of this session is sent to the files first.
    pub(crate) fn steers(&self, via: Via, session: &str) -> bool {
        let looked = self.service.evidence().has_looked_at_files(session, Instant::now());
        self.files_first.steers(via, looked)
    }

    pub(crate) fn note_ask(
        &self,
        via: Via,
        question: &str,
        started: Instant,
        reply: &Result<Reply, ApiError>,
    ) {
        let (outcome, matched) = usage::of_reply(reply.as_ref().map_err(|e| e.code));
        // What a secret or a customer is called is nobody's business.
        let private = matches!(outcome.as_str(), "refused:secret" | "refused:customer_data");
        let line = usage::line(via, "ask", &outcome, started, matched);
        self.usage.note(line, Some(question).filter(|_| !private));
    }

    pub(crate) fn note_search(
        &self,
        via: Via,
        question: &str,
        started: Instant,
        found: &Result<(Vec<SearchResult>, Provenance), ApiError>,
    ) {
        let (outcome, matched) = match found {
            Ok((results, _)) if results.is_empty() => ("empty".to_owned(), 0),
            Ok((results, _)) => ("ok".to_owned(), results.len()),
            Err(e) => (format!("error:{}", e.code), 0),
        };
        let private = crate::gate::request::refuse(question).is_some();
        let line = usage::line(via, "search", &outcome, started, matched);
        self.usage.note(line, Some(question).filter(|_| !private));
    }
}

pub(super) async fn index(State(app): State<App>) -> Response {
    let text = agents::index(&app.service.snapshot());
    ([(header::CONTENT_TYPE, "text/plain; charset=utf-8")], text).into_response()
}
