//! Both arms and their fusion: sections with their raw scores, best first.
//!
//! Lexical: BM25 over weighted terms of the question. Dense: the best window of each section. Both
//! are searched within the scope, before anything is cut off. The fused score is a convex sum of
//! the raw scores, each divided by the best of its arm (DESIGN: it beats reciprocal ranks by .05).

use super::corpus::Corpus;
use super::expand;
use super::question::Question;
use crate::analyse::{Term, TermKind};
use crate::lexical::{LexicalError, LexicalHit, QueryTerm, TextField};
use crate::limits::QUESTION_TERMS_MAX;
use crate::score::{Bm25Score, CosineScore, FusedScore};
use crate::vectors::{self, VectorIndex, VectorSearch, dot_f32};
use rustc_hash::{FxHashMap, FxHashSet};
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
    /// Plain convex sum of the two raw scores.
    Convex,
    /// The linear ranker over [`FEATURES`].
    Hybrid,
}

/// The numbers that retrieval is tuned by; docs/measurements.md says how they were found.
#[derive(Clone, Debug)]
pub struct Tuning {
    /// Factor of each text field.
    pub fields: [f32; 5],
    /// Weights of the ranker's features, in the order of [`FEATURES`]; scores are divided by the best
    /// of their kind before.
    pub ranker: [f32; FEATURES.len()],
    /// Share of proximity in the score of the first hits, where a section holds all of the question.
    pub proximity_share: f32,
    /// The stretch within which terms count as close, in atoms.
    pub stretch: u32,
    /// How many hits are looked at for proximity.
    pub reranked: usize,
    /// Share of the lexical arm in the plain convex sum.
    pub lexical_share: f32,
    /// Share of a text in links from which on it only points elsewhere.
    pub pointers_from: f32,
    /// Factor of the score of such a section.
    pub pointers_factor: f32,
    /// Sections taken from each arm before fusion.
    pub depth: usize,
    /// Whether other forms of a word are looked up, at a lower weight.
    pub expand: bool,
}

