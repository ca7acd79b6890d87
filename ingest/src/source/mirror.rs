//! The mirror of a git remote: a bare repository that only ever fetches.
//!
//! The one branch that is read is fetched by a forced refspec into a name of our own, so a rewritten
//! history is followed and no name that a server sends becomes a path here.

mod connection;

use super::known_hosts::{HostPort, Negotiation};
use super::{
    GitAccess, SourceError, State, git, packs, printable, quiet_panics, without_credentials,
};
use crate::select::Selection;
use connection::{Trouble, proxy, set_timeout};
use git2::{AutotagOption, Direction, ErrorClass, FetchOptions, Oid, RemoteHead, Repository};
use runbook_shared::error::{IoContext, PathError};
use runbook_shared::failpoint::reach;
use std::cell::RefCell;
use std::fs;
use std::path::{Path, PathBuf};
use walkdir::WalkDir;

/// The local name of what is read.
const LOCAL_REF: &str = "refs/runbook/source";
/// A mirror that is being fetched anew, and the one whose place it takes.
const FRESH: &str = "mirror.fresh.git";
const OLD: &str = "mirror.old.git";
/// Where the remote's names of branches start.
const BRANCHES: &str = "refs/heads/";
/// The name of the remote's own position.
const HEAD: &str = "HEAD";
/// How libssh2 says that two sides have no method in common.
const NO_COMMON_KIND: &str = "Unable to exchange encryption keys";
/// A fetch stops when the disk has less left than this: libgit2 writes packs through a memory map,
/// where a full disk is not an error but the end of the process.
const DISK_BYTES_MIN: u64 = 8 * 1024 * 1024;

/// A remote repository with its mirror.
pub struct Mirror<'a> {
    url: &'a str,
    access: &'a GitAccess,
    dir: PathBuf,
}

/// What a remote advertises, as far as it matters.
#[derive(Debug, Default)]
struct Offer {
    branches: Vec<(String, Oid)>,
    default: Option<String>,
    head: Option<Oid>,
}

impl<'a> Mirror<'a> {
    /// The mirror of `url` under a data directory; nothing is opened yet.
    #[must_use]
    pub fn new(url: &'a str, access: &'a GitAccess, data: &Path) -> Self {
        Self { url, access, dir: data.join("source").join("mirror.git") }
    }

    /// Where it lies.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The server of an ssh URL; none for other URLs.
    #[must_use]
    pub fn ssh_server(url: &str) -> Option<HostPort> {
        connection::ssh_server(url)
    }

    /// Asks the remote for the newest commit of the branch, without fetching it.
    ///
    /// # Errors
    /// When the remote cannot be reached, or the branch is not there.
    pub fn probe(&self) -> Result<State, SourceError> {
        set_timeout(self.access.timeout);
        match self.offer(self.negotiate()?) {
            // The server has no host key of a kind that is known: without that wish it shows one,
            // and the check says what is wrong with it.
            Err(SourceError::Remote { message, .. }) if message.contains(NO_COMMON_KIND) => {
                self.offer(None)
            }
            other => other,
        }
        .and_then(|offer| self.choose(offer))
    }

    fn offer(&self, _negotiation: Option<Negotiation>) -> Result<Offer, SourceError> {
        let mut remote =
            git2::Remote::create_detached(self.url).map_err(|e| self.remote_error(&e, None))?;
        let trouble = Trouble::default();
        let connection = remote
            .connect_auth(Direction::Fetch, Some(self.callbacks(&trouble)), Some(proxy()))
            .map_err(|e| self.remote_error(&e, trouble.borrow().clone()))?;
        let heads = connection.list().map_err(|e| self.remote_error(&e, None))?;
        let branch =
            |h: &RemoteHead<'_>| Some((name(h)?.strip_prefix(BRANCHES)?.to_owned(), h.oid()));
        let branches: Vec<(String, Oid)> = heads.iter().filter_map(branch).collect();
        let head = heads.iter().find(|h| name(h) == Some(HEAD));
        Ok(Offer {
            default: head.and_then(|h| default_branch(h, &branches)),
            head: head.map(RemoteHead::oid),
            branches,
        })
    }

    /// The named branch, else the default branch, else the commit that HEAD is at, else the only
    /// branch there is.
    fn choose(&self, offer: Offer) -> Result<State, SourceError> {
        let Offer { branches, default, head } = offer;
        let name = match (self.access.branch.clone(), default, head) {
            (Some(name), _, _) | (None, Some(name), _) => name,
            (None, None, Some(commit)) => {
                return Ok(State { commit: Some(commit.to_string()), branch: None });
            }
            (None, None, None) => match branches.as_slice() {
                [] => return Ok(State { commit: None, branch: None }),
                [(only, _)] => only.clone(),
                _ => {
                    return Err(SourceError::NoDefault {
                        url: without_credentials(self.url),
                        branches: shown(&branches),
                    });
                }
            },
        };
        let Some((_, oid)) = branches.iter().find(|(n, _)| *n == name) else {
            return Err(SourceError::NoBranch {
                url: without_credentials(self.url),
                branch: printable(&name),
                branches: shown(&branches),
            });
        };
        if git2::Reference::is_valid_name(&format!("{BRANCHES}{name}")) {
            return Ok(State { commit: Some(oid.to_string()), branch: Some(name) });
        }
        Err(SourceError::Remote {
            url: without_credentials(self.url),
            message: format!(
                "its branch is called `{}`, which git does not allow",
                printable(&name)
            ),
            hint: Some("name another branch with --branch".into()),
        })
    }

