//! Code as HTML: line by line, with placeholders and destructive lines marked.

use super::Rendered;
use crate::page::command;

/// Text with the characters of markup escaped, for content and for attributes in double quotes.
pub(super) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}

/// Writes a text with its placeholders marked, and notes each once.
pub(super) fn marked(out: &mut String, text: &str, placeholders: &mut Vec<String>) {
    mark(out, text, &command::placeholders(text), 0, placeholders);
}

fn mark(
    out: &mut String,
    text: &str,
    ranges: &[std::ops::Range<usize>],
    offset: usize,
    placeholders: &mut Vec<String>,
) {
    let mut at = 0;
    for range in ranges {
        let (Some(start), Some(end)) =
            (range.start.checked_sub(offset), range.end.checked_sub(offset))
        else {
            continue;
        };
        let Some(name) = text.get(start..end).filter(|_| start >= at) else { continue };
        out.push_str(&escaped(&text[at..start]));
        out.push_str(&format!("<mark class=\"fill\">{}</mark>", escaped(name)));
        if !placeholders.iter().any(|p| p == name) {
            placeholders.push(name.to_owned());
        }
        at = end;
    }
    out.push_str(&escaped(&text[at..]));
}

/// Languages in which `<x>` and `$X` are syntax, and nothing is run.
const NO_COMMANDS: [&str; 8] = ["xml", "html", "svg", "vue", "jsx", "tsx", "mermaid", "diff"];

/// Writes a code block. `numbered` is the line of its first line in the document, with the lines that are
/// cited.
pub(super) fn block(
    out: &mut String,
    code: &str,
    language: &str,
    numbered: Option<(u32, Option<[u32; 2]>)>,
    found: &mut Rendered,
) {
    let code = code.trim_end_matches('\n');
    let plain = NO_COMMANDS.contains(&language.to_ascii_lowercase().as_str());
    let ranges = if plain { Vec::new() } else { command::placeholders(code) };
    let mut body = String::new();
    let mut destructive = Vec::new();
    let mut offset = 0;
    for (n, line) in (0u32..).zip(code.split('\n')) {
        let danger = !plain && command::is_destructive(line);
        if danger {
            destructive.push(n + 1);
        }
        let number = numbered.map(|(first, _)| first + n);
        let cited = numbered
            .and_then(|(first, cited)| cited.map(|[from, to]| (from..=to).contains(&(first + n))))
            .unwrap_or(false);
        let class = match (danger, cited) {
            (true, true) => "line danger cited",
            (true, false) => "line danger",
            (false, true) => "line cited",
            (false, false) => "line",
        };
        let id = number.map_or_else(String::new, |n| format!(" id=\"C{n}\""));
        body.push_str(&format!("<span class=\"{class}\"{id}>"));
        let within: Vec<_> = ranges
            .iter()
            .filter(|r| r.start >= offset && r.end <= offset + line.len())
            .cloned()
            .collect();
        mark(&mut body, line, &within, offset, &mut found.placeholders);
        body.push_str("\n</span>");
        offset += line.len() + 1;
    }
    found.destructive += destructive.len();
    out.push_str("<div class=\"code\"><div class=\"code-head\">");
    if !language.is_empty() {
        out.push_str(&format!("<span class=\"lang\">{}</span>", escaped(language)));
    }
    if !destructive.is_empty() {
        let lines: Vec<String> = destructive.iter().map(u32::to_string).collect();
        let word = if lines.len() == 1 { "line" } else { "lines" };
        out.push_str(&format!(
            "<strong class=\"warn\">⚠ {word} {} cannot be undone</strong>",
            lines.join(", ")
        ));
    }
    out.push_str(&format!("</div><pre tabindex=\"0\"><code>{body}</code></pre></div>\n"));
}
