//! The tree as the virtual bash's file system: nothing else is there.

use super::notes::Notes;
use crate::tree::error::TreeError;
use crate::tree::path;
use crate::tree::router::View;
use crate::tree::store::{Kind, Meta};
use async_trait::async_trait;
use bashkit::{DirEntry, FileSystem, FileSystemExt, FileType, Metadata, Result};
use std::io::{Error, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

/// What swallows everything and gives nothing.
pub const NULL: &str = "/dev/null";

/// The file system.
pub struct TreeFiles {
    view: View,
    notes: Arc<Notes>,
}

impl TreeFiles {
    /// Over a view; what is read is noted.
    #[must_use]
    pub fn new(view: View, notes: Arc<Notes>) -> Self {
        Self { view, notes }
    }

    fn path(path: &Path) -> Result<String> {
        let text = path
            .to_str()
            .ok_or_else(|| Error::new(ErrorKind::InvalidInput, "the path is not UTF-8"))?;
        path::resolve("/", text).map_err(|e| raise(&e))
    }
}

/// An error of the tree as the operating system would say it.
pub fn strerror(e: &TreeError) -> String {
    match e {
        TreeError::NotFound(_) => "No such file or directory".into(),
        TreeError::IsDirectory(_) => "Is a directory".into(),
        TreeError::NotDirectory(_) => "Not a directory".into(),
        TreeError::ReadOnly(_) => "Read-only file system".into(),
        TreeError::BadPath { why, .. } => (*why).into(),
        other => other.to_string(),
    }
}

fn raise(e: &TreeError) -> bashkit::Error {
    let kind = match e {
        TreeError::NotFound(_) => ErrorKind::NotFound,
        TreeError::IsDirectory(_) => ErrorKind::IsADirectory,
        TreeError::NotDirectory(_) => ErrorKind::NotADirectory,
        TreeError::ReadOnly(_) => ErrorKind::ReadOnlyFilesystem,
        TreeError::TooLarge { .. } => ErrorKind::StorageFull,
        TreeError::BadPath { .. } => ErrorKind::InvalidInput,
        TreeError::BadRequest(m) if m.ends_with("directory not empty") => {
            ErrorKind::DirectoryNotEmpty
        }
        _ => ErrorKind::Other,
    };
    Error::new(kind, strerror(e)).into()
}

fn metadata(meta: Meta, writable: bool) -> Metadata {
    let at = UNIX_EPOCH + Duration::from_secs(u64::try_from(meta.modified).unwrap_or(0));
    let (file_type, mode) = match meta.kind {
        Kind::File => (FileType::File, if writable { 0o644 } else { 0o444 }),
        Kind::Dir => (FileType::Directory, if writable { 0o755 } else { 0o555 }),
    };
    Metadata { file_type, size: meta.size, mode, modified: at, created: at }
}

fn unsupported<T>(what: &str) -> Result<T> {
    Err(Error::new(ErrorKind::Unsupported, format!("{what} are not supported here")).into())
}

impl FileSystemExt for TreeFiles {
    fn backend_kind(&self) -> &'static str {
        "tree"
    }
}

#[async_trait]
impl FileSystem for TreeFiles {
    async fn read_file(&self, path: &Path) -> Result<Vec<u8>> {
        let path = Self::path(path)?;
        if path == NULL {
            return Ok(Vec::new());
        }
        self.view.check_time().map_err(|e| raise(&e))?;
        let content = self.view.read_bytes(&path).map_err(|e| self.said(&e))?;
        self.notes.touch(self.view.source(&path, None));
        Ok(content.to_vec())
    }

    async fn write_file(&self, path: &Path, content: &[u8]) -> Result<()> {
        let path = Self::path(path)?;
        if path == NULL {
            return Ok(());
        }
        self.above(&path)?;
        self.view.write_bytes(&path, content).map_err(|e| self.said(&e))
    }

    async fn append_file(&self, path: &Path, content: &[u8]) -> Result<()> {
        let path = Self::path(path)?;
        if path == NULL {
            return Ok(());
        }
        self.above(&path)?;
        self.view.write_check(&path).map_err(|e| self.said(&e))?;
        let mut all = match self.view.read_bytes(&path) {
            Ok(there) => there.to_vec(),
            Err(TreeError::NotFound(_)) => Vec::new(),
            Err(e) => return Err(self.said(&e)),
        };
        all.extend_from_slice(content);
        self.view.write_bytes(&path, &all).map_err(|e| self.said(&e))
    }