    /// Fetches the branch, or where there is none what HEAD is at, and returns its commit; a mirror
    /// that is damaged is made anew once.
    ///
    /// # Errors
    /// When the remote cannot be reached, or what it sends is not usable.
    pub fn fetch(
        &self,
        branch: Option<&str>,
        selection: &Selection,
        progress: &dyn Fn(usize, usize),
    ) -> Result<(Repository, Oid), SourceError> {
        let is_new = !self.dir.exists();
        let fetched = match self.fetch_into(branch, progress, (!is_new).then_some(selection)) {
            Err(SourceError::Repository { message, .. }) if !is_new => {
                tracing::warn!("the mirror is damaged ({message}); it is made anew");
                fs::remove_dir_all(&self.dir).at("remove", &self.dir)?;
                self.fetch_into(branch, progress, None)
            }
            other => other,
        }?;
        if is_new { Ok(fetched) } else { self.tidy(fetched, branch, progress) }
    }

    /// Merges packs, or fetches into a fresh mirror where most of this one is no longer needed. What
    /// fails here is tried again by the next run.
    fn tidy(
        &self,
        fetched: (Repository, Oid),
        branch: Option<&str>,
        progress: &dyn Fn(usize, usize),
    ) -> Result<(Repository, Oid), SourceError> {
        if packs::is_outgrown(&self.dir)? {
            return match self.renew(branch, progress) {
                Ok(renewed) => Ok(renewed),
                Err(e) if self.dir.is_dir() => {
                    tracing::warn!("the mirror has grown, and cannot be fetched anew: {e}");
                    Ok(fetched)
                }
                Err(e) => Err(e),
            };
        }
        let (repository, commit) = fetched;
        match packs::merge(&repository) {
            // The packs that are open are gone.
            Ok(true) => Ok((git::open(&self.dir)?, commit)),
            Ok(false) => Ok((repository, commit)),
            Err(e) => {
                tracing::warn!("the packs of the mirror are not merged: {e}");
                Ok((git::open(&self.dir)?, commit))
            }
        }
    }

    /// Fetches into a fresh mirror and puts it in the place of this one. A crash on the way leaves one
    /// of the two, or none, which the next run makes anew; what else it leaves is swept.
    fn renew(
        &self,
        branch: Option<&str>,
        progress: &dyn Fn(usize, usize),
    ) -> Result<(Repository, Oid), SourceError> {
        let fresh = Mirror { url: self.url, access: self.access, dir: self.beside(FRESH) };
        let (repository, commit) = fresh.fetch_into(branch, progress, None)?;
        drop(repository);
        reach("fetch.renewed");
        let old = self.beside(OLD);
        fs::rename(&self.dir, &old).at("rename", &self.dir)?;
        reach("fetch.moved_away");
        fs::rename(&fresh.dir, &self.dir).at("rename", &fresh.dir)?;
        reach("fetch.moved_in");
        fs::remove_dir_all(&old).at("remove", &old)?;
        Ok((git::open(&self.dir)?, commit))
    }

    fn beside(&self, name: &str) -> PathBuf {
        self.dir.with_file_name(name)
    }

    /// Fetches; into a mirror that was there before, also checks that nothing of it is missing.
    fn fetch_into(
        &self,
        branch: Option<&str>,
        progress: &dyn Fn(usize, usize),
        check: Option<&Selection>,
    ) -> Result<(Repository, Oid), SourceError> {
        let repository = self.open_mirror()?;
        let broken = |e: &git2::Error| self.broken(e);
        let before = repository.refname_to_id(LOCAL_REF).ok();
        let wanted = branch.map_or_else(|| HEAD.to_owned(), |b| format!("{BRANCHES}{b}"));
        reach("fetch.opened");
        let after = self.download(&repository, &wanted, progress, check.is_none())?;
        reach("fetch.downloaded");
        repository.find_commit(after).and_then(|c| c.tree()).map_err(|e| broken(&e))?;
        if let Some(selection) = check {
            git::check_complete(&repository, after, selection)?;
        }
        repository.reference(LOCAL_REF, after, true, "fetch").map_err(|e| broken(&e))?;
        reach("fetch.named");
        if let Some(before) = before.filter(|b| *b != after) {
            // When the old commit is no ancestor of the new one, history was rewritten.
            if !repository.graph_descendant_of(after, before).unwrap_or(false) {
                tracing::warn!("history of `{wanted}` was rewritten: {before}..{after}");
            }
        }
        Ok((repository, after))
    }

