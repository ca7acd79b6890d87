//! `reports.jsonl`: one report a line, appended and synced before it is acknowledged.
//!
//! The file only grows, up to a limit from which reports are refused: nothing that was acknowledged
//! is ever dropped. A line that a crash has cut is closed at the next start, so that it spoils no
//! other; readers leave it out.

use runbook_shared::error::{IoContext, PathError};
use std::fs::{self, File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// The file's name.
pub const FILE_NAME: &str = "reports.jsonl";
/// The most bytes it grows to (64 MiB).
const FILE_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// The longest report, in bytes.
pub const REPORT_BYTES_MAX: usize = 64 * 1024;

/// Why a report was not taken.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// The file has reached its limit.
    #[error("`{}` has reached {FILE_BYTES_MAX} bytes", .0.display())]
    Full(PathBuf),
    /// One report is too long.
    #[error("the report is longer than {REPORT_BYTES_MAX} bytes")]
    TooLong,
    /// It cannot be written.
    #[error(transparent)]
    File(#[from] PathError),
}

/// The open file.
pub struct Reports {
    path: PathBuf,
    file: Mutex<File>,
}

/// Creates a directory that only its owner may read.
pub(super) fn private_dir(dir: &Path) -> Result<(), PathError> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(dir).at("create directory", dir)
}

/// Opens a file for appending, readable by its owner alone; a line that was cut is closed.
pub(super) fn open_lines(path: &Path) -> Result<File, PathError> {
    let mut file = OpenOptions::new()
        .create(true)
        .read(true)
        .append(true)
        .mode(0o600)
        .open(path)
        .at("open", path)?;
    let end = file.seek(SeekFrom::End(0)).at("read", path)?;
    if end > 0 {
        let mut last = [0u8];
        file.seek(SeekFrom::End(-1)).at("read", path)?;
        file.read_exact(&mut last).at("read", path)?;
        if last != *b"\n" {
            file.write_all(b"\n").at("write", path)?;
        }
    }
    Ok(file)
}

impl Reports {
    /// Opens or creates the file in a directory.
    ///
    /// # Errors
    /// When it cannot be created or written.
    pub fn open(dir: &Path) -> Result<Self, PathError> {
        private_dir(dir)?;
        let path = dir.join(FILE_NAME);
        let file = Mutex::new(open_lines(&path)?);
        Ok(Self { path, file })
    }

    /// Appends a report and syncs it. What fails halfway is cut off again.
    ///
    /// # Errors
    /// When the file is full, the report is too long, or the disk does not take it.
    pub fn append(&self, report: &serde_json::Value) -> Result<(), ReportError> {
        let line = format!("{report}\n");
        if line.len() > REPORT_BYTES_MAX {
            return Err(ReportError::TooLong);
        }
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let before = file.metadata().at("read", &self.path)?.len();
        if before + line.len() as u64 > FILE_BYTES_MAX {
            return Err(ReportError::Full(self.path.clone()));
        }
        let written = file.write_all(line.as_bytes()).and_then(|()| file.sync_data());
        if let Err(source) = written {
            // Best effort: a line that stays cut is closed at the next start.
            let _ = file.set_len(before);
            return Err(PathError { action: "write", path: self.path.clone(), source }.into());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_cut_line_spoils_no_other() {
        let dir = tempfile::tempdir().unwrap();
        let reports = Reports::open(dir.path()).unwrap();
        reports.append(&json!({"n": 1})).unwrap();
        let path = dir.path().join(FILE_NAME);
        OpenOptions::new().append(true).open(&path).unwrap().write_all(b"{\"n\": 2").unwrap();
        let again = Reports::open(dir.path()).unwrap();
        again.append(&json!({"n": 3})).unwrap();
        let text = fs::read_to_string(&path).unwrap();
        assert_eq!(text, "{\"n\":1}\n{\"n\": 2\n{\"n\":3}\n");
    }

    #[test]
    fn it_is_bounded_and_private() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        let reports = Reports::open(&dir.path().join("feedback")).unwrap();
        let long = json!("x".repeat(REPORT_BYTES_MAX));
        assert!(matches!(reports.append(&long), Err(ReportError::TooLong)));
        let path = dir.path().join("feedback").join(FILE_NAME);
        OpenOptions::new().write(true).open(&path).unwrap().set_len(FILE_BYTES_MAX).unwrap();
        assert!(matches!(reports.append(&json!(1)), Err(ReportError::Full(_))));
        let mode = |p: &Path| fs::metadata(p).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&path), mode(&dir.path().join("feedback"))), (0o600, 0o700));
    }
}
