//! Cuts a document into chunks: pure, total, linear in the size of the text.
//!
//! A chunk is what stands under a `##` (or under a deeper heading that has no `##` above it). Over
//! the cap it is cut at its subheadings, then between blocks, never inside a fence or a table row; a
//! block that alone exceeds the cap is cut between lines with its fence, tag or table header repeated. The
//! lines of the document are partitioned: every line that is not blank, front matter or comment
//! stands in exactly one chunk, and what a chunk holds besides is counted in `repeated` and
//! `appended`. A heading without text goes with what follows it. docs/index-format.md has the rules.

use crate::outline::{NodeKind, Outline};
use crate::select::EXTENSIONS;
use runbook_shared::chunk::{Chunk, Heading, Part, Section};
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

/// A span of lines that is kept together, if it fits.
#[derive(Debug, Default)]
struct Atom {
    repeated: Vec<String>,
    from: u32,
    to: u32,
    cut_line: Option<String>,
    appended: Vec<String>,
    closing: u32,
}

impl Atom {
    fn plain(from: u32, to: u32) -> Self {
        Self { from, to, ..Self::default() }
    }
}

/// What stands around each piece of a block that is cut between lines.
#[derive(Clone, Copy, Default)]
struct Around<'a> {
    repeated: &'a [String],
    appended: &'a [String],
    /// How many quotes the block stands in whose marks every piece of a line has.
    quotes: usize,
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

    fn cut_blocks(&self, span: Span, leaf: usize, pieces: &mut Vec<Piece>) {
        let heading_tokens: usize = (span.from..=span.to)
            .take_while(|l| !self.body[*l as usize - 1])
            .map(|l| self.tokens[l as usize - 1])
            .sum();
        let budget = self.cap - heading_tokens.min(self.cap / 2);
        let mut atoms = Vec::new();
        self.atoms(span, 0, budget, &mut atoms);
        let mut open: Option<Piece> = None;
        let mut used = 0;
        for atom in atoms {
            let size = self.atom_tokens(&atom);
            let joins = open.as_ref().is_some_and(|p| {
                atom.repeated.is_empty()
                    && p.cut_line.is_none()
                    && p.appended.is_empty()
                    && used + size <= self.cap
            });
            if let (true, Some(piece)) = (joins, open.as_mut()) {
                piece.to = atom.to;
                piece.cut_line = atom.cut_line;
                piece.appended = atom.appended;
                piece.closing = atom.closing;
                used += size;
                continue;
            }
            pieces.extend(open.take());
            used = size;
            open = Some(Piece {
                repeated: atom.repeated,
                from: atom.from,
                to: atom.to,
                cut_line: atom.cut_line,
                appended: atom.appended,
                closing: atom.closing,
                leaf,
            });
        }
        pieces.extend(open);
    }

    fn atom_tokens(&self, atom: &Atom) -> usize {
        let extra: usize =
            atom.repeated.iter().chain(&atom.appended).map(|l| self.counter.count(l)).sum();
        let own = atom
            .cut_line
            .as_ref()
            .map_or_else(|| self.span_tokens(atom.from, atom.to), |l| self.counter.count(l));
        extra + own
    }

    /// Atoms that cover a span: its blocks at this depth, taken apart where they exceed the budget.
    fn atoms(&self, span: Span, depth: u32, budget: usize, atoms: &mut Vec<Atom>) {
        let nodes = &self.source.outline.nodes;
        let first = nodes.partition_point(|n| n.from < span.from);
        let inner =
            nodes[first..].iter().take_while(|n| n.from <= span.to).filter(|n| n.depth == depth);
        let blocks: Vec<_> = inner.collect();
        let bounds = self.spans(span.from, span.to, blocks.iter().map(|n| n.from));
        for bound in bounds {
            if self.span_tokens(bound.from, bound.to) <= budget {
                atoms.push(Atom::plain(bound.from, bound.to));
                continue;
            }
            // Blank lines and definitions after a block are no part of it.
            let block = blocks.iter().find(|n| n.from == bound.from);
            let end = block.map_or(bound.to, |n| n.to.min(bound.to));
            self.block_atoms(
                Span { from: bound.from, to: end },
                block.map(|n| n.kind),
                depth,
                budget,
                atoms,
            );
            if end == bound.to {
                continue;
            }
            let gap = Span { from: end + 1, to: bound.to };
            match atoms.last_mut() {
                Some(last) if self.is_blank(gap) && last.cut_line.is_none() => last.to = bound.to,
                _ => self.cut_lines(gap, Around::default(), budget, atoms),
            }
        }
    }

    /// Atoms of one block that is over the budget.
    fn block_atoms(
        &self,
        block: Span,
        kind: Option<NodeKind>,
        depth: u32,
        budget: usize,
        atoms: &mut Vec<Atom>,
    ) {
        // A fence that fits a chunk is never cut, not even to keep its heading with it.
        let room = if kind == Some(NodeKind::Fence) { self.cap } else { budget };
        if self.span_tokens(block.from, block.to) <= room {
            atoms.push(Atom::plain(block.from, block.to));
            return;
        }
        let nested = depth < CONTAINER_DEPTH_MAX;
        match kind {
            Some(NodeKind::Fence) => self.cut_fence(block, block.to, budget, atoms),
            Some(NodeKind::Table) => self.cut_table(block, block.to, budget, atoms),
            Some(NodeKind::Html) => self.cut_html(block, budget, atoms),
            Some(NodeKind::Container) if nested => self.atoms(block, depth + 1, budget, atoms),
            None if nested && self.deeper(block, depth) => {
                self.atoms(block, depth + 1, budget, atoms);
            }
            _ => self.cut_lines(block, Around::default(), budget, atoms),
        }
    }

    /// True when blocks of a deeper level begin in the span.
    fn deeper(&self, span: Span, depth: u32) -> bool {
        let nodes = &self.source.outline.nodes;
        let first = nodes.partition_point(|n| n.from < span.from);
        nodes[first..].iter().take_while(|n| n.from <= span.to).any(|n| n.depth > depth)
    }

    fn cut_fence(&self, bound: Span, to: u32, budget: usize, atoms: &mut Vec<Atom>) {
        let opener = self.line(bound.from).to_owned();
        let (closer, closed) = closing_fence(&opener, self.line(to), to > bound.from);
        let opener = fence_only(&opener);
        let inner = Span { from: bound.from + 1, to: if closed { to - 1 } else { to } };
        if inner.from > inner.to {
            return self.cut_lines(bound, Around::default(), budget, atoms);
        }
        let first = atoms.len();
        let around = Around {
            repeated: std::slice::from_ref(&opener),
            appended: std::slice::from_ref(&closer),
            quotes: opener.chars().take_while(|c| !is_fence_mark(*c)).filter(|c| *c == '>').count(),
        };
        self.cut_lines(inner, around, budget, atoms);
        // The first piece has the document's own opening line, the last one its closing line.
        if let Some(atom) = atoms.get_mut(first) {
            atom.repeated.clear();
            atom.from = bound.from;
        }
        match atoms.last_mut() {
            Some(atom) if atom.cut_line.is_none() => {
                if closed {
                    atom.appended.clear();
                }
                atom.to = bound.to;
            }
            // The closing line that is appended is the document's own.
            Some(atom) if closed => atom.closing = bound.to,
            _ => {}
        }
    }

    /// A block of HTML: its opening tag is repeated in each piece, so that what stands in it is no
    /// Markdown there either, and its closing tag is appended where the block has one.
    fn cut_html(&self, bound: Span, budget: usize, atoms: &mut Vec<Atom>) {
        let Some((opener, closer)) = html_tags(self.line(bound.from)) else {
            return self.cut_lines(bound, Around::default(), budget, atoms);
        };
        let end = closer.trim_start_matches(|c: char| c.is_whitespace() || c == '>');
        let closes = |text: &str| text.to_ascii_lowercase().contains(end);
        let closed = (bound.from..=bound.to).rev().take(2).any(|l| closes(self.line(l)));
        let appended = if closed { vec![closer.clone()] } else { Vec::new() };
        if (self.counter.count(&opener) + self.counter.count(&closer)) * 2 > budget {
            return self.cut_lines(bound, Around::default(), budget, atoms);
        }
        let first = atoms.len();
        let around = Around {
            repeated: std::slice::from_ref(&opener),
            appended: &appended,
            quotes: opener.chars().take_while(|c| *c != '<').filter(|c| *c == '>').count(),
        };
        self.cut_lines(bound, around, budget, atoms);
        if let Some(atom) = atoms.get_mut(first) {
            atom.repeated.clear();
        }
        if let Some(atom) = atoms[first..].last_mut() {
            atom.appended.clear();
        }
    }

    fn cut_table(&self, bound: Span, to: u32, budget: usize, atoms: &mut Vec<Atom>) {
        let header: Vec<String> =
            [bound.from, bound.from + 1].map(|l| self.line(l).to_owned()).into();
        let header_tokens: usize = header.iter().map(|l| self.counter.count(l)).sum();
        if to < bound.from + 2 || header_tokens * 2 > budget {
            return self.cut_lines(bound, Around::default(), budget, atoms);
        }
        let first = atoms.len();
        let around = Around { repeated: &header, ..Around::default() };
        self.cut_lines(Span { from: bound.from + 2, to: bound.to }, around, budget, atoms);
        if let Some(atom) = atoms.get_mut(first) {
            atom.repeated.clear();
            atom.from = bound.from;
        }
    }

    /// Cuts between lines, and within a line that alone exceeds the budget.
    fn cut_lines(&self, span: Span, around: Around<'_>, budget: usize, atoms: &mut Vec<Atom>) {
        let Around { repeated, appended, quotes } = around;
        let extra: usize = repeated.iter().chain(appended).map(|l| self.counter.count(l)).sum();
        let room = budget.saturating_sub(extra).max(1);
        let atom = |from, to, cut_line| Atom {
            repeated: repeated.to_vec(),
            from,
            to,
            cut_line,
            appended: appended.to_vec(),
            closing: 0,
        };
        let (mut from, mut used) = (span.from, 0);
        for line in span.from..=span.to {
            let size = self.tokens[line as usize - 1];
            if used + size > room && line > from {
                atoms.push(atom(from, line - 1, None));
                (from, used) = (line, 0);
            }
            if size > room {
                for part in self.cut_line(self.line(line), quotes, room) {
                    atoms.push(atom(line, line, Some(part)));
                }
                (from, used) = (line + 1, 0);
                continue;
            }
            used += size;
        }
        if from <= span.to {
            atoms.push(atom(from, span.to, None));
        }
    }

    fn cut_line(&self, line: &str, quotes: usize, room: usize) -> Vec<String> {
        let marks = quote_marks(line, quotes);
        let room_after_marks = room.saturating_sub(self.counter.count(marks)).max(1);
        let mut parts = vec![line[..self.counter.prefix(line, room)].to_owned()];
        let mut rest = &line[parts[0].len()..];
        while !rest.is_empty() {
            let end = self.counter.prefix(rest, room_after_marks);
            parts.push(format!("{marks}{}", &rest[..end]));
            rest = &rest[end..];
        }
        parts
    }

    fn line(&self, line: u32) -> &str {
        &self.lines[line as usize - 1]
    }

    fn finish(&self, mut pieces: Vec<Piece>) -> Vec<Chunk> {
        for piece in &mut pieces {
            if piece.leaf == OPEN {
                piece.leaf = OPEN - 1; // Only headings and blank lines follow; keep it as it is.
            }
        }
        pieces.retain(|p| !self.only_definitions(p) && !self.only_blank(p));
        let mut parts: rustc_hash::FxHashMap<usize, u32> = rustc_hash::FxHashMap::default();
        for piece in &pieces {
            *parts.entry(piece.leaf).or_insert(0) += 1;
        }
        let mut seen: rustc_hash::FxHashMap<usize, u32> = rustc_hash::FxHashMap::default();
        let mut names: rustc_hash::FxHashMap<String, u32> = rustc_hash::FxHashMap::default();
        let mut chunks = Vec::with_capacity(pieces.len());
        for piece in pieces {
            let of = parts[&piece.leaf];
            let index = seen.entry(piece.leaf).or_insert(0);
            *index += 1;
            let part = (of > 1).then_some(Part { index: *index, of });
            if let Some(mut chunk) = self.chunk(piece, part) {
                chunk.id = name(&chunk, &mut names);
                chunks.push(chunk);
            }
        }
        chunks
    }

    /// What is left of a block once its rows are cut: the blank lines after it.
    fn only_blank(&self, piece: &Piece) -> bool {
        let lines = Span { from: piece.from, to: piece.to };
        piece.cut_line.as_ref().map_or_else(|| self.is_blank(lines), |cut| cut.trim().is_empty())
    }

    fn only_definitions(&self, piece: &Piece) -> bool {
        let span = piece.from as usize - 1..piece.to as usize;
        let texts = |l: &usize| !self.lines[*l].trim().is_empty();
        span.clone().any(|l| self.definition[l]) && span.filter(texts).all(|l| self.definition[l])
    }

    fn chunk(&self, piece: Piece, part: Option<Part>) -> Option<Chunk> {
        let blank = |l: u32| self.line(l).trim().is_empty();
        let (mut from, mut to) = (piece.from, piece.to);
        let mut lines: Vec<&str> = Vec::new();
        while from < to && blank(from) {
            from += 1;
        }
        if let Some(cut) = &piece.cut_line {
            lines.extend((from..to).map(|l| self.line(l)));
            lines.push(cut);
        } else {
            while to > from && blank(to) {
                to -= 1;
            }
            lines.extend((from..=to).map(|l| self.line(l)));
        }
        let mut appended = piece.appended.clone();
        let own: usize =
            piece.repeated.iter().chain(&appended).map(|l| self.counter.count(l)).sum::<usize>()
                + lines.iter().map(|l| self.counter.count(l)).sum::<usize>();
        self.append_definitions(from, to, own, &mut appended);
        let mut text = String::new();
        for line in &piece.repeated {
            text.push_str(line);
            text.push('\n');
        }
        let body_start = text.len();
        for line in &lines {
            text.push_str(line);
            text.push('\n');
        }
        for line in &appended {
            text.push_str(line);
            text.push('\n');
        }
        let to = to.max(piece.closing);
        let sections = self.sections(from, to, body_start, &text);
        let trail = sections.first().map(|s| s.heading_path.clone())?;
        let anchor = sections.first().map(|s| s.anchor.clone())?;
        let tokens = u32::try_from(self.counter.count(&text)).unwrap_or(u32::MAX);
        let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        Some(Chunk {
            id: String::new(),
            path: self.source.path.to_owned(),
            title: self.source.title.to_owned(),
            content_hash: content_hash(self.source.title, &trail, &text),
            heading_path: trail,
            anchor,
            lines: [from, to],
            part,
            tokens,
            repeated: count(piece.repeated.len()),
            appended: count(appended.len()),
            text,
            sections,
        })
    }

    /// Puts the definitions that the lines use, and that stand elsewhere, at the end, as far as they fit.
    fn append_definitions(
        &self,
        from: u32,
        to: u32,
        own_tokens: usize,
        appended: &mut Vec<String>,
    ) {
        let outline = self.source.outline;
        let first = outline.uses.partition_point(|u| u.0 < from);
        let mut used = own_tokens;
        let mut seen: Vec<&str> = Vec::new();
        for (_, label) in outline.uses[first..].iter().take_while(|u| u.0 <= to) {
            let Some(definition) = outline.definitions.get(label) else { continue };
            let within = definition.from >= from && definition.to <= to;
            if within || seen.contains(&label.as_str()) || seen.len() > DEFINITIONS_MAX {
                continue;
            }
            seen.push(label);
            let lines = &self.lines[definition.from as usize - 1..definition.to as usize];
            let size: usize = lines.iter().map(|l| self.counter.count(l)).sum();
            if used + size <= self.cap {
                used += size;
                if appended.last().is_none_or(|l| !l.trim().is_empty()) {
                    appended.push(String::new());
                }
                appended.extend(lines.iter().cloned());
            }
        }
    }

    /// The sections within lines `from..=to`: each begins at a heading; a heading without a body of
    /// its own belongs to the section after it.
    fn sections(&self, from: u32, to: u32, body_start: usize, text: &str) -> Vec<Section> {
        let headings = &self.source.outline.headings;
        let first = headings.partition_point(|h| h.line < from);
        let mut current = first.checked_sub(1);
        let mut bounds: Vec<(u32, Option<usize>)> = vec![(from, current)];
        let mut start = from;
        for (n, heading) in
            headings.iter().enumerate().skip(first).take_while(|(_, h)| h.line <= to)
        {
            let span = Span { from: start, to: heading.line.saturating_sub(1) };
            if start < heading.line && self.has_body(span) {
                bounds.push((heading.line, Some(n)));
                start = heading.line;
            } else if let Some(bound) = bounds.last_mut() {
                bound.1 = Some(n);
            }
            current = Some(n);
        }
        let trailing = bounds.len() > 1 && !self.has_body(Span { from: start, to });
        if trailing {
            bounds.pop();
        }
        let _ = current;
        let offsets = self.offsets(from, body_start, text, &bounds);
        let line_end = |n: usize| bounds.get(n + 1).map_or(to, |b| b.0 - 1);
        bounds
            .iter()
            .enumerate()
            .map(|(n, (line, heading))| Section {
                heading_path: heading.map_or_else(Vec::new, |h| self.trail_texts(h)),
                anchor: heading
                    .map_or_else(String::new, |h| self.source.headings[h].anchor.clone()),
                lines: [*line, self.trim_end(*line, line_end(n))],
                start: offsets[n],
                end: offsets[n + 1],
            })
            .collect()
    }

    fn trim_end(&self, from: u32, to: u32) -> u32 {
        (from..=to).rev().find(|l| !self.line(*l).trim().is_empty()).unwrap_or(from)
    }

    fn offsets(
        &self,
        from: u32,
        body_start: usize,
        text: &str,
        bounds: &[(u32, Option<usize>)],
    ) -> Vec<u32> {
        let cast = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        let mut offsets = vec![0];
        for (line, _) in &bounds[1..] {
            let before: usize = (from..*line).map(|l| self.line(l).len() + 1).sum();
            offsets.push(cast(body_start + before));
        }
        offsets.push(cast(text.len()));
        offsets
    }

    fn trail_texts(&self, heading: usize) -> Vec<String> {
        self.trails[heading].iter().map(|h| self.source.outline.headings[*h].text.clone()).collect()
    }
}

