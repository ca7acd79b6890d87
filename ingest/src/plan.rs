//! Decides whether there is work, and names why: never a bool.

use runbook_shared::embed::EmbedderId;
use runbook_shared::generation::manifest::{self, CONTENT_VERSION, Manifest};
use runbook_shared::generation::{self, GENERATIONS, OpenError};
use std::os::unix::fs::MetadataExt;
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
    /// It was made with other options, another embedder, other rules of content, or from another source.
    OptionMismatch,
    /// The source has moved on.
    ContentMismatch,
    /// Nothing is to be done.
    UpToDate,
}

/// What a generation would be made from now.
#[derive(Clone, Debug)]
pub struct Wanted<'a> {
    /// The source, as the manifest names it.
    pub source: &'a str,
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
///
/// The size of every file is checked, and the content of those that were touched after the manifest
/// was written, which is last; `verify` reads them all.
#[must_use]
pub fn current(data: &Path) -> (Option<(String, Manifest)>, IndexState) {
    match examine(data) {
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

/// Id and manifest of the current generation, looked at as [`current`] says.
///
/// # Errors
/// When there is none, or it cannot be trusted.
pub fn examine(data: &Path) -> Result<(String, Manifest), OpenError> {
    let id = generation::current_id(data)?;
    let manifest = generation::read_manifest(data, &id)?;
    check_files(&data.join(GENERATIONS).join(&id), &manifest)
        .map_err(|message| OpenError::Corrupt { id: id.clone(), message })?;
    Ok((id, manifest))
}

fn check_files(dir: &Path, manifest: &Manifest) -> Result<(), String> {
    let written = std::fs::metadata(dir.join(manifest::FILE_NAME))
        .map(|m| (m.mtime(), m.mtime_nsec()))
        .map_err(|e| format!("`{}`: {e}", manifest::FILE_NAME))?;
    for (name, entry) in &manifest.files {
        let path = dir.join(name);
        let found = std::fs::metadata(&path).ok().filter(|m| m.len() == entry.bytes);
        let Some(found) = found else {
            return Err(format!("`{name}` is missing or not of its size"));
        };
        // A change of the file sets this time, and nothing can set it back.
        let touched = (found.ctime(), found.ctime_nsec()) > written;
        if touched && hash(&path).as_ref().ok() != Some(&entry.blake3) {
            return Err(format!("`{name}` does not have the hash that the manifest says"));
        }
    }
    Ok(())
}

fn hash(path: &Path) -> std::io::Result<String> {
    let mut hasher = blake3::Hasher::new();
    std::io::copy(&mut std::fs::File::open(path)?, &mut hasher)?;
    Ok(hasher.finalize().to_hex().to_string())
}

/// Compares the current generation with what is wanted.
#[must_use]
pub fn compare(manifest: &Manifest, wanted: &Wanted<'_>) -> IndexState {
    if manifest.content_version != CONTENT_VERSION
        || manifest.option_hash != wanted.option_hash
        || manifest.embedder.as_ref() != wanted.embedder
        || manifest.source != wanted.source
    {
        return IndexState::OptionMismatch;
    }
    let same_commit = manifest.commit.as_deref() == wanted.commit;
    let same_tree = wanted.tree_hash.is_none_or(|hash| manifest.tree_hash.as_deref() == Some(hash));
    if same_commit && same_tree { IndexState::UpToDate } else { IndexState::ContentMismatch }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A manifest as one that was written; only what is compared matters.
    fn manifest(embedder: Option<&EmbedderId>) -> Manifest {
        let value = serde_json::json!({
            "format_version": manifest::FORMAT_VERSION, "content_version": CONTENT_VERSION,
            "written_by": "x", "source": "s", "branch": null, "commit": "c", "tree_hash": null,
            "indexed_at": "2026-01-01T00:00:00Z", "embedder": embedder, "option_hash": "o",
            "options": {}, "forge": null, "graph": null, "calibration": null, "files": {},
            "counts": { "documents": 0, "indexed": 0, "failed": 0, "skipped": {}, "sections": 0,
                "chunks": 0, "windows": 0 },
        });
        serde_json::from_value(value).unwrap()
    }

    fn wanted(embedder: Option<&EmbedderId>) -> Wanted<'_> {
        Wanted { source: "s", commit: Some("c"), tree_hash: None, option_hash: "o", embedder }
    }

    fn state(before: Option<&EmbedderId>, now: Option<&EmbedderId>) -> IndexState {
        compare(&manifest(before), &wanted(now))
    }

    /// IX-16: vectors of two models are never mixed.
    #[test]
    fn whatever_vectors_depend_on_is_a_rebuild_when_it_changes() {
        let id = EmbedderId {
            id: "m".into(),
            dim: 384,
            pooling: "mean".into(),
            query_prefix: String::new(),
            passage_prefix: String::new(),
            model_sha256: "a".into(),
            tokenizer_sha256: "b".into(),
        };
        assert_eq!(state(Some(&id), Some(&id)), IndexState::UpToDate);
        assert_eq!(state(None, None), IndexState::UpToDate);
        let changes: [fn(&mut EmbedderId); 7] = [
            |e| e.id = "n".into(),
            |e| e.dim = 768,
            |e| e.pooling = "cls".into(),
            |e| e.query_prefix = "query: ".into(),
            |e| e.passage_prefix = "passage: ".into(),
            |e| e.model_sha256 = "c".into(),
            |e| e.tokenizer_sha256 = "c".into(),
        ];
        for change in changes {
            let mut other = id.clone();
            change(&mut other);
            assert_eq!(state(Some(&id), Some(&other)), IndexState::OptionMismatch, "{other:?}");
        }
        assert_eq!(state(Some(&id), None), IndexState::OptionMismatch);
        assert_eq!(state(None, Some(&id)), IndexState::OptionMismatch);
        let other = Wanted { option_hash: "p", ..wanted(Some(&id)) };
        assert_eq!(compare(&manifest(Some(&id)), &other), IndexState::OptionMismatch);
        let mut older = manifest(Some(&id));
        older.content_version = CONTENT_VERSION - 1;
        assert_eq!(compare(&older, &wanted(Some(&id))), IndexState::OptionMismatch);
    }
}
