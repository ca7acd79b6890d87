//! Writing a generation so that `current` is a whole old or a whole new one at every instant.
//!
//! Files are written into `generations/.tmp-*`, synced, the directory renamed to its id, and the
//! link `current` replaced by a rename. A crash before that last rename loses the new generation
//! and nothing else; what it leaves behind is swept by the next run.

use super::manifest::{FILE_NAME, FileEntry, Manifest, id_of};
use super::pin::Pin;
use super::{CURRENT, GENERATIONS, Generation, OpenError, hash_file, read_manifest, verify_files};
use crate::error::{IoContext, PathError};
use crate::failpoint::reach;
use crate::limits::GENERATIONS_KEPT;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

/// The prefix of directories that are being written.
const TMP_PREFIX: &str = ".tmp-";
/// The prefix of links that are being written.
const LINK_PREFIX: &str = "current.tmp-";
/// How many files are synced or removed at a time.
const DISK_THREADS: usize = 8;

/// A generation that is being written; dropped, it is removed.
pub struct Draft {
    data: PathBuf,
    dir: PathBuf,
}

impl Draft {
    /// Makes an empty directory to write a generation into, and removes what crashed runs left.
    ///
    /// Only the holder of the ingest lock may call this.
    ///
    /// # Errors
    /// When the data directory cannot be written.
    pub fn begin(data: &Path) -> Result<Self, PathError> {
        let generations = data.join(GENERATIONS);
        fs::create_dir_all(&generations).at("create directory", &generations)?;
        sweep(data)?;
        // Runs that were killed between renaming and pruning leave generations; without end, where
        // every run is.
        let current = super::current_id(data).unwrap_or_default();
        prune_or_warn(data, &current);
        let dir = generations.join(format!("{TMP_PREFIX}{}", std::process::id()));
        fs::create_dir(&dir).at("create directory", &dir)?;
        // `current` must never be durable before the directory that it points into.
        sync_dir(data)?;
        reach("draft.begun");
        Ok(Self { data: data.to_owned(), dir })
    }

    /// Where the files go.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Creates the file at a path within the generation, and the directories above it, and fills it.
    ///
    /// # Errors
    /// When it exists or cannot be written.
    pub fn write(&self, name: &Path, bytes: &[u8]) -> Result<(), PathError> {
        let path = self.dir.join(name);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).at("create directory", parent)?;
        }
        let mut file = File::create_new(&path).at("create", &path)?;
        reach("draft.file");
        file.write_all(bytes).at("write", &path)
    }

    /// Sizes and hashes of all files but the manifest, after removing lock files.
    ///
    /// # Errors
    /// When a file cannot be read.
    pub fn files(&self) -> Result<BTreeMap<String, FileEntry>, PathError> {
        let mut files = BTreeMap::new();
        let mut pending = vec![self.dir.clone()];
        while let Some(dir) = pending.pop() {
            for entry in fs::read_dir(&dir).at("list", &dir)? {
                let path = entry.at("list", &dir)?.path();
                if path.is_dir() {
                    pending.push(path);
                } else if path.extension().is_some_and(|e| e == "lock") && dir.ends_with("lexical")
                {
                    fs::remove_file(&path).at("remove", &path)?;
                } else {
                    let (bytes, blake3) = hash_file(&path)?;
                    let name = path
                        .strip_prefix(&self.dir)
                        .unwrap_or(&path)
                        .to_string_lossy()
                        .into_owned();
                    files.insert(name, FileEntry { bytes, blake3 });
                }
            }
        }
        Ok(files)
    }

    /// Opens what is written so far as readers will; the manifest is the one that it will get.
    ///
    /// # Errors
    /// When the files do not fit each other.
    pub fn open(&self, manifest: &Manifest) -> Result<Generation, OpenError> {
        Generation::open_dir(self.dir.clone(), "the draft", manifest.clone())
    }

    /// Syncs everything, renames the directory to its id and returns the id; `current` still points
    /// to the old generation. The manifest's `files` must be complete.
    ///
    /// # Errors
    /// When a file cannot be written or synced.
    pub fn seal(self, manifest: &Manifest, now: jiff::Timestamp) -> Result<Sealed, PathError> {
        let bytes = serde_json::to_vec_pretty(manifest).unwrap_or_default();
        self.write(Path::new(FILE_NAME), &bytes)?;
        reach("manifest.written");
        sync_tree(&self.dir)?;
        reach("fsync.tree");
        let id = id_of(now, &bytes);
        let target = self.data.join(GENERATIONS).join(&id);
        fs::rename(&self.dir, &target).at("rename", &self.dir)?;
        reach("rename.done");
        sync_dir(&self.data.join(GENERATIONS))?;
        reach("rename.synced");
        Ok(Sealed { data: self.data.clone(), id })
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        // After `seal` there is nothing here; after a failure, what cannot be removed now is swept
        // by the next run.
        let _ = fs::remove_dir_all(&self.dir);
    }
}

