//! Rules of links: to files that are not there, and to headings that are not there.
//!
//! Only what can be told from the source is told. Addresses with a scheme, links that leave the
//! repository (`../../issues`), templates, and pages without an extension, which site generators make,
//! are left alone.

use super::allow::Allowed;
use super::rule::Rule;
use super::{Findings, Page};
use crate::read::Reader;
use crate::select::EXTENSIONS;
use rustc_hash::{FxHashMap, FxHashSet};

/// Pages that a site generator makes out of documents.
const MADE: [&str; 5] = ["html", "htm", "php", "aspx", "jsp"];

/// What links can lead to.
pub(super) struct Tree<'a> {
    reader: &'a Reader,
    /// Fragments of each document whose headings are known, as [`loose`] has them.
    fragments: FxHashMap<&'a str, FxHashSet<String>>,
    /// Documents by their file name.
    names: FxHashMap<&'a str, Vec<&'a str>>,
}

impl<'a> Tree<'a> {
    pub(super) fn of(reader: &'a Reader, pages: &'a [Page<'_>]) -> Self {
        let mut names: FxHashMap<&str, Vec<&str>> = FxHashMap::default();
        for page in pages {
            names.entry(file_name(page.path())).or_default().push(page.path());
        }
        // Of a heading that a template makes nobody knows the anchor.
        let known = pages.iter().filter(|page| {
            !page.outline.headings.iter().any(|h| h.text.contains("{{") || h.text.contains("<%"))
        });
        let fragments = known.map(|page| (page.path(), fragments(page))).collect();
        Self { reader, fragments, names }
    }

    /// The path, if there is a file or directory at it.
    fn find(&self, path: Option<String>) -> Option<String> {
        path.filter(|p| self.fragments.contains_key(p.as_str()) || self.reader.exists(p))
    }
}

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// All fragments that a document has: of headings by any forge, of `{#id}`, and of HTML.
fn fragments(page: &Page<'_>) -> FxHashSet<String> {
    let of_headings = page.anchors.iter().map(|a| loose(a));
    let plain = page.outline.headings.iter().map(|h| loose(&h.text));
    let ids = page.outline.headings.iter().filter_map(|h| {
        let inner = h.raw_text.rsplit_once('{')?.1.strip_suffix('}')?;
        Some(loose(inner.trim_start_matches(':').trim().strip_prefix('#')?))
    });
    let html = page.outline.html_ids.iter().map(|id| loose(id));
    of_headings.chain(plain).chain(ids).chain(html).collect()
}

/// A fragment without what forges and generators treat differently: case, punctuation, numbers before it.
fn loose(fragment: &str) -> String {
    let fragment = fragment.strip_prefix("user-content-").unwrap_or(fragment);
    let kept: String =
        fragment.chars().flat_map(char::to_lowercase).filter(|c| c.is_alphanumeric()).collect();
    let letters = kept.trim_start_matches(|c: char| c.is_ascii_digit());
    if letters.is_empty() { kept } else { letters.to_owned() }
}

pub(super) fn check(
    page: &Page<'_>,
    tree: &Tree<'_>,
    allowed: &Allowed,
    findings: &mut Findings<'_>,
) {
    for link in &page.outline.links {
        let Some((path, fragment)) = target(&link.to) else { continue };
        let to = if path.is_empty() {
            page.path().to_owned()
        } else {
            match resolve(page.path(), &path, tree) {
                Resolved::At(path) => path,
                Resolved::Unsure => continue,
                Resolved::Nowhere(tried) => {
                    let message = dead(&link.to, &tried, tree);
                    findings.push(allowed, page.path(), link.line, Rule::DeadLink, message);
                    continue;
                }
            }
        };
        let Some(fragments) = tree.fragments.get(to.as_str()) else { continue };
        if fragment_is_alive(&fragment, fragments) {
            continue;
        }
        let message = format!(
            "`{}` leads to no heading of `{to}`: correct the part after `#`, or give the heading that name",
            shown(&link.to)
        );
        findings.push(allowed, page.path(), link.line, Rule::DeadAnchor, message);
    }
}

fn fragment_is_alive(fragment: &str, fragments: &FxHashSet<String>) -> bool {
    let is_line =
        |f: &str| f.strip_prefix('L').is_some_and(|n| n.starts_with(|c: char| c.is_ascii_digit()));
    // What pages have of themselves: lines, footnotes, tabs, text fragments, the top.
    let of_the_page = fragment.is_empty()
        || is_line(fragment)
        || ["fn", ":~:", "_", "/", "!", "?"].iter().any(|mark| fragment.starts_with(mark))
        || fragment.eq_ignore_ascii_case("top");
    of_the_page || fragments.contains(&loose(fragment))
}

fn dead(link: &str, tried: &str, tree: &Tree<'_>) -> String {
    let same_name = tree.names.get(file_name(tried)).map(Vec::as_slice);
    let fix = match same_name {
        Some([one]) => format!("`{one}` has that name"),
        Some([one, rest @ ..]) => format!("`{one}` and {} more have that name", rest.len()),
        _ => "correct or remove it".to_owned(),
    };
    format!("`{}` leads to `{tried}`, which is not there; {fix}", shown(link))
}

/// A link for a message: one line, not too long.
fn shown(link: &str) -> String {
    const CHARS_MAX: usize = 120;
    let mut out: String = link.chars().filter(|c| !c.is_control()).take(CHARS_MAX).collect();
    if link.chars().count() > CHARS_MAX {
        out.push('…');
    }
    out
}

/// Path and fragment of a link that stays in the source; none for all others.
fn target(link: &str) -> Option<(String, String)> {
    let link = link.trim();
    let is_template = link.contains(['{', '}', '<', '>', '$', '\\', '|']) || link.contains("%7B");
    let (path, fragment) = link.split_once('#').unwrap_or((link, ""));
    let path = path.split('?').next().unwrap_or("");
    let scheme = path.split('/').next().is_some_and(|first| first.contains(':'));
    if link.is_empty() || is_template || scheme || path.starts_with("//") || link.starts_with('?') {
        return None;
    }
    Some((percent_decoded(path)?, percent_decoded(fragment).unwrap_or_else(|| fragment.to_owned())))
}

fn percent_decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let hex = after.get(..2).and_then(|h| std::str::from_utf8(h).ok());
        match (first, hex.and_then(|h| u8::from_str_radix(h, 16).ok())) {
            (b'%', Some(byte)) => {
                bytes.push(byte);
                rest = &after[2..];
            }
            _ => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    String::from_utf8(bytes).ok()
}

enum Resolved {
    /// There.
    At(String),
    /// Not there, by this path.
    Nowhere(String),
    /// It cannot be told.
    Unsure,
}

fn resolve(from: &str, link: &str, tree: &Tree<'_>) -> Resolved {
    let extension = file_name(link).rsplit_once('.').map(|(_, e)| e.to_ascii_lowercase());
    let is_file = extension.as_ref().is_some_and(|e| {
        (1..=8).contains(&e.len())
            && e.bytes().all(|b| b.is_ascii_alphanumeric())
            && e.bytes().any(|b| b.is_ascii_alphabetic())
            && !MADE.contains(&e.as_str())
    });
    let dir = from.rsplit_once('/').map_or("", |(dir, _)| dir);
    if let Some(at_root) = link.strip_prefix('/') {
        // The root of a site is often another directory than that of the repository.
        let first = at_root.split('/').next().unwrap_or("");
        let is_document = EXTENSIONS.iter().any(|e| link.to_ascii_lowercase().ends_with(e));
        let path = joined("", at_root);
        return match (tree.find(path.clone()), path) {
            (Some(found), _) => Resolved::At(found),
            (None, Some(path)) if is_document && at_root != first && tree.reader.exists(first) => {
                Resolved::Nowhere(path)
            }
            _ => Resolved::Unsure,
        };
    }
    let path = joined(dir, link);
    if let Some(found) = tree.find(path.clone()) {
        return Resolved::At(found);
    }
    // A generator that shows `a/b.md` as `a/b/` counts from there.
    let stem = from.rsplit_once('.').map_or(from, |(stem, _)| stem);
    if tree.find(joined(stem, link)).is_some() {
        return Resolved::Unsure;
    }
    match path {
        Some(path) if is_file => Resolved::Nowhere(path),
        _ => Resolved::Unsure,
    }
}

/// A path beneath a directory; none where it leads out of the root.
fn joined(dir: &str, link: &str) -> Option<String> {
    let mut parts: Vec<&str> = dir.split('/').filter(|p| !p.is_empty()).collect();
    for part in link.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_that_leave_the_source_are_left_alone() {
        for link in [
            "https://h.example/a.md",
            "mailto:a@h.example",
            "//h.example/a.md",
            "{{< ref \"a.md\" >}}",
            "<%= url %>/a.md",
            "${BASE}/a.md",
            "",
        ] {
            assert!(target(link).is_none(), "{link}");
        }
        let of = |link: &str| target(link).unwrap();
        assert_eq!(of("a%20b.md#x%C3%A4"), ("a b.md".into(), "xä".into()));
        assert_eq!(of("#x"), (String::new(), "x".into()));
        assert_eq!(of("a.md?plain=1#L3"), ("a.md".into(), "L3".into()));
    }

    #[test]
    fn paths_are_joined_within_the_root() {
        assert_eq!(joined("a/b", "../c.md").as_deref(), Some("a/c.md"));
        assert_eq!(joined("a", "./b//c.md").as_deref(), Some("a/b/c.md"));
        assert_eq!(joined("a", "../../c.md"), None);
    }

    #[test]
    fn fragments_are_compared_as_forges_and_generators_make_them() {
        for (heading, link) in [
            ("2.3. Cache - Warm-Up", "cache-warm-up"),
            ("2.3. Cache - Warm-Up", "23-cache---warm-up"),
            ("Set `fs.inotify`", "set-fs-inotify"),
            ("Set `fs.inotify`", "user-content-set-fsinotify"),
            ("2024", "2024"),
        ] {
            assert_eq!(loose(heading), loose(link), "{heading}");
        }
        assert_ne!(loose("restore"), loose("restored"));
    }
}
