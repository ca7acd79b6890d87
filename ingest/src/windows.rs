//! What the embedder sees: each section in windows of its own, under a header of title and headings.
//!
//! The model sees 256 tokens, a chunk may hold 800: a longer section gets several windows, and its
//! similarity is its best window's. The header makes "Diagnosis" of one alert differ from the next,
//! and is a window of its own: a question is often a paraphrase of a heading.

use runbook_shared::chunk::{Chunk, Section};
use runbook_shared::limits::{SPECIAL_TOKENS, WINDOW_HEADER_TOKENS_MAX, WINDOW_TOKENS_MAX};
use runbook_shared::markdown::readable;
use runbook_shared::tokens::TokenCounter;

/// The texts to embed for one section of a chunk: its header alone first, then header and text.
#[must_use]
pub fn windows(chunk: &Chunk, section: &Section, counter: &TokenCounter) -> Vec<String> {
    let header = header(chunk, section, counter);
    let room = WINDOW_TOKENS_MAX - SPECIAL_TOKENS - counter.count(&header);
    let body = readable(chunk.section_text(section));
    let mut windows = vec![header.clone()];
    let (mut window, mut used) = (String::new(), 0);
    let mut push = |window: &mut String| {
        if !window.trim().is_empty() {
            windows.push(format!("{header}\n{}", window.trim()));
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
