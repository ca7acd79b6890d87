//! One question on its way: a follow-up is completed, a scan or the best sections answer, and the
//! citations are checked before anything leaves.

use super::{AskError, Request, Service};
use crate::citation;
use crate::engine::{self, Ask, Verdict};
use crate::follow_up::{self, Form};
use crate::gate::request;
use crate::reply::{Band, Citation, I_DO_NOT_KNOW, Refusal, RefusalReason};
use crate::route::lookup::{self, Lookup};
use crate::scan::{self, Outcome, Scan};
use crate::session::{Place, Turn};
use runbook_shared::analyse::{analyse, is_stop_word};
use runbook_shared::limits::NEAREST_DEFAULT;
use runbook_shared::retrieval::corpus::Corpus;
use runbook_shared::retrieval::question::Question;
use runbook_shared::score::Confidence;
use rustc_hash::FxHashSet;
use serde_json::json;
use std::sync::Arc;
use std::time::Instant;

/// The name of the step in a route.
pub(super) const FOLLOW_UP: &str = "follow_up";
/// The most sections of a reply that are remembered.
const PLACES_MAX: usize = 3;

/// A question with what it is asked of.
pub(super) struct Asking<'a> {
    pub(super) service: &'a Service,
    pub(super) corpora: &'a [Arc<Corpus>],
    pub(super) request: &'a Request,
    pub(super) k: usize,
}

/// A reading of a question with the verdict on it.
struct Read {
    text: String,
    verdict: Verdict,
}

