//! Scratch in memory: each session's own files, gone after a while or when the program ends.

use super::{children, now};
use crate::tree::error::TreeError;
use crate::tree::limits::Limits;
use crate::tree::store::{Content, Entry, Kind, Meta, Store};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Sessions that are kept; the one that was written longest ago goes first.
const SESSIONS_MAX: usize = 1024;

struct File {
    bytes: Arc<Vec<u8>>,
    modified: i64,
    written: Instant,
}

/// A session's files by path; a path that ends at `/` is a directory that was made.
type Files = BTreeMap<String, File>;

/// The store.
pub struct Scratch {
    sessions: Mutex<FxHashMap<String, Files>>,
    ttl: Duration,
    bytes: u64,
    bytes_all: u64,
    file_bytes: u64,
}

impl Scratch {
    /// An empty one.
    #[must_use]
    pub fn new(limits: &Limits) -> Self {
        Self {
            sessions: Mutex::default(),
            ttl: Duration::from_secs(limits.tmp_ttl_s),
            bytes: limits.tmp_bytes,
            bytes_all: limits.tmp_bytes_all,
            file_bytes: limits.file_bytes,
        }
    }

    /// All sessions, without what is past its time.
    fn lock(&self) -> MutexGuard<'_, FxHashMap<String, Files>> {
        let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        sessions.retain(|_, files| {
            files.retain(|_, f| now.saturating_duration_since(f.written) < self.ttl);
            !files.is_empty()
        });
        sessions
    }

    fn put(&self, session: &str, path: &str, bytes: Vec<u8>) -> Result<(), TreeError> {
        let size = bytes.len() as u64;
        let over = |what, limit| Err(TreeError::TooLarge { path: path.into(), what, limit });
        if size > self.file_bytes {
            return over("the file", self.file_bytes);
        }
        let mut sessions = self.lock();
        if let Some(files) = sessions.get(session) {
            check_place(files, path)?;
        }
        let used = |files: &Files| -> u64 { files.values().map(|f| f.bytes.len() as u64).sum() };
        let own = sessions.get(session).map_or(0, used);
        let all: u64 = sessions.values().map(used).sum();
        let old =
            sessions.get(session).and_then(|f| f.get(path)).map_or(0, |f| f.bytes.len() as u64);
        if own - old + size > self.bytes {
            return over("what the session keeps", self.bytes);
        }
        if all - old + size > self.bytes_all {
            return over("what all sessions keep", self.bytes_all);
        }
        if !sessions.contains_key(session) && sessions.len() >= SESSIONS_MAX {
            let last = |files: &Files| files.values().map(|f| f.written).max();
            let oldest = sessions.iter().min_by_key(|(_, f)| last(f)).map(|(name, _)| name.clone());
            if let Some(name) = oldest {
                sessions.remove(&name);
            }
        }
        sessions.entry(session.to_owned()).or_default().insert(
            path.to_owned(),
            File { bytes: Arc::new(bytes), modified: now(), written: Instant::now() },
        );
        Ok(())
    }
}

/// A file may not stand where a directory is, nor beneath a file.
fn check_place(files: &Files, path: &str) -> Result<(), TreeError> {
    let plain = path.trim_end_matches('/');
    if path == plain && is_dir(files, plain) {
        return Err(TreeError::IsDirectory(path.into()));
    }
    let above = plain.match_indices('/').map(|(at, _)| &plain[..at]);
    for file in above.chain((path != plain).then_some(plain)) {
        if files.contains_key(file) {
            return Err(TreeError::NotDirectory(file.into()));
        }
    }
    Ok(())
}

fn is_dir(files: &Files, path: &str) -> bool {
    let prefix = format!("{path}/");
    path.is_empty()
        || files.range(prefix.clone()..).next().is_some_and(|(p, _)| p.starts_with(&prefix))
}

fn meta(file: &File) -> Meta {
    Meta { kind: Kind::File, size: file.bytes.len() as u64, modified: file.modified }
}

impl Store for Scratch {
    fn writable(&self) -> bool {
        true
    }

