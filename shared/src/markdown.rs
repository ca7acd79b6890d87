//! What a reader sees of a piece of Markdown: prose and code apart, and its blocks with their ranges.
//!
//! Ingest and query both look at chunk texts this way: ingest to fill the index fields, query to
//! choose the passage. Cutting documents into chunks is ingest's own affair.

use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag, TagEnd};
use std::ops::Range;

/// The Markdown that runbooks are written in: CommonMark with GitHub's tables, footnotes,
/// strikethrough and task lists.
#[must_use]
pub fn options() -> Options {
    Options::ENABLE_TABLES
        | Options::ENABLE_FOOTNOTES
        | Options::ENABLE_STRIKETHROUGH
        | Options::ENABLE_TASKLISTS
}

/// The text of a piece of Markdown without its markup.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plain {
    /// Prose, list items and table cells, headings left out.
    pub prose: String,
    /// Code blocks and code spans.
    pub code: String,
    /// Headings, one a line.
    pub headings: String,
}

/// Strips the markup. Headings are kept apart: they are indexed in a field of their own.
#[must_use]
pub fn plain(markdown: &str) -> Plain {
    let mut out = Plain::default();
    let (mut in_code, mut in_heading) = (false, false);
    for event in Parser::new_ext(markdown, options()) {
        match event {
            Event::Start(Tag::CodeBlock(_)) => in_code = true,
            Event::End(TagEnd::CodeBlock) => in_code = false,
            Event::Start(Tag::Heading { .. }) => in_heading = true,
            Event::End(TagEnd::Heading(_)) => {
                in_heading = false;
                out.headings.push('\n');
            }
            Event::Text(text) | Event::Code(text) if in_heading => out.headings.push_str(&text),
            _ if in_heading => {}
            Event::Text(text) if in_code => out.code.push_str(&text),
            Event::Text(text) => out.prose.push_str(&text),
            Event::Code(text) => {
                out.prose.push_str(&text);
                out.code.push_str(&text);
                out.code.push('\n');
            }
            Event::Html(html) | Event::InlineHtml(html) => push_html(&html, &mut out.prose),
            Event::SoftBreak | Event::HardBreak => out.prose.push('\n'),
            Event::End(
                TagEnd::Paragraph
                | TagEnd::Item
                | TagEnd::TableRow
                | TagEnd::TableHead
                | TagEnd::TableCell
                | TagEnd::HtmlBlock,
            ) => out.prose.push('\n'),
            _ => {}
        }
    }
    out
}

/// Prose and code in the order of the text, for the embedder.
#[must_use]
pub fn readable(markdown: &str) -> String {
    let mut out = String::with_capacity(markdown.len());
    let mut in_heading = false;
    for event in Parser::new_ext(markdown, options()) {
        match event {
            Event::Start(Tag::Heading { .. }) => in_heading = true,
            Event::End(TagEnd::Heading(_)) => in_heading = false,
            _ if in_heading => {}
            Event::Text(text) | Event::Code(text) => out.push_str(&text),
            Event::Html(html) | Event::InlineHtml(html) => push_html(&html, &mut out),
            Event::SoftBreak | Event::HardBreak => out.push('\n'),
            Event::End(TagEnd::TableCell) => out.push_str(" | "),
            Event::End(
                TagEnd::Paragraph
                | TagEnd::Item
                | TagEnd::TableRow
                | TagEnd::TableHead
                | TagEnd::CodeBlock
                | TagEnd::HtmlBlock,
            ) if !out.ends_with('\n') => out.push('\n'),
            _ => {}
        }
    }
    out
}

/// The share of a text's letters and digits, headings left out, that stand in links, 0 to 1: near 1 for a
/// table of contents or a list of related pages.
#[must_use]
pub fn link_share(markdown: &str) -> f32 {
    let (mut linked, mut all, mut links, mut in_heading) = (0u32, 0u32, 0u32, false);
    for event in Parser::new_ext(markdown, options()) {
        match event {
            Event::Start(Tag::Heading { .. }) => in_heading = true,
            Event::End(TagEnd::Heading(_)) => in_heading = false,
            Event::Start(Tag::Link { .. }) => links += 1,
            Event::End(TagEnd::Link) => links = links.saturating_sub(1),
            Event::Text(text) | Event::Code(text) if !in_heading => {
                for word in text.split_whitespace() {
                    let n = word.chars().filter(|c| c.is_alphanumeric()).count();
                    let n = u32::try_from(n).unwrap_or(u32::MAX);
                    all = all.saturating_add(n);
                    if links > 0 || word.starts_with("http://") || word.starts_with("https://") {
                        linked = linked.saturating_add(n);
                    }
                }
            }
            _ => {}
        }
    }
    #[expect(clippy::cast_precision_loss, reason = "a share")]
    {
        linked as f32 / all.max(1) as f32
    }
}

/// Writes the words of a piece of HTML; a placeholder such as `<host>` counts as a word.
fn push_html(html: &str, out: &mut String) {
    let mut rest = html;
    if html.trim_start().starts_with("<!--") {
        let Some(end) = html.find("-->") else { return };
        rest = &html[end + 3..];
    }
    while let Some(open) = rest.find('<') {
        out.push_str(&rest[..open]);
        let tag_end = rest[open..].find('>').map_or(rest.len(), |at| open + at + 1);
        let tag = &rest[open + 1..tag_end];
        let name = tag.trim_end_matches('>');
        let placeholder = !name.is_empty()
            && name.chars().all(|c| c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | ' '))
            && !is_html_tag(name.split(' ').next().unwrap_or(name));
        if placeholder {
            out.push_str(name);
        } else {
            out.push(' ');
        }
        rest = &rest[tag_end..];
    }
    out.push_str(rest);
}

