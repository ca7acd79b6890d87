//! Changes as diff prints them: the normal form, and unified or copied context.

use super::lines::Change;
use std::ops::Range;

/// A text as its lines; a last line without a line end is marked.
pub(super) struct Text<'a> {
    lines: Vec<&'a [u8]>,
    ends: bool,
}

/// The form of the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// `3c3`, `<` and `>`.
    Normal,
    /// `@@ -1,3 +1,3 @@` with so many lines around.
    Unified(usize),
    /// `*** 1,3 ****` with so many lines around.
    Context(usize),
}

impl Form {
    /// Lines around a change.
    pub(super) fn context(self) -> usize {
        match self {
            Self::Normal => 0,
            Self::Unified(n) | Self::Context(n) => n,
        }
    }
}

impl<'a> Text<'a> {
    pub(super) fn of(bytes: &'a [u8]) -> Self {
        let ends = bytes.last().is_none_or(|b| *b == b'\n');
        let body = bytes.strip_suffix(b"\n").unwrap_or(bytes);
        let lines =
            if bytes.is_empty() { Vec::new() } else { body.split(|b| *b == b'\n').collect() };
        Self { lines, ends }
    }

    pub(super) fn lines(&self) -> &[&'a [u8]] {
        &self.lines
    }

    /// Whether a line has no line end.
    pub(super) fn is_open(&self, line: usize) -> bool {
        !self.ends && line + 1 == self.lines.len()
    }

    fn put(&self, out: &mut Vec<u8>, mark: &str, line: usize) {
        out.extend_from_slice(mark.as_bytes());
        out.extend_from_slice(self.lines[line]);
        out.push(b'\n');
        if self.is_open(line) {
            out.extend_from_slice(b"\\ No newline at end of file\n");
        }
    }
}

/// Prints changes. `names` are the two header lines of a form with context.
pub(super) fn print(
    out: &mut Vec<u8>,
    form: Form,
    (old, new): (&Text<'_>, &Text<'_>),
    changes: &[Change],
    names: &[String; 2],
) {
    if form == Form::Normal {
        for change in changes {
            normal(out, old, new, change);
        }
        return;
    }
    let marks = if matches!(form, Form::Unified(_)) { ["---", "+++"] } else { ["***", "---"] };
    for (mark, name) in marks.into_iter().zip(names) {
        out.extend_from_slice(format!("{mark} {name}\n").as_bytes());
    }
    let around = form.context();
    let mut from = 0;
    while from < changes.len() {
        // Changes whose context would meet are one hunk.
        let mut to = from + 1;
        while to < changes.len() && changes[to].old.start - changes[to - 1].old.end <= 2 * around {
            to += 1;
        }
        let hunk = &changes[from..to];
        let (first, last) = (&hunk[0], &hunk[hunk.len() - 1]);
        let span = |start: usize, end: usize, total: usize| {
            start.saturating_sub(around)..(end + around).min(total)
        };
        let left = span(first.old.start, last.old.end, old.lines.len());
        let right = span(first.new.start, last.new.end, new.lines.len());
        match form {
            Form::Context(_) => copied(out, old, new, hunk, (left, right)),
            _ => unified(out, old, new, hunk, (left, right)),
        }
        from = to;
    }
}

/// `7` or `7,9`; the line before where there is none.
fn place(lines: &Range<usize>) -> String {
    match lines.len() {
        0 => lines.start.to_string(),
        1 => (lines.start + 1).to_string(),
        _ => format!("{},{}", lines.start + 1, lines.end),
    }
}

fn normal(out: &mut Vec<u8>, old: &Text<'_>, new: &Text<'_>, change: &Change) {
    let letter = match (change.old.is_empty(), change.new.is_empty()) {
        (true, _) => 'a',
        (false, true) => 'd',
        (false, false) => 'c',
    };
    let head = format!("{}{letter}{}\n", place(&change.old), place(&change.new));
    out.extend_from_slice(head.as_bytes());
    change.old.clone().for_each(|n| old.put(out, "< ", n));
    if letter == 'c' {
        out.extend_from_slice(b"---\n");
    }
    change.new.clone().for_each(|n| new.put(out, "> ", n));
}

fn unified(
    out: &mut Vec<u8>,
    old: &Text<'_>,
    new: &Text<'_>,
    hunk: &[Change],
    (left, right): (Range<usize>, Range<usize>),
) {
    let range = |lines: &Range<usize>| match lines.len() {
        0 => format!("{},0", lines.start),
        1 => (lines.start + 1).to_string(),
        n => format!("{},{n}", lines.start + 1),
    };
    out.extend_from_slice(format!("@@ -{} +{} @@\n", range(&left), range(&right)).as_bytes());
    let mut at = left.start;
    for change in hunk {
        (at..change.old.start).for_each(|n| old.put(out, " ", n));
        change.old.clone().for_each(|n| old.put(out, "-", n));
        change.new.clone().for_each(|n| new.put(out, "+", n));
        at = change.old.end;
    }
    (at..left.end).for_each(|n| old.put(out, " ", n));
}

fn copied(
    out: &mut Vec<u8>,
    old: &Text<'_>,
    new: &Text<'_>,
    hunk: &[Change],
    (left, right): (Range<usize>, Range<usize>),
) {
    let range = |lines: &Range<usize>| match lines.len() {
        0 | 1 => lines.end.to_string(),
        _ => format!("{},{}", lines.start + 1, lines.end),
    };
    let side = |out: &mut Vec<u8>, text: &Text<'_>, span: &Range<usize>, is_old: bool| {
        let of = |c: &Change| {
            if is_old {
                (c.old.clone(), c.new.is_empty())
            } else {
                (c.new.clone(), c.old.is_empty())
            }
        };
        if hunk.iter().all(|c| of(c).0.is_empty()) {
            return;
        }
        let alone = if is_old { "- " } else { "+ " };
        let mut at = span.start;
        for change in hunk {
            let (lines, other_is_empty) = of(change);
            (at..lines.start).for_each(|n| text.put(out, "  ", n));
            let mark = if other_is_empty { alone } else { "! " };
            at = lines.end;
            lines.for_each(|n| text.put(out, mark, n));
        }
        (at..span.end).for_each(|n| text.put(out, "  ", n));
    };
    out.extend_from_slice(b"***************\n");
    out.extend_from_slice(format!("*** {} ****\n", range(&left)).as_bytes());
    side(out, old, &left, true);
    out.extend_from_slice(format!("--- {} ----\n", range(&right)).as_bytes());
    side(out, new, &right, false);
}
