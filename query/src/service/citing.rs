//! What a session has been shown, and the citations that an answer's text may have because of it.

use super::{AskError, Service, checked_k, provenance};
use crate::evidence::guard::{self, Guarded};
use crate::evidence::{How, Source};
use crate::reply::{Citation, Nearest, Provenance};
use runbook_shared::limits::QUESTION_BYTES_MAX;
use runbook_shared::retrieval::corpus::Corpus;
use std::sync::Arc;
use std::time::Instant;

/// The longest answer that is checked, in bytes.
const ANSWER_BYTES_MAX: usize = QUESTION_BYTES_MAX;

impl Service {
    /// Checks an answer's text against what a session has seen, and cites it from that alone.
    ///
    /// # Errors
    /// When the session's name, `k` or the answer cannot be used, or nothing is open.
    pub fn cite(
        &self,
        session: &str,
        answer: &str,
        k: Option<usize>,
    ) -> Result<(Guarded, Provenance), AskError> {
        let session = self.session_name(Some(session))?;
        let k = checked_k(k)?;
        if answer.trim().is_empty() {
            return Err(AskError::Answer("the answer is empty".into()));
        }
        if answer.len() > ANSWER_BYTES_MAX {
            let message = format!("the answer is longer than {ANSWER_BYTES_MAX} bytes");
            return Err(AskError::Answer(message));
        }
        let snapshot = self.snapshot();
        let corpora = self.corpora(&snapshot, None)?;
        let sources = self.evidence.sources(&session, Instant::now());
        let guarded = guard::cite(&corpora, &sources, answer, k)
            .map_err(|e| AskError::Answer(e.to_string()))?;
        let cited = guarded.citations.first().and_then(|c| c.repo.as_deref());
        let corpus = corpora.iter().find(|c| cited.is_none_or(|repo| repo == c.repo));
        Ok((guarded, provenance(&snapshot, corpus, false)))
    }

    /// Adds what a reply named to its session's sources.
    pub(super) fn show(
        &self,
        session: &str,
        corpora: &[Arc<Corpus>],
        citations: &[&Citation],
        nearest: &[Nearest],
    ) {
        let named = citations
            .iter()
            .map(|c| (c.repo.as_deref(), c.path.as_str()))
            .chain(nearest.iter().map(|n| (None, n.path.as_str())));
        let sources = named.flat_map(|(repo, path)| {
            corpora
                .iter()
                .filter(move |c| repo.is_none_or(|r| r == c.repo))
                .filter(move |c| c.generation.document(path).is_some())
                .map(move |c| Source::new(&c.repo, path, How::Retrieved))
        });
        self.evidence.record(session, sources, Instant::now());
    }
}