/// Marks a piece of headings alone that waits for what follows.
const OPEN: usize = usize::MAX;
/// How deep lists and quotes are taken apart before lines are cut.
const CONTAINER_DEPTH_MAX: u32 = 24;
/// Most definitions appended to one chunk.
const DEFINITIONS_MAX: usize = 64;

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

/// The lines with HTML comments blanked.
fn visible_lines(text: &str, outline: &Outline) -> Vec<String> {
    let mut visible = String::with_capacity(text.len());
    let mut at = 0;
    for comment in &outline.comments {
        if comment.start < at {
            continue;
        }
        visible.push_str(&text[at..comment.start]);
        visible.extend(text[comment.clone()].chars().filter(|c| *c == '\n'));
        let line = visible.rfind('\n').map_or(0, |at| at + 1);
        let begins = visible[line..].chars().all(|c| c.is_whitespace() || c == '>');
        if begins && reads_otherwise(&text[comment.end..]) {
            visible.push_str(EMPTY_COMMENT);
        }
        at = comment.end;
    }
    visible.push_str(&text[at..]);
    visible.lines().map(str::to_owned).collect()
}

/// Stands for a comment without which the text after it would be read otherwise.
const EMPTY_COMMENT: &str = "<!---->";

/// True for text that is none of a heading and of a fence only because a comment stands before it in
/// its line, or that a line of `=` or `-` below it would make a heading.
fn reads_otherwise(after: &str) -> bool {
    let mut lines = after.lines().map(str::trim);
    let line = lines.next().unwrap_or("");
    let hashes = line.bytes().take_while(|b| *b == b'#').count();
    let is_heading =
        (1..=6).contains(&hashes) && line[hashes..].chars().next().is_none_or(char::is_whitespace);
    let is_rule = |line: &str, mark: char| !line.is_empty() && line.chars().all(|c| c == mark);
    let underlines = |line: &str| is_rule(line, '=') || is_rule(line, '-');
    let is_underlined = !line.is_empty() && lines.next().is_some_and(underlines);
    is_heading
        || line.starts_with("```")
        || line.starts_with("~~~")
        || underlines(line)
        || is_underlined
}