    fn stat(&self, session: &str, path: &str) -> Result<Meta, TreeError> {
        let sessions = self.lock();
        let empty = Files::new();
        let files = sessions.get(session).unwrap_or(&empty);
        if is_dir(files, path) {
            return Ok(Meta { kind: Kind::Dir, size: 0, modified: now() });
        }
        files.get(path).map(meta).ok_or_else(|| TreeError::NotFound(path.into()))
    }

    fn list(&self, session: &str, path: &str) -> Result<Vec<Entry>, TreeError> {
        let sessions = self.lock();
        let empty = Files::new();
        let files = sessions.get(session).unwrap_or(&empty);
        if files.contains_key(path) {
            return Err(TreeError::NotDirectory(path.into()));
        }
        children(files.iter().map(|(p, f)| (p.as_str(), meta(f))), path)
            .ok_or_else(|| TreeError::NotFound(path.into()))
    }

    fn read(&self, session: &str, path: &str) -> Result<Content, TreeError> {
        let sessions = self.lock();
        let empty = Files::new();
        let files = sessions.get(session).unwrap_or(&empty);
        match files.get(path) {
            Some(file) => {
                Ok(Content::shared(Arc::<Vec<u8>>::clone(&file.bytes), 0..file.bytes.len()))
            }
            None if is_dir(files, path) => Err(TreeError::IsDirectory(path.into())),
            None => Err(TreeError::NotFound(path.into())),
        }
    }

    fn write(&self, session: &str, path: &str, content: &[u8]) -> Result<(), TreeError> {
        self.put(session, path, content.to_vec())
    }

    fn make_dir(&self, session: &str, path: &str) -> Result<(), TreeError> {
        self.put(session, &format!("{path}/"), Vec::new())
    }

    fn delete(&self, session: &str, path: &str) -> Result<(), TreeError> {
        let mut sessions = self.lock();
        let missing = || TreeError::NotFound(path.into());
        let files = sessions.get_mut(session).ok_or_else(missing)?;
        if files.remove(path).is_some() {
            // The directory stays, as on a disk.
            if let Some((dir, _)) = path.rsplit_once('/')
                && !is_dir(files, dir)
            {
                files.insert(
                    format!("{dir}/"),
                    File { bytes: Arc::default(), modified: now(), written: Instant::now() },
                );
            }
            return Ok(());
        }
        let mark = format!("{path}/");
        let beneath = files.range(mark.clone()..).take_while(|(p, _)| p.starts_with(&mark)).count();
        match (beneath, files.contains_key(&mark)) {
            (0, _) => Err(missing()),
            (1, true) => {
                files.remove(&mark);
                Ok(())
            }
            _ => Err(TreeError::BadRequest(format!("`{path}`: directory not empty"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sessions_are_apart_bounded_and_end() {
        let limits = Limits { tmp_bytes: 10, file_bytes: 8, ..Limits::default() };
        let scratch = Scratch::new(&limits);
        scratch.write("a", "x/y", b"12345678").unwrap();
        assert_eq!(&*scratch.read("a", "x/y").unwrap(), b"12345678");
        assert!(scratch.read("b", "x/y").is_err());
        assert!(matches!(scratch.write("a", "z", b"123"), Err(TreeError::TooLarge { .. })));
        assert!(matches!(scratch.write("a", "z", &[0; 9]), Err(TreeError::TooLarge { .. })));
        assert!(matches!(scratch.write("a", "x", b"1"), Err(TreeError::IsDirectory(_))));
        assert!(matches!(scratch.write("a", "x/y/z", b"1"), Err(TreeError::NotDirectory(_))));
        assert_eq!(scratch.list("a", "").unwrap()[0].meta.kind, Kind::Dir);
        assert!(scratch.delete("a", "x").is_err(), "it is not empty");
        scratch.delete("a", "x/y").unwrap();
        assert_eq!(scratch.list("a", "x").unwrap(), []);
        scratch.delete("a", "x").unwrap();
        assert_eq!(scratch.list("a", "").unwrap(), []);
        let short = Scratch::new(&Limits { tmp_ttl_s: 0, ..Limits::default() });
        short.write("a", "x", b"1").unwrap();
        assert!(short.read("a", "x").is_err());
    }
}
