//! The one shape of every result: content, the sources that it comes from, and what went wrong.

use super::error::TreeError;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Sources that a reply names; the rest are counted.
pub const SOURCES_MAX: usize = 50;

/// What an operation or a command gave.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Envelope {
    /// The text; of a long one, head and tail, with [`Envelope::overflow`] beside it.
    pub content: String,
    /// What was read or matched, [`SOURCES_MAX`] at most.
    pub sources: Vec<Source>,
    /// What went wrong; `content` may still hold a part.
    pub error: Option<Failure>,
    /// Of a shell command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// What the command said on stderr; of a shell command.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub stderr: String,
    /// The working directory afterwards; of a shell command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// True when `content` is not all of it.
    pub truncated: bool,
    /// Where all of it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overflow: Option<Overflow>,
    /// Sources beyond those that are named.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub sources_omitted: usize,
    /// The same as data, for programs: entries of a listing, matches, versions.
    #[serde(default, skip_serializing_if = "serde_json::Value::is_null")]
    pub data: serde_json::Value,
    /// Everything that was read or matched, for the session's evidence; never sent.
    #[serde(skip)]
    pub touched: Vec<Source>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands a reference")]
fn is_zero(n: &usize) -> bool {
    *n == 0
}

/// A place in the tree that was read or matched.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub struct Source {
    /// The path in the tree, `/runbooks/deploy/staging.md`.
    pub path: String,
    /// The repository, where the place is a document; empty when there is only one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repo: Option<String>,
    /// The document's path in its repository, where the place is a document.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub document: Option<String>,
    /// The innermost heading above the first line, or the title above the first heading.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heading: Option<String>,
    /// First and last line, 1-based and inclusive; absent when it is the page as a whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lines: Option<[u32; 2]>,
    /// The generation that it was read from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generation: Option<String>,
}

/// An error as a client sees it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Failure {
    /// A stable word: `not_found`, `read_only`, `bad_pattern`.
    pub code: String,
    /// What went wrong, and where.
    pub message: String,
    /// What to do about it; empty where the message says it all.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub hint: String,
}

impl From<&TreeError> for Failure {
    fn from(e: &TreeError) -> Self {
        Self { code: e.code().into(), message: e.to_string(), hint: e.hint() }
    }
}

/// Where a long result is kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Overflow {
    /// The path, under `/tmp/overflow`.
    pub path: String,
    /// All of it, in characters.
    pub characters: usize,
    /// All of it, in lines.
    pub lines: usize,
    /// Lines of `content` that are the head; the tail follows after one line that says what is left out.
    pub head_lines: usize,
    /// Lines of `content` that are the tail.
    pub tail_lines: usize,
    /// How to read on.
    pub hint: String,
}

impl Envelope {
    /// A result of text and the places that it comes from.
    #[must_use]
    pub fn new(content: String, touched: Vec<Source>) -> Self {
        let mut envelope = Self { content, ..Self::default() };
        envelope.touch(touched);
        envelope
    }

    /// A result that is an error.
    #[must_use]
    pub fn failed(error: &TreeError) -> Self {
        Self { error: Some(error.into()), ..Self::default() }
    }

    /// Names what was read or matched: all of it in `touched`, the first of it in `sources`.
    pub fn touch(&mut self, touched: Vec<Source>) {
        self.sources = touched.iter().take(SOURCES_MAX).cloned().collect();
        self.sources_omitted = touched.len() - self.sources.len();
        self.touched = touched;
    }

    /// True when nothing went wrong.
    #[must_use]
    pub fn is_ok(&self) -> bool {
        self.error.is_none() && self.exit_code.is_none_or(|c| c == 0)
    }
}
