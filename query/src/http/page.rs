//! The page's routes: `/`, `/read`, `/browse`, `/status`, and its two files.

use super::routes::Routes;
use super::{ApiError, App, ErrorCode, feedback};
use crate::metrics::Stage;
use crate::openapi::Operation;
use crate::page::{SECURITY_POLICY, answer, assets, browse, layout, reader, status};
use crate::scan;
use crate::service::Request as AskRequest;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use maud::Markup;
use runbook_shared::retrieval::corpus::Corpus;
use schemars::JsonSchema;
use serde::Deserialize;
use std::sync::Arc;
use std::time::Instant;

/// The largest document that is rendered, in bytes (1 MiB); a larger one is shown as its source.
const RENDERED_BYTES_MAX: usize = 1024 * 1024;

pub(super) fn routes() -> Routes {
    let html = "text/html; charset=utf-8";
    let page = |name, about| Operation::get(name, about).tagged("page").other(200, html, "a page");
    let not_here = "it is not here, said on a page";
    let answer = page("page_ask", "The box, and the answer to `q`")
        .query::<AskQuery>()
        .other(400, html, "what cannot be asked, said on a page")
        .other(413, html, "the question is too long, said on a page")
        .other(429, html, "too many questions are waiting, said on a page")
        .other(503, html, "not ready or too late, said on a page");
    Routes::new()
        .route("/", get(ask), [answer])
        .route(
            "/reported",
            get(reported),
            [page("page_reported", "Thanks for a report").query::<AskQuery>()],
        )
        .route("/status", get(state), [page("page_status", "What is served, skipped and asked")])
        .route(
            "/browse",
            get(browse_root),
            [page("page_browse", "The tree from its root").query::<ReadQuery>()],
        )
        .route(
            "/browse/{*dir}",
            get(browse_dir),
            [page("page_directory", "A directory")
                .path("its path")
                .query::<ReadQuery>()
                .other(404, html, not_here)],
        )
        .route(
            "/read/{*path}",
            get(read),
            [page("page_read", "A document as it was indexed")
                .path("its path")
                .query::<ReadQuery>()
                .bare(303, "the path is a directory: to `/browse`")
                .other(404, html, not_here)],
        )
        .route(
            "/assets/{file}",
            get(asset),
            [Operation::get("page_asset", "Style and script of the page")
                .tagged("page")
                .path("its name")
                .other(200, "text/css; charset=utf-8", "the style")
                .other(200, "text/javascript; charset=utf-8", "the script")
                .other(200, "image/svg+xml", "the icon")
                .bare(404, "no such file")],
        )
        .route(
            "/favicon.ico",
            get(|| async { StatusCode::NO_CONTENT }),
            [Operation::get("page_icon", "No icon").tagged("page").bare(204, "none")],
        )
}

