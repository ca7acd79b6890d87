//! Artifacts: durable files of which every write is kept, over any object store (a directory, S3).
//!
//! ```text
//! notes=/todo.md@/1764590000123456-9f02ab            a version of /notes/todo.md
//! notes=/todo.md@/1764590000999999-0c11de.gone       the file was deleted then
//! notes=/_                                           the directory was made
//! ```
//!
//! A component that ends at `=` is a directory, one that ends at `@` a file; names of versions sort by time.
//! Nothing is ever overwritten, so daemons may share a bucket. Old versions go only where [`Keep`] says so.

mod prune;

use super::{children, now};
use crate::tree::error::TreeError;
use crate::tree::store::{Content, Entry, Kind, Meta, Store, Version};
use futures_util::TryStreamExt;
use object_store::path::{Path, PathPart};
use object_store::{ObjectStore, ObjectStoreExt, PutPayload};
use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::mpsc;
use std::time::Duration;

pub use prune::Keep;

/// What the object store may take for one request.
const WITHIN: Duration = Duration::from_secs(20);
/// The end of the name of a version that is a deletion.
const GONE: &str = ".gone";
/// The name of the object that says that a directory was made.
const MADE: &str = "_";

/// The store.
pub struct Artifacts {
    objects: Arc<dyn ObjectStore>,
    /// Taken when the store is dropped.
    runtime: Option<tokio::runtime::Runtime>,
    file_bytes: u64,
    keep: Keep,
    last: AtomicI64,
}

/// The versions of each file by path, and directories that were made (their path ends at `/`).
type All = BTreeMap<String, Vec<Version>>;

