//! A generation in which bytes were changed, cut off or lost: it is refused with the file's name, the
//! one before serves on, and nothing panics. Then failures of files that pass: the generation is opened
//! once they are over.

use crate::support::{Daemon, Fixture, how_many, random};
use runbook_query::snapshot::{self, Repo, RepoState};
use runbook_shared::generation::{current_id, manifest};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

const TREE: &str = "//- ports.md\n# Ports\n\n## Ports on app1\n\nThe unit harbor-web.service opens port 8080.\n//- disk.md\n# Disk\n\n## Disk is full\n\n1. Run `df -h`.\n2. Run `journalctl --vacuum-size=1G`.\n";
const MORE: &str =
    "//- net/dns.md\n# DNS\n\n## Flush the cache\n\nRun `resolvectl flush-caches`.\n";

/// An open generation, and a newer one that `current` points to.
struct Two {
    fixture: Fixture,
    /// What serves: the older one is open.
    state: RepoState,
    newer: String,
    files: Vec<PathBuf>,
}

impl Two {
    fn new(fixture: Fixture) -> Self {
        let state = RepoState {
            repo: Repo { name: String::new(), data: fixture.data() },
            corpus: None,
            problem: None,
            refused_id: None,
            last_run: None,
            pin: None,
        };
        let state = snapshot::refresh(&state).unwrap();
        assert!(state.corpus.is_some() && state.problem.is_none());
        fixture.write(MORE);
        fixture.ingest();
        let newer = current_id(&fixture.data()).unwrap();
        let dir = fixture.data().join("generations").join(&newer);
        let files = files(&dir);
        assert!(files.len() > 8, "{files:?}");
        Self { fixture, state, newer, files }
    }

    fn dir(&self) -> PathBuf {
        self.fixture.data().join("generations").join(&self.newer)
    }

    /// The damaged generation is refused by name, and the one before is still the open one.
    #[track_caller]
    fn refused(&self, path: &Path, what: &str) {
        let next = snapshot::refresh(&self.state).unwrap_or_else(|| panic!("{what}: nothing seen"));
        let name = path.strip_prefix(self.dir()).unwrap().display().to_string();
        let problem = next.problem.unwrap_or_else(|| panic!("{what}: it was opened"));
        assert!(problem.contains(&name), "{what}: {problem}");
        let (before, now) = (self.state.corpus.as_ref().unwrap(), next.corpus.unwrap());
        assert!(Arc::ptr_eq(before, &now), "{what}");
    }
}

fn files(dir: &Path) -> Vec<PathBuf> {
    let (mut files, mut open) = (Vec::new(), vec![dir.to_owned()]);
    while let Some(dir) = open.pop() {
        for entry in fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() { &mut open } else { &mut files }.push(path);
        }
    }
    files.sort();
    files
}

/// What is done to a file: a name, and the new bytes; none to remove it.
fn damage(bytes: &[u8], random: &mut impl FnMut(usize) -> usize) -> (String, Option<Vec<u8>>) {
    let mut bytes = bytes.to_vec();
    let at = random(bytes.len().max(1));
    if bytes.is_empty() {
        return ("a byte added".into(), Some(vec![0]));
    }
    match random(10) {
        0..=5 => {
            let bit = random(8);
            bytes[at] ^= 1 << bit;
            (format!("bit {bit} of byte {at} turned"), Some(bytes))
        }
        6 | 7 => {
            bytes.truncate(at);
            (format!("cut to {at} bytes"), Some(bytes))
        }
        8 => {
            let end = (at + 1 + random(4096)).min(bytes.len());
            let is_zero = bytes[at..end].iter().all(|b| *b == 0);
            bytes[at..end].fill(if is_zero { 255 } else { 0 });
            (format!("bytes {at} to {end} lost"), Some(bytes))
        }
        _ if random(4) == 0 => ("removed".into(), None),
        _ => {
            bytes.push(bytes[at]);
            ("a byte added".into(), Some(bytes))
        }
    }
}

#[test]
#[expect(clippy::print_stderr, reason = "the figures of docs/measurements.md")]
fn every_damage_is_found_named_and_kept_away() {
    let two = Two::new(Fixture::hybrid(TREE));
    let tries = how_many("RUNBOOK_TEST_DAMAGES", 400);
    let mut next = random("damages");
    let mut below = |n: usize| (next() % n as u64) as usize;
    let started = Instant::now();
    for n in 0..tries {
        // Every file in turn, then any.
        let at = if n < two.files.len() { n } else { below(two.files.len()) };
        let path = &two.files[at];
        let whole = fs::read(path).unwrap();
        let (what, bytes) = damage(&whole, &mut below);
        let what = format!("try {n}: `{}`: {what}", path.display());
        match bytes {
            Some(bytes) => fs::write(path, bytes).unwrap(),
            None => fs::remove_file(path).unwrap(),
        }
        two.refused(path, &what);
        fs::write(path, &whole).unwrap();
    }
    let next = snapshot::refresh(&two.state).unwrap();
    assert_eq!(next.problem, None);
    assert_eq!(next.corpus.unwrap().generation.id, two.newer);
    eprintln!("{tries} damages of {} files in {:.1?}", two.files.len(), started.elapsed());
}