impl Asking<'_> {
    /// The verdict on a question, which is remembered under its session, and the question as it was read.
    pub(super) fn verdict(
        &self,
        question: &Question,
        session: &str,
    ) -> Result<(Verdict, String), AskError> {
        let now = Instant::now();
        // Only a client that names a conversation goes on with it.
        let named = self.request.session.as_deref();
        let previous = named.and_then(|name| self.service.sessions.last(name, now));
        let read = match previous {
            Some(turn) => self.follow(question, &turn)?,
            None => None,
        };
        let read = match read {
            Some(read) => read,
            None => {
                let verdict = self.decide(question, self.request.scope.as_deref())?;
                Read { text: question.text().to_owned(), verdict }
            }
        };
        let verdict = self.guard(read.verdict);
        self.service.sessions.remember(session, turn(read.text.clone(), &verdict), now);
        Ok((verdict, read.text))
    }

    /// Remembers another verdict on the question that was asked last.
    pub(super) fn amend(&self, session: &str, question: &str, verdict: &Verdict) {
        let turn = turn(question.to_owned(), verdict);
        self.service.sessions.amend(session, turn, Instant::now());
    }

    /// The question as one that goes on with another; none where it stands by itself.
    fn follow(&self, question: &Question, turn: &Turn) -> Result<Option<Read>, AskError> {
        let Some(form) = follow_up::form(question.text()) else { return Ok(None) };
        if request::refuse(question.text()).is_some() {
            return Ok(None);
        }
        if form == Form::Continues
            && let Some(verdict) = self.next_section(question, turn)?
        {
            return Ok(Some(self.named(turn.question.clone(), verdict, turn)));
        }
        let mut best: Option<Read> = None;
        for (text, scope) in self.readings(&form, question, turn) {
            let Ok(completed) = Question::parse(&text) else { continue };
            let verdict = self.decide(&completed, scope.as_deref())?;
            let reason = verdict.refusal.as_ref().map(|r| r.reason);
            let refused =
                reason.filter(|r| r.is_request()).or_else(|| request::refuse(&bare(&text)));
            let fits = verdict.band == Band::Answer && speaks_of(&verdict, &form);
            let surer =
                best.as_ref().is_none_or(|b| verdict.confidence.get() > b.verdict.confidence.get());
            // What "it" stands for must not get a secret past the gate.
            if let Some(reason) = refused {
                let verdict = refused_as(verdict, reason);
                best = Some(Read { text, verdict });
                break;
            }
            // The likeliest reading that is answered, else the one nearest to an answer.
            if fits || surer {
                best = Some(Read { text, verdict });
            }
            if fits {
                break;
            }
        }
        let best = match best {
            Some(read) if read.verdict.refusal.is_none() && !speaks_of(&read.verdict, &form) => {
                Some(self.not_of_it(read, &form)?)
            }
            best => best,
        };
        Ok(best.map(|read| self.named(read.text, read.verdict, turn)))
    }

    /// The refusal of a reading whose answer does not speak of what was added: "what about redis" is not
    /// answered by a page on postgres.
    fn not_of_it(&self, read: Read, form: &Form) -> Result<Read, AskError> {
        let added = form.added().unwrap_or_default();
        let Ok(question) = Question::parse(&read.text) else { return Ok(read) };
        let vector = self.service.question_vector(&question, self.corpora);
        let ask = self.ask(&question, vector.as_ref(), self.request.scope.as_deref());
        let message = format!(
            "read as \"{}\", and no section that answers it speaks of \"{added}\"; the nearest ones are listed",
            read.text
        );
        let degraded = read.verdict.degraded;
        let reason = if degraded { RefusalReason::Degraded } else { RefusalReason::NoEvidence };
        let policy = self.service.policy();
        let mut verdict =
            engine::refuse(self.corpora, &ask, policy, (reason, message), "evidence_gate")?;
        verdict.degraded = degraded;
        Ok(Read { verdict, ..read })
    }

    /// The readings with their scopes: in the document that answered first where a thing is referred to.
    fn readings(
        &self,
        form: &Form,
        question: &Question,
        turn: &Turn,
    ) -> Vec<(String, Option<String>)> {
        let own = self.request.scope.clone();
        let texts = scan_of_another(form, &turn.question).map_or_else(
            || follow_up::readings(form, question.text(), &turn.question),
            |t| vec![t],
        );
        let mut readings: Vec<_> = texts.into_iter().map(|t| (t, own.clone())).collect();
        let here = turn.places.first().filter(|_| turn.answered.is_some()).map(|p| p.path.clone());
        if *form == Form::Refers
            && let Some((path, text)) = here.zip(readings.first().map(|r| r.0.clone()))
            && self.corpora.iter().any(|c| c.generation.document(&path).is_some())
        {
            readings.insert(0, (text, Some(path)));
        }
        readings
    }

    fn named(&self, text: String, mut verdict: Verdict, turn: &Turn) -> Read {
        verdict.route.insert(usize::from(!verdict.route.is_empty()), FOLLOW_UP.to_owned());
        if let Some(explain) = &mut verdict.explain {
            explain["follow_up"] = json!({"previous": turn.question, "completed": text});
        }
        Read { text, verdict }
    }

    /// The section that follows what was shown, for "and then?".
    fn next_section(&self, question: &Question, turn: &Turn) -> Result<Option<Verdict>, AskError> {
        let Some((confidence, shown)) = turn.answered.zip(turn.places.first()) else {
            return Ok(None);
        };
        let of_shown = |c: &&Arc<Corpus>| {
            (shown.repo.is_empty() || c.repo == shown.repo)
                && c.generation.document(&shown.path).is_some()
        };
        let Some(corpus) = self.corpora.iter().position(|c| of_shown(&c)) else { return Ok(None) };
        let generation = &self.corpora[corpus].generation;
        let last = turn.places.iter().filter(|p| p.path == shown.path).map(|p| p.lines[1]).max();
        let next = generation.scope(&shown.path).find(|n| {
            let (chunk, section) = generation.section(*n);
            Some(section.lines[0]) > last && says_something(chunk.section_text(section))
        });
        let Some(next) = next else { return Ok(None) };
        let asked = Question::parse(&turn.question).unwrap_or_else(|_| question.clone());
        let vector = self.service.question_vector(&asked, self.corpora);
        let ask = self.ask(&asked, vector.as_ref(), self.request.scope.as_deref());
        let verdict =
            engine::show(self.corpora, &ask, self.service.policy(), (corpus, next), confidence)?;
        Ok(Some(verdict))
    }

    fn ask<'q>(
        &'q self,
        question: &'q Question,
        vector: Option<&'q (Arc<[f32]>, String)>,
        scope: Option<&'q str>,
    ) -> Ask<'q> {
        Ask {
            question,
            vector: vector.map(|(v, sha)| (&**v, sha.as_str())),
            scope,
            k: self.k,
            nearest: self.request.k.map_or(NEAREST_DEFAULT, |_| self.k),
            explain: self.request.explain,
            exact: None,
        }
    }

    /// Answers from the files where the question names what it wants: a page by its name, or an
    /// identifier and nothing else.
    fn looked_up(&self, ask: &Ask<'_>) -> Result<Option<Verdict>, AskError> {
        let (corpora, policy) = (self.corpora, self.service.policy());
        let question = ask.question.text();
        if request::refuse(question).is_some() {
            return Ok(None);
        }
        match lookup::recognise(question) {
            None => Ok(None),
            Some(Lookup::Identifier(name)) => {
                let ask = Ask { exact: Some(&name), ..*ask };
                Ok(Some(engine::answer(corpora, &ask, policy)?))
            }
            Some(Lookup::Page(name)) => {
                let Some((corpus, path)) = lookup::page(corpora, &name, ask.scope) else {
                    return Ok(None);
                };
                let generation = &corpora[corpus].generation;
                let first = generation.scope(&path).find(|n| {
                    let (chunk, section) = generation.section(*n);
                    says_something(chunk.section_text(section))
                });
                let named = Confidence::new(lookup::NAMED);
                let Some(first) = first.filter(|_| policy.lets_pass(named)) else {
                    return Ok(None);
                };
                let mut verdict =
                    engine::show(corpora, ask, policy, (corpus, first), lookup::NAMED)?;
                verdict.route.insert(1, lookup::STEP.to_owned());
                Ok(Some(verdict))
            }
        }
    }

    /// Answers by a scan of all documents where the question asks for one, from the files where it names
    /// what it wants, else by the best sections.
    fn decide(&self, question: &Question, scope: Option<&str>) -> Result<Verdict, AskError> {
        let (corpora, policy) = (self.corpora, self.service.policy());
        let vector = self.service.question_vector(question, corpora);
        let ask = self.ask(question, vector.as_ref(), scope);
        let asked = scan::question::recognise(question.text())
            .filter(|_| request::refuse(question.text()).is_none());
        let Some(asked) = asked else {
            return match self.looked_up(&ask)? {
                Some(verdict) => Ok(verdict),
                None => Ok(engine::answer(corpora, &ask, policy)?),
            };
        };
        let scan = Scan { question: &asked, scope, k: self.request.k };
        let refuse =
            |reason, message| engine::refuse(corpora, &ask, policy, (reason, message), scan::STEP);
        Ok(match scan::run(corpora, &scan, &scan::text::read) {
            Ok(Outcome::Found(found)) if policy.lets_pass(found.confidence) => {
                found.verdict(ask.explain)
            }
            Ok(Outcome::Absent(message)) => refuse(RefusalReason::NoEvidence, message)?,
            Ok(_) => {
                let mut verdict = engine::answer(corpora, &ask, policy)?;
                verdict.route.insert(1, scan::STEP.to_owned());
                verdict
            }
            Err(e) => {
                tracing::error!("a document cannot be read: {e}");
                let message = "not every document could be read, so nothing can be said of all of them; the nearest sections are listed";
                refuse(RefusalReason::Degraded, message.to_owned())?
            }
        })
    }

    /// The post-processor: no answer leaves without citations that hold.
    pub(super) fn guard(&self, verdict: Verdict) -> Verdict {
        let corpora = self.corpora;
        let corpus_of = |c: &Citation| {
            corpora
                .iter()
                .map(|corpus| &**corpus)
                .find(|corpus| c.repo.as_ref().is_none_or(|r| *r == corpus.repo))
        };
        let checked = citation::check_answer(&verdict.answer, &verdict.citations, corpus_of);
        let Err(e) = checked else {
            let mut verdict = verdict;
            verdict
                .related
                .retain(|c| corpus_of(c).is_some_and(|corpus| citation::check(corpus, c).is_ok()));
            return verdict;
        };
        tracing::error!("an answer was withheld: {e}");
        Verdict {
            answer: I_DO_NOT_KNOW.into(),
            band: Band::Closest,
            citations: Vec::new(),
            related: Vec::new(),
            refusal: Some(verdict.refusal.unwrap_or(Refusal {
                reason: RefusalReason::NoEvidence,
                message: format!("an answer was found, but its citation does not hold: {e}"),
                searched: Vec::new(),
                nearest: Vec::new(),
            })),
            ..verdict
        }
    }
}

