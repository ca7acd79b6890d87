//! Git: a bare mirror that only ever fetches, and blobs read at one commit.
//!
//! There is no work tree, so there is nothing to edit, no index lock to go stale, and no link to
//! follow. The one branch that is read is fetched by a forced refspec into a name of our own, so a
//! rewritten history is followed and no name that a server sends becomes a path here.

use super::{
    Candidate, CandidateKind, GitAccess, SourceError, State, known_hosts, may_hide, sort, takes,
    without_credentials,
};
use crate::select::{Selection, SkipReason};
use git2::{
    AutotagOption, CertificateCheckStatus, Cred, CredentialType, Direction, ErrorCode,
    FetchOptions, Oid, ProxyOptions, RemoteCallbacks, RemoteUpdateFlags, Repository,
    RepositoryOpenFlags,
};
use runbook_shared::error::{IoContext, PathError};
use runbook_shared::limits::{DOC_PATH_BYTES_MAX, DOCUMENT_BYTES_MAX};
use std::cell::RefCell;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// The local name of the branch that is read.
const LOCAL_REF: &str = "refs/runbook/source";
/// Modes of tree entries (git's `object.h`).
const MODE_LINK: i32 = 0o120_000;
const MODE_SUBMODULE: i32 = 0o160_000;
const MODE_TREE: i32 = 0o040_000;

/// A remote repository with its mirror.
pub struct Mirror<'a> {
    url: &'a str,
    access: &'a GitAccess,
    dir: PathBuf,
}

/// What a connection ran into, beyond what libgit2 says.
type Trouble = Rc<RefCell<Option<(String, String)>>>;

impl<'a> Mirror<'a> {
    /// The mirror of `url` under a data directory; nothing is opened yet.
    #[must_use]
    pub fn new(url: &'a str, access: &'a GitAccess, data: &Path) -> Self {
        Self { url, access, dir: data.join("source").join("mirror.git") }
    }

    /// Asks the remote for the newest commit of the branch, without fetching it.
    ///
    /// # Errors
    /// When the remote cannot be reached, or the branch is not there.
    pub fn probe(&self) -> Result<State, SourceError> {
        set_timeout(self.access.timeout);
        let mut remote =
            git2::Remote::create_detached(self.url).map_err(|e| self.remote_error(&e, None))?;
        let trouble = Trouble::default();
        let connection = remote
            .connect_auth(Direction::Fetch, Some(self.callbacks(&trouble)), Some(proxy()))
            .map_err(|e| self.remote_error(&e, trouble.borrow().clone()))?;
        let heads = connection.list().map_err(|e| self.remote_error(&e, None))?;
        let branches: Vec<(String, Oid)> = heads
            .iter()
            .filter_map(|h| Some((h.name().strip_prefix("refs/heads/")?.to_owned(), h.oid())))
            .collect();
        let default = connection.default_branch().ok().and_then(|name| {
            name.as_str().ok().and_then(|n| n.strip_prefix("refs/heads/")).map(str::to_owned)
        });
        self.choose(&branches, default)
    }

    fn choose(
        &self,
        branches: &[(String, Oid)],
        default: Option<String>,
    ) -> Result<State, SourceError> {
        if branches.is_empty() && self.access.branch.is_none() {
            return Ok(State { commit: None, branch: None });
        }
        let name = match (&self.access.branch, default) {
            (Some(name), _) => name.clone(),
            (None, Some(name)) => name,
            (None, None) if branches.len() == 1 => branches[0].0.clone(),
            (None, None) => "HEAD".to_owned(),
        };
        let found = branches.iter().find(|(n, _)| *n == name);
        match found {
            Some((name, oid)) if git2::Reference::is_valid_name(&format!("refs/heads/{name}")) => {
                Ok(State { commit: Some(oid.to_string()), branch: Some(name.clone()) })
            }
            Some((name, _)) => Err(SourceError::Remote {
                url: without_credentials(self.url),
                message: format!(
                    "its branch is called `{}`, which git does not allow",
                    name.escape_debug()
                ),
                hint: Some("name another branch with --branch".into()),
            }),
            None => Err(SourceError::NoBranch {
                url: without_credentials(self.url),
                branch: name,
                branches: branches
                    .iter()
                    .take(20)
                    .map(|(n, _)| n.escape_debug().to_string())
                    .collect(),
            }),
        }
    }

