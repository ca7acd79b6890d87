//! What is shown of the best section: its passage, the warnings above it, and the rest of a procedure
//! that was cut into several chunks.
//!
//! A procedure is shown whole, or ends by saying how many steps follow and where. A warning or
//! prerequisite in the section, in an earlier part of it, or in a section above it is always shown
//! before the commands that it is about.

mod overview;

use crate::caution::heading_warns;
use crate::passage::{self, Passage};
use runbook_shared::markdown::{BlockKind, blocks};
use runbook_shared::retrieval::arms::LookedUp;
use runbook_shared::retrieval::corpus::Corpus;

/// A procedure of at most this many characters is shown whole.
const PROCEDURE_CHARS_MAX: usize = 8000;
/// Warnings from above that are shown.
const WARNINGS_MAX: usize = 6;
/// Their characters, save the first one's.
const WARNING_CHARS_MAX: usize = 2400;

/// Passages in the order in which they are shown; each belongs to a section.
#[derive(Clone, Debug)]
pub struct Shown {
    /// The passage that answers; it is cited first.
    pub main: (u32, Passage),
    /// Warnings, shown above it.
    pub warnings: Vec<(u32, Passage)>,
    /// Further parts of a procedure, shown below it.
    pub following: Vec<(u32, Passage)>,
    /// Steps that are not shown, with the line of the first.
    pub more_steps: Option<(usize, u32)>,
}

/// Chooses what is shown of a section; `question` is its wording, which says whether a fact is asked for.
#[must_use]
pub fn compose(corpus: &Corpus, section: u32, question: &str, terms: &[LookedUp]) -> Shown {
    let (chunk, own) = corpus.generation.section(section);
    let parts = parts(corpus, section);
    let is_procedure = parts.len() > 1
        && parts.iter().any(|p| steps(corpus, *p) > 0)
        && steps(corpus, section) > 0;
    let mut shown = if is_procedure {
        procedure(corpus, &parts)
    } else {
        let (main, warnings) = passage::choose(chunk, own, terms);
        let warnings = warnings.into_iter().map(|w| (section, w)).collect();
        Shown { main: (section, main), warnings, following: Vec::new(), more_steps: None }
    };
    if !is_procedure && !acts(&shown.main.1.text) {
        shown.following = overview::procedure_of(corpus, section, question, terms);
    }
    let acting = std::iter::once(&shown.main).chain(&shown.following).find(|(_, p)| acts(&p.text));
    if let Some(at) = acting.map(|(number, _)| *number) {
        let earlier = parts.iter().copied().take_while(|p| *p < shown.main.0);
        let shown_text: Vec<&str> = std::iter::once(&shown.main)
            .chain(&shown.following)
            .chain(&shown.warnings)
            .map(|(_, p)| p.text.as_str())
            .collect();
        let mut size = 0;
        let mut above: Vec<(u32, Passage)> = Vec::new();
        for (number, warning) in above_of(corpus, at, earlier) {
            let known = shown_text.iter().any(|t| t.contains(&warning.text))
                || above.iter().any(|(_, w)| w.text.contains(&warning.text));
            size += warning.text.len();
            if !known
                && above.len() < WARNINGS_MAX
                && (size <= WARNING_CHARS_MAX || above.is_empty())
            {
                above.push((number, warning));
            }
        }
        above.append(&mut shown.warnings);
        shown.warnings = above;
    }
    shown
}

