//! Named signals of how well a section supports a question; [`super::model`] weighs them.
//!
//! Every signal is a number between 0 and 1 (a cosine or a difference: -1 to 1) that a person can
//! check by looking at the question and the sections. The score that orders the list is not among
//! them: its best value is near the same for every question. How far the best section stands out
//! from the next ones says more than any score of its own: where the answer is missing, its
//! neighbours are as good as it is.

use super::arms::{Hit, LookedUp};
use super::corpus::Corpus;
use crate::analyse::{TermKind, Wanted, analyse_for};
use crate::markdown::{BlockKind, blocks};
use rustc_hash::FxHashSet;

/// The names of the signals, in the order of [`Signals`].
pub const NAMES: [&str; 14] = [
    "coverage",
    "coverage_of_five",
    "missing_weight",
    "known_share",
    "proximity",
    "bm25_margin",
    "bm25_gap",
    "body_cosine",
    "cosine_z",
    "cosine_gap",
    "span_cosine",
    "span_gap",
    "agreement",
    "page_share",
];

/// The signals of one question and its best section.
pub type Signals = [f32; NAMES.len()];

/// Sections after the best that a gap is measured against.
const GAP: usize = 10;
/// Sections whose terms count together, and among which those of one document are counted.
const FIRST: usize = 5;
/// The stretch within which terms count as close, in atoms: about two sentences.
const STRETCH: u32 = 40;
/// Standard deviations that make a `cosine_z` of 1.
const Z_SCALE: f32 = 8.0;

/// Computes the signals of `hit` among `hits`, which are ordered by the fused score. `vector` is the
/// question's, where the dense arm ran.
#[must_use]
pub fn signals(
    corpus: &Corpus,
    terms: &[LookedUp],
    vector: Option<&[f32]>,
    hits: &[Hit],
    hit: &Hit,
) -> Signals {
    // Parts of an identifier that is present as a whole count with it.
    let own: Vec<&LookedUp> = terms.iter().filter(|t| !t.term.within).collect();
    let total: f32 = own.iter().map(|t| t.idf).sum::<f32>().max(1e-6);
    let first = hits.iter().filter(|h| h.corpus == hit.corpus).take(FIRST);
    let mut standing = section_terms(corpus, hit, &own);
    let share = |set: &Standing| -> f32 {
        own.iter().filter(|t| stands(t, set)).map(|t| t.idf).sum::<f32>() / total
    };
    let coverage = share(&standing);
    let top = own.iter().map(|t| t.idf).fold(1e-6, f32::max);
    let missing = own.iter().filter(|t| !stands(t, &standing)).map(|t| t.idf).fold(0.0, f32::max);
    for other in first.filter(|h| h.section != hit.section) {
        standing.extend(section_terms(corpus, other, &own));
    }
    let known = own.iter().filter(|t| t.df > 0 || t.corrected.is_some()).count();
    let (chunk, section) = corpus.generation.section(hit.section);
    let others: Vec<&Hit> =
        hits.iter().filter(|h| (h.corpus, h.section) != (hit.corpus, hit.section)).collect();
    let bm25 = |h: &Hit| h.bm25.0;
    let cosine = |h: &Hit| h.cosine.map_or(0.0, |c| c.0);
    let span = |h: &Hit| h.span_cosine.map_or(0.0, |c| c.0);
    let bm25_best = hits.iter().map(bm25).fold(1e-6f32, f32::max);
    let z = vector.and_then(|v| corpus.cosines(v)).map_or(0.0, |(mean, deviation)| {
        let best = hits.iter().map(cosine).fold(0f32, f32::max);
        ((best - mean) / (deviation.max(1e-3) * Z_SCALE)).clamp(0.0, 1.0)
    });
    [
        coverage,
        share(&standing),
        missing / top,
        if own.is_empty() { 0.0 } else { count(known) / count(own.len()) },
        proximity(chunk.section_text(section), &own, STRETCH),
        ((hit.bm25.0 - mean_of_best(&others, 1, bm25)) / bm25_best).clamp(-1.0, 1.0),
        ((hit.bm25.0 - mean_of_best(&others, GAP, bm25)) / bm25_best).clamp(-1.0, 1.0),
        hit.body_cosine.map_or(0.0, |c| c.0),
        z,
        if vector.is_some() { cosine(hit) - mean_of_best(&others, GAP, cosine) } else { 0.0 },
        span(hit),
        if vector.is_some() { span(hit) - mean_of_best(&others, GAP, span) } else { 0.0 },
        agreement(hits, hit),
        same_page(corpus, hits, hit),
    ]
}

