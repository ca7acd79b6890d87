//! The passage: the lines of a section that are shown as the answer, as they stand.
//!
//! Blocks are never cut: a command is whole, a numbered procedure is whole, a table keeps its header.
//! A short section is shown whole. Of a long one, the blocks with the question's words are shown,
//! with the paragraph that leads to a code block, and with every warning of the section.

use crate::caution::cautions;
use runbook_shared::analyse::{TermKind, Wanted, analyse_for};
use runbook_shared::chunk::{Chunk, Section};
use runbook_shared::markdown::{Block, BlockKind, blocks};
use runbook_shared::retrieval::arms::LookedUp;
use rustc_hash::FxHashSet;
use std::ops::Range;

/// A section of at most this many characters is shown whole.
const WHOLE_CHARS_MAX: usize = 1600;
/// A passage of a longer section grows up to this many characters, unless one block is larger.
const PASSAGE_CHARS_MAX: usize = 1200;

/// Consecutive lines of a section.
#[derive(Clone, Debug, PartialEq)]
pub struct Passage {
    /// What is shown, without a line end at the end: the lines, with a table's header above its rows.
    pub text: String,
    /// The lines as they stand.
    pub quote: String,
    /// First and last line in the document.
    pub lines: [u32; 2],
    /// How much of the question it holds, by weight of its terms; for choosing among passages.
    pub weight: f32,
}

/// The best passage of a section, and the section's warnings that are not within.
#[must_use]
pub fn choose(chunk: &Chunk, section: &Section, terms: &[LookedUp]) -> (Passage, Vec<Passage>) {
    let text = own_text(chunk, section);
    let all = blocks(text.body);
    let content: Vec<&Block> = all.iter().filter(|b| b.kind != BlockKind::Heading).collect();
    let Some((first, last)) = content.first().zip(content.last()) else {
        let range = from_heading(&all).unwrap_or(0)..text.body.trim_end().len();
        return (text.passage(&range, terms), Vec::new());
    };
    let whole = first.range.start..last.range.end;
    if whole.len() <= WHOLE_CHARS_MAX {
        return (text.passage(&whole, terms), Vec::new());
    }
    let range = best_range(text.body, &content, terms);
    let table = content.iter().find(|b| b.kind == BlockKind::Table && b.range == range);
    if let Some(passage) = table.and_then(|table| rows(&text, table, terms)) {
        return (passage, Vec::new());
    }
    let outside = |r: &Range<usize>| r.end <= range.start || r.start >= range.end;
    let warnings = cautions(text.body, &all)
        .into_iter()
        .filter(outside)
        .map(|r| text.passage(&r, terms))
        .collect();
    (text.passage(&range, terms), warnings)
}

/// A section from its first block to its last, without its heading.
#[must_use]
pub fn whole(chunk: &Chunk, section: &Section) -> Passage {
    let text = own_text(chunk, section);
    let all = blocks(text.body);
    let mut content = all.iter().filter(|b| b.kind != BlockKind::Heading);
    let first = content.next();
    let last = content.next_back().or(first);
    let range =
        first.zip(last).map_or(0..text.body.trim_end().len(), |(f, l)| f.range.start..l.range.end);
    text.passage(&range, &[])
}

/// Warnings and prerequisites of a section, for showing a parent's above its child's commands.
#[must_use]
pub fn warnings(chunk: &Chunk, section: &Section) -> Vec<Passage> {
    let text = own_text(chunk, section);
    let all = blocks(text.body);
    cautions(text.body, &all).into_iter().map(|r| text.passage(&r, &[])).collect()
}

/// A section from its heading to its last block.
#[must_use]
pub fn titled(chunk: &Chunk, section: &Section) -> Passage {
    let text = own_text(chunk, section);
    let all = blocks(text.body);
    let range = from_heading(&all).zip(all.last()).map_or(0..0, |(from, l)| from..l.range.end);
    text.passage(&range, &[])
}

