//! Bodies on their way: one of a request has a deadline as a whole, one of a response keeps its request counted
//! until it was sent.

use super::room::Busy;
use axum::body::Body as AxumBody;
use axum::body::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::time::Sleep;

type Error = Box<dyn std::error::Error + Send + Sync>;

/// The body of a request; an error once it has taken too long.
pub(super) struct Slow<B> {
    inner: B,
    deadline: Option<Pin<Box<Sleep>>>,
}

impl<B: Body> Slow<B> {
    pub(super) fn new(inner: B, within: Duration) -> Self {
        let deadline = (!inner.is_end_stream()).then(|| Box::pin(tokio::time::sleep(within)));
        Self { inner, deadline }
    }
}

impl<B: Body<Data = Bytes, Error: Into<Error>> + Unpin> Body for Slow<B> {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        if let Some(deadline) = &mut self.deadline
            && deadline.as_mut().poll(context).is_ready()
        {
            let late =
                std::io::Error::new(std::io::ErrorKind::TimedOut, "the body came too slowly");
            return Poll::Ready(Some(Err(late.into())));
        }
        let frame = ready!(Pin::new(&mut self.inner).poll_frame(context));
        if frame.is_none() {
            self.deadline = None;
        }
        Poll::Ready(frame.map(|f| f.map_err(Into::into)))
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

/// The body of a response, with the request that it answers.
pub(super) struct Held {
    inner: AxumBody,
    _busy: Busy,
}

impl Held {
    pub(super) fn new(inner: AxumBody, busy: Busy) -> Self {
        Self { inner, _busy: busy }
    }
}

impl Body for Held {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.inner).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}
