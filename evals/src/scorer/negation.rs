//! Whether a text states a string, or only says that it is not so.
//!
//! An occurrence is negated when, within its own clause, a negating word stands before it ("do not
//! run `x`", "never", "instead of `x`"), or one of a few stands right after it ("`x` is wrong"). What
//! a line announces with a colon ("Never run this:") covers the code block or list below it. A clause
//! ends at a sentence end, a semicolon, a table cell, a list item, a line of code, and before ", but",
//! ", use" and their like; what stands in an "if" or "when" before the first comma negates nothing.
//! A string that holds the negation itself ("do not delete the lock file") is stated as it stands.

use std::ops::Range;

/// Words that negate what follows them in the clause.
const BEFORE: &[&str] = &[
    "do not",
    "don't",
    "does not",
    "doesn't",
    "did not",
    "never",
    "must not",
    "mustn't",
    "should not",
    "shouldn't",
    "cannot",
    "can't",
    "can not",
    "avoid",
    "wrong",
    "incorrect",
    "no longer",
];
/// Words that negate what follows them up to a comma.
const BEFORE_CLOSE: &[&str] = &["instead of", "rather than"];
/// Words that negate what stands right after them.
const RIGHT_BEFORE: &[&str] = &["not", "not the", "not a", "not to", "nor"];
/// Words that negate what they stand right after.
const RIGHT_AFTER: &[&str] = &[
    "is not",
    "isn't",
    "was not",
    "are not",
    "is wrong",
    "was wrong",
    "are wrong",
    "is incorrect",
    "must not",
    "should not",
    "is no longer",
    "are no longer",
    "does not work",
    "is a mistake",
    "wrong",
];
/// Where a clause ends.
const ENDS: &[&str] = &[
    ". ",
    "! ",
    "? ",
    "; ",
    "|",
    ", but ",
    " but ",
    ", use ",
    ", run ",
    ", instead ",
    ", only ",
    " — ",
    " – ",
];
/// Words that open a condition.
const CONDITIONS: &[&str] =
    &["if", "when", "where", "while", "unless", "until", "once", "after", "before", "since", "as"];

/// Whether `text` holds `needle` where it is not negated.
#[must_use]
pub fn states(text: &str, needle: &str) -> bool {
    text.match_indices(needle).any(|(at, _)| !negated(text, at..at + needle.len()))
}

fn negated(text: &str, place: Range<usize>) -> bool {
    let lines = Lines::of(text);
    let line = lines.at(place.start);
    let before = clause_before(&lines.lead(line, place.start));
    let announced = lines.announcement(line).is_some_and(|lead| negates(&clause_before(lead)));
    negates(&before) || announced || negated_after(&lines.rest(place.end))
}

fn negates(clause: &str) -> bool {
    let has = |text: &str, words: &[&str]| {
        let text = words_of(text);
        words.iter().any(|w| text.contains(&format!(" {w} ")))
    };
    let close = clause.rsplit(", ").next().unwrap_or(clause);
    let ends = words_of(close);
    has(clause, BEFORE)
        || has(close, BEFORE_CLOSE)
        || RIGHT_BEFORE.iter().any(|w| ends.ends_with(&format!(" {w} ")))
}

fn negated_after(rest: &str) -> bool {
    let clause = ENDS.iter().filter_map(|e| rest.find(e)).min().map_or(rest, |end| &rest[..end]);
    let words = words_of(clause);
    RIGHT_AFTER.iter().any(|w| words.starts_with(&format!(" {w} ")))
}

/// Lower case, markup gone, one space around every word.
fn words_of(text: &str) -> String {
    let plain: String = text
        .to_lowercase()
        .replace('’', "'")
        .chars()
        .map(|c| if c.is_alphanumeric() || matches!(c, '\'' | '-' | '_' | '/') { c } else { ' ' })
        .collect();
    let words: Vec<&str> = plain.split_whitespace().map(|w| w.trim_matches('_')).collect();
    format!(" {} ", words.join(" "))
}

/// The last clause of a piece of prose, without a condition in front. A colon ends a clause, but not
/// for what it announces: "never: `x`" negates `x`, "it never waits: it runs `x`" does not.
fn clause_before(lead: &str) -> String {
    let start = ENDS.iter().filter_map(|e| lead.rfind(e).map(|at| at + e.len())).max().unwrap_or(0);
    let clause = match lead[start..].rsplit_once(": ") {
        Some((_, said)) if said.chars().any(char::is_alphanumeric) => said,
        _ => &lead[start..],
    };
    let words = words_of(clause);
    let first = words.split_whitespace().find(|w| w.chars().any(char::is_alphabetic)).unwrap_or("");
    if CONDITIONS.contains(&first) {
        return clause.split_once(", ").map_or_else(String::new, |(_, main)| main.to_owned());
    }
    clause.to_owned()
}

