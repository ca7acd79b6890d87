//! The tree over HTTP: `/v1/fs/*`. Query strings and bodies have the keys of [`crate::tree::request`], and
//! `session` beside them; every reply is an envelope.

use super::routes::Routes;
use super::{ApiError, App};
use crate::openapi::{Errors, Operation};
use crate::shell::help;
use crate::tree::envelope::Envelope;
use crate::tree::limits::Limits;
use crate::tree::operations::mounts_json;
use crate::tree::path::{self, HOME};
use crate::tree::request;
use crate::tree::router::View;
use axum::body::Bytes;
use axum::extract::rejection::{BytesRejection, QueryRejection};
use axum::extract::{DefaultBodyLimit, Query, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use tower_http::compression::{CompressionLayer, CompressionLevel};

/// Keys that are true or false.
const BOOLS: [&str; 9] = [
    "ignore_case",
    "word",
    "line",
    "invert",
    "files_only",
    "count",
    "only_matching",
    "all",
    "recursive",
];
/// Keys that are numbers.
const NUMBERS: [&str; 5] = ["depth", "before", "after", "max_count", "limit"];
/// Keys that may be there more than once.
const LISTS: [&str; 2] = ["include", "exclude"];
/// Places that a client may report at once.
const REPORTED_MAX: usize = 1000;

/// The largest body: a file, and its escapes.
pub(super) const WRITE_BODY_BYTES_MAX: usize = 17 << 20;

type Pairs = Result<Query<Vec<(String, String)>>, QueryRejection>;
type Body = Result<Bytes, BytesRejection>;

/// What every operation can end with.
const TREE: Errors = &[
    (400, "bad_request"),
    (400, "bad_session"),
    (400, "bad_path"),
    (404, "not_found"),
    (429, "busy"),
    (500, "failed"),
    (503, "unavailable"),
    (503, "stopped"),
];

/// What is common to the operations of the tree.
fn enveloped(operation: Operation) -> Operation {
    operation
        .tagged("tree")
        .json::<Enveloped>(200, "content, and the sources that it comes from")
        .other(200, "text/plain; charset=utf-8", "the content alone")
        .errors(TREE)
        .errors_as::<Enveloped>()
}

fn reading<T: JsonSchema>(name: &'static str, about: &'static str) -> Operation {
    enveloped(Operation::get(name, about)).query::<T>().session().errors(&[(400, "bad_query")])
}

fn changing<T: JsonSchema>(name: &'static str, about: &'static str) -> Operation {
    enveloped(Operation::post(name, about))
        .body::<T>()
        .session()
        .errors(&[(400, "bad_json"), (413, "bad_body")])
}

/// The routes.
pub(super) fn routes() -> Routes {
    let same = "unchanged since the `ETag` of `If-None-Match`";
    let list = reading::<request::Ls>("fs_ls", "Lists a directory, or names a file");
    let whole = reading::<request::Read>("fs_read", "Reads a file, or some lines of it")
        .other(200, "application/octet-stream", "the file as it is, where `Accept` names this")
        .errors(&[(400, "is_a_directory"), (404, "no_such_version")]);
    let drawn = reading::<request::Draw>("fs_tree", "Draws a directory and what lies beneath it");
    let found = reading::<request::Find>("fs_find", "Finds files and directories");
    let matched = reading::<request::Grep>("fs_grep", "Searches lines by a pattern")
        .errors(&[(400, "bad_pattern")]);
    let loaded = reading::<request::Load>("fs_load", "All files of the read-only mounts");
    let versions = reading::<request::History>("fs_history", "Lists the versions of a file")
        .errors(&[(400, "is_a_directory")]);
    let able = Operation::get("fs_capabilities", "What the tree and the shell can do")
        .tagged("tree")
        .json::<Capabilities>(200, "mounts, limits, and commands with their options");
    let write_errors: Errors = &[(403, "read_only"), (400, "is_a_directory"), (413, "too_large")];
    let written = changing::<request::Write>("fs_write", "Writes a file").errors(write_errors);
    let edited = changing::<request::Edit>("fs_edit", "Replaces text in a file")
        .errors(write_errors)
        .errors(&[(409, "no_such_text")]);
    let deleted = changing::<request::Delete>("fs_delete", "Deletes a file or a directory")
        .errors(write_errors);
    let noted = changing::<Touched>("fs_touched", "Notes what a client read of what it loaded")
        .errors(&[(400, "too_many")]);
    let run = changing::<crate::shell::Request>("shell", "Runs one command line");
    Routes::new()
        .route("/v1/fs/ls", get(ls), [list.bare(304, same)])
        .route("/v1/fs/read", get(read), [whole.bare(304, same)])
        .route("/v1/fs/tree", get(draw), [drawn.bare(304, same)])
        .route("/v1/fs/find", get(find), [found.bare(304, same)])
        .route("/v1/fs/grep", get(grep), [matched.bare(304, same)])
        .route("/v1/fs/load", get(load), [loaded.bare(304, same)])
        .route("/v1/fs/history", get(history), [versions])
        .route("/v1/fs/capabilities", get(capabilities), [able])
        .route("/v1/fs/write", post(write), [written])
        .route("/v1/fs/edit", post(edit), [edited])
        .route("/v1/fs/delete", post(delete), [deleted])
        .route("/v1/fs/touched", post(touched), [noted])
        .route("/v1/shell", post(super::shell::run), [run])
        .map(|router| {
            router
                .layer(DefaultBodyLimit::max(WRITE_BODY_BYTES_MAX))
                .layer(CompressionLayer::new().quality(CompressionLevel::Fastest))
        })
}

/// An envelope as it is sent.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Envelope")]
struct Enveloped<'a> {
    #[serde(flatten)]
    envelope: &'a Envelope,
    /// On whose behalf.
    session: &'a str,
    /// Names the line in the server's log; only where there is an error.
    #[serde(skip_serializing_if = "Option::is_none")]
    request_id: Option<String>,
}

