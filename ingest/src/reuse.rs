//! What of the generation before can be used again: the chunks of documents that have not changed,
//! and its vector index, from which the next graph is extended.
//!
//! Only a generation of the same source, options, embedder, forge and rules is looked at, and no file
//! of it before its hash was checked. What does not fit is made anew; nothing here can fail a run.

use crate::document::{Document, Warning};
use crate::plan::IndexState;
use runbook_shared::chunk::{Chunk, DocumentRecord};
use runbook_shared::generation::GENERATIONS;
use runbook_shared::generation::manifest::{Forge, Manifest};
use rustc_hash::FxHashMap;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::fs::File;
use std::path::{Path, PathBuf};

/// The generation before.
pub struct Before<'a> {
    dir: PathBuf,
    manifest: &'a Manifest,
}

impl<'a> Before<'a> {
    /// The current generation, where nothing differs from what is wanted but the source's content.
    #[must_use]
    pub fn of(
        data: &Path,
        current: Option<&'a (String, Manifest)>,
        state: IndexState,
        forge: Option<&Forge>,
    ) -> Option<Self> {
        let (id, manifest) = current.filter(|_| state == IndexState::ContentMismatch)?;
        let same_program = manifest.written_by == crate::run::written_by();
        (same_program && manifest.forge.as_ref() == forge)
            .then(|| Self { dir: data.join(GENERATIONS).join(id), manifest })
    }

    /// The directory of its vector index, where all that a graph is extended from is as it was written.
    #[must_use]
    pub fn vectors(&self) -> Option<PathBuf> {
        let dir = Path::new("vectors");
        let needed = |name: &&String| {
            let file = Path::new(name.as_str());
            let rest = ["rows.f32", "windows.u32", "spans.i8", "spans.u32"];
            file.starts_with(dir) && !rest.iter().any(|r| file.ends_with(r))
        };
        let mut files = self.manifest.files.keys().filter(needed);
        files.all(|name| self.is_intact(name)).then(|| self.dir.join(dir))
    }

    /// Its documents, to be taken by path.
    #[must_use]
    pub fn documents(&self) -> Documents {
        self.read_documents().unwrap_or_default()
    }

    fn read_documents(&self) -> Option<Documents> {
        let records: Vec<DocumentRecord> = lines(&self.verified("documents.jsonl")?)?;
        let chunks: Vec<Chunk> = lines(&self.verified("chunks.jsonl")?)?;
        let report: Findings = serde_json::from_slice(&self.verified("report.json")?).ok()?;
        let mut by_path: FxHashMap<String, Known> = FxHashMap::default();
        // A path that is not UTF-8 is stored in another form than it is looked up by.
        for record in records.into_iter().filter(|r| r.raw_path.is_none()) {
            let name = format!("docs/{}", record.path);
            let blake3 = self.manifest.files.get(&name)?.blake3.clone();
            let known = Known { blake3, record, chunks: Vec::new(), warnings: Vec::new() };
            by_path.insert(known.record.path.clone(), known);
        }
        for chunk in chunks {
            if let Some(known) = by_path.get_mut(&chunk.path) {
                known.chunks.push(chunk);
            }
        }
        for warning in report.warnings {
            if let Some(known) = by_path.get_mut(&warning.path) {
                known.warnings.push(warning);
            }
        }
        Some(Documents { by_path })
    }

    fn is_intact(&self, name: &str) -> bool {
        let mut hasher = blake3::Hasher::new();
        let read =
            File::open(self.dir.join(name)).and_then(|f| hasher.update_reader(f).map(|_| ()));
        let hash = hasher.finalize().to_hex();
        read.is_ok() && self.manifest.files.get(name).is_some_and(|e| e.blake3 == hash.as_str())
    }

    /// The bytes of a file, if they are the ones that the manifest names.
    fn verified(&self, name: &str) -> Option<Vec<u8>> {
        let bytes = std::fs::read(self.dir.join(name)).ok()?;
        let hash = blake3::hash(&bytes).to_hex();
        (self.manifest.files.get(name)?.blake3 == hash.as_str()).then_some(bytes)
    }
}

fn lines<T: DeserializeOwned>(bytes: &[u8]) -> Option<Vec<T>> {
    let lines = bytes.split(|b| *b == b'\n').filter(|line| !line.is_empty());
    lines.map(|line| serde_json::from_slice(line).ok()).collect()
}

/// What is read of report.json.
#[derive(Deserialize)]
struct Findings {
    warnings: Vec<Warning>,
}

struct Known {
    /// Of the document's bytes.
    blake3: String,
    record: DocumentRecord,
    chunks: Vec<Chunk>,
    warnings: Vec<Warning>,
}

/// The documents of the generation before.
#[derive(Default)]
pub struct Documents {
    by_path: FxHashMap<String, Known>,
}

impl Documents {
    /// The document at a path as it was made before, if it has the same bytes now; else the bytes.
    ///
    /// # Errors
    /// The bytes, when the document must be read anew.
    pub fn take(&mut self, path: &[u8], bytes: Vec<u8>) -> Result<Document, Vec<u8>> {
        let Some(known) = std::str::from_utf8(path).ok().and_then(|path| self.by_path.remove(path))
        else {
            return Err(bytes);
        };
        if blake3::hash(&bytes).to_hex().as_str() != known.blake3 {
            return Err(bytes);
        }
        let Known { record, chunks, warnings, .. } = known;
        Ok(Document { record, bytes, chunks, warnings })
    }
}
