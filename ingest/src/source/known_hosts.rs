//! Host keys of ssh servers: the connection is refused unless `known_hosts` has the key.
//!
//! Which lines name a host is decided as OpenSSH does (sshd(8), "SSH_KNOWN_HOSTS FILE FORMAT"): by
//! patterns, by hashed names, and by `[host]:port`. Keys are compared by libssh2's parser, line by line,
//! so that one line of another kind does not cost the others. [`Negotiation`] has libgit2 ask the server
//! for a kind of key that the files hold.

use super::host_pattern;
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

impl HostPort {
    /// The names that lines may have for it: with its port, else without, as OpenSSH looks them up.
    fn names(&self) -> Vec<String> {
        let host = self.host.to_ascii_lowercase();
        match self.port {
            22 => vec![host],
            port => vec![format!("[{host}]:{port}"), host],
        }
    }
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

/// What a line says of the hosts that it names.
struct Entry<'t> {
    hosts: &'t str,
    kind: &'t str,
    key: &'t str,
}

impl<'t> Entry<'t> {
    fn of(line: &'t str) -> Option<Self> {
        let mut fields = line.split_ascii_whitespace();
        Some(Self { hosts: fields.next()?, kind: fields.next()?, key: fields.next()? })
    }

    /// A line that says the same of `name` alone.
    fn line_for(&self, name: &str) -> String {
        format!("{name} {} {}", self.kind, self.key)
    }
}

/// libssh2's parser: answers for lines of a file; what it cannot parse is left out.
struct Parser {
    session: Session,
}

impl Parser {
    fn new() -> Result<Self, HostKeyError> {
        let session = Session::new().map_err(|e| HostKeyError::Library(e.to_string()))?;
        Ok(Self { session })
    }

    fn table<'l>(&self, lines: impl Iterator<Item = &'l str>) -> Result<KnownHosts, HostKeyError> {
        let mut known =
            self.session.known_hosts().map_err(|e| HostKeyError::Library(e.to_string()))?;
        for line in lines {
            if known.read_str(line, KnownHostFileKind::OpenSSH).is_err() {
                tracing::debug!("a line of known_hosts is not understood and left out: {line:?}");
            }
        }
        Ok(known)
    }

    /// The lines that name a host by this name, put for that name alone.
    fn naming<'t>(
        &self,
        lines: impl Iterator<Item = &'t str>,
        name: &str,
    ) -> Result<Vec<Entry<'t>>, HostKeyError> {
        let mut naming = Vec::new();
        for entry in lines.filter_map(Entry::of) {
            let names = if host_pattern::is_hashed(entry.hosts) {
                let line = entry.line_for(entry.hosts);
                // No key is empty: a mismatch says that the host is there.
                let found = self.table(std::iter::once(line.as_str()))?.check(name, &[0]);
                matches!(found, CheckResult::Mismatch)
            } else {
                host_pattern::matches(entry.hosts, name)
            };
            if names {
                naming.push(entry);
            }
        }
        Ok(naming)
    }

    /// True when one of the lines has the key.
    fn have<'e, 't: 'e>(
        &self,
        entries: impl Iterator<Item = &'e Entry<'t>>,
        key: &[u8],
    ) -> Result<bool, HostKeyError> {
        let lines: Vec<String> = entries.map(|e| e.line_for(ANY_NAME)).collect();
        let found = self.table(lines.iter().map(String::as_str))?.check(ANY_NAME, key);
        Ok(matches!(found, CheckResult::Match))
    }
}

/// Stands for a host once its lines are found.
const ANY_NAME: &str = "host";

/// A file with its lines for a host.
struct Found<'t> {
    file: &'t Path,
    entries: Vec<Entry<'t>>,
}

