//! The outline of a document: front matter, headings, blocks, comments and definitions, with lines.
//!
//! Everything comes from pulldown-cmark's event stream with offsets, never from a scan of lines: a
//! `#` in a fence, a comment or a quote is no heading. The text must have LF line ends and no BOM.

use pulldown_cmark::{CodeBlockKind, Event, LinkType, Parser, Tag, TagEnd};
use runbook_shared::limits::HEADING_BYTES_MAX;
use runbook_shared::markdown;
use rustc_hash::FxHashMap;
use std::ops::Range;

/// A heading that structures the document; those in quotes and lists do not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutlineHeading {
    /// 1 to 6.
    pub level: u8,
    /// Plain text without a trailing `{#id}`.
    pub text: String,
    /// Plain text as it stands, for anchors of forges that render `{#id}` as text.
    pub raw_text: String,
    /// First line, 1-based.
    pub line: u32,
    /// Last line: a setext heading has at least two.
    pub end_line: u32,
}

/// Kinds of blocks, as far as cutting them differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeKind {
    /// A fenced code block; never cut without repeating its fence.
    Fence,
    /// A table; cut between rows with its header repeated.
    Table,
    /// A list, an item, a quote: cut between what is within.
    Container,
    /// HTML: cut between lines with its opening tag repeated.
    Html,
    /// A paragraph, indented code: cut between lines.
    Leaf,
}

/// A block with its lines, in document order; children follow their parent.
#[derive(Clone, Debug)]
pub struct Node {
    /// How it is cut.
    pub kind: NodeKind,
    /// First line, 1-based.
    pub from: u32,
    /// Last line that is not blank.
    pub to: u32,
    /// Nesting: 0 at the top.
    pub depth: u32,
}

/// A link or footnote definition.
#[derive(Clone, Debug)]
pub struct Definition {
    /// First line, 1-based.
    pub from: u32,
    /// Last line.
    pub to: u32,
}

/// A fence that is never closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnclosedFence {
    /// The line of the opening fence.
    pub line: u32,
}

/// Where a link or an image leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// Its line, 1-based.
    pub line: u32,
    /// Its destination as written.
    pub to: String,
}

/// What a document is made of.
#[derive(Debug, Default)]
pub struct Outline {
    /// The front matter's `title`.
    pub front_title: Option<String>,
    /// The first line after the front matter, 1-based.
    pub body_line: u32,
    /// Headings in order.
    pub headings: Vec<OutlineHeading>,
    /// Blocks in order.
    pub nodes: Vec<Node>,
    /// Byte ranges of HTML comments.
    pub comments: Vec<Range<usize>>,
    /// Definitions by label.
    pub definitions: FxHashMap<String, Definition>,
    /// Where labels are used: line and label.
    pub uses: Vec<(u32, String)>,
    /// Fences without an end.
    pub unclosed: Vec<UnclosedFence>,
    /// Links and images in order, less addresses in angle brackets.
    pub links: Vec<Link>,
    /// `id` and `name` of HTML tags: fragments that links may lead to.
    pub html_ids: Vec<String>,
    line_starts: Vec<usize>,
}

impl Outline {
    /// Reads the outline of a text with LF line ends.
    #[must_use]
    pub fn of(text: &str) -> Self {
        let mut outline = Self { line_starts: line_starts(text), ..Self::default() };
        let front = front_matter(text);
        outline.front_title =
            front.as_ref().and_then(|f| front_title(&text[f.clone()])).map(shortened);
        let body = front.map_or(0, |f| f.end);
        outline.body_line = outline.line_of(body);
        outline.read_events(text, body);
        outline
    }

    /// The 1-based line of a byte.
    #[must_use]
    pub fn line_of(&self, byte: usize) -> u32 {
        u32::try_from(self.line_starts.partition_point(|s| *s <= byte)).unwrap_or(u32::MAX).max(1)
    }

    fn lines_of(&self, text: &str, range: &Range<usize>) -> (u32, u32) {
        let from = self.line_of(range.start);
        let end = range.start + text[range.clone()].trim_end().len();
        (from, self.line_of(end.saturating_sub(1).max(range.start)).max(from))
    }

    fn read_events(&mut self, text: &str, body: usize) {
        let parser = Parser::new_ext(&text[body..], markdown::options());
        for (label, definition) in parser.reference_definitions().iter() {
            let (from, to) = self.lines_of(text, &shift(&definition.span, body));
            self.definitions.insert(label.to_lowercase(), Definition { from, to });
        }
        let mut reader = Reader { outline: self, text, depth: 0, heading: None, html: None };
        for (event, range) in parser.into_offset_iter() {
            reader.event(event, shift(&range, body));
        }
    }
}

fn shift(range: &Range<usize>, by: usize) -> Range<usize> {
    range.start + by..range.end + by
}

/// A heading that is being read.
struct OpenHeading {
    level: u8,
    range: Range<usize>,
    text: String,
}

