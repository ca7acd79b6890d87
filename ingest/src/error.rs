//! Why a run fails, and the exit code that says so.

use crate::assemble::AssembleError;
use crate::config::ConfigError;
use crate::lock::LockError;
use crate::redaction::Secret;
use crate::rollback::RollbackError;
use crate::source::SourceError;
use runbook_shared::config_file::ConfigFileError;
use runbook_shared::embed::EmbedError;
use runbook_shared::error::{Hint, PathError};
use runbook_shared::generation::OpenError;
use runbook_shared::generation::pin::PinError;

/// Published, or up to date.
pub const EXIT_OK: u8 = 0;
/// Failed; the previous generation is untouched.
pub const EXIT_FAILED: u8 = 1;
/// Wrong usage or configuration.
pub const EXIT_USAGE: u8 = 2;
/// Published, but some documents failed.
pub const EXIT_PARTIAL: u8 = 3;

/// Why a run fails.
#[derive(Debug, thiserror::Error)]
pub enum IngestError {
    /// The configuration is not usable.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The data directory holds another source.
    #[error("`{data}` holds `{found}`, not `{wanted}`")]
    OtherSource {
        /// The data directory.
        data: String,
        /// Its source.
        found: String,
        /// The source that was asked for.
        wanted: String,
    },
    /// Another run is at work.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// The source cannot be read.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// The remote is empty, though a generation exists.
    #[error("`{0}` has no commit any more")]
    Emptied(String),
    /// Nothing is left to index, though a generation exists.
    #[error(
        "`{source_name}` holds no document any more that is to be indexed; the generation before has {before}"
    )]
    Deserted {
        /// The source.
        source_name: String,
        /// Documents in the current generation.
        before: u64,
    },
    /// Secrets were found, and `--fail-on-secret` is set.
    #[error("{} secrets were found, and nothing is published:{}", .0.len(), listed(.0))]
    Secrets(Vec<Secret>),
    /// There is no embedder.
    #[error(transparent)]
    Embedder(#[from] EmbedError),
    /// The draft cannot be written.
    #[error(transparent)]
    Assemble(#[from] AssembleError),
    /// A file operation failed.
    #[error(transparent)]
    File(#[from] PathError),
    /// What was written does not open.
    #[error("the new generation does not open, and is not published: {0}")]
    Verify(#[source] OpenError),
    /// The new generation cannot be asked.
    #[error("the new generation cannot be asked, and is not published: {0}")]
    Probe(#[from] crate::probe::ProbeError),
    /// The current generation does not open.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The program is wrong.
    #[error("this is a bug: the run panicked: {0}")]
    Panic(String),
    /// The pin cannot be read.
    #[error(transparent)]
    Pin(#[from] PinError),
    /// The pinned generation cannot be trusted.
    #[error("the pinned generation cannot be served: {0}")]
    Pinned(#[source] OpenError),
    /// No generation can be gone back to.
    #[error(transparent)]
    Rollback(#[from] RollbackError),
    /// A document that was asked for is not there.
    #[error("the source has no document `{0}`")]
    NoSuchDocument(String),
}

fn listed(secrets: &[Secret]) -> String {
    secrets.iter().map(|s| format!("\n{}:{}: {}", s.path, s.line, s.rule)).collect()
}

impl From<ConfigFileError> for IngestError {
    fn from(e: ConfigFileError) -> Self {
        Self::Config(e.into())
    }
}

impl Hint for IngestError {
    fn hint(&self) -> Option<String> {
        if self.says_disk_is_full() {
            return Some(
                "the disk is full: a run needs about three times the size of one generation".into(),
            );
        }
        match self {
            Self::Config(e) => e.hint(),
            Self::OtherSource { .. } => Some("use another --data for another source, or --change-source to replace it".into()),
            Self::Lock(LockError::Busy(_)) => Some("leave out --no-wait to wait for it".into()),
            Self::Source(e) => e.hint(),
            Self::Emptied(_) => Some("the previous generation keeps serving; push a commit, or remove the data directory".into()),
            Self::Deserted { .. } => Some("the previous generation keeps serving; check --branch, --subdir, --include and --exclude, or remove the data directory to begin anew".into()),
            Self::Embedder(e) => e.hint(),
            Self::Pin(e) => e.hint(),
            Self::Pinned(_) => Some("`runbook-ingest rollback --list` shows what is kept, `rollback --to GENERATION` pins another, and `runbook-ingest unpin` lets the next run build anew".into()),
            Self::Rollback(e) => e.hint(),
            Self::Open(OpenError::Corrupt { .. }) => Some("run `runbook-ingest` again: it rebuilds the generation; where it finds nothing new, remove `current` in the data directory first".into()),
            Self::Open(e) | Self::Verify(e) => e.hint(),
            Self::Secrets(_) => Some("take them out of the runbooks and change them where they are used; for one that is none, put `runbook-secrets: allow` in a comment on its line or name it in `[[secrets.allow]]`".into()),
            Self::Panic(_) => Some("report it, with the source if you can; the previous generation keeps serving".into()),
            _ => None,
        }
    }
}

impl IngestError {
    /// True when the disk, or a quota on it, is used up. libgit2 and tantivy hand on only the text.
    fn says_disk_is_full(&self) -> bool {
        let text = self.to_string();
        ["(os error 28)", "No space left on device", "(os error 122)", "Disk quota exceeded"]
            .iter()
            .any(|part| text.contains(part))
    }

    /// The exit code.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Config(_) | Self::OtherSource { .. } => EXIT_USAGE,
            _ => EXIT_FAILED,
        }
    }
}
