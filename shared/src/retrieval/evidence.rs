//! Named signals of how well a section supports a question; [`super::model`] weighs them.
//!
//! Every signal is a number between 0 and 1 (a cosine: -1 to 1) that a person can check by looking
//! at the question and the section. Scores of a list's order are not among them: the best fused
//! score is near the same for every question.

use super::arms::{Hit, LookedUp};
use super::corpus::Corpus;
use crate::analyse::{TermKind, analyse};
use rustc_hash::FxHashSet;

/// The names of the signals, in the order of [`Signals`].
pub const NAMES: [&str; 16] = [
    "coverage",
    "heading_coverage",
    "rarest_present",
    "known_share",
    "identifiers_present",
    "bm25_share",
    "bm25_margin",
    "cosine",
    "cosine_margin",
    "agreement",
    "proximity",
    "answer_type",
    "heading_cosine",
    "missing_weight",
    "page_share",
    "expanded_coverage",
];

/// The signals of one question and its best section.
pub type Signals = [f32; NAMES.len()];

/// Computes the signals of `hit` among `hits`, which are ordered by the fused score.
#[must_use]
pub fn signals(
    corpus: &Corpus,
    question: &str,
    terms: &[LookedUp],
    hits: &[Hit],
    hit: &Hit,
) -> Signals {
    let (chunk, section) = corpus.generation.section(hit.section);
    let body = section_terms(&[
        chunk.section_text(section),
        &chunk.title,
        &section.heading_path.join(" "),
    ]);
    let heading = section_terms(&[&chunk.title, &section.heading_path.join(" ")]);
    let present = |t: &LookedUp, set: &FxHashSet<(TermKind, String)>| {
        let stem = t.corrected.clone().unwrap_or_else(|| t.term.stem.clone());
        set.contains(&(t.term.kind, stem.clone())) || set.contains(&(TermKind::Whole, stem))
    };
    // Parts of an identifier that is present as a whole count with it.
    let own: Vec<&LookedUp> = terms.iter().filter(|t| !t.term.within).collect();
    let total: f32 = own.iter().map(|t| t.idf).sum::<f32>().max(1e-6);
    let share = |set: &FxHashSet<(TermKind, String)>| -> f32 {
        own.iter().filter(|t| present(t, set)).map(|t| t.idf).sum::<f32>() / total
    };
    let top = own.iter().map(|t| t.idf).fold(1e-6, f32::max);
    let missing = own.iter().filter(|t| !present(t, &body)).map(|t| t.idf).fold(0.0, f32::max);
    let rarest = own.iter().max_by(|a, b| a.idf.total_cmp(&b.idf));
    let count = |n: usize| f32::from(u16::try_from(n).unwrap_or(u16::MAX));
    let known = own.iter().filter(|t| t.df > 0 || t.corrected.is_some()).count();
    let wholes: Vec<_> = own.iter().filter(|t| t.term.kind == TermKind::Whole).collect();
    let second = |score: &dyn Fn(&Hit) -> f32| {
        hits.iter()
            .filter(|h| h.section != hit.section || h.corpus != hit.corpus)
            .map(score)
            .fold(0f32, f32::max)
    };
    let bm25 = |h: &Hit| h.bm25.0;
    let cosine = |h: &Hit| h.cosine.map_or(0.0, |c| c.0);
    let bm25_best = hits.iter().map(bm25).fold(1e-6f32, f32::max);
    [
        share(&body),
        share(&heading),
        rarest.map_or(0.0, |t| if present(t, &body) { 1.0 } else { 0.0 }),
        if own.is_empty() { 0.0 } else { count(known) / count(own.len()) },
        if wholes.is_empty() {
            1.0
        } else {
            count(wholes.iter().filter(|t| present(t, &body)).count()) / count(wholes.len())
        },
        (hit.bm25.0 / (total * BM25_PER_IDF)).min(1.0),
        ((hit.bm25.0 - second(&bm25)) / bm25_best).clamp(-1.0, 1.0),
        cosine(hit),
        (cosine(hit) - second(&cosine)).clamp(-1.0, 1.0),
        agreement(hits, hit),
        proximity(chunk.section_text(section), &own, 40),
        answer_type(question, chunk.section_text(section)),
        hit.heading_cosine.map_or(0.0, |c| c.0),
        missing / top,
        same_page(corpus, hits, hit),
        hit.coverage,
    ]
}

