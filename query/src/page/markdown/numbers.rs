//! Line numbers in the margin of a document, and the lines that are marked.

use std::ops::Range;

/// The lines of a text.
pub(super) struct Numbers {
    starts: Vec<usize>,
    cited: Option<[u32; 2]>,
    named: bool,
}

impl Numbers {
    pub(super) fn new(text: &str, cited: Option<[u32; 2]>) -> Self {
        let starts = std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1));
        Self { starts: starts.collect(), cited, named: false }
    }

    /// The line of a byte, from 1.
    pub(super) fn line(&self, byte: usize) -> u32 {
        u32::try_from(self.starts.partition_point(|s| *s <= byte)).unwrap_or(u32::MAX)
    }

    pub(super) fn cited(&self) -> Option<[u32; 2]> {
        self.cited
    }

    /// The mark of a block's first line: a link to itself, and whether the block is cited. Of an item only
    /// the first line counts, since others may stand within it.
    pub(super) fn marker(&mut self, range: &Range<usize>, first_line_only: bool) -> String {
        let from = self.line(range.start);
        let to = if first_line_only { from } else { self.line(range.end.saturating_sub(1)) };
        let cited = self.cited.is_some_and(|[first, last]| from <= last && first <= to);
        let mut out = String::new();
        if cited && !self.named {
            self.named = true;
            out.push_str("<span id=\"cited-lines\" class=\"ln\"></span>");
        }
        let class = if cited { "ln cited" } else { "ln" };
        out.push_str(&format!("<a id=\"L{from}\" class=\"{class}\" href=\"#L{from}\">{from}</a>"));
        out
    }
}
