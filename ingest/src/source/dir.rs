//! A plain directory: its files as they are, links not followed.

use super::{Candidate, CandidateKind, SourceError, may_hide, printable, sort, takes};
use crate::select::{Selection, SkipReason};
use runbook_shared::error::{IoContext, PathError};
use runbook_shared::limits::DOCUMENT_BYTES_MAX;
use rustix::fs::{Mode, OFlags, openat};
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;
use walkdir::WalkDir;

/// What was found, and the paths that could not be listed, each with the reason.
pub type Listing = (Vec<Candidate>, Vec<(Vec<u8>, String)>);

/// Lists the candidates beneath `root`; a directory that cannot be read is reported by its path.
///
/// # Errors
/// When `root` itself cannot be listed.
pub fn list(root: &Path, selection: &Selection) -> Result<Listing, SourceError> {
    std::fs::read_dir(root).at("list", root)?;
    let (mut candidates, mut failed) = (Vec::new(), Vec::new());
    let relative =
        |path: &Path| path.strip_prefix(root).unwrap_or(path).as_os_str().as_bytes().to_vec();
    let walk = WalkDir::new(root).min_depth(1).follow_links(false).into_iter().filter_entry(|e| {
        let path = String::from_utf8_lossy(&relative(e.path())).into_owned();
        !e.file_type().is_dir() || (e.file_name() != ".git" && selection.enters(&path))
    });
    for entry in walk {
        let entry = match entry {
            Ok(entry) => entry,
            Err(e) => {
                let path = e.path().map(&relative).unwrap_or_default();
                failed.push((path, printable(&e.to_string())));
                continue;
            }
        };
        let path = relative(entry.path());
        let kind = entry.file_type();
        if kind.is_symlink() {
            if may_hide(selection, &path) {
                candidates
                    .push(Candidate { path, kind: CandidateKind::Skipped(SkipReason::Symlink) });
            }
        } else if !kind.is_dir() && takes(selection, &path) {
            let kind = if kind.is_file() {
                CandidateKind::File
            } else {
                CandidateKind::Skipped(SkipReason::NotAFile)
            };
            candidates.push(Candidate { path, kind });
        }
    }
    sort(&mut candidates);
    Ok((candidates, failed))
}

/// Reads one file, without following a link, or waiting for a pipe, that took its place, or that of a
/// directory above it, since it was listed.
///
/// # Errors
/// A reason to skip it, or what failed.
pub fn read(root: &Path, path: &[u8]) -> Result<Result<Vec<u8>, SkipReason>, PathError> {
    let full = root.join(std::ffi::OsString::from_vec(path.to_vec()));
    let file = open(root, path).map_err(std::io::Error::from).at("open", &full)?;
    if !file.metadata().at("read", &full)?.is_file() {
        return Ok(Err(SkipReason::NotAFile));
    }
    let mut bytes = Vec::new();
    file.take(DOCUMENT_BYTES_MAX + 1).read_to_end(&mut bytes).at("read", &full)?;
    if bytes.len() as u64 > DOCUMENT_BYTES_MAX {
        return Ok(Err(SkipReason::TooLarge));
    }
    Ok(Ok(bytes))
}

/// Opens a file step by step from `root`: no step follows a link.
fn open(root: &Path, path: &[u8]) -> rustix::io::Result<File> {
    let down = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut at = rustix::fs::open(root, OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    let mut parts: Vec<&[u8]> = path.split(|b| *b == b'/').collect();
    let name = parts.pop().unwrap_or_default();
    for part in parts {
        at = openat(&at, part, down, Mode::empty())?;
    }
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    Ok(openat(&at, name, flags, Mode::empty())?.into())
}
