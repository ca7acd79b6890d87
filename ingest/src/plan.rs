//! Decides whether there is work, and names why: never a bool.

use runbook_shared::embed::EmbedderId;
use runbook_shared::generation::manifest::{CONTENT_VERSION, Manifest};
use runbook_shared::generation::{self, GENERATIONS, OpenError};
use std::path::Path;

/// How the current generation relates to what was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IndexState {
    /// There is no generation.
    Missing,
    /// There is one, but it cannot be trusted.
    Corrupt,
    /// It has another layout.
    FormatMismatch,
    /// It was made with other options, another embedder, or other rules of content.
    OptionMismatch,
    /// The source has moved on.
    ContentMismatch,
    /// Nothing is to be done.
    UpToDate,
}

/// What a generation would be made from now.
#[derive(Clone, Debug)]
pub struct Wanted<'a> {
    /// The commit, or none.
    pub commit: Option<&'a str>,
    /// The hash of the tree, for sources without commits.
    pub tree_hash: Option<&'a str>,
    /// The hash of the options.
    pub option_hash: &'a str,
    /// The embedder.
    pub embedder: Option<&'a EmbedderId>,
}

/// The manifest of the current generation, and what is wrong where there is none.
#[must_use]
pub fn current(data: &Path) -> (Option<(String, Manifest)>, IndexState) {
    let found = generation::current_id(data).and_then(|id| {
        let manifest = generation::read_manifest(data, &id)?;
        let dir = data.join(GENERATIONS).join(&id);
        for (name, entry) in &manifest.files {
            if std::fs::metadata(dir.join(name)).map(|m| m.len()).ok() != Some(entry.bytes) {
                let message = format!("`{name}` is missing or not of its size");
                return Err(OpenError::Corrupt { id, message });
            }
        }
        Ok((id, manifest))
    });
    match found {
        Ok(found) => (Some(found), IndexState::UpToDate),
        Err(OpenError::Missing(_)) => (None, IndexState::Missing),
        Err(e @ OpenError::FormatMismatch { .. }) => {
            tracing::warn!("{e}; it is rebuilt");
            (None, IndexState::FormatMismatch)
        }
        Err(e) => {
            tracing::warn!("{e}; it is rebuilt");
            (None, IndexState::Corrupt)
        }
    }
}

/// Compares the current generation with what is wanted.
#[must_use]
pub fn compare(manifest: &Manifest, wanted: &Wanted<'_>) -> IndexState {
    if manifest.content_version != CONTENT_VERSION
        || manifest.option_hash != wanted.option_hash
        || manifest.embedder.as_ref() != wanted.embedder
    {
        return IndexState::OptionMismatch;
    }
    let same_commit = manifest.commit.as_deref() == wanted.commit;
    let same_tree = wanted.tree_hash.is_none_or(|hash| manifest.tree_hash.as_deref() == Some(hash));
    if same_commit && same_tree { IndexState::UpToDate } else { IndexState::ContentMismatch }
}
