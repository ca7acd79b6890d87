//! Scratch in Redis, shared by several daemons, with Redis's own expiry.
//!
//! ```text
//! runbook:tmp:<session>:f:<path>   the bytes, with a time to live
//! runbook:tmp:<session>:i          sorted set of `<path>` by the second at which it goes; `<dir>/` was made
//! ```

use super::{children, now};
use crate::tree::error::TreeError;
use crate::tree::limits::Limits;
use crate::tree::store::{Content, Entry, Kind, Meta, Store};
use redis::Commands;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// How long a connection or an answer may take.
const WITHIN: Duration = Duration::from_secs(3);

/// The store.
pub struct RedisScratch {
    client: redis::Client,
    connection: Mutex<Option<redis::Connection>>,
    ttl_s: u64,
    bytes: u64,
    file_bytes: u64,
}

impl RedisScratch {
    /// Scratch at an address, `redis://host:port/db`. Nothing is connected yet.
    ///
    /// # Errors
    /// When it is no address; the message does not hold it, since it may hold a password.
    pub fn new(url: &str, limits: &Limits) -> Result<Self, String> {
        let client = redis::Client::open(url)
            .map_err(|_| "it is not of the form redis://host:port/db".to_owned())?;
        Ok(Self {
            client,
            connection: Mutex::new(None),
            ttl_s: limits.tmp_ttl_s.max(1),
            bytes: limits.tmp_bytes,
            file_bytes: limits.file_bytes,
        })
    }

    /// Runs commands on the connection; connects when there is none, and once more when it broke.
    fn with<T>(
        &self,
        work: impl Fn(&mut redis::Connection) -> redis::RedisResult<T>,
    ) -> Result<T, TreeError> {
        let mut held = self.connection.lock().unwrap_or_else(PoisonError::into_inner);
        let mut last = None;
        for _ in 0..2 {
            let connection = match held.as_mut() {
                Some(connection) => connection,
                None => match self.connect() {
                    Ok(connection) => held.insert(connection),
                    Err(e) => {
                        last = Some(e);
                        break;
                    }
                },
            };
            match work(connection) {
                Ok(value) => return Ok(value),
                Err(e) => {
                    *held = None;
                    last = Some(e);
                }
            }
        }
        if let Some(e) = last {
            tracing::error!("redis: {e}");
        }
        Err(TreeError::Unavailable {
            mount: "/tmp".into(),
            why: "Redis does not answer; see the server's log".into(),
        })
    }

    fn connect(&self) -> redis::RedisResult<redis::Connection> {
        let connection = self.client.get_connection_with_timeout(WITHIN)?;
        connection.set_read_timeout(Some(WITHIN))?;
        connection.set_write_timeout(Some(WITHIN))?;
        Ok(connection)
    }

    /// The paths of a session that are not past their time, with the second at which each goes.
    fn paths(&self, session: &str) -> Result<Vec<(String, i64)>, TreeError> {
        let key = index(session);
        let from = now() + 1;
        let mut paths: Vec<(String, f64)> =
            self.with(|c| c.zrangebyscore_withscores(&key, from, "+inf"))?;
        paths.sort_by(|a, b| a.0.cmp(&b.0));
        #[expect(clippy::cast_possible_truncation, reason = "seconds since 1970")]
        Ok(paths.into_iter().map(|(path, at)| (path, at as i64)).collect())
    }

    /// The same with sizes.
    fn files(&self, session: &str) -> Result<Vec<(String, Meta)>, TreeError> {
        let paths = self.paths(session)?;
        let mut pipe = redis::pipe();
        for (path, _) in &paths {
            pipe.strlen(file(session, path));
        }
        let sizes: Vec<u64> =
            if paths.is_empty() { Vec::new() } else { self.with(|c| pipe.query(c))? };
        let ttl = i64::try_from(self.ttl_s).unwrap_or(0);
        Ok(paths
            .into_iter()
            .zip(sizes)
            .map(|((path, at), size)| (path, Meta { kind: Kind::File, size, modified: at - ttl }))
            .collect())
    }