fn count(n: usize) -> f32 {
    f32::from(u16::try_from(n).unwrap_or(u16::MAX))
}

/// The mean of the `most` largest scores, 0 without any.
fn mean_of_best(hits: &[&Hit], most: usize, score: impl Fn(&Hit) -> f32) -> f32 {
    let mut scores: Vec<f32> = hits.iter().map(|h| score(h)).collect();
    scores.sort_by(|a, b| b.total_cmp(a));
    scores.truncate(most);
    scores.iter().sum::<f32>() / count(scores.len().max(1))
}

/// Terms of a question that stand in a text.
pub type Standing = FxHashSet<(TermKind, String)>;

/// Those of the terms that stand in any of these texts.
#[must_use]
pub fn standing<'a>(texts: impl IntoIterator<Item = &'a str>, terms: &[&LookedUp]) -> Standing {
    let wanted: Wanted = terms.iter().map(|t| t.wanted()).collect();
    texts.into_iter().flat_map(|t| analyse_for(t, &wanted)).map(|t| (t.kind, t.stem)).collect()
}

/// Those of the terms that stand in a section, its title or its headings.
fn section_terms(corpus: &Corpus, hit: &Hit, terms: &[&LookedUp]) -> Standing {
    let (chunk, section) = corpus.generation.section(hit.section);
    let heading = section.heading_path.join(" ");
    standing([chunk.section_text(section), &chunk.title, &heading], terms)
}

/// Whether a term of the question is among them; a word also as an identifier.
#[must_use]
pub fn stands(term: &LookedUp, set: &Standing) -> bool {
    let stem = term.wanted().to_owned();
    set.contains(&(term.term.kind, stem.clone())) || set.contains(&(TermKind::Whole, stem))
}

/// Whether most of what a text holds of these terms stands in lists of nothing but questions; what
/// stands in `above`, title and headings, does not count.
#[must_use]
pub fn only_asks(text: &str, above: &[&str], terms: &[&LookedUp]) -> bool {
    if !text.contains("?\n") {
        return false;
    }
    let asks = |item: &str| item.trim_end().trim_end_matches(['*', '_', '"', '`']).ends_with('?');
    let mut rest = String::new();
    let mut at = 0;
    for block in blocks(text) {
        let list = matches!(block.kind, BlockKind::List { .. }) && block.items.len() > 1;
        if list && block.items.iter().all(|item| asks(&text[item.clone()])) {
            rest.push_str(&text[at..block.range.start]);
            at = block.range.end;
        }
    }
    if at == 0 {
        return false;
    }
    rest.push_str(&text[at..]);
    let above = standing(above.iter().copied(), terms);
    let weight = |text: &str| -> f32 {
        let set = standing([text], terms);
        terms.iter().filter(|t| stands(t, &set) && !stands(t, &above)).map(|t| t.idf).sum()
    };
    weight(&rest) < weight(text) / 2.0
}

/// The share of the five best sections that stand in the same document.
fn same_page(corpus: &Corpus, hits: &[Hit], hit: &Hit) -> f32 {
    let path = &corpus.generation.section(hit.section).0.path;
    let best = hits.iter().take(FIRST).filter(|h| h.corpus == hit.corpus);
    let same = best.filter(|h| corpus.generation.section(h.section).0.path == *path).count();
    count(same) / count(FIRST)
}

