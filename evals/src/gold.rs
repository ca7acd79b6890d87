//! The gold sections of a case in a generation: where they stand, what they say, and its hash.
//!
//! A gold entry names a heading. It means what stands right under that heading; where a document has
//! several of that name, those that hold a string that the case wants. Where such strings stand only
//! deeper, the subsections that hold one of them are meant as well; where nothing at all stands right
//! under the heading, and no string is wanted, all of its subsections are.
//! The hash is over the lines that are not blank, without the lines that a cut repeats: it depends on
//! the document, and not on how ingest cuts.

use crate::case::Case;
use crate::questions::{Gold, same_heading};
use runbook_shared::chunk::{Chunk, Section, innermost};
use runbook_shared::generation::Generation;

/// A gold entry as a generation has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GoldSection {
    /// Path of the document.
    pub path: String,
    /// The heading, as the case has it.
    pub heading: String,
    /// Line ranges of the sections that are meant; empty when there is none.
    pub lines: Vec<[u32; 2]>,
    /// Their text.
    pub text: String,
}

impl GoldSection {
    /// The name in approvals.
    #[must_use]
    pub fn key(&self) -> String {
        format!("{}#{}", self.path, self.heading)
    }

    /// The hash of the text, 16 hex digits.
    #[must_use]
    pub fn hash(&self) -> String {
        let lines: Vec<&str> = self.text.lines().filter(|l| !l.trim().is_empty()).collect();
        blake3::hash(lines.join("\n").as_bytes()).to_hex()[..16].to_owned()
    }

    /// Whether lines of a document belong to it.
    #[must_use]
    pub fn holds(&self, path: &str, lines: [u32; 2]) -> bool {
        path == self.path && self.lines.iter().any(|own| own[0] <= lines[1] && lines[0] <= own[1])
    }
}

/// Finds every gold entry of a case.
#[must_use]
pub fn resolve(generation: &Generation, case: &Case) -> Vec<GoldSection> {
    case.gold.iter().map(|gold| resolve_one(generation, gold, &case.must_contain)).collect()
}

fn resolve_one(generation: &Generation, gold: &Gold, must: &[String]) -> GoldSection {
    let mut found = GoldSection {
        path: gold.path.clone(),
        heading: gold.heading.clone(),
        lines: Vec::new(),
        text: String::new(),
    };
    if generation.document(&gold.path).is_none() {
        return found;
    }
    let sections: Vec<Place<'_>> =
        generation.scope(&gold.path).map(|n| generation.section(n)).collect();
    let own = own_sections(&sections, gold, must);
    let text: String = own.iter().map(own_text).collect();
    let missing: Vec<&String> = must.iter().filter(|m| !text.contains(m.as_str())).collect();
    let meant = |p: &Place<'_>| {
        if missing.is_empty() { own.is_empty() } else { holds_any(p, &missing) }
    };
    let deeper = sections.iter().filter(|p| is_below(p, gold) && !own.contains(p) && meant(p));
    for place in own.iter().chain(deeper) {
        found.lines.push(place.1.lines);
        found.text.push_str(own_text(place));
        found.text.push('\n');
    }
    found
}

/// A section with the chunk that it is in.
type Place<'a> = (&'a Chunk, &'a Section);

fn own_sections<'a>(sections: &[Place<'a>], gold: &Gold, must: &[String]) -> Vec<Place<'a>> {
    let named =
        |p: &&Place<'_>| same_heading(innermost(&p.1.heading_path, &p.0.title), &gold.heading);
    let all: Vec<Place<'a>> = sections.iter().filter(named).copied().collect();
    let several = all.iter().any(|p| p.1.heading_path != all[0].1.heading_path);
    let must: Vec<&String> = must.iter().collect();
    let holding: Vec<_> =
        all.iter().filter(|p| holds_any(p, &must)).map(|p| &p.1.heading_path).collect();
    if several && !holding.is_empty() {
        return all.iter().filter(|p| holding.contains(&&p.1.heading_path)).copied().collect();
    }
    all
}

fn is_below(place: &Place<'_>, gold: &Gold) -> bool {
    let above = place.1.heading_path.split_last().map_or(&[][..], |(_, above)| above);
    above.iter().any(|h| same_heading(h, &gold.heading))
}

fn holds_any(place: &Place<'_>, strings: &[&String]) -> bool {
    strings.iter().any(|s| own_text(place).contains(s.as_str()))
}

/// A section's own lines within its chunk: without those that a cut repeats or appends.
fn own_text<'a>((chunk, section): &Place<'a>) -> &'a str {
    let text = &chunk.text;
    let (mut start, mut end) = (section.start as usize, section.end as usize);
    if start == 0 {
        start = line_start(text, chunk.repeated as usize).min(end);
    }
    if end == text.len() {
        let lines = text.lines().count().saturating_sub(chunk.appended as usize);
        end = line_start(text, lines).max(start);
    }
    &text[start..end]
}

/// The byte at which a line (0-based) starts.
fn line_start(text: &str, line: usize) -> usize {
    let mut starts = std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1));
    starts.nth(line).unwrap_or(text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn section(text: &str, lines: &[[u32; 2]]) -> GoldSection {
        GoldSection {
            path: "a.md".into(),
            heading: "H".into(),
            lines: lines.to_vec(),
            text: text.into(),
        }
    }

    #[test]
    fn blank_lines_are_not_hashed() {
        assert_eq!(section("a\n\nb\n", &[]).hash(), section("a\nb", &[]).hash());
        assert_ne!(section("a\nb", &[]).hash(), section("a\nB", &[]).hash());
        assert_eq!(section("", &[]).hash().len(), 16);
    }

    #[test]
    fn lines_decide_between_sections_of_one_name() {
        let gold = section("", &[[3, 5], [20, 30]]);
        assert!(gold.holds("a.md", [5, 6]) && gold.holds("a.md", [22, 22]));
        assert!(!gold.holds("a.md", [6, 19]) && !gold.holds("b.md", [3, 3]));
    }
}