/// Where the section's own heading starts, or its first block: before it may stand headings that have
/// no text of their own.
fn from_heading(all: &[Block]) -> Option<usize> {
    let headings = all.iter().take_while(|b| b.kind == BlockKind::Heading);
    headings.last().or(all.first()).map(|b| b.range.start)
}

/// A section's text within its chunk, and which of it are the document's own lines: a piece of a
/// table or a code block has its header or fence repeated.
struct OwnText<'a> {
    body: &'a str,
    own: Range<usize>,
    first_line: u32,
    last_line: u32,
}

fn own_text<'a>(chunk: &'a Chunk, section: &Section) -> OwnText<'a> {
    let (start, end) = (section.start as usize, section.end as usize);
    let body = &chunk.text[start..end];
    let repeated = if start == 0 { chunk.repeated as usize } else { 0 };
    let appended = if end == chunk.text.len() { chunk.appended as usize } else { 0 };
    let from = line_start(body, repeated);
    let to = line_start(body, body.lines().count().saturating_sub(appended)).max(from);
    OwnText { body, own: from..to, first_line: section.lines[0], last_line: section.lines[1] }
}

/// The byte at which a line (0-based) starts.
fn line_start(text: &str, line: usize) -> usize {
    if line == 0 {
        return 0;
    }
    text.match_indices('\n').nth(line - 1).map_or(text.len(), |(at, _)| at + 1)
}

impl OwnText<'_> {
    /// Whole lines around a range; the quote is those of them that are the document's own.
    fn passage(&self, range: &Range<usize>, terms: &[LookedUp]) -> Passage {
        let start = self.body[..range.start].rfind('\n').map_or(0, |at| at + 1);
        let trimmed = range.start + self.body[range.clone()].trim_end().len();
        let end = self.body[trimmed..].find('\n').map_or(self.body.len(), |at| trimmed + at);
        let text = self.body[start..end].to_owned();
        let (from, to) = (start.max(self.own.start), end.min(self.own.end));
        let quote = self.body.get(from..to).unwrap_or("").trim_end_matches('\n').to_owned();
        let line_of = |byte: usize| {
            let own = self.body.get(self.own.start..byte).unwrap_or("");
            let before = own.bytes().filter(|b| *b == b'\n').count();
            (self.first_line + u32::try_from(before).unwrap_or(u32::MAX)).min(self.last_line)
        };
        let lines = [line_of(from), line_of(from + quote.len())];
        let weight = weight(&text, terms);
        Passage { text, quote, lines, weight }
    }
}

/// Sum of the weights of the question's terms that stand in a text.
fn weight(text: &str, terms: &[LookedUp]) -> f32 {
    let wanted: Wanted = terms.iter().map(LookedUp::wanted).collect();
    let present: FxHashSet<(TermKind, String)> =
        analyse_for(text, &wanted).into_iter().map(|t| (t.kind, t.stem)).collect();
    let stands = |t: &&LookedUp| present.contains(&(t.term.kind, t.wanted().to_owned()));
    terms.iter().filter(stands).map(|t| t.idf).sum()
}

/// The heaviest run of blocks: the best block, then its neighbours while they fit; a code block
/// keeps the paragraph before it, and a paragraph that ends with a colon what it announces.
fn best_range(body: &str, content: &[&Block], terms: &[LookedUp]) -> Range<usize> {
    let weights: Vec<f32> = content.iter().map(|b| weight(&body[b.range.clone()], terms)).collect();
    let best = (0..content.len())
        .max_by(|a, b| weights[*a].total_cmp(&weights[*b]).then(b.cmp(a)))
        .unwrap_or(0);
    let (mut from, mut to) = (best, best);
    let size = |from: usize, to: usize| content[to].range.end - content[from].range.start;
    let announces = |at: usize| body[content[at].range.clone()].trim_end().ends_with(':');
    loop {
        // What belongs together is taken even over the size.
        let lead = from > 0
            && (content[from].kind == BlockKind::Code || announces(from - 1))
            && content[from - 1].kind != BlockKind::Code;
        if lead && size(from - 1, to) <= PASSAGE_CHARS_MAX * 3 {
            from -= 1;
            continue;
        }
        if to + 1 < content.len() && announces(to) && size(from, to + 1) <= PASSAGE_CHARS_MAX * 3 {
            to += 1;
            continue;
        }
        let after = to + 1 < content.len() && size(from, to + 1) <= PASSAGE_CHARS_MAX;
        let before = from > 0 && size(from - 1, to) <= PASSAGE_CHARS_MAX;
        let take_after = after
            && (content[to + 1].kind == BlockKind::Code
                || !before
                || weights[to + 1] >= weights[from - 1]);
        if take_after {
            to += 1;
        } else if before {
            from -= 1;
        } else {
            return content[from].range.start..content[to].range.end;
        }
    }
}

