//! What a session was shown as a list, so that "can you explain each?" reads the pages of that list again.
//! In memory, bounded, and gone after a while.

use crate::session::{SESSIONS_MAX, SILENCE_MAX};
use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// Turns that are remembered of a session.
pub const TURNS_MAX: usize = 4;
/// Pages of a list that are remembered.
pub const PAGES_MAX: usize = 8;
/// Characters of an answer that are remembered.
const ANSWER_CHARS_MAX: usize = 600;

/// A page that was named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// The repository; empty when there is only one.
    pub repo: String,
    /// The document.
    pub path: String,
}

/// A question and its answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Turn {
    /// The question.
    pub question: String,
    /// The answer, cut.
    pub answer: String,
    /// The pages that it cites, each once.
    pub pages: Vec<Page>,
}

struct Entry {
    turns: VecDeque<Turn>,
    at: Instant,
}

/// The histories of all sessions.
#[derive(Default)]
pub struct History {
    by_session: Mutex<FxHashMap<String, Entry>>,
}

impl History {
    /// The turns of a session, oldest first.
    #[must_use]
    pub fn turns(&self, session: &str, now: Instant) -> Vec<Turn> {
        let all = self.by_session.lock().unwrap_or_else(PoisonError::into_inner);
        let fresh = |e: &&Entry| now.saturating_duration_since(e.at) <= SILENCE_MAX;
        all.get(session).filter(fresh).map_or_else(Vec::new, |e| e.turns.iter().cloned().collect())
    }

    /// Remembers a turn.
    pub fn remember(&self, session: &str, mut turn: Turn, now: Instant) {
        turn.answer = turn.answer.chars().take(ANSWER_CHARS_MAX).collect();
        turn.question = turn.question.chars().take(ANSWER_CHARS_MAX).collect();
        turn.pages.truncate(PAGES_MAX);
        let mut all = self.by_session.lock().unwrap_or_else(PoisonError::into_inner);
        if !all.contains_key(session) && all.len() >= SESSIONS_MAX {
            all.retain(|_, e| now.saturating_duration_since(e.at) <= SILENCE_MAX);
            let oldest = all.iter().min_by_key(|(_, e)| e.at).map(|(name, _)| name.clone());
            if let Some(oldest) = oldest.filter(|_| all.len() >= SESSIONS_MAX) {
                all.remove(&oldest);
            }
        }
        let entry = all
            .entry(session.to_owned())
            .or_insert_with(|| Entry { turns: VecDeque::new(), at: now });
        if now.saturating_duration_since(entry.at) > SILENCE_MAX {
            entry.turns.clear();
        }
        if entry.turns.len() == TURNS_MAX {
            entry.turns.pop_front();
        }
        entry.turns.push_back(turn);
        entry.at = now;
    }
}

/// Whether a question is about all that the answer before has listed.
#[must_use]
pub fn refers_to_list(question: &str) -> bool {
    const LONG_WORDS: usize = 14;
    let lower = question.to_lowercase();
    let words: Vec<&str> =
        lower.split(|c: char| !c.is_alphanumeric()).filter(|w| !w.is_empty()).collect();
    let has = |phrase: &[&str]| words.windows(phrase.len()).any(|w| w == phrase);
    if words.len() > LONG_WORDS {
        return false;
    }
    let named = |any: &[&str]| any.iter().any(|w| words.contains(w));
    let explains =
        named(&["explain", "describe", "summarise", "summarize", "detail", "details", "elaborate"]);
    let tells = explains || named(&["tell", "about", "do", "does", "say", "for"]);
    let them = ["them", "these", "those"]
        .iter()
        .any(|w| has(&["all", "of", w]) || has(&["each", "of", w]));
    let pages = has(&["these", "pages"]) || has(&["those", "pages"]) || has(&["every", "one"]);
    (explains && words.contains(&"each")) || (tells && (them || pages || has(&["each", "one"])))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn lists_are_referred_to() {
        for (question, refers) in [
            ("can you explain each?", true),
            ("Describe each of them in a sentence", true),
            ("what do all of these do", true),
            ("tell me about every one", true),
            ("how do I restart each node of the queue", false),
            ("explain the failover", false),
        ] {
            assert_eq!(refers_to_list(question), refers, "{question}");
        }
    }

    #[test]
    fn histories_end() {
        let (history, now) = (History::default(), Instant::now());
        let turn = |n: usize| Turn {
            question: format!("q{n}"),
            answer: "x".repeat(5000),
            pages: vec![Page { repo: String::new(), path: "a.md".into() }; 20],
        };
        for n in 0..6 {
            history.remember("s", turn(n), now);
        }
        let turns = history.turns("s", now);
        assert_eq!((turns.len(), turns[3].question.as_str()), (TURNS_MAX, "q5"));
        assert_eq!((turns[0].answer.len(), turns[0].pages.len()), (ANSWER_CHARS_MAX, PAGES_MAX));
        assert!(history.turns("s", now + SILENCE_MAX + Duration::from_secs(1)).is_empty());
        for n in 0..SESSIONS_MAX + 3 {
            history.remember(&format!("t{n}"), turn(n), now);
        }
        assert!(history.by_session.lock().unwrap().len() <= SESSIONS_MAX);
    }
}