/// The lines for a host: those with its port, and where no file has such, those without.
fn find<'t>(
    parser: &Parser,
    read: &'t [(PathBuf, String)],
    at: &HostPort,
) -> Result<(String, Vec<Found<'t>>), HostKeyError> {
    for name in at.names() {
        let mut found = Vec::new();
        for (file, text) in read {
            let entries = parser.naming(bindings(text), &name)?;
            if !entries.is_empty() {
                found.push(Found { file, entries });
            }
        }
        if !found.is_empty() {
            return Ok((name, found));
        }
    }
    Ok((String::new(), Vec::new()))
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

/// Looks the key of a host up; one file that has it is enough.
///
/// # Errors
/// When the host is unknown, its key another one or revoked, or a named file unreadable.
pub fn check(named: Option<&Path>, at: &HostPort, key: &[u8]) -> Result<(), HostKeyError> {
    let (kind, host, parser) = (kind_of(key), at.clone(), Parser::new()?);
    let read = read(named)?;
    for (file, text) in &read {
        for name in at.names() {
            let revoked = parser.naming(revocations(text), &name)?;
            if parser.have(revoked.iter(), key)? {
                return Err(HostKeyError::Revoked { host, kind, file: file.clone() });
            }
        }
    }
    let (_, found) = find(&parser, &read, at)?;
    for Found { entries, .. } in &found {
        if parser.have(entries.iter().filter(|e| e.kind == kind), key)? {
            return Ok(());
        }
    }
    let Some(Found { file, entries }) = found.first() else {
        let files: Vec<String> =
            files(named).iter().map(|f| format!("`{}`", f.display())).collect();
        return Err(HostKeyError::Unknown { host, kind, files: files.join(", ") });
    };
    let (file, known) = ((*file).to_owned(), kinds(entries));
    if known.contains(kind.as_str()) {
        return Err(HostKeyError::Changed { host, kind, file });
    }
    let known = known.into_iter().collect::<Vec<_>>().join(", ");
    Err(HostKeyError::OtherKind { host, kind, known, file })
}

/// The kinds of keys that the files have for a host, and the files that were looked into, as text.
///
/// # Errors
/// When a named file cannot be read.
pub fn known_kinds(
    named: Option<&Path>,
    at: &HostPort,
) -> Result<(Vec<String>, String), HostKeyError> {
    let (parser, read) = (Parser::new()?, read(named)?);
    let (_, found) = find(&parser, &read, at)?;
    let known: BTreeSet<&str> = found.iter().flat_map(|f| kinds(&f.entries)).collect();
    let files: Vec<String> = files(named).iter().map(|f| format!("`{}`", f.display())).collect();
    Ok((known.into_iter().map(str::to_owned).collect(), files.join(", ")))
}

/// The kinds of keys that lines have.
fn kinds<'t>(entries: &[Entry<'t>]) -> BTreeSet<&'t str> {
    entries.iter().map(|e| e.kind).collect()
}

/// While it lives, libgit2 asks ssh servers for the kinds of host keys that the files have.
///
/// Servers have keys of several kinds, and files often one of them. libgit2 chooses by
/// `.ssh/known_hosts` in what it takes for the home directory, and by no other file, and knows no
/// patterns; so it is given a directory with the lines for the host. It decides nothing: [`check`] does.
#[derive(Debug)]
pub struct Negotiation(());

