//! The one path type of the core: relative, UTF-8, without `..`, checked once at construction.

use crate::limits::{DOC_PATH_BYTES_MAX, DOC_PATH_COMPONENT_BYTES_MAX};
use std::fmt;
use std::path::PathBuf;

/// A document's path relative to the root of its repository, with `/` between components.
///
/// Names that are not UTF-8 are escaped by [`DocPath::from_bytes`], so that every document has one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DocPath(String);

/// Why a string is no [`DocPath`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DocPathError {
    /// The path has no component.
    #[error("the path is empty")]
    Empty,
    /// The path starts with `/`.
    #[error("the path is absolute")]
    Absolute,
    /// A component is `.`, `..` or empty.
    #[error("the path has a component that is `.`, `..` or empty")]
    Dots,
    /// A component is `.git` in any case.
    #[error("the path leads into a `.git` directory")]
    DotGit,
    /// The path holds a NUL or another control character.
    #[error("the path holds a control character")]
    Control,
    /// The path or one of its components is longer than a file system takes.
    #[error("the path is longer than a file system takes")]
    TooLong,
}

impl DocPath {
    /// Checks a path.
    ///
    /// # Errors
    /// The first rule that the path breaks.
    pub fn parse(path: &str) -> Result<Self, DocPathError> {
        if path.is_empty() {
            return Err(DocPathError::Empty);
        }
        if path.starts_with('/') {
            return Err(DocPathError::Absolute);
        }
        if path.len() > DOC_PATH_BYTES_MAX {
            return Err(DocPathError::TooLong);
        }
        if path.chars().any(char::is_control) {
            return Err(DocPathError::Control);
        }
        for component in path.split('/') {
            match component {
                "" | "." | ".." => return Err(DocPathError::Dots),
                c if c.eq_ignore_ascii_case(".git") => return Err(DocPathError::DotGit),
                c if c.len() > DOC_PATH_COMPONENT_BYTES_MAX => return Err(DocPathError::TooLong),
                _ => {}
            }
        }
        Ok(Self(path.to_owned()))
    }

    /// Checks a path of raw bytes; bytes that are not UTF-8 become `\xNN`.
    ///
    /// # Errors
    /// As [`DocPath::parse`].
    pub fn from_bytes(path: &[u8]) -> Result<Self, DocPathError> {
        let mut text = String::with_capacity(path.len());
        for part in path.utf8_chunks() {
            text.push_str(part.valid());
            for byte in part.invalid() {
                text.push_str(&format!("\\x{byte:02X}"));
            }
        }
        Self::parse(&text)
    }

    /// The path as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The last component.
    #[must_use]
    pub fn file_name(&self) -> &str {
        self.0.rsplit('/').next().unwrap_or(&self.0)
    }

    /// The path as a relative file system path.
    #[must_use]
    pub fn to_path_buf(&self) -> PathBuf {
        self.0.split('/').collect()
    }

    /// True when the path is `prefix` or lies beneath it; `prefix` ends at a `/` boundary.
    #[must_use]
    pub fn is_under(&self, prefix: &str) -> bool {
        let prefix = prefix.trim_matches('/');
        prefix.is_empty()
            || self
                .0
                .strip_prefix(prefix)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }
}

impl fmt::Display for DocPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refuses_what_could_escape() {
        for (path, error) in [
            ("", DocPathError::Empty),
            ("/etc/passwd", DocPathError::Absolute),
            ("a/../b", DocPathError::Dots),
            ("..", DocPathError::Dots),
            ("a//b", DocPathError::Dots),
            ("a/", DocPathError::Dots),
            ("a/.GIT/config", DocPathError::DotGit),
            ("a\0b", DocPathError::Control),
            ("a\nb", DocPathError::Control),
        ] {
            assert_eq!(DocPath::parse(path), Err(error), "{path:?}");
        }
        assert_eq!(DocPath::parse(&"x".repeat(256)), Err(DocPathError::TooLong));
    }

    #[test]
    fn escapes_bytes_that_are_no_text() {
        assert_eq!(DocPath::from_bytes(b"c\xC0/n.md").unwrap().as_str(), "c\\xC0/n.md");
    }

    #[test]
    fn a_prefix_ends_at_a_boundary() {
        let path = DocPath::parse("db/restore.md").unwrap();
        assert!(path.is_under("db") && path.is_under("db/") && path.is_under("/db/restore.md"));
        assert!(!path.is_under("d") && !path.is_under("db/rest"));
    }
}
