//! last-run.json: what the last ingest found, written by every run, so that a dead timer does not
//! look like a quiet repository.

use crate::error::{IoContext, PathError};
use crate::generation::publish::replace_file;
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::Path;

/// The file's name in the data directory.
pub const FILE_NAME: &str = "last-run.json";

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "IngestOutcome")]
pub enum Outcome {
    /// A new generation is current.
    Published,
    /// Nothing had changed.
    UpToDate,
    /// The source was checked, and nothing was built: a generation is pinned.
    Pinned,
    /// Another run was at work, and this one left.
    Busy,
    /// The run failed; the previous generation is untouched.
    Failed,
}

/// What the last run found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LastRun {
    /// When the run ended, RFC 3339, UTC.
    pub finished_at: String,
    /// How it ended.
    pub outcome: Outcome,
    /// What failed, in one line.
    pub error: Option<String>,
    /// When the source was last reached and its newest state known, RFC 3339, UTC. A run that does
    /// not reach it keeps the time of the one before.
    pub source_checked_at: Option<String>,
    /// The source, without credentials.
    pub source: String,
    /// The generation that is current after the run.
    pub generation: Option<String>,
    /// Its commit.
    pub commit: Option<String>,
    /// The run's report, as printed by `--json`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub report: Option<serde_json::Value>,
}

impl LastRun {
    /// Reads the file; none when no run has ended yet, or the file is not whole.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn read(data: &Path) -> Result<Option<Self>, PathError> {
        let path = data.join(FILE_NAME);
        match fs::read(&path).at("read", &path) {
            Ok(bytes) => Ok(serde_json::from_slice(&bytes).ok()),
            Err(e) if e.is_not_found() => Ok(None),
            Err(e) => Err(e),
        }
    }

    /// Replaces the file.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write(&self, data: &Path) -> Result<(), PathError> {
        let bytes = serde_json::to_vec_pretty(self).unwrap_or_default();
        replace_file(&data.join(FILE_NAME), &bytes)
    }
}
