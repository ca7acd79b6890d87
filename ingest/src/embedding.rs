//! Vectors for all windows: known ones from the cache, new ones from the embedder on every core.

use crate::progress::Progress;
use crate::vector_cache::{Key, VectorCache, key};
use crate::windows::{Window, windows};
use runbook_shared::chunk::Chunk;
use runbook_shared::embed::{EmbedError, Embedded, Embedder};
use runbook_shared::error::PathError;
use runbook_shared::tokens::TokenCounter;
use rustc_hash::FxHashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError, mpsc};

/// The windows of a generation: a key and a section number each, in the order of the sections.
pub struct Windows {
    /// The key of each window's text.
    pub keys: Vec<Key>,
    /// The section of each window, ascending.
    pub sections: Vec<u32>,
    /// Windows by key.
    texts: FxHashMap<Key, Window>,
}

/// Lists the windows of all chunks.
#[must_use]
pub fn list(chunks: &[Chunk], counter: &TokenCounter, passage_prefix: &str) -> Windows {
    let mut list = Windows { keys: Vec::new(), sections: Vec::new(), texts: FxHashMap::default() };
    let mut number = 0u32;
    for chunk in chunks {
        for section in &chunk.sections {
            for window in windows(chunk, section, counter) {
                let key = key(&format!("{passage_prefix}{}", window.text));
                list.keys.push(key);
                list.sections.push(number);
                list.texts.entry(key).or_insert(window);
            }
            number += 1;
        }
    }
    list
}

/// What went wrong while embedding.
#[derive(Debug, thiserror::Error)]
pub enum EmbeddingError {
    /// The model failed.
    #[error(transparent)]
    Embed(#[from] EmbedError),
    /// The cache cannot be written.
    #[error(transparent)]
    Cache(#[from] PathError),
}

/// How many texts are worth one more session.
const TEXTS_FOR_ANOTHER_SESSION: usize = 16;

/// Embeds what the cache does not hold, longest first, one text per run, on `threads` threads.
/// Returns how many windows were known already.
///
/// # Errors
/// The first failure of the model or the cache; vectors computed before it are in the cache.
pub fn fill(
    windows: &Windows,
    cache: &mut VectorCache,
    embedder: &dyn Embedder,
    threads: usize,
    progress: &Progress,
) -> Result<u64, EmbeddingError> {
    let mut missing: Vec<(&Key, &Window)> =
        windows.texts.iter().filter(|(key, _)| cache.get(key).is_none()).collect();
    // Longest first, so that the last texts to finish are short ones; ties by text for one order.
    missing
        .sort_by(|a, b| b.1.text.len().cmp(&a.1.text.len()).then_with(|| a.1.text.cmp(&b.1.text)));
    let reused = windows.keys.iter().filter(|k| cache.get(k).is_some()).count() as u64;
    // A session takes longer to make than a few texts to embed.
    let threads = threads.min(1 + missing.len() / TEXTS_FOR_ANOTHER_SESSION);
    let bar = progress.bar("embed", missing.len());
    let next = AtomicUsize::new(0);
    let failure: Mutex<Option<EmbedError>> = Mutex::new(None);
    let (sender, receiver) = mpsc::sync_channel::<(Key, Embedded)>(256);
    std::thread::scope(|scope| {
        for _ in 0..threads.max(1) {
            let sender = sender.clone();
            let (next, failure, missing) = (&next, &failure, &missing);
            scope.spawn(move || {
                while let Some((key, window)) = missing.get(next.fetch_add(1, Ordering::Relaxed)) {
                    match embedder.embed_passage(&window.text, &window.spans) {
                        Ok(embedded) => {
                            if sender.send((**key, embedded)).is_err() {
                                return; // The receiver gave up: its error is reported.
                            }
                        }
                        Err(e) => {
                            *failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(e);
                            next.store(missing.len(), Ordering::Relaxed);
                            return;
                        }
                    }
                }
            });
        }
        drop(sender);
        for (key, embedded) in receiver {
            cache.put(key, &embedded)?;
            bar.inc(1);
        }
        Ok::<(), PathError>(())
    })?;
    bar.finish_and_clear();
    match failure.into_inner().unwrap_or_else(PoisonError::into_inner) {
        Some(e) => Err(e.into()),
        None => Ok(reused),
    }
}

/// The rows of all windows, as the vector index takes them.
pub struct AllRows {
    /// Vectors of the windows, one after the other.
    pub rows: Vec<f32>,
    /// Vectors of the spans, one after the other, quantised.
    pub spans: Vec<i8>,
    /// How many spans there are up to and with each window.
    pub span_ends: Vec<u32>,
}

/// Collects the rows of all windows.
#[must_use]
pub fn rows(windows: &Windows, cache: &VectorCache, dim: usize) -> AllRows {
    let mut all = AllRows {
        rows: Vec::with_capacity(windows.keys.len() * dim),
        spans: Vec::new(),
        span_ends: Vec::with_capacity(windows.keys.len()),
    };
    for key in &windows.keys {
        let known = cache.get(key).expect("fill() has put every key into the cache");
        all.rows.extend_from_slice(&known.vector);
        all.spans.extend_from_slice(&known.spans);
        all.span_ends.push(u32::try_from(all.spans.len() / dim.max(1)).unwrap_or(u32::MAX));
    }
    all
}
