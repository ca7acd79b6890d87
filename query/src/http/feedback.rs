//! `POST /v1/feedback`: what a user says of a reply, as JSON or as the page's own form.

use super::{ApiError, App};
use crate::feedback::recent::Asked;
use crate::feedback::reports::ReportError;
use crate::openapi::Operation;
use crate::page;
use crate::service::{Request, Service};
use axum::body::Bytes;
use axum::extract::State;
use axum::extract::rejection::BytesRejection;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use runbook_shared::secrets;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::sync::Arc;

/// The route.
pub(super) const PATH: &str = "/v1/feedback";
/// The longest note, in bytes.
const NOTE_BYTES_MAX: usize = 8000;
/// The longest name of a page, in bytes.
const PAGE_BYTES_MAX: usize = 2000;
/// The longest question that is kept, in bytes; the rest of a longer one is cut off.
const QUESTION_BYTES_MAX: usize = 16 * 1024;
/// Sections that are looked up for a report.
const RETRIEVED: usize = 10;

/// Whether a request carries a form.
pub(super) fn is_form(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|v| v.to_str().ok()).unwrap_or("");
    let kind = kind.split(';').next().unwrap_or("").trim();
    kind.eq_ignore_ascii_case("application/x-www-form-urlencoded")
}

/// What was wrong, or not.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Verdict {
    Wrong,
    Right,
}

impl Verdict {
    fn name(self) -> &'static str {
        match self {
            Self::Wrong => "wrong",
            Self::Right => "right",
        }
    }
}

/// A report as it is sent.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Report")]
struct Body {
    /// The reply's id.
    id: String,
    /// What it was.
    verdict: Verdict,
    /// What is wrong, at most 8000 bytes.
    #[serde(default)]
    note: String,
    /// The right page: a path, with a heading after `#` where it is known.
    #[serde(default)]
    page: String,
    /// The question: asked once more where the reply is not remembered.
    #[serde(default)]
    question: Option<String>,
    /// The scope that it was asked with.
    #[serde(default)]
    scope: Option<String>,
}

/// A report that was kept.
#[derive(Serialize, JsonSchema)]
struct ReportKept {
    /// Its id.
    report: String,
}

/// What the route does.
pub(super) fn operation() -> Operation {
    Operation::post("feedback", "Keeps what a user says of a reply")
        .tagged("questions")
        .body::<Body>()
        .form::<Body>()
        .json::<ReportKept>(201, "it is on disk")
        .bare(303, "the same for a form of the page: to `/reported`")
        .errors(super::routes::QUESTION)
        .errors(&[
            (400, "bad_json"),
            (400, "bad_form"),
            (400, "bad_report"),
            (400, "note_too_long"),
            (404, "no_such_reply"),
            (413, "bad_body"),
            (413, "report_too_long"),
            (503, "no_state"),
            (503, "not_written"),
            (507, "feedback_full"),
        ])
}

fn bad(code: &'static str, message: impl Into<String>) -> ApiError {
    ApiError::new(
        StatusCode::BAD_REQUEST,
        code,
        message,
        "the keys are id, verdict (wrong or right), note, page, question, scope",
    )
}

fn parse(headers: &HeaderMap, bytes: &[u8]) -> Result<Body, ApiError> {
    let body: Body = if is_form(headers) {
        let pairs = form_urlencoded::parse(bytes).filter(|(_, value)| !value.is_empty());
        let map: serde_json::Map<String, Value> =
            pairs.map(|(k, v)| (k.into_owned(), Value::String(v.into_owned()))).collect();
        serde_json::from_value(Value::Object(map)).map_err(|e| bad("bad_form", e.to_string()))?
    } else {
        serde_json::from_slice(bytes).map_err(|e| bad("bad_json", e.to_string()))?
    };
    if body.note.len() > NOTE_BYTES_MAX {
        return Err(bad("note_too_long", format!("a note has at most {NOTE_BYTES_MAX} bytes")));
    }
    if body.page.len() > PAGE_BYTES_MAX || body.id.len() > 64 {
        return Err(bad("bad_report", "the page or the id is too long"));
    }
    Ok(body)
}

pub(super) async fn post(
    State(app): State<App>,
    headers: HeaderMap,
    body: Result<Bytes, BytesRejection>,
) -> Response {
    let form = is_form(&headers);
    let bytes = match body {
        Ok(bytes) => bytes,
        Err(e) => {
            return ApiError::new(e.status(), "bad_body", e.body_text(), "send less")
                .into_response();
        }
    };
    let asked = form_urlencoded::parse(if form { &bytes } else { b"" })
        .find(|(k, _)| k == "question")
        .map(|(_, v)| v.into_owned())
        .unwrap_or_default();
    match take(app, &headers, &bytes).await {
        Err(e) if form => super::page::failed(e, &asked),
        Err(e) => e.into_response(),
        // A reload of the page after it must not report twice.
        Ok(_) if form => {
            let back: String = form_urlencoded::byte_serialize(asked.as_bytes()).collect();
            let to = format!("/reported?q={back}");
            (StatusCode::SEE_OTHER, [(header::LOCATION, to)]).into_response()
        }
        Ok(report) => (StatusCode::CREATED, axum::Json(ReportKept { report })).into_response(),
    }
}

