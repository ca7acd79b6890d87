//! Cuts a document into chunks: pure, total, linear in the size of the text.
//!
//! A chunk is what stands under a `##` (or under a deeper heading that has no `##` above it). Over
//! the cap it is cut at its subheadings, then between blocks, never inside a fence or a table row; a
//! block that alone exceeds the cap is cut between lines with its fence, tag or table header repeated. The
//! lines of the document are partitioned: every line that is not blank, front matter or comment
//! stands in exactly one chunk, and what a chunk holds besides is counted in `repeated` and
//! `appended`. A heading without text goes with what follows it. docs/index-format.md has the rules.

mod blocks;
mod finish;
mod lines;

use crate::outline::Outline;
use crate::select::EXTENSIONS;
use lines::visible_lines;
use runbook_shared::chunk::{Chunk, Heading};
use runbook_shared::tokens::TokenCounter;

/// A document as the chunker sees it.
pub struct Source<'a> {
    /// Path of the document.
    pub path: &'a str,
    /// Its text with LF line ends and without BOM.
    pub text: &'a str,
    /// Its outline.
    pub outline: &'a Outline,
    /// Its headings with anchors.
    pub headings: &'a [Heading],
    /// Its title.
    pub title: &'a str,
}

/// The title of a document: front matter, else the first h1, else the file name without extension.
#[must_use]
pub fn title(outline: &Outline, file_name: &str) -> String {
    if let Some(title) = &outline.front_title {
        return title.clone();
    }
    let h1 = outline.headings.iter().find(|h| h.level == 1);
    h1.map_or_else(|| stem(file_name).to_owned(), |h| h.text.clone())
}

/// A file name without the extension that makes it a document.
fn stem(file_name: &str) -> &str {
    let lower = file_name.to_ascii_lowercase();
    let found = EXTENSIONS.iter().filter(|e| lower.ends_with(**e)).max_by_key(|e| e.len());
    found.map_or(file_name, |e| &file_name[..file_name.len() - e.len()])
}

/// Cuts a document; `cap` is in tokens of a chunk's text.
#[must_use]
pub fn chunks(source: &Source<'_>, counter: &TokenCounter, cap: usize) -> Vec<Chunk> {
    let cutter = Cutter::new(source, counter, cap);
    let mut pieces = Vec::new();
    let units = cutter.units();
    for (n, unit) in units.iter().enumerate() {
        cutter.cut(*unit, n + 1 == units.len(), &mut pieces);
    }
    cutter.finish(pieces)
}

/// A range of lines under one heading, both inclusive and 1-based.
#[derive(Clone, Copy, Debug)]
struct Span {
    from: u32,
    to: u32,
}

/// A piece of text on its way to become a chunk.
#[derive(Debug, Default)]
struct Piece {
    repeated: Vec<String>,
    from: u32,
    to: u32,
    /// Stands for the last line, where that had to be cut.
    cut_line: Option<String>,
    appended: Vec<String>,
    /// The line of the closing fence that `appended` stands for, after a cut line; else 0.
    closing: u32,
    /// Which leaf it belongs to: pieces of one leaf are numbered as parts.
    leaf: usize,
}

struct Cutter<'a> {
    source: &'a Source<'a>,
    counter: &'a TokenCounter,
    cap: usize,
    /// Lines with comments blanked, without line ends.
    lines: Vec<String>,
    /// Tokens of each line.
    tokens: Vec<usize>,
    /// True for lines that carry text of their own: no heading, no definition, not blank.
    body: Vec<bool>,
    /// True for lines of a link or footnote definition.
    definition: Vec<bool>,
    /// Heading trail of each heading.
    trails: Vec<Vec<usize>>,
}

impl<'a> Cutter<'a> {
    fn new(source: &'a Source<'a>, counter: &'a TokenCounter, cap: usize) -> Self {
        let lines = visible_lines(source.text, source.outline);
        let tokens = lines.iter().map(|l| counter.count(l)).collect();
        let mut body: Vec<bool> = lines.iter().map(|l| !l.trim().is_empty()).collect();
        let mut definition = vec![false; lines.len()];
        let range = |from: u32, to: u32| (from as usize - 1)..(to as usize).min(lines.len());
        for heading in &source.outline.headings {
            body[range(heading.line, heading.end_line)].fill(false);
        }
        for d in source.outline.definitions.values() {
            definition[range(d.from, d.to)].fill(true);
            body[range(d.from, d.to)].fill(false);
        }
        for line in body.iter_mut().take(source.outline.body_line as usize - 1) {
            *line = false;
        }
        let trails = trails(&source.outline.headings.iter().map(|h| h.level).collect::<Vec<_>>());
        Self { source, counter, cap, lines, tokens, body, definition, trails }
    }

