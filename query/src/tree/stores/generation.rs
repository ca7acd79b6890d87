//! A generation's documents as files: read-only, in memory after the first look.
//!
//! Files hold the documents' own bytes; those of UTF-16 and Latin-1 documents are given as UTF-8. What is
//! read from disk is compared with the manifest's hash, so that a file or link put in its place since is
//! an error and never content.

use crate::tree::error::TreeError;
use crate::tree::store::{Content, Document, Entry, Kind, Meta, Store};
use runbook_shared::chunk::DocumentRecord;
use runbook_shared::retrieval::corpus::Corpus;
use rustc_hash::FxHashMap;
use std::io::Read;
use std::ops::Range;
use std::os::unix::fs::OpenOptionsExt;
use std::sync::{Arc, OnceLock};

/// `O_NOFOLLOW` of Linux: a link in place of a document is an error.
const O_NOFOLLOW: i32 = 0o400_000;

/// All documents behind one another.
struct Arena {
    bytes: Vec<u8>,
    ranges: Vec<Range<usize>>,
}

impl AsRef<[u8]> for Arena {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// The store of one generation.
pub struct GenerationStore {
    corpus: Arc<Corpus>,
    modified: i64,
    dirs: FxHashMap<String, Vec<Entry>>,
    numbers: FxHashMap<String, usize>,
    arena: OnceLock<Option<Arc<Arena>>>,
    memory_bytes: u64,
}

impl GenerationStore {
    /// The store of an open generation; `memory_bytes` as in
    /// [`Limits`](crate::tree::limits::Limits::memory_bytes).
    #[must_use]
    pub fn new(corpus: Arc<Corpus>, memory_bytes: u64) -> Self {
        let indexed: Option<jiff::Timestamp> = corpus.generation.manifest.indexed_at.parse().ok();
        let modified = indexed.map_or(0, jiff::Timestamp::as_second);
        let documents = &corpus.generation.documents;
        let mut dirs: FxHashMap<String, Vec<Entry>> = FxHashMap::default();
        dirs.insert(String::new(), Vec::new());
        for document in documents {
            add(&mut dirs, &document.path, document.bytes, modified);
        }
        for entries in dirs.values_mut() {
            entries.sort_by(|a, b| a.name.cmp(&b.name));
        }
        let numbers = documents.iter().enumerate().map(|(n, d)| (d.path.clone(), n)).collect();
        Self { corpus, modified, dirs, numbers, arena: OnceLock::new(), memory_bytes }
    }

    /// The generation's id.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.corpus.generation.id
    }

    /// Whether this is the store of that corpus.
    #[must_use]
    pub fn is_of(&self, corpus: &Arc<Corpus>) -> bool {
        Arc::ptr_eq(&self.corpus, corpus)
    }

    fn arena(&self) -> Option<&Arc<Arena>> {
        self.arena.get_or_init(|| self.load()).as_ref()
    }

    /// All documents, unless they are too many for memory or one cannot be read; then each is read alone.
    fn load(&self) -> Option<Arc<Arena>> {
        let documents = &self.corpus.generation.documents;
        let total: u64 = documents.iter().map(|d| d.bytes).sum();
        if total > self.memory_bytes {
            return None;
        }
        let mut arena =
            Arena { bytes: Vec::with_capacity(usize::try_from(total).ok()?), ranges: Vec::new() };
        for document in documents {
            let start = arena.bytes.len();
            arena.bytes.extend_from_slice(&self.disk_bytes(document).ok()?);
            arena.ranges.push(start..arena.bytes.len());
        }
        Some(Arc::new(arena))
    }

