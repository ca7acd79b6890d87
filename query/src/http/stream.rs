//! A question on its way: through the engine, then through a language model where one is asked, and for
//! clients that listen as server-sent events.
//!
//! Events are `doing` (what is being done, and with which page), then one `reply`. The text of an answer is
//! never sent before the guard has passed it.

use super::{ApiError, App};
use crate::llm::note::{Doing, Note, Outcome};
use crate::reply::Reply;
use crate::route::Via;
use crate::service::{Draft, Request};
use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use serde_json::json;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Instant;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

impl App {
    /// Answers a question and notes it; `told` hears what is being done.
    pub(crate) async fn answer(
        &self,
        request: Request,
        told: impl Fn(&Doing) + Send + Sync + 'static,
    ) -> Result<Reply, ApiError> {
        let of_draft = request.clone();
        let draft = self.work(move |service| service.draft(&of_draft)).await?;
        Ok(self.refined(request, draft, told).await)
    }

    /// The model's part, which holds none of the places for questions that run: it takes seconds, and not
    /// of this machine's cores.
    async fn refined(
        &self,
        request: Request,
        draft: Draft,
        told: impl Fn(&Doing) + Send + Sync + 'static,
    ) -> Reply {
        let service = Arc::clone(self.service());
        let reply = if service.llm().is_some() {
            let mut without = draft.reply().clone();
            let refined = tokio::task::spawn_blocking(move || service.refine(draft, &told)).await;
            refined.unwrap_or_else(|panic| {
                tracing::error!("the language model's part failed: {panic}");
                without.provenance.degraded = true;
                without.llm = self.service().llm().map(|llm| Note {
                    mode: llm.settings.mode.name(),
                    model: llm.settings.model.clone(),
                    outcome: Outcome::Degraded,
                    reason: Some("failed"),
                    message: "the language model could not be used; this is the answer without it"
                        .into(),
                });
                without
            })
        } else {
            draft.reply().clone()
        };
        self.service().noted(&request, &reply);
        reply
    }
}

/// Whether a client listens for events.
pub(super) fn is_wanted(headers: &HeaderMap) -> bool {
    let accept = headers.get(header::ACCEPT).and_then(|v| v.to_str().ok()).unwrap_or("");
    accept.split(',').any(|t| {
        let kind = t.split(';').next().unwrap_or("").trim();
        kind.eq_ignore_ascii_case("text/event-stream")
    })
}

/// Answers a question as events. What cannot be asked is an error as ever, before the first event.
pub(super) async fn ask(app: App, request: Request) -> Result<Response, ApiError> {
    let (started, question) = (Instant::now(), request.question.clone());
    let of_draft = request.clone();
    let draft = match app.work(move |service| service.draft(&of_draft)).await {
        Ok(draft) => draft,
        Err(e) => {
            let failed = Err(e);
            app.note_ask(Via::Http, &question, started, &failed);
            return failed.map(|reply| axum::Json(reply).into_response());
        }
    };
    let (sender, receiver) = unbounded_channel::<Event>();
    let session = draft.reply().session.clone();
    told(&sender, &Doing::Searching(question.clone()));
    for citation in &draft.reply().citations {
        told(&sender, &Doing::Reading(citation.path.clone()));
    }
    tokio::spawn(async move {
        let to = sender.clone();
        let reply = app.refined(request, draft, move |doing| told(&to, doing)).await;
        let event = Event::default().event("reply");
        let event = event.json_data(&reply).unwrap_or_else(|e| {
            tracing::error!("a reply cannot be written: {e}");
            Event::default().event("error").data("{}")
        });
        // A client that is gone hears nothing.
        let _ = sender.send(event);
        app.note_ask(Via::Http, &question, started, &Ok(reply));
    });
    let events = futures_util::stream::unfold(receiver, |mut receiver| async move {
        receiver.recv().await.map(|event| (Ok::<_, Infallible>(event), receiver))
    });
    let mut response = Sse::new(events).keep_alive(KeepAlive::default()).into_response();
    let headers = response.headers_mut();
    if let Ok(value) = HeaderValue::from_str(&session) {
        headers.insert(HeaderName::from_static("x-runbook-session"), value);
    }
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    // A proxy that keeps events until there are many of them makes them useless.
    headers.insert(HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no"));
    Ok(response)
}

fn told(sender: &UnboundedSender<Event>, doing: &Doing) {
    let data = json!({"doing": doing.name(), "what": doing.what()}).to_string();
    let _ = sender.send(Event::default().event("doing").data(data));
}
