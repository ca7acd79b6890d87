//! What systemd and the daemon say to each other: a socket that is handed over, "ready", "stopping",
//! and a sign of life. Without systemd nothing of it happens.

use crate::service::Service;
use listenfd::ListenFd;
use sd_notify::NotifyState;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// True when the service manager hands a listener over.
#[must_use]
pub fn hands_over() -> bool {
    std::env::var_os("LISTEN_FDS").is_some()
}

/// A listener on a Unix socket that this user and the group of its directory may connect to; what a
/// server that is gone has left there is replaced.
///
/// # Errors
/// When there is something else, or a server that answers.
pub fn unix_listener(path: &Path) -> Result<UnixListener, String> {
    let failed = |e: std::io::Error| format!("cannot listen on `{}`: {e}", path.display());
    if let Ok(found) = std::fs::symlink_metadata(path) {
        let in_use = !found.file_type().is_socket() || UnixStream::connect(path).is_ok();
        if in_use {
            return Err(failed(std::io::ErrorKind::AddrInUse.into()));
        }
        std::fs::remove_file(path).map_err(failed)?;
    }
    let listener = UnixListener::bind(path).map_err(failed)?;
    let mode = std::fs::Permissions::from_mode(0o660);
    std::fs::set_permissions(path, mode).map_err(failed)?;
    listener.set_nonblocking(true).map_err(failed)?;
    Ok(listener)
}

/// The listener that the service manager hands over, or a new one at an address.
///
/// # Errors
/// When neither can be had.
pub fn listener(address: SocketAddr) -> Result<TcpListener, String> {
    let handed = ListenFd::from_env()
        .take_tcp_listener(0)
        .map_err(|e| format!("the socket that was handed over is no TCP listener: {e}"))?;
    let failed = |e: std::io::Error| format!("cannot listen on {address}: {e}");
    // The standard library's binding reuses an address whose last connections are still closing.
    let listener = handed.map_or_else(|| TcpListener::bind(address), Ok).map_err(failed)?;
    listener.set_nonblocking(true).map_err(failed)?;
    Ok(listener)
}

/// Tells that requests are answered, and how many documents there are.
pub fn ready(service: &Service) {
    let documents: u64 =
        service.snapshot().corpora().iter().map(|c| c.generation.manifest.counts.indexed).sum();
    let status = format!("serving {documents} documents");
    tell(&[NotifyState::Ready, NotifyState::Status(&status)]);
}

/// Tells that requests in flight are finished, and no more.
pub fn stopping() {
    tell(&[NotifyState::Stopping]);
}

fn tell(states: &[NotifyState<'_>]) {
    if let Err(e) = sd_notify::notify(states) {
        tracing::warn!("cannot tell the service manager: {e}");
    }
}

/// Gives signs of life while the daemon can answer: twice as often as the service manager wants, from a
/// thread of the runtime that also serves requests, after a look at the snapshot. Ends with the runtime.
pub fn watch(service: Arc<Service>) {
    let Some(within) = sd_notify::watchdog_enabled() else { return };
    let every = (within / 2).max(Duration::from_millis(100));
    tokio::spawn(async move {
        let mut ticks = tokio::time::interval(every);
        loop {
            ticks.tick().await;
            let _alive = service.snapshot();
            tell(&[NotifyState::Watchdog]);
        }
    });
}
