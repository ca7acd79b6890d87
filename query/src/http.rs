//! HTTP: routes, checks that every request passes, errors in one shape, all of it bounded.

pub(crate) mod cite;
mod feedback;
mod fs;
mod guard;
pub(crate) mod mcp;
mod metrics;
mod noted;
mod page;
mod routes;
pub(crate) mod search;
mod shell;
mod stream;

pub use routes::openapi;

use crate::access::Access;
use crate::metrics::Stage;
use crate::openapi::{ErrorReply, ErrorTold};
use crate::reply::{Provenance, Reply};
use crate::route::{FilesFirst, Via};
use crate::service::{AskError, Request as AskRequest, Service};
use crate::status;
use crate::text;
use crate::usage;
use axum::Router;
use axum::body::Bytes;
use axum::extract::rejection::BytesRejection;
use axum::extract::{DefaultBodyLimit, Query, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::middleware;
use axum::response::{IntoResponse, Response};
use runbook_shared::limits::BODY_BYTES_MAX;
use schemars::JsonSchema;
use serde::Deserialize;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;

/// What a question may take before the client is told to try again.
const DEADLINE: Duration = Duration::from_secs(10);
/// Questions that may wait for a core, for each core.
const QUEUE_PER_CORE: usize = 64;

/// The largest body of any route, in bytes.
pub(crate) const BODY_BYTES_MOST: u64 = fs::WRITE_BODY_BYTES_MAX as u64;

/// What the routes share.
#[derive(Clone)]
pub struct App {
    service: Arc<Service>,
    /// Names under which this server may be addressed, with port.
    hosts: Arc<[String]>,
    access: Arc<Access>,
    /// One permit for each question that runs.
    running: Arc<Semaphore>,
    /// One permit for each question that runs or waits.
    admitted: Arc<Semaphore>,
    /// For whom searches wait until files were looked at.
    files_first: FilesFirst,
    usage: usage::Log,
    pub(crate) mcp: mcp::Sessions,
}

impl App {
    /// The routes of a service, for these hosts.
    #[must_use]
    pub fn new(service: Arc<Service>, hosts: Vec<String>) -> Self {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Self {
            service,
            hosts: hosts.into(),
            access: Arc::default(),
            running: Arc::new(Semaphore::new(cores)),
            admitted: Arc::new(Semaphore::new(cores * (QUEUE_PER_CORE + 1))),
            files_first: FilesFirst::default(),
            usage: usage::Log::default(),
            mcp: mcp::Sessions::default(),
        }
    }

    /// The same with another policy for searches and a usage log.
    #[must_use]
    pub fn with_agents(mut self, files_first: FilesFirst, usage: usage::Log) -> Self {
        self.files_first = files_first;
        self.usage = usage;
        self
    }

    /// The same with a token or a limit.
    #[must_use]
    pub fn with_access(mut self, access: Access) -> Self {
        self.access = Arc::new(access);
        self
    }

    /// Ends the open streams of MCP clients, so that a stopping server need not wait for them.
    pub fn stopper(&self) -> impl FnOnce() + Send + 'static {
        let sessions = self.mcp.clone();
        move || sessions.stop()
    }

    pub(crate) fn service(&self) -> &Arc<Service> {
        &self.service
    }

    pub(crate) fn usage(&self) -> &usage::Log {
        &self.usage
    }

    /// A line of the usage log without words.
    pub(crate) fn note(
        &self,
        via: Via,
        command: &str,
        outcome: &str,
        started: Instant,
        matched: usize,
    ) {
        self.usage.note(usage::line(via, command, outcome, started, matched), None);
    }

    /// The router.
    pub fn router(self) -> Router {
        let noted = middleware::from_fn_with_state(self.clone(), noted::note);
        routes::plain()
            .merge(fs::routes().map(|r| r.layer(noted)))
            .merge(page::routes())
            .into_router()
            .fallback(page::nowhere)
            .method_not_allowed_fallback(|| async {
                ApiError::new(
                    StatusCode::METHOD_NOT_ALLOWED,
                    "method_not_allowed",
                    "this route does not take this method",
                    "see docs/http-api.md for the routes",
                )
            })
            .layer(DefaultBodyLimit::max(BODY_BYTES_MAX))
            .layer(middleware::from_fn_with_state(self.clone(), guard::check))
            .with_state(self)
    }
}

