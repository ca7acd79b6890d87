//! Host keys of ssh servers: the connection is refused unless `known_hosts` has the key.
//!
//! The files are read line by line with libssh2's parser, so that one line of another kind does not
//! cost the others. [`Negotiation`] has libgit2 ask the server for a kind of key that the files hold.

use runbook_shared::error::{Hint, IoContext, PathError};
use runbook_shared::generation::publish::replace_file;
use ssh2::{CheckResult, KnownHostFileKind, KnownHosts, Session};
use std::collections::BTreeSet;
use std::ffi::{CString, c_char, c_int};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Why a host is not trusted.
#[derive(Debug, thiserror::Error)]
pub enum HostKeyError {
    /// No file knows the host.
    #[error("the {kind} host key of `{host}` is in none of: {files}")]
    Unknown {
        /// The host.
        host: HostPort,
        /// The kind of key that it showed.
        kind: String,
        /// The files that were read.
        files: String,
    },
    /// The file has another key for the host.
    #[error("the {kind} host key of `{host}` is not the one in `{}`", file.display())]
    Changed {
        /// The host.
        host: HostPort,
        /// The kind of key that it showed.
        kind: String,
        /// The file.
        file: PathBuf,
    },
    /// The file has keys for the host, but none of a kind that the host has.
    #[error("`{host}` has a host key of kind {kind}; `{}` has for it only: {known}", file.display())]
    OtherKind {
        /// The host.
        host: HostPort,
        /// The kind of key that it showed.
        kind: String,
        /// The kinds in the file.
        known: String,
        /// The file.
        file: PathBuf,
    },
    /// The file says that the key must not be trusted.
    #[error("the {kind} host key of `{host}` is revoked in `{}`", file.display())]
    Revoked {
        /// The host.
        host: HostPort,
        /// The kind of key that it showed.
        kind: String,
        /// The file.
        file: PathBuf,
    },
    /// A file cannot be read.
    #[error("cannot read known_hosts: {0}")]
    File(#[from] PathError),
    /// libssh2 has no memory.
    #[error("known_hosts cannot be checked: {0}")]
    Library(String),
}

/// A host with its port, shown as known_hosts has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostPort {
    /// Name or address.
    pub host: String,
    /// Port.
    pub port: u16,
}

impl std::fmt::Display for HostPort {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.port {
            22 => f.write_str(&self.host),
            port => write!(f, "[{}]:{port}", self.host),
        }
    }
}

impl Hint for HostKeyError {
    fn hint(&self) -> Option<String> {
        let scan = |at: &HostPort| {
            let port = if at.port == 22 { String::new() } else { format!("-p {} ", at.port) };
            format!("`ssh-keyscan {port}{} >> known_hosts`", at.host)
        };
        match self {
            Self::Unknown { host, .. } => Some(format!(
                "compare the host's key with its owner, then add it: {}, and name the file with --known-hosts",
                scan(host)
            )),
            Self::OtherKind { host, .. } => Some(format!(
                "compare the host's key with its owner, then add it as well: {}",
                scan(host)
            )),
            Self::Changed { host, file, .. } => Some(format!(
                "ask the host's owner whether its key was changed; if so, remove the old one with \
                 `ssh-keygen -R '{host}' -f {}` and add the new one: {}",
                file.display(),
                scan(host)
            )),
            Self::Revoked { .. } => Some("ask the host's owner for its new key".into()),
            Self::File(_) => Some("name a readable file with --known-hosts".into()),
            Self::Library(_) => None,
        }
    }
}

/// The files that are read: the named one alone, else the user's and the system's.
fn files(named: Option<&Path>) -> Vec<PathBuf> {
    if let Some(file) = named {
        return vec![file.to_owned()];
    }
    let home = std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".ssh/known_hosts"));
    home.into_iter().chain([PathBuf::from("/etc/ssh/ssh_known_hosts")]).collect()
}

/// Each file with its lines; a file that nobody named may be missing.
fn read(named: Option<&Path>) -> Result<Vec<(PathBuf, String)>, PathError> {
    let mut read = Vec::new();
    for file in files(named) {
        match std::fs::read(&file).at("read", &file) {
            Ok(bytes) => read.push((file, String::from_utf8_lossy(&bytes).into_owned())),
            Err(e) if named.is_none() => tracing::debug!("{e}"),
            Err(e) => return Err(e),
        }
    }
    Ok(read)
}

