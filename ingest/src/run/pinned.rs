//! A run while a generation is pinned: the source is checked, so that everybody knows how far it is
//! ahead, and nothing is built. What was built now could not be served, would cost a run of the model
//! every time, and would be stale at the moment of `unpin`; the run after that finds all vectors that it
//! needs in the cache.

use super::{Clock, check_source, kept_report, now, probe, tree_hash, up_to_date};
use crate::config::Config;
use crate::error::IngestError;
use crate::plan::{self, IndexState};
use crate::report::Report;
use runbook_shared::generation::manifest::Manifest;
use runbook_shared::generation::pin::Pin;
use runbook_shared::generation::{self, Generation, OpenError, publish};
use std::path::Path;

/// Checks the source, and says that the pin keeps it from being published.
pub(super) fn run(
    config: &Config,
    pin: &Pin,
    report: &mut Report,
    checked_at: &mut Option<String>,
) -> Result<(), IngestError> {
    let mut clock = Clock::start(report);
    let held = hold(&config.data, pin);
    check_source(config, held.as_ref().ok())?;
    let probed = probe(config)?;
    let tree_hash = tree_hash(config)?;
    *checked_at = Some(now());
    clock.stage("probe");
    let manifest = held?;
    up_to_date(clock.report, &manifest);
    let kept = kept_report(&config.data);
    (clock.report.problems, clock.report.secrets) = (kept.problems, kept.secrets);
    clock.report.outcome = "pinned".into();
    let same = manifest.commit == probed.commit
        && tree_hash.is_none_or(|hash| manifest.tree_hash == Some(hash));
    let state = if same { IndexState::UpToDate } else { IndexState::ContentMismatch };
    clock.report.state = format!("{state:?}");
    let ahead = match (same, probed.commit) {
        (true, _) => "the source has nothing newer".to_owned(),
        (false, Some(commit)) => {
            format!("the source is at {}, which is not built", &commit[..commit.len().min(12)])
        }
        (false, None) => "the source has changed, which is not built".to_owned(),
    };
    let note = format!(
        "generation {} is pinned {}; {ahead}; `runbook-ingest unpin` lets the next run publish again",
        pin.generation,
        pin.story()
    );
    clock.report.notes.push(note);
    Ok(())
}

/// The manifest of the pinned generation, once it is current: a rollback that was killed between its
/// two steps is ended here.
fn hold(data: &Path, pin: &Pin) -> Result<Manifest, IngestError> {
    let id = pin.generation.as_str();
    if generation::current_id(data).is_ok_and(|current| current == id) {
        return plan::examine(data).map(|found| found.1).map_err(IngestError::Pinned);
    }
    if !publish::kept(data)?.iter().any(|kept| kept == id) {
        let message = "it is not kept any more".to_owned();
        return Err(IngestError::Pinned(OpenError::Corrupt { id: id.to_owned(), message }));
    }
    let opened = Generation::open(data, id).map_err(IngestError::Pinned)?;
    publish::point_to(data, id)?;
    tracing::warn!("`current` points to the pinned generation {id} again");
    Ok(opened.manifest)
}