/// The lines of a text with what they are.
struct Lines<'a> {
    text: &'a str,
    /// Byte range, and whether it is code.
    lines: Vec<(Range<usize>, bool)>,
}

impl<'a> Lines<'a> {
    fn of(text: &'a str) -> Self {
        let (mut lines, mut at, mut open) = (Vec::new(), 0, false);
        for line in text.split('\n') {
            let fence =
                line.trim_start().starts_with("```") || line.trim_start().starts_with("~~~");
            lines.push((at..at + line.len(), open || fence));
            open ^= fence;
            at += line.len() + 1;
        }
        Self { text, lines }
    }

    fn at(&self, byte: usize) -> usize {
        self.lines.partition_point(|(range, _)| range.end < byte).min(self.lines.len() - 1)
    }

    fn line(&self, number: usize) -> &'a str {
        &self.text[self.lines[number].0.clone()]
    }

    /// True when a line goes on with the prose of the line before it.
    fn goes_on(&self, number: usize) -> bool {
        let prose = |n: usize| !self.lines[n].1 && !self.line(n).trim().is_empty();
        number > 0
            && prose(number)
            && prose(number - 1)
            && !starts_block(self.line(number))
            && !self.line(number - 1).trim_start().starts_with(['#', '|'])
    }

    /// The prose before a byte, from the start of its block; of a line of code, that line.
    fn lead(&self, line: usize, byte: usize) -> String {
        let mut first = line;
        while self.goes_on(first) {
            first -= 1;
        }
        self.text[self.lines[first].0.start..byte].replace('\n', " ")
    }

    /// The prose after a byte, to the end of its block.
    fn rest(&self, byte: usize) -> String {
        let mut last = self.at(byte);
        while last + 1 < self.lines.len() && self.goes_on(last + 1) {
            last += 1;
        }
        self.text[byte..self.lines[last].0.end].replace('\n', " ")
    }

    /// The line that announces the code block or the list that a line is in, when it ends with a colon.
    fn announcement(&self, line: usize) -> Option<&'a str> {
        let inside = |n: usize| {
            let text = self.line(n);
            self.lines[n].1
                || starts_block(text)
                || text.starts_with([' ', '\t'])
                || text.is_empty()
        };
        if !inside(line) {
            return None;
        }
        let above = (0..line).rev().find(|n| !inside(*n)).map(|n| self.line(n))?;
        above.trim_end().ends_with(':').then_some(above)
    }
}

/// True for a line that begins a list item, a quote, a table row or a heading.
fn starts_block(line: &str) -> bool {
    let line = line.trim_start();
    let numbered = line.trim_start_matches(|c: char| c.is_ascii_digit());
    line.starts_with(['|', '#', '>'])
        || ["- ", "* ", "+ "].iter().any(|m| line.starts_with(m))
        || (numbered.len() < line.len()
            && (numbered.starts_with(". ") || numbered.starts_with(") ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_stated() {
        for (text, needle) in [
            ("Run `x`.", "`x`"),
            ("Do not run `y`; run `x`.", "`x`"),
            ("Do not wait. Run `x`.", "`x`"),
            ("Never use `y`, use `x`", "`x`"),
            ("If it does not start, run `x`.", "`x`"),
            ("Use `x` instead of `y`.", "`x`"),
            ("There is no API token", "no API token"),
            ("On the wire: do not delete the lock file", "do not delete the lock file"),
            ("Never run `x` on main.\n\nOn staging run `x`.", "`x`"),
            ("- never `y`\n- `x`", "`x`"),
            ("It does not touch y: the list holds `x`.", "`x`"),
            ("| wrong | `x` |", "`x`"),
            ("Never run this:\n\n```\ny\n```\n\nRun `x`.", "`x`"),
        ] {
            assert!(states(text, needle), "{text}");
        }
    }

    #[test]
    fn what_is_negated() {
        for text in [
            "Do not run `x`.",
            "**Never** run `x` here",
            "Do\nnot run\n`x`",
            "Don’t `x`",
            "Use `y` instead of `x`.",
            "The command is `y`, not `x`.",
            "`x` is wrong",
            "Never do this: `x`",
            "`x` must not be used.",
            "If it hangs, do not run `x`.",
            "Never run any of these:\n\n```sh\n`x`\n```",
            "Do not:\n- `y`\n- `x`\n",
            "nothing",
        ] {
            assert!(!states(text, "`x`"), "{text}");
        }
    }
}
