//! `/mcp`: Streamable HTTP. Host, Origin and Content-Type are checked as on every other route.

use super::{ApiError, App};
use crate::mcp::{Handler, stdio::with_version};
use crate::session::{SESSIONS_MAX, SILENCE_MAX};
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::{Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use futures_util::future::BoxFuture;
use rmcp::ServerHandler;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use runbook_shared::limits::BODY_BYTES_MAX;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// A request to its response, by whatever answers at `/mcp`.
type Serve =
    dyn Fn(Sessions, Request) -> BoxFuture<'static, Result<Response, ApiError>> + Send + Sync;

/// The clients that have a session, and what ends their streams.
#[derive(Clone)]
pub(crate) struct Sessions {
    manager: Arc<LocalSessionManager>,
    stop: CancellationToken,
    /// What answers, where it is not this program's own tools.
    instead: Option<Arc<Serve>>,
}

impl App {
    /// The same with something else behind `/mcp`, made for each client or, without sessions, for each
    /// request: transport, checks and sessions stay.
    #[must_use]
    pub fn with_protocol<H: ServerHandler>(
        mut self,
        make: impl Fn() -> H + Clone + Send + Sync + 'static,
    ) -> Self {
        self.mcp.instead = Some(Arc::new(move |sessions, request| {
            Box::pin(answered(sessions, request, make.clone()))
        }));
        self
    }
}

impl Default for Sessions {
    fn default() -> Self {
        let mut manager = LocalSessionManager::default();
        manager.session_config.keep_alive = Some(SILENCE_MAX);
        Self { manager: Arc::new(manager), stop: CancellationToken::new(), instead: None }
    }
}

impl Sessions {
    pub(super) fn stop(&self) {
        self.stop.cancel();
    }
}

pub(super) async fn serve(State(app): State<App>, request: Request) -> Response {
    let sessions = app.mcp.clone();
    let served = match &app.mcp.instead {
        Some(serve) => serve(sessions, request).await,
        None => answered(sessions, request, move || Handler::new(app.clone())).await,
    };
    served.unwrap_or_else(IntoResponse::into_response)
}

async fn answered<H: ServerHandler>(
    sessions: Sessions,
    request: Request,
    make: impl Fn() -> H + Send + Sync + 'static,
) -> Result<Response, ApiError> {
    let (parts, body) = request.into_parts();
    let opens = parts.method == Method::POST && !parts.headers.contains_key("mcp-session-id");
    if opens && sessions.manager.sessions.read().await.len() >= SESSIONS_MAX {
        return Err(ApiError::new(
            StatusCode::TOO_MANY_REQUESTS,
            "too_many_sessions",
            format!("{SESSIONS_MAX} clients have a session already"),
            "try again later; a session ends with DELETE or when it was silent for long",
        ));
    }
    let bytes = to_bytes(body, BODY_BYTES_MAX).await.map_err(|_| {
        ApiError::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            "body_too_large",
            format!("the body is larger than {BODY_BYTES_MAX} bytes, or it ended early"),
            "send less in one message",
        )
    })?;
    let ends = parts.method == Method::DELETE;
    let request = Request::from_parts(parts, Body::from(with_version(&bytes)));
    let config = StreamableHttpServerConfig::default()
        // Both are checked before any route, with the names of this server's own setting.
        .disable_allowed_hosts()
        .disable_allowed_origins()
        .with_max_request_body_bytes(BODY_BYTES_MAX)
        .with_cancellation_token(sessions.stop.clone());
    let manager = Arc::clone(&sessions.manager);
    let service = StreamableHttpService::new(move || Ok(make()), manager, config);
    let mut response = service.handle(request).await.map(Body::new);
    if ends && response.status() == StatusCode::ACCEPTED {
        // The session is gone; clients take "accepted" for a failure.
        *response.status_mut() = StatusCode::NO_CONTENT;
    }
    Ok(in_one_shape(response).await)
}

/// The transport's own errors are plain text; ours are JSON on every route.
async fn in_one_shape(response: Response) -> Response {
    let status = response.status();
    let kind = response.headers().get(header::CONTENT_TYPE).and_then(|v| v.to_str().ok());
    if status.is_success() || kind.is_some_and(|k| k.starts_with("application/json")) {
        return response;
    }
    let allow = response.headers().get(header::ALLOW).cloned();
    let text = to_bytes(response.into_body(), 4096).await.unwrap_or_default();
    let text = String::from_utf8_lossy(&text).trim().to_owned();
    let message = if text.is_empty() { "the request cannot be served".into() } else { text };
    let (code, hint) = match status {
        StatusCode::NOT_ACCEPTABLE => {
            ("not_acceptable", "send Accept: application/json, text/event-stream")
        }
        StatusCode::NOT_FOUND => ("no_such_session", "initialize again"),
        StatusCode::METHOD_NOT_ALLOWED => {
            ("method_not_allowed", "this route takes POST, GET and DELETE")
        }
        _ => ("bad_message", "see the protocol at modelcontextprotocol.io, Streamable HTTP"),
    };
    let mut response = ApiError::new(status, code, message, hint).into_response();
    if let Some(allow) = allow {
        response.headers_mut().insert(header::ALLOW, allow);
    }
    response
}
