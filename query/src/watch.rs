//! Keeps the snapshot fresh: notify's events are hints, polling makes sure.
//!
//! The data directory is watched, not the link: the link is replaced by a rename, which a watch on
//! it would not survive. Events only wake the loop, which then looks for itself; it also looks every
//! poll period, so that a missed event, a full queue or a replaced directory costs one period.

use crate::service::Service;
use notify::{RecursiveMode, Watcher};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::time::Duration;

/// How long to wait for more events before looking.
const SETTLE: Duration = Duration::from_millis(20);

/// What wakes the loop.
enum Event {
    /// Something happened in a data directory.
    Hint,
    /// The service stops.
    Stop,
}

/// Stops the loop when dropped.
pub struct Watch {
    sender: Sender<Event>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Drop for Watch {
    fn drop(&mut self) {
        let _ = self.sender.send(Event::Stop);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Starts the loop.
///
/// # Errors
/// When the thread cannot be started.
pub fn start(service: Arc<Service>, poll: Duration) -> std::io::Result<Watch> {
    let (sender, receiver) = mpsc::channel();
    let hints = sender.clone();
    let thread = std::thread::Builder::new().name("watch".into()).spawn(move || {
        let mut watched = Watched::new(service.data_dirs(), hints);
        loop {
            watched.renew();
            service.refresh();
            match receiver.recv_timeout(poll) {
                Ok(Event::Stop) | Err(RecvTimeoutError::Disconnected) => return,
                Ok(Event::Hint) => {
                    std::thread::sleep(SETTLE);
                    while let Ok(event) = receiver.try_recv() {
                        if matches!(event, Event::Stop) {
                            return;
                        }
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    })?;
    Ok(Watch { sender, thread: Some(thread) })
}

/// The watches on the data directories; a directory that is replaced is watched anew.
struct Watched {
    dirs: Vec<(PathBuf, Option<(u64, u64)>)>,
    watcher: Option<notify::RecommendedWatcher>,
}

impl Watched {
    fn new(dirs: Vec<PathBuf>, hints: Sender<Event>) -> Self {
        let watcher = notify::recommended_watcher(move |_: notify::Result<notify::Event>| {
            // Errors (a full queue, say) wake the loop as well: something may have changed.
            let _ = hints.send(Event::Hint);
        });
        let watcher =
            watcher.inspect_err(|e| tracing::warn!("no file events ({e}); polling alone")).ok();
        Self { dirs: dirs.into_iter().map(|d| (d, None)).collect(), watcher }
    }

    fn renew(&mut self) {
        let Some(watcher) = &mut self.watcher else { return };
        for (dir, watched) in &mut self.dirs {
            let now = identity(dir);
            if now == *watched {
                continue;
            }
            if watched.is_some() {
                let _ = watcher.unwatch(dir);
            }
            *watched = match now {
                Some(id) => match watcher.watch(dir, RecursiveMode::NonRecursive) {
                    Ok(()) => Some(id),
                    Err(e) => {
                        tracing::warn!("`{}` cannot be watched ({e}); it is polled", dir.display());
                        None
                    }
                },
                None => None,
            };
        }
    }
}

fn identity(dir: &Path) -> Option<(u64, u64)> {
    std::fs::metadata(dir).ok().map(|m| (m.dev(), m.ino()))
}
