//! `runbook-query doctor`: everything that the daemon needs, looked at one by one, with what to do.
//!
//! Nothing is changed, and no question is asked but one to a language model that is configured. A further check
//! is a function of [`Subject`] in [`CHECKS`].

mod daemon;

use crate::config::{self, Common, Config, ServeArgs};
use crate::llm;
use crate::llm::settings::Mode;
use crate::snapshot::Repo;
use runbook_shared::doctor::{Finding, directory, machine, parts};
use runbook_shared::embed::NO_EMBEDDER;
use runbook_shared::error::Hint;
use runbook_shared::generation::manifest::Manifest;
use runbook_shared::last_run::LastRun;
use std::path::Path;

/// What is looked at.
pub(crate) struct Subject {
    config: Config,
    /// Each repository with the manifest of its generation, where that is whole.
    repos: Vec<(Repo, Option<Manifest>)>,
    now: jiff::Timestamp,
}

/// The checks behind those of configuration and generations, in the order in which they are told.
const CHECKS: [fn(&Subject) -> Vec<Finding>; 8] =
    [library, model, daemon::state, daemon::address, daemon::events, language_model, room, clock];

/// All findings, in order.
#[must_use]
pub fn findings(common: &Common, serve: &ServeArgs) -> Vec<Finding> {
    const CHECK: &str = "configuration";
    let (config, configured) = match config::resolve(common.clone(), Some(serve.clone())) {
        Ok(config) => {
            let from = common.config.as_ref().map_or_else(
                || "flags and environment".to_owned(),
                |file| format!("`{}`", file.display()),
            );
            let data: Vec<_> =
                config.repos.iter().map(|r| format!("`{}`", r.data.display())).collect();
            (Some(config), Finding::ok(CHECK, format!("{from}: data {}", data.join(", "))))
        }
        Err(e) => {
            let fix = e.hint().unwrap_or_else(|| "docs/configuration.md has every key".into());
            // What flags and variables name can still be looked at.
            let without_file = Common { config: None, ..common.clone() };
            let serve = ServeArgs { allow_remote: true, ..serve.clone() };
            let config = config::resolve(without_file, Some(serve)).ok();
            (config, Finding::fail(CHECK, e.to_string(), fix))
        }
    };
    let mut found = vec![configured];
    let Some(config) = config else { return found };
    let mut repos = Vec::new();
    for repo in config.repos.clone() {
        let (generation, manifest) = parts::generation(&repo.data);
        let now = jiff::Timestamp::now();
        let of_repo = [
            directory::readable("data directory", &repo.data),
            generation,
            parts::pin(&repo.data),
            parts::last_run(&repo.data, now),
        ];
        found.extend(of_repo.map(|finding| finding.of(&repo.name)));
        repos.push((repo, manifest));
    }
    let subject = Subject { config, repos, now: jiff::Timestamp::now() };
    for check in CHECKS {
        found.extend(check(&subject));
    }
    found
}

impl Subject {
    fn manifests(&self) -> impl Iterator<Item = &Manifest> {
        self.repos.iter().filter_map(|(_, manifest)| manifest.as_ref())
    }

    /// The embedder that is named, else the one that the generations were made with.
    fn embedder(&self) -> Option<&str> {
        let named = self.config.embedder.as_deref();
        let made_with = self.manifests().find_map(|m| m.embedder.as_ref());
        let without = self.manifests().next().is_some() && made_with.is_none();
        named
            .or_else(|| made_with.map(|id| id.id.as_str()).filter(|id| !id.is_empty()))
            .or_else(|| without.then_some(NO_EMBEDDER))
    }
}

fn library(subject: &Subject) -> Vec<Finding> {
    vec![parts::library(&subject.config.places, subject.embedder())]
}

fn model(subject: &Subject) -> Vec<Finding> {
    let made_with = subject.manifests().find_map(|m| m.embedder.as_ref());
    vec![parts::embedder(&subject.config.places, subject.embedder(), made_with)]
}

/// A failure is only to be looked at: the extractive reply is given without one.
fn language_model(subject: &Subject) -> Vec<Finding> {
    const CHECK: &str = "language model";
    if subject.config.llm.mode == Mode::Off {
        return Vec::new();
    }
    vec![match llm::check(&subject.config) {
        Ok(found) => Finding::ok(CHECK, found),
        Err(why) => {
            let (message, fix) = why.split_once("; hint: ").unwrap_or((
                &why,
                "start the endpoint, or set `[llm] mode` to \"off\" (docs/llm.md)",
            ));
            Finding::warn(CHECK, message, fix)
        }
    }]
}

fn room(subject: &Subject) -> Vec<Finding> {
    let largest = subject.manifests().max_by_key(|m| machine::bytes_of(m));
    let mut found = Vec::new();
    // The daemon writes nothing but its state; what it keeps there is bounded.
    if let Some(state) = &subject.config.state {
        found.push(machine::disk(state, directory::free(state), None));
    }
    found.push(machine::memory(Path::new("/proc"), Path::new("/sys/fs/cgroup"), largest));
    found
}

fn clock(subject: &Subject) -> Vec<Finding> {
    let of = |(repo, manifest): &(Repo, Option<Manifest>)| {
        let last = LastRun::read(&repo.data).ok().flatten();
        machine::clock(subject.now, manifest.as_ref(), last.as_ref(), None).of(&repo.name)
    };
    subject.repos.iter().map(of).collect()
}
