//! Which files are documents, and why one of them is left out.

use globset::{Glob, GlobBuilder, GlobSet, GlobSetBuilder};
use std::collections::BTreeMap;

/// Extensions of documents when no `--include` says otherwise; compared without case.
pub const EXTENSIONS: [&str; 4] = [".md", ".markdown", ".mdx", ".md.erb"];

/// Why a document is not in the generation, though its name is that of a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SkipReason {
    /// A symbolic link; links are never followed.
    Symlink,
    /// A submodule: its files belong to another repository.
    Submodule,
    /// A git LFS pointer: the content is elsewhere.
    LfsPointer,
    /// It holds a NUL byte, so it is no text.
    Binary,
    /// It is larger than 8 MiB.
    TooLarge,
    /// It is neither UTF-8 nor UTF-16 with a mark, and not surely Latin-1.
    UnknownEncoding,
    /// Its path has `..`, a control character or the like.
    InvalidPath,
    /// Another document has the same path after escaping.
    DuplicatePath,
    /// A device, a socket, a pipe.
    NotAFile,
}

impl SkipReason {
    /// The name in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Symlink => "symlink",
            Self::Submodule => "submodule",
            Self::LfsPointer => "lfs_pointer",
            Self::Binary => "binary",
            Self::TooLarge => "too_large",
            Self::UnknownEncoding => "unknown_encoding",
            Self::InvalidPath => "invalid_path",
            Self::DuplicatePath => "duplicate_path",
            Self::NotAFile => "not_a_file",
        }
    }

    /// One line for the report.
    #[must_use]
    pub fn explanation(self) -> &'static str {
        match self {
            Self::Symlink => {
                "a symbolic link; links are not followed, so link targets outside the repository stay outside"
            }
            Self::Submodule => {
                "a submodule; ingest its repository into a data directory of its own"
            }
            Self::LfsPointer => "a git LFS pointer; commit the text itself",
            Self::Binary => "holds a NUL byte, so it is not text",
            Self::TooLarge => "larger than 8 MiB; split it",
            Self::UnknownEncoding => {
                "neither UTF-8 nor UTF-16 with a byte order mark; convert it to UTF-8"
            }
            Self::InvalidPath => {
                "its path holds `..`, `.git` or a control character, or is too long; rename it"
            }
            Self::DuplicatePath => {
                "another document has the same path once bytes that are not UTF-8 are escaped; rename it"
            }
            Self::NotAFile => "not a regular file",
        }
    }
}

/// Counts by reason, as the report shows them.
pub type SkipCounts = BTreeMap<String, u64>;

/// A glob that is not one.
#[derive(Debug, thiserror::Error)]
#[error("`{glob}` is not a glob: {message}")]
pub struct GlobError {
    glob: String,
    message: String,
}

/// Decides by path which files are documents.
pub struct Selection {
    subdir: String,
    include: Option<GlobSet>,
    exclude: GlobSet,
}

impl Selection {
    /// Builds the filters. A glob without `/` matches names at any depth; others match whole paths
    /// relative to the root, with `**` for any number of directories.
    ///
    /// # Errors
    /// The first glob that is not one.
    pub fn new(
        subdir: Option<&str>,
        include: &[String],
        exclude: &[String],
    ) -> Result<Self, GlobError> {
        Ok(Self {
            subdir: subdir.unwrap_or("").trim_matches('/').to_owned(),
            include: if include.is_empty() { None } else { Some(glob_set(include)?) },
            exclude: glob_set(exclude)?,
        })
    }

    /// True when options leave something out: a subdirectory, globs.
    #[must_use]
    pub fn is_narrowed(&self) -> bool {
        !self.subdir.is_empty() || self.include.is_some() || !self.exclude.is_empty()
    }

    /// True when a file at this path is a document.
    #[must_use]
    pub fn takes(&self, path: &str) -> bool {
        self.in_subdir(path)
            && !self.exclude.is_match(path)
            && self.include.as_ref().map_or_else(|| has_extension(path), |set| set.is_match(path))
    }

    /// True when a directory at this path may hold documents; `""` is the root.
    #[must_use]
    pub fn enters(&self, dir: &str) -> bool {
        dir.is_empty()
            || self.in_subdir(dir)
            || self.subdir.strip_prefix(dir).is_some_and(|rest| rest.starts_with('/'))
    }

    /// True when a link or submodule at this path could have been a document or held some.
    #[must_use]
    pub fn may_hide(&self, path: &str) -> bool {
        let name = path.rsplit('/').next().unwrap_or(path);
        self.takes(path)
            || (self.in_subdir(path) && !self.exclude.is_match(path) && !name.contains('.'))
    }

    fn in_subdir(&self, path: &str) -> bool {
        // Also for paths that are no `DocPath`: they are reported, not dropped.
        let below = path.strip_prefix(&self.subdir);
        self.subdir.is_empty() || below.is_some_and(|b| b.is_empty() || b.starts_with('/'))
    }
}

fn has_extension(path: &str) -> bool {
    let lower = path.to_ascii_lowercase();
    EXTENSIONS.iter().any(|e| lower.ends_with(e))
}

fn glob_set(globs: &[String]) -> Result<GlobSet, GlobError> {
    let mut set = GlobSetBuilder::new();
    for glob in globs {
        set.add(parse_glob(glob)?);
    }
    set.build().map_err(|e| GlobError { glob: globs.join(" "), message: e.to_string() })
}

fn parse_glob(glob: &str) -> Result<Glob, GlobError> {
    let anchored = glob.trim_start_matches('/');
    let anchored = if glob.contains('/') { anchored.to_owned() } else { format!("**/{glob}") };
    GlobBuilder::new(&anchored)
        .literal_separator(true)
        .build()
        .map_err(|e| GlobError { glob: glob.to_owned(), message: e.kind().to_string() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn selection(subdir: Option<&str>, include: &[&str], exclude: &[&str]) -> Selection {
        let own = |globs: &[&str]| globs.iter().map(|g| (*g).to_owned()).collect::<Vec<_>>();
        Selection::new(subdir, &own(include), &own(exclude)).unwrap()
    }

    #[test]
    fn takes_by_extension_and_filters() {
        let all = selection(None, &[], &[]);
        assert!(["a.md", "b/C.MD", "x.markdown", "y.mdx", "z.md.erb"].iter().all(|p| all.takes(p)));
        assert!(!all.takes("a.txt") && !all.takes("md"));
        let some = selection(Some("docs/"), &[], &["CHANGELOG.md", "docs/old/**"]);
        assert!(some.takes("docs/a.md") && !some.takes("docs2/a.md") && !some.takes("a.md"));
        assert!(some.takes("docs/bell\u{7}.md") && some.enters("docs/tab\t"));
        assert!(!some.takes("docs/x/CHANGELOG.md") && !some.takes("docs/old/deep/a.md"));
        assert!(
            some.enters("") && some.enters("docs") && some.enters("docs/x") && !some.enters("src")
        );
        let text = selection(None, &["*.txt"], &[]);
        assert!(text.takes("d/a.txt") && !text.takes("d/a.md"));
        assert!(Selection::new(None, &["[".into()], &[]).is_err());
    }
}
