//! A kept generation of each format version: what this program reads is opened and answers, what it does
//! not is refused by its number and rebuilt.
//!
//! `tests/data/format-N` is a data directory as it was written when N was the format. A new format adds
//! one: `RUNBOOK_TEST_WRITE_FORMAT=1 cargo nextest run --release --workspace -E 'test(format::)'`.

use crate::support::{Fixture, request};
use runbook_query::engine::Policy;
use runbook_query::service::{Options, Service};
use runbook_query::snapshot::Repo;
use runbook_shared::generation::manifest::{FORMAT_VERSION, FORMAT_VERSION_MIN};
use runbook_shared::generation::{Generation, OpenError, current_id};
use runbook_shared::locate::Places;
use std::path::{Path, PathBuf};
use std::process::Command;

const TREE: &str = "//- ports.md\n# Ports\n\n## Ports on app1\n\nThe unit harbor-web.service opens port 8080.\n//- disk.md\n# Disk\n\n## Disk is full\n\nRun `df -h`.\n";

fn kept(version: u32) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/data/format-{version}"))
}

fn copied(from: &Path, to: &Path) {
    let done =
        Command::new("cp").arg("-r").arg("--no-dereference").arg(from).arg(to).status().unwrap();
    assert!(done.success());
}

/// Only what belongs to the generation: no locks, no notes of a run, no cache.
fn write() {
    let fixture = Fixture::hybrid(TREE);
    let to = kept(FORMAT_VERSION);
    let _ = std::fs::remove_dir_all(&to);
    std::fs::create_dir_all(&to).unwrap();
    for name in ["generations", "current"] {
        copied(&fixture.data().join(name), &to.join(name));
    }
}

#[test]
fn a_kept_generation_of_each_format_opens_or_is_refused_by_its_number() {
    if std::env::var_os("RUNBOOK_TEST_WRITE_FORMAT").is_some() {
        write();
    }
    let has_present = kept(FORMAT_VERSION).join("current").exists();
    assert!(
        has_present,
        "there is no generation of format {FORMAT_VERSION}: see this file's first lines"
    );
    for version in 1..=FORMAT_VERSION {
        let from = kept(version);
        if !from.exists() {
            assert!(version < FORMAT_VERSION_MIN, "a format that is read has a kept generation");
            continue;
        }
        let dir = tempfile::tempdir().unwrap();
        let data = dir.path().join("data");
        copied(&from, &data);
        let id = current_id(&data).unwrap();
        match Generation::open(&data, &id) {
            Ok(open) => {
                assert!(version >= FORMAT_VERSION_MIN);
                assert_eq!(open.manifest.format_version, version);
                answers(&data);
            }
            Err(OpenError::FormatMismatch { found, .. }) => {
                assert!(version < FORMAT_VERSION_MIN && found == version);
            }
            Err(e) => panic!("format {version}: {e}"),
        }
    }
}

/// Both arms answer from it.
fn answers(data: &Path) {
    let service = Service::new(Options {
        repos: vec![Repo { name: String::new(), data: data.to_owned() }],
        policy: Policy::default(),
        embedder: None,
        places: Places::from_env(None, None),
    });
    service.open().unwrap();
    let reply = service.ask(&request("which unit opens 8080")).unwrap();
    assert!(reply.answer.contains("harbor-web.service"), "{reply:?}");
    assert_eq!(reply.citations[0].path, "ports.md");
}