async fn take(app: App, headers: &HeaderMap, bytes: &[u8]) -> Result<String, ApiError> {
    if app.service.journal().reports.is_none() {
        return Err(ApiError::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "no_state",
            "this server keeps no reports",
            "start it with --state DIR, a directory that it may write",
        ));
    }
    let body = parse(headers, bytes)?;
    let service = Arc::clone(&app.service);
    app.work(move |_| Ok(keep(&service, &body))).await?
}

/// Looks the reply up, looks at its question once more, and appends the report.
fn keep(service: &Service, body: &Body) -> Result<String, ApiError> {
    let journal = service.journal();
    let question = body.question.as_deref().map(str::trim).filter(|q| !q.is_empty());
    let (asked, remembered) = match journal.recent.get(&body.id) {
        Some(asked) => (asked, true),
        None => (again(service, question, body.scope.as_deref())?, false),
    };
    let id = format!("f{}", super::request_id());
    let report = report(service, body, &asked, remembered, &id);
    let Some(reports) = &journal.reports else {
        return Err(bad("no_state", "this server keeps no reports"));
    };
    reports.append(&report).map_err(|e| {
        let (status, code, hint) = match &e {
            ReportError::Full(_) => (
                StatusCode::INSUFFICIENT_STORAGE,
                "feedback_full",
                "run runbook-eval promote, then move the file away and restart the server",
            ),
            ReportError::TooLong => {
                (StatusCode::PAYLOAD_TOO_LARGE, "report_too_long", "shorten the note")
            }
            ReportError::File(_) => (
                StatusCode::SERVICE_UNAVAILABLE,
                "not_written",
                "see that the state directory can be written and the disk is not full",
            ),
        };
        tracing::error!("{e}: a report is lost");
        ApiError::new(status, code, "the report could not be kept", hint)
    })?;
    journal.metrics.feedback(body.verdict.name());
    tracing::info!(id, reply = asked.id, verdict = body.verdict.name(), "report");
    Ok(id)
}

/// The question of a reply that is not remembered, asked of what is served now.
fn again(
    service: &Service,
    question: Option<&str>,
    scope: Option<&str>,
) -> Result<Asked, ApiError> {
    let Some(question) = question else {
        return Err(ApiError::new(
            StatusCode::NOT_FOUND,
            "no_such_reply",
            "that reply is not remembered",
            "ask again and report then, or send the question with the report",
        ));
    };
    let request = Request {
        question: question.to_owned(),
        scope: scope.map(str::to_owned),
        ..Request::default()
    };
    let reply = service.answer(&request)?;
    let question = secrets::clean(question);
    Ok(Asked::new(&question, &question, scope, &reply))
}

fn report(service: &Service, body: &Body, asked: &Asked, remembered: bool, id: &str) -> Value {
    let mut report = json!({
        "report": id,
        "at": jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
        "verdict": body.verdict.name(),
        "note": plain(&secrets::clean(&body.note)),
        "page": plain(&body.page),
        "page_indexed": is_indexed(service, &body.page),
        "remembered": remembered,
    });
    let mut asked = asked.clone();
    cut(&mut asked.question, QUESTION_BYTES_MAX);
    if let Some(typed) = &mut asked.typed {
        cut(typed, QUESTION_BYTES_MAX);
    }
    let request = Request {
        question: asked.question.clone(),
        scope: asked.scope.clone(),
        k: Some(RETRIEVED),
        explain: true,
        session: None,
    };
    let mut more = serde_json::to_value(&asked).unwrap_or_default();
    // From what is served now, which its own generation tells.
    if let Ok((found, provenance)) = service.search(&request) {
        let rows: Vec<Value> = found
            .iter()
            .map(|(c, bm25, cosine)| {
                json!({
                    "repo": c.repo, "path": c.path, "heading": c.heading, "lines": c.lines,
                    "bm25": crate::reply::round4(*bm25), "cosine": cosine.map(crate::reply::round4),
                })
            })
            .collect();
        more["retrieved"] = json!(rows);
        more["retrieved_in"] = json!(provenance.generation);
    }
    if let Ok(reply) = service.answer(&request) {
        more["signals"] = reply.explain.map_or(Value::Null, |e| e["signals"].clone());
    }
    if let (Some(report), Value::Object(more)) = (report.as_object_mut(), more) {
        report.extend(more);
    }
    report
}

/// Whether a page that a user names is a document here.
fn is_indexed(service: &Service, page: &str) -> bool {
    let path = page.trim().split('#').next().unwrap_or("").trim();
    service.snapshot().corpora().iter().any(|c| c.generation.document(path).is_some())
}

/// Text without control characters but line ends.
fn plain(text: &str) -> String {
    text.trim().chars().filter(|c| *c == '\n' || !c.is_control()).collect()
}

fn cut(text: &mut String, most: usize) {
    let mut at = most.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    text.truncate(at);
}

/// The page after a report, for a browser without JavaScript.
pub(super) fn thanks(question: &str) -> maud::Markup {
    page::answer::thanks(question)
}
