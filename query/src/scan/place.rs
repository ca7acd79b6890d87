//! Where a subject stands in a document, as a passage that can be cited.

use crate::passage::Passage;
use runbook_shared::generation::Generation;

/// The longest quote of a citation, in characters.
const QUOTE_CHARS_MAX: usize = 240;

pub(super) fn passage(quote: String, lines: [u32; 2]) -> Passage {
    Passage { text: quote.clone(), quote, lines, weight: 0.0 }
}

/// The first line of a section that says something, as a passage of it.
pub(super) fn first_line(generation: &Generation, number: u32) -> Option<(u32, Passage)> {
    let (chunk, section) = generation.section(number);
    let repeated = if section.start == 0 { chunk.repeated as usize } else { 0 };
    let lines = chunk.section_text(section).lines().skip(repeated);
    let (line, text) = (section.lines[0]..=section.lines[1])
        .zip(lines)
        .find(|(_, l)| l.chars().any(char::is_alphanumeric))?;
    let quote: String = text.chars().take(QUOTE_CHARS_MAX).collect();
    Some((number, passage(quote.trim().to_owned(), [line, line])))
}

/// The 1-based line of a byte.
pub(super) fn line_of(text: &str, at: usize) -> u32 {
    let before = text.as_bytes().get(..at).unwrap_or_default();
    u32::try_from(before.iter().filter(|b| **b == b'\n').count())
        .unwrap_or(u32::MAX)
        .saturating_add(1)
}

/// The lines of a range; of a long line, what stands around it.
pub(super) fn quote(text: &str, start: usize, end: usize) -> String {
    let from = text[..start].rfind('\n').map_or(0, |at| at + 1);
    let to = text[end..].find('\n').map_or(text.len(), |at| end + at);
    let line = text[from..to].trim();
    if line.chars().count() <= QUOTE_CHARS_MAX {
        return line.to_owned();
    }
    let mut first = start.saturating_sub(QUOTE_CHARS_MAX / 2).max(from);
    while !text.is_char_boundary(first) {
        first += 1;
    }
    let mut last = (end + QUOTE_CHARS_MAX / 2).min(to);
    while !text.is_char_boundary(last) {
        last -= 1;
    }
    text[first..last].trim().to_owned()
}