/// A page with the headers that every page has.
fn html(status: StatusCode, markup: Markup) -> Response {
    let mut response = (status, markup.into_string()).into_response();
    let headers = response.headers_mut();
    for (name, value) in [
        (header::CONTENT_TYPE, "text/html; charset=utf-8"),
        (header::CONTENT_SECURITY_POLICY, SECURITY_POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        // Forms need an Origin, and other sites need not know what is asked here.
        (header::REFERRER_POLICY, "same-origin"),
        (header::CACHE_CONTROL, "no-store"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    for (name, value) in [
        ("cross-origin-opener-policy", "same-origin"),
        ("cross-origin-resource-policy", "same-origin"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}

/// An error as a page.
pub(super) fn failed(error: ApiError, question: &str) -> Response {
    let title = match error.status {
        StatusCode::TOO_MANY_REQUESTS => "Busy",
        StatusCode::SERVICE_UNAVAILABLE => "Not ready",
        StatusCode::NOT_FOUND => "Not found",
        s if s.is_server_error() => "Something failed",
        _ => "That cannot be asked",
    };
    let page = layout::error(title, &error.message, &error.hint, question);
    let mut response = html(error.status, page);
    response.extensions_mut().insert(ErrorCode(error.code));
    response
}

/// What is asked for and is nowhere: as a page for a browser, else in the shape of all errors.
pub(super) async fn nowhere(headers: HeaderMap) -> Response {
    let accept = headers.get(header::ACCEPT).and_then(|v| v.to_str().ok()).unwrap_or("");
    if accept.contains("text/html") {
        return not_found("That page");
    }
    ApiError::new(
        StatusCode::NOT_FOUND,
        "not_found",
        "there is no such page",
        "see docs/http-api.md for the routes",
    )
    .into_response()
}

fn not_found(what: &str) -> Response {
    failed(
        ApiError::new(
            StatusCode::NOT_FOUND,
            "no_such_document",
            format!("{what} is not here."),
            "It may have been moved or removed since the link was made, or was not indexed.",
        ),
        "",
    )
}

/// What is asked.
#[derive(Debug, Default, Deserialize, JsonSchema)]
struct AskQuery {
    /// The question.
    #[serde(default)]
    q: String,
    /// As of `/v1/ask`.
    scope: Option<String>,
    /// As of `/v1/ask`.
    session: Option<String>,
}

async fn ask(State(app): State<App>, query: Result<Query<AskQuery>, QueryRejection>) -> Response {
    let query = query.map(|Query(q)| q).unwrap_or_default();
    let snapshot = app.service.snapshot();
    if query.q.trim().is_empty() {
        return html(StatusCode::OK, answer::home(&snapshot));
    }
    let question = query.q;
    let scope = query.scope.filter(|s| !s.is_empty());
    let request = AskRequest {
        question: question.clone(),
        scope: scope.clone(),
        session: query.session.filter(|s| !s.is_empty()),
        ..AskRequest::default()
    };
    let reply = match app.answer(request.clone(), |_| {}).await {
        Ok(reply) => reply,
        Err(e) => return failed(e, &question),
    };
    let page = app
        .work(move |service| {
            let started = Instant::now();
            let page = answer::page(&answer::Asked {
                question: &request.question,
                scope: request.scope.as_deref(),
                reply: &reply,
                snapshot: &service.snapshot(),
                takes_reports: service.journal().reports.is_some(),
            });
            service.journal().metrics.stage(Stage::Render, started.elapsed());
            Ok(page)
        })
        .await;
    match page {
        Ok(page) => html(StatusCode::OK, page),
        Err(e) => failed(e, &question),
    }
}

async fn reported(Query(query): Query<AskQuery>) -> Response {
    html(StatusCode::OK, feedback::thanks(&query.q))
}

async fn state(State(app): State<App>) -> Response {
    html(StatusCode::OK, status::page(&app.service))
}

async fn asset(uri: Uri) -> Response {
    match assets::find(uri.path()) {
        None => StatusCode::NOT_FOUND.into_response(),
        Some(asset) => (
            [
                (header::CONTENT_TYPE, asset.kind),
                (header::CACHE_CONTROL, "public, max-age=31536000, immutable"),
                (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
                (header::CONTENT_SECURITY_POLICY, "default-src 'none'"),
            ],
            asset.content,
        )
            .into_response(),
    }
}

/// What of a document is shown.
#[derive(Debug, Default, Deserialize, JsonSchema)]
struct ReadQuery {
    /// The repository, where several are served.
    repo: Option<String>,
    /// Lines to mark: `3-9`.
    lines: Option<String>,
    /// `source` for the source.
    view: Option<String>,
}

/// The open repository of a name; the first one that has what is asked for where none is named.
fn choose(
    corpora: &[Arc<Corpus>],
    repo: Option<&str>,
    has: impl Fn(&Corpus) -> bool,
) -> Option<Arc<Corpus>> {
    corpora.iter().filter(|c| repo.is_none_or(|r| c.repo == r)).find(|c| has(c)).cloned()
}

async fn browse_root(
    State(app): State<App>,
    query: Result<Query<ReadQuery>, QueryRejection>,
) -> Response {
    let query = query.map(|Query(q)| q).unwrap_or_default();
    let corpora = app.service.snapshot().corpora();
    if corpora.len() > 1 && query.repo.is_none() {
        return html(StatusCode::OK, browse::repositories(&corpora));
    }
    directory(&corpora, query.repo.as_deref(), "")
}

async fn browse_dir(
    State(app): State<App>,
    Path(dir): Path<String>,
    query: Result<Query<ReadQuery>, QueryRejection>,
) -> Response {
    let query = query.map(|Query(q)| q).unwrap_or_default();
    directory(&app.service.snapshot().corpora(), query.repo.as_deref(), dir.trim_matches('/'))
}

fn directory(corpora: &[Arc<Corpus>], repo: Option<&str>, dir: &str) -> Response {
    let Some(corpus) = choose(corpora, repo, |c| !c.scope(Some(dir)).is_empty() || dir.is_empty())
    else {
        return not_found(if dir.is_empty() { "That repository" } else { dir });
    };
    match browse::directory(&corpus, corpora.len() > 1, dir) {
        Some(page) => html(StatusCode::OK, page),
        None => not_found(dir),
    }
}

async fn read(
    State(app): State<App>,
    Path(path): Path<String>,
    query: Result<Query<ReadQuery>, QueryRejection>,
) -> Response {
    let query = query.map(|Query(q)| q).unwrap_or_default();
    let snapshot = app.service.snapshot();
    let corpora = snapshot.corpora();
    let has = |c: &Corpus| c.generation.document(&path).is_some();
    let Some(corpus) = choose(&corpora, query.repo.as_deref(), has) else {
        let under = |c: &Corpus| !c.scope(Some(&path)).is_empty();
        return match choose(&corpora, query.repo.as_deref(), under) {
            // A directory: a link of a document may lead to one.
            Some(_) => {
                let to = browse::address(query.repo.as_deref(), path.trim_matches('/'));
                (StatusCode::SEE_OTHER, [(header::LOCATION, to)]).into_response()
            }
            None => not_found(&path),
        };
    };
    let several = corpora.len() > 1;
    let page = app
        .work(move |_| {
            let Some(document) = corpus.generation.document(&path) else { return Ok(Ok(None)) };
            Ok(scan::text::read(&corpus.generation, document).map(|text| {
                let cited = query.lines.as_deref().and_then(reader::parse_lines);
                let source =
                    query.view.as_deref() == Some("source") || text.len() > RENDERED_BYTES_MAX;
                let text = text.as_str();
                let view = reader::View { corpus: &corpus, several, document, text, cited, source };
                Some(reader::page(&view))
            }))
        })
        .await;
    match page {
        Ok(Ok(Some(page))) => html(StatusCode::OK, page),
        Ok(Ok(None)) => not_found("That document"),
        Ok(Err(e)) => {
            tracing::error!("a document cannot be read: {e}");
            failed(
                ApiError::new(
                    StatusCode::INTERNAL_SERVER_ERROR,
                    "unreadable",
                    "The document cannot be read.",
                    "A newer index may have replaced it: try again.",
                ),
                "",
            )
        }
        Err(e) => failed(e, ""),
    }
}