/// What the tree and the shell can do.
#[derive(Serialize, JsonSchema)]
struct Capabilities<'a> {
    /// Where stores are mounted, whether they can be written, and whether they keep versions.
    mounts: Value,
    /// The bounds in force.
    limits: &'a Limits,
    /// Commands of the shell, with their options.
    commands: Value,
    /// How a pattern can be read.
    patterns: [&'static str; 4],
    /// Where a path without `/` starts.
    home: &'static str,
    /// Changes with the generations that are served.
    stamp: String,
}

/// A request and the session that it names.
pub(super) fn parse<T: DeserializeOwned>(
    mut keys: Map<String, Value>,
) -> Result<(T, Option<String>), ApiError> {
    let session = match keys.remove("session") {
        None | Some(Value::Null) => None,
        Some(Value::String(name)) => Some(name),
        Some(_) => return Err(bad("bad_session", "`session` is a text".into())),
    };
    let request = serde_json::from_value(Value::Object(keys))
        .map_err(|e| bad("bad_request", e.to_string()))?;
    Ok((request, session))
}

fn bad(code: &'static str, message: String) -> ApiError {
    ApiError::new(StatusCode::BAD_REQUEST, code, message, "docs/http-api.md names the keys")
}

fn from_pairs<T: DeserializeOwned>(pairs: Pairs) -> Result<(T, Option<String>), ApiError> {
    let Query(pairs) = pairs.map_err(|e| bad("bad_query", e.body_text()))?;
    let mut keys = Map::new();
    for (key, text) in pairs {
        let wrong = |kind: &str| {
            bad("bad_request", format!("`{key}` is {kind}, not `{}`", path::shown(&text)))
        };
        let value = if BOOLS.contains(&key.as_str()) {
            match text.as_str() {
                "" | "1" | "true" | "yes" => Value::Bool(true),
                "0" | "false" | "no" => Value::Bool(false),
                _ => return Err(wrong("true or false")),
            }
        } else if NUMBERS.contains(&key.as_str()) {
            json!(text.parse::<u64>().map_err(|_| wrong("a number"))?)
        } else if LISTS.contains(&key.as_str()) {
            if let Some(Value::Array(list)) = keys.get_mut(&key) {
                list.push(Value::String(text));
                continue;
            }
            json!([text])
        } else {
            Value::String(text)
        };
        if keys.insert(key.clone(), value).is_some() {
            return Err(bad("bad_request", format!("`{key}` is there twice")));
        }
    }
    parse(keys)
}