/// An error as a client sees it.
#[derive(Debug)]
pub(crate) struct ApiError {
    status: StatusCode,
    pub(crate) code: &'static str,
    pub(crate) message: String,
    pub(crate) hint: String,
    /// Seconds after which the client may try again.
    retry_after: u64,
}

/// The code of an error, on the response that tells it: for counting.
#[derive(Clone, Copy, Debug)]
struct ErrorCode(&'static str);

impl ApiError {
    fn new(
        status: StatusCode,
        code: &'static str,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) -> Self {
        Self { status, code, message: message.into(), hint: hint.into(), retry_after: 1 }
    }

    /// The same with another time after which the client may try again, in seconds.
    fn after(self, seconds: u64) -> Self {
        Self { retry_after: seconds, ..self }
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let id = request_id();
        if self.status.is_server_error() {
            tracing::warn!(request_id = id, code = self.code, "{}", self.message);
        }
        let error = ErrorTold { code: self.code, message: self.message, hint: self.hint };
        let body = ErrorReply { error, request_id: id };
        let mut response = (self.status, axum::Json(body)).into_response();
        response.extensions_mut().insert(ErrorCode(self.code));
        if matches!(self.status, StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE) {
            response.headers_mut().insert(header::RETRY_AFTER, self.retry_after.into());
        }
        if self.status == StatusCode::UNAUTHORIZED {
            let scheme = HeaderValue::from_static("Bearer");
            response.headers_mut().insert(header::WWW_AUTHENTICATE, scheme);
        }
        response
    }
}

fn request_id() -> String {
    use std::sync::atomic::{AtomicU64, Ordering};
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let seed = format!(
        "{}-{}",
        COUNT.fetch_add(1, Ordering::Relaxed),
        jiff::Timestamp::now().as_nanosecond()
    );
    blake3::hash(seed.as_bytes()).to_hex()[..16].to_owned()
}

impl From<AskError> for ApiError {
    fn from(e: AskError) -> Self {
        use runbook_shared::retrieval::question::QuestionError;
        let message = e.to_string();
        match e {
            AskError::Question(QuestionError::Empty) => Self::new(
                StatusCode::BAD_REQUEST,
                "question_empty",
                message,
                "send {\"question\": \"...\"}",
            ),
            AskError::Question(QuestionError::TooLong(_)) => Self::new(
                StatusCode::PAYLOAD_TOO_LARGE,
                "question_too_long",
                message,
                "paste the lines that matter",
            ),
            AskError::K(_) => {
                Self::new(StatusCode::BAD_REQUEST, "k_out_of_range", message, "leave k out for 5")
            }
            AskError::NoRepo(_) => Self::new(
                StatusCode::BAD_REQUEST,
                "no_such_repository",
                message,
                "GET /v1/status lists the repositories",
            ),
            AskError::NoScope(_) => Self::new(
                StatusCode::BAD_REQUEST,
                "no_such_scope",
                message,
                "a scope is a path prefix that ends at a `/`, or repo:NAME",
            ),
            AskError::Session => Self::new(
                StatusCode::BAD_REQUEST,
                "bad_session",
                message,
                "send back the session of the reply before, or leave it out",
            ),
            AskError::Answer(_) => Self::new(
                StatusCode::BAD_REQUEST,
                "bad_answer",
                message,
                "send the text of the answer that is to be checked",
            ),
            AskError::NotReady(_) => Self::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "not_ready",
                message,
                "run runbook-ingest; this server picks the generation up by itself",
            ),
            AskError::Index(_) => Self::new(
                StatusCode::INTERNAL_SERVER_ERROR,
                "index_failed",
                "the index cannot be read",
                "see the server's log",
            ),
        }
    }
}

