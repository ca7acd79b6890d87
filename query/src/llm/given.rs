//! The sections that a model is given, and what of a question they hold.

use crate::reply::Citation;
use runbook_shared::analyse::analyse;
use runbook_shared::chunk::innermost;
use runbook_shared::retrieval::arms;
use runbook_shared::retrieval::corpus::Corpus;
use runbook_shared::retrieval::question::Question;
use rustc_hash::FxHashSet;
use std::sync::Arc;

/// The most sections of one prompt.
pub const SECTIONS_MAX: usize = 6;
/// Rarest terms of a question that lines must hold to lift a refusal.
const RAREST: usize = 2;
/// The share of a question's terms, by idf, that they must hold.
const SHARE: f32 = 0.6;

/// A section as it is given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Given {
    /// Index into the corpora that were asked.
    pub corpus: usize,
    /// Number of the section in its generation.
    pub section: u32,
    /// Path of the document.
    pub path: String,
    /// The innermost heading, or the document's title.
    pub heading: String,
    /// Lines with their numbers, from the first on, as many as fit.
    pub lines: Vec<(u32, String)>,
    /// Whether lines were left out at the end.
    pub cut: bool,
}

/// These sections in at most this many bytes: each once, no text twice, none without words.
#[must_use]
pub fn give(
    corpora: &[Arc<Corpus>],
    wanted: impl IntoIterator<Item = (usize, u32)>,
    bytes: usize,
) -> Vec<Given> {
    let mut given: Vec<Given> = Vec::new();
    let mut texts: Vec<&str> = Vec::new();
    let mut left = bytes;
    for (corpus, number) in wanted {
        if given.len() == SECTIONS_MAX || left < 80 {
            break;
        }
        let Some(of) = corpora.get(corpus) else { continue };
        let (chunk, section) = of.generation.section(number);
        let text = chunk.section_text(section);
        let known = given.iter().any(|g| (g.corpus, g.section) == (corpus, number));
        if known || texts.contains(&text) || !says_something(text) {
            continue;
        }
        texts.push(text);
        // No one section takes more than half of what is left, save where there is plenty.
        let share = (left / 2).max(bytes / SECTIONS_MAX).min(left);
        let (lines, cut) = fitting(numbered(of, number), share);
        left -= lines.iter().map(|l| l.1.len() + 6).sum::<usize>().min(left);
        given.push(Given {
            corpus,
            section: number,
            path: chunk.path.clone(),
            heading: innermost(&section.heading_path, &chunk.title).to_owned(),
            lines,
            cut,
        });
    }
    given
}

fn says_something(text: &str) -> bool {
    text.lines().any(|l| !l.trim_start().starts_with('#') && l.chars().any(char::is_alphanumeric))
}

/// A section's own lines with their numbers.
#[must_use]
pub fn numbered(corpus: &Corpus, number: u32) -> Vec<(u32, String)> {
    let (chunk, section) = corpus.generation.section(number);
    let repeated = if section.start == 0 { chunk.repeated as usize } else { 0 };
    let text = chunk.section_text(section).lines().skip(repeated);
    (section.lines[0]..=section.lines[1]).zip(text).map(|(n, l)| (n, l.to_owned())).collect()
}

fn fitting(all: Vec<(u32, String)>, bytes: usize) -> (Vec<(u32, String)>, bool) {
    let (mut used, total) = (0, all.len());
    let fit = |line: &(u32, String)| {
        used += line.1.len() + 6;
        used <= bytes
    };
    let lines: Vec<(u32, String)> = all.into_iter().take_while(fit).collect();
    let cut = lines.len() < total;
    (lines, cut)
}

/// The section that a citation's first line stands in.
#[must_use]
pub fn section_of(corpora: &[Arc<Corpus>], citation: &Citation) -> Option<(usize, u32)> {
    let of = |c: &Arc<Corpus>| citation.repo.as_ref().is_none_or(|r| *r == c.repo);
    corpora.iter().enumerate().filter(|(_, c)| of(c)).find_map(|(at, corpus)| {
        let generation = &corpus.generation;
        generation.document(&citation.path)?;
        let holds = |n: &u32| {
            let lines = generation.section(*n).1.lines;
            lines[0] <= citation.lines[0] && citation.lines[1] <= lines[1]
        };
        generation.scope(&citation.path).find(holds).map(|n| (at, n))
    })
}

/// Whether texts hold a question's rare terms: its two rarest, and most of the rest by idf. This is what
/// a yes of a model needs before a refusal becomes an answer, since models say yes to what is near.
///
/// # Errors
/// The term that is missing.
pub fn holds_rare(question: &Question, corpus: &Corpus, texts: &[&str]) -> Result<(), String> {
    let mut terms: Vec<_> =
        arms::look_up(question, corpus).into_iter().filter(|t| !t.term.within).collect();
    terms.sort_by(|a, b| b.idf.total_cmp(&a.idf));
    let stems: FxHashSet<String> =
        texts.iter().flat_map(|t| analyse(t)).flat_map(|t| [t.stem, t.surface]).collect();
    let held = |t: &arms::LookedUp| {
        stems.contains(&t.term.stem) || t.corrected.as_ref().is_some_and(|c| stems.contains(c))
    };
    if let Some(missing) = terms.iter().take(RAREST).find(|t| !held(t)) {
        return Err(missing.term.surface.clone());
    }
    let all: f32 = terms.iter().map(|t| t.idf).sum();
    let there: f32 = terms.iter().filter(|t| held(t)).map(|t| t.idf).sum();
    match terms.iter().find(|t| !held(t)) {
        Some(missing) if there < SHARE * all => Err(missing.term.surface.clone()),
        _ => Ok(()),
    }
}
