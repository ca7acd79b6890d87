//! Single lines: comments blanked, fences, tags and the marks of quotes read and made.

use crate::outline::Outline;

/// The lines with HTML comments blanked.
pub(super) fn visible_lines(text: &str, outline: &Outline) -> Vec<String> {
    let mut visible = String::with_capacity(text.len());
    let mut at = 0;
    for comment in &outline.comments {
        if comment.start < at {
            continue;
        }
        visible.push_str(&text[at..comment.start]);
        visible.extend(text[comment.clone()].chars().filter(|c| *c == '\n'));
        let line = visible.rfind('\n').map_or(0, |at| at + 1);
        let begins = visible[line..].chars().all(|c| c.is_whitespace() || c == '>');
        if begins && reads_otherwise(&text[comment.end..]) {
            visible.push_str(EMPTY_COMMENT);
        }
        at = comment.end;
    }
    visible.push_str(&text[at..]);
    visible.lines().map(str::to_owned).collect()
}

/// Stands for a comment without which the text after it would be read otherwise.
const EMPTY_COMMENT: &str = "<!---->";

/// True for text that is none of a heading and of a fence only because a comment stands before it in
/// its line, or that a line of `=` or `-` below it would make a heading.
fn reads_otherwise(after: &str) -> bool {
    let mut lines = after.lines().map(str::trim);
    let line = lines.next().unwrap_or("");
    let hashes = line.bytes().take_while(|b| *b == b'#').count();
    let is_heading =
        (1..=6).contains(&hashes) && line[hashes..].chars().next().is_none_or(char::is_whitespace);
    let is_rule = |line: &str, mark: char| !line.is_empty() && line.chars().all(|c| c == mark);
    let underlines = |line: &str| is_rule(line, '=') || is_rule(line, '-');
    let is_underlined = !line.is_empty() && lines.next().is_some_and(underlines);
    is_heading
        || line.starts_with("```")
        || line.starts_with("~~~")
        || underlines(line)
        || is_underlined
}

/// The line with which a block of HTML begins, a list marker before it as so many spaces, and its
/// closing tag in lower case; none where it does not begin with a tag.
pub(super) fn html_tags(line: &str) -> Option<(String, String)> {
    let at = line.find('<')?;
    let tag = &line[at..];
    let name_end = tag[1..].find(|c: char| !c.is_ascii_alphanumeric() && c != '-')? + 1;
    let name = tag.get(1..name_end).filter(|name| !name.is_empty())?;
    let closer = format!("</{}>", name.to_ascii_lowercase());
    Some((format!("{}{tag}", lead(&line[..at])), closer))
}

/// The marks of so many quotes at the beginning of a line, with the blanks around them.
pub(super) fn quote_marks(line: &str, quotes: usize) -> &str {
    let mut end = 0;
    for _ in 0..quotes {
        let rest = line[end..].trim_start();
        if !rest.starts_with('>') {
            break;
        }
        end = line.len() - rest.len() + 1;
    }
    &line[..end + usize::from(end > 0 && line[end..].starts_with(' '))]
}

/// True for what fences are made of.
pub(super) fn is_fence_mark(c: char) -> bool {
    matches!(c, '`' | '~')
}

/// The closing line of a fence, and whether the document has it.
pub(super) fn closing_fence(opener: &str, last: &str, more_than_one_line: bool) -> (String, bool) {
    let strip =
        |line: &str| line.trim_start_matches(|c: char| c.is_whitespace() || c == '>').to_owned();
    let fence = fence_only(opener);
    let marks: String = strip(&fence).chars().take_while(|c| is_fence_mark(*c)).collect();
    let last_marks = strip(last).trim_end().to_owned();
    let closed = more_than_one_line
        && last_marks.len() >= marks.len().max(3)
        && marks.chars().next().is_some_and(|m| last_marks.chars().all(|c| c == m));
    if closed {
        return (last.to_owned(), true);
    }
    let indent: String = fence.chars().take_while(|c| c.is_whitespace() || *c == '>').collect();
    (format!("{indent}{marks}"), false)
}

/// The opening line of a fence; a list marker before it becomes as many spaces.
pub(super) fn fence_only(opener: &str) -> String {
    let at = opener.find("```").or_else(|| opener.find("~~~")).unwrap_or(0);
    format!("{}{}", lead(&opener[..at]), &opener[at..])
}

/// What stands before a block in its line, a list marker as so many spaces.
fn lead(before: &str) -> String {
    before.chars().map(|c| if c.is_whitespace() || c == '>' { c } else { ' ' }).collect()
}
