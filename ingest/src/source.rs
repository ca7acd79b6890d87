//! Where documents come from: a git remote, a git repository on this machine, or a plain directory.
//!
//! A source is first probed for its newest state, which is cheap, and then read at that state.

pub mod dir;
pub mod git;
mod host_pattern;
pub mod known_hosts;
pub mod mirror;
mod packs;
mod quiet_panics;

use crate::select::{Selection, SkipReason};
use runbook_shared::error::{Hint, PathError};
use std::path::{Path, PathBuf};

/// How to reach a git remote.
#[derive(Clone, Debug, Default)]
pub struct GitAccess {
    /// The branch; the remote's default branch where none is named.
    pub branch: Option<String>,
    /// Private key of the deploy key.
    pub ssh_key: Option<PathBuf>,
    /// Host keys; `~/.ssh/known_hosts` and `/etc/ssh/ssh_known_hosts` where none is named.
    pub known_hosts: Option<PathBuf>,
    /// A file with a token for https.
    pub token_file: Option<PathBuf>,
    /// How long the server may be silent.
    pub timeout: std::time::Duration,
}

/// The newest state of a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct State {
    /// The commit, where the source is git and has one.
    pub commit: Option<String>,
    /// The branch that was read.
    pub branch: Option<String>,
}

/// A file that may become a document.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// Path relative to the root, raw bytes.
    pub path: Vec<u8>,
    /// What it is.
    pub kind: CandidateKind,
}

/// What a candidate is.
#[derive(Clone, Debug)]
pub enum CandidateKind {
    /// A blob of a commit.
    Blob {
        /// Its object id.
        id: git2::Oid,
    },
    /// A file of a directory.
    File,
    /// Something that is never read.
    Skipped(SkipReason),
}

/// Why a source cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// The directory is not there.
    #[error("the source `{}` is not a directory and not a git URL", .0.display())]
    NoSuchDirectory(PathBuf),
    /// A file operation failed.
    #[error(transparent)]
    File(#[from] PathError),
    /// The remote cannot be reached, or refuses.
    #[error("cannot fetch from `{url}`: {message}")]
    Remote {
        /// The URL without credentials.
        url: String,
        /// What happened.
        message: String,
        /// What to do, where it is known.
        hint: Option<String>,
    },
    /// The named branch, or the default branch, does not exist.
    #[error("`{url}` has no branch `{branch}` (ref `refs/heads/{branch}`); it has: {}", if .branches.is_empty() { "none".to_owned() } else { .branches.join(", ") })]
    NoBranch {
        /// The URL without credentials.
        url: String,
        /// The branch that was looked for.
        branch: String,
        /// The branches there are, at most 20.
        branches: Vec<String>,
    },
    /// HEAD names no branch that exists, and there are several.
    #[error("the HEAD of `{url}` names no branch that exists; it has: {}", .branches.join(", "))]
    NoDefault {
        /// The URL without credentials.
        url: String,
        /// The branches there are, at most 20.
        branches: Vec<String>,
    },
    /// The tree is larger than any repository needs to be.
    #[error("the tree of `{}` has more than {most} entries", path.display())]
    TooManyEntries {
        /// The repository.
        path: PathBuf,
        /// The most entries that are read.
        most: usize,
    },
    /// Git refuses a repository that another user owns.
    #[error("the repository `{}` belongs to user {owner}, this process runs as user {user}", path.display())]
    Owner {
        /// The repository.
        path: PathBuf,
        /// The owner's uid.
        owner: u32,
        /// Our uid.
        user: u32,
    },
    /// A repository on this machine cannot be read.
    #[error("cannot read the repository `{}`: {message}", path.display())]
    Repository {
        /// The repository.
        path: PathBuf,
        /// What git said.
        message: String,
    },
}

impl Hint for SourceError {
    fn hint(&self) -> Option<String> {
        match self {
            Self::NoSuchDirectory(_) => Some("name a directory, or a URL such as https://host/team/runbooks.git or git@host:team/runbooks.git".into()),
            Self::Remote { hint, .. } => hint.clone(),
            Self::NoBranch { .. } => Some("name an existing branch with --branch, or leave it out to follow the remote's default branch".into()),
            Self::NoDefault { .. } => Some("name one of them with --branch, or have the repository's HEAD name one".into()),
            Self::TooManyEntries { .. } => Some("ingest a repository of its own for the runbooks".into()),
            Self::Owner { path, owner, .. } => Some(format!(
                "run as user {owner}, or change the owner (`chown -R`), or trust it: `git config --global --add safe.directory {}`",
                path.display()
            )),
            Self::Repository { .. } => Some("check it with `git fsck`".into()),
            Self::File(_) => None,
        }
    }
}