    fn put(&self, session: &str, path: &str, content: &[u8]) -> Result<(), TreeError> {
        let over = |what, limit| Err(TreeError::TooLarge { path: path.into(), what, limit });
        let size = content.len() as u64;
        if size > self.file_bytes {
            return over("the file", self.file_bytes);
        }
        let files = self.files(session)?;
        check_place(&files, path)?;
        let others: u64 = files.iter().filter(|(p, _)| p != path).map(|(_, m)| m.size).sum();
        if others + size > self.bytes {
            return over("what the session keeps", self.bytes);
        }
        let gone_at = now() + i64::try_from(self.ttl_s).unwrap_or(i64::MAX / 2);
        let ttl = i64::try_from(self.ttl_s).unwrap_or(i64::MAX);
        self.with(|c| {
            redis::pipe()
                .atomic()
                .set_ex(file(session, path), content, self.ttl_s)
                .ignore()
                .zadd(index(session), path, gone_at)
                .ignore()
                .zrembyscore(index(session), "-inf", now())
                .ignore()
                .expire(index(session), ttl)
                .ignore()
                .query::<()>(c)
        })
    }
}

fn file(session: &str, path: &str) -> String {
    format!("runbook:tmp:{session}:f:{path}")
}

fn index(session: &str) -> String {
    format!("runbook:tmp:{session}:i")
}

fn check_place(files: &[(String, Meta)], path: &str) -> Result<(), TreeError> {
    let plain = path.trim_end_matches('/');
    for (there, _) in files {
        let beneath = there.strip_prefix(plain).is_some_and(|r| r.starts_with('/'));
        if beneath && path == plain {
            return Err(TreeError::IsDirectory(path.into()));
        }
        let above = path.strip_prefix(there.as_str()).is_some_and(|r| r.starts_with('/'));
        if above && !there.ends_with('/') {
            return Err(TreeError::NotDirectory(there.clone()));
        }
    }
    Ok(())
}

impl Store for RedisScratch {
    fn writable(&self) -> bool {
        true
    }

    fn stat(&self, session: &str, path: &str) -> Result<Meta, TreeError> {
        let dir = Meta { kind: Kind::Dir, size: 0, modified: now() };
        if path.is_empty() {
            return Ok(dir);
        }
        let files = self.files(session)?;
        if let Some((_, meta)) = files.iter().find(|(p, _)| p == path) {
            return Ok(*meta);
        }
        children(files.iter().map(|(p, m)| (p.as_str(), *m)), path)
            .map(|_| dir)
            .ok_or_else(|| TreeError::NotFound(path.into()))
    }

    fn list(&self, session: &str, path: &str) -> Result<Vec<Entry>, TreeError> {
        let files = self.files(session)?;
        if files.iter().any(|(p, _)| p == path) {
            return Err(TreeError::NotDirectory(path.into()));
        }
        children(files.iter().map(|(p, m)| (p.as_str(), *m)), path)
            .ok_or_else(|| TreeError::NotFound(path.into()))
    }

    fn read(&self, session: &str, path: &str) -> Result<Content, TreeError> {
        let bytes: Option<Vec<u8>> = self.with(|c| c.get(file(session, path)))?;
        match bytes {
            Some(bytes) => Ok(Content::owned(bytes)),
            None => Err(match self.stat(session, path) {
                Ok(_) => TreeError::IsDirectory(path.into()),
                Err(e) => e,
            }),
        }
    }

    fn write(&self, session: &str, path: &str, content: &[u8]) -> Result<(), TreeError> {
        self.put(session, path, content)
    }

    fn make_dir(&self, session: &str, path: &str) -> Result<(), TreeError> {
        self.put(session, &format!("{path}/"), b"")
    }

    fn delete(&self, session: &str, path: &str) -> Result<(), TreeError> {
        let files = self.files(session)?;
        let mark = format!("{path}/");
        let beneath = files.iter().filter(|(p, _)| p.starts_with(&mark)).count();
        let target = if files.iter().any(|(p, _)| p == path) {
            path.to_owned()
        } else if beneath == 0 {
            return Err(TreeError::NotFound(path.into()));
        } else if beneath == 1 && files.iter().any(|(p, _)| *p == mark) {
            mark
        } else {
            return Err(TreeError::BadRequest(format!("`{path}`: directory not empty")));
        };
        self.with(|c| {
            redis::pipe()
                .atomic()
                .del(file(session, &target))
                .ignore()
                .zrem(index(session), &target)
                .ignore()
                .query::<()>(c)
        })
    }
}
