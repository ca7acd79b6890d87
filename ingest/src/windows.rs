//! What the embedder sees: each section in windows of its own, under a header of title and headings.
//!
//! The model sees 256 tokens, a chunk may hold 800: a longer section gets several windows, and its
//! similarity is its best window's. The header makes "Diagnosis" of one alert differ from the next,
//! and is a window of its own: a question is often a paraphrase of a heading. The text of a window is
//! cut into spans of a few lines or sentences, which get vectors of their own from the same run.

use runbook_shared::chunk::{Chunk, Section};
use runbook_shared::limits::{
    SPAN_TOKENS_MAX, SPECIAL_TOKENS, WINDOW_HEADER_TOKENS_MAX, WINDOW_TOKENS_MAX,
};
use runbook_shared::markdown::readable;
use runbook_shared::tokens::TokenCounter;
use std::ops::Range;

/// A text to embed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Window {
    /// The header, and a line end and text of the section in all but the first window.
    pub text: String,
    /// Bytes of the spans in `text`, in order and apart from the header; none in the first window.
    pub spans: Vec<Range<usize>>,
}

/// The texts to embed for one section of a chunk: its header alone first, then header and text.
#[must_use]
pub fn windows(chunk: &Chunk, section: &Section, counter: &TokenCounter) -> Vec<Window> {
    let header = header(chunk, section, counter);
    let room = WINDOW_TOKENS_MAX - SPECIAL_TOKENS - counter.count(&header);
    let body = readable(chunk.section_text(section));
    let mut windows = vec![Window { text: header.clone(), spans: Vec::new() }];
    let (mut window, mut used) = (String::new(), 0);
    let mut push = |window: &mut String| {
        let body = window.trim();
        if !body.is_empty() {
            let text = format!("{header}\n{body}");
            let start = text.len() - body.len();
            let spans = spans(body, counter);
            let spans = spans.into_iter().map(|s| s.start + start..s.end + start).collect();
            windows.push(Window { text, spans });
        }
        window.clear();
    };
    for line in body.split_inclusive('\n') {
        let mut rest = line;
        let mut size = counter.count(rest);
        if used + size > room && used > 0 {
            push(&mut window);
            used = 0;
        }
        while size > room {
            let end = counter.prefix(rest, room);
            window.push_str(&rest[..end]);
            push(&mut window);
            rest = &rest[end..];
            size = counter.count(rest);
        }
        window.push_str(rest);
        used += size;
    }
    push(&mut window);
    windows
}

/// Cuts a text into spans of at most [`SPAN_TOKENS_MAX`] tokens: whole lines where they fit, else
/// sentences, else words. Blank lines belong to no span.
fn spans(text: &str, counter: &TokenCounter) -> Vec<Range<usize>> {
    let mut spans: Vec<Range<usize>> = Vec::new();
    let mut used = 0;
    let mut at = 0;
    for piece in text.split_inclusive('\n').flat_map(|line| sentences(line, counter)) {
        let whole = at..at + piece.len();
        at = whole.end;
        let size = counter.count(piece);
        if size == 0 {
            continue;
        }
        match spans.last_mut() {
            Some(last) if used + size <= SPAN_TOKENS_MAX => {
                last.end = whole.end;
                used += size;
            }
            _ => {
                spans.push(whole);
                used = size;
            }
        }
    }
    spans
}

/// A line, or its sentences where it is too long for a span, or their parts where those are.
fn sentences<'a>(line: &'a str, counter: &TokenCounter) -> Vec<&'a str> {
    if !counter.exceeds(line, SPAN_TOKENS_MAX) {
        return vec![line];
    }
    let mut pieces = Vec::new();
    let mut rest = line;
    while !rest.is_empty() {
        let end = rest
            .match_indices([' ', '\t'])
            .find(|(at, _)| rest[..*at].ends_with(['.', '!', '?', ';', ':', '|']))
            .map_or(rest.len(), |(at, _)| at + 1);
        let (mut sentence, after) = rest.split_at(end);
        while counter.exceeds(sentence, SPAN_TOKENS_MAX) {
            let (part, more) = sentence.split_at(counter.prefix(sentence, SPAN_TOKENS_MAX));
            pieces.push(part);
            sentence = more;
        }
        if !sentence.is_empty() {
            pieces.push(sentence);
        }
        rest = after;
    }
    pieces
}

/// Title and headings, cut to the header's share of the window.
fn header(chunk: &Chunk, section: &Section, counter: &TokenCounter) -> String {
    let mut parts = vec![chunk.title.as_str()];
    parts.extend(section.heading_path.iter().map(String::as_str).filter(|h| *h != chunk.title));
    let header = parts.join(" > ");
    if counter.count(&header) <= WINDOW_HEADER_TOKENS_MAX {
        return header;
    }
    // The innermost heading says most; it comes first where not all fits.
    let last = parts.pop().unwrap_or_default();
    let header = format!("{last} < {}", parts.join(" > "));
    header[..counter.prefix(&header, WINDOW_HEADER_TOKENS_MAX)].trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn short_lines_share_a_span_and_long_ones_are_cut_at_sentences() {
        let counter = TokenCounter::default_model();
        let text = "Stop the service.\nWait for it.\n\nThen look at the log.\n";
        let found = spans(text, &counter);
        assert_eq!((found.len(), &found[0]), (1, &(0..text.len())));
        let sentence = "The replica waits until the primary has sent the last segment of its log. ";
        let long = sentence.repeat(6);
        let found = spans(&long, &counter);
        assert!(found.len() >= 3);
        for span in &found {
            assert_eq!(long[span.clone()].len() % sentence.len(), 0, "{:?}", &long[span.clone()]);
        }
    }

    proptest! {
        #[test]
        fn spans_cover_all_that_is_not_blank(text in "[a-z .\n|`0-9é-]{0,900}") {
            let counter = TokenCounter::default_model();
            let found = spans(&text, &counter);
            let mut at = 0;
            for span in &found {
                prop_assert!(span.start >= at && span.end > span.start);
                prop_assert!(text[at..span.start].trim().is_empty());
                prop_assert!(counter.count(&text[span.clone()]) <= SPAN_TOKENS_MAX);
                at = span.end;
            }
            prop_assert!(text[at..].trim().is_empty());
        }
    }
}