    /// Fetches the branch and returns its commit; a mirror that is damaged is made anew once.
    ///
    /// # Errors
    /// When the remote cannot be reached, or what it sends is not usable.
    pub fn fetch(
        &self,
        branch: &str,
        progress: &dyn Fn(usize, usize),
    ) -> Result<(Repository, Oid), SourceError> {
        match self.fetch_into(branch, progress) {
            Err(SourceError::Repository { message, .. }) => {
                tracing::warn!("the mirror is damaged ({message}); it is made anew");
                fs::remove_dir_all(&self.dir).at("remove", &self.dir)?;
                self.fetch_into(branch, progress)
            }
            other => other,
        }
    }

    fn fetch_into(
        &self,
        branch: &str,
        progress: &dyn Fn(usize, usize),
    ) -> Result<(Repository, Oid), SourceError> {
        let repository = self.open_mirror()?;
        let broken = |e: &git2::Error| SourceError::Repository {
            path: self.dir.clone(),
            message: e.message().to_owned(),
        };
        let before = repository.refname_to_id(LOCAL_REF).ok();
        {
            let mut remote = repository.remote_anonymous(self.url).map_err(|e| broken(&e))?;
            let trouble = Trouble::default();
            let mut callbacks = self.callbacks(&trouble);
            callbacks.transfer_progress(|p| {
                progress(p.received_objects(), p.total_objects());
                true
            });
            let mut options = FetchOptions::new();
            options
                .remote_callbacks(callbacks)
                .proxy_options(proxy())
                .download_tags(AutotagOption::None);
            let refspec = format!("+refs/heads/{branch}:{LOCAL_REF}");
            remote
                .download(&[&refspec], Some(&mut options))
                .map_err(|e| self.remote_error(&e, trouble.borrow().clone()))?;
            remote
                .update_tips(None, RemoteUpdateFlags::empty(), AutotagOption::None, None)
                .map_err(|e| self.remote_error(&e, None))?;
        }
        let after = repository.refname_to_id(LOCAL_REF).map_err(|e| broken(&e))?;
        repository.find_commit(after).and_then(|c| c.tree()).map_err(|e| broken(&e))?;
        if let Some(before) = before.filter(|b| *b != after) {
            // When the old commit is no ancestor of the new one, history was rewritten.
            if !repository.graph_descendant_of(after, before).unwrap_or(false) {
                tracing::warn!("history of `{branch}` was rewritten: {before}..{after}");
            }
        }
        Ok((repository, after))
    }

    fn open_mirror(&self) -> Result<Repository, SourceError> {
        fs::create_dir_all(&self.dir).at("create directory", &self.dir)?;
        sweep_partial_packs(&self.dir)?;
        if self.dir.join("HEAD").is_file() {
            return open(&self.dir);
        }
        Repository::init_bare(&self.dir).map_err(|e| SourceError::Repository {
            path: self.dir.clone(),
            message: e.message().to_owned(),
        })
    }

    fn remote_error(&self, error: &git2::Error, trouble: Option<(String, String)>) -> SourceError {
        let (message, hint) = match trouble {
            Some((message, hint)) => (message, Some(hint)),
            None if error.code() == ErrorCode::Auth => (
                error.message().to_owned(),
                Some("name a deploy key with --ssh-key, or a token file with --token-file".into()),
            ),
            None if error.code() == ErrorCode::Owner => (
                error.message().to_owned(),
                Some("the repository belongs to another user: run as that user, or `git config --global --add safe.directory <path>`".into()),
            ),
            None => (error.message().to_owned(), None),
        };
        let message = message.replace(self.url, &without_credentials(self.url));
        SourceError::Remote { url: without_credentials(self.url), message, hint }
    }

