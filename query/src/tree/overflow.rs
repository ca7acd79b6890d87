//! Long results: all of it goes to `/tmp/overflow`, the reply holds head and tail and says how to read on.

use super::envelope::{Envelope, Overflow};
use super::error::TreeError;
use super::router::View;

/// Where long results are kept.
pub const DIR: &str = "/tmp/overflow";

/// Cuts a long result to head and tail. `kept` is where all of it is already, if it is.
pub(super) fn bound(view: &View, envelope: &mut Envelope, kept: Option<&str>) {
    let limit = view.limits().overflow_characters.max(200);
    // As many bytes as characters at least: the common case costs nothing.
    if envelope.content.len() <= limit {
        return;
    }
    let characters = envelope.content.chars().count();
    if characters <= limit {
        return;
    }
    let all = std::mem::take(&mut envelope.content);
    let path = match kept {
        Some(path) => Ok(path.to_owned()),
        None => keep(view, all.as_bytes()),
    };
    envelope.truncated = true;
    let head = cut_head(&all, limit * 6 / 10);
    let tail = cut_tail(&all[head.len()..], limit * 3 / 10);
    let between = &all[head.len()..all.len() - tail.len()];
    let lines = all.lines().count();
    let from = head.lines().count() + usize::from(head.ends_with('\n'));
    let left = between.chars().count();
    let newline = if head.ends_with('\n') || head.is_empty() { "" } else { "\n" };
    match path {
        Ok(path) => {
            let hint = format!(
                "all of it is {path}, {lines} lines: read it with lines (`sed -n '{},{}p' {path}`), or grep it",
                from.max(1),
                from + 200
            );
            envelope.content =
                format!("{head}{newline}[... {left} characters left out; {hint} ...]\n{tail}");
            envelope.overflow = Some(Overflow {
                path,
                characters,
                lines,
                head_lines: head.lines().count(),
                tail_lines: tail.lines().count(),
                hint,
            });
        }
        Err(e) => {
            envelope.content = format!(
                "{head}{newline}[... {left} characters left out and not kept ({e}); narrow the request ...]\n{tail}"
            );
            if envelope.error.is_none() {
                envelope.error = Some((&e).into());
            }
        }
    }
}

/// Writes a long result to the session's overflow; the oldest ones make room.
fn keep(view: &View, content: &[u8]) -> Result<String, TreeError> {
    let hash = blake3::hash(content).to_hex();
    let path = format!("{DIR}/{:011}-{}", jiff::Timestamp::now().as_second(), &hash[..10]);
    loop {
        match view.write_bytes(&path, content) {
            Err(e @ TreeError::TooLarge { .. }) => {
                let oldest = view.list(DIR).ok().and_then(|e| e.into_iter().next());
                match oldest {
                    Some(entry) => view.remove(&format!("{DIR}/{}", entry.name))?,
                    None => return Err(e),
                }
            }
            result => return result.map(|()| path),
        }
    }
}

/// The longest run of whole lines from the start that fits; a part of a line when one alone does not.
fn cut_head(text: &str, characters: usize) -> &str {
    let end = text.char_indices().nth(characters).map_or(text.len(), |(at, _)| at);
    match text[..end].rfind('\n') {
        Some(line) if line * 2 > end => &text[..=line],
        _ => &text[..end],
    }
}

fn cut_tail(text: &str, characters: usize) -> &str {
    let start = text.char_indices().rev().nth(characters.max(1) - 1).map_or(0, |(at, _)| at);
    match text[start..].find('\n') {
        Some(line) if line * 2 < text.len() - start => &text[start + line + 1..],
        _ => &text[start..],
    }
}
