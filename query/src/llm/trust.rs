//! Whether a model's verdict counts: measured on the tree that is served, before it has a say.
//!
//! A weak model says yes to everything, or no. So the judge is first asked what is known already:
//! questions made from headings, once with the section itself among those given, and once with the next
//! nearest sections of other documents instead. Its no counts if it says yes to most of the first, its yes
//! if it says no to most of the second. Until then, and where it fails, its verdicts are noted and change
//! nothing.

use super::settings::TrustIn;
use crate::service::Service;
use runbook_shared::analyse::{analyse, is_stop_word};
use runbook_shared::retrieval::corpus::Corpus;
use rustc_hash::FxHashSet;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Questions of each kind.
pub const PROBES: usize = 8;
/// Of ten, how many a model must get right.
const RIGHT_OF_TEN: usize = 8;
/// Words that a section must have to be asked about.
const WORDS_MIN: usize = 12;

/// What was measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Measured {
    /// Questions with the section that answers.
    pub with: usize,
    /// Of these, how often the model said yes.
    pub with_yes: usize,
    /// Questions without it.
    pub without: usize,
    /// Of these, how often it said no.
    pub without_no: usize,
}

/// What is known of a model.
#[derive(Default)]
pub struct Trust {
    measured: Mutex<Option<Measured>>,
}

impl Trust {
    /// What was measured, once it was.
    #[must_use]
    pub fn measured(&self) -> Option<Measured> {
        *self.measured.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a measurement.
    pub fn set(&self, measured: Measured) {
        *self.measured.lock().unwrap_or_else(PoisonError::into_inner) = Some(measured);
    }

    /// Whether a yes counts.
    #[must_use]
    pub fn yes_counts(&self, trust: TrustIn) -> bool {
        self.counts(trust, |m| (m.without_no, m.without))
    }

    /// Whether a no counts.
    #[must_use]
    pub fn no_counts(&self, trust: TrustIn) -> bool {
        self.counts(trust, |m| (m.with_yes, m.with))
    }

    fn counts(&self, trust: TrustIn, of: impl Fn(Measured) -> (usize, usize)) -> bool {
        match trust {
            TrustIn::Always => true,
            TrustIn::Never => false,
            TrustIn::Measured => self.measured().is_some_and(|m| {
                let (right, all) = of(m);
                all > 0 && right * 10 >= all * RIGHT_OF_TEN
            }),
        }
    }

    /// For `explain` and the status.
    #[must_use]
    pub fn explain(&self, trust: TrustIn) -> Value {
        json!({
            "yes_counts": self.yes_counts(trust),
            "no_counts": self.no_counts(trust),
            "measured": self.measured().map(|m| json!({
                "with": m.with, "with_yes": m.with_yes, "without": m.without, "without_no": m.without_no,
            })),
        })
    }
}

/// How long to wait before a measurement that failed is tried again.
const AGAIN: Duration = Duration::from_secs(60);

/// Measures the service's model on a thread of its own, until it is measured or the service is gone.
pub fn measure_in_background(service: &Arc<Service>) {
    let wanted = service.llm().is_some_and(|l| l.settings.trust == TrustIn::Measured);
    if !wanted {
        return;
    }
    let service = Arc::downgrade(service);
    let work = move || {
        while let Some(service) = service.upgrade() {
            match service.measure_trust() {
                Ok(_) => return,
                Err(e) => tracing::warn!(
                    "the language model could not be measured, so its verdicts do not count yet: {e}"
                ),
            }
            drop(service);
            std::thread::sleep(AGAIN);
        }
    };
    if let Err(e) = std::thread::Builder::new().name("llm-trust".into()).spawn(work) {
        tracing::error!("no thread to measure the language model: {e}");
    }
}

/// Questions whose answer is known: corpus, section and the words of its headings. Those whose hash is
/// lowest, so that few change from one generation to the next; one of each document.
#[must_use]
pub fn questions(corpora: &[Arc<Corpus>]) -> Vec<(usize, u32, String)> {
    let mut all: Vec<([u8; 8], usize, u32, String)> = Vec::new();
    for (at, corpus) in corpora.iter().enumerate() {
        for number in 0..u32::try_from(corpus.generation.sections.len()).unwrap_or(u32::MAX) {
            let (chunk, section) = corpus.generation.section(number);
            let Some(heading) = section.heading_path.last() else { continue };
            let says = chunk.section_text(section).split_whitespace().count();
            let words = analyse(heading).iter().filter(|t| !is_stop_word(&t.surface)).count();
            if says < WORDS_MIN || words < 2 {
                continue;
            }
            let question = format!("{heading} ({})", chunk.title);
            let mut order = [0; 8];
            order.copy_from_slice(&blake3::hash(question.as_bytes()).as_bytes()[..8]);
            all.push((order, at, number, question));
        }
    }
    all.sort();
    let mut seen = FxHashSet::default();
    all.retain(|(_, at, number, _)| {
        seen.insert((*at, corpora[*at].generation.section(*number).0.path.clone()))
    });
    all.into_iter().take(PROBES).map(|(_, at, number, question)| (at, number, question)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_earns_its_vote() {
        let trust = Trust::default();
        assert!(!trust.yes_counts(TrustIn::Measured) && !trust.no_counts(TrustIn::Measured));
        assert!(trust.yes_counts(TrustIn::Always) && !trust.no_counts(TrustIn::Never));
        let says_yes = Measured { with: 8, with_yes: 8, without: 8, without_no: 0 };
        trust.set(says_yes);
        assert!(!trust.yes_counts(TrustIn::Measured), "it says yes to everything");
        assert!(trust.no_counts(TrustIn::Measured));
        trust.set(Measured { with_yes: 6, without_no: 7, ..says_yes });
        assert!(trust.yes_counts(TrustIn::Measured) && !trust.no_counts(TrustIn::Measured));
    }
}
