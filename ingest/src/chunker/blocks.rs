//! Cuts what is over the cap between its blocks, and a block that alone is over it between its lines.

use super::lines::{closing_fence, fence_only, html_tags, is_fence_mark, quote_marks};
use super::{Cutter, Piece, Span};
use crate::outline::NodeKind;

/// How deep lists and quotes are taken apart before lines are cut.
const CONTAINER_DEPTH_MAX: u32 = 24;

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

impl Cutter<'_> {
    /// Appends the pieces of a span, as many blocks in each as fit.
    pub(super) fn cut_blocks(&self, span: Span, leaf: usize, pieces: &mut Vec<Piece>) {
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

    /// A block of HTML: its first line is repeated in each piece, so that what stands in it is no
    /// Markdown there either; its closing tag is appended where that stands in a line of its own.
    fn cut_html(&self, bound: Span, budget: usize, atoms: &mut Vec<Atom>) {
        let Some((opener, closer)) = html_tags(self.line(bound.from)) else {
            return self.cut_lines(bound, Around::default(), budget, atoms);
        };
        let last = self.line(bound.to);
        let own = last.trim_start_matches(|c: char| c.is_whitespace() || c == '>');
        let is_closed = bound.to > bound.from && own.trim_end().eq_ignore_ascii_case(&closer);
        let appended = if is_closed { vec![last.to_owned()] } else { Vec::new() };
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
}
