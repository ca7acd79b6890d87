//! The best section may be the lines under an alert's name, while what to do stands under "Mitigation"
//! further down: then that is shown, too.

use super::{acts, says_something};
use crate::passage::{self, Passage};
use runbook_shared::analyse::analyse;
use runbook_shared::retrieval::arms::LookedUp;
use runbook_shared::retrieval::corpus::Corpus;
use rustc_hash::FxHashSet;
use std::ops::Range;

/// An overview has at most this many lines.
const LINES_MAX: usize = 3;
/// What is added has at most this many characters, the first section aside.
const CHARS_MAX: usize = 3000;
/// The most sections that are added.
const SECTIONS_MAX: usize = 4;

/// Headings of sections that say what to do, the likeliest first.
const DOES: &[&[&str]] = &[
    &[
        "mitigation",
        "mitigate",
        "resolution",
        "resolve",
        "resolving",
        "remediation",
        "fix",
        "fixing",
        "solution",
        "recovery",
        "recover",
        "steps",
        "procedure",
        "runbook",
        "action",
        "actions",
        "response",
        "instructions",
        "what to do",
    ],
    &[
        "troubleshooting",
        "troubleshoot",
        "diagnosis",
        "diagnose",
        "diagnosing",
        "investigation",
        "investigate",
        "debugging",
        "debug",
        "checks",
        "how to",
    ],
];
/// Headings of sections that only introduce.
const INTRODUCES: &[&str] = &[
    "meaning",
    "overview",
    "summary",
    "description",
    "introduction",
    "intro",
    "about",
    "symptoms",
    "symptom",
    "impact",
    "background",
    "alert",
    "context",
    "what it means",
    "purpose",
];
/// How a question starts that asks for a fact, not for what to do.
const FACTS: &[&str] = &[
    "what is",
    "what's",
    "what are",
    "what does",
    "which",
    "where",
    "when",
    "who",
    "how many",
    "how much",
    "how long",
    "how often",
    "is ",
    "are ",
    "does ",
    "do ",
    "why",
];

/// The sections of the page that say what to do, where the found one is a short introduction.
pub(super) fn procedure_of(
    corpus: &Corpus,
    section: u32,
    question: &str,
    terms: &[LookedUp],
) -> Vec<(u32, Passage)> {
    let (chunk, own) = corpus.generation.section(section);
    let lines = chunk
        .section_text(own)
        .lines()
        .filter(|l| !l.trim_start().starts_with('#') && l.chars().any(char::is_alphanumeric));
    if lines.count() > LINES_MAX || asks_for_a_fact(question) {
        return Vec::new();
    }
    let page = corpus.generation.scope(&chunk.path);
    let beneath = |above: &[String], n: u32| {
        let other = &corpus.generation.section(n).1.heading_path;
        n != section && other.len() > above.len() && other.starts_with(above)
    };
    // What lies beneath it; else, for an introduction, what lies beside it.
    let is_parent = page.clone().any(|n| beneath(&own.heading_path, n));
    let introduces =
        own.heading_path.last().is_some_and(|h| INTRODUCES.contains(&h.to_lowercase().trim()));
    let above = match own.heading_path.split_last() {
        _ if is_parent => &own.heading_path[..],
        Some((_, parents)) if introduces => parents,
        _ => return Vec::new(),
    };
    let beside = |n: &u32| beneath(above, *n);
    let candidates: Vec<u32> = page.clone().filter(beside).collect();
    let best = candidates
        .iter()
        .copied()
        .filter_map(|n| {
            let (chunk, other) = corpus.generation.section(n);
            let heading = other.heading_path.last()?;
            let group = group(corpus, n, &page);
            let useful = group.clone().any(|m| {
                let (chunk, part) = corpus.generation.section(m);
                says_something(chunk.section_text(part))
            });
            let rank = rank(heading, terms)?;
            let acting = group.into_iter().any(|m| {
                let (chunk, part) = corpus.generation.section(m);
                acts(chunk.section_text(part))
            });
            (useful && chunk.path == corpus.generation.section(section).0.path)
                .then_some((rank, !acting, n))
        })
        .min();
    let Some((_, _, first)) = best else { return Vec::new() };
    let mut shown = Vec::new();
    let mut size = 0;
    for number in group(corpus, first, &page) {
        let (chunk, part) = corpus.generation.section(number);
        if !says_something(chunk.section_text(part)) {
            continue;
        }
        let passage = passage::titled(chunk, part);
        size += passage.text.len();
        if shown.len() == SECTIONS_MAX || (size > CHARS_MAX && !shown.is_empty()) {
            break;
        }
        shown.push((number, passage));
    }
    shown
}

fn asks_for_a_fact(question: &str) -> bool {
    let lower = question.trim_start().to_lowercase();
    FACTS.iter().any(|f| lower.starts_with(f))
}

/// How likely a heading says what is asked: by the question's words, then by its own.
fn rank(heading: &str, terms: &[LookedUp]) -> Option<usize> {
    let lower = heading.to_lowercase();
    let words: Vec<&str> = lower.split(|c: char| !c.is_alphanumeric()).collect();
    let named = |set: &[&str]| {
        set.iter().any(|w| words.contains(w) || (w.contains(' ') && lower.contains(w)))
    };
    let stems: FxHashSet<String> = analyse(heading).into_iter().map(|t| t.stem).collect();
    let asked = terms.iter().filter(|t| !t.term.within && stems.contains(&t.term.stem)).count();
    let class = DOES.iter().position(|set| named(set));
    match (asked, class) {
        (0, None) => None,
        (0, Some(class)) => Some(class + 1),
        (_, Some(_)) => Some(0),
        (_, None) => Some(DOES.len() + 1),
    }
}

/// A section and those beneath it.
fn group(corpus: &Corpus, first: u32, page: &Range<u32>) -> Range<u32> {
    let path = &corpus.generation.section(first).1.heading_path;
    let beneath = |n: &u32| corpus.generation.section(*n).1.heading_path.starts_with(path);
    let end = (first..page.end).take_while(beneath).last().map_or(first, |n| n);
    first..end + 1
}
