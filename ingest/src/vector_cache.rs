//! Vectors of texts that were embedded before, by content and embedder.
//!
//! One append-only file an embedder: records of key, number of spans, vector, vectors of the spans and
//! checksum. A record that is torn or altered is not used, nor what follows one whose number of spans
//! is altered. Every vector is appended as soon as it is computed, so that a run that is killed has not
//! worked for nothing. After a publish, keys that no window uses are dropped when they are more than
//! half of the file.

use runbook_shared::embed::{Embedded, EmbedderId};
use runbook_shared::error::{IoContext, PathError};
use runbook_shared::failpoint::reach;
use runbook_shared::limits::SPAN_TOKENS_MAX;
use runbook_shared::vectors;
use rustc_hash::FxHashMap;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

/// The key of a text: the first 16 bytes of blake3 over the text.
pub type Key = [u8; 16];

const KEY_BYTES: usize = 16;
const COUNT_BYTES: usize = 2;
const CHECK_BYTES: usize = 4;

/// The cache of one embedder.
pub struct VectorCache {
    path: PathBuf,
    file: File,
    dim: usize,
    vectors: FxHashMap<Key, Known>,
    records: usize,
}

/// What is known of a text.
#[derive(Clone, Debug, PartialEq)]
pub struct Known {
    /// Its vector.
    pub vector: Box<[f32]>,
    /// The vectors of its spans, one after the other, quantised.
    pub spans: Box<[i8]>,
}

/// The key of a text.
#[must_use]
pub fn key(text: &str) -> Key {
    let mut key = [0; KEY_BYTES];
    key.copy_from_slice(&blake3::hash(text.as_bytes()).as_bytes()[..KEY_BYTES]);
    key
}

impl VectorCache {
    /// Opens the cache of an embedder under a data directory, and removes those of other embedders.
    ///
    /// # Errors
    /// When it cannot be read or written.
    pub fn open(data: &Path, embedder: &EmbedderId) -> Result<Self, PathError> {
        let dir = data.join("cache");
        fs::create_dir_all(&dir).at("create directory", &dir)?;
        let name = file_name(embedder);
        for entry in fs::read_dir(&dir).at("list", &dir)? {
            let path = entry.at("list", &dir)?.path();
            if path.file_name().is_some_and(|n| n.to_string_lossy() != name) {
                fs::remove_file(&path).at("remove", &path)?;
            }
        }
        let path = dir.join(name);
        let dim = embedder.dim as usize;
        let (vectors, records, whole) = read(&path, dim)?;
        let file = OpenOptions::new().create(true).append(true).open(&path).at("open", &path)?;
        file.set_len(whole as u64).at("cut", &path)?;
        Ok(Self { path, file, dim, vectors, records })
    }

    /// The vectors of a text, if they are known.
    #[must_use]
    pub fn get(&self, key: &Key) -> Option<&Known> {
        self.vectors.get(key)
    }

    /// Remembers the vectors of a text.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn put(&mut self, key: Key, embedded: &Embedded) -> Result<(), PathError> {
        let spans = vectors::quantised(self.dim, &embedded.spans);
        let known = Known { vector: embedded.vector.as_slice().into(), spans: spans.into() };
        self.file.write_all(&record(&key, &known, self.dim)).at("write", &self.path)?;
        reach("cache.put");
        self.records += 1;
        self.vectors.insert(key, known);
        Ok(())
    }

    /// Drops the keys that are not used, when they are more than half.
    ///
    /// # Errors
    /// When the file cannot be replaced.
    pub fn prune(self, used: impl Iterator<Item = Key>) -> Result<(), PathError> {
        let used: FxHashMap<Key, ()> = used.map(|k| (k, ())).collect();
        if self.records <= 2 * used.len() {
            return Ok(());
        }
        let mut bytes = Vec::new();
        for (key, known) in self.vectors.iter().filter(|(k, _)| used.contains_key(*k)) {
            bytes.extend_from_slice(&record(key, known, self.dim));
        }
        runbook_shared::generation::publish::replace_file(&self.path, &bytes)
    }
}

/// A name of all that the vectors depend on besides the text.
fn file_name(embedder: &EmbedderId) -> String {
    let id = serde_json::to_vec(&(embedder, "spans", SPAN_TOKENS_MAX)).unwrap_or_default();
    format!("{}.vectors", &blake3::hash(&id).to_hex()[..16])
}

