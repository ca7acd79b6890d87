//! From a question and a snapshot to a reply; no clock, no network, no files.

mod refusal;

use crate::citation;
use crate::compose;
use crate::gate::request;
use crate::passage::{self, Passage};
use crate::reply::{Band, Citation, Refusal, RefusalReason, round4};
use crate::route::lookup;
use runbook_shared::lexical::LexicalError;
use runbook_shared::retrieval::arms::{Arm, Hit, Tuning};
use runbook_shared::retrieval::corpus::Corpus;
use runbook_shared::retrieval::evidence::{self, NAMES, Signals};
use runbook_shared::retrieval::model::{self, Model};
use runbook_shared::retrieval::question::Question;
use runbook_shared::retrieval::search::{self, Found, Search, made_with};
use runbook_shared::score::{Bm25Score, Confidence, FusedScore, ScoreFloor};
use rustc_hash::FxHashMap;
use serde_json::json;
use std::sync::Arc;

/// How questions are answered.
#[derive(Clone, Debug)]
pub struct Policy {
    /// The arm that orders the list.
    pub arm: Arm,
    /// Retrieval's numbers.
    pub tuning: Tuning,
    /// The floor, where the operator has set one.
    pub score_floor: Option<ScoreFloor>,
}

impl Default for Policy {
    fn default() -> Self {
        Self { arm: Arm::Hybrid, tuning: Tuning::default(), score_floor: None }
    }
}

impl Policy {
    /// Whether the operator's floor, if there is one, lets an answer pass that no model has rated.
    #[must_use]
    pub fn lets_pass(&self, confidence: Confidence) -> bool {
        self.score_floor.is_none_or(|floor| confidence.get() >= floor.get())
    }
}

/// What is asked of the engine.
#[derive(Clone, Copy, Debug)]
pub struct Ask<'a> {
    /// The question.
    pub question: &'a Question,
    /// The question's vector with the sha256 of the model that made it, where the dense arm can run.
    pub vector: Option<(&'a [f32], &'a str)>,
    /// Path prefix, or `repo:NAME`.
    pub scope: Option<&'a str>,
    /// How many sections to name.
    pub k: usize,
    /// How many nearest sections a refusal names.
    pub nearest: usize,
    /// Whether to explain.
    pub explain: bool,
    /// An identifier that is all of the question: sections that hold it as it stands come first.
    pub exact: Option<&'a str>,
}

/// What the engine decides.
#[derive(Clone, Debug)]
pub struct Verdict {
    /// The passage, or the refusal's text.
    pub answer: String,
    /// The band.
    pub band: Band,
    /// Citations of the answer.
    pub citations: Vec<Citation>,
    /// Further sections.
    pub related: Vec<Citation>,
    /// The Confidence of the best section.
    pub confidence: Confidence,
    /// Why there is no answer.
    pub refusal: Option<Refusal>,
    /// The steps taken.
    pub route: Vec<String>,
    /// The corpus the best section is in.
    pub corpus: usize,
    /// True when the dense arm did not run.
    pub degraded: bool,
    /// The explanation.
    pub explain: Option<serde_json::Value>,
}

impl<'a> Ask<'a> {
    fn search(&self) -> Search<'a> {
        Search { question: self.question, vector: self.vector, scope: self.scope }
    }

    /// True when the dense arm cannot run over all of these.
    fn is_degraded(&self, corpora: &[Arc<Corpus>]) -> bool {
        !corpora.iter().all(|c| self.vector.is_some_and(|v| made_with(c, v.1)))
    }
}

/// Searches all corpora in scope.
///
/// # Errors
/// When an index cannot be read.
pub fn search(
    corpora: &[Arc<Corpus>],
    ask: &Ask<'_>,
    policy: &Policy,
) -> Result<Found, LexicalError> {
    let mut found = search::search(corpora, &ask.search(), policy.arm, &policy.tuning)?;
    if let Some(exact) = ask.exact {
        let holds = |hit: &Hit| {
            let (chunk, section) = corpora[hit.corpus].generation.section(hit.section);
            let texts = [chunk.section_text(section), &chunk.title];
            texts.into_iter().any(|text| lookup::holds(text, exact))
        };
        // Stable: among those that hold it, and those that do not, the order stays.
        found.hits.sort_by_cached_key(|hit| !holds(hit));
    }
    Ok(found)
}