/// A source, as named on the command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// A git remote.
    Remote(String),
    /// A git repository on this machine: its HEAD is read.
    Repository(PathBuf),
    /// A directory whose files are read as they are.
    Directory(PathBuf),
}

impl Source {
    /// Tells a URL from a directory, and a repository from a plain directory.
    ///
    /// A directory is a repository only if it itself holds `.git`, or is a bare repository; the
    /// directories above it are never looked at.
    ///
    /// # Errors
    /// When it is neither.
    pub fn parse(text: &str) -> Result<Self, SourceError> {
        let path = Path::new(text);
        if text.contains("://") || (is_scp_like(text) && !path.exists()) {
            return Ok(Self::Remote(text.to_owned()));
        }
        if !path.is_dir() {
            return Err(SourceError::NoSuchDirectory(path.to_owned()));
        }
        let path = std::fs::canonicalize(path).map_err(|source| PathError {
            action: "resolve",
            path: path.to_owned(),
            source,
        })?;
        let bare = path.join("HEAD").is_file()
            && path.join("objects").is_dir()
            && path.join("refs").is_dir();
        if bare || path.join(".git").exists() {
            Ok(Self::Repository(path))
        } else {
            Ok(Self::Directory(path))
        }
    }

    /// The source for manifests, reports and logs: credentials removed.
    #[must_use]
    pub fn display(&self) -> String {
        match self {
            Self::Remote(url) => without_credentials(url),
            Self::Repository(path) | Self::Directory(path) => path.display().to_string(),
        }
    }
}

/// `user@host:path` or `host:path`, as git and scp take it.
fn is_scp_like(text: &str) -> bool {
    text.split_once(':').is_some_and(|(host, path)| {
        !host.is_empty() && !host.contains('/') && !path.is_empty() && !path.starts_with("//")
    })
}

/// Removes a password or token from a URL; the user name of ssh stays.
#[must_use]
pub fn without_credentials(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return url.to_owned() };
    let authority_end = rest.find('/').unwrap_or(rest.len());
    let Some(at) = rest[..authority_end].rfind('@') else { return url.to_owned() };
    let user = rest[..at].split(':').next().unwrap_or("");
    if scheme.starts_with("ssh") && !rest[..at].contains(':') {
        return url.to_owned();
    }
    if scheme.starts_with("ssh") {
        return format!("{scheme}://{user}@{}", &rest[at + 1..]);
    }
    format!("{scheme}://{}", &rest[at + 1..])
}

/// Text from elsewhere for a message: nothing in it moves a cursor or colours a terminal.
pub(crate) fn printable(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.trim_end().chars() {
        if c.is_control() {
            out.extend(c.escape_default());
        } else {
            out.push(c);
        }
    }
    out
}

/// Sorts by path bytes, so that order never depends on the source.
fn sort(candidates: &mut [Candidate]) {
    candidates.sort_by(|a, b| a.path.cmp(&b.path));
}

/// Decides about a regular file by its path.
fn takes(selection: &Selection, path: &[u8]) -> bool {
    selection.takes(&String::from_utf8_lossy(path))
}

fn may_hide(selection: &Selection, path: &[u8]) -> bool {
    selection.may_hide(&String::from_utf8_lossy(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_never_show() {
        for (url, shown) in [
            ("https://u:tok@h.example/a.git", "https://h.example/a.git"),
            ("https://tok@h.example/a.git", "https://h.example/a.git"),
            ("ssh://git@h.example:22/a.git", "ssh://git@h.example:22/a.git"),
            ("ssh://git:pw@h.example/a.git", "ssh://git@h.example/a.git"),
            ("git@h.example:a.git", "git@h.example:a.git"),
            ("file:///srv/a@b.git", "file:///srv/a@b.git"),
        ] {
            assert_eq!(without_credentials(url), shown);
        }
    }

    #[test]
    fn a_directory_is_git_only_by_itself() {
        let dir = tempfile::tempdir().unwrap();
        git2::Repository::init(dir.path()).unwrap();
        let inner = dir.path().join("docs");
        std::fs::create_dir(&inner).unwrap();
        assert!(matches!(Source::parse(dir.path().to_str().unwrap()), Ok(Source::Repository(_))));
        assert!(matches!(Source::parse(inner.to_str().unwrap()), Ok(Source::Directory(_))));
        assert!(Source::parse("/nowhere/at/all").is_err());
    }
}
