//! What a session has seen, and what may be cited from it.
//!
//! Every document that a session reads, matches or is shown becomes a candidate [`Source`] of it,
//! whichever way it came: shell, file API, MCP or retrieval. [`guard::cite`] takes an answer's text and
//! chooses its citations from those alone. Only documents of a generation count: what an agent has
//! written itself, to `/tmp` or `/artifacts`, supports nothing.
//!
//! The store is in memory, bounded in sessions and in sources of one, and forgets a silent session.

pub mod atoms;
pub mod claims;
pub mod guard;
pub mod kinds;
mod quote;
mod spoken;

use crate::session::{SESSIONS_MAX, SILENCE_MAX};
use crate::tree;
use rustc_hash::FxHashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// Sources that one session keeps; the one seen longest ago goes first.
pub const SOURCES_MAX: usize = 512;

/// How a session came to a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum How {
    /// Retrieval named it.
    Retrieved,
    /// A search over files matched in it.
    Matched,
    /// Its text was read.
    Read,
}

impl How {
    /// The name in replies.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Retrieved => "retrieved",
            Self::Matched => "matched",
            Self::Read => "read",
        }
    }
}

/// A document that a session has seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// The repository; empty when only one is served.
    pub repo: String,
    /// Path of the document in its generation.
    pub path: String,
    /// The closest look that was taken at it.
    pub how: How,
}

impl Source {
    /// A source in a repository.
    #[must_use]
    pub fn new(repo: &str, path: &str, how: How) -> Self {
        Self { repo: repo.to_owned(), path: path.to_owned(), how }
    }
}

#[derive(Default)]
struct Seen {
    /// By repository and path: how, and when (a counter).
    sources: FxHashMap<(String, String), (How, u64)>,
    count: u64,
    files: bool,
}

struct Entry {
    seen: Seen,
    at: Instant,
    /// Used more than once: whoever asks once without naming a session does not push out one that goes on.
    goes_on: bool,
}

/// The sources of all sessions.
#[derive(Default)]
pub struct Store {
    by_session: Mutex<FxHashMap<String, Entry>>,
}

impl Store {
    fn lock(&self) -> MutexGuard<'_, FxHashMap<String, Entry>> {
        self.by_session.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds sources to a session.
    pub fn record(&self, session: &str, sources: impl IntoIterator<Item = Source>, now: Instant) {
        let mut sessions = self.lock();
        let seen = &mut entry(&mut sessions, session, now).seen;
        for source in sources {
            seen.add(source);
        }
    }

    /// Notes that a session has looked at the files themselves, whether or not anything was there.
    pub fn looked_at_files(&self, session: &str, now: Instant) {
        entry(&mut self.lock(), session, now).seen.files = true;
    }

    /// Whether a session has looked at the files themselves.
    #[must_use]
    pub fn has_looked_at_files(&self, session: &str, now: Instant) -> bool {
        self.lock().get(session).is_some_and(|e| e.is_fresh(now) && e.seen.files)
    }

    /// The sources of a session, the latest first; none when nothing is known of it.
    #[must_use]
    pub fn sources(&self, session: &str, now: Instant) -> Vec<Source> {
        let sessions = self.lock();
        let Some(entry) = sessions.get(session).filter(|e| e.is_fresh(now)) else {
            return Vec::new();
        };
        let mut all: Vec<(u64, Source)> = entry
            .seen
            .sources
            .iter()
            .map(|((repo, path), (how, at))| (*at, Source::new(repo, path, *how)))
            .collect();
        all.sort_unstable_by_key(|(at, _)| std::cmp::Reverse(*at));
        all.into_iter().map(|(_, source)| source).collect()
    }

    /// How many sessions are remembered.
    #[must_use]
    pub fn len(&self) -> usize {
        self.lock().len()
    }