/// About the most that BM25 gives a unit of idf over all fields: (k1 + 1) times the sum of weights.
const BM25_PER_IDF: f32 = 5.0;

fn section_terms(texts: &[&str]) -> FxHashSet<(TermKind, String)> {
    texts.iter().flat_map(|t| analyse(t)).map(|t| (t.kind, t.stem)).collect()
}

/// The share of the five best sections that stand in the same document.
fn same_page(corpus: &Corpus, hits: &[Hit], hit: &Hit) -> f32 {
    let path = &corpus.generation.section(hit.section).0.path;
    let best = hits.iter().take(5).filter(|h| h.corpus == hit.corpus);
    let same = best.filter(|h| corpus.generation.section(h.section).0.path == *path).count();
    f32::from(u8::try_from(same).unwrap_or(5)) / 5.0
}

/// 1 when both arms put the section first, less by reciprocal ranks.
fn agreement(hits: &[Hit], hit: &Hit) -> f32 {
    let rank =
        |score: &dyn Fn(&Hit) -> f32| 1 + hits.iter().filter(|h| score(h) > score(hit)).count();
    let reciprocal = |r: usize| 1.0 / f32::from(u16::try_from(r).unwrap_or(u16::MAX));
    let lexical = if hit.bm25.0 > 0.0 { reciprocal(rank(&|h| h.bm25.0)) } else { 0.0 };
    let dense = hit.cosine.map_or(0.0, |_| reciprocal(rank(&|h| h.cosine.map_or(-1.0, |c| c.0))));
    (lexical + dense) / 2.0
}

/// The weight of the question's terms within the best stretch of so many atoms, by that of all.
#[must_use]
pub fn proximity(text: &str, terms: &[&LookedUp], stretch: u32) -> f32 {
    let mut places: Vec<(u32, usize)> = Vec::new();
    for found in analyse(text) {
        let at = terms.iter().position(|t| {
            t.term.kind == found.kind
                && t.corrected.as_deref().unwrap_or(&t.term.stem) == found.stem
        });
        places.extend(at.map(|at| (found.position, at)));
    }
    let total: f32 = terms.iter().map(|t| t.idf).sum::<f32>().max(1e-6);
    let mut best = 0f32;
    let mut first = 0;
    for last in 0..places.len() {
        while places[last].0 - places[first].0 > stretch {
            first += 1;
        }
        let within: FxHashSet<usize> = places[first..=last].iter().map(|p| p.1).collect();
        best = best.max(within.iter().map(|t| terms[*t].idf).sum());
    }
    best / total
}

/// Whether a fact of the asked kind stands in the text: 1 when it does or none is asked for.
fn answer_type(question: &str, text: &str) -> f32 {
    let question = question.to_lowercase();
    let asks = |words: &[&str]| {
        words.iter().any(|w| {
            question.split(|c: char| !c.is_alphanumeric()).any(|q| q == *w)
                || (w.contains(' ') && question.contains(w))
        })
    };
    let digits = text.bytes().any(|b| b.is_ascii_digit());
    let code = text.contains('`') || text.contains("\n    ");
    let host = text.split(|c: char| c.is_whitespace() || "`|()<>\"'".contains(c)).any(|w| {
        w.contains('.')
            && w.split('.').filter(|p| !p.is_empty()).count() > 1
            && w.chars().any(char::is_alphabetic)
    });
    let holds = if asks(&[
        "how many",
        "how much",
        "how long",
        "how often",
        "port",
        "ports",
        "when",
        "version",
        "number",
        "limit",
        "retention",
        "timeout",
        "size",
    ]) {
        digits
    } else if asks(&["command", "commands", "flag", "syntax", "run", "type"]) {
        code
    } else if asks(&["host", "hostname", "url", "domain", "address", "endpoint"]) {
        host
    } else {
        true
    };
    if holds { 1.0 } else { 0.0 }
}
