//! A document as the scorer of citations reads it: from the generation's own bytes, without what
//! ingest and query made of them.

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};
use std::ops::Range;

/// A top-level heading.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageHeading {
    /// 1 to 6.
    pub level: u8,
    /// Its words: lower case, nothing but letters and digits.
    pub words: String,
    /// 1-based line.
    pub line: u32,
}

/// A document.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Page {
    /// Its lines, comments blanked.
    pub lines: Vec<String>,
    /// Its headings, in order.
    pub headings: Vec<PageHeading>,
    /// Words that a passage above all headings may be named by: the front matter, the first h1.
    pub titles: Vec<String>,
}

impl Page {
    /// Reads a document from bytes.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        let text = decode(bytes).replace("\r\n", "\n").replace('\r', "\n");
        let mut reader = Reader::default();
        let options = Options::ENABLE_TABLES
            | Options::ENABLE_FOOTNOTES
            | Options::ENABLE_STRIKETHROUGH
            | Options::ENABLE_TASKLISTS;
        // Not the parser's own front matter: it takes a rule in the middle of a page for the start of one.
        let body = front_matter(&text);
        let values = text[..body].lines().filter_map(|l| l.split_once([':', '=']));
        reader.titles.extend(values.map(|(_, value)| words(value)));
        for (event, range) in Parser::new_ext(&text[body..], options).into_offset_iter() {
            reader.event(&text, event, range.start + body..range.end + body);
        }
        let first_h1 = reader.headings.iter().find(|h| h.level == 1).map(|h| h.words.clone());
        Self {
            lines: blank(&text, &reader.comments).lines().map(str::to_owned).collect(),
            titles: reader.titles.into_iter().chain(first_h1).collect(),
            headings: reader.headings,
        }
    }

    /// The lines from `from` to `to`, 1-based and inclusive; none when they are no range within it.
    #[must_use]
    pub fn text(&self, [from, to]: [u32; 2]) -> Option<String> {
        let (from, to) = (usize::try_from(from).ok()?, usize::try_from(to).ok()?);
        Some(self.lines.get(from.checked_sub(1)?..to).filter(|l| !l.is_empty())?.join("\n"))
    }

    /// The innermost heading above or at a line.
    #[must_use]
    pub fn heading_at(&self, line: u32) -> Option<&PageHeading> {
        self.headings.iter().rev().find(|h| h.line <= line)
    }
}

/// Lower case, nothing but letters and digits: what stays of a heading under any markup.
#[must_use]
pub fn words(text: &str) -> String {
    text.to_lowercase().chars().filter(|c| c.is_alphanumeric()).collect()
}

fn decode(bytes: &[u8]) -> String {
    let wide = |rest: &[u8], unit: fn([u8; 2]) -> u16| {
        let units = rest.chunks_exact(2).map(|pair| unit([pair[0], pair[1]]));
        char::decode_utf16(units).map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER)).collect()
    };
    match bytes {
        [0xFF, 0xFE, rest @ ..] => wide(rest, u16::from_le_bytes),
        [0xFE, 0xFF, rest @ ..] => wide(rest, u16::from_be_bytes),
        [0xEF, 0xBB, 0xBF, rest @ ..] => String::from_utf8_lossy(rest).into_owned(),
        _ => std::str::from_utf8(bytes)
            .map_or_else(|_| bytes.iter().map(|b| char::from(*b)).collect(), str::to_owned),
    }
}

#[derive(Default)]
struct Reader {
    headings: Vec<PageHeading>,
    titles: Vec<String>,
    comments: Vec<Range<usize>>,
    depth: usize,
    heading: Option<(u8, u32, String)>,
    html: Option<usize>,
}

impl Reader {
    fn event(&mut self, text: &str, event: Event<'_>, range: Range<usize>) {
        match event {
            Event::Start(tag) => {
                match &tag {
                    Tag::Heading { level, .. } if self.depth == 0 => {
                        self.heading =
                            Some((*level as u8, line_of(text, range.start), String::new()));
                    }
                    Tag::HtmlBlock => self.html = Some(range.start),
                    _ => {}
                }
                self.depth += 1;
            }
            Event::End(tag) => {
                self.depth = self.depth.saturating_sub(1);
                self.end(text, tag, range.end);
            }
            Event::InlineHtml(html) if html.starts_with("<!--") => self.comments.push(range),
            Event::Text(words) | Event::Code(words) => {
                if let Some((_, _, heading)) = &mut self.heading {
                    heading.push_str(&words);
                }
            }
            _ => {}
        }
    }

