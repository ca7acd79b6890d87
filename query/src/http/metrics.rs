//! `GET /metrics`: counters for Prometheus.

use super::App;
use crate::metrics::CONTENT_TYPE;
use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};

pub(super) async fn scrape(State(app): State<App>) -> Response {
    let text = app.service.journal().metrics.encode(&app.service);
    ([(header::CONTENT_TYPE, CONTENT_TYPE), (header::CACHE_CONTROL, "no-store")], text)
        .into_response()
}
