//! The reader: a whole document as it was indexed, with anchors, line numbers and the cited lines
//! marked; rendered, or as its source.

use super::layout::{self, Entry, Page};
use super::links::{self, Place};
use super::markdown::{self, Whole};
use super::words;
use crate::forge_link;
use maud::{Markup, PreEscaped, html};
use runbook_shared::chunk::{DocumentRecord, Heading};
use runbook_shared::retrieval::corpus::Corpus;

/// What to show of a document.
pub struct View<'a> {
    /// Its repository.
    pub corpus: &'a Corpus,
    /// Whether several are served.
    pub several: bool,
    /// The document.
    pub document: &'a DocumentRecord,
    /// Its text, with LF line ends.
    pub text: &'a str,
    /// The lines to mark.
    pub cited: Option<[u32; 2]>,
    /// As its source.
    pub source: bool,
}

/// Lines from a query such as `3-9` or `3`.
#[must_use]
pub fn parse_lines(text: &str) -> Option<[u32; 2]> {
    let (from, to) = text.split_once('-').unwrap_or((text, text));
    let (from, to) = (from.parse().ok()?, to.parse().ok()?);
    (from > 0 && from <= to).then_some([from, to])
}

/// The page of a document.
#[must_use]
pub fn page(view: &View<'_>) -> Markup {
    let document = view.document;
    let page = Page {
        title: &document.title,
        open: Some(Entry::Browse),
        kind: "wide reader",
        ..Page::default()
    };
    layout::render(
        &page,
        &html! {
            (head(view))
            div.columns {
                (outline(view))
                div.body {
                    @if view.source { (source(view)) } @else { (rendered(view)) }
                    (neighbours(view))
                }
            }
        },
    )
}

fn repo<'a>(view: &View<'a>) -> Option<&'a str> {
    view.several.then_some(view.corpus.repo.as_str())
}

fn with_lines(view: &View<'_>, source: bool) -> String {
    let mut query = Vec::new();
    if let Some(repo) = repo(view) {
        query.push(format!("repo={}", links::encode_value(repo)));
    }
    if let Some([from, to]) = view.cited {
        query.push(format!("lines={from}-{to}"));
    }
    if source {
        query.push("view=source".into());
    }
    let query = if query.is_empty() { String::new() } else { format!("?{}", query.join("&")) };
    format!("{}{query}", links::reader(None, &view.document.path))
}

fn head(view: &View<'_>) -> Markup {
    let manifest = &view.corpus.generation.manifest;
    let path = &view.document.path;
    let mut so_far = String::new();
    let parts: Vec<(String, String)> = path
        .rsplit_once('/')
        .map(|(dirs, _)| dirs.split('/'))
        .into_iter()
        .flatten()
        .map(|dir| {
            so_far = if so_far.is_empty() { dir.to_owned() } else { format!("{so_far}/{dir}") };
            (dir.to_owned(), super::browse::address(repo(view), &so_far))
        })
        .collect();
    let forge = manifest.forge.as_ref().zip(manifest.commit.as_ref()).map(|(forge, commit)| {
        let raw = view.document.raw_path.as_deref();
        let lines = view.cited.unwrap_or([1, 1]);
        forge_link::link(forge, commit, raw.unwrap_or(path), raw.is_some(), "", lines)
    });
    html! {
        nav.trail aria-label="Place" {
            a href=(super::browse::address(repo(view), "")) { (repo(view).unwrap_or("Runbooks")) }
            @for (name, href) in &parts { span.sep aria-hidden="true" { " › " } a href=(href) { (name) } }
        }
        h1.path { (path.rsplit('/').next().unwrap_or(path)) }
        p.muted {
            (layout::counted(u64::from(view.document.lines), "line"))
            @if let Some(seconds) = words::seconds_since(&manifest.indexed_at) {
                ", indexed " (words::ago(seconds))
            }
            @if let Some(commit) = &manifest.commit { " at " code { (words::short(commit)) } }
            " · "
            @if view.source {
                a href=(with_lines(view, false)) { "Rendered" }
            } @else {
                a href=(with_lines(view, true)) { "Source" }
            }
            @if let Some(url) = &forge {
                " · " a href=(url) rel="noopener noreferrer" { "In the repository" }
            }
            @if view.cited.is_some() { " · " a href="#cited-lines" { "Go to the cited lines" } }
        }
    }
}