    fn end(&mut self, text: &str, tag: TagEnd, end: usize) {
        match tag {
            TagEnd::Heading(_) => {
                let Some((level, line, heading)) = self.heading.take() else { return };
                let words = words(without_id(&heading));
                if !words.is_empty() {
                    self.headings.push(PageHeading { level, words, line });
                }
            }
            TagEnd::HtmlBlock => {
                let Some(start) = self.html.take() else { return };
                let mut at = start;
                while let Some(open) = text[at..end].find("<!--").map(|open| at + open) {
                    at = text[open..end].find("-->").map_or(end, |close| open + close + 3);
                    self.comments.push(open..at);
                }
            }
            _ => {}
        }
    }
}

/// Where the text after YAML or TOML front matter begins; 0 when there is none.
fn front_matter(text: &str) -> usize {
    let mut lines = text.split_inclusive('\n');
    let first = lines.next().unwrap_or("");
    let mark = first.trim_end();
    if mark != "---" && mark != "+++" {
        return 0;
    }
    let mut at = first.len();
    let mut is_data = None;
    for line in lines {
        at += line.len();
        let content = line.trim_end();
        if content == mark || (mark == "---" && content == "...") {
            return at;
        }
        if !content.is_empty() && is_data.is_none() {
            is_data = Some(content.contains([':', '=']) || content.starts_with(['#', '[']));
        }
        if is_data == Some(false) {
            return 0;
        }
    }
    0
}

/// A heading's text without an id such as `{#restore}` at its end.
fn without_id(heading: &str) -> &str {
    let open = heading.trim_end().strip_suffix('}').and_then(|h| h.rfind('{'));
    open.filter(|at| heading[at + 1..].trim_start_matches(':').trim_start().starts_with('#'))
        .filter(|at| *at > 0)
        .map_or(heading, |at| &heading[..at])
}

fn line_of(text: &str, byte: usize) -> u32 {
    let before = text.as_bytes()[..byte].iter().filter(|b| **b == b'\n').count();
    u32::try_from(before + 1).unwrap_or(u32::MAX)
}

/// The text without comments, with as many lines.
fn blank(text: &str, comments: &[Range<usize>]) -> String {
    let (mut out, mut at) = (String::with_capacity(text.len()), 0);
    for comment in comments.iter().filter(|c| c.start < c.end) {
        if comment.start >= at {
            out.push_str(&text[at..comment.start]);
            out.extend(text[comment.clone()].chars().filter(|c| *c == '\n'));
            at = comment.end;
        }
    }
    out.push_str(&text[at..]);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_become_lines() {
        let page =
            Page::of(b"\xef\xbb\xbf# A\r\n\r\nx <!-- y -->z\r<!--\n# no\n-->\n```\n# no\n```\n");
        assert_eq!(page.lines, ["# A", "", "x z", "", "", "", "```", "# no", "```"]);
        assert_eq!(page.headings, [PageHeading { level: 1, words: "a".into(), line: 1 }]);
        assert_eq!(Page::of(b"\xff\xfeh\0i\0").lines, ["hi"]);
        assert_eq!(Page::of(b"gr\xfcn").lines, ["grün"]);
    }

    #[test]
    fn headings_and_titles() {
        let page =
            Page::of(b"---\ntitle: \"The Page\"\n---\n\n## `Two` {#two}\n\n- # no\n\nThree\n---\n");
        let headings: Vec<_> = page.headings.iter().map(|h| (h.words.as_str(), h.line)).collect();
        assert_eq!(headings, [("two", 5), ("three", 9)]);
        assert_eq!(page.titles, ["thepage"]);
        assert_eq!(Page::of(b"x\n\n---\n# A\n---\n").headings[0].line, 4);
        assert_eq!(page.heading_at(4), None);
        assert_eq!(page.heading_at(8).unwrap().line, 5);
        assert_eq!(page.text([9, 10]).unwrap(), "Three\n---");
        assert_eq!((page.text([0, 1]), page.text([9, 11]), page.text([5, 4])), (None, None, None));
    }
}