    async fn mkdir(&self, path: &Path, recursive: bool) -> Result<()> {
        let path = Self::path(path)?;
        if !recursive {
            if self.view.stat(&path).is_ok() {
                return Err(Error::new(ErrorKind::AlreadyExists, "File exists").into());
            }
            self.above(&path)?;
        }
        self.view.make_dir(&path).map_err(|e| self.said(&e))
    }

    async fn remove(&self, path: &Path, recursive: bool) -> Result<()> {
        let path = Self::path(path)?;
        let result = match self.view.stat(&path) {
            Ok(meta) if meta.kind == Kind::Dir && recursive => self.view.remove_all(&path),
            Ok(_) => self.view.remove(&path),
            Err(e) => Err(e),
        };
        result.map_err(|e| self.said(&e))
    }

    async fn stat(&self, path: &Path) -> Result<Metadata> {
        let path = Self::path(path)?;
        if path == NULL {
            return Ok(metadata(Meta { kind: Kind::File, size: 0, modified: 0 }, true));
        }
        self.view.check_time().map_err(|e| raise(&e))?;
        let meta = self.view.stat(&path).map_err(|e| self.said(&e))?;
        Ok(metadata(meta, self.view.write_check(&path).is_ok()))
    }

    async fn read_dir(&self, path: &Path) -> Result<Vec<DirEntry>> {
        let path = Self::path(path)?;
        self.view.check_time().map_err(|e| raise(&e))?;
        let writable = self.view.write_check(&path::join(&path, "x")).is_ok();
        let entries = self.view.list(&path).map_err(|e| self.said(&e))?;
        Ok(entries
            .into_iter()
            .map(|e| DirEntry { name: e.name, metadata: metadata(e.meta, writable) })
            .collect())
    }

    async fn exists(&self, path: &Path) -> Result<bool> {
        let Ok(path) = Self::path(path) else { return Ok(false) };
        Ok(path == NULL || self.view.stat(&path).is_ok())
    }

    async fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        self.copy(from, to).await?;
        let from = Self::path(from)?;
        self.view.remove(&from).map_err(|e| self.said(&e))
    }

    async fn copy(&self, from: &Path, to: &Path) -> Result<()> {
        let from = Self::path(from)?;
        let to = Self::path(to)?;
        let content = self.view.read_bytes(&from).map_err(|e| self.said(&e))?;
        self.notes.touch(self.view.source(&from, None));
        self.view.write_bytes(&to, &content).map_err(|e| self.said(&e))
    }

    async fn symlink(&self, _: &Path, _: &Path) -> Result<()> {
        unsupported("links")
    }

    async fn read_link(&self, _: &Path) -> Result<PathBuf> {
        Err(Error::new(ErrorKind::InvalidInput, "Invalid argument").into())
    }

    async fn set_modified_time(&self, path: &Path, _: std::time::SystemTime) -> Result<()> {
        // Times are those of the last write; what can be written is touched in silence.
        let path = Self::path(path)?;
        self.view.write_check(&path).map_err(|e| self.said(&e))
    }

    async fn chmod(&self, _: &Path, _: u32) -> Result<()> {
        unsupported("modes")
    }
}

impl TreeFiles {
    /// The error for the shell; a mount that does not work is said loudly.
    fn said(&self, e: &TreeError) -> bashkit::Error {
        if matches!(e, TreeError::Unavailable { .. } | TreeError::Stopped(_)) {
            self.notes.fail(e.code(), e.to_string(), e.hint());
        }
        raise(e)
    }

    /// As on a disk, a file is written into a directory that is there.
    fn above(&self, path: &str) -> Result<()> {
        let (dir, _) = path::split(path);
        match self.view.stat(dir) {
            Ok(meta) if meta.kind == Kind::Dir => Ok(()),
            Ok(_) => Err(raise(&TreeError::NotDirectory(dir.into()))),
            Err(e) => {
                // What cannot be written at all says so.
                self.view.write_check(path).map_err(|e| self.said(&e))?;
                Err(self.said(&e))
            }
        }
    }
}