struct Reader<'a> {
    outline: &'a mut Outline,
    text: &'a str,
    depth: u32,
    heading: Option<OpenHeading>,
    html: Option<Range<usize>>,
}

impl Reader<'_> {
    fn event(&mut self, event: Event<'_>, range: Range<usize>) {
        match event {
            Event::Start(tag) => self.start(&tag, range),
            Event::End(tag) => self.end(tag),
            Event::Text(text) | Event::Code(text) => self.heading_text(&text),
            Event::SoftBreak | Event::HardBreak => self.heading_text(" "),
            Event::InlineHtml(html) if html.starts_with("<!--") => {
                self.outline.comments.push(range);
            }
            Event::InlineHtml(html) | Event::Html(html) => {
                push_ids(&html, &mut self.outline.html_ids);
            }
            Event::FootnoteReference(label) => {
                let line = self.outline.line_of(range.start);
                self.outline.uses.push((line, footnote_key(&label)));
            }
            _ => {}
        }
    }

    fn start(&mut self, tag: &Tag<'_>, range: Range<usize>) {
        let kind = match tag {
            Tag::Heading { level, .. } if self.depth == 0 => {
                self.heading = Some(OpenHeading {
                    level: *level as u8,
                    range: range.clone(),
                    text: String::new(),
                });
                NodeKind::Leaf
            }
            Tag::CodeBlock(CodeBlockKind::Fenced(_)) => {
                self.check_closed(&range);
                NodeKind::Fence
            }
            Tag::Table(_) => NodeKind::Table,
            Tag::List(_) | Tag::Item | Tag::BlockQuote(_) => NodeKind::Container,
            Tag::FootnoteDefinition(label) => {
                let (from, to) = self.outline.lines_of(self.text, &range);
                self.outline.definitions.insert(footnote_key(label), Definition { from, to });
                NodeKind::Leaf
            }
            Tag::HtmlBlock => {
                self.html = Some(range.clone());
                NodeKind::Html
            }
            Tag::Link { link_type, dest_url, id, .. }
            | Tag::Image { link_type, dest_url, id, .. } => {
                let line = self.outline.line_of(range.start);
                if !id.is_empty() {
                    self.outline.uses.push((line, id.to_lowercase()));
                }
                if !matches!(link_type, LinkType::Autolink | LinkType::Email) {
                    self.outline.links.push(Link { line, to: dest_url.to_string() });
                }
                return;
            }
            Tag::Paragraph | Tag::CodeBlock(_) | Tag::Heading { .. } => NodeKind::Leaf,
            _ => return,
        };
        let (from, to) = self.outline.lines_of(self.text, &range);
        self.outline.nodes.push(Node { kind, from, to, depth: self.depth });
        self.depth += 1;
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Heading(_) => self.close_heading(),
            TagEnd::HtmlBlock => {
                if let Some(range) = self.html.take() {
                    push_comments(self.text, &range, &mut self.outline.comments);
                }
            }
            TagEnd::CodeBlock
            | TagEnd::Table
            | TagEnd::List(_)
            | TagEnd::Item
            | TagEnd::BlockQuote(_)
            | TagEnd::FootnoteDefinition
            | TagEnd::Paragraph => {}
            _ => return,
        }
        self.depth = self.depth.saturating_sub(1);
    }

    fn heading_text(&mut self, text: &str) {
        if let Some(heading) = &mut self.heading {
            heading.text.push_str(text);
        }
    }

    fn close_heading(&mut self) {
        let Some(open) = self.heading.take() else { return };
        let raw_text = open.text.split_whitespace().collect::<Vec<_>>().join(" ");
        let raw_text = without_closing(raw_text, &self.text[open.range.clone()]);
        let raw_text = shortened(raw_text);
        if raw_text.is_empty() {
            return; // `##` alone: nothing to cite; its text belongs to the section around it.
        }
        let (line, end_line) = self.outline.lines_of(self.text, &open.range);
        let text = strip_id(&raw_text).to_owned();
        self.outline.headings.push(OutlineHeading {
            level: open.level,
            text,
            raw_text,
            line,
            end_line,
        });
    }

    fn check_closed(&mut self, range: &Range<usize>) {
        let block = self.text[range.clone()].trim_end();
        let opener = block.trim_start();
        let Some(mark) = opener.chars().next() else { return };
        let width = opener.chars().take_while(|c| *c == mark).count();
        let last = block.lines().next_back().unwrap_or("");
        let closing = last.trim_start_matches(|c: char| c.is_whitespace() || c == '>');
        let closed = block.lines().nth(1).is_some()
            && closing.chars().all(|c| c == mark)
            && closing.chars().count() >= width;
        if !closed {
            let line = self.outline.line_of(range.start);
            self.outline.unclosed.push(UnclosedFence { line });
        }
    }
}