/// A question.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Question")]
struct AskBody {
    /// The question; control characters count as blanks.
    question: String,
    /// How many sections to name; 5 when left out.
    #[serde(default)]
    #[schemars(range(min = 1, max = 50))]
    k: Option<usize>,
    /// Only documents at or beneath this path, or `repo:NAME` for one repository.
    #[serde(default)]
    scope: Option<String>,
    /// Name of the conversation: at most 128 letters, digits, `-`, `_`; a new one when left out.
    #[serde(default)]
    session: Option<String>,
    /// Add `explain` to the reply.
    #[serde(default)]
    explain: Option<bool>,
    /// Whether what is being done is told while it is, as server-sent events.
    #[serde(default)]
    stream: bool,
}

/// A question in a query string.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct AskQuery {
    /// The question; control characters count as blanks.
    q: String,
    /// How many sections to name; 5 when left out.
    #[schemars(range(min = 1, max = 50))]
    k: Option<usize>,
    /// Only documents at or beneath this path, or `repo:NAME` for one repository.
    scope: Option<String>,
    /// Name of the conversation: at most 128 letters, digits, `-`, `_`; a new one when left out.
    session: Option<String>,
    /// Add `explain` to the reply.
    explain: Option<bool>,
}

fn bad_request(code: &'static str, message: String) -> ApiError {
    ApiError::new(
        StatusCode::BAD_REQUEST,
        code,
        message,
        "the keys are question, k, scope, session, explain, stream; in a query string q for question, and no stream",
    )
}

/// The bytes of a body that is not too large.
fn json_body(body: Result<Bytes, BytesRejection>) -> Result<Bytes, ApiError> {
    body.map_err(|e| {
        if e.status() == StatusCode::PAYLOAD_TOO_LARGE {
            let message = format!("the body is larger than {BODY_BYTES_MAX} bytes");
            return ApiError::new(
                e.status(),
                "body_too_large",
                message,
                "paste the lines that matter",
            );
        }
        bad_request("bad_body", e.body_text())
    })
}

async fn ask_post(
    State(app): State<App>,
    headers: HeaderMap,
    body: Result<Bytes, BytesRejection>,
) -> Result<Response, ApiError> {
    let body = json_body(body)?;
    let body: AskBody =
        serde_json::from_slice(&body).map_err(|e| bad_request("bad_json", e.to_string()))?;
    let request = AskRequest {
        question: body.question,
        k: body.k,
        scope: body.scope,
        session: body.session,
        explain: body.explain.unwrap_or(false),
    };
    if body.stream {
        return stream::ask(app, request).await;
    }
    ask(app, headers, request).await
}

async fn ask_get(
    State(app): State<App>,
    headers: HeaderMap,
    query: Result<Query<AskQuery>, axum::extract::rejection::QueryRejection>,
) -> Result<Response, ApiError> {
    ask(app, headers, from_query(query)?).await
}

fn from_query(
    query: Result<Query<AskQuery>, axum::extract::rejection::QueryRejection>,
) -> Result<AskRequest, ApiError> {
    let Query(query) = query.map_err(|e| bad_request("bad_query", e.body_text()))?;
    Ok(AskRequest {
        question: query.q,
        k: query.k,
        scope: query.scope,
        session: query.session,
        explain: query.explain.unwrap_or(false),
    })
}

async fn ask(app: App, headers: HeaderMap, request: AskRequest) -> Result<Response, ApiError> {
    if stream::is_wanted(&headers) {
        return stream::ask(app, request).await;
    }
    let form = Form::of(&headers);
    let (started, question) = (Instant::now(), request.question.clone());
    let reply = app.answer(request, |_| {}).await;
    app.note_ask(Via::Http, &question, started, &reply);
    let reply = reply?;
    Ok(form.response(&reply))
}

/// The form of a reply, by `Accept`.
enum Form {
    Json,
    Text,
    Command,
    Link,
}

