//! Checks of the source: is it reached, with which credentials, and is its host the one that is known.

use super::{Subject, scratch};
use crate::source::mirror::Mirror;
use crate::source::{Source, SourceError, State, git, known_hosts};
use runbook_shared::doctor::Finding;
use runbook_shared::error::Hint;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// How an OpenSSH key without a passphrase begins, in base64: magic, and a cipher of four letters.
const OPEN_KEY: &str = "b3BlbnNzaC1rZXktdjEAAAAABG5v";
const CREDENTIALS: &str =
    "credentials of the service live in /run/credentials; others are for their owner alone: ";

/// The deploy key and the token: readable, whole, and nobody else's.
pub(super) fn credentials(subject: &Subject) -> Vec<Finding> {
    let Some(config) = &subject.config else { return Vec::new() };
    let mut found = Vec::new();
    let ssh = matches!(&config.source, Source::Remote(url) if Mirror::ssh_server(url).is_some());
    match &config.access.ssh_key {
        Some(key) => found.push(key_file(key)),
        None if ssh => found.push(Finding::warn(
            "deploy key",
            "none is named: the keys of an ssh agent are tried, and a service has none",
            "name one with --ssh-key: `ssh-keygen -t ed25519 -N '' -f deploy-key`",
        )),
        None => {}
    }
    if let Some(token) = &config.access.token_file {
        found.push(secret("token file", token, |text| {
            text.trim().is_empty().then(|| {
                ("it is empty".into(), "put a token that may read the repository into it".into())
            })
        }));
    }
    found
}

/// What is wrong with the content of a file, and what to do.
type Fault = Option<(String, String)>;

fn key_file(path: &Path) -> Finding {
    secret("deploy key", path, |text| {
        let body: String = text.lines().skip(1).collect();
        let fault = |what: &str, fix: &str| Some((what.to_owned(), fix.to_owned()));
        if text.starts_with("ssh-") || text.starts_with("ecdsa-") {
            return fault("it is the public half", "name the file without `.pub`");
        }
        if !text.trim_start().starts_with("-----BEGIN ") {
            return fault(
                "it is no private key",
                "make one: `ssh-keygen -t ed25519 -N '' -f deploy-key`",
            );
        }
        let locked = text.contains("ENCRYPTED")
            || text.contains("OPENSSH PRIVATE KEY") && !body.starts_with(OPEN_KEY);
        if locked {
            return fault(
                "it has a passphrase, which a service cannot type",
                "make one without: `ssh-keygen -p -N '' -f KEY` on a copy",
            );
        }
        None
    })
}

fn secret(check: &str, path: &Path, fault: impl Fn(&str) -> Fault) -> Finding {
    let shown = path.display();
    let read = std::fs::metadata(path).and_then(|m| Ok((m, std::fs::read(path)?)));
    let (metadata, bytes) = match read {
        Ok(read) => read,
        Err(e) => {
            return Finding::fail(
                check,
                format!("cannot read `{shown}`: {e}"),
                "name a file that this user may read; the unit hands it over with LoadCredential=",
            );
        }
    };
    if let Some((what, fix)) = fault(&String::from_utf8_lossy(&bytes)) {
        return Finding::fail(check, format!("`{shown}`: {what}"), fix);
    }
    let mode = metadata.mode() & 0o777;
    let handed_over = path.starts_with("/run/credentials");
    if mode & 0o027 != 0 {
        let fix = format!("{CREDENTIALS}`chmod 600 {shown}`");
        return Finding::fail(
            check,
            format!("`{shown}` has mode {mode:o}: others may read or replace it"),
            fix,
        );
    }
    if mode & 0o040 != 0 && !handed_over {
        let fix = format!("{CREDENTIALS}`chmod 600 {shown}`");
        return Finding::warn(
            check,
            format!("`{shown}` has mode {mode:o}: its group may read it"),
            fix,
        );
    }
    Finding::ok(check, format!("`{shown}`, mode {mode:o}"))
}

