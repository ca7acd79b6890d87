//! Markdown of documents to HTML that cannot do anything: parsed, its code blocks and links made
//! anew, then sanitised as a whole.
//!
//! `<host>` in prose is a placeholder and not a tag: what is no HTML element is shown as it stands.
//! Pictures become links, since nothing may be loaded from elsewhere.

mod code;
mod numbers;
mod sanitise;

use super::links::{self, Place};
use numbers::Numbers;
use pulldown_cmark::{CodeBlockKind, CowStr, Event, HeadingLevel, Parser, Tag, TagEnd, html};
use runbook_shared::chunk::Heading;
use runbook_shared::markdown::options;
use std::ops::Range;

/// What a piece of Markdown became.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rendered {
    /// Sanitised HTML.
    pub html: String,
    /// Placeholders of its code, each once.
    pub placeholders: Vec<String>,
    /// Lines of its code blocks that cannot be undone.
    pub destructive: usize,
}

/// How a whole document is shown.
pub struct Whole<'a> {
    /// Its headings, for their anchors.
    pub headings: &'a [Heading],
    /// The lines to mark.
    pub cited: Option<[u32; 2]>,
}

/// Renders a passage.
#[must_use]
pub fn passage(text: &str, place: Option<Place<'_>>) -> Rendered {
    Renderer::new(text, place, None).run()
}

/// Renders a line of a preview: the marks of its block go, what is within the line stays.
#[must_use]
pub fn line(text: &str) -> String {
    let bare = text.trim_start_matches(['>', '#', ' ', '\t']);
    if let Some(row) = bare.strip_prefix('|') {
        let cells: Vec<&str> =
            row.trim_end().trim_end_matches('|').split('|').map(str::trim).collect();
        return line(&cells.join(" · "));
    }
    // A text before it, so that nothing starts a block.
    let html = passage(&format!("\u{2060}{bare}"), None).html;
    let html = html.trim().strip_prefix("<p>").and_then(|h| h.strip_suffix("</p>"));
    html.map_or_else(|| code::escaped(bare), |h| h.trim_start_matches('\u{2060}').to_owned())
}

/// Renders a document with anchors, line numbers and marked lines.
#[must_use]
pub fn document(text: &str, place: Option<Place<'_>>, whole: &Whole<'_>) -> Rendered {
    let (text, front) = without_front_matter(text);
    let mut rendered = Renderer::new(&text, place, Some(whole)).run();
    if let Some(front) = front {
        let mut out = String::from("<details><summary>Front matter</summary>");
        code::block(&mut out, &front, "yaml", None, &mut Rendered::default());
        out.push_str("</details>");
        rendered.html.insert_str(0, &sanitise::clean(&out));
    }
    rendered
}

/// A document without its front matter, which is blanked so that lines keep their numbers.
fn without_front_matter(text: &str) -> (String, Option<String>) {
    let whole = (text.to_owned(), None);
    let Some(rest) = text.strip_prefix("---\n") else { return whole };
    let Some(end) = ["\n---\n", "\n...\n"].iter().filter_map(|e| rest.find(e)).min() else {
        return whole;
    };
    let front = rest[..end].to_owned();
    // A rule, then text: no `key: value` in it.
    if !front.lines().any(|l| l.contains(':')) {
        return whole;
    }
    let lines = front.lines().count() + 2;
    let body = text.split_inclusive('\n').skip(lines).collect::<String>();
    (format!("{}{body}", "\n".repeat(lines)), Some(front))
}

/// The level of the outermost heading of a text, 1 without any.
fn outermost(text: &str) -> usize {
    let levels = Parser::new_ext(text, options()).filter_map(|event| match event {
        Event::Start(Tag::Heading { level, .. }) => Some(level as usize),
        _ => None,
    });
    levels.min().unwrap_or(1)
}

/// Blocks and elements within one another beyond this many levels are shown as text: an HTML parser takes
/// the square of their number.
const DEPTH_MAX: usize = 200;

struct Renderer<'a> {
    text: &'a str,
    place: Option<Place<'a>>,
    whole: Option<&'a Whole<'a>>,
    numbers: Option<Numbers>,
    out: Rendered,
    events: Vec<Event<'a>>,
    depth: usize,
    in_image: Option<(String, String)>,
    links: Vec<bool>,
    /// The level of the outermost heading.
    outermost: usize,
    /// Which of the document's headings is open.
    heading: Option<usize>,
    /// The document's own elements.
    nesting: sanitise::Nesting,
    /// The most blocks that were open at once.
    deepest: usize,
}

