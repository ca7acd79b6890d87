//! The extractive reply and a language model: which of the two leaves.
//!
//! The reply of the engine comes first. Only one that the evidence gate decided goes to the model: what the
//! request gate refused, what a scan counted and what a page's name found is not the model's to change. A
//! model's verdict may withdraw an answer or lift a refusal where it counts ([`crate::llm::trust`]); its
//! text replaces the passage where the guard passes it; in all other cases the engine's reply leaves.

mod work;

use super::{Request, Service};
use crate::engine::Verdict;
use crate::llm::client::LlmError;
use crate::llm::given;
use crate::llm::history::{self, Page, Turn};
use crate::llm::judge;
use crate::llm::note::{Note, Outcome, Record, Told};
use crate::llm::settings::Mode;
use crate::llm::{Llm, trust};
use crate::reply::{Citation, RefusalReason, Reply};
use crate::snapshot::Snapshot;
use runbook_shared::retrieval::arms::Hit;
use runbook_shared::retrieval::corpus::Corpus;
use std::sync::Arc;
use std::time::Instant;
use work::Work;

/// The step of a reply that was decided by its evidence.
const DECIDED: &str = "evidence_gate";
/// A reply of the engine, before a model has seen it.
pub struct Draft {
    pub(super) reply: Reply,
    /// The question, completed where it was a follow-up.
    pub(super) question: String,
    pub(super) request: Request,
    pub(super) snapshot: Arc<Snapshot>,
    pub(super) corpora: Vec<Arc<Corpus>>,
    pub(super) k: usize,
}

impl Draft {
    /// The reply as it is.
    #[must_use]
    pub fn reply(&self) -> &Reply {
        &self.reply
    }

    /// Whether the evidence gate decided, and searched all that there is to search.
    fn is_open(&self) -> bool {
        let reason = self.reply.refusal.as_ref().map(|r| r.reason);
        self.reply.route.iter().any(|step| step == DECIDED)
            && matches!(reason, None | Some(RefusalReason::NoEvidence | RefusalReason::Degraded))
    }
}

/// What becomes of a reply.
enum Change {
    Keep(Outcome, String),
    /// Another verdict of the engine.
    Verdict(Outcome, String, Box<Verdict>),
    /// The model's text.
    Text(String, Vec<Citation>),
}

impl Change {
    fn keep(message: impl Into<String>) -> Self {
        Self::Keep(Outcome::Kept, message.into())
    }
}

/// Why a model gave nothing that can be used.
type Nothing = Option<LlmError>;

impl Service {
    /// Whether a model would be asked about this reply.
    #[must_use]
    pub fn wants_model(&self, draft: &Draft) -> bool {
        self.llm().is_some_and(|llm| draft.is_open() || self.lists(llm, draft))
    }

    /// Whether an agent's question is about the list of the answer before.
    fn lists(&self, llm: &Llm, draft: &Draft) -> bool {
        let refused = draft.reply.refusal.as_ref().is_some_and(|r| r.reason.is_request());
        llm.settings.mode == Mode::Agent
            && !refused
            && history::refers_to_list(&draft.request.question)
            && !self.listed(llm, draft).is_empty()
    }

    fn listed(&self, llm: &Llm, draft: &Draft) -> Vec<Page> {
        let Some(session) = &draft.request.session else { return Vec::new() };
        let mut turns = llm.history.turns(session, Instant::now());
        turns.pop().map(|t| t.pages).unwrap_or_default()
    }

    /// The reply that leaves, after the model where one is asked. Blocks for as long as the model takes,
    /// which its settings bound.
    #[must_use]
    pub fn refine(&self, draft: Draft, told: Told<'_>) -> Reply {
        let Some(llm) = self.llm() else { return draft.reply };
        let reply =
            if self.wants_model(&draft) { self.asked(llm, &draft, told) } else { draft.reply };
        if llm.settings.mode == Mode::Agent {
            remember(llm, &draft.request.question, &reply);
        }
        reply
    }

