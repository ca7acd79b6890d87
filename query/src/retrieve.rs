//! Both arms and their fusion: sections with their raw scores, best first.
//!
//! Lexical: BM25 over weighted terms of the question. Dense: the best window of each section. Both
//! are searched within the scope, before anything is cut off. The fused score is a convex sum of
//! the raw scores, each divided by the best of its arm (DESIGN: it beats reciprocal ranks by .05).

use crate::corpus::Corpus;
use crate::question::Question;
use runbook_shared::analyse::{Term, TermKind};
use runbook_shared::lexical::{LexicalError, TextField, WeightedTerm};
use runbook_shared::limits::QUESTION_TERMS_MAX;
use runbook_shared::score::{Bm25Score, CosineScore, FusedScore};
use runbook_shared::vectors::{VectorSearch, dot_f32};
use rustc_hash::FxHashMap;
use std::ops::Range;

/// How a question's sections are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arm {
    /// BM25 alone.
    Bm25,
    /// Vectors alone.
    Dense,
    /// Reciprocal rank fusion with k = 60 (Cormack, Clarke and Buettcher 2009).
    Rrf,
    /// Convex fusion of raw scores.
    Hybrid,
}

/// The numbers that retrieval is tuned by; docs/measurements.md says how they were found.
#[derive(Clone, Debug)]
pub struct Tuning {
    /// Factor of each text field.
    pub fields: [f32; 5],
    /// Share of the lexical arm in the convex sum.
    pub lexical_share: f32,
    /// Sections taken from each arm before fusion.
    pub depth: usize,
}

impl Default for Tuning {
    fn default() -> Self {
        Self { fields: [0.6, 1.2, 1.0, 0.6, 1.0], lexical_share: 0.5, depth: 100 }
    }
}

/// A section with its scores.
#[derive(Clone, Copy, Debug)]
pub struct Hit {
    /// Index into the corpora that were asked.
    pub corpus: usize,
    /// Number of the section in its generation.
    pub section: u32,
    /// BM25; zero when the lexical arm did not find it.
    pub bm25: Bm25Score,
    /// Cosine of the best window; none without vectors.
    pub cosine: Option<CosineScore>,
    /// The score that orders the list.
    pub fused: FusedScore,
}

/// What one retrieval found.
#[derive(Debug, Default)]
pub struct Retrieved {
    /// Sections, best first.
    pub hits: Vec<Hit>,
    /// The terms that were looked up, for explanations.
    pub terms: Vec<LookedUp>,
}

/// A term of the question as it was looked up in one corpus.
#[derive(Clone, Debug)]
pub struct LookedUp {
    /// The term.
    pub term: Term,
    /// In how many sections it stands.
    pub df: u32,
    /// Its inverse document frequency.
    pub idf: f32,
    /// What was looked up instead, where the corpus does not hold it.
    pub corrected: Option<String>,
}

/// The question's terms with their statistics; of many, the most informative.
#[must_use]
pub fn look_up(question: &Question, corpus: &Corpus) -> Vec<LookedUp> {
    let mut terms: Vec<LookedUp> = question
        .terms()
        .iter()
        .map(|term| {
            let df = match term.kind {
                TermKind::Word => corpus.stem_df(&term.stem).max(corpus.whole_df(&term.surface)),
                TermKind::Whole => corpus.whole_df(&term.surface),
            };
            let corrected = if df == 0 && term.kind == TermKind::Word && !term.within {
                corpus.correct(&term.stem).map(str::to_owned)
            } else {
                None
            };
            LookedUp { term: term.clone(), df, idf: corpus.idf(df), corrected }
        })
        .collect();
    if terms.len() > QUESTION_TERMS_MAX {
        let mut order: Vec<usize> = (0..terms.len()).collect();
        // Known terms before unknown ones, rare before common, early before late.
        order.sort_by(|a, b| {
            let (x, y) = (&terms[*a], &terms[*b]);
            (x.df == 0).cmp(&(y.df == 0)).then(y.idf.total_cmp(&x.idf)).then(a.cmp(b))
        });
        order.truncate(QUESTION_TERMS_MAX);
        order.sort_unstable();
        terms = order.into_iter().map(|at| terms[at].clone()).collect();
    }
    terms
}

fn weighted(terms: &[LookedUp], tuning: &Tuning) -> Vec<WeightedTerm> {
    let mut out = Vec::with_capacity(terms.len() * 4);
    // Words within an identifier that stands as a whole say little more than the whole.
    let whole_at: Vec<u32> = terms
        .iter()
        .filter(|t| t.term.kind == TermKind::Whole && t.df > 0)
        .map(|t| t.term.position)
        .collect();
    let mut push = |field: TextField, text: &str, factor: f32| {
        out.push(WeightedTerm {
            field,
            text: text.to_owned(),
            weight: tuning.fields[field as usize] * factor,
        });
    };
    for t in terms {
        if t.term.kind == TermKind::Whole {
            push(TextField::Ident, &t.term.surface, 1.0);
            continue;
        }
        let within = t.term.within && whole_at.contains(&t.term.position);
        let factor = if within { 0.3 } else { 1.0 };
        let (stem, surface, factor) = match &t.corrected {
            Some(word) => (word.as_str(), word.as_str(), factor * 0.8),
            None => (t.term.stem.as_str(), t.term.surface.as_str(), factor),
        };
        push(TextField::Title, stem, factor);
        push(TextField::Trail, stem, factor);
        push(TextField::Body, stem, factor);
        push(TextField::Code, surface, factor);
        if !t.term.within {
            push(TextField::Ident, surface, factor);
        }
    }
    out
}