impl Negotiation {
    /// Writes the lines for a host below `home` and points libgit2 there.
    ///
    /// # Errors
    /// When a named file cannot be read, or `home` not be written.
    pub fn begin(named: Option<&Path>, at: &HostPort, home: &Path) -> Result<Self, HostKeyError> {
        let (parser, read) = (Parser::new()?, read(named)?);
        let (name, found) = find(&parser, &read, at)?;
        let entries = found.iter().flat_map(|f| &f.entries);
        let lines: String = entries.map(|e| e.line_for(&name) + "\n").collect();
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
    unsafe { libgit2_sys::git_libgit2_opts(libgit2_sys::GIT_OPT_SET_HOMEDIR as c_int, home) == 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "AAAAC3NzaC1lZDI1NTE5AAAAIGVjQYjRvYbzQvGmxBb9rmZ1rC2u1G5fRkTVTP2cY7qx";

    /// The same in its wire form.
    const KEY_BYTES: [u8; 51] = [
        0, 0, 0, 11, 115, 115, 104, 45, 101, 100, 50, 53, 53, 49, 57, 0, 0, 0, 32, 101, 99, 65,
        136, 209, 189, 134, 243, 66, 241, 166, 196, 22, 253, 174, 102, 117, 172, 45, 174, 212, 110,
        95, 70, 68, 213, 76, 253, 156, 99, 186, 177,
    ];

    #[test]
    fn kinds_are_read_from_keys_and_files() {
        let mut key = vec![0, 0, 0, 11];
        key.extend_from_slice(b"ssh-ed25519 and more");
        assert_eq!(kind_of(&key), "ssh-ed25519");
        assert_eq!(kind_of(&[0, 0, 1]), "");
        assert_eq!(kind_of(&[255, 255, 255, 255, 65]), "");
        assert_eq!(kind_of(b"\0\0\0\x04a\x1b[m"), "a[m");
        assert_eq!(at("h", 22).to_string(), "h");
        assert_eq!(at("::1", 2222).to_string(), "[::1]:2222");
    }

    fn at(host: &str, port: u16) -> HostPort {
        HostPort { host: host.into(), port }
    }

    /// The kinds that a text has for a host.
    fn known(text: &str, host: &str, port: u16) -> String {
        let read = [(PathBuf::from("known"), text.to_owned())];
        let (_, found) = find(&Parser::new().unwrap(), &read, &at(host, port)).unwrap();
        let kinds: BTreeSet<&str> = found.iter().flat_map(|f| kinds(&f.entries)).collect();
        kinds.into_iter().collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn lines_are_found_as_openssh_finds_them() {
        let text = format!(
            "# c\nh.example ssh-ed25519 {KEY}\nh.example,other.example ssh-rsa {KEY}\nx y\n\
             *.corp.example,!old.corp.example ssh-ed25519 {KEY}\n\
             [*.corp.example]:2222 ssh-rsa {KEY}\n@cert-authority * ssh-dss {KEY}\n"
        );
        for (host, port, kinds) in [
            ("h.example", 22, "ssh-ed25519 ssh-rsa"),
            ("H.Example", 22, "ssh-ed25519 ssh-rsa"),
            ("other.example", 22, "ssh-rsa"),
            ("elsewhere.org", 22, ""),
            ("git.corp.example", 22, "ssh-ed25519"),
            ("old.corp.example", 22, ""),
            // A line with the port is the better one; without one, the host's own line serves.
            ("git.corp.example", 2222, "ssh-rsa"),
            ("git.corp.example", 2223, "ssh-ed25519"),
        ] {
            assert_eq!(known(&text, host, port), kinds, "{host}:{port}");
        }
    }

    #[test]
    fn hashed_names_are_found_with_and_without_port() {
        // `ssh-keygen -H` of `h.example` and `[h.example]:2222`.
        let plain = "|1|AAECAwQFBgcICQoLDA0ODxAREhM=|vXPZpM3fPbCqhG5K7rISl8O0xEk=";
        let with_port = "|1|ExIREA8ODQwLCgkIBwYFBAMCAQA=|oKm7gzMb6zF/hhRPhW4Yehtn4S8=";
        let text = format!("{plain} ssh-ed25519 {KEY}\n{with_port} ssh-rsa {KEY}\n");
        assert_eq!(known(&text, "h.example", 22), "ssh-ed25519");
        assert_eq!(known(&text, "h.example", 2222), "ssh-rsa");
        assert_eq!(known(&text, "h.example", 2223), "ssh-ed25519");
        assert_eq!(known(&text, "g.example", 22), "");
    }

    #[test]
    fn a_key_is_checked_by_the_lines_that_name_the_host() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("known");
        let check = |text: String, host, port| {
            std::fs::write(&file, text).unwrap();
            check(Some(&file), &at(host, port), &KEY_BYTES)
        };
        check(format!("*.example ssh-ed25519 {KEY}"), "git.example", 22).unwrap();
        check(format!("[*.example]:* ssh-ed25519 {KEY}"), "git.example", 7999).unwrap();
        check(format!("git.example ssh-ed25519 {KEY}"), "git.example", 7999).unwrap();
        let other = format!("{}AAAA", &KEY[..KEY.len() - 4]);
        let refused = |text, host, port| check(text, host, port).unwrap_err();
        assert!(matches!(
            refused(format!("*,!git.example ssh-ed25519 {KEY}"), "git.example", 22),
            HostKeyError::Unknown { .. }
        ));
        assert!(matches!(
            refused(format!("*.example ssh-ed25519 {other}"), "git.example", 22),
            HostKeyError::Changed { .. }
        ));
        assert!(matches!(
            refused(format!("*.example ssh-rsa {KEY}"), "git.example", 22),
            HostKeyError::OtherKind { .. }
        ));
        // A line with the port counts, though one without it has the key.
        let both = format!("[git.example]:7999 ssh-ed25519 {other}\ngit.example ssh-ed25519 {KEY}");
        assert!(matches!(refused(both, "git.example", 7999), HostKeyError::Changed { .. }));
        let revoked = format!("*.example ssh-ed25519 {KEY}\n@revoked * ssh-ed25519 {KEY}");
        assert!(matches!(refused(revoked, "git.example", 22), HostKeyError::Revoked { .. }));
    }
}
