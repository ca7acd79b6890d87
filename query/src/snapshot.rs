//! The live state: what is served now, swapped as a whole.

use runbook_shared::generation::pin::Pin;
use runbook_shared::generation::{self, Generation, OpenError};
use runbook_shared::last_run::LastRun;
use runbook_shared::retrieval::corpus::Corpus;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A repository that is served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repo {
    /// Its name; empty when there is only one.
    pub name: String,
    /// Its data directory.
    pub data: PathBuf,
}

/// One repository as it is now.
#[derive(Clone)]
pub struct RepoState {
    /// Which repository.
    pub repo: Repo,
    /// The open generation, once there is one.
    pub corpus: Option<Arc<Corpus>>,
    /// Why the newest generation is not the open one, or why there is none.
    pub problem: Option<String>,
    /// The id that `problem` is about, so that it is tried and reported once.
    pub refused_id: Option<String>,
    /// What the last ingest found.
    pub last_run: Option<LastRun>,
    /// What keeps newer generations from being published.
    pub pin: Option<Pin>,
}

/// All repositories as they are now.
#[derive(Clone, Default)]
pub struct Snapshot {
    /// In the order of the configuration.
    pub repos: Vec<RepoState>,
}

impl Snapshot {
    /// The open corpora.
    #[must_use]
    pub fn corpora(&self) -> Vec<Arc<Corpus>> {
        self.repos.iter().filter_map(|r| r.corpus.clone()).collect()
    }

    /// True when every repository has a generation.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        !self.repos.is_empty() && self.repos.iter().all(|r| r.corpus.is_some())
    }

    /// Why it is not ready.
    #[must_use]
    pub fn problem(&self) -> String {
        let problems: Vec<String> = self.repos.iter().filter_map(|r| r.problem.clone()).collect();
        if problems.is_empty() { "no repository is configured".into() } else { problems.join("; ") }
    }
}

/// Looks for a newer generation, last-run.json and pin. Nothing is returned when all are as they were; a generation that cannot be trusted leaves the open one in place.
#[must_use]
pub fn refresh(state: &RepoState) -> Option<RepoState> {
    let mut next = state.clone();
    next.last_run = LastRun::read(&state.repo.data).unwrap_or_else(|e| {
        tracing::warn!("{e}");
        state.last_run.clone()
    });
    next.pin = Pin::read(&state.repo.data).unwrap_or_else(|e| {
        tracing::warn!("{e}");
        state.pin.clone()
    });
    let open_id = state.corpus.as_ref().map(|c| c.generation.id.as_str());
    match generation::current_id(&state.repo.data) {
        Ok(id) if Some(id.as_str()) == open_id => {
            next.problem = None;
            next.refused_id = None;
        }
        Ok(id) if state.refused_id.as_ref() == Some(&id) => {}
        Ok(id) => open(&state.repo, &id, &mut next),
        Err(e) => next.problem = Some(e.to_string()),
    }
    let changed = next.last_run != state.last_run
        || next.pin != state.pin
        || next.problem != state.problem
        || next.corpus.as_ref().map(|c| &c.generation.id)
            != state.corpus.as_ref().map(|c| &c.generation.id);
    changed.then_some(next)
}

fn open(repo: &Repo, id: &str, next: &mut RepoState) {
    match open_corpus(&repo.data, repo.name.clone(), id) {
        Ok(corpus) => {
            tracing::info!("serving generation {id} of `{}`", repo.data.display());
            next.corpus = Some(Arc::new(corpus));
            next.problem = None;
            next.refused_id = None;
        }
        // `current` moved on and the old one was pruned while it was opened: the next look sees it.
        Err(_) if generation::current_id(&repo.data).is_ok_and(|now| now != id) => {}
        Err(e) => {
            let then = match next.corpus {
                Some(_) => "the generation before it serves on",
                None => "nothing serves until an ingest publishes another",
            };
            // What a file operation failed on (descriptors, permission, a disk that went away) may be
            // well again at the next look; what is damaged stays so.
            let is_damaged = !matches!(e, OpenError::File(_));
            let message = e.to_string();
            if is_damaged || next.problem.as_ref() != Some(&message) {
                tracing::error!("{message}; {then}");
            }
            next.problem = Some(message);
            next.refused_id = is_damaged.then(|| id.to_owned());
        }
    }
}

/// Opens and verifies a generation and reads its vocabulary.
///
/// # Errors
/// When it cannot be trusted.
pub fn open_corpus(data: &Path, name: String, id: &str) -> Result<Corpus, OpenError> {
    let generation = Generation::open(data, id)?;
    Corpus::new(name, generation).map_err(|e| OpenError::Corrupt {
        id: id.to_owned(),
        message: format!("lexical index: {e}"),
    })
}
