//! "Is there a runbook for ..": a page whose title and headings hold all of it, or none where a word
//! of it stands nowhere. In between, retrieval must say.

use super::subject::Subject;
use super::{Match, Outcome, Page, Scanner, TITLED, all_of, how};
use crate::scan::question::{ScanQuestion, Unit, Want};
use runbook_shared::analyse::{Term, TermKind, Wanted, analyse_for};
use runbook_shared::retrieval::question::Question;
use rustc_hash::FxHashSet;
use std::collections::BTreeSet;

/// The most content words that a topic may have.
const WORDS_MAX: usize = 8;

pub(super) fn answer(scanner: &Scanner<'_>, phrase: &str, loose: bool) -> Outcome {
    let Ok(question) = Question::parse(phrase) else { return Outcome::Open };
    let terms: Vec<Term> = question
        .terms()
        .iter()
        .filter(|t| !t.within && !is_empty_word(&t.surface))
        .cloned()
        .collect();
    if terms.is_empty() || terms.len() > WORDS_MAX {
        return Outcome::Open;
    }
    let titled: Vec<Match<'_>> = scanner.pages.iter().filter_map(|p| titled(p, &terms)).collect();
    if !titled.is_empty() {
        let (n, s) =
            (titled.len(), if titled.len() == 1 { "document has" } else { "documents have" });
        let head = format!("Yes, {n} {s} \"{phrase}\" in title or headings:");
        return scanner.list(&head, "", titled, TITLED);
    }
    let lone = terms.iter().map(|t| t.position).collect::<FxHashSet<_>>().len() == 1;
    if (lone || loose)
        && let Some(subject) = Subject::parse(phrase)
    {
        let want = Want::Mention { subjects: Vec::new(), any: false };
        let asked = ScanQuestion { unit: Unit::Documents, want, without: false, beneath: None };
        match scanner.mentions(&asked, &[subject], false) {
            Outcome::Found(mut found) => {
                found.answer = format!(
                    "No document has \"{phrase}\" in its title or headings, but {}",
                    found.answer
                );
                return Outcome::Found(found);
            }
            Outcome::Absent(message) if lone => return Outcome::Absent(message),
            _ => {}
        }
    }
    let missing = missing(scanner.pages, &terms);
    if missing.is_empty() {
        return Outcome::Open;
    }
    let names: Vec<String> = missing.iter().map(|m| format!("\"{m}\"")).collect();
    Outcome::Absent(format!(
        "{} scanned, and none mentions {}; {}",
        all_of(scanner.pages.len()),
        names.join(" or "),
        how(&BTreeSet::new(), false)
    ))
}

/// Words that say of a topic only that it is one.
fn is_empty_word(surface: &str) -> bool {
    [
        "runbook",
        "runbooks",
        "docs",
        "documentation",
        "procedure",
        "handling",
        "dealing",
        "case",
        "cases",
        "doing",
    ]
    .contains(&surface)
}

/// The heading under which, with the title and the headings above it, all words stand.
fn titled<'a>(page: &'a Page<'a>, terms: &[Term]) -> Option<Match<'a>> {
    let document = page.document;
    let wanted: Wanted = terms.iter().flat_map(|t| [t.stem.as_str(), t.surface.as_str()]).collect();
    let holds = |texts: &[&str]| {
        let present: FxHashSet<(TermKind, String)> =
            texts.iter().flat_map(|t| analyse_for(t, &wanted)).map(|t| (t.kind, t.stem)).collect();
        terms.iter().all(|t| {
            present.contains(&(t.kind, t.stem.clone()))
                || present.contains(&(TermKind::Whole, t.surface.clone()))
        })
    };
    if holds(&[&document.title]) {
        // Before those with a heading alone.
        return Some(Match {
            heading: Some(document.title.clone()),
            count: 1,
            ..Match::whole(page)
        });
    }
    let mut trail: Vec<(u8, &str)> = Vec::new();
    for heading in &document.headings {
        trail.retain(|(level, _)| *level < heading.level);
        trail.push((heading.level, &heading.text));
        let mut texts: Vec<&str> = trail.iter().map(|(_, text)| *text).collect();
        texts.push(&document.title);
        if holds(&texts) {
            let start = line_start(&page.text, heading.line);
            let end = page.text[start..].find('\n').map_or(page.text.len(), |at| start + at);
            let first = (start < end).then_some((start, end));
            return Some(Match {
                heading: Some(heading.text.clone()),
                first,
                ..Match::whole(page)
            });
        }
    }
    None
}

/// The byte at which a 1-based line starts.
fn line_start(text: &str, line: u32) -> usize {
    if line <= 1 {
        return 0;
    }
    text.match_indices('\n').nth(line as usize - 2).map_or(text.len(), |(at, _)| at + 1)
}

/// Words that no document holds.
fn missing(pages: &[Page<'_>], terms: &[Term]) -> Vec<String> {
    let absent = |term: &&Term| {
        Subject::parse(&term.surface)
            .is_some_and(|s| pages.iter().all(|p| s.places(&p.text).ranges.is_empty()))
    };
    let mut seen = FxHashSet::default();
    terms
        .iter()
        .filter(|t| seen.insert(t.position))
        .filter(absent)
        .map(|t| t.surface.clone())
        .collect()
}