    fn callbacks(&self, trouble: &Trouble) -> RemoteCallbacks<'a> {
        let mut callbacks = RemoteCallbacks::new();
        let access = self.access;
        let mut attempts = 0;
        callbacks.credentials(move |_url, user, allowed| {
            attempts += 1;
            credentials(access, user, allowed, attempts)
        });
        let (trouble, url) = (Rc::clone(trouble), self.url);
        callbacks.certificate_check(move |certificate, host| {
            let Some(key) = certificate.as_hostkey().and_then(git2::cert::CertHostkey::hostkey) else {
                return Ok(CertificateCheckStatus::CertificatePassthrough);
            };
            let port = ssh_port(url).unwrap_or(22);
            match known_hosts::check(access.known_hosts.as_deref(), host, port, key) {
                Ok(()) => Ok(CertificateCheckStatus::CertificateOk),
                Err(e) => {
                    let port_flag = if port == 22 { String::new() } else { format!("-p {port} ") };
                    let hint = format!(
                        "compare the host's key with its owner, then add it: `ssh-keyscan {port_flag}{host} >> known_hosts`, \
                         and name the file with --known-hosts"
                    );
                    *trouble.borrow_mut() = Some((e.to_string(), hint));
                    Err(git2::Error::from_str(&e.to_string()))
                }
            }
        });
        callbacks
    }
}

fn proxy() -> ProxyOptions<'static> {
    let mut proxy = ProxyOptions::new();
    proxy.auto();
    proxy
}

fn credentials(
    access: &GitAccess,
    user: Option<&str>,
    allowed: CredentialType,
    attempt: u32,
) -> Result<Cred, git2::Error> {
    let user = user.unwrap_or("git");
    if allowed.contains(CredentialType::USERNAME) {
        return Cred::username(user);
    }
    if attempt > 4 {
        return Err(git2::Error::new(
            ErrorCode::Auth,
            git2::ErrorClass::Callback,
            "the server refused every credential",
        ));
    }
    if allowed.contains(CredentialType::SSH_KEY) {
        if let Some(key) = &access.ssh_key {
            if attempt > 2 {
                let message = format!("the server refused the key `{}`", key.display());
                return Err(git2::Error::new(ErrorCode::Auth, git2::ErrorClass::Ssh, message));
            }
            return Cred::ssh_key(user, None, key, None);
        }
        return Cred::ssh_key_from_agent(user);
    }
    if allowed.contains(CredentialType::USER_PASS_PLAINTEXT) {
        if let Some(file) = &access.token_file {
            let token = fs::read_to_string(file).map_err(|e| {
                git2::Error::from_str(&format!("cannot read `{}`: {e}", file.display()))
            })?;
            return Cred::userpass_plaintext("x-access-token", token.trim());
        }
    }
    Err(git2::Error::new(
        ErrorCode::Auth,
        git2::ErrorClass::Callback,
        "the server asks for credentials, none are configured",
    ))
}

/// The port of an ssh URL.
fn ssh_port(url: &str) -> Option<u16> {
    let authority = url.split_once("://")?.1.split('/').next()?;
    let host = authority.rsplit('@').next()?;
    host.rsplit_once(':').and_then(|(_, port)| port.parse().ok())
}

#[expect(unsafe_code, reason = "git2 marks global settings as unsafe")]
fn set_timeout(timeout: std::time::Duration) {
    let ms = std::ffi::c_int::try_from(timeout.as_millis()).unwrap_or(std::ffi::c_int::MAX);
    // SAFETY: the settings are plain integers; they are set before any connection is made, by the
    // one thread that makes connections.
    let set = unsafe {
        git2::opts::set_server_connect_timeout_in_milliseconds(ms)
            .and_then(|()| git2::opts::set_server_timeout_in_milliseconds(ms))
    };
    if let Err(e) = set {
        tracing::warn!("the network timeout cannot be set: {}", e.message());
    }
}

/// Removes packs that an interrupted fetch left behind.
fn sweep_partial_packs(mirror: &Path) -> Result<(), PathError> {
    let dir = mirror.join("objects").join("pack");
    let entries = match fs::read_dir(&dir) {
        Ok(entries) => entries,
        Err(_) => return Ok(()), // No pack yet.
    };
    for entry in entries {
        let path = entry.at("list", &dir)?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if name.starts_with("pack_git2_") || name.starts_with("tmp_") {
            fs::remove_file(&path).at("remove", &path)?;
        }
    }
    Ok(())
}