impl<'a> Renderer<'a> {
    fn new(text: &'a str, place: Option<Place<'a>>, whole: Option<&'a Whole<'a>>) -> Self {
        Self {
            text,
            place,
            whole,
            numbers: whole.map(|w| Numbers::new(text, w.cited)),
            out: Rendered::default(),
            events: Vec::new(),
            depth: 0,
            in_image: None,
            links: Vec::new(),
            outermost: if whole.is_some() { 1 } else { outermost(text) },
            heading: None,
            nesting: sanitise::Nesting::default(),
            deepest: 0,
        }
    }

    fn run(mut self) -> Rendered {
        let mut events = Parser::new_ext(self.text, options()).into_offset_iter();
        while let Some((event, range)) = events.next() {
            if let Event::Start(Tag::CodeBlock(kind)) = &event {
                let language = match kind {
                    CodeBlockKind::Fenced(info) => info.split([' ', ',', '{']).next().unwrap_or(""),
                    CodeBlockKind::Indented => "",
                };
                let language = language.to_owned();
                let mut code = String::new();
                let mut start = None;
                for (event, range) in events.by_ref() {
                    match event {
                        Event::Text(text) => {
                            start.get_or_insert(range.start);
                            code.push_str(&text);
                        }
                        Event::End(TagEnd::CodeBlock) => break,
                        _ => {}
                    }
                }
                self.code_block(&code, &language, start.unwrap_or(range.start), &range);
                continue;
            }
            if let Event::Start(Tag::HtmlBlock) = &event {
                // As a whole: a comment or a tag may go over several lines.
                let mut block = String::new();
                for (event, _) in events.by_ref() {
                    match event {
                        Event::Html(html) | Event::Text(html) => block.push_str(&html),
                        Event::End(TagEnd::HtmlBlock) => break,
                        _ => {}
                    }
                }
                if self.depth == 0 {
                    self.marker(&range, false);
                }
                self.foreign(&block);
                continue;
            }
            self.event(event, range);
        }
        if self.deepest + self.nesting.deepest > DEPTH_MAX {
            let text = code::escaped(self.text);
            let html = sanitise::clean(&format!("<pre tabindex=\"0\">{text}</pre>"));
            return Rendered { html, ..self.out };
        }
        let mut raw = String::with_capacity(self.text.len() * 2);
        html::push_html(&mut raw, self.events.into_iter());
        Rendered { html: sanitise::clean(&raw), ..self.out }
    }

    fn raw(&mut self, html: String) {
        self.events.push(Event::InlineHtml(CowStr::from(html)));
    }

    fn code_block(&mut self, code: &str, language: &str, start: usize, range: &Range<usize>) {
        let first = self.numbers.as_ref().map(|n| (n.line(start), n.cited()));
        if self.depth == 0 {
            self.marker(range, false);
        }
        let mut html = String::new();
        code::block(&mut html, code, language, first, &mut self.out);
        self.events.push(Event::Html(CowStr::from(html)));
    }

    /// The number of a block's first line, in the margin.
    fn marker(&mut self, range: &Range<usize>, first_line_only: bool) {
        if let Some(numbers) = &mut self.numbers {
            let marker = numbers.marker(range, first_line_only);
            self.raw(marker);
        }
    }

    fn event(&mut self, event: Event<'a>, range: Range<usize>) {
        if let Some((_, alt)) = &mut self.in_image {
            match event {
                Event::Text(text) | Event::Code(text) => alt.push_str(&text),
                Event::End(TagEnd::Image) => self.image(),
                _ => {}
            }
            return;
        }
        match event {
            Event::Start(tag) => self.start(tag, range),
            Event::End(tag) => self.end(tag),
            Event::Code(code) => {
                let mut html = String::from("<code>");
                code::marked(&mut html, &code, &mut self.out.placeholders);
                html.push_str("</code>");
                self.raw(html);
            }
            Event::InlineHtml(html) | Event::Html(html) => self.foreign(&html),
            Event::TaskListMarker(done) => {
                self.events.push(Event::Text(CowStr::from(if done { "☑ " } else { "☐ " })));
            }
            Event::Rule => {
                self.marker(&range, false);
                self.events.push(Event::Rule);
            }
            event => self.events.push(event),
        }
    }

