//! A read-only mount of a daemon, loaded as a whole.

use crate::tree::error::TreeError;
use crate::tree::store::{Content, Entry, Kind, Meta, Store};
use crate::tree::stores::children;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A read-only mount that was loaded.
pub(super) struct Fixed {
    files: BTreeMap<String, (Arc<Vec<u8>>, i64)>,
}

impl Fixed {
    /// Of files by path, with the second at which each was written.
    pub(super) fn new(files: BTreeMap<String, (Arc<Vec<u8>>, i64)>) -> Self {
        Self { files }
    }

    fn metas(&self) -> impl Iterator<Item = (&str, Meta)> {
        self.files.iter().map(|(path, (bytes, modified))| {
            let size = bytes.len() as u64;
            (path.as_str(), Meta { kind: Kind::File, size, modified: *modified })
        })
    }

    fn is_dir(&self, path: &str) -> bool {
        let prefix = format!("{path}/");
        path.is_empty()
            || self
                .files
                .range(prefix.clone()..)
                .next()
                .is_some_and(|(p, _)| p.starts_with(&prefix))
    }
}

impl Store for Fixed {
    fn writable(&self) -> bool {
        false
    }

    fn stat(&self, _: &str, path: &str) -> Result<Meta, TreeError> {
        if self.is_dir(path) {
            return Ok(Meta { kind: Kind::Dir, size: 0, modified: 0 });
        }
        let (bytes, modified) =
            self.files.get(path).ok_or_else(|| TreeError::NotFound(path.into()))?;
        Ok(Meta { kind: Kind::File, size: bytes.len() as u64, modified: *modified })
    }

    fn list(&self, _: &str, path: &str) -> Result<Vec<Entry>, TreeError> {
        if self.files.contains_key(path) {
            return Err(TreeError::NotDirectory(path.into()));
        }
        match children(self.metas(), path) {
            Some(entries) => Ok(entries),
            None => Err(TreeError::NotFound(path.into())),
        }
    }

    fn read(&self, _: &str, path: &str) -> Result<Content, TreeError> {
        match self.files.get(path) {
            Some((bytes, _)) => Ok(Content::shared(Arc::<Vec<u8>>::clone(bytes), 0..bytes.len())),
            None if self.is_dir(path) => Err(TreeError::IsDirectory(path.into())),
            None => Err(TreeError::NotFound(path.into())),
        }
    }
}
