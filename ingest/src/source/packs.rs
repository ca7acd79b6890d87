//! Keeps the mirror from growing without end: each fetch leaves a pack, and each rewritten branch
//! objects that nothing needs any more.
//!
//! Many packs become one, but for the largest, so that the cost is that of what came since. Once the
//! others together outgrow the largest, what is needed may be a small part of all: the mirror is then
//! fetched anew. So over time it takes at most twice the room of a fresh one, and twice the traffic.

use git2::{Oid, Repository};
use runbook_shared::error::{IoContext, PathError};
use runbook_shared::failpoint::reach;
use runbook_shared::generation::publish::sync_dir;
use std::cmp::Reverse;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

/// From how many packs on they are merged.
const PACKS_MAX: usize = 20;
/// How much larger than the largest pack the others together may be, in bytes, before the mirror is
/// fetched anew.
const OUTGROWN_BYTES: u64 = 1024 * 1024;

/// A pack of a repository.
struct Pack {
    /// Its path without the extension.
    stem: PathBuf,
    bytes: u64,
}

impl Pack {
    fn file(&self, extension: &str) -> PathBuf {
        self.stem.with_extension(extension)
    }
}

/// Why packs are not merged; they stay as they are.
#[derive(Debug, thiserror::Error)]
pub(super) enum PackError {
    /// A file operation failed.
    #[error(transparent)]
    File(#[from] PathError),
    /// libgit2 cannot read or write a pack.
    #[error("{}", .0.message())]
    Git(#[from] git2::Error),
    /// The index of a pack is not one.
    #[error("`{}` is not an index of version 2", .0.display())]
    Index(PathBuf),
}

/// The packs, largest first.
fn packs(mirror: &Path) -> Result<Vec<Pack>, PathError> {
    let dir = directory(mirror);
    let mut packs = Vec::new();
    for entry in fs::read_dir(&dir).at("list", &dir)? {
        let path = entry.at("list", &dir)?.path();
        if path.extension().is_some_and(|e| e == "pack") {
            let bytes = fs::metadata(&path).at("examine", &path)?.len();
            packs.push(Pack { stem: path.with_extension(""), bytes });
        }
    }
    packs.sort_by_key(|pack| Reverse((pack.bytes, pack.stem.clone())));
    Ok(packs)
}

fn directory(mirror: &Path) -> PathBuf {
    mirror.join("objects").join("pack")
}

/// True when all packs but the largest are larger than it.
///
/// # Errors
/// When the packs cannot be listed.
pub(super) fn is_outgrown(mirror: &Path) -> Result<bool, PathError> {
    let packs = packs(mirror)?;
    let largest = packs.first().map_or(0, |pack| pack.bytes);
    let others: u64 = packs.iter().skip(1).map(|pack| pack.bytes).sum();
    Ok(others > largest + OUTGROWN_BYTES)
}

/// Merges all packs but the largest, when there are many; returns whether it did. A crash leaves
/// objects in two packs, which does no harm.
///
/// # Errors
/// When a pack cannot be read or written; all objects are then still there.
pub(super) fn merge(repository: &Repository) -> Result<bool, PackError> {
    let packs = packs(repository.path())?;
    if packs.len() < PACKS_MAX {
        return Ok(false);
    }
    let mut builder = repository.packbuilder()?;
    for pack in &packs[1..] {
        for id in objects(&pack.file("idx"))? {
            builder.insert_object(id, None)?;
        }
    }
    let dir = directory(repository.path());
    builder.write(&dir, 0)?;
    let name = builder.name()?.unwrap_or_default();
    let merged = dir.join(format!("pack-{name}"));
    for extension in ["pack", "idx"] {
        let path = merged.with_extension(extension);
        File::open(&path).and_then(|f| f.sync_all()).at("sync", &path)?;
    }
    sync_dir(&dir)?;
    reach("fetch.merged");
    for pack in packs[1..].iter().filter(|pack| pack.stem != merged) {
        // The index goes first: a pack without one is not looked at.
        for extension in ["idx", "pack"] {
            let path = pack.file(extension);
            fs::remove_file(&path).at("remove", &path)?;
            reach("fetch.pack_removed");
        }
    }
    Ok(true)
}

/// The names of the objects in a pack, from its index (gitformat-pack(5), version 2): 8 bytes, 256
/// counts, then the names of 20 bytes.
fn objects(index: &Path) -> Result<Vec<Oid>, PackError> {
    const NAMES_AT: usize = 8 + 256 * 4;
    let bytes = fs::read(index).at("read", index)?;
    let odd = || PackError::Index(index.to_owned());
    if bytes.get(..8) != Some(b"\xfftOc\0\0\0\x02") {
        return Err(odd());
    }
    let count =
        bytes.get(NAMES_AT - 4..NAMES_AT).and_then(|b| b.try_into().ok()).ok_or_else(odd)?;
    let count = u32::from_be_bytes(count) as usize;
    let names = bytes.get(NAMES_AT..NAMES_AT + count * 20).ok_or_else(odd)?;
    Ok(names.chunks_exact(20).map(Oid::from_bytes).collect::<Result<_, _>>()?)
}