    fn start(&mut self, tag: Tag<'a>, range: Range<usize>) {
        let top = self.depth == 0;
        match tag {
            Tag::Heading { level, .. } => {
                if top {
                    self.marker(&range, false);
                }
                self.heading(level, &range);
            }
            Tag::Link { dest_url, .. } => {
                let target = links::target(self.place, &dest_url);
                self.links.push(target.is_some());
                if let Some(target) = target {
                    self.raw(format!("<a href=\"{}\">", code::escaped(&target)));
                }
            }
            Tag::Image { dest_url, .. } => {
                self.in_image = Some((dest_url.into_string(), String::new()));
                return;
            }
            Tag::Item => {
                self.events.push(Event::Start(Tag::Item));
                self.marker(&range, true);
            }
            Tag::Table(_) => {
                if top {
                    self.marker(&range, false);
                }
                self.raw("<div class=\"scroll\" tabindex=\"0\">".into());
                self.events.push(Event::Start(tag));
            }
            tag => {
                if top && !matches!(tag, Tag::List(_) | Tag::FootnoteDefinition(_)) {
                    self.marker(&range, false);
                }
                self.events.push(Event::Start(tag));
            }
        }
        self.depth += 1;
        self.deepest = self.deepest.max(self.depth);
    }

    fn end(&mut self, tag: TagEnd) {
        self.depth = self.depth.saturating_sub(1);
        match tag {
            TagEnd::Link => {
                if self.links.pop() == Some(true) {
                    self.raw("</a>".into());
                }
            }
            TagEnd::Heading(level) => {
                let level = self.level(level);
                self.raw(format!("</h{level}>\n"));
                if let Some(at) = self.heading.take().filter(|_| self.depth == 0) {
                    self.beside(at);
                }
            }
            TagEnd::Table => {
                self.events.push(Event::End(tag));
                self.raw("</div>".into());
            }
            tag => self.events.push(Event::End(tag)),
        }
    }

    /// Below the page's own heading; of a passage the outermost heading stands right below it.
    fn level(&self, level: HeadingLevel) -> usize {
        (level as usize + 2).saturating_sub(self.outermost).clamp(2, 6)
    }

    fn heading(&mut self, level: HeadingLevel, range: &Range<usize>) {
        let line = self.numbers.as_ref().map(|n| n.line(range.start));
        let headings = self.whole.map_or(&[][..], |w| w.headings);
        self.heading = headings.iter().position(|h| Some(h.line) == line && !h.anchor.is_empty());
        let anchor = self.heading.map(|at| headings[at].anchor.as_str());
        let id = anchor.map_or_else(String::new, |a| format!(" id=\"{}\"", code::escaped(a)));
        let level = self.level(level);
        self.raw(format!("<h{level}{id}>"));
    }

    /// Links to the sections before and after a heading. The style shows them only where the address
    /// names that heading, which the server is not told.
    fn beside(&mut self, at: usize) {
        let headings = self.whole.map_or(&[][..], |w| w.headings);
        let with_anchor = |h: &&Heading| !h.anchor.is_empty();
        let before = headings[..at].iter().rev().find(with_anchor);
        let after = headings[at + 1..].iter().find(with_anchor);
        let link = |heading: Option<&Heading>, what: &str| {
            heading.map_or_else(String::new, |h| {
                let to = links::encode_value(&h.anchor);
                format!(
                    "<a href=\"#{to}\"><small>{what} section: </small>{}</a>",
                    code::escaped(&h.text)
                )
            })
        };
        let (before, after) = (link(before, "Previous"), link(after, "Next"));
        if !before.is_empty() || !after.is_empty() {
            self.raw(format!("<div class=\"beside\">{before}{after}</div>\n"));
        }
    }

    /// A picture as a link to it.
    fn image(&mut self) {
        let Some((url, alt)) = self.in_image.take() else { return };
        let alt = if alt.trim().is_empty() { "without a description" } else { alt.trim() };
        let name = format!("[picture: {}]", code::escaped(alt));
        let linked = !self.links.contains(&true);
        match links::target(self.place, &url).filter(|_| linked) {
            Some(url) => self.raw(format!("<a href=\"{}\">{name}</a>", code::escaped(&url))),
            None => self.raw(name),
        }
    }

