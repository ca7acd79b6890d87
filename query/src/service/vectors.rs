//! Vectors of questions that were asked before: some in memory, and where `[cache] redis` says so also in Redis,
//! shared by several daemons.
//!
//! ```text
//! runbook:vector:<model>:<text>   f32 numbers, little-endian, with a time to live
//! ```
//!
//! Both parts of the key are hashes: of all that makes the model what it is, and of the text. A generation
//! has no part in them, since the vector of a question is the same for all. No question stands in Redis, and
//! no question waits for it: without an answer within a moment the vector is computed here.

use redis::{Commands, ConnectionLike};
use runbook_shared::embed::EmbedderId;
use rustc_hash::FxHashMap;
use serde::Deserialize;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Vectors that are remembered in memory.
const KEPT: usize = 512;
/// How long Redis may take; a vector is computed in less than ten times as much.
const WITHIN: Duration = Duration::from_millis(100);
/// How long Redis is left alone after it failed.
const REST: Duration = Duration::from_secs(30);

/// The table `[cache]` of the configuration file.
#[derive(Clone, Debug, Deserialize)]
#[serde(default)]
pub struct Settings {
    /// `redis://host:port/db`; in memory alone when left out.
    pub redis: Option<String>,
    /// Seconds for which Redis keeps a vector.
    pub ttl_s: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Self { redis: None, ttl_s: 7 * 24 * 3600 }
    }
}

/// The keys of the table, for the check of the file.
pub const KEYS: [&str; 2] = ["cache.redis", "cache.ttl_s"];

/// Vectors by text.
#[derive(Default)]
pub struct Vectors {
    near: Mutex<FxHashMap<String, Arc<[f32]>>>,
    far: Option<Shared>,
}

impl Vectors {
    /// Vectors as the settings have it. Nothing is connected yet.
    ///
    /// # Errors
    /// When a setting is not usable; the message does not hold the address, which may hold a password.
    pub fn new(settings: &Settings) -> Result<Self, String> {
        let far = settings.redis.as_deref().map(|url| Shared::new(url, settings.ttl_s)).transpose();
        Ok(Self { near: Mutex::default(), far: far? })
    }

    /// The vector of a text, if it is known.
    pub(super) fn get(&self, model: &EmbedderId, text: &str) -> Option<Arc<[f32]>> {
        let lock = || self.near.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(vector) = lock().get(text) {
            return Some(Arc::clone(vector));
        }
        let vector: Arc<[f32]> = self.far.as_ref()?.get(model, text)?.into();
        keep(&mut lock(), text, &vector);
        Some(vector)
    }

    /// Remembers a vector.
    pub(super) fn put(&self, model: &EmbedderId, text: &str, vector: &Arc<[f32]>) {
        keep(&mut self.near.lock().unwrap_or_else(PoisonError::into_inner), text, vector);
        if let Some(far) = &self.far {
            far.put(model, text, vector);
        }
    }
}

fn keep(kept: &mut FxHashMap<String, Arc<[f32]>>, text: &str, vector: &Arc<[f32]>) {
    if kept.len() >= KEPT {
        kept.clear();
    }
    kept.insert(text.to_owned(), Arc::clone(vector));
}

/// The part in Redis.
struct Shared {
    client: redis::Client,
    state: Mutex<State>,
    ttl_s: u64,
}

#[derive(Default)]
struct State {
    connection: Option<redis::Connection>,
    /// Until when Redis is left alone.
    rests_until: Option<Instant>,
}

impl Shared {
    fn new(url: &str, ttl_s: u64) -> Result<Self, String> {
        if ttl_s == 0 {
            return Err("cache.ttl_s is a number of seconds above 0".into());
        }
        let client = redis::Client::open(url)
            .map_err(|_| "cache.redis: it is not of the form redis://host:port/db".to_owned())?;
        Ok(Self { client, state: Mutex::default(), ttl_s })
    }

