//! A directory for what must not stay: only this user may enter it, and it is removed again however the
//! command ends.

use runbook_shared::error::PathError;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// The directory, while it lives.
#[derive(Debug)]
pub struct Scratch(PathBuf);

impl Scratch {
    /// Makes one among the temporary files; its name says what for.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn new(purpose: &str) -> Result<Self, PathError> {
        // A name that somebody else took first is not used.
        let mut tries = 0;
        loop {
            let name = format!("runbook-ingest-{purpose}-{}-{tries}", std::process::id());
            let dir = std::env::temp_dir().join(name);
            match std::fs::DirBuilder::new().mode(0o700).create(&dir) {
                Ok(()) => return Ok(Self(dir)),
                Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists && tries < 100 => {
                    tries += 1;
                }
                Err(source) => {
                    return Err(PathError { action: "create directory", path: dir, source });
                }
            }
        }
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What cannot be removed lies in the directory for temporary files.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
