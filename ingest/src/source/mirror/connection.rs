//! A connection to a remote: host keys, credentials, the time it may take, and what went wrong.

use super::Mirror;
use crate::source::known_hosts::{self, HostPort, Negotiation};
use crate::source::{GitAccess, SourceError, git, printable, without_credentials};
use git2::{
    CertificateCheckStatus, Cred, CredentialType, ErrorClass, ErrorCode, ProxyOptions,
    RemoteCallbacks,
};
use runbook_shared::error::{Hint, IoContext};
use std::cell::RefCell;
use std::fs;
use std::path::Path;
use std::rc::Rc;

/// How libgit2 says that it could not even try a key.
const KEY_UNUSABLE: &str = "failed to authenticate SSH session";

/// What a connection ran into, beyond what libgit2 says.
pub(super) type Trouble = Rc<RefCell<Option<(String, Option<String>)>>>;

impl<'a> Mirror<'a> {
    /// Has libgit2 ask for host keys that are known; nothing where the remote is not reached by ssh.
    pub(super) fn negotiate(&self) -> Result<Option<Negotiation>, SourceError> {
        let Some(at) = ssh_server(self.url) else { return Ok(None) };
        if let Some(key) = &self.access.ssh_key {
            fs::File::open(key).at("read the ssh key", key)?;
        }
        let home = self.dir.with_file_name("ssh");
        let begun = Negotiation::begin(self.access.known_hosts.as_deref(), &at, &home);
        begun.map(Some).map_err(|e| SourceError::Remote {
            url: without_credentials(self.url),
            message: e.to_string(),
            hint: e.hint(),
        })
    }

    pub(super) fn remote_error(
        &self,
        error: &git2::Error,
        trouble: Option<(String, Option<String>)>,
    ) -> SourceError {
        let message = error.message();
        if let Some(path) = foreign(message) {
            return git::owner_error(Path::new(path));
        }
        let unusable = self.access.ssh_key.as_ref().filter(|_| message.starts_with(KEY_UNUSABLE));
        let (message, hint) = match trouble {
            Some((message, hint)) => (message, hint),
            None if unusable.is_some() => (
                format!("the key `{}` cannot be used: {message}", unusable.map_or_else(String::new, |key| key.display().to_string())),
                Some("make one without a passphrase: `ssh-keygen -t ed25519 -N ''`".into()),
            ),
            None if error.code() == ErrorCode::Auth => (
                message.to_owned(),
                Some("name a deploy key with --ssh-key, or a token file with --token-file".into()),
            ),
            None if error.class() == ErrorClass::Reference && self.url.starts_with("file:") => (
                format!("one of its references leads nowhere: {message}"),
                Some("remove that reference with `git symbolic-ref --delete`, or name the directory instead of its URL".into()),
            ),
            None => (message.to_owned(), None),
        };
        let message = printable(&message.replace(self.url, &without_credentials(self.url)));
        SourceError::Remote { url: without_credentials(self.url), message, hint }
    }

    pub(super) fn callbacks<'c>(&self, trouble: &Trouble) -> RemoteCallbacks<'c>
    where
        'a: 'c,
    {
        let mut callbacks = RemoteCallbacks::new();
        let (access, note) = (self.access, Rc::clone(trouble));
        let mut attempts = 0;
        callbacks.credentials(move |_url, user, allowed| {
            attempts += 1;
            credentials(access, user, allowed, attempts).map_err(|(error, hint)| {
                *note.borrow_mut() = Some((error.message().to_owned(), Some(hint)));
                error
            })
        });
        let (note, port) = (Rc::clone(trouble), ssh_server(self.url).map_or(22, |at| at.port));
        callbacks.certificate_check(move |certificate, host| {
            let Some(key) = certificate.as_hostkey().and_then(git2::cert::CertHostkey::hostkey)
            else {
                return Ok(CertificateCheckStatus::CertificatePassthrough);
            };
            let at = HostPort { host: host.to_owned(), port };
            match known_hosts::check(access.known_hosts.as_deref(), &at, key) {
                Ok(()) => Ok(CertificateCheckStatus::CertificateOk),
                Err(e) => {
                    *note.borrow_mut() = Some((e.to_string(), e.hint()));
                    Err(git2::Error::from_str(&e.to_string()))
                }
            }
        });
        callbacks
    }
}

/// The path in libgit2's message about a repository of another user: the local transport hands
/// the message on, but not its code.
fn foreign(message: &str) -> Option<&str> {
    message.strip_prefix("repository path '")?.strip_suffix("' is not owned by current user")
}