impl Artifacts {
    /// Artifacts in an object store.
    ///
    /// # Errors
    /// When the thread that speaks to it cannot be started.
    pub fn new(objects: Arc<dyn ObjectStore>, file_bytes: u64) -> std::io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("artifacts")
            .enable_all()
            .build()?;
        let (runtime, last) = (Some(runtime), AtomicI64::new(0));
        Ok(Self { objects, runtime, file_bytes, keep: Keep::default(), last })
    }

    /// The same with a limit on what is kept of the past.
    #[must_use]
    pub fn keeping(mut self, keep: Keep) -> Self {
        self.keep = keep;
        self
    }

    /// Runs a request to its end, from any thread.
    fn wait<T: Send + 'static>(
        &self,
        what: &str,
        work: impl Future<Output = object_store::Result<T>> + Send + 'static,
    ) -> Result<T, TreeError> {
        let (sender, receiver) = mpsc::channel();
        if let Some(runtime) = &self.runtime {
            runtime.spawn(async move {
                let result = tokio::time::timeout(WITHIN, work).await;
                let _ = sender.send(result);
            });
        }
        let unavailable =
            |why: &str| TreeError::Unavailable { mount: what.into(), why: why.into() };
        match receiver.recv_timeout(WITHIN + Duration::from_secs(1)) {
            Ok(Ok(Ok(value))) => Ok(value),
            Ok(Ok(Err(object_store::Error::NotFound { .. }))) => {
                Err(TreeError::NotFound(what.into()))
            }
            Ok(Ok(Err(e))) => {
                // The message may hold addresses and paths: it is for the log alone.
                tracing::error!("artifacts: `{what}`: {e}");
                Err(unavailable("the object store answered with an error; see the server's log"))
            }
            Ok(Err(_)) | Err(_) => Err(unavailable("the object store did not answer in time")),
        }
    }

    /// Everything beneath a directory.
    fn all(&self, dir: &str) -> Result<All, TreeError> {
        let prefix = (!dir.is_empty()).then(|| Path::from_iter(dir.split('/').map(dir_part)));
        let objects = Arc::clone(&self.objects);
        let listed =
            self.wait(
                dir,
                async move { objects.list(prefix.as_ref()).try_collect::<Vec<_>>().await },
            )?;
        let mut all = All::new();
        for object in listed {
            let Some((path, version)) = parse(&object.location) else { continue };
            all.entry(path).or_default().extend(version.map(|id| Version {
                deleted: id.ends_with(GONE),
                id,
                modified: object.last_modified.timestamp(),
                size: object.size,
            }));
        }
        for versions in all.values_mut() {
            versions.sort_by(|a, b| a.id.cmp(&b.id));
        }
        Ok(all)
    }

    /// The versions of one file.
    fn versions(&self, path: &str) -> Result<Vec<Version>, TreeError> {
        let objects = Arc::clone(&self.objects);
        let prefix = file_prefix(path);
        let listed =
            self.wait(path, async move { objects.list_with_delimiter(Some(&prefix)).await })?;
        let mut versions: Vec<Version> = listed
            .objects
            .iter()
            .filter_map(|o| {
                let id = o.location.filename()?.to_owned();
                Some(Version {
                    deleted: id.ends_with(GONE),
                    id,
                    modified: o.last_modified.timestamp(),
                    size: o.size,
                })
            })
            .collect();
        versions.sort_by(|a, b| a.id.cmp(&b.id));
        Ok(versions)
    }

    fn put(&self, path: &str, object: Path, content: Vec<u8>) -> Result<(), TreeError> {
        let objects = Arc::clone(&self.objects);
        self.wait(path, async move { objects.put(&object, PutPayload::from(content)).await })
            .map(|_| ())
    }

    /// A name for a new version, after all that this program gave before.
    fn new_id(&self) -> String {
        let now = jiff::Timestamp::now().as_microsecond();
        let last = self
            .last
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |last| Some(now.max(last + 1)))
            .unwrap_or(now);
        let at = now.max(last + 1);
        let seed = format!("{at}-{}-{:p}", std::process::id(), self);
        format!("{at:016}-{}", &blake3::hash(seed.as_bytes()).to_hex()[..6])
    }

    /// A file may not stand where a directory is, nor beneath a file.
    fn check_place(&self, path: &str) -> Result<(), TreeError> {
        for (at, _) in path.match_indices('/') {
            let above = &path[..at];
            if self.versions(above)?.last().is_some_and(|v| !v.deleted) {
                return Err(TreeError::NotDirectory(above.into()));
            }
        }
        Ok(())
    }

    /// Whether a file may be written: not when it would not fit beside the latest versions of all others.
    fn check_size(&self, path: &str, size: u64) -> Result<(), TreeError> {
        if self.keep.bytes == 0 {
            return Ok(());
        }
        let mut all = self.all("")?;
        let (id, modified) = ("9".repeat(24), now());
        let written = Version { id, modified, size, deleted: false };
        all.entry(path.to_owned()).or_default().push(written);
        self.keep.too_many(&all).map(drop).map_err(|()| TreeError::TooLarge {
            path: path.into(),
            what: "what all artifacts hold",
            limit: self.keep.bytes,
        })
    }

    /// Removes what is over the limits. A version that cannot be removed now is looked at by the next write.
    fn prune(&self, path: &str) {
        let mut gone: Vec<(String, String)> = Vec::new();
        if self.keep.versions > 0
            && let Ok(versions) = self.versions(path)
        {
            let over = self.keep.over(&versions).iter();
            gone.extend(over.map(|v| (path.to_owned(), v.id.clone())));
        }
        if self.keep.bytes > 0
            && let Ok(mut all) = self.all("")
        {
            for (path, id) in &gone {
                all.entry(path.clone()).and_modify(|vs| vs.retain(|v| v.id != *id));
            }
            gone.extend(self.keep.too_many(&all).unwrap_or_default());
        }
        let mut removed = 0_usize;
        for (path, id) in gone {
            let (objects, object) = (Arc::clone(&self.objects), file_prefix(&path).join(id));
            removed +=
                usize::from(self.wait(&path, async move { objects.delete(&object).await }).is_ok());
        }
        if removed > 0 {
            tracing::info!(
                "artifacts: {removed} old versions were removed; {}",
                self.keep.describe()
            );
        }
    }

    fn is_dir(&self, path: &str) -> Result<bool, TreeError> {
        Ok(path.is_empty() || children(live(&self.all(path)?), path).is_some())
    }

    fn get(&self, path: &str, object: Path) -> Result<Content, TreeError> {
        let objects = Arc::clone(&self.objects);
        let bytes = self.wait(path, async move { objects.get(&object).await?.bytes().await })?;
        Ok(Content::owned(bytes.to_vec()))
    }
}