    fn asked(&self, llm: &Llm, draft: &Draft, told: Told<'_>) -> Reply {
        let (started, mut record) = (Instant::now(), Record::default());
        let work = Work { service: self, llm, draft, told };
        let change = match work.change(&mut record) {
            Ok(change) => change,
            Err(Some(e)) => {
                let message = format!("{e}; this is the answer without it");
                record.failed = Some(e);
                Change::Keep(Outcome::Degraded, message)
            }
            Err(None) => Change::Keep(
                Outcome::Rejected,
                "what the language model wrote did not pass the guard; this is the answer without it"
                    .into(),
            ),
        };
        let mode = llm.settings.mode.name();
        let (mut reply, outcome, message) = work.apply(change, mode);
        let rejected = record.rejected.last().filter(|_| outcome == Outcome::Rejected);
        let failed = record.failed.as_ref().map(LlmError::name);
        let note = Note {
            mode,
            model: llm.settings.model.clone(),
            outcome,
            reason: failed.or_else(|| rejected.map(|r| r.fault.name())),
            message,
        };
        let counters = &self.journal.metrics.llm;
        for rejected in &record.rejected {
            counters.rejected(mode, rejected.fault.name());
        }
        if let Some(e) = &record.failed {
            counters.failed(e.name());
        }
        counters.question(mode, outcome.name(), started.elapsed(), record.tokens);
        tracing::info!(
            id = reply.id,
            mode,
            outcome = outcome.name(),
            reason = note.reason,
            calls = record.calls,
            tokens = record.tokens,
            rejected = record.rejected.len(),
            "language model"
        );
        if draft.request.explain {
            let trust = llm.trust.explain(llm.settings.trust);
            let explain = reply.explain.get_or_insert_with(|| serde_json::json!({}));
            if let Some(map) = explain.as_object_mut() {
                map.insert("llm".into(), record.explain(&note, trust));
            }
        }
        reply.provenance.degraded |= outcome == Outcome::Degraded;
        reply.llm = Some(note);
        reply.took_ms += (started.elapsed().as_secs_f64() * 1e6).round() / 1e3;
        reply
    }

    /// Asks the judge what is known, once there is something to ask about: see [`crate::llm::trust`].
    ///
    /// # Errors
    /// When the model cannot be reached, or the tree has too few sections to ask about.
    pub fn measure_trust(&self) -> Result<trust::Measured, String> {
        let Some(llm) = self.llm() else { return Err("no language model is configured".into()) };
        let corpora = self.snapshot().corpora();
        let mut measured = trust::Measured::default();
        for (at, number, question) in trust::questions(&corpora) {
            let request = Request { question: question.clone(), ..Request::default() };
            let found = self.find(&request).map_err(|e| e.to_string())?;
            let path = corpora[at].generation.section(number).0.path.clone();
            let foreign = |h: &&Hit| {
                h.corpus != at || corpora[h.corpus].generation.section(h.section).0.path != path
            };
            let others: Vec<(usize, u32)> =
                found.hits.iter().filter(foreign).map(|h| (h.corpus, h.section)).collect();
            let bytes = llm.settings.context_bytes();
            let without = given::give(&corpora, others.iter().copied(), bytes);
            // Not the first: a model that always names the first must not look right.
            let mixed = others.iter().take(1).copied().chain([(at, number)]);
            let with = given::give(&corpora, mixed.chain(others.iter().skip(1).copied()), bytes);
            if without.is_empty() {
                continue;
            }
            for (given, answers) in [(with, true), (without, false)] {
                let mut record = Record::default();
                let until = llm.until(1);
                let said = judge::ask(llm, &question, &given, &mut record, until, &|_| {});
                let right = match said {
                    Ok(judge::Verdict::No) => !answers,
                    Ok(judge::Verdict::Yes { at, .. }) => answers && given[at].path == path,
                    Err(None) => false,
                    Err(Some(e)) => return Err(e.to_string()),
                };
                let (all, good) = if answers {
                    (&mut measured.with, &mut measured.with_yes)
                } else {
                    (&mut measured.without, &mut measured.without_no)
                };
                *all += 1;
                *good += usize::from(right);
            }
        }
        if measured.with == 0 {
            return Err("the tree has too few sections to ask about".into());
        }
        llm.trust.set(measured);
        tracing::info!(
            "the language model was right on {} of {} questions with their section and {} of {} without",
            measured.with_yes,
            measured.with,
            measured.without_no,
            measured.without
        );
        Ok(measured)
    }
}

/// What an agent's session is told again later.
fn remember(llm: &Llm, question: &str, reply: &Reply) {
    let mut pages: Vec<Page> = Vec::new();
    for citation in reply.citations.iter().chain(&reply.related) {
        let page =
            Page { repo: citation.repo.clone().unwrap_or_default(), path: citation.path.clone() };
        if !pages.contains(&page) {
            pages.push(page);
        }
    }
    let turn = Turn { question: question.to_owned(), answer: reply.answer.clone(), pages };
    llm.history.remember(&reply.session, turn, Instant::now());
}
