//! Vectors of texts that were embedded before, by content and embedder.
//!
//! One append-only file an embedder: records of key, vector and checksum. A record that is torn or
//! altered is not used. Every vector is appended as soon as it is computed, so that a run that is
//! killed has not worked for nothing. After a publish, keys that no window uses are dropped when they
//! are more than half of the file.

use runbook_shared::embed::EmbedderId;
use runbook_shared::error::{IoContext, PathError};
use rustc_hash::FxHashMap;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

/// The key of a text: the first 16 bytes of blake3 over the text.
pub type Key = [u8; 16];

const KEY_BYTES: usize = 16;
const CHECK_BYTES: usize = 4;

/// The cache of one embedder.
pub struct VectorCache {
    path: PathBuf,
    file: File,
    dim: usize,
    vectors: FxHashMap<Key, Box<[f32]>>,
    records: usize,
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
        file.set_len(whole).at("cut", &path)?;
        Ok(Self { path, file, dim, vectors, records })
    }

    /// The vector of a text, if it is known.
    #[must_use]
    pub fn get(&self, key: &Key) -> Option<&[f32]> {
        self.vectors.get(key).map(|v| &**v)
    }

    /// Remembers a vector.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn put(&mut self, key: Key, vector: &[f32]) -> Result<(), PathError> {
        self.file.write_all(&record(&key, vector)).at("write", &self.path)?;
        self.records += 1;
        self.vectors.insert(key, vector.into());
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
        let mut bytes = Vec::with_capacity(used.len() * record_bytes(self.dim));
        for (key, vector) in self.vectors.iter().filter(|(k, _)| used.contains_key(*k)) {
            bytes.extend_from_slice(&record(key, vector));
        }
        runbook_shared::generation::publish::replace_file(&self.path, &bytes)
    }
}

fn file_name(embedder: &EmbedderId) -> String {
    let id = serde_json::to_vec(embedder).unwrap_or_default();
    format!("{}.vectors", &blake3::hash(&id).to_hex()[..16])
}

fn record_bytes(dim: usize) -> usize {
    KEY_BYTES + dim * 4 + CHECK_BYTES
}

fn record(key: &Key, vector: &[f32]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(record_bytes(vector.len()));
    bytes.extend_from_slice(key);
    bytes.extend(vector.iter().flat_map(|v| v.to_le_bytes()));
    let check = blake3::hash(&bytes);
    bytes.extend_from_slice(&check.as_bytes()[..CHECK_BYTES]);
    bytes
}

type Read = (FxHashMap<Key, Box<[f32]>>, usize, u64);

fn read(path: &Path, dim: usize) -> Result<Read, PathError> {
    let bytes = match fs::read(path).at("read", path) {
        Ok(bytes) => bytes,
        Err(e) if e.is_not_found() => Vec::new(),
        Err(e) => return Err(e),
    };
    let size = record_bytes(dim);
    let mut vectors = FxHashMap::default();
    for record in bytes.chunks_exact(size) {
        let (body, check) = record.split_at(size - CHECK_BYTES);
        if blake3::hash(body).as_bytes()[..CHECK_BYTES] != *check {
            continue;
        }
        let mut key = [0; KEY_BYTES];
        key.copy_from_slice(&body[..KEY_BYTES]);
        let vector = body[KEY_BYTES..]
            .chunks_exact(4)
            .map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]]))
            .collect();
        vectors.insert(key, vector);
    }
    let records = bytes.len() / size;
    Ok((vectors, records, (records * size) as u64))
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
        let mut cache = VectorCache::open(data.path(), &id("a")).unwrap();
        cache.put(key("one"), &[1.0, 2.0]).unwrap();
        cache.put(key("two"), &[3.0, 4.0]).unwrap();
        let path = cache.path.clone();
        drop(cache);
        let mut bytes = fs::read(&path).unwrap();
        bytes[20] ^= 1;
        bytes.extend_from_slice(b"torn");
        fs::write(&path, &bytes).unwrap();
        let mut cache = VectorCache::open(data.path(), &id("a")).unwrap();
        assert_eq!(cache.get(&key("one")), None);
        assert_eq!(cache.get(&key("two")), Some(&[3.0, 4.0][..]));
        cache.put(key("one"), &[1.0, 2.0]).unwrap();
        drop(cache);
        let cache = VectorCache::open(data.path(), &id("a")).unwrap();
        assert_eq!(cache.get(&key("one")), Some(&[1.0, 2.0][..]));
        cache.prune([key("two")].into_iter()).unwrap();
        let cache = VectorCache::open(data.path(), &id("a")).unwrap();
        assert_eq!((cache.get(&key("one")), cache.records), (None, 1));
        VectorCache::open(data.path(), &id("b")).unwrap();
        assert!(!path.exists());
    }
}