impl Drop for Artifacts {
    fn drop(&mut self) {
        // The daemon drops this within its own runtime, where another one must not be waited for.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// Files that are not deleted, and directories that were made.
fn live(all: &All) -> impl Iterator<Item = (&str, Meta)> {
    all.iter().filter_map(|(path, versions)| match versions.last() {
        None if path.ends_with('/') => {
            Some((path.as_str(), Meta { kind: Kind::Dir, size: 0, modified: now() }))
        }
        Some(v) if !v.deleted => Some((path.as_str(), meta(v))),
        _ => None,
    })
}

fn meta(version: &Version) -> Meta {
    Meta { kind: Kind::File, size: version.size, modified: version.modified }
}

fn dir_part(name: &str) -> PathPart<'static> {
    PathPart::from(format!("{name}="))
}

fn file_prefix(path: &str) -> Path {
    let (dir, name) = path.rsplit_once('/').unwrap_or(("", path));
    let dirs = dir.split('/').filter(|p| !p.is_empty()).map(dir_part);
    Path::from_iter(dirs.chain([PathPart::from(format!("{name}@"))]))
}

/// The path, and the version's name where it is one.
fn parse(location: &Path) -> Option<(String, Option<String>)> {
    let mut path = String::new();
    let parts: Vec<String> = location.parts().map(|p| decode(p.as_ref())).collect();
    let (last, above) = parts.split_last()?;
    for (n, part) in above.iter().enumerate() {
        let is_file = n + 1 == above.len() && part.ends_with('@');
        let name = part.strip_suffix(if is_file { '@' } else { '=' })?;
        path.push_str(name);
        if is_file {
            return Some((path, Some(last.clone())));
        }
        path.push('/');
    }
    (last == MADE).then_some((path, None))
}

/// Undoes the percent-encoding of a part.
fn decode(part: &str) -> String {
    let mut out = Vec::with_capacity(part.len());
    let bytes = part.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        let hex = bytes.get(at + 1..at + 3).and_then(|h| std::str::from_utf8(h).ok());
        match hex.and_then(|h| u8::from_str_radix(h, 16).ok()).filter(|_| bytes[at] == b'%') {
            Some(byte) => {
                out.push(byte);
                at += 3;
            }
            None => {
                out.push(bytes[at]);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

impl Store for Artifacts {
    fn writable(&self) -> bool {
        true
    }

    fn versioned(&self) -> bool {
        true
    }

    fn keeps(&self) -> Option<String> {
        Some(self.keep.describe())
    }

    fn stat(&self, _: &str, path: &str) -> Result<Meta, TreeError> {
        let dir = Meta { kind: Kind::Dir, size: 0, modified: now() };
        if path.is_empty() {
            return Ok(dir);
        }
        match self.versions(path)?.last() {
            Some(v) if !v.deleted => Ok(meta(v)),
            _ if self.is_dir(path)? => Ok(dir),
            _ => Err(TreeError::NotFound(path.into())),
        }
    }

    fn list(&self, session: &str, path: &str) -> Result<Vec<Entry>, TreeError> {
        match children(live(&self.all(path)?), path) {
            Some(entries) => Ok(entries),
            None if path.is_empty() => Ok(Vec::new()),
            None => Err(match self.stat(session, path) {
                Ok(_) => TreeError::NotDirectory(path.into()),
                Err(e) => e,
            }),
        }
    }

    fn read(&self, _: &str, path: &str) -> Result<Content, TreeError> {
        match self.versions(path)?.last() {
            Some(v) if !v.deleted => self.get(path, file_prefix(path).join(v.id.clone())),
            _ if self.is_dir(path)? => Err(TreeError::IsDirectory(path.into())),
            _ => Err(TreeError::NotFound(path.into())),
        }
    }

    fn write(&self, _: &str, path: &str, content: &[u8]) -> Result<(), TreeError> {
        if content.len() as u64 > self.file_bytes {
            let limit = self.file_bytes;
            return Err(TreeError::TooLarge { path: path.into(), what: "the file", limit });
        }
        self.check_place(path)?;
        if self.is_dir(path)? {
            return Err(TreeError::IsDirectory(path.into()));
        }
        self.check_size(path, content.len() as u64)?;
        self.put(path, file_prefix(path).join(self.new_id()), content.to_vec())?;
        self.prune(path);
        Ok(())
    }

    fn make_dir(&self, _: &str, path: &str) -> Result<(), TreeError> {
        self.check_place(&format!("{path}/"))?;
        let parts = path.split('/').map(dir_part).chain([PathPart::from(MADE)]);
        self.put(path, Path::from_iter(parts), Vec::new())
    }

    fn delete(&self, _: &str, path: &str) -> Result<(), TreeError> {
        if self.versions(path)?.last().is_some_and(|v| !v.deleted) {
            let object = file_prefix(path).join(format!("{}{GONE}", self.new_id()));
            self.put(path, object, Vec::new())?;
            self.prune(path);
            return Ok(());
        }
        match children(live(&self.all(path)?), path) {
            None => Err(TreeError::NotFound(path.into())),
            Some(entries) if entries.is_empty() => {
                let parts = path.split('/').map(dir_part).chain([PathPart::from(MADE)]);
                let object = Path::from_iter(parts);
                let objects = Arc::clone(&self.objects);
                self.wait(path, async move { objects.delete(&object).await })
            }
            Some(_) => Err(TreeError::BadRequest(format!("`{path}`: directory not empty"))),
        }
    }

    fn history(&self, _: &str, path: &str) -> Result<Vec<Version>, TreeError> {
        let versions = self.versions(path)?;
        if versions.is_empty() { Err(TreeError::NotFound(path.into())) } else { Ok(versions) }
    }

    fn read_version(&self, _: &str, path: &str, version: &str) -> Result<Content, TreeError> {
        let versions = self.versions(path)?;
        match versions.iter().find(|v| v.id == version) {
            Some(v) if !v.deleted => self.get(path, file_prefix(path).join(v.id.clone())),
            _ => Err(TreeError::NoVersion { path: path.into(), version: version.into() }),
        }
    }
}