    /// HTML of the document: elements go on to the sanitiser, all else is text.
    fn foreign(&mut self, html: &str) {
        let mut out = String::new();
        let placeholders = &mut self.out.placeholders;
        sanitise::elements_only(&mut out, html, placeholders, &mut self.nesting);
        self.raw(out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn html(text: &str) -> String {
        passage(text, None).html
    }

    #[test]
    fn code_is_marked_line_by_line() {
        let rendered = passage("```sh\nssh <host>\nrm -rf $DIR\n```\n\nUse `-U $DB`.\n", None);
        assert_eq!(rendered.placeholders, ["<host>", "$DIR", "$DB"]);
        assert_eq!(rendered.destructive, 1);
        assert!(rendered.html.contains("<mark class=\"fill\">&lt;host&gt;</mark>"), "{rendered:?}");
        assert!(rendered.html.contains("class=\"line danger\""), "{rendered:?}");
    }

    #[test]
    fn a_placeholder_in_prose_stays() {
        let rendered = passage("Log in to <host> as <your name>.\n", None);
        assert!(
            rendered.html.contains("&lt;host&gt;") && rendered.html.contains("&lt;your name&gt;")
        );
        assert!(html("a<br>b <b>c</b>").contains("<b>c</b>"));
    }

    #[test]
    fn a_preview_is_one_line_without_marks() {
        assert_eq!(line("> **Warning:** use `x`"), "<strong>Warning:</strong> use <code>x</code>");
        assert_eq!(line("| a | `b` |"), "a · <code>b</code>");
        assert_eq!(line("1. Do it"), "1. Do it");
        assert_eq!(
            line("<script>alert(1)</script>"),
            "<mark class=\"fill\">&lt;script&gt;</mark>alert(1)&lt;/script&gt;"
        );
    }

    #[test]
    fn pictures_and_checks_are_text() {
        let out = html("![A map](https://x.example/m.png)\n\n- [x] done\n");
        assert!(!out.contains("<img") && !out.contains("<input"), "{out}");
        assert!(out.contains("picture: A map") && out.contains("☑ done"), "{out}");
    }

    #[test]
    fn a_document_has_anchors_lines_and_marks() {
        let text = "---\ntitle: x\n---\n# One\n\ntext\n\n## Two\n\n- a\n- b\n";
        let heading = |level, text: &str, anchor: &str, line| Heading {
            level,
            text: text.into(),
            anchor: anchor.into(),
            line,
        };
        let headings = [heading(1, "One", "one", 4), heading(2, "Two", "two", 8)];
        let whole = Whole { headings: &headings, cited: Some([11, 11]) };
        let out = document(text, None, &whole).html;
        assert!(
            out.contains("<h2 id=\"one\">One</h2>") && out.contains("<h3 id=\"two\">"),
            "{out}"
        );
        let beside: Vec<&str> = out.split("<div class=\"beside\">").skip(1).collect();
        assert!(beside.len() == 2 && beside[0].starts_with("<a href=\"#two\""), "{out}");
        assert!(beside[1].starts_with("<a href=\"#one\"") && !beside[1].contains("Next"), "{out}");
        assert!(out.contains("id=\"L10\"") && out.contains("Front matter"), "{out}");
        assert_eq!(out.matches("cited\"").count(), 1, "{out}");
        assert!(out.contains("id=\"cited-lines\""), "{out}");
    }

    #[test]
    fn what_is_nested_without_end_is_text_and_soon_done() {
        let started = std::time::Instant::now();
        for piece in [
            "<div>",
            "> ",
            "<b><i>",
            "<a href=x>",
            "[",
            "*a ",
            "- ",
            "<table><tr><td>",
            "<p><b>",
            "<div></b>",
        ] {
            let out = html(&format!("{}x", piece.repeat(50_000)));
            assert!(out.contains('x'), "{piece}");
        }
        assert!(html(&"<div>".repeat(1000)).starts_with("<pre"));
        let closed_first = "</div>".repeat(1000) + &"<div>".repeat(1000);
        assert!(html(&closed_first).starts_with("<pre"));
        assert!(html(&"<p>x\n\n".repeat(1000)).starts_with("<p>"), "open paragraphs nest nothing");
        assert!(started.elapsed().as_secs() < 30, "{:?}", started.elapsed());
    }

    #[test]
    fn headings_of_a_passage_stand_below_the_pages_own() {
        assert!(html("# A\n\n###### B\n").contains("<h2>A</h2>"));
        assert!(html("### A\n\n#### B\n").contains("<h2>A</h2>\n<h3>B</h3>"));
    }
}