    /// Fetches the objects behind a reference of the remote and returns what it points to.
    fn download(
        &self,
        repository: &Repository,
        wanted: &str,
        progress: &dyn Fn(usize, usize),
        is_new: bool,
    ) -> Result<Oid, SourceError> {
        let _negotiation = self.negotiate()?;
        self.check_disk()?;
        let mut remote = repository.remote_anonymous(self.url).map_err(|e| self.broken(&e))?;
        let (trouble, full) = (Trouble::default(), RefCell::new(None));
        let mut callbacks = self.callbacks(&trouble);
        callbacks.transfer_progress(|p| {
            progress(p.received_objects(), p.total_objects());
            self.check_disk().map_err(|e| *full.borrow_mut() = Some(e)).is_ok()
        });
        let mut options = FetchOptions::new();
        options
            .remote_callbacks(callbacks)
            .proxy_options(proxy())
            .download_tags(AutotagOption::None);
        let downloaded = remote.download(&[format!("+{wanted}:{LOCAL_REF}")], Some(&mut options));
        drop(options);
        if let Some(error) = full.take() {
            return Err(error);
        }
        downloaded.map_err(|e| {
            if !is_new && is_damage(e.class()) {
                return self.broken(&e);
            }
            self.remote_error(&e, trouble.borrow().clone())
        })?;
        let heads = remote.list().map_err(|e| self.remote_error(&e, None))?;
        heads.iter().find(|h| name(h) == Some(wanted)).map(RemoteHead::oid).ok_or_else(|| {
            SourceError::Remote {
                url: without_credentials(self.url),
                message: format!("`{wanted}` went away while it was fetched"),
                hint: Some("run again".into()),
            }
        })
    }

    fn check_disk(&self) -> Result<(), SourceError> {
        let Ok(disk) = rustix::fs::statvfs(&self.dir) else { return Ok(()) };
        if disk.f_bavail.saturating_mul(disk.f_frsize) >= DISK_BYTES_MIN {
            return Ok(());
        }
        let source = std::io::Error::from(rustix::io::Errno::NOSPC);
        Err(PathError { action: "fetch into", path: self.dir.clone(), source }.into())
    }

    fn broken(&self, error: &git2::Error) -> SourceError {
        SourceError::Repository { path: self.dir.clone(), message: printable(error.message()) }
    }

    fn open_mirror(&self) -> Result<Repository, SourceError> {
        for left in [FRESH, OLD].map(|name| self.beside(name)) {
            if left != self.dir && left.exists() {
                fs::remove_dir_all(&left).at("remove", &left)?;
            }
        }
        fs::create_dir_all(&self.dir).at("create directory", &self.dir)?;
        sweep(&self.dir)?;
        if self.dir.join("HEAD").is_file() {
            return git::open(&self.dir);
        }
        Repository::init_bare(&self.dir).map_err(|e| self.broken(&e))
    }
}

/// The branch that HEAD stands for: the one that it names, or where the server does not tell, or HEAD
/// names none, one at the same commit. (libgit2's own answer fails without a repository at hand.)
fn default_branch(head: &RemoteHead<'_>, branches: &[(String, Oid)]) -> Option<String> {
    if let Some(target) = quiet_panics::catch(|| head.symref_target()).flatten() {
        return Some(target.strip_prefix(BRANCHES).unwrap_or(target).to_owned());
    }
    let at_head = || branches.iter().filter(|(_, oid)| *oid == head.oid()).map(|(name, _)| name);
    let usual = at_head().find(|name| ["main", "master"].contains(&name.as_str()));
    usual.or_else(|| at_head().next()).cloned()
}

/// The name of an advertised reference. git2 panics where it is not UTF-8; no such branch can be
/// named, so it is as if it were not there.
fn name<'h>(head: &'h RemoteHead<'_>) -> Option<&'h str> {
    quiet_panics::catch(|| head.name())
}

/// At most 20 names for a message.
fn shown(branches: &[(String, Oid)]) -> Vec<String> {
    branches.iter().take(20).map(|(n, _)| printable(n)).collect()
}

/// True for what can only be wrong with files here, when the remote itself is fine.
fn is_damage(class: ErrorClass) -> bool {
    use ErrorClass as C;
    matches!(
        class,
        C::Odb | C::Zlib | C::Object | C::Reference | C::Repository | C::Config | C::Tree
    )
}

/// Removes what an interrupted run left in the mirror: parts of packs, and locks that would stop
/// every run after it. Only the holder of the ingest lock fetches, so nobody else needs them.
fn sweep(mirror: &Path) -> Result<(), PathError> {
    for entry in WalkDir::new(mirror).into_iter().flatten() {
        let name = entry.file_name().to_string_lossy();
        let is_left =
            name.ends_with(".lock") || name.contains("_git2_") || name.starts_with("tmp_");
        if is_left && entry.file_type().is_file() {
            fs::remove_file(entry.path()).at("remove", entry.path())?;
        }
    }
    Ok(())
}
