//! Host keys of ssh servers: the connection is refused unless `known_hosts` has the key.

use ssh2::{CheckResult, KnownHostFileKind, Session};
use std::path::{Path, PathBuf};

/// Why a host is not trusted.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum HostKeyError {
    /// No file knows the host.
    #[error("the host key of `{host}` is in none of: {files}")]
    Unknown {
        /// Host, with its port where it is not 22.
        host: String,
        /// The files that were read.
        files: String,
    },
    /// The file has another key for the host.
    #[error("the host key of `{host}` is not the one in `{}`", file.display())]
    Changed {
        /// Host, with its port where it is not 22.
        host: String,
        /// The file.
        file: PathBuf,
    },
    /// A file cannot be read.
    #[error("`{}` cannot be read as known_hosts: {message}", file.display())]
    File {
        /// The file.
        file: PathBuf,
        /// What is wrong.
        message: String,
    },
}

/// The files that are read: the named one alone, else the user's and the system's.
#[must_use]
pub fn files(named: Option<&Path>) -> Vec<PathBuf> {
    if let Some(file) = named {
        return vec![file.to_owned()];
    }
    let home = std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".ssh/known_hosts"));
    home.into_iter().chain([PathBuf::from("/etc/ssh/ssh_known_hosts")]).collect()
}

/// Looks the key of `host:port` up.
///
/// # Errors
/// When the host is unknown, its key another one, or a named file unreadable.
pub fn check(named: Option<&Path>, host: &str, port: u16, key: &[u8]) -> Result<(), HostKeyError> {
    let shown = if port == 22 { host.to_owned() } else { format!("[{host}]:{port}") };
    let files = files(named);
    for file in &files {
        if named.is_none() && !file.is_file() {
            continue;
        }
        let failed = |message: String| HostKeyError::File { file: file.clone(), message };
        let session = Session::new().map_err(|e| failed(e.to_string()))?;
        let mut known = session.known_hosts().map_err(|e| failed(e.to_string()))?;
        known.read_file(file, KnownHostFileKind::OpenSSH).map_err(|e| failed(e.to_string()))?;
        match known.check_port(host, port, key) {
            CheckResult::Match => return Ok(()),
            CheckResult::Mismatch => {
                return Err(HostKeyError::Changed { host: shown, file: file.clone() });
            }
            CheckResult::NotFound | CheckResult::Failure => {}
        }
    }
    let files = files.iter().map(|f| format!("`{}`", f.display())).collect::<Vec<_>>().join(", ");
    Err(HostKeyError::Unknown { host: shown, files })
}
