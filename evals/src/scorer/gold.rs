//! Whether the gold section is cited, and where.

use crate::gold::GoldSection;
use runbook_query::reply::{Citation, Reply};
use runbook_shared::generation::Generation;

/// A section that a reply names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named {
    /// Path of the document.
    pub path: String,
    /// The innermost heading.
    pub heading: String,
    /// The lines that are shown.
    pub lines: [u32; 2],
}

/// Where the gold section is among those that a reply names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GoldScore {
    /// Its rank among all that are named, from 1: citations and related, or the nearest of a refusal.
    pub rank: Option<usize>,
    /// Whether it is among the citations.
    pub cited: bool,
}

impl GoldScore {
    /// Whether it is the first that is named.
    #[must_use]
    pub fn first(self) -> bool {
        self.rank == Some(1)
    }

    /// Whether it is named at all.
    #[must_use]
    pub fn named(self) -> bool {
        self.rank.is_some()
    }
}

/// The sections of a reply in order, each once: citations and related, or the nearest of a refusal.
#[must_use]
pub fn named(reply: &Reply, generation: &Generation) -> Vec<Named> {
    let near = reply.refusal.iter().flat_map(|r| &r.nearest).map(|n| Named {
        path: n.path.clone(),
        heading: n.heading.clone(),
        lines: n.lines,
    });
    let mut list: Vec<Named> = Vec::new();
    let mut seen = Vec::new();
    for entry in cited(&reply.citations).chain(cited(&reply.related)).chain(near) {
        let key = (entry.path.clone(), trail(generation, &entry));
        if !seen.contains(&key) {
            seen.push(key);
            list.push(entry);
        }
    }
    list
}

/// What citations name.
pub fn cited(citations: &[Citation]) -> impl Iterator<Item = Named> + '_ {
    citations.iter().map(|c| Named {
        path: c.path.clone(),
        heading: c.heading.clone(),
        lines: c.lines,
    })
}

/// The headings above a named section's first line: sections of one name in one document differ in
/// them, pieces of one section do not.
fn trail(generation: &Generation, named: &Named) -> Vec<String> {
    let sections = generation.scope(&named.path).map(|n| generation.section(n).1);
    let at = named.lines[0];
    let mut holding = sections.filter(|s| s.lines[0] <= at && at <= s.lines[1]);
    holding.next().map_or_else(|| vec![named.heading.clone()], |s| s.heading_path.clone())
}

/// Scores what a reply names, and what it cites.
#[must_use]
pub fn score(named: &[Named], cited: &[Named], gold: &[GoldSection]) -> Option<GoldScore> {
    if gold.is_empty() {
        return None;
    }
    let is_gold = |n: &Named| gold.iter().any(|g| g.holds(&n.path, n.lines));
    let rank = named.iter().position(is_gold).map(|at| at + 1);
    Some(GoldScore { rank, cited: cited.iter().any(is_gold) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rank_is_among_all_that_are_named() {
        let named: Vec<Named> = [10, 20, 30]
            .map(|line| Named { path: "a.md".into(), heading: "H".into(), lines: [line, line + 2] })
            .into();
        let gold = |lines| GoldSection {
            path: "a.md".into(),
            heading: "H".into(),
            lines: vec![lines],
            text: String::new(),
        };
        let at = |lines, cited| score(&named, &named[..cited], &[gold(lines)]).unwrap();
        assert_eq!(at([19, 29], 1), GoldScore { rank: Some(2), cited: false });
        assert!(at([19, 29], 2).cited && !at([19, 29], 2).first());
        assert!(at([8, 12], 1).first() && !at([40, 41], 3).named());
        assert_eq!(score(&named, &named, &[]), None);
    }
}
