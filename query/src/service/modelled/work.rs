//! What a model makes of one reply, mode by mode.

use super::{Change, DECIDED, Draft, Nothing};
use crate::engine::{self, Ask, Verdict};
use crate::evidence::claims;
use crate::llm::Llm;
use crate::llm::agent::{self, Searched};
use crate::llm::answer::{self, Phrased};
use crate::llm::given::{self, Given};
use crate::llm::history::Turn;
use crate::llm::judge;
use crate::llm::note::{Doing, Outcome, Record, Told};
use crate::llm::settings::Mode;
use crate::reply::{Band, Citation, RefusalReason, Reply};
use crate::route::{self, Via};
use crate::service::asking::Asking;
use crate::service::{AskError, Request, Service};
use runbook_shared::lexical::LexicalError;
use runbook_shared::limits::NEAREST_DEFAULT;
use runbook_shared::retrieval::question::Question;
use runbook_shared::score::Confidence;
use std::time::{Duration, Instant};

/// Sections that an agent's search names.
const SEARCHED: usize = 5;

/// One question with the model.
pub(super) struct Work<'a> {
    pub(super) service: &'a Service,
    pub(super) llm: &'a Llm,
    pub(super) draft: &'a Draft,
    pub(super) told: Told<'a>,
}

impl Work<'_> {
    /// What becomes of the reply.
    pub(super) fn change(&self, record: &mut Record) -> Result<Change, Nothing> {
        match self.llm.settings.mode {
            Mode::Off => Ok(Change::keep("")),
            Mode::Judge => self.judged(record),
            Mode::Answer => self.phrased(record),
            Mode::Agent => self.browsed(record),
        }
    }

    fn question(&self) -> Result<Question, Nothing> {
        Question::parse(&self.draft.question).map_err(|_| None)
    }

    /// The sections that the engine shows or names, then those that retrieval finds.
    fn given(&self) -> Result<Vec<Given>, Nothing> {
        let (draft, corpora) = (self.draft, &self.draft.corpora);
        (self.told)(&Doing::Searching(draft.question.clone()));
        let request = Request {
            question: draft.question.clone(),
            scope: draft.request.scope.clone(),
            ..Request::default()
        };
        let found = self.service.find(&request).map_err(|e| {
            tracing::error!("no sections for the language model: {e}");
            None
        })?;
        let shown = draft.reply.citations.iter().filter_map(|c| given::section_of(corpora, c));
        let found = found.hits.iter().map(|h| (h.corpus, h.section));
        let given = given::give(corpora, shown.chain(found), self.llm.settings.context_bytes());
        for section in &given {
            (self.told)(&Doing::Reading(section.path.clone()));
        }
        Ok(given)
    }

    fn judged(&self, record: &mut Record) -> Result<Change, Nothing> {
        let given = self.given()?;
        if given.is_empty() {
            return Ok(Change::keep("there is no section to judge"));
        }
        let until = self.llm.until(2);
        let question = self.question()?;
        let said = judge::ask(self.llm, question.text(), &given, record, until, self.told)?;
        let answered = self.draft.reply.band == Band::Answer;
        match said {
            judge::Verdict::Yes { .. } if answered => {
                Ok(Change::keep("the language model finds the answer in these sections, too"))
            }
            judge::Verdict::Yes { at, lines } => self.lifted(&question, &given[at], lines),
            judge::Verdict::No if answered => self.withdrawn(&question),
            judge::Verdict::No => Ok(Change::keep("the language model finds no answer either")),
        }
    }

    /// An answer becomes a refusal, if the model's no counts.
    fn withdrawn(&self, question: &Question) -> Result<Change, Nothing> {
        if !self.llm.trust.no_counts(self.llm.settings.trust) {
            return Ok(Change::keep(
                "the language model finds no answer, but has not shown that its no counts",
            ));
        }
        let message = "a language model has read the nearest sections and finds that none answers; they are listed";
        let verdict = self
            .with_ask(question, |ask, policy| {
                let degraded = self.draft.reply.provenance.degraded;
                // Where only words were searched, nothing can be said of what is not there.
                let reason =
                    if degraded { RefusalReason::Degraded } else { RefusalReason::NoEvidence };
                let reason = (reason, message.to_owned());
                engine::refuse(&self.draft.corpora, ask, policy, reason, DECIDED)
            })
            .map_err(|_| None)?;
        let verdict = Verdict { band: Band::Closest, ..verdict };
        Ok(Change::Verdict(Outcome::Withdrawn, message.into(), Box::new(verdict)))
    }

    /// A refusal becomes the passage, if the model's yes counts and its lines hold the question's rare terms.
    fn lifted(
        &self,
        question: &Question,
        section: &Given,
        lines: [u32; 2],
    ) -> Result<Change, Nothing> {
        if let Err(why) = self.may_lift(false) {
            return Ok(Change::keep(why));
        }
        if let Err(term) = judge::may_lift(question, &self.draft.corpora, section, lines) {
            return Ok(Change::keep(format!(
                "the language model names lines of {}, which do not speak of \"{term}\"",
                section.path
            )));
        }
        let confidence = self.draft.reply.confidence;
        let place = (section.corpus, section.section);
        let verdict = self
            .with_ask(question, |ask, policy| {
                engine::show(&self.draft.corpora, ask, policy, place, confidence)
            })
            .map_err(|_| None)?;
        let message = format!(
            "a language model finds the answer in {} lines {}-{}; the scores alone were not sure enough",
            section.path, lines[0], lines[1]
        );
        Ok(Change::Verdict(Outcome::Lifted, message, Box::new(verdict)))
    }

    /// Whether a refusal may become an answer at all; an agent may have found what retrieval did not.
    fn may_lift(&self, agent: bool) -> Result<(), String> {
        let reply = &self.draft.reply;
        if reply.band == Band::Nothing && !agent {
            return Err("nothing near enough was found to be answered from".into());
        }
        if !self.service.policy().lets_pass(Confidence::new(reply.confidence)) {
            return Err("the configured score_floor does not let it pass".into());
        }
        if !self.llm.trust.yes_counts(self.llm.settings.trust) {
            return Err(
                "the language model finds an answer, but has not shown that its yes counts".into(),
            );
        }
        Ok(())
    }

    fn with_ask<T>(
        &self,
        question: &Question,
        work: impl FnOnce(&Ask<'_>, &engine::Policy) -> Result<T, LexicalError>,
    ) -> Result<T, AskError> {
        let draft = self.draft;
        let vector = self.service.question_vector(question, &draft.corpora);
        let ask = Ask {
            question,
            vector: vector.as_ref().map(|(v, sha)| (&**v, sha.as_str())),
            scope: draft.request.scope.as_deref(),
            k: draft.k,
            nearest: draft.request.k.map_or(NEAREST_DEFAULT, |_| draft.k),
            explain: false,
            exact: None,
        };
        Ok(work(&ask, self.service.policy())?)
    }

    fn phrased(&self, record: &mut Record) -> Result<Change, Nothing> {
        let given = self.given()?;
        if given.is_empty() {
            return Ok(Change::keep("there is no section to answer from"));
        }
        let question = self.question()?;
        let must_hold = self.commands(question.text());
        let task = answer::Task {
            corpora: &self.draft.corpora,
            question: question.text(),
            given: &given,
            must_hold: &must_hold,
            k: self.draft.k,
            until: self.llm.until(2),
            told: self.told,
        };
        let phrased = answer::ask(self.llm, &task, record)?;
        self.accepted(&question, phrased, false)
    }

    /// What becomes of a text that the guard has passed.
    fn accepted(
        &self,
        question: &Question,
        phrased: Phrased,
        agent: bool,
    ) -> Result<Change, Nothing> {
        let answered = self.draft.reply.band == Band::Answer;
        let (text, citations, sections) = match phrased {
            Phrased::Unknown if answered => return self.withdrawn(question),
            Phrased::Unknown => {
                return Ok(Change::keep("the language model does not know either"));
            }
            Phrased::Text { text, citations, sections } => (text, citations, sections),
        };
        if answered {
            // A model that says yes to everything phrases everything, too.
            return Ok(if self.llm.trust.yes_counts(self.llm.settings.trust) {
                Change::Text(text, citations)
            } else {
                Change::keep(
                    "the language model wrote an answer, but has not shown that its yes counts; this is the passage",
                )
            });
        }
        if let Err(why) = self.may_lift(agent) {
            return Ok(Change::keep(why));
        }
        let corpora = &self.draft.corpora;
        let held: Vec<String> = sections
            .iter()
            .map(|(corpus, number)| {
                let (chunk, section) = corpora[*corpus].generation.section(*number);
                let trail = section.heading_path.join("\n");
                format!("{}\n{trail}\n{}", chunk.title, chunk.section_text(section))
            })
            .collect();
        let texts: Vec<&str> = held.iter().map(String::as_str).collect();
        let lists = agent && self.service.lists(self.llm, self.draft);
        let corpus = sections.first().map_or(0, |s| s.0);
        match given::holds_rare(question, &corpora[corpus], &texts) {
            Err(term) if !lists => Ok(Change::keep(format!(
                "the language model wrote an answer from sections that do not speak of \"{term}\""
            ))),
            _ => Ok(Change::Text(text, citations)),
        }
    }

    /// The command lines of the passage that is shown, where the question asks how something is done.
    fn commands(&self, question: &str) -> Vec<Vec<String>> {
        let lower = question.to_lowercase();
        let asks_how =
            ["how do", "how to", "how can", "how should", "command", "steps", "procedure"]
                .iter()
                .any(|w| lower.contains(w));
        if !asks_how || self.draft.reply.band != Band::Answer {
            return Vec::new();
        }
        let quote = self.draft.reply.citations.first().map_or("", |c| &c.quote);
        let commands = claims::claims(quote).into_iter().flat_map(|c| c.commands);
        commands.map(|c| c.words).filter(|w| w.len() > 1).collect()
    }

    fn browsed(&self, record: &mut Record) -> Result<Change, Nothing> {
        let (service, llm, draft) = (self.service, self.llm, self.draft);
        let question = self.question()?;
        // A session of its own: what the person has seen before supports nothing that the agent writes.
        let session = service.new_id("a");
        let view = service.tree.view(&draft.snapshot, &session).with_scratch_alone();
        let lists = service.lists(llm, draft);
        let pages = if lists { service.listed(llm, draft) } else { Vec::new() };
        let reread: Vec<String> = pages
            .iter()
            .map(|p| format!("{}/{}", crate::agents::mount(&draft.snapshot, &p.repo), p.path))
            .collect();
        let before = draft.request.session.as_ref().map_or_else(String::new, |s| {
            let turns: Vec<Turn> = llm.history.turns(s, Instant::now());
            turns.iter().map(|t| format!("Q: {}\nA: {}\n", t.question, t.answer)).collect()
        });
        let index = format!(
            "{}Directories: {}",
            crate::agents::head(&draft.snapshot),
            crate::agents::directories(&draft.snapshot)
        );
        let search = |text: &str| self.searched(text, &session);
        let looked = || service.evidence.looked_at_files(&session, Instant::now());
        let asked = if lists { &draft.request.question } else { &draft.question };
        let seconds = Duration::from_secs(llm.settings.agent_seconds);
        let task = agent::Task {
            corpora: &draft.corpora,
            question: asked,
            before: &before,
            reread: &reread,
            view: &view,
            index: &index,
            search: &search,
            looked: &looked,
            k: draft.k,
            until: Instant::now() + seconds,
            told: self.told,
        };
        let phrased = agent::run(llm, &task, record)?;
        // What it has read can be cited by whoever goes on in the same session.
        let seen = service.evidence.sources(&session, Instant::now());
        service.evidence.record(&draft.reply.session, seen, Instant::now());
        self.accepted(&question, phrased, true)
    }

    /// A search of the agent; steered to the files where it has not looked at any, for agents always.
    fn searched(&self, text: &str, session: &str) -> Searched {
        let now = Instant::now();
        if crate::gate::request::refuse(text).is_some() {
            return Searched::Failed("such a search is not executed".into());
        }
        if route::FilesFirst::Always
            .steers(Via::Mcp, self.service.evidence.has_looked_at_files(session, now))
        {
            let note = "not searched: you have not looked at the files yet. Use grep for the rarest word of the question, or shell with `tree`; then search if you still need to.";
            return Searched::Steered(note.to_owned());
        }
        let request = Request {
            question: text.to_owned(),
            k: Some(SEARCHED),
            scope: self.draft.request.scope.clone(),
            session: Some(session.to_owned()),
            explain: false,
        };
        match self.service.search(&request) {
            Ok((results, _)) => Searched::Found(results.into_iter().map(|r| r.0).collect()),
            Err(e) => Searched::Failed(e.to_string()),
        }
    }

    /// The reply with the change, checked once more as every reply is.
    pub(super) fn apply(&self, change: Change, mode: &str) -> (Reply, Outcome, String) {
        let draft = self.draft;
        let mut reply = draft.reply.clone();
        reply.route.push(format!("llm_{mode}"));
        let (outcome, message, verdict) = match change {
            Change::Keep(outcome, message) => return (reply, outcome, message),
            Change::Verdict(outcome, message, verdict) => (outcome, message, *verdict),
            Change::Text(text, citations) => {
                let message = format!(
                    "phrased by {}; every command, name and number in it stands in the cited lines",
                    self.llm.settings.model
                );
                (Outcome::Phrased, message, self.verdict(text, citations))
            }
        };
        let asking = Asking {
            service: self.service,
            corpora: &draft.corpora,
            request: &draft.request,
            k: draft.k,
        };
        let wanted = verdict.band;
        let verdict = asking.guard(verdict);
        if verdict.band != wanted {
            let message =
                "what the language model led to did not hold; this is the answer without it";
            return (reply, Outcome::Rejected, message.into());
        }
        let named: Vec<&Citation> = verdict.citations.iter().chain(&verdict.related).collect();
        let nearest = verdict.refusal.as_ref().map_or(&[][..], |r| &r.nearest);
        self.service.show(&reply.session, &draft.corpora, &named, nearest);
        asking.amend(&reply.session, &draft.question, &verdict);
        reply.answer = verdict.answer;
        reply.band = verdict.band;
        reply.citations = verdict.citations;
        reply.related = verdict.related;
        reply.refusal = verdict.refusal;
        (reply, outcome, message)
    }

    fn verdict(&self, text: String, citations: Vec<Citation>) -> Verdict {
        let reply = &self.draft.reply;
        let cited =
            |c: &&Citation| !citations.iter().any(|o| o.path == c.path && o.heading == c.heading);
        let others = reply.citations.iter().chain(&reply.related).filter(cited).cloned();
        let related = others.take(self.draft.k.saturating_sub(citations.len())).collect();
        Verdict {
            answer: text,
            band: Band::Answer,
            related,
            citations,
            confidence: Confidence::new(reply.confidence),
            refusal: None,
            route: Vec::new(),
            corpus: 0,
            degraded: reply.provenance.degraded,
            explain: None,
        }
    }
}
