//! A generation: one immutable snapshot of text and indexes, verified before it is used.
//!
//! docs/index-format.md describes the files. [`publish`] writes them, [`manifest`] names them, [`pin`]
//! keeps one of them current.

pub mod manifest;
pub mod pin;
pub mod publish;

use crate::chunk::{Chunk, DocumentRecord, Section};
use crate::error::{IoContext, PathError};
use crate::lexical::{LexicalError, LexicalIndex};
use crate::vectors::{VectorError, VectorIndex};
use manifest::{FORMAT_VERSION, FORMAT_VERSION_MIN, Manifest};
use rustc_hash::FxHashMap;
use serde::de::DeserializeOwned;
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// Name of the pointer to the current generation in the data directory.
pub const CURRENT: &str = "current";
/// Name of the directory of generations in the data directory.
pub const GENERATIONS: &str = "generations";

/// Why a generation cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// There is no `current` in the data directory: nothing has been ingested yet.
    #[error("`{}` holds no generation yet", .0.display())]
    Missing(PathBuf),
    /// The generation is of a format that this program does not read.
    #[error(
        "generation `{id}` has format {found}, this program reads {FORMAT_VERSION_MIN} to {FORMAT_VERSION}"
    )]
    FormatMismatch {
        /// The generation.
        id: String,
        /// Its format version.
        found: u32,
    },
    /// A file is missing, cut, altered, or does not fit the others.
    #[error("generation `{id}` is damaged: {message}")]
    Corrupt {
        /// The generation.
        id: String,
        /// Which file, and what is wrong with it.
        message: String,
    },
    /// A file operation failed.
    #[error(transparent)]
    File(#[from] PathError),
}

impl crate::error::Hint for OpenError {
    fn hint(&self) -> Option<String> {
        Some(match self {
            Self::Missing(_) => {
                "run `runbook-ingest --source <git URL | directory> --data <dir>`".into()
            }
            Self::FormatMismatch { .. } | Self::Corrupt { .. } => {
                "run `runbook-ingest` again: it rebuilds the generation".into()
            }
            Self::File(_) => "check that the data directory is readable for this user".into(),
        })
    }
}

/// Where `current` points: the id of the generation, without opening it.
///
/// # Errors
/// [`OpenError::Missing`] when there is none, [`OpenError::Corrupt`] when it points elsewhere.
pub fn current_id(data: &Path) -> Result<String, OpenError> {
    let link = data.join(CURRENT);
    let target = match fs::read_link(&link) {
        Ok(target) => target,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
            return Err(OpenError::Missing(data.to_owned()));
        }
        Err(source) => return Err(PathError { action: "read link", path: link, source }.into()),
    };
    let id = target
        .strip_prefix(GENERATIONS)
        .ok()
        .and_then(|id| id.to_str())
        .filter(|id| !id.is_empty() && !id.contains('/') && !id.starts_with('.'));
    id.map(str::to_owned).ok_or_else(|| OpenError::Corrupt {
        id: target.display().to_string(),
        message: format!("`{}` does not point to `{GENERATIONS}/<id>`", link.display()),
    })
}

/// The manifest of one generation; its hash is checked against the id, the other files are not read.
///
/// # Errors
/// When it is missing, altered or of an unknown format.
pub fn read_manifest(data: &Path, id: &str) -> Result<Manifest, OpenError> {
    let path = data.join(GENERATIONS).join(id).join(manifest::FILE_NAME);
    let corrupt = |message: String| OpenError::Corrupt { id: id.to_owned(), message };
    let bytes = fs::read(&path).at("read", &path).map_err(|e| {
        if e.is_not_found() {
            corrupt(format!("`{}` is missing", manifest::FILE_NAME))
        } else {
            e.into()
        }
    })?;
    if !manifest::id_matches(id, &bytes) {
        return Err(corrupt(format!("`{}` is not the one that the id names", manifest::FILE_NAME)));
    }
    let version: manifest::Versions = serde_json::from_slice(&bytes)
        .map_err(|e| corrupt(format!("`{}`: {e}", manifest::FILE_NAME)))?;
    if !(FORMAT_VERSION_MIN..=FORMAT_VERSION).contains(&version.format_version) {
        return Err(OpenError::FormatMismatch { id: id.to_owned(), found: version.format_version });
    }
    serde_json::from_slice(&bytes).map_err(|e| corrupt(format!("`{}`: {e}", manifest::FILE_NAME)))
}