/// Whether known_hosts has a key for the host. Whether it is the right one, reaching the host shows.
pub(super) fn host_key(subject: &Subject) -> Vec<Finding> {
    const CHECK: &str = "ssh host key";
    let Some(config) = &subject.config else { return Vec::new() };
    let Source::Remote(url) = &config.source else { return Vec::new() };
    let Some(at) = Mirror::ssh_server(url) else { return Vec::new() };
    let finding = match known_hosts::known_kinds(config.access.known_hosts.as_deref(), &at) {
        Ok((kinds, _)) if !kinds.is_empty() => {
            Finding::ok(CHECK, format!("`{at}` is known by its key of kind {}", kinds.join(", ")))
        }
        Ok((_, files)) => {
            let port = if at.port == 22 { String::new() } else { format!("-p {} ", at.port) };
            Finding::fail(
                CHECK,
                format!("no key of `{at}` is in {files}"),
                format!(
                    "`ssh-keyscan {port}{} >> known_hosts`, compare it with what the host's owner says, and name the file with --known-hosts",
                    at.host
                ),
            )
        }
        Err(e) => Finding::fail(CHECK, e.to_string(), e.hint().unwrap_or_default()),
    };
    vec![finding]
}

/// Reaches the source as a run does, with the configured credentials, and asks for its newest state.
pub(super) fn reached(subject: &Subject) -> Vec<Finding> {
    const CHECK: &str = "source";
    let Some(config) = &subject.config else { return Vec::new() };
    let local = |path: &Path| -> Result<State, SourceError> {
        git::local_state(&git::open(path)?, path, config.access.branch.as_deref())
    };
    let state = match &config.source {
        Source::Directory(root) => {
            return vec![match std::fs::read_dir(root) {
                Ok(_) => Finding::ok(CHECK, format!("`{}` can be read", root.display())),
                Err(e) => Finding::fail(
                    CHECK,
                    format!("cannot read `{}`: {e}", root.display()),
                    "make it readable for this user",
                ),
            }];
        }
        Source::Repository(path) => local(path),
        Source::Remote(url) => {
            let scratch = match scratch() {
                Ok(scratch) => scratch,
                Err(e) => {
                    return vec![Finding::fail(
                        CHECK,
                        e.to_string(),
                        "name a directory for temporary files with TMPDIR",
                    )];
                }
            };
            Mirror::new(url, &config.access, scratch.path()).probe()
        }
    };
    let shown = config.source.display();
    vec![match state {
        Err(e) => {
            let fix = e.hint().unwrap_or_else(|| {
                "see that the address is right and this machine reaches it: `git ls-remote URL`"
                    .into()
            });
            Finding::fail(CHECK, e.to_string(), fix)
        }
        Ok(State { commit: None, .. }) => Finding::warn(
            CHECK,
            format!("`{shown}` is reached, and has no commit"),
            "push a commit",
        ),
        Ok(State { commit: Some(commit), branch }) => {
            let branch = branch.map_or_else(String::new, |b| format!(", branch {b}"));
            let indexed = subject.manifest.as_ref().and_then(|m| m.commit.as_ref());
            let news = match indexed {
                Some(indexed) if *indexed == commit => ", which is indexed",
                Some(_) => ", which is not indexed yet",
                None => "",
            };
            Finding::ok(
                CHECK,
                format!("`{shown}` is reached{branch}: {}{news}", &commit[..commit.len().min(12)]),
            )
        }
    }]
}

/// When the newest commit that lies here was made, in seconds since 1970.
pub(super) fn newest_commit_time(subject: &Subject) -> Option<i64> {
    let config = subject.config.as_ref()?;
    let (path, commit) = match &config.source {
        Source::Repository(path) => {
            let repository = git::open(path).ok()?;
            let state =
                git::local_state(&repository, path, config.access.branch.as_deref()).ok()?;
            (path.clone(), state.commit?)
        }
        Source::Remote(url) => {
            let mirror = Mirror::new(url, &config.access, &config.data);
            (mirror.dir().to_owned(), subject.manifest.as_ref()?.commit.clone()?)
        }
        Source::Directory(_) => return None,
    };
    let repository = git::open(&path).ok()?;
    let id = git2::Oid::from_str(&commit).ok()?;
    let found = repository.find_commit(id).ok()?;
    Some(found.time().seconds())
}
