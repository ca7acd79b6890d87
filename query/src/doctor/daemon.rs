//! Checks of what only the daemon needs: its state directory, its address, and file events.

use super::Subject;
use notify::{RecursiveMode, Watcher};
use runbook_shared::doctor::{Finding, directory};
use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::time::Duration;

/// How long a program on our address may take to say what it is.
const ANSWER_WITHIN: Duration = Duration::from_secs(3);
/// The most that is read of its answer.
const ANSWER_BYTES_MAX: u64 = 64 * 1024;
/// Below these the limits are used up by a few other programs of the same user.
const INSTANCES_MIN: u64 = 16;
const WATCHES_MIN: u64 = 1024;

/// The daemon's own directory.
pub(super) fn state(subject: &Subject) -> Vec<Finding> {
    const CHECK: &str = "state directory";
    vec![match &subject.config.state {
        Some(state) => directory::writable(CHECK, state),
        None => {
            Finding::ok(CHECK, "none is named: reports, refused questions and usage are not kept")
        }
    }]
}

/// Whether the address is free, or already ours.
pub(super) fn address(subject: &Subject) -> Vec<Finding> {
    const CHECK: &str = "listen address";
    let address = subject.config.listen;
    let Err(error) = TcpListener::bind(address) else {
        return vec![Finding::ok(CHECK, format!("{address} is free"))];
    };
    let finding = match error.kind() {
        std::io::ErrorKind::AddrInUse => match who(address) {
            Some(version) => {
                Finding::ok(CHECK, format!("runbook-query {version} serves on {address}"))
            }
            None => Finding::fail(
                CHECK,
                format!("another program listens on {address}"),
                format!(
                    "see which: `ss -ltnp 'sport = :{}'`, and stop it or name another address with --listen",
                    address.port()
                ),
            ),
        },
        std::io::ErrorKind::PermissionDenied => Finding::fail(
            CHECK,
            format!("this user may not listen on {address}: {error}"),
            "use a port from 1024, behind a proxy (deploy/), or the socket unit",
        ),
        _ => Finding::fail(
            CHECK,
            format!("cannot listen on {address}: {error}"),
            "name an address of this machine with --listen: `ip address`",
        ),
    };
    vec![finding]
}

/// The version of the runbook-query that serves there; none where something else does.
fn who(address: SocketAddr) -> Option<String> {
    let ip = match address.ip() {
        ip if !ip.is_unspecified() => ip,
        IpAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
    };
    let to = SocketAddr::new(ip, address.port());
    let mut stream = TcpStream::connect_timeout(&to, ANSWER_WITHIN).ok()?;
    stream.set_read_timeout(Some(ANSWER_WITHIN)).ok()?;
    stream.set_write_timeout(Some(ANSWER_WITHIN)).ok()?;
    let request = format!(
        "GET /v1/status HTTP/1.0\r\nHost: localhost:{}\r\nConnection: close\r\n\r\n",
        address.port()
    );
    stream.write_all(request.as_bytes()).ok()?;
    let mut answer = Vec::new();
    // What came before an error is looked at all the same.
    let _ = stream.take(ANSWER_BYTES_MAX).read_to_end(&mut answer);
    let answer = String::from_utf8_lossy(&answer);
    let (_, body) = answer.split_once("\r\n\r\n")?;
    let value: serde_json::Value = serde_json::from_str(body).ok()?;
    (value.get("reloads").is_some() && value.get("gate").is_some())
        .then(|| value["version"].as_str().unwrap_or("?").to_owned())
}

/// Whether a data directory can be watched, by doing it, and what the limits are.
pub(super) fn events(subject: &Subject) -> Vec<Finding> {
    const FIX: &str = "`sysctl -w fs.inotify.max_user_instances=512 fs.inotify.max_user_watches=65536`, and a file in /etc/sysctl.d";
    let watched = notify::recommended_watcher(|_| {}).and_then(|mut watcher| {
        let there = subject.repos.iter().map(|(repo, _)| &repo.data).filter(|d| d.is_dir());
        there.into_iter().try_for_each(|dir| watcher.watch(dir, RecursiveMode::NonRecursive))
    });
    if let Err(e) = watched {
        let every = subject.config.poll.as_secs_f64();
        return vec![Finding::warn(
            CHECK_EVENTS,
            format!("no file events: {e}; new generations are seen by looking every {every} s"),
            FIX,
        )];
    }
    vec![limits(Path::new("/proc/sys/fs/inotify"), FIX)]
}

const CHECK_EVENTS: &str = "file events";

fn limits(dir: &Path, fix: &str) -> Finding {
    let read = |name: &str| -> Option<u64> {
        std::fs::read_to_string(dir.join(name)).ok()?.trim().parse().ok()
    };
    let (instances, watches) = (read("max_user_instances"), read("max_user_watches"));
    let shown = |n: Option<u64>| n.map_or_else(|| "unseen".to_owned(), |n| n.to_string());
    let says = format!(
        "inotify works; max_user_instances {}, max_user_watches {}",
        shown(instances),
        shown(watches)
    );
    let low =
        instances.is_some_and(|n| n < INSTANCES_MIN) || watches.is_some_and(|n| n < WATCHES_MIN);
    if low { Finding::warn(CHECK_EVENTS, says, fix) } else { Finding::ok(CHECK_EVENTS, says) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use runbook_shared::doctor::Grade;

    #[test]
    fn low_limits_are_told_and_unseen_ones_are_not_guessed() {
        let dir = tempfile::tempdir().unwrap();
        let found = || limits(dir.path(), "raise it");
        assert_eq!(found().grade, Grade::Ok);
        assert!(found().message.contains("max_user_watches unseen"));
        let write = |name: &str, n: &str| std::fs::write(dir.path().join(name), n).unwrap();
        write("max_user_instances", "128\n");
        write("max_user_watches", "8192\n");
        assert_eq!(found().grade, Grade::Ok);
        write("max_user_instances", "1\n");
        assert_eq!((found().grade, found().fix.as_deref()), (Grade::Warn, Some("raise it")));
        write("max_user_instances", "128\n");
        write("max_user_watches", "10\n");
        assert_eq!(found().grade, Grade::Warn);
    }
}