/// 1 when both arms put the section first, less by reciprocal ranks.
fn agreement(hits: &[Hit], hit: &Hit) -> f32 {
    let rank =
        |score: &dyn Fn(&Hit) -> f32| 1 + hits.iter().filter(|h| score(h) > score(hit)).count();
    let lexical = if hit.bm25.0 > 0.0 { 1.0 / count(rank(&|h| h.bm25.0)) } else { 0.0 };
    let dense = hit.cosine.map_or(0.0, |_| 1.0 / count(rank(&|h| h.cosine.map_or(-1.0, |c| c.0))));
    (lexical + dense) / 2.0
}

/// The weight of the question's terms within the best stretch of so many atoms, by that of all. A row
/// of a table counts as one stretch with the table's header, which names what stands in its cells.
#[must_use]
pub fn proximity(text: &str, terms: &[&LookedUp], stretch: u32) -> f32 {
    let total: f32 = terms.iter().map(|t| t.idf).sum::<f32>().max(1e-6);
    let mut best = best_stretch(&places(text, terms), terms, stretch);
    if text.contains('|') {
        for table in blocks(text).iter().filter(|b| b.kind == BlockKind::Table) {
            let Some((header, rows)) = table.items.split_first() else { continue };
            let header = places(&text[header.clone()], terms);
            for row in rows {
                let row = places(&text[row.clone()], terms);
                if !row.is_empty() {
                    best = best.max(weight(row.iter().chain(&header), terms));
                }
            }
        }
    }
    best / total
}

/// Where terms stand in a text: the number of the atom and of the term.
fn places(text: &str, terms: &[&LookedUp]) -> Vec<(u32, usize)> {
    let wanted: Wanted = terms.iter().map(|t| t.wanted()).collect();
    let mut places = Vec::new();
    for found in analyse_for(text, &wanted) {
        let at = terms.iter().position(|t| t.term.kind == found.kind && t.wanted() == found.stem);
        places.extend(at.map(|at| (found.position, at)));
    }
    places
}

fn best_stretch(places: &[(u32, usize)], terms: &[&LookedUp], stretch: u32) -> f32 {
    let mut best = 0f32;
    let mut first = 0;
    for last in 0..places.len() {
        while places[last].0 - places[first].0 > stretch {
            first += 1;
        }
        best = best.max(weight(places[first..=last].iter(), terms));
    }
    best
}

/// The weight of the terms at these places, each counted once.
fn weight<'a>(places: impl Iterator<Item = &'a (u32, usize)>, terms: &[&LookedUp]) -> f32 {
    let within: FxHashSet<usize> = places.map(|p| p.1).collect();
    within.iter().map(|t| terms[*t].idf).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analyse::analyse;

    fn terms(question: &str) -> Vec<LookedUp> {
        let terms = analyse(question).into_iter();
        terms.map(|term| LookedUp { term, df: 1, idf: 1.0, corrected: None }).collect()
    }

    #[test]
    fn a_list_of_questions_answers_none() {
        let terms = terms("which unit opens 8080");
        let terms: Vec<&LookedUp> = terms.iter().collect();
        let asks = |text: &str| only_asks(text, &["README"], &terms);
        let list = "## Try\n\n- Which unit opens 8080?\n- *How long are dumps kept?*\n";
        assert!(asks(list));
        assert!(asks(&format!("{list}\nAsk them in the page.\n")));
        // Said as well as asked; answered in the item; one question alone; no question at all.
        assert!(!asks(&format!("{list}\nPort 8080 is opened by the unit `harbor-web.service`.\n")));
        assert!(!asks("- Which unit opens 8080?\n\n  `harbor-web.service`.\n- How long?\n"));
        assert!(!asks("- Which unit opens 8080?\n"));
        assert!(!asks("- The unit opens 8080.\n- Which one?\n"));
        // What the heading says is found by the heading.
        assert!(!only_asks(list, &["Which unit opens 8080"], &terms));
    }
}
