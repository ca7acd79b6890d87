//! The circuit breaker: after some failures in a row the endpoint is left alone for a while, then one call
//! tries it again. So a dead endpoint costs one timeout, not one for every question.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Whether calls pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// They do.
    Closed,
    /// None does.
    Open,
    /// One may try.
    HalfOpen,
}

impl State {
    /// The name in the status.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Closed => "closed",
            Self::Open => "open",
            Self::HalfOpen => "half_open",
        }
    }
}

#[derive(Default)]
struct Inner {
    failures: u32,
    /// Since when it is open.
    opened: Option<Instant>,
    /// A call tries whether the endpoint is back.
    trying: bool,
}

/// The breaker of one endpoint.
pub struct Breaker {
    most: u32,
    pause: Duration,
    inner: Mutex<Inner>,
}

impl Breaker {
    /// Opens after `most` failures in a row, for `pause`.
    #[must_use]
    pub fn new(most: u32, pause: Duration) -> Self {
        Self { most, pause, inner: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a call may go out now; it must be followed by [`Breaker::done`].
    #[must_use]
    pub fn admits(&self, now: Instant) -> bool {
        let mut inner = self.lock();
        match inner.opened {
            None => true,
            Some(at) if now.saturating_duration_since(at) < self.pause || inner.trying => false,
            Some(_) => {
                inner.trying = true;
                true
            }
        }
    }

    /// Tells how a call ended.
    pub fn done(&self, ok: bool, now: Instant) {
        let mut inner = self.lock();
        if ok {
            if inner.opened.is_some() {
                tracing::info!("the language model answers again");
            }
            *inner = Inner::default();
            return;
        }
        inner.failures = inner.failures.saturating_add(1);
        let tried = std::mem::take(&mut inner.trying);
        if tried || (inner.opened.is_none() && inner.failures >= self.most) {
            if inner.opened.is_none() {
                let (failures, seconds) = (inner.failures, self.pause.as_secs_f64());
                tracing::warn!(
                    "the language model failed {failures} times in a row: it is left alone for {seconds} s, and answers are extractive"
                );
            }
            inner.opened = Some(now);
        }
    }

    /// The state now.
    #[must_use]
    pub fn state(&self, now: Instant) -> State {
        match self.lock().opened {
            None => State::Closed,
            Some(at) if now.saturating_duration_since(at) < self.pause => State::Open,
            Some(_) => State::HalfOpen,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_opens_tries_once_and_closes() {
        let (breaker, start) = (Breaker::new(2, Duration::from_secs(10)), Instant::now());
        let at = |s| start + Duration::from_secs(s);
        assert!(breaker.admits(at(0)));
        breaker.done(false, at(0));
        breaker.done(true, at(0));
        breaker.done(false, at(1));
        assert_eq!(breaker.state(at(1)), State::Closed, "a success between counts");
        breaker.done(false, at(1));
        assert_eq!(breaker.state(at(2)), State::Open);
        assert!(!breaker.admits(at(2)));
        assert_eq!(breaker.state(at(11)), State::HalfOpen);
        assert!(breaker.admits(at(11)));
        assert!(!breaker.admits(at(11)), "only one tries");
        breaker.done(false, at(12));
        assert!(!breaker.admits(at(20)), "open for the whole pause again");
        assert!(breaker.admits(at(22)));
        breaker.done(true, at(23));
        assert_eq!(breaker.state(at(23)), State::Closed);
        assert!(breaker.admits(at(23)) && breaker.admits(at(23)));
    }
}
