//! Warnings and prerequisites: what a person must have read before the commands beside or beneath.
//!
//! They come in many dresses: block quotes, GitHub's alerts, MkDocs' and Docusaurus' admonitions, Hugo's
//! shortcodes, HTML callouts, a word in bold or capitals, a sign, a list item, a row of a table, or a
//! section of their own. A paragraph that only speaks of warnings is none.

use runbook_shared::markdown::{Block, BlockKind};
use std::ops::Range;

/// Words that label a caution; only as a label, not as the first word of a sentence.
const LABELS: &[&str] = &[
    "warning",
    "warn",
    "caution",
    "danger",
    "important",
    "attention",
    "critical",
    "beware",
    "careful",
    "stop",
    "required",
    "requirements",
    "requirement",
    "prerequisite",
    "prerequisites",
    "pre-requisite",
    "pre-requisites",
    "prereq",
    "prereqs",
    "precondition",
    "preconditions",
    "pre-conditions",
    "nb",
    "n.b",
    "heads up",
    "heads-up",
    "hazard",
    "risk",
    "safety",
    "security warning",
    "data loss",
    "achtung",
    "before you begin",
    "before you start",
    "before starting",
    "before running",
    "read first",
    "read this first",
    "assumptions",
    "requires",
    "dangerous",
    "destructive",
    "disclaimer",
    "caveat",
];
/// How a sentence starts that warns by itself.
const SENTENCES: &[&str] = &[
    "never ",
    "do not ",
    "don't ",
    "don’t ",
    "must not ",
    "you must ",
    "make sure",
    "be sure ",
    "be careful",
    "be very careful",
    "be aware",
    "take care",
    "beware",
    "careful",
    "before you ",
    "before doing",
    "before running",
    "before starting",
    "before continuing",
    "before proceeding",
    "before any",
    "only run ",
    "only do ",
    "only use ",
    "run this only",
    "do this only",
    "ensure ",
    "avoid ",
    "you need ",
    "you will need",
    "you'll need",
    "this requires",
    "requires ",
    "this will delete",
    "this will destroy",
    "this will drop",
    "this deletes",
    "this destroys",
    "this is destructive",
    "this is dangerous",
    "this is irreversible",
    "this cannot be undone",
    "there is no undo",
    "first make sure",
    "first, make sure",
    "please make sure",
    "please ensure",
    "please do not",
    "please don't",
    "it is important",
    "it's important",
    "under no circumstances",
    "stop!",
    "stop here",
];
/// After a label that only says that something follows.
const NOTES: &[&str] = &["note", "notice", "remember", "reminder", "info", "tip"];
/// What makes a note a caution.
const FORBIDS: &[&str] = &[
    "do not",
    "don't",
    "don’t",
    "never",
    "must not",
    "must ",
    "make sure",
    "only ",
    "before ",
    "careful",
    "cannot be undone",
    "irreversible",
    "required",
    "ensure",
    "data loss",
    "destructive",
    "downtime",
];
/// Words that mark an admonition, a shortcode or a callout as a caution.
const MARKS: &[&str] =
    &["warning", "caution", "danger", "important", "attention", "critical", "alert", "error"];
const SIGNS: &[char] = &['⚠', '🚨', '🛑', '⛔', '❗', '‼', '☠', '☢', '🚫', '💥', '🔥', '❌'];
const SHORT_SIGNS: &[&str] = &[
    ":warning:",
    ":rotating_light:",
    ":stop_sign:",
    ":octagonal_sign:",
    ":no_entry:",
    ":exclamation:",
    ":bangbang:",
    ":fire:",
    ":skull:",
];

/// The ranges of a section's cautions, in order, each with the blocks that belong to it.
#[must_use]
pub fn cautions(body: &str, all: &[Block]) -> Vec<Range<usize>> {
    let mut found: Vec<Range<usize>> = Vec::new();
    let mut at = 0;
    while let Some(block) = all.get(at) {
        at += 1;
        let text = &body[block.range.clone()];
        match block.kind {
            BlockKind::List { .. } => found.extend(items(body, block)),
            BlockKind::Table => found.extend(items(body, block)),
            BlockKind::Heading | BlockKind::Code => {}
            _ => {
                let Some(extent) = extent(text) else { continue };
                let mut end = block.range.end;
                let mut taken = 0;
                while let Some(next) =
                    all.get(at).filter(|n| taken < BLOCKS_MAX && n.kind != BlockKind::Heading)
                {
                    let next_text = &body[next.range.clone()];
                    let more = match &extent {
                        Extent::Block => false,
                        Extent::Next => taken == 0,
                        Extent::Indented => next.kind == BlockKind::Code && is_indented(body, next),
                        Extent::Until(close) => !closes(&body[block.range.start..end], close),
                    };
                    if !more {
                        break;
                    }
                    end = next.range.end;
                    taken += 1;
                    at += 1;
                    if let Extent::Until(close) = &extent
                        && closes(next_text, close)
                    {
                        break;
                    }
                }
                found.push(block.range.start..end);
            }
        }
    }
    found
}

