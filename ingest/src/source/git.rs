//! Git repositories: opened without searching, read at one commit, blob by blob.
//!
//! There is no work tree, so there is nothing to edit, no index lock to go stale, and no link to
//! follow.

use super::{Candidate, CandidateKind, SourceError, State, may_hide, printable, sort, takes};
use crate::select::{Selection, SkipReason};
use git2::{ErrorCode, Oid, Repository, RepositoryOpenFlags};
use runbook_shared::limits::{DOC_PATH_BYTES_MAX, DOCUMENT_BYTES_MAX};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Modes of tree entries (git's `object.h`).
const MODE_LINK: i32 = 0o120_000;
const MODE_SUBMODULE: i32 = 0o160_000;
const MODE_TREE: i32 = 0o040_000;
/// The most entries that are walked at one commit: several times what the largest known
/// repositories have, and little enough that a tree that holds itself many times does no harm.
const TREE_ENTRIES_MAX: usize = 4_000_000;

/// Opens the repository in a directory, and no other one above it.
///
/// # Errors
/// When it is not one, is damaged, or belongs to another user.
pub fn open(path: &Path) -> Result<Repository, SourceError> {
    let nothing_above: &[&std::ffi::OsStr] = &[];
    Repository::open_ext(path, RepositoryOpenFlags::NO_SEARCH, nothing_above).map_err(|e| {
        if e.code() == ErrorCode::Owner {
            return owner_error(path);
        }
        broken(path, &e)
    })
}

fn broken(path: &Path, error: &git2::Error) -> SourceError {
    SourceError::Repository { path: path.to_owned(), message: printable(error.message()) }
}

/// Says whose a repository is that git refuses: the directory, or what git reads of it.
pub(super) fn owner_error(path: &Path) -> SourceError {
    let user = rustix::process::geteuid().as_raw();
    let owner_of = |path: &Path| fs::metadata(path).map(|m| m.uid()).ok();
    let owners = [path.to_owned(), path.join(".git")].into_iter().filter_map(|p| owner_of(&p));
    let owner = owners.into_iter().find(|owner| *owner != user);
    SourceError::Owner { path: path.to_owned(), owner: owner.unwrap_or(user), user }
}

/// The state of a repository on this machine: the named branch, else its HEAD, else the only branch
/// there is.
///
/// # Errors
/// When it cannot be read, or the branch is not there.
pub fn local_state(
    repository: &Repository,
    path: &Path,
    branch: Option<&str>,
) -> Result<State, SourceError> {
    if let Some(branch) = branch {
        return branch_state(repository, branch).map_or_else(
            || {
                Err(SourceError::NoBranch {
                    url: path.display().to_string(),
                    branch: printable(branch),
                    branches: branches(repository, path)?,
                })
            },
            Ok,
        );
    }
    let head = match repository.head() {
        Ok(head) => head,
        Err(e) if e.code() == ErrorCode::UnbornBranch => {
            let branches = branches(repository, path)?;
            return match branches.as_slice() {
                [] => Ok(State { commit: None, branch: None }),
                [only] => branch_state(repository, only).ok_or_else(|| SourceError::NoDefault {
                    url: path.display().to_string(),
                    branches,
                }),
                _ => Err(SourceError::NoDefault { url: path.display().to_string(), branches }),
            };
        }
        Err(e) => return Err(broken(path, &e)),
    };
    let commit = head.peel_to_commit().map_err(|e| broken(path, &e))?;
    let branch = head.shorthand().ok().filter(|_| head.is_branch()).map(str::to_owned);
    Ok(State { commit: Some(commit.id().to_string()), branch })
}

fn branch_state(repository: &Repository, branch: &str) -> Option<State> {
    let oid = repository.refname_to_id(&format!("refs/heads/{branch}")).ok()?;
    Some(State { commit: Some(oid.to_string()), branch: Some(branch.to_owned()) })
}

/// The names of at most 20 branches, sorted.
fn branches(repository: &Repository, path: &Path) -> Result<Vec<String>, SourceError> {
    let found = repository.branches(Some(git2::BranchType::Local)).map_err(|e| broken(path, &e))?;
    let mut names: Vec<String> =
        found.flatten().filter_map(|(b, _)| b.name().ok().flatten().map(printable)).collect();
    names.sort();
    names.truncate(20);
    Ok(names)
}

/// Lists the candidates in the tree of a commit.
///
/// # Errors
/// When a tree cannot be read.
pub fn list(
    repository: &Repository,
    commit: Oid,
    selection: &Selection,
) -> Result<Vec<Candidate>, SourceError> {
    let broken = |e: git2::Error| broken(repository.path(), &e);
    let root = repository.find_commit(commit).and_then(|c| c.tree()).map_err(broken)?;
    let mut candidates = Vec::new();
    let mut pending = vec![(Vec::new(), root.id())];
    let mut entries = 0;
    while let Some((dir, id)) = pending.pop() {
        let tree = repository.find_tree(id).map_err(broken)?;
        entries += tree.len();
        if entries > TREE_ENTRIES_MAX {
            return Err(SourceError::TooManyEntries {
                path: repository.path().to_owned(),
                most: TREE_ENTRIES_MAX,
            });
        }
        for entry in &tree {
            let mut path: Vec<u8> = dir.clone();
            if !path.is_empty() {
                path.push(b'/');
            }
            path.extend_from_slice(entry.name_bytes());
            let skipped = |reason| Some(CandidateKind::Skipped(reason));
            let kind = match entry.filemode() & 0o170_000 {
                MODE_TREE if path.len() > DOC_PATH_BYTES_MAX => skipped(SkipReason::InvalidPath),
                MODE_TREE if selection.enters(&String::from_utf8_lossy(&path)) => {
                    pending.push((path, entry.id()));
                    continue;
                }
                MODE_LINK if may_hide(selection, &path) => skipped(SkipReason::Symlink),
                MODE_SUBMODULE if may_hide(selection, &path) => skipped(SkipReason::Submodule),
                MODE_TREE | MODE_LINK | MODE_SUBMODULE => None,
                _ if takes(selection, &path) => Some(CandidateKind::Blob { id: entry.id() }),
                _ => None,
            };
            candidates.extend(kind.map(|kind| Candidate { path, kind }));
        }
    }
    sort(&mut candidates);
    Ok(candidates)
}

/// Checks that the repository holds every tree and every candidate of a commit.
///
/// # Errors
/// [`SourceError::Repository`] with the first that is missing.
pub(super) fn check_complete(
    repository: &Repository,
    commit: Oid,
    selection: &Selection,
) -> Result<(), SourceError> {
    let candidates = list(repository, commit, selection)?;
    let odb = repository.odb().map_err(|e| broken(repository.path(), &e))?;
    let missing = candidates.iter().find_map(|c| match c.kind {
        CandidateKind::Blob { id } if !odb.exists(id) => Some(id),
        _ => None,
    });
    missing.map_or(Ok(()), |id| {
        let message = format!("it lacks the object {id}");
        Err(SourceError::Repository { path: repository.path().to_owned(), message })
    })
}

/// True when a tree holds an entry at this path, or a link on the way to it.
#[must_use]
pub fn exists(repository: &Repository, commit: Oid, path: &str) -> bool {
    let Ok(tree) = repository.find_commit(commit).and_then(|c| c.tree()) else { return false };
    let path = Path::new(path);
    let is_link =
        |p: &Path| tree.get_path(p).is_ok_and(|entry| entry.filemode() & 0o170_000 == MODE_LINK);
    path.as_os_str().is_empty()
        || tree.get_path(path).is_ok()
        || path.ancestors().skip(1).filter(|p| !p.as_os_str().is_empty()).any(is_link)
}

/// Reads one blob.
///
/// # Errors
/// A reason to skip it, or what git said.
pub fn read(repository: &Repository, id: Oid) -> Result<Result<Vec<u8>, SkipReason>, git2::Error> {
    let odb = repository.odb()?;
    let (size, _) = odb.read_header(id)?;
    if size as u64 > DOCUMENT_BYTES_MAX {
        return Ok(Err(SkipReason::TooLarge));
    }
    Ok(Ok(repository.find_blob(id)?.content().to_vec()))
}