/// Whether an answer speaks of what a follow-up adds: in the heading or path that is cited first, or in
/// its text, unless that is a long procedure, where a word in passing says nothing.
fn speaks_of(verdict: &Verdict, form: &Form) -> bool {
    const LONG_CHARS: usize = 2000;
    let (Some(added), Some(first)) = (form.added(), verdict.citations.first()) else { return true };
    let wanted: Vec<String> = analyse(added)
        .into_iter()
        .filter(|t| !t.within && !is_stop_word(&t.surface))
        .map(|t| t.stem)
        .collect();
    let holds = |texts: &[&str]| {
        let present: FxHashSet<String> =
            texts.iter().flat_map(|t| analyse(t)).map(|t| t.stem).collect();
        wanted.iter().filter(|w| present.contains(*w)).count() * 2 >= wanted.len()
    };
    let trail = first.heading_path.join(" ");
    holds(&[&first.path, &trail])
        || (verdict.answer.len() <= LONG_CHARS && holds(&[&verdict.answer]))
}

/// A reading without what was asked of the thing, for the gate: "it" is the password, not its place.
fn bare(text: &str) -> String {
    const PLACES: [&str; 9] =
        ["kept", "stored", "located", "saved", "found", "live", "lives", "rotated", "changed"];
    text.split(' ').filter(|w| !PLACES.contains(w)).collect::<Vec<_>>().join(" ")
}