const REVOKED: &str = "@revoked";

/// The lines that bind a host to a key; comments, authorities and revocations are not of them.
fn bindings(text: &str) -> impl Iterator<Item = &str> {
    text.lines().map(str::trim).filter(|l| !l.is_empty() && !l.starts_with(['#', '@']))
}

/// The lines that revoke a key, without their marker.
fn revocations(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter_map(|l| l.trim().strip_prefix(REVOKED)).map(str::trim)
}

/// Answers for some lines of a file; what libssh2 cannot parse is left out.
struct Table {
    known: KnownHosts,
}

impl Table {
    fn of<'a>(lines: impl Iterator<Item = &'a str>) -> Result<Self, HostKeyError> {
        let session = Session::new().map_err(|e| HostKeyError::Library(e.to_string()))?;
        let known = session.known_hosts().map_err(|e| HostKeyError::Library(e.to_string()))?;
        let mut table = Self { known };
        for line in lines {
            if !table.add(line) {
                tracing::debug!("a line of known_hosts is not understood and left out: {line:?}");
            }
        }
        Ok(table)
    }

    fn add(&mut self, line: &str) -> bool {
        self.known.read_str(line, KnownHostFileKind::OpenSSH).is_ok()
    }

    fn check(&self, at: &HostPort, key: &[u8]) -> CheckResult {
        self.known.check_port(&at.host, at.port, key)
    }
}

/// The kind of a public key: the first field of its wire form (RFC 4253, 6.6).
fn kind_of(key: &[u8]) -> String {
    let name = key.split_at_checked(4).and_then(|(length, rest)| {
        let length = u32::from_be_bytes(length.try_into().ok()?);
        rest.get(..usize::try_from(length).ok()?)
    });
    let name = name.map(String::from_utf8_lossy).unwrap_or_default();
    name.chars().filter(char::is_ascii_graphic).take(64).collect()
}

/// The kinds of keys that the lines have for a host.
fn kinds_for(text: &str, at: &HostPort) -> Result<BTreeSet<String>, HostKeyError> {
    let kind = |line: &str| line.split_ascii_whitespace().nth(1).map(str::to_owned);
    let all: BTreeSet<String> = bindings(text).filter_map(kind).collect();
    let mut found = BTreeSet::new();
    for wanted in all {
        let table = Table::of(bindings(text).filter(|l| kind(l).as_ref() == Some(&wanted)))?;
        // No key is empty: a mismatch says that the host is there.
        if matches!(table.check(at, &[0]), CheckResult::Mismatch) {
            found.insert(wanted);
        }
    }
    Ok(found)
}

/// Looks the key of a host up; one file that has it is enough.
///
/// # Errors
/// When the host is unknown, its key another one or revoked, or a named file unreadable.
pub fn check(named: Option<&Path>, at: &HostPort, key: &[u8]) -> Result<(), HostKeyError> {
    let (kind, host) = (kind_of(key), at.clone());
    let read = read(named)?;
    for (file, text) in &read {
        if matches!(Table::of(revocations(text))?.check(at, key), CheckResult::Match) {
            return Err(HostKeyError::Revoked { host, kind, file: file.clone() });
        }
    }
    let mut other = None;
    for (file, text) in &read {
        match Table::of(bindings(text))?.check(at, key) {
            CheckResult::Match => return Ok(()),
            CheckResult::Mismatch if other.is_none() => other = Some((file.clone(), text)),
            _ => {}
        }
    }
    let Some((file, text)) = other else {
        let files: Vec<String> =
            files(named).iter().map(|f| format!("`{}`", f.display())).collect();
        return Err(HostKeyError::Unknown { host, kind, files: files.join(", ") });
    };
    let known = kinds_for(text, at)?;
    if known.contains(&kind) {
        return Err(HostKeyError::Changed { host, kind, file });
    }
    let known = known.into_iter().collect::<Vec<_>>().join(", ");
    Err(HostKeyError::OtherKind { host, kind, known, file })
}