pub(super) fn from_body<T: DeserializeOwned>(body: Body) -> Result<(T, Option<String>), ApiError> {
    let body =
        body.map_err(|e| ApiError::new(e.status(), "bad_body", e.body_text(), "send less"))?;
    parse(serde_json::from_slice(&body).map_err(|e| bad("bad_json", e.to_string()))?)
}

/// Runs an operation on a thread of its own.
async fn operate(
    app: App,
    headers: &HeaderMap,
    session: Option<String>,
    work: impl FnOnce(&View) -> Envelope + Send + 'static,
) -> Result<Response, ApiError> {
    let view = app.service.view(session.as_deref())?;
    let name = view.session().to_owned();
    let envelope = blocking(move || work(&view)).await?;
    Ok(reply(&envelope, headers, &name))
}

/// Runs what blocks.
pub(super) async fn blocking(
    work: impl FnOnce() -> Envelope + Send + 'static,
) -> Result<Envelope, ApiError> {
    tokio::task::spawn_blocking(work).await.map_err(|panic| {
        tracing::error!("an operation failed: {panic}");
        ApiError::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "failed",
            "the operation could not be done",
            "see the server's log",
        )
    })
}

/// An envelope as JSON, or its text alone where the client wants text.
pub(super) fn reply(envelope: &Envelope, headers: &HeaderMap, session: &str) -> Response {
    let status = match envelope.error.as_ref().map(|e| e.code.as_str()) {
        Some("busy") => StatusCode::TOO_MANY_REQUESTS,
        // A command has its own way to fail.
        _ if envelope.exit_code.is_some() => StatusCode::OK,
        // What was found before it failed is worth having.
        _ if !envelope.content.is_empty() => StatusCode::OK,
        None => StatusCode::OK,
        Some("not_found" | "no_such_version") => StatusCode::NOT_FOUND,
        Some("read_only") => StatusCode::FORBIDDEN,
        Some("no_such_text") => StatusCode::CONFLICT,
        Some("too_large") => StatusCode::PAYLOAD_TOO_LARGE,
        Some("unavailable" | "stopped") => StatusCode::SERVICE_UNAVAILABLE,
        Some(_) => StatusCode::BAD_REQUEST,
    };
    let mut response = if wants_text(headers) {
        let mut text = envelope.content.clone();
        if let Some(e) = &envelope.error {
            text.push_str(&format!("error: {}\n", e.message));
            if !e.hint.is_empty() {
                text.push_str(&format!("hint: {}\n", e.hint));
            }
        }
        let kind = (header::CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
        (status, [kind], text).into_response()
    } else {
        let request_id = envelope.error.is_some().then(super::request_id);
        let body = Enveloped { envelope, session, request_id };
        (status, axum::Json(body)).into_response()
    };
    response.extensions_mut().insert(super::noted::Noted::of(envelope, session));
    let headers = response.headers_mut();
    if let Ok(name) = HeaderValue::from_str(session) {
        headers.insert(HeaderName::from_static("x-runbook-session"), name);
    }
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    if status == StatusCode::TOO_MANY_REQUESTS {
        headers.insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
    }
    response
}

/// A file as it is, whole.
async fn bytes(
    app: App,
    request: request::Read,
    session: Option<String>,
) -> Result<Response, ApiError> {
    let view = app.service.view(session.as_deref())?;
    let (sender, receiver) = tokio::sync::oneshot::channel();
    let envelope = blocking(move || {
        let read = path::resolve(HOME, &request.path).and_then(|path| {
            let content = match &request.version {
                Some(version) => view.read_version(&path, version)?,
                None => view.read_bytes(&path)?,
            };
            Ok((path, content.to_vec()))
        });
        match read {
            Ok((path, content)) => {
                let _ = sender.send(content);
                let source = view.source(&path, None);
                view.finish(Envelope::new(String::new(), vec![source]), None)
            }
            Err(e) => Envelope::failed(&e),
        }
    })
    .await?;
    match receiver.await {
        Ok(content) => {
            let kind = HeaderValue::from_static("application/octet-stream");
            let sniff = HeaderValue::from_static("nosniff");
            let headers = [(header::CONTENT_TYPE, kind), (header::X_CONTENT_TYPE_OPTIONS, sniff)];
            Ok((headers, content).into_response())
        }
        Err(_) => Ok(reply(&envelope, &HeaderMap::new(), "")),
    }
}

fn wants_text(headers: &HeaderMap) -> bool {
    wants(headers, "text/plain")
}

fn wants(headers: &HeaderMap, kind: &str) -> bool {
    headers
        .get(header::ACCEPT)
        .and_then(|v| v.to_str().ok())
        .is_some_and(|v| v.trim_start().starts_with(kind))
}

/// The tag of what lies at a path, where all of it is read-only: it changes with the generation.
fn tag(view: &View, path: Option<&str>, uri: &Uri, headers: &HeaderMap) -> Option<String> {
    let path = path::resolve(HOME, path.filter(|p| !p.is_empty()).unwrap_or(HOME)).ok()?;
    // A mount that is not open may be so a moment later.
    let closed = view.mounts().iter().any(|m| !m.store.writable() && m.store.stamp().is_none());
    let fixed = view.mounts().iter().all(|m| {
        let apart = path::beneath(&path, &m.at).is_none() && path::beneath(&m.at, &path).is_none();
        apart || m.store.stamp().is_some()
    });
    let form = if wants_text(headers) { "t" } else { "j" };
    let query = blake3::hash(uri.to_string().as_bytes()).to_hex();
    (fixed && !closed).then(|| format!("W/\"{}-{}{form}\"", view.stamp(), &query[..8]))
}

/// The same as [`operate`], for what may be cached by its tag.
async fn cached(
    app: App,
    (uri, headers): (Uri, HeaderMap),
    (path, session): (Option<String>, Option<String>),
    work: impl FnOnce(&View) -> Envelope + Send + 'static,
) -> Result<Response, ApiError> {
    let view = app.service.view(session.as_deref())?;
    let tag = tag(&view, path.as_deref(), &uri, &headers);
    let known = headers.get_all(header::IF_NONE_MATCH).iter().filter_map(|v| v.to_str().ok());
    let mut tags = known.flat_map(|v| v.split(',')).map(str::trim);
    let cache = |response: &mut Response, tag: &str| {
        let headers = response.headers_mut();
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("private, no-cache"));
        if let Ok(tag) = HeaderValue::from_str(tag) {
            headers.insert(header::ETAG, tag);
        }
    };
    // In a session a read is evidence, so it is done whether or not the client has the text.
    if let Some(tag) = tag.as_deref().filter(|t| session.is_none() && tags.any(|known| known == *t))
    {
        let mut response = StatusCode::NOT_MODIFIED.into_response();
        cache(&mut response, tag);
        return Ok(response);
    }
    let mut response = operate(app, &headers, session, work).await?;
    if let Some(tag) = tag.filter(|_| response.status() == StatusCode::OK) {
        cache(&mut response, &tag);
    }
    Ok(response)
}

