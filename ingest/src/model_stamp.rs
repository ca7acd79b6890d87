//! The embedder's identity without reading the model: a run that finds nothing new must not hash
//! twenty megabytes first. The stamp holds the sizes and times of the files it was made from.

use runbook_shared::embed::{EmbedError, EmbedderId, ModelFiles};
use runbook_shared::generation::publish::replace_file;
use runbook_shared::locate::{DEFAULT_MODEL, Places};
use serde::{Deserialize, Serialize};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

const FILE_NAME: &str = "model-stamp.json";
/// The files that make a model what it is.
const FILES: [&str; 4] = ["model.onnx", "tokenizer.json", "config.json", "runbook-model.toml"];

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Stamp {
    dir: PathBuf,
    files: Vec<Option<(u64, i64, i64, u64)>>,
    id: EmbedderId,
}

/// The identity of the model `name`, from the stamp where it still fits.
///
/// # Errors
/// When the model is missing or not readable.
pub fn identify(
    data: &Path,
    places: &Places,
    name: Option<&str>,
) -> Result<EmbedderId, EmbedError> {
    let name = name.unwrap_or(DEFAULT_MODEL);
    let dir = places
        .model(name)
        .map_err(|searched| EmbedError::NoModel { name: name.to_owned(), searched })?;
    let files = describe(&dir);
    let path = data.join(FILE_NAME);
    let stamp =
        std::fs::read(&path).ok().and_then(|bytes| serde_json::from_slice::<Stamp>(&bytes).ok());
    if let Some(stamp) = stamp.filter(|s| s.dir == dir && s.files == files) {
        return Ok(stamp.id);
    }
    let id = ModelFiles::read(places, name)?.id().clone();
    let stamp = Stamp { dir, files, id: id.clone() };
    let bytes = serde_json::to_vec(&stamp).unwrap_or_default();
    replace_file(&path, &bytes)?;
    Ok(id)
}

fn describe(dir: &Path) -> Vec<Option<(u64, i64, i64, u64)>> {
    FILES
        .iter()
        .map(|file| {
            std::fs::metadata(dir.join(file))
                .ok()
                .map(|m| (m.len(), m.mtime(), m.mtime_nsec(), m.ino()))
        })
        .collect()
}