/// "and bugsnag?" after a scan is the same scan of another subject.
fn scan_of_another(form: &Form, previous: &str) -> Option<String> {
    use scan::question::Want;
    let (Form::Replaces(x), Some(scan)) = (form, scan::question::recognise(previous)) else {
        return None;
    };
    let name = match &scan.want {
        Want::Mention { subjects, .. } => subjects.first()?.name().to_owned(),
        Want::Topic { phrase, .. } => phrase.clone(),
        Want::Everything => return None,
    };
    let at = previous.find(&name)?;
    Some(format!("{}{x}{}", &previous[..at], &previous[at + name.len()..]))
}

/// The verdict of a question that the gate refuses once it is completed.
fn refused_as(verdict: Verdict, reason: RefusalReason) -> Verdict {
    let (searched, nearest) = verdict.refusal.map(|r| (r.searched, r.nearest)).unwrap_or_default();
    Verdict {
        answer: I_DO_NOT_KNOW.into(),
        band: if verdict.band == Band::Answer { Band::Closest } else { verdict.band },
        citations: Vec::new(),
        related: Vec::new(),
        refusal: Some(Refusal {
            reason,
            message: reason.explanation().to_owned(),
            searched,
            nearest,
        }),
        ..verdict
    }
}

fn says_something(text: &str) -> bool {
    text.lines().any(|l| !l.trim_start().starts_with('#') && l.chars().any(char::is_alphanumeric))
}

/// What is remembered of a question.
fn turn(question: String, verdict: &Verdict) -> Turn {
    let place = |path: &str, lines, repo: Option<&String>| Place {
        repo: repo.cloned().unwrap_or_default(),
        path: path.to_owned(),
        lines,
    };
    let cited =
        verdict.citations.iter().take(PLACES_MAX).map(|c| place(&c.path, c.lines, c.repo.as_ref()));
    let near = verdict.refusal.iter().flat_map(|r| &r.nearest).take(PLACES_MAX);
    let near = near.map(|n| place(&n.path, n.lines, None));
    Turn {
        question,
        places: cited.chain(near).collect(),
        answered: (verdict.band == Band::Answer).then(|| verdict.confidence.get()),
    }
}
