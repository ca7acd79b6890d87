//! `GET /v1/search` and `/v1/index`, and the lines that questions and searches leave in the usage log.

use super::{ApiError, App, AskQuery, from_query};
use crate::agents;
use crate::reply::{Citation, Provenance, Reply, round4};
use crate::route::{self, Via};
use crate::service::SearchResult;
use crate::usage;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::Serialize;
use std::time::Instant;

/// What a search gives.
#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
pub(super) enum SearchReply<'a> {
    /// What was found.
    Found {
        /// The sections, best first.
        results: Vec<Found<'a>>,
        /// The conversation.
        session: String,
        /// The snapshot.
        #[serde(flatten)]
        provenance: Provenance,
    },
    /// Nothing was searched: the session has not looked at the files yet (`[agents] files_first`).
    Steered {
        /// Always true.
        steered: bool,
        /// Why, and what to do.
        note: String,
        /// Calls to make instead.
        next: Vec<String>,
        /// The conversation.
        session: String,
    },
}

/// A section that was found.
#[derive(Serialize, JsonSchema)]
pub(super) struct Found<'a> {
    #[serde(flatten)]
    citation: &'a Citation,
    /// Raw BM25.
    bm25: f64,
    /// Raw cosine; null without vectors.
    cosine: Option<f64>,
}

impl<'a> Found<'a> {
    fn of((citation, bm25, cosine): &'a SearchResult) -> Self {
        Self { citation, bm25: round4(*bm25), cosine: cosine.map(round4) }
    }
}

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
        let body = SearchReply::Steered { steered: true, note, next, session };
        return Ok(axum::Json(body).into_response());
    }
    request.session = Some(session.clone());
    let question = request.question.clone();
    let found = app.work(move |service| service.search(&request)).await;
    app.note_search(Via::Http, &question, started, &found);
    let (results, provenance) = found?;
    let results = results.iter().map(Found::of).collect();
    Ok(axum::Json(SearchReply::Found { results, session, provenance }).into_response())
}

/// Search results with their raw scores.
pub(crate) fn results_json(results: &[SearchResult]) -> Vec<serde_json::Value> {
    results.iter().map(|r| serde_json::to_value(Found::of(r)).unwrap_or_default()).collect()
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