/// Reads every file that the manifest names and compares its size and hash.
///
/// # Errors
/// The first file that is missing, cut or altered.
pub fn verify_files(data: &Path, id: &str, manifest: &Manifest) -> Result<(), OpenError> {
    let dir = data.join(GENERATIONS).join(id);
    for (name, expected) in &manifest.files {
        let corrupt = |message: &str| OpenError::Corrupt {
            id: id.to_owned(),
            message: format!("`{name}` {message}"),
        };
        let path = dir.join(name);
        let (bytes, hash) = match hash_file(&path) {
            Ok(found) => found,
            Err(e) if e.is_not_found() => return Err(corrupt("is missing")),
            Err(e) => return Err(e.into()),
        };
        if bytes != expected.bytes {
            return Err(corrupt(&format!(
                "has {bytes} bytes, the manifest says {}",
                expected.bytes
            )));
        }
        if hash != expected.blake3 {
            return Err(corrupt("does not have the hash that the manifest says"));
        }
    }
    Ok(())
}

/// Looks for files that the manifest does not name: readers of the directory would take them for part
/// of the generation.
///
/// # Errors
/// When there is one, or a directory cannot be read.
pub fn check_strangers(data: &Path, id: &str, manifest: &Manifest) -> Result<(), OpenError> {
    let root = data.join(GENERATIONS).join(id);
    let mut open = vec![root.clone()];
    while let Some(dir) = open.pop() {
        for entry in fs::read_dir(&dir).at("read", &dir)? {
            let entry = entry.at("read", &dir)?;
            let path = entry.path();
            if entry.file_type().at("read", &path)?.is_dir() {
                open.push(path);
                continue;
            }
            let name = path.strip_prefix(&root).unwrap_or(&path).to_string_lossy().into_owned();
            if name != manifest::FILE_NAME && !manifest.files.contains_key(&name) {
                return Err(OpenError::Corrupt {
                    id: id.to_owned(),
                    message: format!("`{name}` is not in the manifest"),
                });
            }
        }
    }
    Ok(())
}

/// Size and blake3 of a file.
pub(crate) fn hash_file(path: &Path) -> Result<(u64, String), PathError> {
    let mut hasher = blake3::Hasher::new();
    let mut file = fs::File::open(path).at("open", path)?;
    let bytes = std::io::copy(&mut file, &mut hasher).at("read", path)?;
    Ok((bytes, hasher.finalize().to_hex().to_string()))
}

/// Which section of which chunk a number of the lexical index means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SectionRef {
    /// Index into [`Generation::chunks`].
    pub chunk: u32,
    /// Index into the chunk's sections.
    pub section: u32,
}

/// An open generation.
pub struct Generation {
    /// Its id, which is also its directory's name.
    pub id: String,
    /// Its directory.
    pub dir: PathBuf,
    /// Its manifest.
    pub manifest: Manifest,
    /// Its documents, by path in byte order.
    pub documents: Vec<DocumentRecord>,
    /// Its chunks, by document and line.
    pub chunks: Vec<Chunk>,
    /// The sections of all chunks, in order: the numbers of both indexes.
    pub sections: Vec<SectionRef>,
    /// The lexical index.
    pub lexical: LexicalIndex,
    /// The vectors, unless the generation was made without an embedder.
    pub vectors: Option<VectorIndex>,
    by_path: FxHashMap<String, u32>,
}

impl Generation {
    /// Opens the current generation of a data directory and verifies all of it.
    ///
    /// # Errors
    /// When there is none or it cannot be trusted.
    pub fn open_current(data: &Path) -> Result<Self, OpenError> {
        Self::open(data, &current_id(data)?)
    }

    /// Opens one generation and verifies all of it: hashes, counts, ranges, shapes.
    ///
    /// # Errors
    /// When it cannot be trusted.
    pub fn open(data: &Path, id: &str) -> Result<Self, OpenError> {
        let manifest = read_manifest(data, id)?;
        verify_files(data, id, &manifest)?;
        Self::open_dir(data.join(GENERATIONS).join(id), id, manifest)
    }

    /// Opens what lies in a directory, whose files' hashes are not read.
    fn open_dir(dir: PathBuf, id: &str, manifest: Manifest) -> Result<Self, OpenError> {
        let corrupt = |message: String| OpenError::Corrupt { id: id.to_owned(), message };
        let documents: Vec<DocumentRecord> = read_lines(&dir.join("documents.jsonl"), &corrupt)?;
        let chunks: Vec<Chunk> = read_lines(&dir.join("chunks.jsonl"), &corrupt)?;
        let by_path: FxHashMap<String, u32> =
            documents.iter().map(|d| d.path.clone()).zip(0..).collect();
        check_chunks(&chunks, &by_path).map_err(&corrupt)?;
        let sections = number_sections(&chunks);
        let lexical_dir = dir.join("lexical");
        let lexical =
            LexicalIndex::open(&lexical_dir).map_err(|e: LexicalError| match e.as_io() {
                Some(_) => failed_to_open(&lexical_dir, &e),
                None => corrupt(e.to_string()),
            })?;
        let vectors = match &manifest.embedder {
            Some(_) => Some(
                VectorIndex::open(&dir.join("vectors"), manifest.vectors_use_graph()).map_err(
                    |e: VectorError| match e {
                        VectorError::File(e) => e.into(),
                        VectorError::Format { .. } => corrupt(e.to_string()),
                    },
                )?,
            ),
            None => None,
        };
        let generation = Self {
            id: id.to_owned(),
            dir,
            manifest,
            documents,
            chunks,
            sections,
            lexical,
            vectors,
            by_path,
        };
        generation.check_counts().map_err(&corrupt)?;
        Ok(generation)
    }

