//! `POST /v1/cite`: the guard on an answer that somebody else has written.

use super::{ApiError, App, bad_request, json_body};
use crate::evidence::guard::{Guarded, Ruling, Unsupported};
use crate::reply::{Citation, Provenance};
use crate::route::Via;
use axum::Json;
use axum::body::Bytes;
use axum::extract::State;
use axum::extract::rejection::BytesRejection;
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// An answer that is to be checked.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "AnswerToCheck")]
pub(super) struct CiteBody {
    /// The session that has seen the sources.
    session: String,
    /// The text of the answer.
    answer: String,
    /// How many citations to give; 5 when left out.
    #[serde(default)]
    #[schemars(range(min = 1, max = 50))]
    k: Option<usize>,
}

/// What the guard found.
#[derive(Serialize, JsonSchema)]
pub(super) struct CiteReply<'a> {
    /// The session.
    session: &'a str,
    /// The verdict.
    verdict: Ruling,
    /// Citations that support the answer, best first.
    citations: &'a [Citation],
    /// Words that no source supports, in the order of the answer.
    unsupported: &'a [Unsupported],
    /// How many exact words and commands were checked.
    checked: usize,
    /// How many documents were candidates.
    sources: usize,
    /// The snapshot.
    #[serde(flatten)]
    provenance: &'a Provenance,
}

pub(super) async fn cite(
    State(app): State<App>,
    body: Result<Bytes, BytesRejection>,
) -> Result<Response, ApiError> {
    let body = json_body(body)?;
    let body: CiteBody = serde_json::from_slice(&body).map_err(|e| ApiError {
        hint: "the keys are session, answer, k".into(),
        ..bad_request("bad_json", e.to_string())
    })?;
    let (session, started) = (body.session.clone(), std::time::Instant::now());
    let work =
        move |service: &crate::service::Service| service.cite(&body.session, &body.answer, body.k);
    let (guarded, provenance) = app.work(work).await?;
    app.note(Via::Http, "cite", ruling(&guarded), started, guarded.citations.len());
    Ok(Json(reply(&session, &guarded, &provenance)).into_response())
}

/// The verdict as a word.
#[must_use]
pub(crate) fn ruling(guarded: &Guarded) -> &'static str {
    match guarded.verdict {
        Ruling::Supported => "supported",
        Ruling::Unsupported => "unsupported",
        Ruling::NoEvidence => "no_evidence",
        Ruling::Refusal => "refusal",
    }
}

/// The guard's finding as a reply.
#[must_use]
pub(crate) fn reply(session: &str, guarded: &Guarded, provenance: &Provenance) -> Value {
    let reply = CiteReply {
        session,
        verdict: guarded.verdict,
        citations: &guarded.citations,
        unsupported: &guarded.unsupported,
        checked: guarded.checked,
        sources: guarded.sources,
        provenance,
    };
    serde_json::to_value(reply).unwrap_or_default()
}
