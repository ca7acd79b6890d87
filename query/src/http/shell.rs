//! The shell over HTTP: `POST /v1/shell`.

use super::fs::{blocking, from_body, reply};
use super::{ApiError, App};
use crate::shell;
use axum::body::Bytes;
use axum::extract::State;
use axum::extract::rejection::BytesRejection;
use axum::http::HeaderMap;
use axum::response::Response;

/// Runs one command line.
pub(super) async fn run(
    State(app): State<App>,
    headers: HeaderMap,
    body: Result<Bytes, BytesRejection>,
) -> Result<Response, ApiError> {
    let (request, session) = from_body::<shell::Request>(body)?;
    let view = app.service.view(session.as_deref())?;
    let name = view.session().to_owned();
    let envelope = blocking(move || shell::run(&view, &request)).await?;
    Ok(reply(&envelope, &headers, &name))
}