/// Answers or refuses.
///
/// # Errors
/// When an index cannot be read.
pub fn answer(
    corpora: &[Arc<Corpus>],
    ask: &Ask<'_>,
    policy: &Policy,
) -> Result<Verdict, LexicalError> {
    let degraded = ask.is_degraded(corpora);
    let refused = request::refuse(ask.question.text());
    let found = search(corpora, ask, policy)?;
    let mut route = vec!["request_gate".to_owned()];
    route.extend(ask.exact.map(|_| lookup::STEP.to_owned()));
    route.push("lexical".to_owned());
    if found.hits.iter().any(|h| h.cosine.is_some()) {
        route.extend(["dense".to_owned(), "fusion".to_owned()]);
    }
    route.push("evidence_gate".to_owned());
    let engine = Engine { corpora, ask, policy, found: &found, degraded };
    let Some(best) = found.hits.first() else {
        let empty = corpora.iter().all(|c| c.is_empty());
        let reason = refused.unwrap_or(if empty {
            RefusalReason::EmptyIndex
        } else if degraded {
            RefusalReason::Degraded
        } else {
            RefusalReason::NoEvidence
        });
        let explain =
            ask.explain.then(|| json!({"signals": [], "request_gate": refused, "hits": 0}));
        return Ok(engine.refuse(reason, Confidence::new(0.0), Band::Nothing, route, explain));
    };
    let (model, signals, confidence) = engine.rate(best);
    let floor = policy.score_floor.map_or(model.score_floor, ScoreFloor::get);
    let explain = ask.explain.then(|| engine.explain(model, &signals, confidence, floor, refused));
    if let Some(reason) = refused {
        return Ok(engine.refuse(
            reason,
            confidence,
            engine.refusal_band(model, confidence),
            route,
            explain,
        ));
    }
    if confidence.get() < floor {
        let reason = if degraded { RefusalReason::Degraded } else { RefusalReason::NoEvidence };
        return Ok(engine.refuse(
            reason,
            confidence,
            engine.refusal_band(model, confidence),
            route,
            explain,
        ));
    }
    route.push("passage".to_owned());
    Ok(engine.accept(best, confidence, route, explain))
}

/// Shows a section that is known otherwise than by searching for it, as sure as that is.
///
/// # Errors
/// When an index cannot be read.
pub fn show(
    corpora: &[Arc<Corpus>],
    ask: &Ask<'_>,
    policy: &Policy,
    (corpus, section): (usize, u32),
    confidence: f32,
) -> Result<Verdict, LexicalError> {
    let degraded = ask.is_degraded(corpora);
    let found = search(corpora, ask, policy)?;
    let engine = Engine { corpora, ask, policy, found: &found, degraded };
    let hit = found.hits.iter().find(|h| (h.corpus, h.section) == (corpus, section));
    let hit = hit.copied().unwrap_or_else(|| unscored(corpus, section));
    let route = ["request_gate", "passage"].map(str::to_owned).to_vec();
    let explain = ask.explain.then(|| json!({"confidence": round4(confidence)}));
    Ok(engine.accept(&hit, Confidence::new(confidence), route, explain))
}

/// Refuses for a reason that retrieval does not know, with the sections that are nearest by retrieval.
///
/// # Errors
/// When an index cannot be read.
pub fn refuse(
    corpora: &[Arc<Corpus>],
    ask: &Ask<'_>,
    policy: &Policy,
    (reason, message): (RefusalReason, String),
    step: &str,
) -> Result<Verdict, LexicalError> {
    let found = search(corpora, ask, policy)?;
    let engine = Engine { corpora, ask, policy, found: &found, degraded: false };
    let rated = found.hits.first().map(|best| engine.rate(best));
    let confidence = rated.as_ref().map_or(Confidence::new(0.0), |r| r.2);
    let band = rated.as_ref().map_or(Band::Nothing, |r| engine.refusal_band(r.0, confidence));
    let explain = ask.explain.then(|| json!({"refused": message}));
    let route = vec!["request_gate".to_owned(), step.to_owned()];
    let mut verdict = engine.refuse(reason, confidence, band, route, explain);
    if let Some(refusal) = &mut verdict.refusal {
        refusal.message = message;
    }
    Ok(verdict)
}

struct Engine<'a> {
    corpora: &'a [Arc<Corpus>],
    ask: &'a Ask<'a>,
    policy: &'a Policy,
    found: &'a Found,
    degraded: bool,
}

