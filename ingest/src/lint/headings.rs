//! Rules of one document: vague headings, anchors that are there twice, sections that are too long,
//! fences without an end.

use super::allow::Allowed;
use super::rule::Rule;
use super::{Findings, Page};
use runbook_shared::chunk::Chunk;
use runbook_shared::limits::CHUNK_TOKENS_MAX;
use rustc_hash::FxHashMap;

/// Tokens of a section from which it is told: a little more than a chunk costs search little.
const LONG_TOKENS: u32 = CHUNK_TOKENS_MAX as u32 * 3 / 2;
/// How the names of lists of changes begin: their sections are alike and long by nature.
const LISTS_OF_CHANGES: [&str; 4] = ["changelog", "changes", "history", "release"];

/// Headings that would fit anything. Only whole headings are compared.
const VAGUE: [&str; 38] = [
    "additional info",
    "additional information",
    "additional notes",
    "bits and pieces",
    "etc",
    "extra",
    "extras",
    "general",
    "general info",
    "general information",
    "general notes",
    "info",
    "information",
    "misc",
    "misc notes",
    "miscellaneous",
    "more",
    "more info",
    "more information",
    "new section",
    "note",
    "notes",
    "odds and ends",
    "other",
    "other information",
    "other notes",
    "other stuff",
    "other things",
    "others",
    "random",
    "random notes",
    "section",
    "stuff",
    "tbd",
    "things",
    "todo",
    "untitled",
    "various",
];

pub(super) fn check(page: &Page<'_>, allowed: &Allowed, findings: &mut Findings<'_>) {
    for fence in &page.outline.unclosed {
        let message = "this fence is never closed: what follows, to the end of its list item or of the document, is code, and no heading there is seen; close it with the same marks, as far indented".to_owned();
        findings.push(allowed, page.path(), fence.line, Rule::UnclosedFence, message);
    }
    vague(page, allowed, findings);
    if !is_list_of_changes(page.path()) {
        duplicates(page, allowed, findings);
        long(page, allowed, findings);
    }
}

fn is_list_of_changes(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path).to_ascii_lowercase();
    LISTS_OF_CHANGES.iter().any(|start| name.starts_with(start))
}

fn vague(page: &Page<'_>, allowed: &Allowed, findings: &mut Findings<'_>) {
    for (n, heading) in page.outline.headings.iter().enumerate() {
        if !is_vague(&heading.text) {
            continue;
        }
        let next = page.outline.headings.get(n + 1).map_or(u32::MAX, |h| h.line);
        let text = page.text.lines().skip(heading.end_line as usize);
        let own = text.take((next - heading.end_line - 1) as usize).any(|l| !l.trim().is_empty());
        if own {
            let message = format!(
                "`{}` says nothing of what is beneath it, so no question leads here; say what it is about",
                heading.text
            );
            findings.push(allowed, page.path(), heading.line, Rule::VagueHeading, message);
        }
    }
}

fn is_vague(heading: &str) -> bool {
    let lower = heading.to_lowercase();
    let words: Vec<&str> = lower
        .split(|c: char| !c.is_alphanumeric())
        .filter(|w| !w.is_empty())
        // `3. Misc` is as vague as `Misc`.
        .skip_while(|w| w.bytes().all(|b| b.is_ascii_digit()))
        .collect();
    VAGUE.binary_search(&words.join(" ").as_str()).is_ok()
}

fn duplicates(page: &Page<'_>, allowed: &Allowed, findings: &mut Findings<'_>) {
    let mut lines: FxHashMap<String, Vec<usize>> = FxHashMap::default();
    for (n, heading) in page.outline.headings.iter().enumerate() {
        let own = std::slice::from_ref(heading);
        let slug = crate::anchors::anchors(own, None).pop().unwrap_or_default();
        if !slug.is_empty() {
            lines.entry(slug).or_default().push(n);
        }
    }
    for (slug, places) in lines.into_iter().filter(|(_, places)| places.len() > 1) {
        let headings = &page.outline.headings;
        // The comment that allows it may stand at any of them.
        let at = |n: &usize| headings[*n].line;
        if places.iter().any(|n| allowed.covers(Rule::DuplicateAnchor, at(n))) {
            continue;
        }
        let others: Vec<String> = places.iter().map(|n| at(n).to_string()).collect();
        let message = format!(
            "`{}` is the heading of {} sections (lines {}): links to `#{slug}-1` change with every such section that is added above; name what each is about",
            headings[places[0]].text,
            places.len(),
            others.join(", ")
        );
        findings.push(allowed, page.path(), at(&places[1]), Rule::DuplicateAnchor, message);
    }
}

/// A section that had to be cut between its blocks, since no heading within says where.
fn long(page: &Page<'_>, allowed: &Allowed, findings: &mut Findings<'_>) {
    let chunks = &page.document.chunks;
    for (n, first) in chunks.iter().enumerate() {
        let Some(part) = first.part.filter(|p| p.index == 1) else { continue };
        let parts = &chunks[n..chunks.len().min(n + part.of as usize)];
        let of_one = |c: &Chunk| c.sections.len() == 1;
        let whole = parts.iter().all(|c| of_one(c) && same_section(c, first));
        // A table or a listing cannot have headings within.
        let divisible: u32 = parts.iter().filter(|c| c.repeated == 0).map(|c| c.tokens).sum();
        if !whole || divisible < LONG_TOKENS {
            continue;
        }
        let tokens: u32 = parts.iter().map(|c| c.tokens).sum();
        let (line, what) = place(page, first);
        let message = format!(
            "{what} has {tokens} tokens without a heading within, and is cut into {} pieces of at most {CHUNK_TOKENS_MAX}; divide it with headings that say what each part is about",
            parts.len()
        );
        findings.push(allowed, page.path(), line, Rule::LongSection, message);
    }
}

fn same_section(one: &Chunk, other: &Chunk) -> bool {
    let path = |c: &Chunk| c.sections.first().map(|s| s.heading_path.clone());
    path(one) == path(other)
}

fn place(page: &Page<'_>, first: &Chunk) -> (u32, String) {
    let section = first.sections.first();
    let own = section.and_then(|s| s.heading_path.last());
    let headings = &page.outline.headings;
    let heading = headings.iter().rfind(|h| h.line <= first.lines[0]);
    match (own, heading) {
        (Some(own), Some(heading)) => (heading.line, format!("`{own}`")),
        _ if headings.is_empty() => (first.lines[0], "this document".to_owned()),
        _ => (first.lines[0], "the text above the first heading".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_headings_are_vague_with_or_without_a_number() {
        assert!(VAGUE.is_sorted());
        for heading in ["Misc", "MISC.", "3. Notes:", "Other stuff", "etc...", "*Todo*"] {
            assert!(is_vague(heading), "{heading}");
        }
        for heading in ["Release notes", "Other regions", "General failover", "More disks", "2", ""]
        {
            assert!(!is_vague(heading), "{heading}");
        }
    }
}