    fn check_counts(&self) -> Result<(), String> {
        let counts = &self.manifest.counts;
        let same = |what: &str, found: usize, said: u64| {
            if found as u64 == said {
                Ok(())
            } else {
                Err(format!("{found} {what}, the manifest says {said}"))
            }
        };
        same("documents", self.documents.len(), counts.indexed)?;
        same("chunks", self.chunks.len(), counts.chunks)?;
        same("sections", self.sections.len(), counts.sections)?;
        same(
            "sections in the lexical index",
            usize::try_from(self.lexical.len()).unwrap_or(usize::MAX),
            counts.sections,
        )?;
        let Some(vectors) = &self.vectors else { return Ok(()) };
        same("windows", vectors.len(), counts.windows)?;
        let dim = self.manifest.embedder.as_ref().map_or(0, |e| e.dim as usize);
        if vectors.dim() != dim {
            return Err(format!("vectors of {}, the manifest says {dim}", vectors.dim()));
        }
        if vectors.sections().last().is_some_and(|s| *s as usize >= self.sections.len())
            || !vectors.sections().is_sorted()
        {
            return Err("`vectors/windows.u32` names a section that does not exist".into());
        }
        Ok(())
    }

    /// The document at a path.
    #[must_use]
    pub fn document(&self, path: &str) -> Option<&DocumentRecord> {
        self.by_path.get(path).map(|at| &self.documents[*at as usize])
    }

    /// The chunk and section behind a number of the indexes.
    #[must_use]
    pub fn section(&self, number: u32) -> (&Chunk, &Section) {
        let at = self.sections[number as usize];
        let chunk = &self.chunks[at.chunk as usize];
        (chunk, &chunk.sections[at.section as usize])
    }

    /// The numbers of the sections whose documents are `prefix` or lie beneath it.
    #[must_use]
    pub fn scope(&self, prefix: &str) -> Range<u32> {
        let prefix = prefix.trim_matches('/');
        let all = 0..u32::try_from(self.sections.len()).unwrap_or(u32::MAX);
        if prefix.is_empty() {
            return all;
        }
        // Paths stand in byte order, so all paths with `prefix/` are neighbours; `prefix` itself, a
        // document, stands alone.
        let path = |at: &SectionRef| self.chunks[at.chunk as usize].path.as_str();
        let first = |bound: &str| {
            u32::try_from(self.sections.partition_point(|s| path(s) < bound)).unwrap_or(u32::MAX)
        };
        if self.by_path.contains_key(prefix) {
            return first(prefix)..first(&format!("{prefix}\0"));
        }
        first(&format!("{prefix}/"))..first(&format!("{prefix}0")) // `0` follows `/` in ASCII.
    }
}

/// For want of descriptors, say: it says nothing of the files.
fn failed_to_open(path: &Path, error: &LexicalError) -> OpenError {
    let source = std::io::Error::other(error.to_string());
    PathError { action: "open", path: path.to_owned(), source }.into()
}

fn check_chunks(chunks: &[Chunk], by_path: &FxHashMap<String, u32>) -> Result<(), String> {
    let mut last = 0;
    for (n, chunk) in (1..).zip(chunks) {
        chunk.check().map_err(|e| format!("`chunks.jsonl` line {n}: {e}"))?;
        let document = by_path.get(&chunk.path).ok_or_else(|| {
            format!("`chunks.jsonl` line {n}: its document `{}` is not listed", chunk.path)
        })?;
        if *document < last {
            return Err(format!("`chunks.jsonl` line {n}: it is out of order"));
        }
        last = *document;
    }
    Ok(())
}

fn number_sections(chunks: &[Chunk]) -> Vec<SectionRef> {
    (0u32..)
        .zip(chunks)
        .flat_map(|(chunk, c)| {
            (0..u32::try_from(c.sections.len()).unwrap_or(u32::MAX))
                .map(move |section| SectionRef { chunk, section })
        })
        .collect()
}

fn read_lines<T: DeserializeOwned>(
    path: &Path,
    corrupt: &impl Fn(String) -> OpenError,
) -> Result<Vec<T>, OpenError> {
    let text = fs::read_to_string(path).at("read", path)?;
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    (1..)
        .zip(text.lines())
        .map(|(n, line)| {
            serde_json::from_str(line).map_err(|e| corrupt(format!("`{name}` line {n}: {e}")))
        })
        .collect()
}
