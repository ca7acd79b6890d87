//! What a mount is kept in: one trait, whatever it is. The caller never learns which.
//!
//! Paths are relative to the mount, plain (no `.`, `..`, empty parts), and `""` is its root. A store looks
//! names up among what it holds; it never opens a path as it was given.

use super::error::TreeError;
use std::sync::Arc;

/// File or directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A file.
    File,
    /// A directory.
    Dir,
}

/// What is known of a file or directory without reading it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Meta {
    /// File or directory.
    pub kind: Kind,
    /// Bytes; 0 for a directory.
    pub size: u64,
    /// Seconds since 1970.
    pub modified: i64,
}

/// One name in a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The name, without `/`.
    pub name: String,
    /// What it is.
    pub meta: Meta,
}

/// One version of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Version {
    /// Its name; versions of one file sort by it, oldest first.
    pub id: String,
    /// Seconds since 1970.
    pub modified: i64,
    /// Bytes.
    pub size: u64,
    /// True when this version is that the file was deleted.
    pub deleted: bool,
}

/// A file's bytes, shared.
#[derive(Clone)]
pub struct Content {
    whole: Arc<dyn AsRef<[u8]> + Send + Sync>,
    range: std::ops::Range<usize>,
}

impl Content {
    /// Bytes of their own.
    #[must_use]
    pub fn owned(bytes: Vec<u8>) -> Self {
        let range = 0..bytes.len();
        Self { whole: Arc::new(bytes), range }
    }

    /// Part of bytes that others share; what is beyond their end is left out.
    #[must_use]
    pub fn shared(
        whole: Arc<dyn AsRef<[u8]> + Send + Sync>,
        range: std::ops::Range<usize>,
    ) -> Self {
        Self { whole, range }
    }
}

impl std::ops::Deref for Content {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        (*self.whole).as_ref().get(self.range.clone()).unwrap_or_default()
    }
}

/// A mount's store.
///
/// `session` is the session on whose behalf it is done; only stores that keep sessions apart look at it.
pub trait Store: Send + Sync {
    /// Whether it can be written.
    fn writable(&self) -> bool;

    /// Whether every write is kept.
    fn versioned(&self) -> bool {
        false
    }

    /// What is kept of the past, in words; none where that is nothing.
    fn keeps(&self) -> Option<String> {
        None
    }

    /// A word that changes whenever the content may have changed; none when that cannot be told.
    fn stamp(&self) -> Option<String> {
        None
    }

    /// What is at a path.
    ///
    /// # Errors
    /// [`TreeError::NotFound`], or the store does not work.
    fn stat(&self, session: &str, path: &str) -> Result<Meta, TreeError>;

    /// The names in a directory, in byte order.
    ///
    /// # Errors
    /// When there is no such directory, or the store does not work.
    fn list(&self, session: &str, path: &str) -> Result<Vec<Entry>, TreeError>;

    /// A file.
    ///
    /// # Errors
    /// When there is no such file, or the store does not work.
    fn read(&self, session: &str, path: &str) -> Result<Content, TreeError>;

    /// Writes a file as a whole; its directories come into being.
    ///
    /// # Errors
    /// When it cannot be written.
    fn write(&self, _session: &str, path: &str, _content: &[u8]) -> Result<(), TreeError> {
        Err(TreeError::ReadOnly(path.into()))
    }

    /// Makes a directory and those above it.
    ///
    /// # Errors
    /// When it cannot be made.
    fn make_dir(&self, _session: &str, path: &str) -> Result<(), TreeError> {
        Err(TreeError::ReadOnly(path.into()))
    }

    /// Deletes a file, or an empty directory.
    ///
    /// # Errors
    /// When there is none, or it cannot be deleted.
    fn delete(&self, _session: &str, path: &str) -> Result<(), TreeError> {
        Err(TreeError::ReadOnly(path.into()))
    }

    /// The versions of a file, oldest first.
    ///
    /// # Errors
    /// When versions are not kept, or there is no such file.
    fn history(&self, _session: &str, path: &str) -> Result<Vec<Version>, TreeError> {
        Err(TreeError::BadRequest(format!("`{path}`: no versions are kept here")))
    }

    /// An earlier version of a file.
    ///
    /// # Errors
    /// When there is none.
    fn read_version(
        &self,
        _session: &str,
        path: &str,
        version: &str,
    ) -> Result<Content, TreeError> {
        Err(TreeError::NoVersion { path: path.into(), version: version.into() })
    }

    /// The headings of a document, for sources: (heading above the first one, then line and text).
    fn document(&self, _path: &str) -> Option<Document<'_>> {
        None
    }
}

/// What a source says of a document beyond its path.
#[derive(Clone, Debug)]
pub struct Document<'a> {
    /// The repository.
    pub repo: &'a str,
    /// The generation.
    pub generation: &'a str,
    /// The record.
    pub record: &'a runbook_shared::chunk::DocumentRecord,
}