/// A generation that is complete and durable, but not current.
pub struct Sealed {
    data: PathBuf,
    id: String,
}

impl Sealed {
    /// The id.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Reads it back: every byte is what the manifest says, and the manifest what the id says.
    ///
    /// # Errors
    /// When it is not.
    pub fn verify(&self) -> Result<(), OpenError> {
        verify_files(&self.data, &self.id, &read_manifest(&self.data, &self.id)?)
    }

    /// Removes it again, after it failed to verify.
    ///
    /// # Errors
    /// When it cannot be removed.
    pub fn discard(self) -> Result<(), PathError> {
        let dir = self.data.join(GENERATIONS).join(&self.id);
        fs::remove_dir_all(&dir).at("remove", &dir)
    }

    /// Makes it current, then removes the oldest generations beyond [`GENERATIONS_KEPT`], save one that
    /// is pinned.
    ///
    /// # Errors
    /// When the link cannot be replaced, or the change cannot be synced.
    pub fn publish(self) -> Result<(), PathError> {
        point_to(&self.data, &self.id)?;
        prune_or_warn(&self.data, &self.id);
        reach("prune.done");
        Ok(())
    }
}

/// Replaces the link `current` by one to this generation.
///
/// # Errors
/// When it cannot be replaced.
pub fn point_to(data: &Path, id: &str) -> Result<(), PathError> {
    let link = data.join(format!("{LINK_PREFIX}{}", std::process::id()));
    std::os::unix::fs::symlink(Path::new(GENERATIONS).join(id), &link).at("create link", &link)?;
    let current = data.join(CURRENT);
    reach("swap.link_made");
    fs::rename(&link, &current).at("replace", &current)?;
    reach("swap.renamed");
    sync_dir(data)?;
    reach("swap.synced");
    Ok(())
}

/// What cannot be removed now is removed next time, and is no reason to fail.
fn prune_or_warn(data: &Path, current: &str) {
    if let Err(e) = prune(data, current) {
        tracing::warn!("old generations are not removed: {e}");
    }
}

fn prune(data: &Path, current: &str) -> Result<(), PathError> {
    let mut ids = kept(data)?;
    // Whatever a pin that cannot be read names must not be removed.
    let pinned = match Pin::read(data) {
        Ok(pin) => pin.map(|pin| pin.generation),
        Err(e) => {
            tracing::warn!("{e}: no old generation is removed");
            return Ok(());
        }
    };
    ids.retain(|id| id != current && Some(id) != pinned.as_ref());
    let surplus = (ids.len() + 1).saturating_sub(GENERATIONS_KEPT);
    for id in &ids[..surplus.min(ids.len())] {
        remove_tree(&data.join(GENERATIONS).join(id))?;
    }
    Ok(())
}

/// The ids of the generations of a data directory, oldest first; none of them is opened.
///
/// # Errors
/// When the directory cannot be listed; one that is not there holds none.
pub fn kept(data: &Path) -> Result<Vec<String>, PathError> {
    let generations = data.join(GENERATIONS);
    let mut ids = match list(&generations) {
        Err(e) if e.is_not_found() => Vec::new(),
        listed => listed?,
    };
    ids.retain(|id| !id.starts_with('.'));
    ids.sort(); // Ids start with their time.
    Ok(ids)
}