    /// True when none is.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl tree::router::Evidence for Store {
    fn touched(&self, session: &str, places: &[tree::envelope::Source]) {
        let sources = places.iter().filter_map(|place| {
            let how = if place.lines.is_some() { How::Matched } else { How::Read };
            let repo = place.repo.as_deref().unwrap_or("");
            Some(Source::new(repo, place.document.as_deref()?, how))
        });
        let now = Instant::now();
        self.record(session, sources, now);
        self.looked_at_files(session, now);
    }
}

impl Entry {
    fn is_fresh(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.at) <= SILENCE_MAX
    }
}

/// The entry of a session, new where there is none or it was silent for too long; room is made for it.
fn entry<'s>(
    sessions: &'s mut FxHashMap<String, Entry>,
    session: &str,
    now: Instant,
) -> &'s mut Entry {
    if !sessions.contains_key(session) && sessions.len() >= SESSIONS_MAX {
        sessions.retain(|_, e| e.is_fresh(now));
        if sessions.len() >= SESSIONS_MAX
            && let Some(oldest) =
                sessions.iter().min_by_key(|(_, e)| (e.goes_on, e.at)).map(|(n, _)| n.clone())
        {
            sessions.remove(&oldest);
        }
    }
    let known = sessions.contains_key(session);
    let entry = sessions.entry(session.to_owned()).or_insert_with(|| Entry {
        seen: Seen::default(),
        at: now,
        goes_on: false,
    });
    entry.goes_on |= known;
    if !entry.is_fresh(now) {
        entry.seen = Seen::default();
        entry.goes_on = false;
    }
    entry.at = now;
    entry
}

impl Seen {
    fn add(&mut self, source: Source) {
        self.count += 1;
        let key = (source.repo, source.path);
        if !self.sources.contains_key(&key)
            && self.sources.len() >= SOURCES_MAX
            && let Some(oldest) =
                self.sources.iter().min_by_key(|(_, (how, at))| (*how, *at)).map(|(k, _)| k.clone())
        {
            self.sources.remove(&oldest);
        }
        let entry = self.sources.entry(key).or_insert((source.how, 0));
        *entry = (entry.0.max(source.how), self.count);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn sources_are_kept_once_with_the_closest_look() {
        let (store, now) = (Store::default(), Instant::now());
        store.record("s", [Source::new("", "a.md", How::Read)], now);
        store.record("s", [Source::new("", "b.md", How::Matched)], now);
        store.record("s", [Source::new("", "a.md", How::Retrieved)], now);
        let names = |s: &str, at| {
            store.sources(s, at).into_iter().map(|s| (s.path, s.how)).collect::<Vec<_>>()
        };
        assert_eq!(names("s", now), [("a.md".into(), How::Read), ("b.md".into(), How::Matched)]);
        assert!(names("t", now).is_empty());
        let late = now + SILENCE_MAX + Duration::from_secs(1);
        assert!(names("s", late).is_empty());
        store.record("s", [Source::new("", "c.md", How::Matched)], late);
        assert_eq!(names("s", late).len(), 1, "a session that was silent starts anew");
    }

    #[test]
    fn sessions_and_sources_are_bounded() {
        let (store, now) = (Store::default(), Instant::now());
        let at = |n: usize| now + Duration::from_millis(u64::try_from(n).unwrap());
        store.record("read", [Source::new("", "first.md", How::Read)], at(0));
        for n in 0..SOURCES_MAX + 5 {
            store.record("read", [Source::new("", &format!("{n}.md"), How::Matched)], at(0));
        }
        let sources = store.sources("read", at(0));
        assert_eq!(sources.len(), SOURCES_MAX);
        assert!(sources.iter().any(|s| s.path == "first.md"), "what was read outlives matches");
        for n in 0..SESSIONS_MAX + 5 {
            store.looked_at_files(&format!("s{n}"), at(n + 1));
        }
        assert_eq!(store.len(), SESSIONS_MAX);
        assert_eq!(
            store.sources("read", at(9)).len(),
            SOURCES_MAX,
            "it went on, the others did not"
        );
        assert!(store.has_looked_at_files("s100", at(2000)));
        assert!(!store.has_looked_at_files("s1", at(2000)));
    }
}
