//! I/O errors that always name the path they happened at, and the hint every user-facing error carries.

use std::io;
use std::path::{Path, PathBuf};

/// An I/O failure together with what was being done and where.
#[derive(Debug, thiserror::Error)]
#[error("cannot {action} `{}`: {source}", path.display())]
pub struct PathError {
    /// What was being done, as a verb phrase: "read", "create directory".
    pub action: &'static str,
    /// The file or directory it was done to.
    pub path: PathBuf,
    /// What the operating system said.
    #[source]
    pub source: io::Error,
}

/// Adds the path and the action to an [`io::Result`].
pub trait IoContext<T> {
    /// Names the action and the path of a failed operation.
    ///
    /// # Errors
    /// The same failure, as a [`PathError`].
    fn at(self, action: &'static str, path: &Path) -> Result<T, PathError>;
}

impl<T> IoContext<T> for io::Result<T> {
    fn at(self, action: &'static str, path: &Path) -> Result<T, PathError> {
        self.map_err(|source| PathError { action, path: path.to_owned(), source })
    }
}

impl PathError {
    /// True when the path does not exist.
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        self.source.kind() == io::ErrorKind::NotFound
    }
}

/// An error that can tell the user what to do about it.
pub trait Hint {
    /// One line that says what to do, or nothing where the message says it all.
    fn hint(&self) -> Option<String>;
}