/// The most blocks that belong to one caution.
const BLOCKS_MAX: usize = 8;

/// How far a caution reaches that starts with a block.
#[derive(Debug, PartialEq)]
enum Extent {
    /// It is the block.
    Block,
    /// A label: the block behind it is what is meant.
    Next,
    /// An admonition whose text is indented.
    Indented,
    /// Up to the block with this mark.
    Until(&'static str),
}

/// Whether a block starts a caution, and how far it reaches.
fn extent(text: &str) -> Option<Extent> {
    let quoted = text.trim_start().starts_with('>');
    let plain = text.trim_start_matches(|c: char| c.is_whitespace() || c == '>');
    let lower = plain.to_lowercase();
    let first = lower.lines().next().unwrap_or("");
    let marked = MARKS.iter().any(|m| first.contains(m));
    let label_only = plain.trim_end().lines().count() == 1;
    if first.starts_with("!!!") || first.starts_with("???") {
        return marked.then_some(Extent::Indented);
    }
    if first.starts_with(":::") {
        return (marked && first.len() > 3).then_some(Extent::Until(":::"));
    }
    if first.starts_with("{{") {
        let close = if first.starts_with("{{%") { "{{% /" } else { "{{< /" };
        return marked.then_some(Extent::Until(close));
    }
    if let Some(tag) = first.strip_prefix('<') {
        return html(tag, &lower);
    }
    if first.starts_with("[!") {
        return marked.then_some(Extent::Block);
    }
    let signed = plain.starts_with(SIGNS) || SHORT_SIGNS.iter().any(|s| lower.starts_with(s));
    let lead = lower.trim_start_matches(|c: char| !c.is_alphanumeric());
    if let Some(rest) = label(lead) {
        let bare = rest.trim_matches(|c: char| !c.is_alphanumeric()).is_empty();
        return Some(if bare && label_only { Extent::Next } else { Extent::Block });
    }
    let sentence = SENTENCES.iter().any(|s| lead.starts_with(s));
    let noted = NOTES.iter().any(|n| {
        lead.strip_prefix(n).is_some_and(is_label_end) && FORBIDS.iter().any(|f| lead.contains(f))
    });
    let quoted_label = quoted && LABELS.iter().any(|l| lead.starts_with(l));
    if !(signed || sentence || noted || quoted_label) {
        return None;
    }
    Some(if plain.trim_end().ends_with(':') { Extent::Next } else { Extent::Block })
}

/// What stands behind a label.
fn label(lead: &str) -> Option<&str> {
    LABELS.iter().filter_map(|l| lead.strip_prefix(l)).find(|rest| is_label_end(rest))
}

/// A label ends with a mark or the line: "Warning: ..", "**Warning** ..", "[WARNING]".
fn is_label_end(rest: &str) -> bool {
    let mark = rest.trim_start_matches(' ');
    mark.is_empty()
        || mark.starts_with([':', '!', '*', '_', ']', '—', '–', '\n', '"', ')', '⚠', '<'])
        || mark.starts_with("- ")
        || rest.starts_with(". ")
}

fn html(tag: &str, whole: &str) -> Option<Extent> {
    let head = tag.split('>').next().unwrap_or("");
    let name: String = head.chars().take_while(char::is_ascii_alphanumeric).collect();
    let inner = whole.split('>').nth(1).unwrap_or("").trim_start();
    let called = MARKS.iter().any(|m| head.contains(m));
    let summary = whole
        .split("<summary>")
        .nth(1)
        .is_some_and(|s| label(s.trim_start_matches(|c: char| !c.is_alphanumeric())).is_some());
    let spoken = label(inner).is_some()
        || inner.starts_with(SIGNS)
        || whole.contains("<strong>warning")
        || whole.contains("<b>warning")
        || whole.contains("<strong>caution");
    if !(called || summary || spoken) {
        return None;
    }
    Some(match name.as_str() {
        "div" => Extent::Until("</div"),
        "aside" => Extent::Until("</aside"),
        "details" => Extent::Until("</details"),
        "section" => Extent::Until("</section"),
        "blockquote" => Extent::Until("</blockquote"),
        _ => Extent::Block,
    })
}

fn closes(text: &str, mark: &str) -> bool {
    let lower = text.to_lowercase();
    match mark {
        ":::" => {
            lower.lines().skip(usize::from(lower.starts_with(":::"))).any(|l| l.trim() == ":::")
        }
        _ => lower.contains(mark),
    }
}

fn is_indented(body: &str, block: &Block) -> bool {
    let line = body[..block.range.start].rfind('\n').map_or(0, |at| at + 1);
    body[line..].starts_with(' ') || body[line..].starts_with('\t')
}

/// Items of a list, or rows of a table, that are cautions.
fn items(body: &str, block: &Block) -> Vec<Range<usize>> {
    let is_row = block.kind == BlockKind::Table;
    let skip = usize::from(is_row);
    let warns = |item: &&Range<usize>| {
        let text = &body[(*item).clone()];
        if is_row {
            let mut cells = text.split('|').map(str::trim).filter(|c| !c.is_empty());
            return cells.any(|c| {
                extent(c).is_some_and(|e| e != Extent::Next || label(&c.to_lowercase()).is_some())
            });
        }
        let bare = text.trim_start_matches(|c: char| {
            c.is_ascii_digit() || matches!(c, '-' | '*' | '+' | '.' | ')' | ' ')
        });
        extent(if bare.starts_with('*') {
            bare
        } else {
            text.get(text.len() - bare.len()..).unwrap_or(bare)
        })
        .is_some()
    };
    block.items.iter().skip(skip).filter(warns).cloned().collect()
}

/// Whether a heading is that of a section of cautions.
#[must_use]
pub fn heading_warns(heading: &str) -> bool {
    let lower = heading.to_lowercase();
    let lead = lower.trim_start_matches(|c: char| !c.is_alphabetic());
    let words = lead.split_whitespace().count();
    words <= 5
        && (LABELS.iter().any(|l| {
            lead.strip_prefix(l)
                .is_some_and(|r| r.is_empty() || !r.starts_with(char::is_alphanumeric))
        }) || [
            "before you",
            "before doing",
            "read me first",
            "what you need",
            "you will need",
            "required access",
            "warnings",
            "things to know before",
        ]
        .iter()
        .any(|s| lead.starts_with(s)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use runbook_shared::markdown::blocks;

    fn found(text: &str) -> Vec<String> {
        cautions(text, &blocks(text)).into_iter().map(|r| text[r].trim().to_owned()).collect()
    }

    #[test]
    fn a_caution_takes_what_belongs_to_it() {
        assert_eq!(
            found("**Prerequisites**\n\n- a key\n- a lamp\n\nRun it.\n"),
            ["**Prerequisites**\n\n- a key\n- a lamp"]
        );
        assert_eq!(
            found(":::danger\n\nOne.\n\nTwo.\n\n:::\n\nThree.\n"),
            [":::danger\n\nOne.\n\nTwo.\n\n:::"]
        );
        assert_eq!(found("!!! warning\n\n    Hot.\n\nCold.\n"), ["!!! warning\n\n    Hot."]);
        assert_eq!(found("Warning:\n\nHot.\n\nCold.\n"), ["Warning:\n\nHot."]);
    }

    #[test]
    fn speaking_of_warnings_is_no_caution() {
        for text in [
            "Warnings are sent to Slack.",
            "Warning thresholds are at 80 %.",
            "The log shows a warning: it is harmless.",
            "Important metrics are on the dashboard.",
            "Note that the page is cached.",
            "Note: the page is cached.",
            "> A quote of somebody.",
            "!!! note\n    Nothing of weight.",
            ":::tip\nNice.\n:::",
            "- an item\n- another one",
            "<div class=\"row\">text</div>",
            "Risky business has been discussed.",
            "Stopped units are listed.",
        ] {
            assert_eq!(found(text), Vec::<String>::new(), "{text}");
        }
        assert!(!heading_warns("Warning thresholds and what they mean for capacity planning"));
        assert!(heading_warns("Prerequisites") && heading_warns("⚠ Before you begin"));
    }
}
