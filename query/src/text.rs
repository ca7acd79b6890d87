//! The reply for a terminal: 80 columns, code as it is, sources numbered, no colour.

use crate::llm::note::{Note, Outcome};
use crate::passage::command;
use crate::reply::{Band, Citation, Reply};
use std::fmt::Write as _;
use unicode_width::UnicodeWidthStr;

/// Columns of the text.
pub const COLUMNS: usize = 80;

/// Renders a reply.
#[must_use]
pub fn render(reply: &Reply) -> String {
    let mut out = String::new();
    match &reply.refusal {
        None => answer(reply, &mut out),
        Some(refusal) => {
            let _ = writeln!(out, "{}", reply.answer);
            out.push('\n');
            wrap(&refusal.message, "", &mut out);
            if !refusal.nearest.is_empty() {
                out.push_str("\nnearest sections:\n");
            }
            for (n, near) in (1..).zip(&refusal.nearest) {
                place(n, &near.path, &near.heading, near.lines, near.url.as_deref(), &mut out);
                if reply.band == Band::Closest {
                    for line in near.preview.lines() {
                        let _ = writeln!(out, "      {}", cut(line, COLUMNS - 6));
                    }
                }
            }
            let names: Vec<String> = refusal.searched.iter().map(|s| s.heading.clone()).collect();
            if !names.is_empty() {
                out.push('\n');
                wrap(&format!("searched: {}", names.join("; ")), "  ", &mut out);
            }
        }
    }
    out.push('\n');
    wrap(&footer(reply), "", &mut out);
    out
}

fn answer(reply: &Reply, out: &mut String) {
    let mut in_code = None;
    for line in reply.answer.lines() {
        let trimmed = line.trim_start();
        let fence = ["```", "~~~"].into_iter().find(|f| trimmed.starts_with(f));
        let is_plain = in_code.is_none()
            && fence.is_none()
            && !trimmed.starts_with('|')
            && !line.starts_with("    ");
        match (in_code, fence) {
            (None, Some(mark)) => in_code = Some(mark),
            (Some(open), Some(mark)) if open == mark => in_code = None,
            _ => {}
        }
        if is_plain {
            let indent: String = line.chars().take_while(|c| c.is_whitespace()).collect();
            let marker = ["- ", "* ", "> "].iter().any(|m| trimmed.starts_with(m));
            let hang = format!(
                "{indent}{}",
                if trimmed.starts_with("> ") {
                    "> "
                } else if marker {
                    "  "
                } else {
                    ""
                }
            );
            let escape = if imitates(trimmed) { "\\" } else { "" };
            wrap_line(&format!("{indent}{escape}{trimmed}"), &hang, out);
        } else {
            let _ = writeln!(out, "{line}");
        }
    }
    out.push_str("\nsources:\n");
    for (n, citation) in (1..).zip(&reply.citations) {
        source(n, citation, out);
    }
    if !reply.related.is_empty() {
        out.push_str("\nsee also:\n");
        for (n, citation) in (reply.citations.len() + 1..).zip(&reply.related) {
            source(n, citation, out);
        }
    }
}

/// Whether a line of a passage looks like one of ours: it is shown with a backslash before it.
fn imitates(line: &str) -> bool {
    let numbered = line.strip_prefix('[').and_then(|rest| rest.split_once(']'));
    let numbered = numbered.is_some_and(|(n, after)| {
        n.bytes().all(|b| b.is_ascii_digit()) && !n.is_empty() && after.starts_with(' ')
    });
    let marks = ["sources:", "see also:", "nearest sections:"];
    numbered
        || marks.contains(&line.trim_end())
        || (line.starts_with("confidence ") && line.contains(", indexed "))
}

fn source(n: usize, citation: &Citation, out: &mut String) {
    place(n, &citation.path, &citation.heading, citation.lines, citation.url.as_deref(), out);
}

fn place(
    n: usize,
    path: &str,
    heading: &str,
    lines: [u32; 2],
    url: Option<&str>,
    out: &mut String,
) {
    let text = format!("[{n}] {path}:{}-{} {}", lines[0], lines[1], cut(heading, 120));
    wrap_line(&format!("  {text}"), "      ", out);
    if let Some(url) = url {
        let _ = writeln!(out, "      {url}");
    }
}

