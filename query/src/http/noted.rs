//! What every operation on the tree leaves behind, whichever route it took: a line in the usage log, and
//! that its session has looked at the files, also where nothing was there to be found.

use super::App;
use crate::mcp::outcome;
use crate::route::Via;
use crate::tree::envelope::Envelope;
use crate::usage;
use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::Response;
use std::time::Instant;

/// How an operation came out, on its way from the route to [`note`].
#[derive(Clone)]
pub(super) struct Noted {
    outcome: String,
    matched: usize,
    session: String,
}

impl Noted {
    /// Of an envelope.
    pub(super) fn of(envelope: &Envelope, session: &str) -> Self {
        let outcome = outcome("grep", envelope);
        Self { outcome, matched: envelope.touched.len(), session: session.to_owned() }
    }
}

/// Notes what the routes of the tree did.
pub(super) async fn note(State(app): State<App>, request: Request, next: Next) -> Response {
    let started = Instant::now();
    let command = request.uri().path().rsplit('/').next().unwrap_or("").to_owned();
    let pattern = request.uri().query().and_then(pattern);
    let response = next.run(request).await;
    let Some(noted) = response.extensions().get::<Noted>() else {
        let outcome = match response.status() {
            s if s.is_success() || s.as_u16() == 304 => "ok".to_owned(),
            s => format!("error:{}", s.as_u16()),
        };
        app.note(Via::Http, &command, &outcome, started, 0);
        return response;
    };
    if !matches!(command.as_str(), "write" | "edit" | "delete") {
        app.service().evidence().looked_at_files(&noted.session, Instant::now());
    }
    let line = usage::line(Via::Http, &command, &noted.outcome, started, noted.matched);
    app.usage.note(line, pattern.as_deref());
    response
}

/// The pattern of a query string.
fn pattern(query: &str) -> Option<String> {
    let value = query.split('&').find_map(|pair| pair.strip_prefix("pattern="))?;
    let plain = value.replace('+', " ");
    Some(percent_encoding::percent_decode_str(&plain).decode_utf8_lossy().into_owned())
}