/// Retrieves from one corpus; `vector` is the question's, where the dense arm can run.
///
/// # Errors
/// When the lexical index cannot be read.
pub fn retrieve(
    corpus: &Corpus,
    number: usize,
    question: &Question,
    vector: Option<&[f32]>,
    scope: &Range<u32>,
    tuning: &Tuning,
) -> Result<Retrieved, LexicalError> {
    let terms = look_up(question, corpus);
    let lexical =
        corpus.generation.lexical.search(&weighted(&terms, tuning), scope, tuning.depth)?;
    let mut hits: FxHashMap<u32, Hit> = FxHashMap::default();
    let hit = |section| Hit {
        corpus: number,
        section,
        bm25: Bm25Score(0.0),
        cosine: None,
        fused: FusedScore(0.0),
    };
    for (section, score) in lexical {
        hits.entry(section).or_insert_with(|| hit(section)).bm25 = score;
    }
    if let (Some(vectors), Some(vector)) = (&corpus.generation.vectors, vector) {
        let sections = vectors.sections();
        let serves = corpus.generation.manifest.graph.filter(|g| g.serves);
        let how = serves.map_or(VectorSearch::Scan, |g| VectorSearch::Graph { ef: g.ef as usize });
        // Windows of one section crowd the list: ask for more of them than sections are wanted.
        for (window, _) in vectors.search(vector, scope, tuning.depth * 2, how) {
            let section = sections[window as usize];
            hits.entry(section).or_insert_with(|| hit(section));
        }
        for hit in hits.values_mut() {
            let windows = sections.partition_point(|s| *s < hit.section)
                ..sections.partition_point(|s| *s <= hit.section);
            let best = windows.map(|w| dot_f32(vectors.row(w), vector)).max_by(f32::total_cmp);
            hit.cosine = best.map(CosineScore);
        }
    }
    Ok(Retrieved { hits: hits.into_values().collect(), terms })
}

/// Orders hits of one or several corpora by the fused score.
pub fn fuse(hits: &mut Vec<Hit>, arm: Arm, tuning: &Tuning) {
    let best = |score: &dyn Fn(&Hit) -> f32| hits.iter().map(score).fold(0f32, f32::max).max(1e-6);
    let (bm25_best, cosine_best) = (best(&|h| h.bm25.0), best(&|h| h.cosine.map_or(0.0, |c| c.0)));
    let cosine = |h: &Hit| h.cosine.map_or(0.0, |c| c.0.max(0.0));
    let has_vectors = hits.iter().any(|h| h.cosine.is_some());
    match arm {
        Arm::Bm25 => hits.retain(|h| h.bm25.0 > 0.0),
        Arm::Dense => hits.retain(|h| h.cosine.is_some()),
        Arm::Rrf | Arm::Hybrid => {}
    }
    let ranks =
        if arm == Arm::Rrf { Some((ranks(hits, |h| h.bm25.0), ranks(hits, cosine))) } else { None };
    for (at, hit) in hits.iter_mut().enumerate() {
        let share = if has_vectors { tuning.lexical_share } else { 1.0 };
        hit.fused = FusedScore(match arm {
            Arm::Bm25 => hit.bm25.0 / bm25_best,
            Arm::Dense => cosine(hit) / cosine_best,
            Arm::Rrf => ranks.as_ref().map_or(0.0, |(b, c)| reciprocal(b[at]) + reciprocal(c[at])),
            Arm::Hybrid => {
                share * hit.bm25.0 / bm25_best + (1.0 - share) * cosine(hit) / cosine_best
            }
        });
    }
    hits.sort_by(|a, b| {
        b.fused.0.total_cmp(&a.fused.0).then((a.corpus, a.section).cmp(&(b.corpus, b.section)))
    });
}

/// Ranks from 1 by a score, none for a score of 0.
fn ranks(hits: &[Hit], score: impl Fn(&Hit) -> f32) -> Vec<Option<usize>> {
    let mut order: Vec<usize> = (0..hits.len()).filter(|at| score(&hits[*at]) > 0.0).collect();
    order.sort_by(|a, b| {
        score(&hits[*b]).total_cmp(&score(&hits[*a])).then(hits[*a].section.cmp(&hits[*b].section))
    });
    let mut ranks = vec![None; hits.len()];
    for (rank, at) in order.into_iter().enumerate() {
        ranks[at] = Some(rank + 1);
    }
    ranks
}

fn reciprocal(rank: Option<usize>) -> f32 {
    #[expect(clippy::cast_precision_loss, reason = "ranks are small")]
    rank.map_or(0.0, |r| 1.0 / (60.0 + r as f32))
}