fn record_bytes(dim: usize, spans: usize) -> usize {
    KEY_BYTES + COUNT_BYTES + dim * 4 + dim * spans + CHECK_BYTES
}

fn record(key: &Key, known: &Known, dim: usize) -> Vec<u8> {
    let spans = known.spans.len() / dim.max(1);
    let mut bytes = Vec::with_capacity(record_bytes(dim, spans));
    bytes.extend_from_slice(key);
    // A window of 256 tokens has no more spans than that.
    bytes.extend(u16::try_from(spans).unwrap_or(u16::MAX).to_le_bytes());
    bytes.extend(known.vector.iter().flat_map(|v| v.to_le_bytes()));
    bytes.extend(known.spans.iter().flat_map(|v| v.to_le_bytes()));
    let check = blake3::hash(&bytes);
    bytes.extend_from_slice(&check.as_bytes()[..CHECK_BYTES]);
    bytes
}

/// The vectors, how many records hold them, and how many bytes those take.
type Read = (FxHashMap<Key, Known>, usize, usize);

fn read(path: &Path, dim: usize) -> Result<Read, PathError> {
    let bytes = match fs::read(path).at("read", path) {
        Ok(bytes) => bytes,
        Err(e) if e.is_not_found() => Vec::new(),
        Err(e) => return Err(e),
    };
    let mut vectors = FxHashMap::default();
    let (mut records, mut whole) = (0, 0);
    while let Some(count) = bytes.get(whole + KEY_BYTES..whole + KEY_BYTES + COUNT_BYTES) {
        let size = record_bytes(dim, usize::from(u16::from_le_bytes([count[0], count[1]])));
        let Some(record) = bytes.get(whole..whole + size) else { break };
        whole += size;
        records += 1;
        let (body, check) = record.split_at(size - CHECK_BYTES);
        if blake3::hash(body).as_bytes()[..CHECK_BYTES] != *check {
            continue;
        }
        let mut key = [0; KEY_BYTES];
        key.copy_from_slice(&body[..KEY_BYTES]);
        let (vector, spans) = body[KEY_BYTES + COUNT_BYTES..].split_at(dim * 4);
        let vector =
            vector.chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect();
        let spans = spans.iter().map(|b| i8::from_le_bytes([*b])).collect();
        vectors.insert(key, Known { vector, spans });
    }
    Ok((vectors, records, whole))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(name: &str) -> EmbedderId {
        EmbedderId {
            id: name.into(),
            dim: 2,
            pooling: "mean".into(),
            query_prefix: String::new(),
            passage_prefix: String::new(),
            model_sha256: String::new(),
            tokenizer_sha256: String::new(),
        }
    }

    #[test]
    fn torn_and_altered_records_are_not_used() {
        let data = tempfile::tempdir().unwrap();
        let embedded = |vector: [f32; 2], spans: &[f32]| Embedded {
            vector: vector.into(),
            spans: spans.into(),
        };
        let known =
            |vector: [f32; 2], spans: &[i8]| Known { vector: vector.into(), spans: spans.into() };
        let mut cache = VectorCache::open(data.path(), &id("a")).unwrap();
        cache.put(key("one"), &embedded([1.0, 2.0], &[])).unwrap();
        cache.put(key("two"), &embedded([3.0, 4.0], &[0.0, 1.0, -0.5, 1.0])).unwrap();
        let path = cache.path.clone();
        drop(cache);
        let mut bytes = fs::read(&path).unwrap();
        bytes[20] ^= 1;
        bytes.extend_from_slice(b"torn");
        fs::write(&path, &bytes).unwrap();
        let mut cache = VectorCache::open(data.path(), &id("a")).unwrap();
        assert_eq!(cache.get(&key("one")), None);
        assert_eq!(cache.get(&key("two")), Some(&known([3.0, 4.0], &[0, 127, -64, 127])));
        cache.put(key("one"), &embedded([1.0, 2.0], &[])).unwrap();
        drop(cache);
        let cache = VectorCache::open(data.path(), &id("a")).unwrap();
        assert_eq!(cache.get(&key("one")), Some(&known([1.0, 2.0], &[])));
        cache.prune([key("two")].into_iter()).unwrap();
        let cache = VectorCache::open(data.path(), &id("a")).unwrap();
        assert_eq!((cache.get(&key("one")), cache.records), (None, 1));
        VectorCache::open(data.path(), &id("b")).unwrap();
        assert!(!path.exists());
    }
}