/// Warnings above a section: of the sections over it, of earlier parts of it, and sections of nothing
/// else ("Prerequisites") that stand before it under the same headings.
fn above_of(
    corpus: &Corpus,
    section: u32,
    earlier: impl Iterator<Item = u32>,
) -> Vec<(u32, Passage)> {
    let (chunk, own) = corpus.generation.section(section);
    let mut above: Vec<(u32, Passage)> = Vec::new();
    for number in corpus.generation.scope(&chunk.path).filter(|n| *n < section) {
        let (chunk, other) = corpus.generation.section(number);
        let Some((heading, parents)) = other.heading_path.split_last() else { continue };
        let beside = own.heading_path.starts_with(parents)
            && !own.heading_path.starts_with(&other.heading_path);
        if beside && heading_warns(heading) && says_something(chunk.section_text(other)) {
            above.push((number, passage::titled(chunk, other)));
        }
    }
    let over = ancestors(corpus, section).into_iter().chain(earlier);
    let cautions = over.flat_map(|number| {
        let (chunk, section) = corpus.generation.section(number);
        passage::warnings(chunk, section).into_iter().map(move |w| (number, w))
    });
    let mut all: Vec<(u32, Passage)> = cautions.chain(above).collect();
    all.sort_by_key(|(number, p)| (*number, p.lines[0]));
    all
}

/// True for more than a heading.
fn says_something(text: &str) -> bool {
    blocks(text).iter().any(|b| b.kind != BlockKind::Heading)
}

/// True when a passage tells what to do: it has code or numbered steps.
fn acts(text: &str) -> bool {
    blocks(text)
        .iter()
        .any(|b| matches!(b.kind, BlockKind::Code | BlockKind::List { ordered: true }))
        || text.contains('`')
}

/// The numbered steps in a section.
fn steps(corpus: &Corpus, section: u32) -> usize {
    let (chunk, section) = corpus.generation.section(section);
    let blocks = blocks(chunk.section_text(section));
    blocks
        .iter()
        .filter(|b| b.kind == BlockKind::List { ordered: true })
        .map(|b| b.items.len())
        .sum()
}

/// The sections that are pieces of the same one, in order, this one among them.
fn parts(corpus: &Corpus, section: u32) -> Vec<u32> {
    let (chunk, own) = corpus.generation.section(section);
    let Some(part) = chunk.part else { return vec![section] };
    let first = section.saturating_sub(part.index - 1);
    let last = section + (part.of - part.index);
    let same = |number: &u32| {
        (*number as usize) < corpus.len() && {
            let (other, other_section) = corpus.generation.section(*number);
            other.path == chunk.path
                && other_section.heading_path == own.heading_path
                && other.part.is_some_and(|p| p.of == part.of)
        }
    };
    (first..=last).filter(same).collect()
}

/// All parts of a procedure as far as they fit.
fn procedure(corpus: &Corpus, parts: &[u32]) -> Shown {
    let mut passages: Vec<(u32, Passage)> = Vec::new();
    let mut size = 0;
    let mut more_steps = None;
    for part in parts {
        let (chunk, section) = corpus.generation.section(*part);
        let passage = passage::whole(chunk, section);
        size += passage.text.len();
        if !passages.is_empty() && size > PROCEDURE_CHARS_MAX {
            let left: usize = parts.iter().filter(|p| *p >= part).map(|p| steps(corpus, *p)).sum();
            more_steps = Some((left, section.lines[0]));
            break;
        }
        passages.push((*part, passage));
    }
    let main = passages.remove(0);
    Shown { main, warnings: Vec::new(), following: passages, more_steps }
}

/// The sections under the headings above this one, outermost first.
fn ancestors(corpus: &Corpus, section: u32) -> Vec<u32> {
    let (chunk, own) = corpus.generation.section(section);
    let range = corpus.generation.scope(&chunk.path);
    let above = |number: &u32| {
        let (_, other) = corpus.generation.section(*number);
        *number < section
            && other.heading_path.len() < own.heading_path.len()
            && own.heading_path.starts_with(&other.heading_path)
    };
    let mut found: Vec<u32> = range.filter(above).collect();
    // Of several sections with the same trail, the nearest one above is meant.
    found.reverse();
    let mut seen: Vec<usize> = Vec::new();
    found.retain(|number| {
        let depth = corpus.generation.section(*number).1.heading_path.len();
        let first = !seen.contains(&depth);
        seen.push(depth);
        first
    });
    found.reverse();
    found
}
