//! Citations: made from a passage, and checked again against the generation before a reply leaves.

use crate::forge_link;
use crate::passage::Passage;
use crate::reply::{Citation, I_DO_NOT_KNOW};
use runbook_shared::chunk::{Chunk, Section, innermost};
use runbook_shared::retrieval::corpus::Corpus;

/// The citation of a passage in a section.
#[must_use]
pub fn cite(
    corpus: &Corpus,
    section: u32,
    passage: &Passage,
    score: f32,
    with_repo: bool,
) -> Citation {
    let generation = &corpus.generation;
    let (chunk, section) = generation.section(section);
    let Place { heading_path, anchor } = place(corpus, chunk, section, passage.lines[0]);
    let heading = innermost(&heading_path, &chunk.title).to_owned();
    let raw_path = generation.document(&chunk.path).and_then(|d| d.raw_path.as_deref());
    let manifest = &generation.manifest;
    let url = manifest.forge.as_ref().zip(manifest.commit.as_ref()).map(|(forge, commit)| {
        let path = raw_path.unwrap_or(&chunk.path);
        forge_link::link(forge, commit, path, raw_path.is_some(), &anchor, passage.lines)
    });
    Citation {
        path: chunk.path.clone(),
        heading,
        heading_path,
        lines: passage.lines,
        quote: passage.quote.clone(),
        url,
        score,
        repo: with_repo.then(|| corpus.repo.clone()),
    }
}

/// Where a line of a section stands.
struct Place {
    heading_path: Vec<String>,
    anchor: String,
}

/// The headings above a line: the section's, unless the line is above the section's own heading, where
/// there are headings that have no text of their own.
fn place(corpus: &Corpus, chunk: &Chunk, section: &Section, line: u32) -> Place {
    let own = innermost(&section.heading_path, &chunk.title);
    let headings = corpus.generation.document(&chunk.path).map(|d| d.headings.as_slice());
    let headings = headings.unwrap_or_default();
    let [from, to] = section.lines;
    let first = headings.iter().position(|h| (from..=to).contains(&h.line) && h.text == own);
    let above = first.filter(|at| line < headings[*at].line).map(|at| &headings[..at]);
    let above = above.and_then(|above| above.iter().rposition(|h| h.line <= line));
    let Some(at) = above else {
        let heading_path = if section.heading_path.is_empty() {
            vec![own.to_owned()]
        } else {
            section.heading_path.clone()
        };
        return Place { heading_path, anchor: section.anchor.clone() };
    };
    let mut path = vec![&headings[at]];
    for heading in headings[..at].iter().rev() {
        if heading.level < path[path.len() - 1].level {
            path.push(heading);
        }
    }
    let heading_path = path.iter().rev().map(|h| h.text.clone()).collect();
    Place { heading_path, anchor: headings[at].anchor.clone() }
}

/// Why a reply must not leave.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum CitationError {
    /// An answer without a citation.
    #[error("an answer without a citation")]
    None,
    /// A refusal with one.
    #[error("a refusal with a citation")]
    OnRefusal,
    /// The document is not in the generation.
    #[error("`{0}` is not in the generation")]
    NoDocument(String),
    /// The heading is not in the document.
    #[error("`{path}` has no heading `{heading}`")]
    NoHeading {
        /// The document.
        path: String,
        /// The heading.
        heading: String,
    },
    /// The quote does not stand at those lines under that heading.
    #[error("`{path}` lines {from} to {to} do not hold the quote")]
    NoQuote {
        /// The document.
        path: String,
        /// First line.
        from: u32,
        /// Last line.
        to: u32,
    },
}

/// Checks an answer's citations, or that a refusal has none.
///
/// # Errors
/// The first rule that is broken.
pub fn check_answer<'a>(
    answer: &str,
    citations: &[Citation],
    corpus_of: impl Fn(&Citation) -> Option<&'a Corpus>,
) -> Result<(), CitationError> {
    if answer == I_DO_NOT_KNOW {
        return if citations.is_empty() { Ok(()) } else { Err(CitationError::OnRefusal) };
    }
    if citations.is_empty() {
        return Err(CitationError::None);
    }
    for citation in citations {
        let corpus =
            corpus_of(citation).ok_or_else(|| CitationError::NoDocument(citation.path.clone()))?;
        check(corpus, citation)?;
    }
    Ok(())
}

/// Checks one citation against a generation: document, heading, and the quote at its lines.
///
/// # Errors
/// The first that is not there.
pub fn check(corpus: &Corpus, citation: &Citation) -> Result<(), CitationError> {
    let generation = &corpus.generation;
    let document = generation
        .document(&citation.path)
        .ok_or_else(|| CitationError::NoDocument(citation.path.clone()))?;
    let known = citation.heading == document.title
        || document.headings.iter().any(|h| h.text == citation.heading);
    if !known || citation.heading_path.last() != Some(&citation.heading) {
        return Err(CitationError::NoHeading {
            path: citation.path.clone(),
            heading: citation.heading.clone(),
        });
    }
    let [from, to] = citation.lines;
    let range = generation.scope(&citation.path);
    let holds = range.clone().map(|n| generation.section(n)).any(|(chunk, section)| {
        section.lines[0] <= from
            && to <= section.lines[1]
            && place(corpus, chunk, section, from).heading_path == citation.heading_path
            && !citation.quote.trim().is_empty()
            && chunk.section_text(section).contains(&citation.quote)
    });
    if holds && from <= to {
        Ok(())
    } else {
        Err(CitationError::NoQuote { path: citation.path.clone(), from, to })
    }
}