#[test]
fn a_pointer_that_leads_nowhere_is_named() {
    let two = Two::new(Fixture::lexical(TREE));
    let current = two.fixture.data().join("current");
    let link = |target: &str| {
        let _ = fs::remove_file(&current);
        let _ = fs::remove_dir_all(&current);
        std::os::unix::fs::symlink(target, &current).unwrap();
    };
    let problem = |what: &str| {
        let next = snapshot::refresh(&two.state).unwrap_or_else(|| panic!("{what}"));
        assert!(Arc::ptr_eq(two.state.corpus.as_ref().unwrap(), next.corpus.as_ref().unwrap()));
        next.problem.unwrap_or_else(|| panic!("{what}"))
    };
    for target in [
        "nowhere",
        "/etc",
        "../../etc",
        "generations/",
        "generations/..",
        "generations/.tmp-1",
        "generations/a/b",
        ".",
    ] {
        link(target);
        let problem = problem(target);
        assert!(problem.contains("current"), "{target}: {problem}");
    }
    link("generations/20200101T000000Z-0123456789abcdef");
    assert!(problem("gone").contains("manifest.json"));
    fs::remove_file(&current).unwrap();
    assert!(problem("no link").contains("no generation"));
    fs::write(&current, "generations/x").unwrap();
    assert!(problem("a file").contains("current"));
    fs::remove_file(&current).unwrap();
    fs::create_dir(&current).unwrap();
    assert!(problem("a directory").contains("current"));
}

#[test]
fn a_manifest_of_another_format_is_refused_by_its_number() {
    let two = Two::new(Fixture::lexical(TREE));
    let data = two.fixture.data();
    let text = fs::read_to_string(two.dir().join(manifest::FILE_NAME)).unwrap();
    for version in [0, 1, manifest::FORMAT_VERSION + 1, 1_000_000] {
        let present = format!("\"format_version\": {}", manifest::FORMAT_VERSION);
        let other = text.replace(&present, &format!("\"format_version\": {version}"));
        assert_ne!(other, text);
        let id = manifest::id_of(jiff::Timestamp::now(), other.as_bytes());
        let dir = data.join("generations").join(&id);
        fs::create_dir(&dir).unwrap();
        fs::write(dir.join(manifest::FILE_NAME), other).unwrap();
        fs::remove_file(data.join("current")).unwrap();
        std::os::unix::fs::symlink(Path::new("generations").join(&id), data.join("current"))
            .unwrap();
        let next = snapshot::refresh(&two.state).unwrap();
        assert!(Arc::ptr_eq(two.state.corpus.as_ref().unwrap(), next.corpus.as_ref().unwrap()));
        let problem = next.problem.unwrap();
        assert!(problem.contains(&format!("has format {version}")), "{problem}");
    }
    // An ingest puts things right.
    two.fixture.ingest();
    let next = snapshot::refresh(&two.state).unwrap();
    assert_eq!(next.problem, None);
}

/// A file that cannot be opened now may be opened later: the generation is not given up.
#[test]
fn a_failure_that_passes_costs_one_poll() {
    let fixture = Fixture::lexical(TREE);
    let daemon = Daemon::start(&fixture.data(), &["--embedder", "none"]);
    let good = daemon.json("/v1/status")["generation"].clone();
    // A directory where a file should be: reading it fails, whoever reads.
    let beside = fixture.dir.path().join("beside");
    fixture.write(MORE);
    crate::support::ingest(&fixture.source().display().to_string(), &beside, Some("none"));
    let id = current_id(&beside).unwrap();
    let from = beside.join("generations").join(&id);
    let (chunks, kept) = (from.join("chunks.jsonl"), from.join("kept"));
    fs::rename(&chunks, &kept).unwrap();
    fs::create_dir(&chunks).unwrap();
    let to = fixture.data().join("generations").join(&id);
    fs::rename(&from, &to).unwrap();
    let link = fixture.data().join("link");
    std::os::unix::fs::symlink(Path::new("generations").join(&id), &link).unwrap();
    fs::rename(&link, fixture.data().join("current")).unwrap();
    let state = daemon.wait("/v1/status", |s| s["problem"].is_string());
    assert_eq!(state["generation"], good);
    assert!(state["problem"].as_str().unwrap().contains("chunks.jsonl"), "{state}");
    fs::remove_dir(to.join("chunks.jsonl")).unwrap();
    fs::rename(to.join("kept"), to.join("chunks.jsonl")).unwrap();
    daemon.wait("/v1/status", |s| s["problem"].is_null() && s["generation"] == id.as_str());
}

#[test]
#[expect(clippy::print_stderr, reason = "a test that is skipped says so")]
fn descriptors_that_run_out_cost_one_poll() {
    let fixture = Fixture::lexical(TREE);
    let mut daemon = Daemon::start(&fixture.data(), &["--embedder", "none"]);
    let good = daemon.json("/v1/status")["generation"].clone();
    let pid = daemon.id();
    let allow = |number: usize| {
        let limit = format!("--nofile={number}:");
        let done = std::process::Command::new("prlimit")
            .args(["--pid", &pid.to_string(), &limit])
            .status();
        done.is_ok_and(|status| status.success())
    };
    let open = fs::read_dir(format!("/proc/{pid}/fd")).unwrap().count();
    if !allow(open - 1) {
        eprintln!("skipped: no prlimit");
        return;
    }
    fixture.write(MORE);
    fixture.ingest();
    let newer = current_id(&fixture.data()).unwrap();
    std::thread::sleep(std::time::Duration::from_millis(1500));
    assert!(allow(1024));
    daemon.wait("/v1/status", |s| s["problem"].is_null() && s["generation"] == newer.as_str());
    assert_ne!(good, newer.as_str());
    daemon.signal("-TERM");
    assert_eq!(daemon.exit_code(), Some(0));
    assert!(daemon.log().contains("Too many open files"));
}
