//! What was asked before in a conversation: in memory alone, for a while, and only so much of it.

use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Conversations that are remembered; the one that was silent longest goes first.
pub const SESSIONS_MAX: usize = 1024;
/// Questions that are remembered of one.
pub const TURNS_MAX: usize = 4;
/// How long a conversation may be silent.
pub const SILENCE_MAX: Duration = Duration::from_secs(30 * 60);
/// A longer question, in bytes, is a paste and not remembered as words to go on with.
const QUESTION_BYTES_MAX: usize = 600;

/// A section that a reply named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The repository; empty when there is only one.
    pub repo: String,
    /// The document.
    pub path: String,
    /// First and last line that were shown.
    pub lines: [u32; 2],
}

/// One question of a conversation, as it was answered.
#[derive(Clone, Debug, PartialEq)]
pub struct Turn {
    /// The question, completed where it was a follow-up.
    pub question: String,
    /// The sections that were cited, or the nearest ones of a refusal; best first.
    pub places: Vec<Place>,
    /// Whether it was answered, and how sure the answer was.
    pub answered: Option<f32>,
}

struct History {
    turns: VecDeque<Turn>,
    at: Instant,
}

/// All conversations.
#[derive(Default)]
pub struct Sessions {
    by_name: Mutex<FxHashMap<String, History>>,
}

impl Sessions {
    fn lock(&self) -> MutexGuard<'_, FxHashMap<String, History>> {
        self.by_name.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The last question of a conversation that has not been silent for too long.
    #[must_use]
    pub fn last(&self, name: &str, now: Instant) -> Option<Turn> {
        let sessions = self.lock();
        let history = sessions.get(name)?;
        let fresh = now.saturating_duration_since(history.at) <= SILENCE_MAX;
        history.turns.back().filter(|_| fresh).cloned()
    }

    /// Remembers a question.
    pub fn remember(&self, name: &str, turn: Turn, now: Instant) {
        if turn.question.len() > QUESTION_BYTES_MAX {
            return;
        }
        let mut sessions = self.lock();
        let silent = |h: &History| now.saturating_duration_since(h.at);
        if !sessions.contains_key(name) && sessions.len() >= SESSIONS_MAX {
            sessions.retain(|_, h| silent(h) <= SILENCE_MAX);
            if sessions.len() >= SESSIONS_MAX
                && let Some(oldest) =
                    sessions.iter().min_by_key(|(_, h)| h.at).map(|(n, _)| n.clone())
            {
                sessions.remove(&oldest);
            }
        }
        let history = sessions
            .entry(name.to_owned())
            .or_insert_with(|| History { turns: VecDeque::new(), at: now });
        if silent(history) > SILENCE_MAX {
            history.turns.clear();
        }
        if history.turns.len() == TURNS_MAX {
            history.turns.pop_front();
        }
        history.turns.push_back(turn);
        history.at = now;
    }

    /// Replaces the last question of a conversation, where it is the same.
    pub fn amend(&self, name: &str, turn: Turn, now: Instant) {
        if let Some(history) = self.lock().get_mut(name)
            && let Some(last) = history.turns.back_mut()
            && last.question == turn.question
        {
            *last = turn;
            history.at = now;
        }
    }

    /// How many conversations are remembered.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn turn(question: &str) -> Turn {
        Turn { question: question.into(), places: Vec::new(), answered: None }
    }

    #[test]
    fn conversations_end_and_are_bounded() {
        let sessions = Sessions::default();
        let start = Instant::now();
        for n in 0..SESSIONS_MAX + 10 {
            let at = start + Duration::from_millis(u64::try_from(n).unwrap());
            sessions.remember(&format!("s{n}"), turn("restart nginx"), at);
        }
        assert_eq!(sessions.len(), SESSIONS_MAX);
        let now = start + Duration::from_secs(60);
        assert_eq!(sessions.last("s5", now), None);
        assert_eq!(sessions.last("s500", now), Some(turn("restart nginx")));
        assert_eq!(sessions.last("s500", now + SILENCE_MAX), None);
        assert_eq!(sessions.last("nobody", now), None);
        for n in 0..10 {
            sessions.remember("s500", turn(&format!("q{n}")), now);
        }
        assert_eq!(sessions.last("s500", now), Some(turn("q9")));
        assert_eq!(sessions.lock()["s500"].turns.len(), TURNS_MAX);
        sessions.remember("long", turn(&"x".repeat(1000)), now);
        assert_eq!(sessions.last("long", now), None);
    }
}
