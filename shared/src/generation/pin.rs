//! pin.json: which generation stays current, whatever the source says, until somebody takes it away.
//!
//! `runbook-ingest rollback` writes it; ingest then publishes nothing and prunes nothing of it, and every
//! reply of the daemon names it. A pin that cannot be read still holds: what it says is not known, so
//! nothing is published over it.

use super::publish::{replace_public_file, sync_dir};
use crate::error::{Hint, IoContext, PathError};
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::{Path, PathBuf};

/// The file's name in the data directory.
pub const FILE_NAME: &str = "pin.json";
/// The longest reason, in bytes: it stands in every reply.
pub const REASON_BYTES_MAX: usize = 200;

/// A generation that stays current.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Pin {
    /// The generation.
    pub generation: String,
    /// Since when, RFC 3339, UTC.
    pub pinned_at: String,
    /// The user who did it.
    pub by: String,
    /// Why, where it was said; one line.
    pub reason: Option<String>,
}

/// A pin that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PinError {
    /// The file cannot be read.
    #[error(transparent)]
    File(#[from] PathError),
    /// It does not hold a pin.
    #[error("`{}` is damaged: {message}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        message: String,
    },
}

impl Hint for PinError {
    fn hint(&self) -> Option<String> {
        Some(
            "nothing is published until it is gone: `runbook-ingest unpin`, or `runbook-ingest rollback --to GENERATION` to pin again"
                .into(),
        )
    }
}

impl Pin {
    /// Reads the pin; none when nothing is pinned.
    ///
    /// # Errors
    /// When there is one that cannot be read: it still holds.
    pub fn read(data: &Path) -> Result<Option<Self>, PinError> {
        let path = data.join(FILE_NAME);
        match fs::read(&path).at("read", &path) {
            Ok(bytes) => serde_json::from_slice(&bytes)
                .map(Some)
                .map_err(|e| PinError::Damaged { path, message: e.to_string() }),
            Err(e) if e.is_not_found() => Ok(None),
            Err(e) => Err(e.into()),
        }
    }

    /// Replaces the pin in one step. Everybody who may enter the data directory may read it, whoever
    /// writes it and with whatever umask: the daemon must see it.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write(&self, data: &Path) -> Result<(), PathError> {
        let bytes = serde_json::to_vec_pretty(self).unwrap_or_default();
        replace_public_file(&data.join(FILE_NAME), &bytes)
    }

    /// Takes the pin away, also one that cannot be read; false when there was none.
    ///
    /// # Errors
    /// When it cannot be removed.
    pub fn remove(data: &Path) -> Result<bool, PathError> {
        let path = data.join(FILE_NAME);
        match fs::remove_file(&path).at("remove", &path) {
            Ok(()) => sync_dir(data).map(|()| true),
            Err(e) if e.is_not_found() => Ok(false),
            Err(e) => Err(e),
        }
    }

    /// `since 2026-12-01T02:35:47Z by anna: the new restore steps are wrong`.
    #[must_use]
    pub fn story(&self) -> String {
        let reason = self.reason.as_ref().map_or_else(String::new, |r| format!(": {r}"));
        format!("since {} by {}{reason}", self.pinned_at, self.by)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn it_is_read_as_written_and_a_damaged_one_still_holds() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(Pin::read(dir.path()).unwrap(), None);
        assert!(!Pin::remove(dir.path()).unwrap());
        let pin = Pin {
            generation: "20261201T000000Z-0123456789abcdef".into(),
            pinned_at: "2026-12-01T00:00:00Z".into(),
            by: "anna".into(),
            reason: Some("wrong steps".into()),
        };
        pin.write(dir.path()).unwrap();
        assert_eq!(Pin::read(dir.path()).unwrap(), Some(pin.clone()));
        assert_eq!(pin.story(), "since 2026-12-01T00:00:00Z by anna: wrong steps");
        let path = dir.path().join(FILE_NAME);
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o644);
        for text in ["", "{", "[]", r#"{"generation": 5}"#] {
            fs::write(&path, text).unwrap();
            let error = Pin::read(dir.path()).unwrap_err();
            assert!(error.to_string().contains("pin.json` is damaged"), "{error}");
            assert!(error.hint().unwrap().contains("unpin"));
        }
        assert!(Pin::remove(dir.path()).unwrap());
        assert_eq!(Pin::read(dir.path()).unwrap(), None);
    }
}
