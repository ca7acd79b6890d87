//! Generations that are swapped under load: no request fails, every reply is of one generation, and
//! neither descriptors nor memory grow.

use crate::support::{Daemon, Fixture, how_many, ingest};
use runbook_shared::generation::current_id;
use runbook_shared::generation::publish::point_to;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Two generations of one data directory that tell of each other's unit by its name.
fn fixture() -> (Fixture, [(String, &'static str); 2]) {
    let tree = |unit: &str| {
        format!(
            "//- ports.md\n# Ports\n\n## Ports on app1\n\nThe unit {unit}.service opens port 8080.\n"
        )
    };
    let fixture = Fixture::lexical(&tree("anchor"));
    let first = current_id(&fixture.data()).unwrap();
    fixture.write(&tree("beacon"));
    ingest(&fixture.source().display().to_string(), &fixture.data(), Some("none"));
    let second = current_id(&fixture.data()).unwrap();
    (fixture, [(first, "anchor"), (second, "beacon")])
}

/// Stops the load, also when a test fails.
struct Stop<'a>(&'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

struct Client {
    reader: BufReader<TcpStream>,
    request: String,
}

impl Client {
    fn new(address: &str) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let request =
            format!("GET /v1/ask?q=which+unit+opens+8080 HTTP/1.1\r\nHost: {address}\r\n\r\n");
        Self { reader: BufReader::new(stream), request }
    }

    /// Status and body, over the same connection.
    fn ask(&mut self) -> (u16, String) {
        self.reader.get_mut().write_all(self.request.as_bytes()).unwrap();
        let (mut line, mut length) = (String::new(), 0);
        self.reader.read_line(&mut line).unwrap();
        let status = line.split(' ').nth(1).and_then(|s| s.parse().ok()).unwrap_or(0);
        loop {
            let mut header = String::new();
            self.reader.read_line(&mut header).unwrap();
            let header = header.trim().to_ascii_lowercase();
            if header.is_empty() {
                break;
            }
            if let Some(n) = header.strip_prefix("content-length: ") {
                length = n.parse().unwrap();
            }
        }
        let mut body = vec![0; length];
        self.reader.read_exact(&mut body).unwrap();
        (status, String::from_utf8(body).unwrap())
    }
}

/// Resident kilobytes, descriptors and maps of a process.
fn held(pid: u32) -> (u64, usize, usize) {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let resident = status.lines().find_map(|l| l.strip_prefix("VmRSS:")).unwrap();
    let resident = resident.trim().split(' ').next().unwrap().parse().unwrap();
    let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).unwrap();
    let of_data = maps.lines().filter(|l| l.contains("/generations/")).count();
    (resident, std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap().count(), of_data)
}

/// Asks at a rate over 64 connections until told to stop; returns the times of all requests, sorted.
fn load(
    address: &str,
    every: Duration,
    stop: &AtomicBool,
    check: &(impl Fn(u16, &str) + Sync),
) -> Vec<Duration> {
    let (took, ticket) = (Mutex::new(Vec::new()), AtomicUsize::new(0));
    let started = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..64 {
            scope.spawn(|| {
                let mut client = Client::new(address);
                let mut own = Vec::new();
                while !stop.load(Ordering::Relaxed) {
                    // Open loop: each request has its time, whether the one before is answered or not.
                    let n = u32::try_from(ticket.fetch_add(1, Ordering::Relaxed)).unwrap();
                    let due = started + every * n;
                    std::thread::sleep(due.saturating_duration_since(Instant::now()));
                    let (status, body) = client.ask();
                    own.push(due.elapsed());
                    check(status, &body);
                }
                took.lock().unwrap().extend(own);
            });
        }
    });
    let mut took = took.into_inner().unwrap();
    took.sort();
    took
}

fn p99(took: &[Duration]) -> Duration {
    took[took.len() * 99 / 100]
}

#[test]
#[expect(clippy::print_stderr, reason = "the figures of docs/measurements.md")]
fn swaps_under_load_fail_no_request_and_leak_nothing() {
    let swaps = how_many("RUNBOOK_TEST_SWAPS", 60);
    let (fixture, generations) = fixture();
    let daemon = Daemon::start(&fixture.data(), &["--embedder", "none"]);
    let check = |status: u16, body: &str| {
        assert_eq!(status, 200, "{body}");
        let of = generations.iter().filter(|(id, _)| body.contains(id.as_str()));
        let names: Vec<&str> = of.map(|(_, name)| *name).collect();
        let [name] = names[..] else { panic!("of {names:?}: {body}") };
        let other = if name == "anchor" { "beacon" } else { "anchor" };
        assert!(body.contains(&format!("{name}.service")), "{body}");
        assert!(!body.contains(other), "{body}");
    };
    // What it can do, by clients that ask again as soon as they are answered.
    let asked = AtomicUsize::new(0);
    let started = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let mut client = Client::new(&daemon.address);
                while started.elapsed() < Duration::from_secs(1) {
                    client.ask();
                    asked.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
    });
    let capacity = asked.load(Ordering::Relaxed) as f64 / started.elapsed().as_secs_f64();
    let every = Duration::from_secs_f64(2.0 / capacity);
    let run = |act: &(dyn Fn() + Sync)| {
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let load = scope.spawn(|| load(&daemon.address, every, &stop, &check));
            let ends = Stop(&stop);
            act();
            drop(ends);
            load.join().unwrap()
        })
    };
    let quiet = run(&|| std::thread::sleep(Duration::from_secs(2)));
    let swap = |n: usize| {
        let (id, _) = &generations[n % 2];
        point_to(&fixture.data(), id).unwrap();
        daemon.wait("/v1/status", |s| s["generation"] == id.as_str());
    };
    // A few swaps first: what is allocated once is no leak.
    (0..6).for_each(&swap);
    let before = held(daemon.id());
    let busy = run(&|| (0..swaps).for_each(&swap));
    let after = held(daemon.id());
    eprintln!(
        "{swaps} swaps, {} requests at {:.0}/s (half of {capacity:.0}/s), none failed; p99 {:.1?}, quiet {:.1?}; \
         resident {} -> {} KiB, descriptors {} -> {}, maps {} -> {}",
        busy.len(),
        capacity / 2.0,
        p99(&busy),
        p99(&quiet),
        before.0,
        after.0,
        before.1,
        after.1,
        before.2,
        after.2
    );
    assert!(after.1 <= before.1 + 2 && after.2 <= before.2 + 4, "{before:?} {after:?}");
    assert!(after.0 as f64 <= before.0 as f64 * 1.2 + 8192.0, "{before:?} {after:?}");
    assert!(!busy.is_empty() && !quiet.is_empty());
}
