//! One ingest at a time on a data directory: an advisory lock that the kernel drops with the process,
//! so a killed run blocks nothing.

use runbook_shared::error::{IoContext, PathError};
use rustix::fs::{FlockOperation, flock};
use std::fs::File;
use std::path::{Path, PathBuf};

/// The lock file's name in the data directory.
const FILE_NAME: &str = "ingest.lock";

/// The lock, held until dropped.
#[derive(Debug)]
pub struct Lock {
    _file: File,
}

/// Why the lock is not held.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Another run holds it.
    #[error("another ingest is at work on `{}`", .0.display())]
    Busy(PathBuf),
    /// It cannot be made.
    #[error(transparent)]
    File(#[from] PathError),
}

impl Lock {
    /// Takes the lock; waits for another run to end, unless told not to.
    ///
    /// # Errors
    /// [`LockError::Busy`] when not waiting and another run holds it.
    pub fn take(data: &Path, wait: bool) -> Result<Self, LockError> {
        std::fs::create_dir_all(data).at("create directory", data)?;
        let path = data.join(FILE_NAME);
        let file = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .open(&path)
            .at("open", &path)?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(Self { _file: file }),
            Err(rustix::io::Errno::WOULDBLOCK) if !wait => {
                return Err(LockError::Busy(data.to_owned()));
            }
            Err(rustix::io::Errno::WOULDBLOCK) => {}
            Err(e) => return Err(PathError { action: "lock", path, source: e.into() }.into()),
        }
        tracing::warn!("another ingest is at work on `{}`; waiting for it", data.display());
        wait_for(&file, &path)?;
        Ok(Self { _file: file })
    }
}

/// Holds the data directory itself for the moment in which last-run.json is replaced: a run that
/// leaves at once replaces it too, while another holds the [`Lock`].
///
/// # Errors
/// When the directory cannot be opened or locked.
pub fn for_last_run(data: &Path) -> Result<File, PathError> {
    let dir = File::open(data).at("open", data)?;
    wait_for(&dir, data)?;
    Ok(dir)
}

fn wait_for(file: &File, path: &Path) -> Result<(), PathError> {
    loop {
        match flock(file, FlockOperation::LockExclusive) {
            Ok(()) => return Ok(()),
            Err(rustix::io::Errno::INTR) => {}
            Err(e) => {
                return Err(PathError { action: "lock", path: path.to_owned(), source: e.into() });
            }
        }
    }
}