/// Removes what crashed runs left behind.
fn sweep(data: &Path) -> Result<(), PathError> {
    let generations = data.join(GENERATIONS);
    for name in list(&generations)?.iter().filter(|n| n.starts_with(TMP_PREFIX)) {
        let dir = generations.join(name);
        fs::remove_dir_all(&dir).at("remove", &dir)?;
    }
    for name in list(data)?.iter().filter(|n| n.starts_with(LINK_PREFIX)) {
        let link = data.join(name);
        fs::remove_file(&link).at("remove", &link)?;
    }
    Ok(())
}

fn list(dir: &Path) -> Result<Vec<String>, PathError> {
    fs::read_dir(dir)
        .at("list", dir)?
        .map(|entry| Ok(entry.at("list", dir)?.file_name().to_string_lossy().into_owned()))
        .collect()
}

/// Makes a directory and all beneath it durable.
fn sync_tree(dir: &Path) -> Result<(), PathError> {
    for_each(&tree(dir)?, |path| {
        reach("fsync.file");
        File::open(path).and_then(|f| f.sync_all()).at("sync", path)
    })
}

/// Removes a directory and all beneath it.
fn remove_tree(dir: &Path) -> Result<(), PathError> {
    let files: Vec<PathBuf> =
        tree(dir)?.into_iter().filter(|path| !path.is_dir() || path.is_symlink()).collect();
    for_each(&files, |path| {
        reach("prune.file");
        fs::remove_file(path).at("remove", path)
    })?;
    fs::remove_dir_all(dir).at("remove", dir)
}

/// Several at a time: such calls wait for the disk, and the file system commits at once what waits
/// together.
fn for_each(
    paths: &[PathBuf],
    act: impl Fn(&Path) -> Result<(), PathError> + Sync,
) -> Result<(), PathError> {
    let next = AtomicUsize::new(0);
    let act_on_some = || {
        while let Some(path) = paths.get(next.fetch_add(1, Ordering::Relaxed)) {
            act(path)?;
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> =
            (0..DISK_THREADS.min(paths.len())).map(|_| scope.spawn(act_on_some)).collect();
        threads
            .into_iter()
            .try_for_each(|thread| thread.join().unwrap_or_else(|panic| resume_unwind(panic)))
    })
}

/// All files and directories of a tree, itself among them.
fn tree(dir: &Path) -> Result<Vec<PathBuf>, PathError> {
    let (mut paths, mut pending) = (Vec::new(), vec![dir.to_owned()]);
    while let Some(dir) = pending.pop() {
        for entry in fs::read_dir(&dir).at("list", &dir)? {
            let entry = entry.at("list", &dir)?;
            let is_dir = entry.file_type().at("examine", &entry.path())?.is_dir();
            if is_dir { &mut pending } else { &mut paths }.push(entry.path());
        }
        paths.push(dir);
    }
    Ok(paths)
}

/// Makes the entries of a directory durable.
///
/// # Errors
/// When the directory cannot be opened or synced.
pub fn sync_dir(dir: &Path) -> Result<(), PathError> {
    File::open(dir).and_then(|f| f.sync_all()).at("sync", dir)
}

/// Replaces a file of the data directory in one step.
///
/// # Errors
/// When it cannot be written.
pub fn replace_file(path: &Path, bytes: &[u8]) -> Result<(), PathError> {
    replace(path, bytes, None)
}

/// The same for a file that all may read, whatever the umask of the process.
///
/// # Errors
/// When it cannot be written.
pub fn replace_public_file(path: &Path, bytes: &[u8]) -> Result<(), PathError> {
    replace(path, bytes, Some(0o644))
}

fn replace(path: &Path, bytes: &[u8], mode: Option<u32>) -> Result<(), PathError> {
    let tmp = path.with_extension(format!("tmp-{}", std::process::id()));
    let written = File::create(&tmp).and_then(|mut file| {
        if let Some(mode) = mode {
            file.set_permissions(fs::Permissions::from_mode(mode))?;
        }
        file.write_all(bytes)?;
        file.sync_all()
    });
    if let Err(source) = written {
        let _ = fs::remove_file(&tmp);
        return Err(PathError { action: "write", path: tmp, source });
    }
    reach("replace.written");
    fs::rename(&tmp, path).at("replace", path)?;
    reach("replace.renamed");
    path.parent().map_or(Ok(()), sync_dir)
}