/// While it lives, libgit2 asks ssh servers for the kinds of host keys that the files have.
///
/// Servers have keys of several kinds, and files often one of them. libgit2 chooses by
/// `.ssh/known_hosts` in what it takes for the home directory, and by no other file; so it is given
/// a directory with the lines of all files. It decides nothing: [`check`] does.
#[derive(Debug)]
pub struct Negotiation(());

/// `GIT_OPT_SET_HOMEDIR` of libgit2's `git_libgit2_opt_t` (git2/common.h): libgit2 only appends to
/// it, and the test with one known key of several fails when this is not it.
const SET_HOMEDIR: c_int = 38;

#[expect(unsafe_code, reason = "git2 has no binding for this option")]
unsafe extern "C" {
    fn git_libgit2_opts(option: c_int, ...) -> c_int;
}

impl Negotiation {
    /// Writes the lines below `home` and points libgit2 there.
    ///
    /// # Errors
    /// When a named file cannot be read, or `home` not be written.
    pub fn begin(named: Option<&Path>, home: &Path) -> Result<Self, HostKeyError> {
        let mut table = Table::of(std::iter::empty())?;
        let mut lines = String::new();
        for (_, text) in read(named)? {
            for line in bindings(&text).filter(|l| table.add(l)) {
                lines.push_str(line);
                lines.push('\n');
            }
        }
        let dir = home.join(".ssh");
        std::fs::create_dir_all(&dir).at("create directory", &dir)?;
        let file = dir.join("known_hosts");
        if std::fs::read(&file).ok().as_deref() != Some(lines.as_bytes()) {
            replace_file(&file, lines.as_bytes())?;
        }
        let home = CString::new(home.as_os_str().as_bytes())
            .map_err(|e| HostKeyError::Library(e.to_string()))?;
        if set_home(home.as_ptr()) {
            Ok(Self(()))
        } else {
            Err(HostKeyError::Library("libgit2 takes no home directory".into()))
        }
    }
}

impl Drop for Negotiation {
    fn drop(&mut self) {
        // Null stands for the home directory that libgit2 finds by itself.
        set_home(std::ptr::null());
    }
}

#[expect(unsafe_code, reason = "git2 has no binding for this option")]
fn set_home(home: *const c_char) -> bool {
    // git2 initialises libgit2 when first used; this asks for nothing but that.
    let _ = git2::Reference::is_valid_name("HEAD");
    // SAFETY: the option takes one string, which libgit2 copies, or null. It is set by the one
    // thread that makes connections, while it makes none.
    unsafe { git_libgit2_opts(SET_HOMEDIR, home) == 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "AAAAC3NzaC1lZDI1NTE5AAAAIGVjQYjRvYbzQvGmxBb9rmZ1rC2u1G5fRkTVTP2cY7qx";

    #[test]
    fn kinds_are_read_from_keys_and_files() {
        let mut key = vec![0, 0, 0, 11];
        key.extend_from_slice(b"ssh-ed25519 and more");
        assert_eq!(kind_of(&key), "ssh-ed25519");
        assert_eq!(kind_of(&[0, 0, 1]), "");
        assert_eq!(kind_of(&[255, 255, 255, 255, 65]), "");
        assert_eq!(kind_of(b"\0\0\0\x04a\x1b[m"), "a[m");
        let text = format!(
            "# c\nh.example ssh-ed25519 {KEY}\nh.example,other.example ssh-rsa {KEY}\nx y\n"
        );
        let at = |host: &str, port| HostPort { host: host.into(), port };
        let kinds = |host: &str, port| {
            kinds_for(&text, &at(host, port)).unwrap().into_iter().collect::<Vec<_>>().join(" ")
        };
        assert_eq!(kinds("h.example", 22), "ssh-ed25519 ssh-rsa");
        assert_eq!(kinds("other.example", 22), "ssh-rsa");
        assert_eq!(kinds("elsewhere.org", 22), "");
        assert_eq!(at("h", 22).to_string(), "h");
        assert_eq!(at("::1", 2222).to_string(), "[::1]:2222");
    }
}