fn footer(reply: &Reply) -> String {
    let p = &reply.provenance;
    let commit = p.commit.as_deref().map_or("no commit", |c| &c[..c.len().min(10)]);
    let mut text = format!(
        "confidence {:.2}, indexed {} at {commit}",
        reply.confidence,
        p.indexed_at.as_deref().unwrap_or("never")
    );
    if let Some(checked) = &p.source_checked_at {
        let _ = write!(text, ", source checked {checked}");
    }
    let by_model = reply.llm.as_ref().filter(|n| n.outcome == Outcome::Degraded);
    if let Some(note) = by_model {
        let _ = write!(text, "; degraded: {}", note.message);
    } else if p.degraded {
        text.push_str("; degraded: only words were searched, not their meaning");
    }
    let changed =
        |n: &&Note| matches!(n.outcome, Outcome::Phrased | Outcome::Lifted | Outcome::Withdrawn);
    if let Some(note) = reply.llm.as_ref().filter(changed) {
        let _ = write!(text, "; {}", note.message);
    }
    if let Some(pin) = &p.pinned {
        let _ = write!(text, "\npinned {}; newer runbooks are not shown", pin.story());
    }
    text
}

/// The code of the answer alone.
#[must_use]
pub fn command_only(reply: &Reply) -> Option<String> {
    if reply.refusal.is_some() {
        return None;
    }
    command(&reply.answer).map(|c| c + "\n")
}

/// The link of the first citation.
#[must_use]
pub fn link_only(reply: &Reply) -> Option<String> {
    reply.citations.first().and_then(|c| c.url.clone()).map(|u| u + "\n")
}

fn wrap(text: &str, hang: &str, out: &mut String) {
    for line in text.lines() {
        wrap_line(line, hang, out);
    }
}

fn wrap_line(line: &str, hang: &str, out: &mut String) {
    if line.width() <= COLUMNS {
        out.push_str(line.trim_end());
        out.push('\n');
        return;
    }
    let indent: String = line.chars().take_while(|c| c.is_whitespace()).collect();
    let marked = continuation(line, &indent);
    let hang = if marked.is_empty() { hang } else { &marked };
    let mut row = indent.clone();
    let mut empty = true;
    for word in line.split_whitespace() {
        if !empty && row.width() + 1 + word.width() > COLUMNS {
            out.push_str(row.trim_end());
            out.push('\n');
            hang.clone_into(&mut row);
            empty = true;
        }
        if !empty {
            row.push(' ');
        }
        row.push_str(word);
        empty = false;
    }
    out.push_str(row.trim_end());
    out.push('\n');
}

/// What stands before the further rows of a list item or a quote, so that they stay in it: as many
/// blanks as the marker is wide, or the quote's own mark.
fn continuation(line: &str, indent: &str) -> String {
    let text = &line[indent.len()..];
    if text.starts_with('>') {
        let mark: String = text.chars().take_while(|c| matches!(c, '>' | ' ')).collect();
        return format!("{indent}{mark}");
    }
    let marker = text.split(' ').next().unwrap_or("");
    let number = marker.trim_end_matches(['.', ')']);
    let numbered = number.len() < marker.len()
        && !number.is_empty()
        && number.bytes().all(|b| b.is_ascii_digit());
    if numbered || matches!(marker, "-" | "*" | "+") {
        let gap = text[marker.len()..].chars().take_while(|c| *c == ' ').count();
        return format!("{indent}{}", " ".repeat(marker.width() + gap));
    }
    indent.to_owned()
}

/// Cuts to a width, with an ellipsis.
fn cut(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let mut out = String::new();
    for c in text.chars() {
        if out.width() + 2 > width {
            break;
        }
        out.push(c);
    }
    out.push('…');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn further_rows_stay_in_their_item_or_quote() {
        let words = "word ".repeat(20);
        for (mark, hang) in [
            ("10. ", "    "),
            ("- ", "  "),
            ("> ", "> "),
            ("  3) ", "     "),
            ("", ""),
            ("   ", "   "),
        ] {
            let mut out = String::new();
            wrap(&format!("{mark}{words}"), "", &mut out);
            let rows: Vec<&str> = out.lines().collect();
            assert!(rows.len() > 1 && rows.iter().all(|r| r.width() <= COLUMNS), "{out}");
            assert!(
                rows[1..].iter().all(|r| r.starts_with(&format!("{hang}word"))),
                "{mark:?}\n{out}"
            );
        }
    }
}
