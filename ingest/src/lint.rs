//! `runbook-ingest lint`: what keeps runbooks from being found, cited or trusted, told to their writers.
//!
//! It reads documents as ingest does, with the same outline, anchors and chunks, so what it says is what
//! the index will have. A rule is a [`Rule`] and a function that pushes [`Finding`]s; an exception is a
//! comment `<!-- runbook-lint: allow RULE -->` ([`allow`]). docs/lint.md is for writers.

mod across;
mod allow;
mod headings;
mod links;
pub mod rule;

use crate::anchors::anchors;
use crate::decode::decode;
use crate::document::Document;
use crate::error::IngestError;
use crate::outline::Outline;
use crate::read::Reader;
use crate::report::Report;
use crate::reuse::Documents;
use crate::select::Selection;
use allow::Allowed;
use rule::{Rule, Severity};
use runbook_shared::doc_path::DocPath;
use runbook_shared::secrets::Policy;
use runbook_shared::tokens::TokenCounter;
use rustc_hash::{FxHashMap, FxHashSet};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// What a rule found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Path of the document, relative to the root of the source.
    pub path: String,
    /// 1-based line.
    pub line: u32,
    /// The rule.
    pub rule: Rule,
    /// Whether it counts as an error.
    pub severity: Severity,
    /// What is wrong, and what to do.
    pub message: String,
}

/// Which rules do not count, or count as errors.
#[derive(Clone, Debug, Default)]
pub struct Choice {
    /// Rules that are left out.
    pub allow: FxHashSet<Rule>,
    /// Rules whose findings are errors.
    pub deny: FxHashSet<Rule>,
}

/// All that was found, by path, line and rule.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Linted {
    /// Documents that were read.
    pub documents: u64,
    /// What was found.
    pub findings: Vec<Finding>,
}

/// A document as rules see it.
struct Page<'a> {
    document: &'a Document,
    /// Its text as ingest decodes it, with LF line ends and nothing left out.
    text: String,
    outline: Outline,
    /// Fragments of its headings, in order.
    anchors: Vec<String>,
}

impl Page<'_> {
    fn path(&self) -> &str {
        &self.document.record.path
    }

    fn title(&self) -> &str {
        &self.document.record.title
    }
}

/// Takes what rules find, less what is allowed.
struct Findings<'a> {
    choice: &'a Choice,
    found: Vec<Finding>,
}

impl Findings<'_> {
    fn push(&mut self, allowed: &Allowed, path: &str, line: u32, rule: Rule, message: String) {
        if self.choice.allow.contains(&rule) || allowed.covers(rule, line) {
            return;
        }
        let denied = self.choice.deny.contains(&rule);
        let severity = if denied { Severity::Error } else { rule.severity() };
        self.found.push(Finding { path: path.to_owned(), line, rule, severity, message });
    }
}

/// Reads all documents of a source at one state and applies every rule.
///
/// # Errors
/// When the source cannot be listed.
pub fn lint(
    reader: &Reader,
    selection: &Selection,
    choice: &Choice,
    secrets: &Policy,
) -> Result<Linted, IngestError> {
    let mut report = Report::default();
    let candidates = reader.list(selection, &mut report)?;
    let counter = TokenCounter::default_model();
    let documents =
        reader.documents(&candidates, None, &counter, secrets, Documents::default(), &mut report);
    // Documents are stored with their secrets blanked; rules look at what the writer wrote.
    let raw: FxHashMap<String, Vec<u8>> = candidates
        .iter()
        .filter_map(|c| {
            let path = DocPath::from_bytes(&c.path).ok()?.as_str().to_owned();
            Some((path, reader.bytes(c).ok()?))
        })
        .collect();
    let pages: Vec<Page<'_>> =
        documents.iter().filter_map(|document| page(document, &raw)).collect();
    let mut findings = Findings { choice, found: Vec::new() };
    let allowed: Vec<Allowed> = pages.iter().map(|page| Allowed::of(page, &mut findings)).collect();
    for problem in &report.problems {
        let failed = problem.reason == "failed";
        let rule = if failed { Rule::UnreadableDocument } else { Rule::SkippedDocument };
        let message = format!("it is not indexed ({}): {}", problem.reason, problem.message);
        findings.push(&Allowed::default(), &problem.path, 1, rule, message);
    }
    let tree = links::Tree::of(reader, &pages);
    for (page, allowed) in pages.iter().zip(&allowed) {
        headings::check(page, allowed, &mut findings);
        links::check(page, &tree, allowed, &mut findings);
        for found in secrets.find(&page.text, page.path()) {
            let message = format!(
                "this looks like a secret ({}): take it out, keep it in a vault, and change it, since the history still has it",
                found.rule
            );
            findings.push(allowed, page.path(), found.line, Rule::Secret, message);
        }
    }
    across::check(&pages, &allowed, &mut findings);
    let mut found = findings.found;
    found.sort_by(|a, b| {
        (&a.path, a.line, a.rule, &a.message).cmp(&(&b.path, b.line, b.rule, &b.message))
    });
    found.dedup();
    Ok(Linted { documents: pages.len() as u64, findings: found })
}

fn page<'a>(document: &'a Document, raw: &FxHashMap<String, Vec<u8>>) -> Option<Page<'a>> {
    let text = decode(raw.get(&document.record.path)?).ok()?.text;
    let outline = Outline::of(&text);
    let anchors = anchors(&outline.headings, None);
    Some(Page { document, text, outline, anchors })
}

impl Linted {
    /// True when nothing counts as an error.
    #[must_use]
    pub fn passes(&self) -> bool {
        self.findings.iter().all(|f| f.severity != Severity::Error)
    }

    /// Only what was found in the document at this path, or beneath this directory.
    pub fn keep_only(&mut self, path: &str) {
        let path = path.trim_matches('/');
        self.findings.retain(|f| {
            f.path.strip_prefix(path).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        });
    }

    /// `path:line: rule: message`, a line each.
    #[must_use]
    pub fn text(&self) -> String {
        let mut out = String::new();
        for f in &self.findings {
            let _ = writeln!(out, "{}:{}: {}: {}", f.path, f.line, f.rule.name(), f.message);
        }
        out
    }

    /// How many of each rule, and which of them are errors, in one line.
    #[must_use]
    pub fn summary(&self) -> String {
        let mut counts: BTreeMap<(Severity, &str), usize> = BTreeMap::new();
        for f in &self.findings {
            *counts.entry((f.severity, f.rule.name())).or_insert(0) += 1;
        }
        let of = |severity: Severity| {
            let listed: Vec<String> = counts
                .iter()
                .filter(|((s, _), _)| *s == severity)
                .map(|((_, rule), n)| format!("{rule} {n}"))
                .collect();
            if listed.is_empty() { "none".to_owned() } else { listed.join(", ") }
        };
        format!(
            "{} documents; errors: {}; warnings: {}\n",
            self.documents,
            of(Severity::Error),
            of(Severity::Warning)
        )
    }
}