    fn last_line(&self) -> u32 {
        u32::try_from(self.lines.len()).unwrap_or(u32::MAX)
    }

    /// Cuts at h1, h2, and deeper headings that stand under none but an h1.
    fn units(&self) -> Vec<Span> {
        let headings = &self.source.outline.headings;
        let starts = (0..headings.len())
            .filter(|h| self.trails[*h].iter().rev().skip(1).all(|up| headings[*up].level == 1))
            .map(|h| headings[h].line);
        self.spans(self.source.outline.body_line, self.last_line(), starts)
    }

    /// Spans that cover `from..=to` and begin at `starts`.
    fn spans(&self, from: u32, to: u32, starts: impl Iterator<Item = u32>) -> Vec<Span> {
        let mut bounds: Vec<u32> = vec![from];
        bounds.extend(starts.filter(|s| *s > from && *s <= to));
        bounds.push(to + 1);
        bounds
            .windows(2)
            .filter(|w| w[0] < w[1])
            .map(|w| Span { from: w[0], to: w[1] - 1 })
            .collect()
    }

    fn has_body(&self, span: Span) -> bool {
        self.body[span.from as usize - 1..span.to as usize].iter().any(|b| *b)
    }

    fn is_blank(&self, span: Span) -> bool {
        self.lines[span.from as usize - 1..span.to as usize].iter().all(|l| l.trim().is_empty())
    }

    fn span_tokens(&self, from: u32, to: u32) -> usize {
        self.tokens[from as usize - 1..to as usize].iter().sum()
    }

    /// Appends the pieces of a unit or subsection. A span of headings alone is left to the next one:
    /// it stays in `pieces` as an open piece that the next call extends.
    fn cut(&self, span: Span, last: bool, pieces: &mut Vec<Piece>) {
        let open = pieces.last().is_some_and(|p| p.leaf == OPEN);
        let from = if open { pieces.last().map_or(span.from, |p| p.from) } else { span.from };
        if !self.has_body(span) {
            return self.without_body(Span { from, to: span.to }, open, last, pieces);
        }
        if open {
            pieces.pop();
        }
        let whole = Span { from, to: span.to };
        let leaf = pieces.len();
        if self.span_tokens(whole.from, whole.to) <= self.cap {
            pieces.push(Piece { from: whole.from, to: whole.to, leaf, ..Piece::default() });
            return;
        }
        let subs = self.subsections(span);
        if subs.len() < 2 {
            self.cut_blocks(whole, leaf, pieces);
            return;
        }
        let mut first = true;
        for (n, sub) in subs.iter().enumerate() {
            let sub = if first { Span { from, to: sub.to } } else { *sub };
            first = false;
            self.cut(sub, last && n + 1 == subs.len(), pieces);
        }
    }

    /// Headings alone wait for what follows; at the end of the document they join what stands before.
    fn without_body(&self, span: Span, open: bool, last: bool, pieces: &mut Vec<Piece>) {
        if open {
            pieces.pop();
        }
        if self.is_blank(span) {
            return;
        }
        if !last {
            pieces.push(Piece { from: span.from, to: span.to, leaf: OPEN, ..Piece::default() });
            return;
        }
        let fits = pieces.last().is_some_and(|p| {
            p.cut_line.is_none()
                && p.appended.is_empty()
                && self.span_tokens(p.from, span.to) <= self.cap
        });
        match pieces.last_mut() {
            Some(previous) if fits => previous.to = span.to,
            _ => {
                let leaf = pieces.len();
                self.cut_blocks(span, leaf, pieces);
            }
        }
    }

    /// The lead of a span and the subtrees of its highest subheadings.
    fn subsections(&self, span: Span) -> Vec<Span> {
        let headings = &self.source.outline.headings;
        let inner: Vec<_> =
            headings.iter().filter(|h| h.line > span.from && h.line <= span.to).collect();
        let Some(top) = inner.iter().map(|h| h.level).min() else { return vec![span] };
        self.spans(span.from, span.to, inner.iter().filter(|h| h.level == top).map(|h| h.line))
    }

    fn line(&self, line: u32) -> &str {
        &self.lines[line as usize - 1]
    }
}

/// Marks a piece of headings alone that waits for what follows.
const OPEN: usize = usize::MAX;
/// For each heading, the headings it stands under, outermost first, itself last.
fn trails(levels: &[u8]) -> Vec<Vec<usize>> {
    let mut stack: Vec<usize> = Vec::new();
    levels
        .iter()
        .enumerate()
        .map(|(n, level)| {
            while stack.last().is_some_and(|up| levels[*up] >= *level) {
                stack.pop();
            }
            stack.push(n);
            stack.clone()
        })
        .collect()
}