impl Form {
    fn of(headers: &HeaderMap) -> Self {
        let accept = headers
            .get(header::ACCEPT)
            .and_then(|v| v.to_str().ok())
            .unwrap_or("")
            .to_ascii_lowercase();
        let first = accept.split(',').find(|t| {
            let kind = t.split(';').next().unwrap_or("").trim();
            matches!(kind, "text/plain" | "application/json" | "*/*")
        });
        match first {
            Some(t) if t.trim().starts_with("text/plain") => {
                let part = t
                    .split(';')
                    .skip(1)
                    .find_map(|p| p.trim().strip_prefix("part="))
                    .map(|p| p.trim_matches('"'));
                match part {
                    Some("command") => Self::Command,
                    Some("link") => Self::Link,
                    _ => Self::Text,
                }
            }
            _ => Self::Json,
        }
    }

    fn response(&self, reply: &Reply) -> Response {
        let plain = |text: String| {
            ([(header::CONTENT_TYPE, "text/plain; charset=utf-8")], text).into_response()
        };
        let mut response = match self {
            Self::Json => axum::Json(reply).into_response(),
            Self::Text => plain(text::render(reply)),
            Self::Command => plain(text::command_only(reply).unwrap_or_default()),
            Self::Link => plain(text::link_only(reply).unwrap_or_default()),
        };
        let headers = response.headers_mut();
        for (name, value) in [
            ("x-runbook-band", reply.band.name()),
            ("x-runbook-id", reply.id.as_str()),
            ("x-runbook-session", reply.session.as_str()),
        ] {
            if let Ok(value) = HeaderValue::from_str(value) {
                headers.insert(HeaderName::from_static(name), value);
            }
        }
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        response
    }
}

impl App {
    /// Runs a question on a thread of its own when a core is free; refuses when too many wait.
    pub(crate) async fn work<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Service) -> Result<T, AskError> + Send + 'static,
    ) -> Result<T, ApiError> {
        let admitted = Arc::clone(&self.admitted).try_acquire_owned().map_err(|_| {
            ApiError::new(
                StatusCode::TOO_MANY_REQUESTS,
                "too_many_questions",
                "too many questions are waiting",
                "try again in a second",
            )
        })?;
        let late = || {
            ApiError::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "too_late",
                "the question took too long",
                "ask something shorter, or try again",
            )
        };
        let waiting = Instant::now();
        let running = tokio::time::timeout(DEADLINE, Arc::clone(&self.running).acquire_owned())
            .await
            .map_err(|_| late())?;
        self.service.journal().metrics.stage(Stage::Wait, waiting.elapsed());
        let service = Arc::clone(&self.service);
        let task = tokio::task::spawn_blocking(move || {
            let _permits = (admitted, running);
            work(&service)
        });
        match tokio::time::timeout(DEADLINE, task).await {
            Ok(Ok(result)) => Ok(result?),
            Ok(Err(panic)) => {
                tracing::error!("a question failed: {panic}");
                Err(ApiError::new(
                    StatusCode::INTERNAL_SERVER_ERROR,
                    "failed",
                    "the question could not be answered",
                    "see the server's log",
                ))
            }
            Err(_) => Err(late()),
        }
    }
}

pub(crate) fn with_provenance(
    mut value: serde_json::Value,
    provenance: &Provenance,
) -> serde_json::Value {
    if let (Some(map), Ok(serde_json::Value::Object(more))) =
        (value.as_object_mut(), serde_json::to_value(provenance))
    {
        map.extend(more);
    }
    value
}

async fn status_page(State(app): State<App>) -> Response {
    axum::Json(status::status(&app.service)).into_response()
}

async fn readyz(State(app): State<App>) -> Result<&'static str, ApiError> {
    let snapshot = app.service.snapshot();
    if snapshot.is_ready() {
        return Ok("ready\n");
    }
    Err(ApiError::new(
        StatusCode::SERVICE_UNAVAILABLE,
        "not_ready",
        snapshot.problem(),
        "run runbook-ingest",
    ))
}