fn is_html_tag(name: &str) -> bool {
    const TAGS: &[&str] = &[
        "a",
        "abbr",
        "b",
        "blockquote",
        "br",
        "center",
        "code",
        "dd",
        "del",
        "details",
        "div",
        "dl",
        "dt",
        "em",
        "figure",
        "font",
        "h1",
        "h2",
        "h3",
        "h4",
        "h5",
        "h6",
        "hr",
        "i",
        "img",
        "ins",
        "kbd",
        "li",
        "ol",
        "p",
        "picture",
        "pre",
        "s",
        "small",
        "source",
        "span",
        "strong",
        "sub",
        "summary",
        "sup",
        "table",
        "tbody",
        "td",
        "th",
        "thead",
        "tr",
        "tt",
        "u",
        "ul",
        "video",
    ];
    TAGS.binary_search(&name.to_ascii_lowercase().as_str()).is_ok()
}

/// What a block of a section is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockKind {
    /// A heading.
    Heading,
    /// A paragraph.
    Paragraph,
    /// A list; `ordered` when it is numbered.
    List {
        /// Numbered.
        ordered: bool,
    },
    /// A code block.
    Code,
    /// A table.
    Table,
    /// A block quote, which is how warnings are written.
    Quote,
    /// Raw HTML.
    Html,
    /// A rule, a definition, anything else.
    Other,
}

/// A top-level block with its byte range in the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// What it is.
    pub kind: BlockKind,
    /// Where it stands.
    pub range: Range<usize>,
    /// The ranges of its items or rows, where it has some.
    pub items: Vec<Range<usize>>,
}

/// The top-level blocks of a piece of Markdown, in order.
#[must_use]
pub fn blocks(markdown: &str) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    let mut depth = 0usize;
    for (event, range) in Parser::new_ext(markdown, options()).into_offset_iter() {
        match event {
            Event::Start(tag) => {
                if depth == 0 {
                    blocks.push(Block { kind: kind_of(&tag), range, items: Vec::new() });
                } else if depth == 1
                    && matches!(tag, Tag::Item | Tag::TableRow | Tag::TableHead)
                    && let Some(block) = blocks.last_mut()
                {
                    block.items.push(range);
                }
                depth += 1;
            }
            Event::End(_) => depth = depth.saturating_sub(1),
            Event::Rule if depth == 0 => {
                blocks.push(Block { kind: BlockKind::Other, range, items: Vec::new() });
            }
            _ => {}
        }
    }
    blocks
}

fn kind_of(tag: &Tag<'_>) -> BlockKind {
    match tag {
        Tag::Heading { .. } => BlockKind::Heading,
        Tag::Paragraph => BlockKind::Paragraph,
        Tag::List(start) => BlockKind::List { ordered: start.is_some() },
        Tag::CodeBlock(CodeBlockKind::Fenced(_) | CodeBlockKind::Indented) => BlockKind::Code,
        Tag::Table(_) => BlockKind::Table,
        Tag::BlockQuote(_) => BlockKind::Quote,
        Tag::HtmlBlock => BlockKind::Html,
        _ => BlockKind::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prose_and_code_are_apart() {
        let p =
            plain("## H\n\nRun `ls` on <host>, see [docs](http://x.y/z).\n\n```sh\nrm -r x\n```\n");
        assert_eq!(p.prose, "Run ls on host, see docs.\n");
        assert_eq!(p.code, "ls\nrm -r x\n");
    }

    #[test]
    fn links_and_what_is_said_beside_them() {
        assert!(
            link_share("## See also\n\n- [Restart the queue](a.md)\n- [Drain it](b.md)\n") > 0.99
        );
        assert!(link_share("https://example.com/a\n\n<https://example.com/b>\n") > 0.99);
        let prose = "Restart it as [here](a.md) is said, and wait until it has come up again.\n";
        assert!(link_share(prose) < 0.2);
        assert_eq!((link_share(""), link_share("```sh\nls\n```\n")), (0.0, 0.0));
    }

    #[test]
    fn tags_go_and_comments_go() {
        let p = plain("<details><summary>Open me</summary>\n\n<!-- gone -->\n\nx<br>y\n");
        assert!(
            p.prose.contains("Open me") && !p.prose.contains("gone") && !p.prose.contains("br")
        );
    }

    #[test]
    fn blocks_have_ranges() {
        let text = "intro\n\n1. a\n2. b\n\n> warn\n\n| x |\n|---|\n| 1 |\n";
        let kinds: Vec<_> = blocks(text)
            .into_iter()
            .map(|b| (b.kind, text[b.range].trim_end().to_owned(), b.items.len()))
            .collect();
        assert_eq!(
            kinds,
            [
                (BlockKind::Paragraph, "intro".to_owned(), 0),
                (BlockKind::List { ordered: true }, "1. a\n2. b".to_owned(), 2),
                (BlockKind::Quote, "> warn".to_owned(), 0),
                (BlockKind::Table, "| x |\n|---|\n| 1 |".to_owned(), 2),
            ]
        );
    }
}