pub(super) fn proxy() -> ProxyOptions<'static> {
    let mut proxy = ProxyOptions::new();
    proxy.auto();
    proxy
}

/// A credential for an attempt, from 1; else what is wrong and what to do.
fn credentials(
    access: &GitAccess,
    user: Option<&str>,
    allowed: CredentialType,
    attempt: u32,
) -> Result<Cred, (git2::Error, String)> {
    let refuse = |message: String, hint: &str| {
        Err((git2::Error::new(ErrorCode::Auth, ErrorClass::Callback, message), hint.to_owned()))
    };
    let made =
        |cred: Result<Cred, git2::Error>| cred.map_err(|e| (e, "check the credentials".to_owned()));
    let user = user.unwrap_or("git");
    if allowed.contains(CredentialType::USERNAME) {
        return made(Cred::username(user));
    }
    if allowed.contains(CredentialType::SSH_KEY) {
        return match &access.ssh_key {
            Some(key) if attempt > 2 => refuse(
                format!("the server refused the key `{}` for the user `{user}`", key.display()),
                "add its public half to the repository's deploy keys, and check that it has no passphrase",
            ),
            Some(key) => made(Cred::ssh_key(user, None, key, None)),
            None if attempt > 2 => refuse(
                "the server refused every key of the ssh agent".into(),
                "name a deploy key with --ssh-key",
            ),
            None => Cred::ssh_key_from_agent(user)
                .map_err(|e| (e, "name a deploy key with --ssh-key".to_owned())),
        };
    }
    let Some(file) = access.token_file.as_ref() else {
        return refuse(
            "the server asks for credentials, none are configured".into(),
            "name a token file with --token-file, or a deploy key with --ssh-key and an ssh URL",
        );
    };
    if allowed.contains(CredentialType::USER_PASS_PLAINTEXT) && attempt <= 2 {
        return match fs::read_to_string(file) {
            Ok(token) => made(Cred::userpass_plaintext("x-access-token", token.trim())),
            Err(e) => refuse(
                format!("cannot read `{}`: {e}", file.display()),
                "name a readable file with --token-file",
            ),
        };
    }
    refuse(
        format!("the server refused the token in `{}`", file.display()),
        "make a token that may read this repository",
    )
}

/// The server of an ssh URL, of either form; none for other URLs.
pub(super) fn ssh_server(url: &str) -> Option<HostPort> {
    let (authority, with_port) = match url.split_once("://") {
        Some((scheme, _)) if !scheme.contains("ssh") => return None,
        Some((_, rest)) => (rest.split('/').next().unwrap_or(rest), true),
        // `host:path`; a colon within brackets is the address's own.
        None => {
            let end = url.find("]:").map_or_else(|| url.find(':'), |at| Some(at + 1));
            (&url[..end.unwrap_or(url.len())], false)
        }
    };
    let host = authority.rsplit('@').next().unwrap_or(authority);
    let port = host.rsplit_once(':').filter(|_| with_port);
    let (host, port) = match port.and_then(|(host, port)| Some((host, port.parse().ok()?))) {
        Some((host, port)) => (host, port),
        None => (host, 22),
    };
    let host = host.trim_start_matches('[').trim_end_matches(']');
    Some(HostPort { host: host.to_owned(), port })
}

#[expect(unsafe_code, reason = "git2 marks global settings as unsafe")]
pub(super) fn set_timeout(timeout: std::time::Duration) {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_of_ssh_are_told_with_their_server() {
        for (url, server) in [
            ("ssh://git@h.example:2222/a.git", Some("[h.example]:2222")),
            ("ssh://h.example/a.git", Some("h.example")),
            ("ssh://git@[::1]:22/a.git", Some("::1")),
            ("ssh://git@[::1]:23/a.git", Some("[::1]:23")),
            ("ssh://git@[::1]/a.git", Some("::1")),
            ("git+ssh://h.example/a.git", Some("h.example")),
            ("git@h.example:a.git", Some("h.example")),
            ("git@h.example:2222/a.git", Some("h.example")),
            ("git@[::1]:a.git", Some("::1")),
            ("https://h.example:8443/a.git", None),
            ("file:///srv/a.git", None),
        ] {
            let found = ssh_server(url).map(|at| at.to_string());
            assert_eq!(found.as_deref(), server, "{url}");
        }
    }

    #[test]
    fn a_foreign_repository_is_read_from_the_message() {
        let message = "repository path '/srv/a b.git' is not owned by current user";
        assert_eq!(foreign(message), Some("/srv/a b.git"));
        assert_eq!(foreign("no such repository"), None);
    }
}