    /// Runs a command, where Redis is there and no other question is just asking it.
    fn with<T>(
        &self,
        work: impl FnOnce(&mut redis::Connection) -> redis::RedisResult<T>,
    ) -> Option<T> {
        let Ok(mut state) = self.state.try_lock() else { return None };
        if state.rests_until.is_some_and(|until| Instant::now() < until) {
            return None;
        }
        let done = self.connected(&mut state).and_then(work);
        match done {
            Ok(value) => {
                if state.rests_until.take().is_some() {
                    tracing::info!("cache: Redis answers again");
                }
                Some(value)
            }
            Err(e) => {
                if state.rests_until.is_none() {
                    tracing::warn!("cache: Redis does not answer, vectors are computed here: {e}");
                }
                *state = State { connection: None, rests_until: Some(Instant::now() + REST) };
                None
            }
        }
    }

    fn connected<'a>(&self, state: &'a mut State) -> redis::RedisResult<&'a mut redis::Connection> {
        if let Some(there) = &state.connection
            && !there.is_open()
        {
            state.connection = None;
        }
        match &mut state.connection {
            Some(connection) => Ok(connection),
            empty => {
                let connection = self.client.get_connection_with_timeout(WITHIN)?;
                connection.set_read_timeout(Some(WITHIN))?;
                connection.set_write_timeout(Some(WITHIN))?;
                Ok(empty.insert(connection))
            }
        }
    }

    fn get(&self, model: &EmbedderId, text: &str) -> Option<Vec<f32>> {
        let bytes: Vec<u8> = self.with(|c| c.get::<_, Option<Vec<u8>>>(key(model, text)))??;
        let vector = numbers(&bytes, model.dim);
        if vector.is_none() {
            tracing::warn!("cache: Redis holds something that is no vector of this model");
        }
        vector
    }

    fn put(&self, model: &EmbedderId, text: &str, vector: &[f32]) {
        let bytes: Vec<u8> = vector.iter().flat_map(|f| f.to_le_bytes()).collect();
        self.with(|c| c.set_ex::<_, _, ()>(key(model, text), bytes, self.ttl_s));
    }
}

fn key(model: &EmbedderId, text: &str) -> String {
    let parts = [&model.model_sha256, &model.tokenizer_sha256, &model.pooling, &model.query_prefix];
    let mut hash = blake3::Hasher::new();
    for part in parts {
        hash.update(&part.len().to_le_bytes()).update(part.as_bytes());
    }
    let model = hash.finalize().to_hex();
    format!("runbook:vector:{}:{}", &model[..16], blake3::hash(text.as_bytes()).to_hex())
}

/// A vector, if the bytes are one of this length.
fn numbers(bytes: &[u8], dim: u32) -> Option<Vec<f32>> {
    let (parts, rest) = bytes.as_chunks::<4>();
    let numbers: Vec<f32> = parts.iter().map(|b| f32::from_le_bytes(*b)).collect();
    let whole = rest.is_empty() && u32::try_from(numbers.len()) == Ok(dim);
    (whole && numbers.iter().all(|n| n.is_finite())).then_some(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_that_are_no_vector_are_none() {
        let good: Vec<u8> = [1.0_f32, -0.5].iter().flat_map(|f| f.to_le_bytes()).collect();
        assert_eq!(numbers(&good, 2), Some(vec![1.0, -0.5]));
        assert_eq!(numbers(&good, 3), None);
        assert_eq!(numbers(&good[..7], 2), None);
        let bad: Vec<u8> = [f32::NAN, 0.0].iter().flat_map(|f| f.to_le_bytes()).collect();
        assert_eq!(numbers(&bad, 2), None);
    }

    #[test]
    fn settings_that_cannot_be_used_are_told_without_the_address() {
        let with = |redis: &str, ttl_s| {
            Vectors::new(&Settings { redis: Some(redis.into()), ttl_s }).err().unwrap_or_default()
        };
        let said = with("nonsense with s3cret", 1);
        assert!(said.starts_with("cache.redis") && !said.contains("s3cret"), "{said}");
        assert!(with("redis://127.0.0.1:1/0", 0).contains("ttl_s"));
        assert_eq!(with("redis://127.0.0.1:1/0", 1), "");
    }
}