/// The rows of a large table that hold most of the question, under the table's header.
fn rows(text: &OwnText<'_>, table: &Block, terms: &[LookedUp]) -> Option<Passage> {
    if table.range.len() <= PASSAGE_CHARS_MAX {
        return None;
    }
    let body = table.items.get(1..)?;
    let weights: Vec<f32> = body.iter().map(|r| weight(&text.body[r.clone()], terms)).collect();
    let best = weights.iter().copied().fold(0f32, f32::max);
    let first = weights.iter().position(|w| best > 0.0 && *w >= best)?;
    let run = weights[first..].iter().take_while(|w| **w >= best).count();
    let mut passage = text.passage(&(body[first].start..body[first + run - 1].end), terms);
    let header: Vec<&str> = text.body[table.range.clone()].lines().take(2).collect();
    passage.text = format!("{}\n{}", header.join("\n"), passage.quote);
    Some(passage)
}

/// The first two lines of a passage that say something, as they stand below one another: no lone fence,
/// no rule of a table, no mark of an admonition.
#[must_use]
pub fn preview(passage: &Passage) -> String {
    const PREVIEW_CHARS_MAX: usize = 240;
    let lines: Vec<&str> = passage.quote.lines().filter(|l| !l.trim().is_empty()).collect();
    let says = |l: &&str| {
        let bare = l.trim_start().trim_start_matches(['>', ' ']);
        bare.chars().any(char::is_alphanumeric)
            && !["```", "~~~", ":::", "!!!", "{{", "[!"].iter().any(|m| bare.starts_with(m))
            && !(bare.starts_with('<')
                && bare.trim_end().ends_with('>')
                && !bare[1..].contains('<'))
    };
    let first = lines.iter().position(says).unwrap_or(0);
    let pair = |at: usize| lines.get(at..at + 2).filter(|p| p.iter().all(says));
    // Of a table, two rows say more than its header alone.
    let is_header = lines.get(first).is_some_and(|l| l.trim_start().starts_with('|'))
        && lines.get(first + 1).is_some_and(|l| !says(l));
    let chosen = pair(first).or_else(|| is_header.then(|| pair(first + 2)).flatten());
    let chosen = chosen.unwrap_or_else(|| lines.get(first..=first).unwrap_or_default());
    chosen.join("\n").chars().take(PREVIEW_CHARS_MAX).collect()
}

/// The code of the first code block in a passage, without its fence.
#[must_use]
pub fn command(passage: &str) -> Option<String> {
    let code: Vec<String> = blocks_of_code(passage);
    (!code.is_empty()).then(|| code.join("\n"))
}

fn blocks_of_code(passage: &str) -> Vec<String> {
    use pulldown_cmark::{Event, Parser, Tag, TagEnd};
    let mut code = Vec::new();
    let mut open: Option<String> = None;
    for event in Parser::new_ext(passage, runbook_shared::markdown::options()) {
        match event {
            Event::Start(Tag::CodeBlock(_)) => open = Some(String::new()),
            Event::Text(text) => {
                if let Some(block) = &mut open {
                    block.push_str(&text);
                }
            }
            Event::End(TagEnd::CodeBlock) => {
                code.extend(open.take().map(|b| b.trim_end().to_owned()));
            }
            _ => {}
        }
    }
    code
}