    fn disk_bytes(&self, document: &DocumentRecord) -> Result<Vec<u8>, TreeError> {
        let generation = &self.corpus.generation;
        let failed = |why: &str| {
            tracing::error!("generation {}: `{}` {why}", generation.id, document.path);
            TreeError::Unavailable { mount: document.path.clone(), why: why.to_owned() }
        };
        let name = format!("docs/{}", document.path);
        let expected = generation
            .manifest
            .files
            .get(&name)
            .ok_or_else(|| failed("is not in the manifest of its generation"))?;
        let mut bytes = Vec::new();
        std::fs::OpenOptions::new()
            .read(true)
            .custom_flags(O_NOFOLLOW)
            .open(generation.dir.join(&name))
            .and_then(|file| file.take(expected.bytes + 1).read_to_end(&mut bytes))
            .map_err(|e| failed(&format!("cannot be read ({})", e.kind())))?;
        if blake3::hash(&bytes).to_hex().as_str() != expected.blake3 {
            return Err(failed("is not what was indexed"));
        }
        Ok(match document.encoding.as_str() {
            "utf-16le" => utf16(&bytes, u16::from_le_bytes).into_bytes(),
            "utf-16be" => utf16(&bytes, u16::from_be_bytes).into_bytes(),
            "latin-1" => bytes.iter().map(|b| char::from(*b)).collect::<String>().into_bytes(),
            _ => bytes,
        })
    }
}

fn utf16(bytes: &[u8], unit: impl Fn([u8; 2]) -> u16) -> String {
    let units = bytes.chunks_exact(2).map(|pair| unit([pair[0], pair[1]]));
    char::decode_utf16(units).map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER)).collect()
}

/// Adds a file, and the directories above it that are not there yet.
fn add(dirs: &mut FxHashMap<String, Vec<Entry>>, path: &str, size: u64, modified: i64) {
    let mut entry = Entry {
        name: path.rsplit('/').next().unwrap_or(path).into(),
        meta: Meta { kind: Kind::File, size, modified },
    };
    let mut dir = path.rsplit_once('/').map_or("", |(dir, _)| dir);
    loop {
        let known = dirs.contains_key(dir);
        dirs.entry(dir.to_owned()).or_default().push(entry);
        if known {
            return;
        }
        let (above, name) = dir.rsplit_once('/').unwrap_or(("", dir));
        entry = Entry { name: name.into(), meta: Meta { kind: Kind::Dir, size: 0, modified } };
        dir = above;
    }
}

impl Store for GenerationStore {
    fn writable(&self) -> bool {
        false
    }

    fn stamp(&self) -> Option<String> {
        Some(self.id().to_owned())
    }

    fn stat(&self, _: &str, path: &str) -> Result<Meta, TreeError> {
        if self.dirs.contains_key(path) {
            return Ok(Meta { kind: Kind::Dir, size: 0, modified: self.modified });
        }
        let number = *self.numbers.get(path).ok_or_else(|| TreeError::NotFound(path.into()))?;
        let document = &self.corpus.generation.documents[number];
        // What is given as UTF-8 has another size than its file.
        let size = match (document.encoding.as_str(), self.arena()) {
            ("utf-8", _) | (_, None) => document.bytes,
            (_, Some(arena)) => arena.ranges[number].len() as u64,
        };
        Ok(Meta { kind: Kind::File, size, modified: self.modified })
    }

    fn list(&self, _: &str, path: &str) -> Result<Vec<Entry>, TreeError> {
        match self.dirs.get(path) {
            Some(entries) => Ok(entries.clone()),
            None if self.numbers.contains_key(path) => Err(TreeError::NotDirectory(path.into())),
            None => Err(TreeError::NotFound(path.into())),
        }
    }

    fn read(&self, _: &str, path: &str) -> Result<Content, TreeError> {
        let Some(number) = self.numbers.get(path) else {
            return Err(if self.dirs.contains_key(path) {
                TreeError::IsDirectory(path.into())
            } else {
                TreeError::NotFound(path.into())
            });
        };
        match self.arena() {
            Some(arena) => {
                let range = arena.ranges[*number].clone();
                Ok(Content::shared(Arc::<Arena>::clone(arena), range))
            }
            None => {
                Ok(Content::owned(self.disk_bytes(&self.corpus.generation.documents[*number])?))
            }
        }
    }

    fn document(&self, path: &str) -> Option<Document<'_>> {
        let number = *self.numbers.get(path)?;
        Some(Document {
            repo: &self.corpus.repo,
            generation: self.id(),
            record: &self.corpus.generation.documents[number],
        })
    }
}
