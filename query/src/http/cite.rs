//! `POST /v1/cite`: the guard on an answer that somebody else has written.

use super::{ApiError, App, bad_request, json_body, with_provenance};
use crate::evidence::guard::Guarded;
use crate::reply::Provenance;
use crate::route::Via;
use axum::Json;
use axum::body::Bytes;
use axum::extract::State;
use axum::extract::rejection::BytesRejection;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::{Value, json};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct CiteBody {
    session: String,
    answer: String,
    #[serde(default)]
    k: Option<usize>,
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
    use crate::evidence::guard::Ruling;
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
    with_provenance(
        json!({
            "session": session,
            "verdict": guarded.verdict,
            "citations": guarded.citations,
            "unsupported": guarded.unsupported,
            "checked": guarded.checked,
            "sources": guarded.sources,
        }),
        provenance,
    )
}
