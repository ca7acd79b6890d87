//! Secrets in runbooks: found by rules, replaced by `[REDACTED:rule]` before anything is stored.
//!
//! The rules are gitleaks' own, carried as data (`secrets/data/README.md` says from where), and those of
//! this project in the same format for what runbooks hold: passwords in URLs, assignments, tables, prose
//! and command lines, headers, `.netrc`, Kubernetes Secrets. Keywords are looked for first, in one pass;
//! a pattern runs only over the lines around a keyword of its rule. What replaces a value keeps its line
//! breaks, so that every line keeps its number.

mod allow;
mod context;
mod finder;
mod go_syntax;
mod redact;
mod rule;
mod value;

#[cfg(test)]
mod tests;

pub use allow::{Allowed, Policy};
pub use redact::redact;

use finder::Finder;
use std::ops::Range;
use std::sync::LazyLock;

/// A secret in a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The rule that found it.
    pub rule: String,
    /// 1-based line where it begins.
    pub line: u32,
    /// Where the value is, in bytes.
    pub span: Range<usize>,
}

/// What a rule found.
struct Span {
    range: Range<usize>,
    rule: String,
    /// True for rules that know a secret by its place, not by its form.
    is_vague: bool,
}

static FINDER: LazyLock<Finder> = LazyLock::new(Finder::new);

/// Every secret in a text with LF line ends, in order; none overlaps another. `path` is for rules that
/// ask where a text stands.
///
/// ```
/// let found = runbook_shared::secrets::find("db: postgres://app:S3cr3t-9@db/x\n", "db.md");
/// assert_eq!((found[0].rule.as_str(), found[0].line), ("url-credentials", 1));
/// ```
#[must_use]
pub fn find(text: &str, path: &str) -> Vec<Finding> {
    FINDER.find(text, path)
}

/// A text without its secrets: for what people type, which is kept in logs and reports.
#[must_use]
pub fn clean(text: &str) -> String {
    redact(text, &find(text, ""))
}

/// Names the rules and this program's way of using them: 16 hex digits. Another one is a rebuild.
#[must_use]
pub fn version() -> String {
    /// Raised whenever code here finds more or less.
    const CODE: u32 = 1;
    let mut hasher = blake3::Hasher::new();
    hasher.update(&CODE.to_le_bytes());
    hasher.update(finder::GITLEAKS.as_bytes());
    hasher.update(finder::OWN.as_bytes());
    hasher.finalize().to_hex()[..16].to_owned()
}

/// The rules that are in use and those that say nothing about text, by name.
#[must_use]
pub fn rules() -> (Vec<String>, Vec<String>) {
    FINDER.names()
}
