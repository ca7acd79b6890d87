//! The report of a run, as JSON for `--json` and as text for a person.

use crate::document::Warning;
use crate::redaction::Secret;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// What a run did. The JSON keys are a contract.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Report {
    /// `published`, `up_to_date`, `busy` or `failed`.
    pub outcome: String,
    /// Files that the filters let through: indexed + failed + all skipped.
    pub documents: u64,
    /// Documents in the generation.
    pub indexed: u64,
    /// Documents that could not be read.
    pub failed: u64,
    /// Documents left out by a rule, by reason.
    pub skipped: BTreeMap<String, u64>,
    /// Sections.
    pub sections: u64,
    /// Chunks.
    pub chunks: u64,
    /// Windows.
    pub windows: u64,
    /// Windows whose vector was known already.
    pub reused: u64,
    /// The generation that is current after the run.
    pub generation: Option<String>,
    /// Its commit.
    pub commit: Option<String>,
    /// Milliseconds by stage.
    pub took_ms: BTreeMap<String, u64>,
    /// Why the generation was built, or `UpToDate`.
    pub state: String,
    /// Documents that are not in the generation, with the reason.
    pub problems: Vec<Problem>,
    /// What writers should look at.
    pub warnings: Vec<Warning>,
    /// What was redacted: path, line and rule, never the value.
    pub secrets: Vec<Secret>,
    /// What the operator should know.
    pub notes: Vec<String>,
}

/// A document that is not in the generation.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct Problem {
    /// Its path; bytes that are not UTF-8 are escaped.
    pub path: String,
    /// A skip reason, or `failed`.
    pub reason: String,
    /// What is wrong and what to do.
    pub message: String,
}

impl Report {
    /// True when documents failed, other than by a rule.
    #[must_use]
    pub fn has_failures(&self) -> bool {
        self.failed > 0
    }

    /// The report for a person.
    #[must_use]
    pub fn text(&self) -> String {
        let mut out = String::new();
        let mut line = |text: String| {
            let _ = writeln!(out, "{text}");
        };
        let commit = self.commit.as_deref().map_or("no commit", |c| &c[..c.len().min(12)]);
        let generation = self.generation.as_deref().unwrap_or("none");
        line(format!(
            "{} ({}): generation {generation} at {commit}",
            self.outcome.replace('_', " "),
            self.state
        ));
        let skipped: u64 = self.skipped.values().sum();
        line(format!(
            "{} documents: {} indexed, {} failed, {skipped} skipped; {} sections, {} chunks, {} windows ({} reused)",
            self.documents,
            self.indexed,
            self.failed,
            self.sections,
            self.chunks,
            self.windows,
            self.reused
        ));
        for problem in &self.problems {
            line(format!("{}: {}: {}", problem.path, problem.reason, problem.message));
        }
        for warning in &self.warnings {
            line(format!("{}:{}: warning: {}", warning.path, warning.line, warning.message));
        }
        for secret in &self.secrets {
            line(format!("{}:{}: redacted: {}", secret.path, secret.line, secret.rule));
        }
        for note in &self.notes {
            line(format!("note: {note}"));
        }
        let stages: Vec<String> =
            self.took_ms.iter().map(|(stage, ms)| format!("{stage} {ms} ms")).collect();
        if !stages.is_empty() {
            line(stages.join(", "));
        }
        out
    }
}