/// A heading or title without what is over [`HEADING_BYTES_MAX`].
fn shortened(mut text: String) -> String {
    text.truncate(text.floor_char_boundary(HEADING_BYTES_MAX));
    text
}

/// Takes the closing `##` of a heading off where a tab follows it, which pulldown-cmark takes for text.
fn without_closing(text: String, source: &str) -> String {
    let source = source.trim_end_matches('\n');
    let line = source.trim_end_matches([' ', '\t']);
    if !source.starts_with('#') || source.contains('\n') || !source[line.len()..].contains('\t') {
        return text;
    }
    let before = line.trim_end_matches('#');
    let marks = line.len() - before.len();
    if marks == 0 || !before.ends_with([' ', '\t']) {
        return text;
    }
    match text.strip_suffix(&"#".repeat(marks)) {
        Some(rest) if rest.is_empty() || rest.ends_with(' ') => rest.trim_end().to_owned(),
        _ => text,
    }
}

fn footnote_key(label: &str) -> String {
    format!("^{}", label.to_lowercase())
}

/// `Restore {#restore}` and `Restore {: #restore}` are `Restore`.
fn strip_id(text: &str) -> &str {
    let Some(open) = text.rfind('{') else { return text };
    let inner = text[open..].strip_prefix('{').and_then(|t| t.strip_suffix('}'));
    let is_id = inner.is_some_and(|t| {
        let t = t.strip_prefix(':').unwrap_or(t).trim();
        t.strip_prefix('#').is_some_and(|id| !id.is_empty() && !id.contains(['{', '}']))
    });
    if is_id && open > 0 { text[..open].trim_end() } else { text }
}

fn push_comments(text: &str, block: &Range<usize>, comments: &mut Vec<Range<usize>>) {
    let mut at = block.start;
    while let Some(open) = text[at..block.end].find("<!--") {
        let start = at + open;
        let end = text[start..block.end].find("-->").map_or(block.end, |close| start + close + 3);
        comments.push(start..end);
        at = end;
    }
}

/// The values of `id=` and `name=` in HTML, in double or single quotes.
fn push_ids(html: &str, ids: &mut Vec<String>) {
    for key in ["id=", "name="] {
        for (at, _) in html.match_indices(key) {
            let before = html[..at].chars().next_back();
            let rest = &html[at + key.len()..];
            let quote = rest.chars().next().filter(|c| matches!(c, '"' | '\''));
            if let (Some(' ' | '\t' | '\n'), Some(quote)) = (before, quote)
                && let Some((id, _)) = rest[1..].split_once(quote)
            {
                ids.push(id.to_owned());
            }
        }
    }
}

fn line_starts(text: &str) -> Vec<usize> {
    std::iter::once(0).chain(memchr_lines(text)).collect()
}

fn memchr_lines(text: &str) -> impl Iterator<Item = usize> + '_ {
    text.bytes().enumerate().filter(|(_, b)| *b == b'\n').map(|(at, _)| at + 1)
}

/// The byte range of YAML (`---`) or TOML (`+++`) front matter at the very start, marks included.
///
/// A rule at the top of a page is no front matter: the first line within must look like a key, a
/// comment or the end.
fn front_matter(text: &str) -> Option<Range<usize>> {
    let mut lines = text.split_inclusive('\n');
    let first = lines.next()?;
    let mark = first.trim_end();
    if mark != "---" && mark != "+++" {
        return None;
    }
    let mut at = first.len();
    let mut looked = false;
    for line in lines {
        let content = line.trim_end();
        at += line.len();
        if content == mark || (mark == "---" && content == "...") {
            return Some(0..at);
        }
        if !looked && !content.is_empty() {
            looked = true;
            let key = content.split([':', '=']).next().unwrap_or("").trim();
            let is_key = content.len() > key.len()
                && !key.is_empty()
                && key
                    .chars()
                    .all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '"' | '\''));
            if !is_key && !content.starts_with('#') && !content.starts_with('[') {
                return None;
            }
        }
    }
    None
}

fn front_title(front: &str) -> Option<String> {
    let mut lines = front.lines();
    while let Some(line) = lines.next() {
        let Some(rest) = line.strip_prefix("title").map(str::trim_start) else { continue };
        let Some(value) = rest.strip_prefix([':', '=']).map(str::trim) else { continue };
        let value = match value {
            "" | ">" | "|" | ">-" | "|-" => lines.next().unwrap_or("").trim(),
            _ => value,
        };
        let title = unquote(value).split_whitespace().collect::<Vec<_>>().join(" ");
        return (!title.is_empty()).then_some(title);
    }
    None
}

fn unquote(value: &str) -> String {
    for quote in ['"', '\''] {
        if let Some(inner) = value.strip_prefix(quote).and_then(|v| v.split_once(quote)) {
            return inner.0.to_owned();
        }
    }
    value.split(" #").next().unwrap_or(value).trim().to_owned()
}
