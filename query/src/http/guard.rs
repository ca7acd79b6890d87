//! What every request passes before any route, and every response gets: Host, Origin and Content-Type
//! (a page of another site must not reach this server through a browser), token and limit of
//! [`crate::access`], and the headers that tell a browser what it may not do.

use super::{ApiError, App, ErrorCode, feedback, fs};
use crate::access::{Denied, Peer};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use std::time::Instant;

/// Routes that tell nothing of the documents: whoever watches over the server may call them.
const OPEN_TO_ALL: [&str; 2] = ["/livez", "/readyz"];
/// Headers of every response that does not have its own.
static HEADERS: [(HeaderName, &str); 7] = [
    (header::CONTENT_SECURITY_POLICY, "default-src 'none'; frame-ancestors 'none'"),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::X_FRAME_OPTIONS, "DENY"),
    (header::REFERRER_POLICY, "same-origin"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    (HeaderName::from_static("permissions-policy"), "camera=(), geolocation=(), microphone=()"),
];

pub(super) async fn check(State(app): State<App>, request: Request, next: Next) -> Response {
    let peer = request.extensions().get::<Peer>().copied();
    let mut response = match checked(&app, &request, peer) {
        Ok(()) => next.run(request).await,
        Err(e) => e.into_response(),
    };
    for (name, value) in &HEADERS {
        response.headers_mut().entry(name).or_insert(HeaderValue::from_static(value));
    }
    if let Some(ErrorCode(code)) = response.extensions().get() {
        app.service.journal().metrics.rejected(code);
    }
    response
}

fn checked(app: &App, request: &Request, peer: Option<Peer>) -> Result<(), ApiError> {
    let (headers, path) = (request.headers(), request.uri().path());
    check_host(app, headers, request.uri(), peer)?;
    check_origin(app, headers)?;
    if request.method() == Method::POST {
        check_type(headers, path == feedback::PATH)?;
    }
    check_length(headers)?;
    if OPEN_TO_ALL.contains(&path) {
        return Ok(());
    }
    app.access.admit(peer, headers, Instant::now()).map_err(|denied| match denied {
        Denied::Token => ApiError::new(
            StatusCode::UNAUTHORIZED,
            "no_token",
            "this server wants a token",
            "send Authorization: Bearer TOKEN; the operator has it (server.token_file)",
        ),
        Denied::Rate(seconds) => ApiError::new(
            StatusCode::TOO_MANY_REQUESTS,
            "too_many_requests",
            "this client has sent too many requests",
            format!("try again in {seconds} s"),
        )
        .after(seconds),
    })
}

/// Exactly one Host, one of ours; a request line that names a host names the same one.
fn check_host(
    app: &App,
    headers: &HeaderMap,
    uri: &Uri,
    peer: Option<Peer>,
) -> Result<(), ApiError> {
    let hosts: Vec<_> = headers.get_all(header::HOST).iter().collect();
    let [host] = hosts[..] else {
        return Err(ApiError::new(
            StatusCode::BAD_REQUEST,
            "bad_host",
            "a request names exactly one Host",
            "send one Host header",
        ));
    };
    let of_line = uri.authority().map(|a| a.as_str().as_bytes());
    // No browser reaches a Unix socket; clients of one have no name for it.
    let is_local = peer == Some(Peer::Unix) && host == "localhost";
    let is_ours = is_local || is_allowed(app, host.as_bytes());
    if !is_ours || of_line.is_some_and(|a| !a.eq_ignore_ascii_case(host.as_bytes())) {
        return Err(ApiError::new(
            StatusCode::FORBIDDEN,
            "host_not_allowed",
            "this server is not called by that name",
            "add the name to allowed_hosts (--allowed-host) when a proxy passes it on",
        ));
    }
    Ok(())
}

fn is_allowed(app: &App, host: &[u8]) -> bool {
    app.hosts.iter().any(|ours| ours.as_bytes().eq_ignore_ascii_case(host))
}

/// No Origin, or our own.
fn check_origin(app: &App, headers: &HeaderMap) -> Result<(), ApiError> {
    for origin in headers.get_all(header::ORIGIN) {
        let own = ["http://", "https://"].iter().any(|scheme| {
            let host = origin.as_bytes().strip_prefix(scheme.as_bytes());
            host.is_some_and(|host| is_allowed(app, host))
        });
        if !own {
            return Err(ApiError::new(
                StatusCode::FORBIDDEN,
                "origin_not_allowed",
                "another site may not use this server",
                "open the server's own page",
            ));
        }
    }
    Ok(())
}

/// A body that is larger than any route takes is refused before it is sent.
fn check_length(headers: &HeaderMap) -> Result<(), ApiError> {
    let declared = headers.get(header::CONTENT_LENGTH).and_then(|v| v.to_str().ok());
    let declared = declared.and_then(|v| v.parse::<u64>().ok()).unwrap_or(0);
    if declared <= fs::WRITE_BODY_BYTES_MAX as u64 {
        return Ok(());
    }
    Err(ApiError::new(
        StatusCode::PAYLOAD_TOO_LARGE,
        "body_too_large",
        format!("the body is larger than {} bytes", fs::WRITE_BODY_BYTES_MAX),
        "send less",
    ))
}

/// A POST carries JSON, which no form and no simple request of a browser can.
fn check_type(headers: &HeaderMap, takes_form: bool) -> Result<(), ApiError> {
    let kinds: Vec<_> = headers.get_all(header::CONTENT_TYPE).iter().collect();
    let kind = match kinds[..] {
        [kind] => kind.to_str().unwrap_or(""),
        _ => "",
    };
    let kind = kind.split(';').next().unwrap_or("").trim();
    // A form of the own page: the browser names the origin, which was checked above.
    let own_form = takes_form
        && kinds.len() == 1
        && feedback::is_form(headers)
        && headers.contains_key(header::ORIGIN);
    if own_form || kind.eq_ignore_ascii_case("application/json") {
        return Ok(());
    }
    Err(ApiError::new(
        StatusCode::UNSUPPORTED_MEDIA_TYPE,
        "not_json",
        "a POST carries application/json",
        "send Content-Type: application/json",
    ))
}