/// Opens the repository in a directory, and no other one above it.
///
/// # Errors
/// When it is not one, is damaged, or belongs to another user.
pub fn open(path: &Path) -> Result<Repository, SourceError> {
    Repository::open_ext(path, RepositoryOpenFlags::NO_SEARCH, &[] as &[&std::ffi::OsStr]).map_err(
        |e| {
            if e.code() == ErrorCode::Owner {
                let owner = fs::metadata(path).map_or(0, |m| m.uid());
                return SourceError::Owner {
                    path: path.to_owned(),
                    owner,
                    user: rustix::process::geteuid().as_raw(),
                };
            }
            SourceError::Repository { path: path.to_owned(), message: e.message().to_owned() }
        },
    )
}

/// The state of a repository on this machine: its HEAD, or the named branch.
///
/// # Errors
/// When it cannot be read, or the branch is not there.
pub fn local_state(
    repository: &Repository,
    path: &Path,
    branch: Option<&str>,
) -> Result<State, SourceError> {
    let broken = |e: &git2::Error| SourceError::Repository {
        path: path.to_owned(),
        message: e.message().to_owned(),
    };
    if let Some(branch) = branch {
        let Ok(oid) = repository.refname_to_id(&format!("refs/heads/{branch}")) else {
            let names =
                repository.branches(Some(git2::BranchType::Local)).map_err(|e| broken(&e))?;
            let branches = names
                .flatten()
                .filter_map(|(b, _)| b.name().ok().flatten().map(str::to_owned))
                .take(20)
                .collect();
            return Err(SourceError::NoBranch {
                url: path.display().to_string(),
                branch: branch.to_owned(),
                branches,
            });
        };
        return Ok(State { commit: Some(oid.to_string()), branch: Some(branch.to_owned()) });
    }
    let head = match repository.head() {
        Ok(head) => head,
        Err(e) if e.code() == ErrorCode::UnbornBranch => {
            return Ok(State { commit: None, branch: None });
        }
        Err(e) => return Err(broken(&e)),
    };
    let commit = head.peel_to_commit().map_err(|e| broken(&e))?;
    let branch = head.shorthand().ok().filter(|_| head.is_branch()).map(str::to_owned);
    Ok(State { commit: Some(commit.id().to_string()), branch })
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
    let broken = |e: git2::Error| SourceError::Repository {
        path: repository.path().to_owned(),
        message: e.message().to_owned(),
    };
    let root = repository.find_commit(commit).and_then(|c| c.tree()).map_err(broken)?;
    let mut candidates = Vec::new();
    let mut pending = vec![(Vec::new(), root.id())];
    while let Some((dir, id)) = pending.pop() {
        let tree = repository.find_tree(id).map_err(broken)?;
        for entry in &tree {
            let mut path: Vec<u8> = dir.clone();
            if !path.is_empty() {
                path.push(b'/');
            }
            path.extend_from_slice(entry.name_bytes());
            match entry.filemode() & 0o170_000 {
                MODE_TREE if path.len() > DOC_PATH_BYTES_MAX => {
                    candidates.push(Candidate {
                        path,
                        kind: CandidateKind::Skipped(SkipReason::InvalidPath),
                    });
                }
                MODE_TREE => {
                    if selection.enters(&String::from_utf8_lossy(&path)) {
                        pending.push((path, entry.id()));
                    }
                }
                MODE_LINK if may_hide(selection, &path) => {
                    candidates.push(Candidate {
                        path,
                        kind: CandidateKind::Skipped(SkipReason::Symlink),
                    });
                }
                MODE_SUBMODULE if may_hide(selection, &path) => {
                    candidates.push(Candidate {
                        path,
                        kind: CandidateKind::Skipped(SkipReason::Submodule),
                    });
                }
                MODE_LINK | MODE_SUBMODULE => {}
                _ if takes(selection, &path) => {
                    candidates
                        .push(Candidate { path, kind: CandidateKind::Blob { id: entry.id() } });
                }
                _ => {}
            }
        }
    }
    sort(&mut candidates);
    Ok(candidates)
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
