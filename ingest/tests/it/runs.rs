//! Runs of the program: one at a time, configured in three places, state by state, with and without
//! the embedder, on a disk that is full.

mod commands;
mod disk;
mod doctor;
mod embedder;
mod lint;
mod overlap;
mod pinned;
mod secrets;
mod settings;
mod states;

use crate::support::{LONG_AGO, Running, Server, World, git_daemon, is_root, names, serve, skip};
use runbook_shared::generation::manifest;
use runbook_shared::locate::{DEFAULT_MODEL, Places};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};

const SOURCE: &str = "source";

fn write(world: &World, path: &str, text: &str) {
    let path = world.path(SOURCE).join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// A world with a directory of two documents that was ingested once.
fn ingested() -> World {
    let world = World::new();
    write(&world, "guide.md", "# Guide\n\nRestart it with `systemctl`.\n");
    write(&world, "disk.md", "# Disk\n\n## Full\n\nRun `df -h`.\n");
    world.ingest(SOURCE, &[]).expect(0, "published");
    world
}

/// The directory of the current generation.
fn current(world: &World) -> PathBuf {
    fs::canonicalize(world.data().join("current")).unwrap()
}

/// Turns one bit of the byte in a file's middle.
fn flip(path: &Path) {
    let mut bytes = fs::read(path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(path, bytes).unwrap();
}
