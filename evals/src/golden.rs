//! The files under evals/golden, three a suite: which gold sections were approved, what the ranking
//! was, and what the totals were. They are read by people as diffs, so they are sorted and stable.

pub mod approved;
pub mod baseline;
pub mod ranking;

use anyhow::{Context, Result};
use std::fs;
use std::io::ErrorKind;
use std::path::Path;

/// The text of a golden file; none when there is no such file.
///
/// # Errors
/// When it cannot be read.
pub fn read(file: &Path) -> Result<Option<String>> {
    match fs::read_to_string(file) {
        Ok(text) => Ok(Some(text)),
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(None),
        Err(e) => Err(e).with_context(|| format!("`{}`", file.display())),
    }
}

/// Writes a golden file.
///
/// # Errors
/// When it cannot be written.
pub fn write(file: &Path, text: &str) -> Result<()> {
    if let Some(dir) = file.parent() {
        fs::create_dir_all(dir).with_context(|| format!("`{}`", dir.display()))?;
    }
    fs::write(file, text).with_context(|| format!("`{}`", file.display()))
}
