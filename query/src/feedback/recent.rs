//! The last replies, in memory: a report names one by its id.

use crate::reply::{Citation, Reply};
use serde::Serialize;
use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

/// Replies that are remembered.
const REPLIES_MAX: usize = 1024;
/// Bytes of their questions, about; a daemon that is sent large pastes forgets sooner.
const BYTES_MAX: usize = 4 * 1024 * 1024;

/// A place that a reply named.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Named {
    /// The repository, where several are served.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repo: Option<String>,
    /// Path of the document.
    pub path: String,
    /// The innermost heading.
    pub heading: String,
    /// First and last line.
    pub lines: [u32; 2],
}

impl From<&Citation> for Named {
    fn from(c: &Citation) -> Self {
        Self {
            repo: c.repo.clone(),
            path: c.path.clone(),
            heading: c.heading.clone(),
            lines: c.lines,
        }
    }
}

/// A question with what came back.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Asked {
    /// The reply's id.
    #[serde(rename = "reply_id")]
    pub id: String,
    /// The question as it was understood.
    pub question: String,
    /// The question as it was typed, where that is something else.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub typed: Option<String>,
    /// The scope.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scope: Option<String>,
    /// The generation that answered.
    pub generation: Option<String>,
    /// Its commit.
    pub commit: Option<String>,
    /// The band.
    pub band: &'static str,
    /// Why it was refused.
    pub reason: Option<&'static str>,
    /// The Confidence.
    pub confidence: f64,
    /// What was cited.
    pub citations: Vec<Named>,
}

impl Asked {
    /// What is remembered of a reply.
    #[must_use]
    pub fn new(typed: &str, completed: &str, scope: Option<&str>, reply: &Reply) -> Self {
        Self {
            id: reply.id.clone(),
            question: completed.to_owned(),
            typed: (typed != completed).then(|| typed.to_owned()),
            scope: scope.map(str::to_owned),
            generation: reply.provenance.generation.clone(),
            commit: reply.provenance.commit.clone(),
            band: reply.band.name(),
            reason: reply.refusal.as_ref().map(|r| r.reason.name()),
            confidence: crate::reply::round4(reply.confidence),
            citations: reply.citations.iter().map(Named::from).collect(),
        }
    }

    fn bytes(&self) -> usize {
        self.question.len() + self.typed.as_ref().map_or(0, String::len)
    }
}

/// The last replies.
#[derive(Default)]
pub struct Recent(Mutex<Kept>);

#[derive(Default)]
struct Kept {
    replies: VecDeque<Asked>,
    bytes: usize,
}

impl Recent {
    /// Remembers a reply; the oldest go.
    pub fn keep(&self, asked: Asked) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.bytes += asked.bytes();
        kept.replies.push_back(asked);
        while kept.replies.len() > REPLIES_MAX || (kept.bytes > BYTES_MAX && kept.replies.len() > 1)
        {
            let Some(gone) = kept.replies.pop_front() else { break };
            kept.bytes -= gone.bytes();
        }
    }

    /// The reply with an id, if it is still remembered.
    #[must_use]
    pub fn get(&self, id: &str) -> Option<Asked> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.replies.iter().rev().find(|a| a.id == id).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(id: usize, bytes: usize) -> Asked {
        Asked {
            id: id.to_string(),
            question: "x".repeat(bytes),
            typed: None,
            scope: None,
            generation: None,
            commit: None,
            band: "answer",
            reason: None,
            confidence: 0.5,
            citations: Vec::new(),
        }
    }

    #[test]
    fn the_oldest_go_by_number_and_by_size() {
        let recent = Recent::default();
        for id in 0..REPLIES_MAX + 10 {
            recent.keep(asked(id, 10));
        }
        assert!(recent.get("9").is_none() && recent.get("10").is_some());
        recent.keep(asked(9000, BYTES_MAX));
        assert!(recent.get("9000").is_some() && recent.get("1000").is_none());
        recent.keep(asked(9001, 10));
        assert!(recent.get("9000").is_none() && recent.get("9001").is_some());
    }
}
