//! What an operator lets stand: `[secrets]` of ingest's configuration.

use super::{Finding, find};
use serde::{Deserialize, Serialize};

/// Whether secrets are looked for, and which findings are let stand.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Policy {
    /// Whether secrets are found and redacted.
    pub enabled: bool,
    /// Findings that are none.
    pub allow: Vec<Allowed>,
}

impl Default for Policy {
    fn default() -> Self {
        Self { enabled: true, allow: Vec::new() }
    }
}

/// Findings that are let stand: all that fit every key that is set.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Allowed {
    /// A rule.
    pub rule: Option<String>,
    /// A document, or with a `/` at its end all beneath a directory.
    pub path: Option<String>,
    /// A line, 1-based.
    pub line: Option<u32>,
}

impl Allowed {
    fn fits(&self, finding: &Finding, path: &str) -> bool {
        let beneath = |p: &String| path == p || (p.ends_with('/') && path.starts_with(p.as_str()));
        self.rule.as_ref().is_none_or(|r| *r == finding.rule)
            && self.path.as_ref().is_none_or(beneath)
            && self.line.is_none_or(|l| l == finding.line)
    }

    /// True when it names nothing, and would let everything stand.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl Policy {
    /// The secrets in a text that are not let stand.
    #[must_use]
    pub fn find(&self, text: &str, path: &str) -> Vec<Finding> {
        if !self.enabled {
            return Vec::new();
        }
        let mut found = find(text, path);
        found.retain(|f| !self.allow.iter().any(|a| a.fits(f, path)));
        found
    }

    /// What of this changes the content of a generation, as text.
    #[must_use]
    pub fn stamp(&self) -> String {
        if !self.enabled {
            return "off".into();
        }
        let allow = serde_json::to_string(&self.allow).unwrap_or_default();
        format!("{} {allow}", super::version())
    }
}