/// The opening tag with which a block of HTML begins, behind the marks and blanks before it, and its
/// closing tag in lower case; none where it does not begin with one.
fn html_tags(line: &str) -> Option<(String, String)> {
    let at = line.find('<')?;
    let (lead, tag) = (lead(&line[..at]), &line[at..]);
    let name_end = tag[1..].find(|c: char| !c.is_ascii_alphanumeric() && c != '-')? + 1;
    let name = tag.get(1..name_end).filter(|name| !name.is_empty())?;
    let end = tag.find('>')?;
    Some((format!("{lead}{}", &tag[..=end]), format!("{lead}</{}>", name.to_ascii_lowercase())))
}

/// The marks of so many quotes at the beginning of a line, with the blanks around them.
fn quote_marks(line: &str, quotes: usize) -> &str {
    let mut end = 0;
    for _ in 0..quotes {
        let rest = line[end..].trim_start();
        if !rest.starts_with('>') {
            break;
        }
        end = line.len() - rest.len() + 1;
    }
    &line[..end + usize::from(end > 0 && line[end..].starts_with(' '))]
}

fn is_fence_mark(c: char) -> bool {
    matches!(c, '`' | '~')
}

/// The closing line of a fence, and whether the document has it.
fn closing_fence(opener: &str, last: &str, more_than_one_line: bool) -> (String, bool) {
    let strip =
        |line: &str| line.trim_start_matches(|c: char| c.is_whitespace() || c == '>').to_owned();
    let fence = fence_only(opener);
    let marks: String = strip(&fence).chars().take_while(|c| is_fence_mark(*c)).collect();
    let last_marks = strip(last).trim_end().to_owned();
    let closed = more_than_one_line
        && last_marks.len() >= marks.len().max(3)
        && marks.chars().next().is_some_and(|m| last_marks.chars().all(|c| c == m));
    if closed {
        return (last.to_owned(), true);
    }
    let indent: String = fence.chars().take_while(|c| c.is_whitespace() || *c == '>').collect();
    (format!("{indent}{marks}"), false)
}

