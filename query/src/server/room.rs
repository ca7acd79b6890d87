//! Room for connections: a fixed number of seats. Whoever holds one without a request in progress gives it up
//! when somebody else needs it, the longest-seated first, so that silent clients cannot keep others out.

use super::slow::{Held, Slow};
use crate::access::Peer;
use crate::http::BODY_BYTES_MOST;
use axum::body::Body;
use axum::response::{IntoResponse, Response};
use hyper::body::{Body as _, Incoming};
use hyper::header::{CONNECTION, CONTENT_LENGTH, HeaderValue, TRANSFER_ENCODING};
use hyper::service::Service;
use hyper::{Request, StatusCode};
use serde_json::json;
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::AbortHandle;

/// How often a full room is looked through for somebody who is silent.
const LOOK: Duration = Duration::from_millis(50);

/// The seats.
pub(super) struct Room {
    free: Arc<Semaphore>,
    seated: Mutex<Seated>,
}

#[derive(Default)]
struct Seated {
    next: u64,
    by_number: BTreeMap<u64, Sitter>,
}

struct Sitter {
    requests: Arc<AtomicUsize>,
    end: Option<AbortHandle>,
}

/// A seat; dropped with the connection.
pub(super) struct Seat {
    room: Arc<Room>,
    number: u64,
    requests: Arc<AtomicUsize>,
    _permit: OwnedSemaphorePermit,
}

impl Room {
    pub(super) fn new(seats: usize) -> Arc<Self> {
        Arc::new(Self { free: Arc::new(Semaphore::new(seats)), seated: Mutex::default() })
    }

    fn seated(&self) -> MutexGuard<'_, Seated> {
        self.seated.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A seat, as soon as there is one.
    ///
    /// # Errors
    /// Never while the room is there.
    pub(super) async fn seat(self: &Arc<Self>) -> std::io::Result<Seat> {
        let permit = loop {
            match Arc::clone(&self.free).try_acquire_owned() {
                Ok(permit) => break permit,
                Err(_) => self.clear_one(),
            }
            let wait = tokio::time::timeout(LOOK, Arc::clone(&self.free).acquire_owned());
            if let Ok(permit) = wait.await {
                break permit.map_err(std::io::Error::other)?;
            }
        };
        let requests = Arc::<AtomicUsize>::default();
        let mut seated = self.seated();
        let number = seated.next;
        seated.next += 1;
        seated.by_number.insert(number, Sitter { requests: Arc::clone(&requests), end: None });
        drop(seated);
        Ok(Seat { room: Arc::clone(self), number, requests, _permit: permit })
    }

    /// Ends the connection that has been there longest among those without a request.
    fn clear_one(&self) {
        let seated = self.seated();
        let silent = |s: &&Sitter| s.requests.load(Ordering::Acquire) == 0;
        if let Some(end) = seated.by_number.values().filter(silent).find_map(|s| s.end.clone()) {
            tracing::debug!("a silent connection is closed for a new one");
            end.abort();
        }
    }

    /// Says how the connection on a seat is ended.
    pub(super) fn ended_by(&self, number: u64, end: AbortHandle) {
        // The connection may be over already.
        if let Some(sitter) = self.seated().by_number.get_mut(&number) {
            sitter.end = Some(end);
        }
    }
}

impl Seat {
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// The service of this connection: its requests are counted and their bodies have a deadline.
    /// Each request carries who the peer is.
    pub(super) fn watched<S>(&self, inner: S, peer: Peer, body_within: Duration) -> Watched<S> {
        Watched { inner: Arc::new(inner), requests: Arc::clone(&self.requests), peer, body_within }
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.room.seated().by_number.remove(&self.number);
    }
}

/// A request in progress, until its response has been sent.
pub(super) struct Busy(Arc<AtomicUsize>);

impl Busy {
    fn new(requests: &Arc<AtomicUsize>) -> Self {
        requests.fetch_add(1, Ordering::AcqRel);
        Self(Arc::clone(requests))
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

/// A service whose requests are counted.
pub(super) struct Watched<S> {
    inner: Arc<S>,
    requests: Arc<AtomicUsize>,
    peer: Peer,
    body_within: Duration,
}

type Answer = Pin<Box<dyn Future<Output = Result<Response<Held>, Infallible>> + Send>>;

impl<S> Service<Request<Incoming>> for Watched<S>
where
    S: Service<Request<Slow<Incoming>>, Response = Response, Error = Infallible>
        + Send
        + Sync
        + 'static,
    S::Future: Send,
{
    type Response = Response<Held>;
    type Error = Infallible;
    type Future = Answer;

    fn call(&self, mut request: Request<Incoming>) -> Answer {
        request.extensions_mut().insert(self.peer);
        let busy = Busy::new(&self.requests);
        let (inner, within) = (Arc::clone(&self.inner), self.body_within);
        Box::pin(async move {
            let headers = request.headers();
            // Two programs may not agree on where such a request ends, and what follows it.
            let both =
                headers.contains_key(TRANSFER_ENCODING) && headers.contains_key(CONTENT_LENGTH);
            let response = if both {
                let message = "a request has either a Content-Length or a Transfer-Encoding";
                refused(StatusCode::BAD_REQUEST, "ambiguous_length", message, "send one of them")
            } else if request.body().size_hint().lower() > BODY_BYTES_MOST {
                let message = format!("no body here is larger than {BODY_BYTES_MOST} bytes");
                let hint = "send less in one request";
                refused(StatusCode::PAYLOAD_TOO_LARGE, "body_too_large", &message, hint)
            } else {
                inner.call(request.map(|body| Slow::new(body, within))).await?
            };
            Ok(response.map(|body| Held::new(body, busy)))
        })
    }
}

/// An error in the shape of all others, after which the connection is closed.
fn refused(status: StatusCode, code: &str, message: &str, hint: &str) -> Response<Body> {
    let body = json!({"error": {"code": code, "message": message, "hint": hint}});
    let mut response = (status, axum::Json(body)).into_response();
    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    response
}