async fn ls(
    State(app): State<App>,
    uri: Uri,
    headers: HeaderMap,
    pairs: Pairs,
) -> Result<Response, ApiError> {
    let (request, session) = from_pairs::<request::Ls>(pairs)?;
    cached(app, (uri, headers), (request.path.clone(), session), move |v| v.ls(&request)).await
}

async fn read(
    State(app): State<App>,
    uri: Uri,
    headers: HeaderMap,
    pairs: Pairs,
) -> Result<Response, ApiError> {
    let (request, session) = from_pairs::<request::Read>(pairs)?;
    if wants(&headers, "application/octet-stream") {
        return bytes(app, request, session).await;
    }
    cached(app, (uri, headers), (Some(request.path.clone()), session), move |v| v.read(&request))
        .await
}

async fn draw(
    State(app): State<App>,
    uri: Uri,
    headers: HeaderMap,
    pairs: Pairs,
) -> Result<Response, ApiError> {
    let (request, session) = from_pairs::<request::Draw>(pairs)?;
    cached(app, (uri, headers), (request.path.clone(), session), move |v| v.draw(&request)).await
}

async fn find(
    State(app): State<App>,
    uri: Uri,
    headers: HeaderMap,
    pairs: Pairs,
) -> Result<Response, ApiError> {
    let (request, session) = from_pairs::<request::Find>(pairs)?;
    cached(app, (uri, headers), (request.path.clone(), session), move |v| v.find(&request)).await
}