/// The opening line of a fence; a list marker before it becomes as many spaces.
fn fence_only(opener: &str) -> String {
    let at = opener.find("```").or_else(|| opener.find("~~~")).unwrap_or(0);
    format!("{}{}", lead(&opener[..at]), &opener[at..])
}

/// What stands before a block in its line, a list marker as so many spaces.
fn lead(before: &str) -> String {
    before.chars().map(|c| if c.is_whitespace() || c == '>' { c } else { ' ' }).collect()
}

fn content_hash(title: &str, trail: &[String], text: &str) -> String {
    let mut hasher = blake3::Hasher::new();
    for part in std::iter::once(title).chain(trail.iter().map(String::as_str)).chain([text]) {
        hasher.update(&(part.len() as u64).to_le_bytes());
        hasher.update(part.as_bytes());
    }
    hasher.finalize().to_hex()[..32].to_owned()
}

/// A name that stays when lines move: path, headings, part, and a number where those repeat.
fn name(chunk: &Chunk, names: &mut rustc_hash::FxHashMap<String, u32>) -> String {
    let part = chunk.part.map_or(0, |p| p.index);
    let key = format!("{}\0{}\0{part}", chunk.path, chunk.heading_path.join("\0"));
    let n = names.entry(key.clone()).or_insert(0);
    *n += 1;
    blake3::hash(format!("{key}\0{n}").as_bytes()).to_hex()[..16].to_owned()
}
