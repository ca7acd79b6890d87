//! The last step of all Markdown: what is left can be looked at and nothing else.

use super::code::escaped;
use ammonia::Builder;
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

/// Elements that documents may use.
const ELEMENTS: [&str; 53] = [
    "a",
    "abbr",
    "b",
    "blockquote",
    "br",
    "caption",
    "cite",
    "code",
    "col",
    "colgroup",
    "dd",
    "del",
    "details",
    "dfn",
    "div",
    "dl",
    "dt",
    "em",
    "figcaption",
    "figure",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "hr",
    "i",
    "ins",
    "kbd",
    "li",
    "mark",
    "ol",
    "p",
    "pre",
    "q",
    "s",
    "samp",
    "small",
    "span",
    "strong",
    "sub",
    "summary",
    "sup",
    "table",
    "tbody",
    "td",
    "tfoot",
    "th",
    "thead",
    "tr",
    "u",
    "ul",
];

/// The prefix of the page's own ids, which no document may use.
const OWN_IDS: &str = "ui:";

static BUILDER: LazyLock<Builder<'static>> = LazyLock::new(|| {
    let set = |items: &[&'static str]| items.iter().copied().collect::<HashSet<_>>();
    let mut builder = Builder::empty();
    builder
        .tags(set(&ELEMENTS))
        .generic_attributes(set(&["id", "title"]))
        .tag_attributes(HashMap::from([
            ("a", set(&["href"])),
            ("details", set(&["open"])),
            ("div", set(&["tabindex"])),
            ("pre", set(&["tabindex"])),
            ("ol", set(&["start"])),
            ("td", set(&["align", "colspan", "rowspan"])),
            ("th", set(&["align", "colspan", "rowspan"])),
        ]))
        .allowed_classes(HashMap::from([
            ("a", set(&["ln", "cited"])),
            ("div", set(&["beside", "code", "code-head", "scroll", "footnote-definition"])),
            ("mark", set(&["fill"])),
            ("span", set(&["line", "danger", "cited", "lang", "ln"])),
            ("strong", set(&["warn"])),
            ("sup", set(&["footnote-reference", "footnote-definition-label"])),
        ]))
        .url_schemes(set(&["http", "https", "mailto"]))
        .link_rel(Some("noopener noreferrer nofollow"))
        .attribute_filter(|_, attribute, value| match attribute {
            "id" if value.starts_with(OWN_IDS) => None,
            "tabindex" if value != "0" => None,
            _ => Some(Cow::Borrowed(value)),
        });
    builder
});

/// Sanitises HTML.
pub(super) fn clean(html: &str) -> String {
    BUILDER.clean(html).to_string()
}

/// Elements that end by themselves: leaving them open nests nothing.
const END_ALONE: [&str; 13] =
    ["br", "hr", "col", "p", "li", "dt", "dd", "tr", "td", "th", "thead", "tbody", "tfoot"];

/// How many elements of a document are open, by name: an end of one ends no other.
#[derive(Default)]
pub(super) struct Nesting {
    open: HashMap<String, usize>,
    /// The most that were open at once.
    pub(super) deepest: usize,
}

impl Nesting {
    fn tag(&mut self, name: &str, ends: bool) {
        let open = self.open.entry(name.to_owned()).or_insert(0);
        *open = if ends { open.saturating_sub(1) } else { *open + 1 };
        self.deepest = self.deepest.max(self.open.values().sum());
    }
}

/// Writes a piece of a document's HTML: known elements as they stand, all else as text. What looks like a
/// placeholder is noted, and how deep the elements go.
pub(super) fn elements_only(
    out: &mut String,
    html: &str,
    placeholders: &mut Vec<String>,
    nesting: &mut Nesting,
) {
    let mut rest = html;
    while let Some(open) = rest.find('<') {
        out.push_str(&rest[..open]);
        rest = &rest[open..];
        if let Some(comment) = rest.strip_prefix("<!--") {
            // A comment says nothing to a reader.
            let Some(end) = comment.find("-->") else { return };
            rest = &comment[end + 3..];
            continue;
        }
        let end = rest.find('>').map_or(rest.len(), |at| at + 1);
        let tag = &rest[..end];
        let name = tag.trim_start_matches(['<', '/']);
        let name = name.split(|c: char| !c.is_ascii_alphanumeric()).next().unwrap_or("");
        let name = name.to_ascii_lowercase();
        let after = tag.trim_start_matches(['<', '/']).get(name.len()..).unwrap_or("");
        // `<a-b>` is no `<a>`, and `<host name>` is no `<host>`.
        let is_element = after.is_empty() || after.starts_with([' ', '>', '/', '\n', '\t']);
        if is_element && ELEMENTS.contains(&name.as_str()) {
            out.push_str(tag);
            if !END_ALONE.contains(&name.as_str()) {
                nesting.tag(&name, tag.starts_with("</"));
            }
        } else if is_element && ["img", "video", "picture", "source"].contains(&name.as_str()) {
            out.push_str("[picture]");
        } else {
            let whole = !tag.starts_with("</") && tag.ends_with('>') && !tag.contains('=');
            if whole && tag.len() > 2 && !tag.starts_with("<!") && !tag.starts_with("<?") {
                out.push_str(&format!("<mark class=\"fill\">{}</mark>", escaped(tag)));
                if !placeholders.iter().any(|p| p == tag) {
                    placeholders.push(tag.to_owned());
                }
            } else {
                out.push_str(&escaped(tag));
            }
        }
        rest = &rest[end..];
    }
    out.push_str(rest);
}
