//! The routes with what they do: none can be added without its description.

use super::{
    App, ask_get, ask_post, cite, feedback, fs, mcp, metrics, page, readyz, search, status_page,
};
use crate::openapi::{self, Errors, Operation};
use crate::reply::Reply;
use crate::status::Status;
use axum::Router;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, any, get, post};
use serde_json::Value;
use std::sync::LazyLock;

/// A router, and the description of every operation of it.
pub(super) struct Routes {
    router: Router<App>,
    operations: Vec<(&'static str, Operation)>,
}

impl Routes {
    pub(super) fn new() -> Self {
        Self { router: Router::new(), operations: Vec::new() }
    }

    /// Adds a route, and one operation for each method that it takes.
    pub(super) fn route(
        mut self,
        path: &'static str,
        methods: MethodRouter<App>,
        operations: impl IntoIterator<Item = Operation>,
    ) -> Self {
        self.router = self.router.route(path, methods);
        self.operations.extend(operations.into_iter().map(|o| (path, o)));
        self
    }

    /// Adds the routes of another group.
    pub(super) fn merge(mut self, other: Self) -> Self {
        self.router = self.router.merge(other.router);
        self.operations.extend(other.operations);
        self
    }

    /// Puts a layer around the routes so far.
    pub(super) fn map(mut self, change: impl FnOnce(Router<App>) -> Router<App>) -> Self {
        self.router = change(self.router);
        self
    }

    /// The router alone.
    pub(super) fn into_router(self) -> Router<App> {
        self.router
    }
}

/// What a question can end with.
pub(super) const QUESTION: Errors = &[
    (400, "question_empty"),
    (400, "k_out_of_range"),
    (400, "no_such_repository"),
    (400, "no_such_scope"),
    (400, "bad_session"),
    (413, "question_too_long"),
    (429, "too_many_questions"),
    (500, "index_failed"),
    (500, "failed"),
    (503, "not_ready"),
    (503, "too_late"),
];

/// Text for a terminal.
const TEXT: &str = "text/plain; charset=utf-8";

/// The routes of questions, agents and the daemon itself.
pub(super) fn plain() -> Routes {
    questions().merge(agents()).merge(daemon())
}

fn questions() -> Routes {
    let asked = |o: Operation| {
        o.tagged("questions")
            .json::<Reply>(200, "an answer, or a refusal: `I do not know`")
            .other(
                200,
                TEXT,
                "the same for a terminal; `part=command` or `part=link` for that alone",
            )
            .errors(QUESTION)
    };
    Routes::new()
        .route(
            "/v1/ask",
            post(ask_post).get(ask_get),
            [
                asked(Operation::post("ask", "Answers a question"))
                    .body::<super::AskBody>()
                    .errors(&[(400, "bad_json"), (400, "bad_body")]),
                asked(Operation::get("ask_get", "Answers a question in the query string"))
                    .query::<super::AskQuery>()
                    .errors(&[(400, "bad_query")]),
            ],
        )
        .route(
            "/v1/search",
            get(search::search),
            [Operation::get("search", "Sections for a question, without a verdict")
                .tagged("questions")
                .query::<super::AskQuery>()
                .json::<search::SearchReply>(
                    200,
                    "sections, or the advice to look at the files first",
                )
                .errors(QUESTION)
                .errors(&[(400, "bad_query")])],
        )
        .route("/v1/feedback", post(feedback::post), [feedback::operation()])
}

fn agents() -> Routes {
    let message = |o: Operation| {
        o.tagged("agents").errors(&[
            (400, "bad_message"),
            (404, "no_such_session"),
            (406, "not_acceptable"),
            (429, "too_many_sessions"),
        ])
    };
    Routes::new()
        .route(
            "/v1/cite",
            post(cite::cite),
            [Operation::post("cite", "Checks an answer by what a session has seen")
                .tagged("agents")
                .body::<cite::CiteBody>()
                .json::<cite::CiteReply>(200, "the verdict, with citations")
                .errors(QUESTION)
                .errors(&[(400, "bad_json"), (400, "bad_answer")])],
        )
        .route(
            "/v1/index",
            get(search::index),
            [Operation::get("index", "The tree in at most 8 KB, for an agent's instructions")
                .tagged("agents")
                .other(200, TEXT, "headings by document")],
        )
        .route(
            "/mcp",
            any(mcp::serve),
            [
                message(Operation::post("mcp_send", "A message of the Model Context Protocol"))
                    .body::<Value>()
                    .json::<Value>(200, "the reply")
                    .other(200, "text/event-stream", "the reply as a stream")
                    .bare(202, "taken; nothing comes back"),
                message(Operation::get("mcp_listen", "The stream of an MCP session"))
                    .other(200, "text/event-stream", "messages of the server")
                    .errors(&[(405, "method_not_allowed")]),
                message(Operation::delete("mcp_end", "Ends an MCP session"))
                    .bare(204, "it is gone")
                    .errors(&[(405, "method_not_allowed")]),
            ],
        )
}

fn daemon() -> Routes {
    let daemon = |o: Operation| o.tagged("daemon");
    Routes::new()
        .route(
            "/v1/status",
            get(status_page),
            [daemon(Operation::get("status", "What is served, how old it is, what is wrong"))
                .json::<Status>(200, "the first repository, and all of them in `repos`")],
        )
        .route(
            "/livez",
            get(|| async { "ok\n" }),
            [daemon(Operation::get("livez", "Whether the process runs")).other(200, TEXT, "`ok`")],
        )
        .route(
            "/readyz",
            get(readyz),
            [daemon(Operation::get("readyz", "Whether every repository has a generation"))
                .other(200, TEXT, "`ready`")
                .errors(&[(503, "not_ready")])],
        )
        .route(
            "/metrics",
            get(metrics::scrape),
            [daemon(Operation::get("metrics", "Counters for Prometheus")).other(
                200,
                crate::metrics::CONTENT_TYPE,
                "OpenMetrics text",
            )],
        )
        .route(
            "/openapi.json",
            get(serve_document),
            [daemon(Operation::get("openapi", "This description"))
                .json::<Value>(200, "OpenAPI 3.1")],
        )
}

/// The OpenAPI description of all routes.
#[must_use]
pub fn openapi() -> Value {
    let all = plain().merge(fs::routes()).merge(page::routes());
    openapi::document(&all.operations)
}

static DOCUMENT: LazyLock<String> = LazyLock::new(|| openapi().to_string());

async fn serve_document() -> Response {
    ([(header::CONTENT_TYPE, "application/json")], DOCUMENT.as_str()).into_response()
}
