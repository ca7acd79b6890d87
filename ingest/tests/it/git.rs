//! Git sources: real remotes over file, git and ssh, hostile trees and hostile servers.

mod bounds;
mod daemon;
mod directory;
mod file;
mod http;
mod owner;
mod ssh;
mod tree;

use crate::support::{
    Entry, Remote, Run, Running, Server, World, advertise, git_daemon, is_root, names, noise,
    serve, serve_part, skip,
};
use git2::Oid;
use std::fs;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex, mpsc};

const GUIDE: &[(&str, &str)] = &[("guide.md", "# Guide\n\nRestart it with `systemctl`.\n")];

/// A world with a remote that was ingested once.
fn ingested(branch: &str) -> (World, Remote) {
    let world = World::new();
    let remote = world.remote("remote.git", branch);
    remote.commit(branch, GUIDE);
    world.ingest(&remote.url(), &[]).expect(0, "published");
    (world, remote)
}

/// Asserts that a run failed and left all as it was: the generation, and when the source was seen.
#[track_caller]
fn keeps_all(world: &World, source: &str, args: &[&str], says: &[&str]) {
    world.age_last_run();
    let run = keeps_generation(world, source, args, says);
    assert_eq!(run.checked_at(), Some(crate::support::LONG_AGO), "{run}");
}

/// Asserts that a run failed after it had seen the source, and left the generation.
#[track_caller]
fn keeps_generation(world: &World, source: &str, args: &[&str], says: &[&str]) -> Run {
    let before = world.last_run();
    let run = world.ingest(source, args).expect(1, "failed").says(says);
    assert_eq!(run.last["generation"], before["generation"], "{run}");
    assert_eq!(run.last["commit"], before["commit"], "{run}");
    assert_eq!(world.documents(), ["guide.md"]);
    run
}
