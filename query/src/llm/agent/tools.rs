//! The agent's tools over the tree: grep, read, shell and search; what they touched, and what they say.

use super::super::given;
use super::super::note::Doing;
use super::{Searched, Task};
use crate::shell;
use crate::tree::envelope::{Envelope, Source};
use crate::tree::request::{Grep, Read};
use runbook_shared::retrieval::corpus::Corpus;
use std::fmt::Write;
use std::sync::Arc;

/// Lines of a section that a search shows.
const LINES_SHOWN: usize = 12;
/// The longest input of a tool, in bytes.
const INPUT_BYTES_MAX: usize = 2000;

/// What a tool did.
pub(super) struct Used {
    /// What the model is shown.
    pub(super) text: String,
    /// `ok`, `steered` or the error's code.
    pub(super) outcome: String,
    /// Sections that were read, matched or named.
    pub(super) sections: Vec<(usize, u32)>,
    /// Whether the text of a page was read.
    pub(super) read: bool,
    /// Whether the files themselves were looked at.
    pub(super) looked: bool,
}

impl Used {
    fn failed(outcome: &str, text: String) -> Self {
        Self { text, outcome: outcome.into(), sections: Vec::new(), read: false, looked: false }
    }
}

/// Runs a tool by its name.
pub(super) fn run(task: &Task<'_>, tool: &str, input: &str) -> Used {
    let input = input.trim();
    if input.is_empty() && tool != "shell" {
        return Used::failed("bad_input", format!("{tool} needs an input"));
    }
    if input.len() > INPUT_BYTES_MAX {
        return Used::failed("bad_input", format!("input is longer than {INPUT_BYTES_MAX} bytes"));
    }
    match tool {
        "read" => {
            let (path, lines) = place(input);
            (task.told)(&Doing::Reading(path.to_owned()));
            let request =
                Read { path: path.to_owned(), lines: lines.map(str::to_owned), version: None };
            used(task.corpora, task.view.read(&request), true)
        }
        "grep" => {
            (task.told)(&Doing::Running(format!("grep {input}")));
            let request = Grep { pattern: input.to_owned(), ignore_case: true, ..Grep::default() };
            used(task.corpora, task.view.grep(&request), false)
        }
        "shell" => {
            (task.told)(&Doing::Running(input.to_owned()));
            let command = if input.is_empty() { "ls" } else { input }.to_owned();
            let request = shell::Request { command, ..shell::Request::default() };
            used(task.corpora, shell::run(task.view, &request), true)
        }
        "search" => {
            (task.told)(&Doing::Searching(input.to_owned()));
            search(task, input)
        }
        other => Used::failed(
            "no_such_tool",
            format!(
                "there is no tool `{other}`; the tools are grep, read, shell, search and answer"
            ),
        ),
    }
}

/// `path:3-40` as path and lines.
fn place(input: &str) -> (&str, Option<&str>) {
    match input.rsplit_once(':') {
        Some((path, lines))
            if !lines.is_empty() && lines.chars().all(|c| c.is_ascii_digit() || c == '-') =>
        {
            (path, Some(lines))
        }
        _ => (input, None),
    }
}

fn used(corpora: &[Arc<Corpus>], envelope: Envelope, reads: bool) -> Used {
    let mut text = envelope.content;
    if !envelope.stderr.is_empty() {
        let _ = write!(text, "\nstderr: {}", envelope.stderr.trim_end());
    }
    if let Some(error) = &envelope.error {
        let _ = write!(text, "\nerror: {} {}", error.message, error.hint);
    }
    if let Some(overflow) = &envelope.overflow {
        let _ = write!(
            text,
            "\ncut: all {} lines are in {}; {}",
            overflow.lines, overflow.path, overflow.hint
        );
    }
    if text.trim().is_empty() {
        text.push_str("(nothing)");
    }
    let outcome = envelope.error.as_ref().map_or("ok", |e| &e.code).to_owned();
    let documents = || envelope.touched.iter().filter(|s| s.document.is_some());
    let read = reads && documents().next().is_some();
    let sections = documents().flat_map(|s| sections(corpora, s)).collect();
    Used { text, outcome, sections, read, looked: true }
}

/// The sections of a place: those that its lines reach, or all of the page.
fn sections(corpora: &[Arc<Corpus>], source: &Source) -> Vec<(usize, u32)> {
    let (repo, Some(path)) = (source.repo.as_deref().unwrap_or(""), &source.document) else {
        return Vec::new();
    };
    let Some(at) = corpora.iter().position(|c| c.repo == repo) else { return Vec::new() };
    let generation = &corpora[at].generation;
    if generation.document(path).is_none() {
        return Vec::new();
    }
    let reached = |n: &u32| {
        let own = generation.section(*n).1.lines;
        source.lines.is_none_or(|[from, to]| own[0] <= to && from <= own[1])
    };
    generation.scope(path).filter(reached).map(|n| (at, n)).collect()
}

fn search(task: &Task<'_>, question: &str) -> Used {
    let found = match (task.search)(question) {
        Searched::Found(found) => found,
        Searched::Steered(note) => return Used::failed("steered", note),
        Searched::Failed(e) => return Used::failed("failed", e),
    };
    let mut used = Used::failed("ok", String::new());
    for citation in &found {
        let Some((corpus, number)) = given::section_of(task.corpora, citation) else { continue };
        let _ = writeln!(
            used.text,
            "/runbooks/{} (heading: {}, lines {}-{})",
            citation.path, citation.heading, citation.lines[0], citation.lines[1]
        );
        for (n, line) in given::numbered(&task.corpora[corpus], number).iter().take(LINES_SHOWN) {
            let _ = writeln!(used.text, "{n}: {line}");
        }
        used.sections.push((corpus, number));
    }
    if used.text.is_empty() {
        used.text.push_str("(no section)");
    }
    used
}

/// The first lines of a result in at most this many bytes, and how much is missing.
pub(super) fn clipped(text: &str, bytes: usize) -> String {
    if text.len() <= bytes {
        return text.to_owned();
    }
    let mut end = bytes;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let end = text[..end].rfind('\n').unwrap_or(end);
    let (left, rest) = (text[end..].lines().count(), text.len() - end);
    // What the result says of where all of it is stands at its end.
    let pointer = text.lines().last().filter(|l| l.starts_with("cut: ")).unwrap_or("");
    format!(
        "{}\n({left} more lines, {rest} bytes, are left out here; ask for less, or read a part by path:FROM-TO)\n{pointer}",
        &text[..end]
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inputs_and_long_results() {
        assert_eq!(place("a/b.md:3-40"), ("a/b.md", Some("3-40")));
        assert_eq!(place("a/b.md"), ("a/b.md", None));
        assert_eq!(place("a:b.md"), ("a:b.md", None));
        let text = format!("{}cut: all 100 lines are in /tmp/overflow/1", "line ä\n".repeat(100));
        let clip = clipped(&text, 50);
        assert!(clip.len() < 260 && clip.contains("are left out here"), "{clip}");
        assert!(clip.ends_with("/tmp/overflow/1"), "{clip}");
    }
}
