//! What can be asked of the tree: the same keys over HTTP and MCP; unknown ones are rejected.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How a pattern is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Syntax {
    /// Plain text.
    Fixed,
    /// POSIX basic, as `grep` without a flag.
    Basic,
    /// POSIX extended, as `grep -E`.
    #[default]
    Extended,
    /// The regex crate's own, as `rg`.
    Rust,
}

/// Lists a directory, or names a file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Ls {
    /// Where; `/runbooks` when left out.
    #[serde(default)]
    pub path: Option<String>,
}

/// Reads a file, or some lines of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Read {
    /// The file.
    pub path: String,
    /// `7`, `3-40`, `3-` or `-20` (the last twenty); all of it when left out.
    #[serde(default)]
    pub lines: Option<String>,
    /// An earlier version, of a versioned mount.
    #[serde(default)]
    pub version: Option<String>,
}

/// Draws a directory and what lies beneath it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Draw {
    /// Where; `/runbooks` when left out.
    #[serde(default)]
    pub path: Option<String>,
    /// Levels.
    #[serde(default)]
    pub depth: Option<usize>,
}

/// Finds files and directories.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Find {
    /// Where; `/runbooks` when left out.
    #[serde(default)]
    pub path: Option<String>,
    /// A glob that the name fits: `*.md`.
    #[serde(default)]
    pub name: Option<String>,
    /// A glob that the path beneath `path` fits: `deploy/**/*.md`.
    #[serde(default)]
    pub glob: Option<String>,
    /// `file` or `dir`.
    #[serde(default)]
    pub kind: Option<String>,
    /// Levels.
    #[serde(default)]
    pub depth: Option<usize>,
    /// Whether case does not matter.
    #[serde(default)]
    pub ignore_case: bool,
}

/// Searches lines.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Grep {
    /// The pattern.
    pub pattern: String,
    /// How it is read.
    #[serde(default)]
    pub syntax: Syntax,
    /// Where; `/runbooks` when left out, `/` for every mount.
    #[serde(default)]
    pub path: Option<String>,
    /// Whether case does not matter.
    #[serde(default)]
    pub ignore_case: bool,
    /// Whole words only.
    #[serde(default)]
    pub word: bool,
    /// Whole lines only.
    #[serde(default)]
    pub line: bool,
    /// Lines that do not match.
    #[serde(default)]
    pub invert: bool,
    /// Only the paths of files that match.
    #[serde(default)]
    pub files_only: bool,
    /// Only the number of lines for each file.
    #[serde(default)]
    pub count: bool,
    /// Only the part that matches.
    #[serde(default)]
    pub only_matching: bool,
    /// Lines of context before a match.
    #[serde(default)]
    pub before: usize,
    /// Lines of context after a match.
    #[serde(default)]
    pub after: usize,
    /// Matching lines for each file, at most.
    #[serde(default)]
    pub max_count: Option<u64>,
    /// Globs of names that are searched.
    #[serde(default)]
    pub include: Vec<String>,
    /// Globs of names that are not.
    #[serde(default)]
    pub exclude: Vec<String>,
}

/// All files in one reply.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Load {
    /// Where; `/runbooks` when left out.
    #[serde(default)]
    pub path: Option<String>,
    /// Bytes above which only the tree is given; never above the server's own limit.
    #[serde(default)]
    pub limit: Option<u64>,
}

/// Writes a file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Write {
    /// The file; its directories come into being.
    pub path: String,
    /// All of its text.
    pub content: String,
}

/// Replaces text in a file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Edit {
    /// The file.
    pub path: String,
    /// The text as it stands there; once, unless `all` is set.
    pub old: String,
    /// What stands there afterwards.
    pub new: String,
    /// Whether every occurrence is replaced.
    #[serde(default)]
    pub all: bool,
}

/// Deletes a file, or with `recursive` a directory.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Delete {
    /// What is deleted.
    pub path: String,
    /// Whether a directory goes with all that is in it.
    #[serde(default)]
    pub recursive: bool,
}

/// Lists the versions of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct History {
    /// The file.
    pub path: String,
}