fn heading_href(view: &View<'_>, heading: &Heading) -> String {
    if view.source || heading.anchor.is_empty() {
        return format!("#L{}", heading.line);
    }
    format!("#{}", links::encode_value(&heading.anchor))
}

fn outline(view: &View<'_>) -> Markup {
    let headings = &view.document.headings;
    html! {
        @if headings.len() > 1 {
            nav.outline aria-label="Sections" {
                details open {
                    summary { "Sections" }
                    ul {
                        @for heading in headings {
                            li class=(format!("h{}", heading.level.min(4))) {
                                a href=(heading_href(view, heading)) { (heading.text) }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn rendered(view: &View<'_>) -> Markup {
    let place = Place { corpus: view.corpus, path: &view.document.path, several: view.several };
    let whole = Whole { headings: &view.document.headings, cited: view.cited };
    let rendered = markdown::document(view.text, Some(place), &whole);
    html! { article.card.document { (PreEscaped(rendered.html)) } }
}

/// The source line by line; a list, so that a reader by ear hears the numbers.
fn source(view: &View<'_>) -> Markup {
    let cited = |n: u32| view.cited.is_some_and(|[from, to]| (from..=to).contains(&n));
    let first = view.cited.map(|c| c[0]);
    html! {
        div.card.source tabindex="0" role="region" aria-label="Source" {
            table {
                tbody {
                    @for (n, line) in (1u32..).zip(view.text.lines()) {
                        tr class=[cited(n).then_some("cited")] {
                            th scope="row" {
                                @if first == Some(n) { span id="cited-lines" {} }
                                a id=(format!("L{n}")) href=(format!("#L{n}")) { (n) }
                            }
                            td { code { (line) } }
                        }
                    }
                }
            }
        }
    }
}

/// The sections before and after the cited lines, and the documents before and after this one.
fn neighbours(view: &View<'_>) -> Markup {
    let headings = &view.document.headings;
    let at = view.cited.map(|[from, _]| headings.partition_point(|h| h.line <= from));
    let before = at.and_then(|at| at.checked_sub(2)).and_then(|n| headings.get(n));
    let after = at.and_then(|at| headings.get(at));
    let documents = &view.corpus.generation.documents;
    let here = documents.iter().position(|d| d.path == view.document.path);
    let previous = here.and_then(|n| n.checked_sub(1)).and_then(|n| documents.get(n));
    let next = here.and_then(|n| documents.get(n + 1));
    html! {
        nav.neighbours aria-label="Next and previous" {
            @if let Some(h) = before {
                a href=(heading_href(view, h)) { span.muted { "Previous section" } (h.text) }
            }
            @if let Some(h) = after {
                a href=(heading_href(view, h)) { span.muted { "Next section" } (h.text) }
            }
            @if let Some(d) = previous {
                a rel="prev" href=(links::reader(repo(view), &d.path)) { span.muted { "Previous runbook" } (d.title) }
            }
            @if let Some(d) = next {
                a rel="next" href=(links::reader(repo(view), &d.path)) { span.muted { "Next runbook" } (d.title) }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_a_range_or_nothing() {
        assert_eq!(parse_lines("3-9"), Some([3, 9]));
        assert_eq!(parse_lines("4"), Some([4, 4]));
        for bad in ["", "0", "9-3", "a-b", "1-2-3", "-1", "99999999999"] {
            assert_eq!(parse_lines(bad), None, "{bad}");
        }
    }
}
