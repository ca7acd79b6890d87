//! What is kept of every question: one log line, counters, the last replies (so that a report can
//! name one), and, where there is a state directory, the questions that found nothing.

use crate::feedback::recent::{Asked, Recent};
use crate::feedback::refused::Refused;
use crate::feedback::reports::Reports;
use crate::metrics::Metrics;
use crate::reply::Reply;
use runbook_shared::secrets;
use serde::Deserialize;
use std::path::Path;

/// The longest text of a question in the log, in characters.
const LOGGED_CHARS_MAX: usize = 300;

/// How questions appear in logs, and whether those that found nothing are recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum QuestionText {
    /// As they were asked.
    #[default]
    Text,
    /// As a hash, and nowhere on disk.
    Hash,
}

/// The journal of a service.
#[derive(Default)]
pub struct Journal {
    /// The counters.
    pub metrics: Metrics,
    /// The last replies.
    pub recent: Recent,
    /// Reports by users; none without a state directory.
    pub reports: Option<Reports>,
    /// Questions that found nothing.
    pub refused: Refused,
    text: QuestionText,
}

impl Journal {
    /// A journal that writes beneath a state directory; what cannot be opened there is told and left out,
    /// since questions are answered on a full disk, too.
    #[must_use]
    pub fn open(state: Option<&Path>, text: QuestionText) -> Self {
        let mut journal = Self { text, ..Self::default() };
        let Some(dir) = state.map(|s| s.join(crate::feedback::DIRECTORY)) else { return journal };
        match Reports::open(&dir) {
            Ok(reports) => journal.reports = Some(reports),
            Err(e) => {
                tracing::warn!("{e}: reports are not taken");
                return journal;
            }
        }
        if text == QuestionText::Text {
            match Refused::open(&dir) {
                Ok(refused) => journal.refused = refused,
                Err(e) => tracing::warn!("{e}: refused questions are not recorded"),
            }
        }
        journal
    }

    /// Notes a reply. `completed` is the question as it was understood: a follow-up with what it goes on
    /// with.
    pub fn note(&self, asked: &str, completed: &str, scope: Option<&str>, reply: &Reply) {
        self.metrics.question(reply);
        // What somebody pasted into a question is kept no more than what stands in a runbook.
        let (asked, completed) = (&secrets::clean(asked), &secrets::clean(completed));
        self.log(asked, reply);
        self.recent.keep(Asked::new(asked, completed, scope, reply));
        if let Some(refusal) = reply.refusal.as_ref().filter(|r| !r.reason.is_request()) {
            self.refused.note(completed, refusal, reply);
        }
    }

    fn log(&self, asked: &str, reply: &Reply) {
        let question = match self.text {
            QuestionText::Text => asked.chars().take(LOGGED_CHARS_MAX).collect(),
            QuestionText::Hash => hash(asked),
        };
        let citations: Vec<String> =
            reply.citations.iter().map(|c| format!("{}#{}", c.path, c.heading)).collect();
        tracing::info!(
            id = reply.id,
            outcome = reply.band.name(),
            reason = reply.refusal.as_ref().map(|r| r.reason.name()),
            question = ?question, // Escaped: a question has line ends, a log line has not.
            citations = ?citations,
            confidence = crate::reply::round4(reply.confidence),
            degraded = reply.provenance.degraded,
            took_ms = reply.took_ms,
            "question"
        );
    }
}

/// A short hash of a question; the same question has the same one.
fn hash(question: &str) -> String {
    format!("blake3:{}", &blake3::hash(question.as_bytes()).to_hex()[..16])
}