impl Default for Tuning {
    fn default() -> Self {
        Self {
            fields: [0.6, 1.2, 1.0, 0.6, 1.0],
            ranker: [0.3, 0.0, 0.25, 0.4, 0.0, 0.1, 0.2, 0.2, 0.4],
            proximity_share: 0.2,
            stretch: 12,
            reranked: 20,
            lexical_share: 0.5,
            pointers_from: 0.7,
            pointers_factor: 0.8,
            depth: 100,
            expand: true,
        }
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
    /// Cosine of the window of title and headings alone; none without vectors.
    pub heading_cosine: Option<CosineScore>,
    /// Cosine of the best window with text; none without vectors or text.
    pub body_cosine: Option<CosineScore>,
    /// Cosine of the best span within the windows, a few lines; that of the best window where there is
    /// none; none without vectors.
    pub span_cosine: Option<CosineScore>,
    /// Share of the question's terms, by idf, that stand in the section.
    pub coverage: f32,
    /// Share of them that stand in its title or headings.
    pub heading_coverage: f32,
    /// The best BM25 of any candidate section of the document.
    pub page_bm25: f32,
    /// The best cosine of any candidate section of the document.
    pub page_cosine: f32,
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

impl LookedUp {
    /// The stem that was looked up.
    #[must_use]
    pub fn wanted(&self) -> &str {
        self.corrected.as_deref().unwrap_or(&self.term.stem)
    }
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

fn query_terms(terms: &[LookedUp], corpus: &Corpus, expand: bool) -> Vec<QueryTerm> {
    // Words within an identifier that stands as a whole say little more than the whole.
    let whole_at: Vec<u32> = terms
        .iter()
        .filter(|t| t.term.kind == TermKind::Whole && t.df > 0)
        .map(|t| t.term.position)
        .collect();
    terms
        .iter()
        .map(|t| {
            let within = t.term.within && whole_at.contains(&t.term.position);
            query_term(t, if within { 0.3 } else { 1.0 }, corpus, expand)
        })
        .collect()
}

fn query_term(t: &LookedUp, factor: f32, corpus: &Corpus, expand: bool) -> QueryTerm {
    if t.term.kind == TermKind::Whole {
        return QueryTerm {
            forms: vec![(TextField::Ident, t.term.surface.clone(), 1.0)],
            weight: factor,
        };
    }
    let (stem, surface, weight) = match &t.corrected {
        Some(word) => (word.as_str(), word.as_str(), factor * 0.8),
        None => (t.term.stem.as_str(), t.term.surface.as_str(), factor),
    };
    let stemmed = [TextField::Title, TextField::Trail, TextField::Body];
    let mut forms: Vec<_> = stemmed.map(|field| (field, stem.to_owned(), 1.0)).into();
    forms.push((TextField::Code, surface.to_owned(), 1.0));
    if !t.term.within {
        forms.push((TextField::Ident, surface.to_owned(), 1.0));
        let others = if expand { expand::expansions(stem, corpus) } else { Vec::new() };
        for (other, weight) in others {
            forms.extend(stemmed.map(|field| (field, other.clone(), weight)));
        }
    }
    QueryTerm { forms, weight }
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
    let wanted = query_terms(&terms, corpus, tuning.expand);
    let lexical = corpus.generation.lexical.search(&wanted, &tuning.fields, scope)?;
    let by_section: FxHashMap<u32, LexicalHit> = lexical.iter().map(|h| (h.section, *h)).collect();
    let mut sections: FxHashSet<u32> =
        lexical.iter().take(tuning.depth).map(|h| h.section).collect();
    let dense = corpus.generation.vectors.as_ref().zip(vector);
    if let Some((vectors, vector)) = dense {
        let serves = corpus.generation.manifest.graph.filter(|g| g.serves);
        let how = serves.map_or(VectorSearch::Scan, |g| VectorSearch::Graph { ef: g.ef as usize });
        // Windows of one section crowd the list: ask for more of them than sections are wanted.
        let windows = vectors.search(vector, scope, tuning.depth * 2, how);
        sections.extend(windows.iter().map(|(window, _)| vectors.sections()[*window as usize]));
    }
    let weights = term_weights(&terms);
    let quantised = vector.map(|v| vectors::quantised(v.len(), v)).unwrap_or_default();
    let mut hits: Vec<Hit> = sections
        .into_iter()
        .map(|section| {
            let found = by_section.get(&section);
            let cosines =
                dense.map(|(vectors, vector)| cosines(vectors, section, vector, &quantised));
            Hit {
                corpus: number,
                section,
                bm25: found.map_or(Bm25Score(0.0), |h| h.score),
                cosine: cosines.map(|c| CosineScore(c.best)),
                heading_cosine: cosines.map(|c| CosineScore(c.heading)),
                body_cosine: cosines.map(|c| CosineScore(c.body)),
                span_cosine: cosines.map(|c| CosineScore(c.span)),
                coverage: found.map_or(0.0, |h| covered(&weights, h.matched)),
                heading_coverage: found.map_or(0.0, |h| covered(&weights, h.matched_heading)),
                page_bm25: 0.0,
                page_cosine: 0.0,
                fused: FusedScore(0.0),
            }
        })
        .collect();
    rate_pages(corpus, number, &mut hits);
    Ok(Retrieved { hits, terms })
}

/// The share of each of the first 64 terms in the weight of all; parts of identifiers count nothing.
fn term_weights(terms: &[LookedUp]) -> Vec<f32> {
    let own = |t: &LookedUp| if t.term.within { 0.0 } else { t.idf };
    let total: f32 = terms.iter().map(own).sum::<f32>().max(1e-6);
    terms.iter().take(64).map(|t| own(t) / total).collect()
}

fn covered(weights: &[f32], matched: u64) -> f32 {
    weights.iter().enumerate().filter(|(n, _)| matched >> n & 1 == 1).map(|(_, w)| w).sum()
}

/// Cosines of a section.
#[derive(Clone, Copy)]
struct Cosines {
    /// Of its best window.
    best: f32,
    /// Of the first one: title and headings alone.
    heading: f32,
    /// Of the best with text.
    body: f32,
    /// Of the best span.
    span: f32,
}

fn cosines(vectors: &VectorIndex, section: u32, question: &[f32], quantised: &[i8]) -> Cosines {
    let sections = vectors.sections();
    let windows =
        sections.partition_point(|s| *s < section)..sections.partition_point(|s| *s <= section);
    let span = vectors.best_span(windows.clone(), quantised);
    let cosines: Vec<f32> = windows.map(|w| dot_f32(vectors.row(w), question)).collect();
    let heading = cosines.first().copied().unwrap_or(0.0);
    let body = cosines.iter().skip(1).copied().reduce(f32::max).unwrap_or(heading);
    let best = body.max(heading);
    Cosines { best, heading, body, span: span.map_or(best, |c| c.0) }
}

/// How well the whole document fits, for each of its sections among the hits of one corpus.
pub(super) fn rate_pages(corpus: &Corpus, number: usize, hits: &mut [Hit]) {
    let document = |section: u32| corpus.generation.section(section).0.path.as_str();
    let mut best: FxHashMap<&str, (f32, f32)> = FxHashMap::default();
    for hit in hits.iter().filter(|h| h.corpus == number) {
        let best = best.entry(document(hit.section)).or_insert((0.0, 0.0));
        *best = (best.0.max(hit.bm25.0), best.1.max(hit.cosine.map_or(0.0, |c| c.0)));
    }
    for hit in hits.iter_mut().filter(|h| h.corpus == number) {
        let best = best.get(document(hit.section)).copied().unwrap_or((0.0, 0.0));
        (hit.page_bm25, hit.page_cosine) = best;
    }
}

/// Orders hits of one or several corpora by the fused score.
pub fn fuse(hits: &mut Vec<Hit>, arm: Arm, tuning: &Tuning) {
    match arm {
        Arm::Bm25 => hits.retain(|h| h.bm25.0 > 0.0),
        Arm::Dense => hits.retain(|h| h.cosine.is_some()),
        Arm::Rrf | Arm::Convex | Arm::Hybrid => {}
    }
    let best = |score: &dyn Fn(&Hit) -> f32| hits.iter().map(score).fold(0f32, f32::max).max(1e-6);
    let cosine = |h: &Hit| h.cosine.map_or(0.0, |c| c.0.max(0.0));
    let (bm25_best, cosine_best) = (best(&|h| h.bm25.0), best(&cosine));
    let divisors = [
        bm25_best,
        cosine_best,
        cosine_best,
        1.0,
        1.0,
        best(&|h| h.page_bm25),
        best(&|h| h.page_cosine),
        cosine_best,
        best(&|h| h.span_cosine.map_or(0.0, |c| c.0)),
    ];
    let has_vectors = hits.iter().any(|h| h.cosine.is_some());
    let share = if has_vectors { tuning.lexical_share } else { 1.0 };
    let ranks =
        if arm == Arm::Rrf { Some((ranks(hits, |h| h.bm25.0), ranks(hits, cosine))) } else { None };
    for (at, hit) in hits.iter_mut().enumerate() {
        hit.fused = FusedScore(match arm {
            Arm::Bm25 => hit.bm25.0 / bm25_best,
            Arm::Dense => cosine(hit) / cosine_best,
            Arm::Rrf => ranks.as_ref().map_or(0.0, |(b, c)| reciprocal(b[at]) + reciprocal(c[at])),
            Arm::Convex => {
                share * hit.bm25.0 / bm25_best + (1.0 - share) * cosine(hit) / cosine_best
            }
            Arm::Hybrid => linear(&features(hit), &divisors, &tuning.ranker),
        });
    }
    hits.sort_by(|a, b| {
        b.fused.0.total_cmp(&a.fused.0).then((a.corpus, a.section).cmp(&(b.corpus, b.section)))
    });
}

/// The weighted mean of the features, each divided by the best of its kind.
fn linear(
    features: &[f32; FEATURES.len()],
    divisors: &[f32; FEATURES.len()],
    weights: &[f32; FEATURES.len()],
) -> f32 {
    let sum: f32 =
        features.iter().zip(divisors).zip(weights).map(|((f, d), w)| w * (f.max(0.0) / d)).sum();
    sum / weights.iter().sum::<f32>().max(1e-6)
}

/// The raw features of a hit, in the order of [`FEATURES`].
#[must_use]
pub fn features(hit: &Hit) -> [f32; FEATURES.len()] {
    [
        hit.bm25.0,
        hit.cosine.map_or(0.0, |c| c.0),
        hit.heading_cosine.map_or(0.0, |c| c.0),
        hit.coverage,
        hit.heading_coverage,
        hit.page_bm25,
        hit.page_cosine,
        hit.body_cosine.map_or(0.0, |c| c.0),
        hit.span_cosine.map_or(0.0, |c| c.0),
    ]
}

/// Names of the features.
pub const FEATURES: [&str; 9] = [
    "bm25",
    "cosine",
    "heading_cosine",
    "coverage",
    "heading_coverage",
    "page_bm25",
    "page_cosine",
    "body_cosine",
    "span_cosine",
];

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