impl Engine<'_> {
    fn model(&self, best: &Hit) -> &'static Model {
        let embedder = self.corpora[best.corpus].generation.manifest.embedder.as_ref();
        let sha = embedder.filter(|_| !self.degraded).map(|e| e.model_sha256.as_str());
        model::for_embedder(sha)
    }

    /// The model, the signals of a hit and its Confidence.
    fn rate(&self, hit: &Hit) -> (&'static Model, Signals, Confidence) {
        let model = self.model(hit);
        let corpus = &self.corpora[hit.corpus];
        let signals = evidence::signals(
            corpus,
            &self.found.terms[hit.corpus],
            self.ask.vector.filter(|v| made_with(corpus, v.1)).map(|v| v.0),
            &self.found.hits,
            hit,
        );
        let confidence = model.confidence(&signals);
        (model, signals, confidence)
    }

    fn refusal_band(&self, model: &Model, confidence: Confidence) -> Band {
        if confidence.get() >= model.closest_floor { Band::Closest } else { Band::Nothing }
    }

    fn passage(&self, hit: &Hit) -> (Passage, Vec<Passage>) {
        let (chunk, section) = self.corpora[hit.corpus].generation.section(hit.section);
        passage::choose(chunk, section, &self.found.terms[hit.corpus])
    }

    fn cite(&self, hit: &Hit, passage: &Passage) -> Citation {
        let corpus = &self.corpora[hit.corpus];
        citation::cite(corpus, hit.section, passage, hit.fused.0, self.corpora.len() > 1)
    }

    fn accept(
        &self,
        best: &Hit,
        confidence: Confidence,
        route: Vec<String>,
        explain: Option<serde_json::Value>,
    ) -> Verdict {
        let corpus = &self.corpora[best.corpus];
        let terms = &self.found.terms[best.corpus];
        let shown = compose::compose(corpus, best.section, self.ask.question.text(), terms);
        let passages = shown.warnings.iter().chain([&shown.main]).chain(&shown.following);
        let mut answer = passages.map(|(_, p)| p.text.as_str()).collect::<Vec<_>>().join("\n\n");
        let cite = |(section, passage): &(u32, Passage)| {
            self.cite(&Hit { section: *section, ..*best }, passage)
        };
        let mut citations = vec![cite(&shown.main)];
        citations.extend(shown.following.iter().chain(&shown.warnings).map(cite));
        citations.truncate(self.ask.k);
        if let Some((steps, line)) = shown.more_steps {
            let place = citations[0]
                .url
                .clone()
                .unwrap_or_else(|| format!("{} line {line}", citations[0].path));
            answer.push_str(&format!("\n\n{steps} more steps: {place}"));
        }
        let related = self.related(best, self.ask.k.saturating_sub(citations.len()));
        Verdict {
            answer,
            band: Band::Answer,
            citations,
            related,
            confidence,
            refusal: None,
            route,
            corpus: best.corpus,
            degraded: self.degraded,
            explain,
        }
    }

    /// Further sections, not too many of one document, no section twice.
    fn related(&self, best: &Hit, most: usize) -> Vec<Citation> {
        self.spread(most + 1)
            .into_iter()
            .filter(|h| (h.corpus, h.section) != (best.corpus, best.section))
            .take(most)
            .map(|h| self.cite(&h, &self.passage(&h).0))
            .collect()
    }

    /// The best hits with at most half of them of one document, three in any case, and no text twice.
    fn spread(&self, most: usize) -> Vec<Hit> {
        let of_one_document = (most / 2).max(3);
        let mut by_document: FxHashMap<(usize, &str), usize> = FxHashMap::default();
        let mut texts: Vec<(usize, &str)> = Vec::new();
        let mut kept = Vec::new();
        for hit in &self.found.hits {
            if kept.len() == most {
                break;
            }
            let (chunk, section) = self.corpora[hit.corpus].generation.section(hit.section);
            let count = by_document.entry((hit.corpus, chunk.path.as_str())).or_insert(0);
            let text = (hit.corpus, chunk.section_text(section));
            if *count == of_one_document || texts.contains(&text) {
                continue;
            }
            *count += 1;
            texts.push(text);
            kept.push(*hit);
        }
        kept
    }

    fn explain(
        &self,
        model: &Model,
        signals: &Signals,
        confidence: Confidence,
        floor: f32,
        refused: Option<RefusalReason>,
    ) -> serde_json::Value {
        let rows: Vec<_> = NAMES
            .iter()
            .zip(signals.iter().zip(&model.weights))
            .map(
                |(name, (value, weight))| json!({"signal": name, "value": round4(*value), "weight": round4(*weight)}),
            )
            .collect();
        let best = self.found.hits.first();
        let terms: Vec<_> = best
            .map(|b| &self.found.terms[b.corpus])
            .into_iter()
            .flatten()
            .map(|t| json!({"term": t.term.surface, "stem": t.term.stem, "in_sections": t.df, "idf": t.idf, "read_as": t.corrected}))
            .collect();
        json!({
            "signals": rows, "bias": round4(model.bias), "confidence": round4(confidence.get()), "score_floor": round4(floor),
            "closest_floor": round4(model.closest_floor), "model": {"fitted_on": model.fitted_on, "embedder_sha256": model.embedder_sha256},
            "request_gate": refused, "terms": terms,
            "arm": format!("{:?}", self.policy.arm), "ranker": self.policy.tuning.ranker.map(round4),
        })
    }
}

/// A section that no arm has found.
fn unscored(corpus: usize, section: u32) -> Hit {
    Hit {
        corpus,
        section,
        bm25: Bm25Score(0.0),
        cosine: None,
        heading_cosine: None,
        body_cosine: None,
        span_cosine: None,
        coverage: 0.0,
        heading_coverage: 0.0,
        page_bm25: 0.0,
        page_cosine: 0.0,
        fused: FusedScore(0.0),
    }
}
