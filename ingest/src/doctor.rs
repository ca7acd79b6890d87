//! `runbook-ingest doctor`: everything that a run needs, looked at one by one, with what to do.
//!
//! Nothing of the data directory is changed, and a check that cannot be made says why. A further check
//! is a function of [`Subject`] in [`CHECKS`].

mod source;

use crate::config::{Config, Settings};
use crate::error::IngestError;
use crate::scratch::Scratch;
use runbook_shared::doctor::{Finding, directory, machine, parts};
use runbook_shared::error::Hint;
use runbook_shared::generation::manifest::Manifest;
use runbook_shared::last_run::LastRun;
use std::path::{Path, PathBuf};

/// What is looked at.
pub(crate) struct Subject {
    /// The configuration, where it is usable.
    config: Option<Config>,
    /// The data directory, where one is named.
    data: Option<PathBuf>,
    /// The manifest of the current generation, where that is whole.
    manifest: Option<Manifest>,
    /// What was found of that generation, and of the pin.
    generation: Vec<Finding>,
    now: jiff::Timestamp,
}

/// The checks behind that of the configuration, in the order in which they are told.
const CHECKS: [fn(&Subject) -> Vec<Finding>; 10] = [
    library,
    model,
    data_directory,
    |subject| subject.generation.clone(),
    last_run,
    source::credentials,
    source::host_key,
    source::reached,
    room,
    clock,
];

/// All findings, in order. `file` is the configuration file, where one was named.
#[must_use]
pub fn findings(settings: &Settings, file: Option<&PathBuf>) -> Vec<Finding> {
    let (config, data, configured) = configuration(settings, file);
    let mut found = vec![configured];
    let (generation, manifest) = match &data {
        Some(data) => {
            let (finding, manifest) = parts::generation(data);
            (vec![finding, parts::pin(data)], manifest)
        }
        None => (Vec::new(), None),
    };
    let subject = Subject { config, data, manifest, generation, now: jiff::Timestamp::now() };
    for check in CHECKS {
        found.extend(check(&subject));
    }
    found
}

/// The configuration as far as it can be used, with the data directory even where the rest cannot.
fn configuration(
    settings: &Settings,
    file: Option<&PathBuf>,
) -> (Option<Config>, Option<PathBuf>, Finding) {
    const CHECK: &str = "configuration";
    let failed = |e: &dyn std::fmt::Display, hint: Option<String>| {
        let fix = hint.unwrap_or_else(|| "docs/configuration.md has every key".into());
        Finding::fail(CHECK, e.to_string(), fix)
    };
    let settings_of_file = match settings.clone().with_file(file) {
        Ok(settings) => settings,
        // What flags and variables name can still be looked at.
        Err(e) => {
            let finding = failed(&e, None);
            return (settings.clone().resolve().ok(), settings.data.clone(), finding);
        }
    };
    let data = settings_of_file.data.clone();
    let from = file
        .map_or_else(|| "flags and environment".to_owned(), |file| format!("`{}`", file.display()));
    match settings_of_file.resolve() {
        Ok(config) => {
            let says = format!(
                "{from}: source {}, data `{}`",
                config.source.display(),
                config.data.display()
            );
            (Some(config), data, Finding::ok(CHECK, says))
        }
        Err(e) => {
            let finding = failed(&e, e.hint());
            (None, data, finding)
        }
    }
}

fn library(subject: &Subject) -> Vec<Finding> {
    let of = |c: &Config| parts::library(&c.places, c.embedder.as_deref());
    subject.config.iter().map(of).collect()
}

fn model(subject: &Subject) -> Vec<Finding> {
    let made_with = subject.manifest.as_ref().and_then(|m| m.embedder.as_ref());
    let of = |c: &Config| parts::embedder(&c.places, c.embedder.as_deref(), made_with);
    subject.config.iter().map(of).collect()
}

fn data_directory(subject: &Subject) -> Vec<Finding> {
    subject.data.iter().map(|data| directory::writable("data directory", data)).collect()
}

fn last_run(subject: &Subject) -> Vec<Finding> {
    subject.data.iter().map(|data| parts::last_run(data, subject.now)).collect()
}

fn room(subject: &Subject) -> Vec<Finding> {
    let manifest = subject.manifest.as_ref();
    let disk = |data: &PathBuf| machine::disk(data, directory::free(data), manifest);
    let mut found: Vec<Finding> = subject.data.iter().map(disk).collect();
    found.push(machine::memory(Path::new("/proc"), Path::new("/sys/fs/cgroup"), manifest));
    found
}

fn clock(subject: &Subject) -> Vec<Finding> {
    let last = subject.data.as_ref().and_then(|data| LastRun::read(data).ok().flatten());
    let commit = source::newest_commit_time(subject);
    vec![machine::clock(subject.now, subject.manifest.as_ref(), last.as_ref(), commit)]
}

/// A place for what reaching a remote writes, so that the data directory stays as it is.
fn scratch() -> Result<Scratch, IngestError> {
    Ok(Scratch::new("doctor")?)
}
