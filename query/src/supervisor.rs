//! What systemd and the daemon say to each other: a socket that is handed over, "ready", "stopping",
//! and a sign of life. Without systemd nothing of it happens.

use crate::service::Service;
use listenfd::ListenFd;
use sd_notify::NotifyState;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;

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
