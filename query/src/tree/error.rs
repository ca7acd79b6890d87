//! Why an operation on the tree did not work: a code, a message with the path, a hint. No message ever
//! holds a path of the machine.

use super::path::join;

/// What went wrong.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TreeError {
    /// A path that is none: NUL, too long, or leading out of the tree.
    #[error("`{path}` is not a path here: {why}")]
    BadPath {
        /// The path as it was given, cut and with control characters escaped.
        path: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// Nothing is there.
    #[error("`{0}`: no such file or directory")]
    NotFound(String),
    /// A directory where a file was wanted.
    #[error("`{0}` is a directory")]
    IsDirectory(String),
    /// A file where a directory was wanted.
    #[error("`{0}` is not a directory")]
    NotDirectory(String),
    /// A write to what cannot be written.
    #[error("`{0}`: read-only file system")]
    ReadOnly(String),
    /// The store behind a path does not work now.
    #[error("`{mount}` cannot be reached: {why}")]
    Unavailable {
        /// Where the store is mounted.
        mount: String,
        /// What it said, without addresses or paths of the machine.
        why: String,
    },
    /// A pattern that does not compile, or is too large.
    #[error("`{pattern}` is not a pattern that can be searched: {why}")]
    BadPattern {
        /// The pattern, cut.
        pattern: String,
        /// What is wrong with it.
        why: String,
    },
    /// A request that makes no sense: a range, a version, an unknown option.
    #[error("{0}")]
    BadRequest(String),
    /// The text to be replaced is not there, or is there more than once.
    #[error("`{path}`: the text to replace stands there {found} times")]
    NoEdit {
        /// The file.
        path: String,
        /// How often the text occurs.
        found: usize,
    },
    /// No such version.
    #[error("`{path}` has no version `{version}`")]
    NoVersion {
        /// The file.
        path: String,
        /// What was asked for.
        version: String,
    },
    /// A file or a session's space would be too large.
    #[error("`{path}`: {what} is over the limit of {limit} bytes")]
    TooLarge {
        /// The file.
        path: String,
        /// What is too large.
        what: &'static str,
        /// The limit.
        limit: u64,
    },
    /// The work was given up.
    #[error("stopped: {0}")]
    Stopped(String),
    /// Too much runs already.
    #[error("{0} operations run already, which is the most")]
    Busy(usize),
}

impl TreeError {
    /// A stable word for programs.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::BadPath { .. } => "bad_path",
            Self::NotFound(_) => "not_found",
            Self::IsDirectory(_) => "is_a_directory",
            Self::NotDirectory(_) => "not_a_directory",
            Self::ReadOnly(_) => "read_only",
            Self::Unavailable { .. } => "unavailable",
            Self::BadPattern { .. } => "bad_pattern",
            Self::BadRequest(_) => "bad_request",
            Self::NoEdit { .. } => "no_such_text",
            Self::NoVersion { .. } => "no_such_version",
            Self::TooLarge { .. } => "too_large",
            Self::Stopped(_) => "stopped",
            Self::Busy(_) => "busy",
        }
    }

    /// What to do about it; empty where the message says it all.
    #[must_use]
    pub fn hint(&self) -> String {
        match self {
            Self::BadPath { .. } => "paths start with `/`, as `ls /` lists them".into(),
            Self::NotFound(_) => "`ls` or `find` shows what there is".into(),
            Self::IsDirectory(_) => "`ls` lists it".into(),
            Self::ReadOnly(_) => "/tmp and /artifacts can be written".into(),
            Self::Unavailable { .. } => "the other mounts work; try again later".into(),
            Self::BadPattern { .. } => "search for fixed text, or simplify the pattern".into(),
            Self::NoEdit { found: 0, .. } => {
                "read the file, and give the text exactly as it stands".into()
            }
            Self::NoEdit { .. } => "give more of the text around it, or set `all`".into(),
            Self::NoVersion { .. } => "`history` lists the versions".into(),
            Self::TooLarge { .. } => "write less, or delete what is no longer needed".into(),
            Self::Stopped(_) => "narrow the path or the pattern".into(),
            Self::Busy(_) => "try again in a second".into(),
            Self::NotDirectory(_) | Self::BadRequest(_) => String::new(),
        }
    }

    /// The error of a store, whose paths are relative to its mount, as one of the tree.
    #[must_use]
    pub fn at(self, mount: &str) -> Self {
        let full = |path: String| join(mount, &path);
        match self {
            Self::NotFound(path) => Self::NotFound(full(path)),
            Self::IsDirectory(path) => Self::IsDirectory(full(path)),
            Self::NotDirectory(path) => Self::NotDirectory(full(path)),
            Self::ReadOnly(path) => Self::ReadOnly(full(path)),
            Self::Unavailable { why, .. } => Self::Unavailable { mount: mount.into(), why },
            Self::NoEdit { path, found } => Self::NoEdit { path: full(path), found },
            Self::NoVersion { path, version } => Self::NoVersion { path: full(path), version },
            Self::TooLarge { path, what, limit } => {
                Self::TooLarge { path: full(path), what, limit }
            }
            other => other,
        }
    }
}
