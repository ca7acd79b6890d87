//! What an agent should know before it starts: what is served, as instructions and as a compact index.

use crate::snapshot::Snapshot;
use runbook_shared::chunk::DocumentRecord;
use runbook_shared::retrieval::corpus::Corpus;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;

/// The largest index, in bytes: it goes into an instructions file that every session reads.
pub const INDEX_BYTES_MAX: usize = 8 * 1024;
/// Directories that the instructions name.
const DIRECTORIES_NAMED: usize = 12;

/// One way to write the tree down.
type Form = fn(&[Arc<Corpus>]) -> String;

/// The tree in at most [`INDEX_BYTES_MAX`] bytes: every page with its title where that fits, else the
/// pages' names by directory, else the directories with the number of their pages.
#[must_use]
pub fn index(snapshot: &Snapshot) -> String {
    let corpora = snapshot.corpora();
    let mut text = String::new();
    for form in [titled, named, counted, counted_at_top] as [Form; 4] {
        text = format!("{}{}", head(snapshot), form(&corpora));
        if text.len() <= INDEX_BYTES_MAX {
            return text;
        }
    }
    const REST: &str = "(more; list /runbooks shows all)\n";
    let mut end = INDEX_BYTES_MAX - REST.len();
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let end = text[..end].rfind('\n').map_or(end, |at| at + 1);
    text.truncate(end);
    text.push_str(REST);
    text
}

/// What is served, in a few lines; also where nothing is.
#[must_use]
pub fn head(snapshot: &Snapshot) -> String {
    let mut out = String::new();
    for state in &snapshot.repos {
        let mount = mount(snapshot, &state.repo.name);
        match &state.corpus {
            Some(corpus) => {
                let manifest = &corpus.generation.manifest;
                let n = corpus.generation.documents.len();
                let at = manifest
                    .commit
                    .as_deref()
                    .map_or(String::new(), |c| format!(" at commit {}", c.get(..12).unwrap_or(c)));
                let _ = writeln!(
                    out,
                    "{mount}: {n} document{}{at}, indexed {}",
                    if n == 1 { "" } else { "s" },
                    manifest.indexed_at
                );
            }
            None => {
                let _ = writeln!(out, "{mount}: nothing is indexed yet");
            }
        }
    }
    out
}

/// The largest directories, for instructions: `database (12), monitoring (8)`.
#[must_use]
pub fn directories(snapshot: &Snapshot) -> String {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    let corpora = snapshot.corpora();
    for document in corpora.iter().flat_map(|c| &c.generation.documents) {
        let top = document.path.split_once('/').map_or(".", |(top, _)| top);
        *counts.entry(top).or_default() += 1;
    }
    let mut counts: Vec<(&str, usize)> = counts.into_iter().collect();
    counts.sort_by_key(|(name, n)| (std::cmp::Reverse(*n), *name));
    let more = counts.len().saturating_sub(DIRECTORIES_NAMED);
    let mut named: Vec<String> =
        counts.iter().take(DIRECTORIES_NAMED).map(|(name, n)| format!("{name} ({n})")).collect();
    if more > 0 {
        named.push(format!("{more} more"));
    }
    named.join(", ")
}

/// Where a repository's documents stand in the tree.
#[must_use]
pub fn mount(snapshot: &Snapshot, repo: &str) -> String {
    let first = snapshot.repos.first().is_none_or(|r| r.repo.name == repo);
    if first { "/runbooks".to_owned() } else { format!("/repo/{repo}") }
}

fn by_directory(corpus: &Corpus) -> BTreeMap<&str, Vec<&DocumentRecord>> {
    let mut map: BTreeMap<&str, Vec<&DocumentRecord>> = BTreeMap::new();
    for document in &corpus.generation.documents {
        let directory = document.path.rsplit_once('/').map_or("", |(d, _)| d);
        map.entry(directory).or_default().push(document);
    }
    map
}

fn place(corpora: &[Arc<Corpus>], corpus: &Corpus, directory: &str) -> String {
    let repo = if corpora.len() > 1 { format!("{}:", corpus.repo) } else { String::new() };
    let directory = if directory.is_empty() { "." } else { directory };
    format!("{repo}{directory}/")
}

fn name(document: &DocumentRecord) -> &str {
    document.path.rsplit('/').next().unwrap_or(&document.path)
}

fn titled(corpora: &[Arc<Corpus>]) -> String {
    let mut out = String::new();
    for corpus in corpora {
        for (directory, documents) in by_directory(corpus) {
            let _ = writeln!(out, "{}", place(corpora, corpus, directory));
            for document in documents {
                let title = document.title.split_whitespace().collect::<Vec<_>>().join(" ");
                let _ = writeln!(out, "  {} - {title}", name(document));
            }
        }
    }
    out
}

fn named(corpora: &[Arc<Corpus>]) -> String {
    let mut out = String::new();
    for corpus in corpora {
        for (directory, documents) in by_directory(corpus) {
            let names: Vec<&str> = documents.iter().map(|d| name(d)).collect();
            let _ = writeln!(out, "{} {}", place(corpora, corpus, directory), names.join(" "));
        }
    }
    out
}

fn counted(corpora: &[Arc<Corpus>]) -> String {
    let mut out = String::new();
    for corpus in corpora {
        for (directory, documents) in by_directory(corpus) {
            let _ = writeln!(out, "{} {}", place(corpora, corpus, directory), documents.len());
        }
    }
    out
}

fn counted_at_top(corpora: &[Arc<Corpus>]) -> String {
    let mut out = String::new();
    for corpus in corpora {
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for document in &corpus.generation.documents {
            let top = document.path.split_once('/').map_or("", |(top, _)| top);
            *counts.entry(top).or_default() += 1;
        }
        for (directory, n) in counts {
            let _ = writeln!(out, "{} {n}", place(corpora, corpus, directory));
        }
    }
    out
}
