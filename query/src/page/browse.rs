//! The tree: one directory a page, with its directories and documents.

use super::layout::{self, Entry, Page};
use super::links;
use maud::{Markup, html};
use runbook_shared::chunk::DocumentRecord;
use runbook_shared::retrieval::corpus::Corpus;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Documents and directories that one page names.
const ENTRIES_MAX: usize = 2000;

/// The address of a directory.
#[must_use]
pub fn address(repo: Option<&str>, dir: &str) -> String {
    let query = repo.map_or_else(String::new, |r| format!("?repo={}", links::encode_value(r)));
    if dir.is_empty() {
        return format!("/browse{query}");
    }
    format!("/browse/{}{query}", links::encode_path(dir))
}

/// The repositories, where there are several.
#[must_use]
pub fn repositories(corpora: &[Arc<Corpus>]) -> Markup {
    let page =
        Page { title: "Browse", open: Some(Entry::Browse), kind: "narrow", ..Page::default() };
    layout::render(
        &page,
        &html! {
            h1 { "Repositories" }
            ul.tree {
                @for corpus in corpora {
                    li {
                        a href=(address(Some(&corpus.repo), "")) { (corpus.repo) "/" }
                        span.muted {
                            (layout::counted(corpus.generation.manifest.counts.indexed, "runbook"))
                        }
                    }
                }
            }
        },
    )
}

/// A directory; none when no document lies beneath it.
#[must_use]
pub fn directory(corpus: &Corpus, several: bool, dir: &str) -> Option<Markup> {
    let prefix = if dir.is_empty() { String::new() } else { format!("{dir}/") };
    let mut directories: BTreeMap<&str, u64> = BTreeMap::new();
    let mut documents: Vec<(&str, &DocumentRecord)> = Vec::new();
    for document in &corpus.generation.documents {
        let Some(rest) = document.path.strip_prefix(&prefix) else { continue };
        match rest.split_once('/') {
            Some((name, _)) => *directories.entry(name).or_insert(0) += 1,
            None => documents.push((rest, document)),
        }
    }
    if directories.is_empty() && documents.is_empty() && !dir.is_empty() {
        return None;
    }
    let repo = several.then_some(corpus.repo.as_str());
    let name = dir.rsplit('/').next().filter(|n| !n.is_empty()).unwrap_or("Runbooks");
    let page = Page { title: name, open: Some(Entry::Browse), kind: "narrow", ..Page::default() };
    let total = directories.len() + documents.len();
    Some(layout::render(
        &page,
        &html! {
            nav.trail aria-label="Place" { (trail(repo, dir)) }
            h1 { (name) }
            @if total == 0 { p.muted { "No document is indexed." } }
            ul.tree {
                @for (name, count) in directories.iter().take(ENTRIES_MAX) {
                    li {
                        a href=(address(repo, &format!("{prefix}{name}"))) { (name) "/" }
                        span.muted { (layout::counted(*count, "runbook")) }
                    }
                }
                @for (name, document) in documents.iter().take(ENTRIES_MAX) {
                    li {
                        a href=(links::reader(repo, &document.path)) { (document.title) }
                        span.muted { (name) }
                    }
                }
            }
            @if total > ENTRIES_MAX {
                p.muted { "The first " (ENTRIES_MAX) " of each are shown; ask for what is not here." }
            }
        },
    ))
}

fn trail(repo: Option<&str>, dir: &str) -> Markup {
    let mut so_far = String::new();
    let parts: Vec<(&str, String)> = dir
        .split('/')
        .filter(|p| !p.is_empty())
        .map(|part| {
            if !so_far.is_empty() {
                so_far.push('/');
            }
            so_far.push_str(part);
            (part, address(repo, &so_far))
        })
        .collect();
    html! {
        a href=(address(repo, "")) { (repo.unwrap_or("Runbooks")) }
        @for (name, href) in &parts { span.sep aria-hidden="true" { " › " } a href=(href) { (name) } }
    }
}