async fn grep(
    State(app): State<App>,
    uri: Uri,
    headers: HeaderMap,
    pairs: Pairs,
) -> Result<Response, ApiError> {
    let (request, session) = from_pairs::<request::Grep>(pairs)?;
    cached(app, (uri, headers), (request.path.clone(), session), move |v| v.grep(&request)).await
}

async fn load(
    State(app): State<App>,
    uri: Uri,
    headers: HeaderMap,
    pairs: Pairs,
) -> Result<Response, ApiError> {
    let (request, _) = from_pairs::<request::Load>(pairs)?;
    cached(app, (uri, headers), (request.path.clone(), None), move |v| v.load(&request)).await
}

async fn history(
    State(app): State<App>,
    headers: HeaderMap,
    pairs: Pairs,
) -> Result<Response, ApiError> {
    let (request, session) = from_pairs::<request::History>(pairs)?;
    operate(app, &headers, session, move |v| v.history(&request)).await
}

async fn write(
    State(app): State<App>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    let (request, session) = from_body::<request::Write>(body)?;
    operate(app, &headers, session, move |v| v.write(&request)).await
}

async fn edit(
    State(app): State<App>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    let (request, session) = from_body::<request::Edit>(body)?;
    operate(app, &headers, session, move |v| v.edit(&request)).await
}

async fn delete(
    State(app): State<App>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    let (request, session) = from_body::<request::Delete>(body)?;
    operate(app, &headers, session, move |v| v.delete(&request)).await
}

/// What a client read of the tree that it loaded.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Touched {
    /// At most 1000.
    places: Vec<Reported>,
}

/// A place that was read.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Reported {
    /// The file.
    path: String,
    /// First and last line; all of it when left out.
    #[serde(default)]
    lines: Option<[u32; 2]>,
}

/// Notes as evidence what a client says that it read; a place that is not there is not noted.
async fn touched(
    State(app): State<App>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    let (request, session) = from_body::<Touched>(body)?;
    if request.places.len() > REPORTED_MAX {
        return Err(bad("too_many", format!("{REPORTED_MAX} places at most")));
    }
    operate(app, &headers, session, move |view| {
        let (mut places, mut unknown) = (Vec::new(), 0_usize);
        for place in request.places {
            match path::resolve(HOME, &place.path) {
                Ok(path) if view.stat(&path).is_ok() => {
                    let lines = place.lines.filter(|l| l[0] > 0 && l[0] <= l[1]);
                    places.push(view.source(&path, lines));
                }
                _ => unknown += 1,
            }
        }
        let data = json!({"noted": places.len(), "unknown": unknown});
        let content = format!("noted {}\n", places.len());
        view.finish(Envelope { data, ..Envelope::new(content, places) }, None)
    })
    .await
}

/// What the tree and the shell can do: commands, options, limits, mounts.
async fn capabilities(State(app): State<App>) -> Result<Response, ApiError> {
    let view = app.service.view(None)?;
    let body = Capabilities {
        mounts: mounts_json(&view),
        limits: view.limits(),
        commands: help::as_data(),
        patterns: ["fixed", "basic", "extended", "rust"],
        home: HOME,
        stamp: view.stamp(),
    };
    Ok(axum::Json(body).into_response())
}
