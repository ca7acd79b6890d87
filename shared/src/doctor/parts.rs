//! Checks of what both programs use: library, model, generation, pin, last run.

use super::{Finding, span};
use crate::embed::{EmbedderId, ModelFiles, NO_EMBEDDER};
use crate::error::Hint;
use crate::generation::manifest::Manifest;
use crate::generation::pin::Pin;
use crate::generation::{self, Generation, OpenError};
use crate::last_run::{LastRun, Outcome};
use crate::locate::{DEFAULT_MODEL, Places};
use crate::onnx;
use crate::retrieval::model;
use std::path::Path;

/// A source that was last reached this many seconds ago (an hour) is told: a timer runs more often.
const CHECKED_WITHIN_S: u64 = 3600;

/// The ONNX Runtime library: whether it is found, loads, and is new enough.
#[must_use]
pub fn library(places: &Places, embedder: Option<&str>) -> Finding {
    const CHECK: &str = "onnx library";
    if embedder == Some(NO_EMBEDDER) {
        return Finding::ok(CHECK, "not used: the embedder is `none`");
    }
    let found = places.onnxruntime().and_then(|path| Ok((onnx::preflight(&path)?, path)));
    match found {
        Ok((version, path)) => {
            Finding::ok(CHECK, format!("ONNX Runtime {version}, `{}`", path.display()))
        }
        Err(e) => Finding::fail(CHECK, e.to_string(), e.hint().unwrap_or_default()),
    }
}

/// The embedding model: whether its files are there, are those that belong to this program, fit the
/// generation, and give a vector.
#[must_use]
pub fn embedder(places: &Places, name: Option<&str>, made_with: Option<&EmbedderId>) -> Finding {
    const CHECK: &str = "model";
    if name == Some(NO_EMBEDDER) {
        return Finding::ok(CHECK, "not used: the embedder is `none`, only words are searched");
    }
    let name = name.unwrap_or(DEFAULT_MODEL);
    let files = match ModelFiles::read(places, name) {
        Ok(files) => files,
        Err(e) => return Finding::fail(CHECK, e.to_string(), e.hint().unwrap_or_default()),
    };
    let id = files.id().clone();
    let sha = &id.model_sha256;
    let is_known = model::for_embedder(Some(sha)).embedder_sha256.as_ref() == Some(sha);
    if id.id == DEFAULT_MODEL && !is_known {
        return Finding::fail(
            CHECK,
            format!(
                "`{}` is not the one that belongs to this program: its model.onnx has sha256 {sha}",
                id.id
            ),
            "install it again: `deploy/setup`, or the package",
        );
    }
    if let Err(e) = files.load(places, 1) {
        return Finding::fail(CHECK, e.to_string(), e.hint().unwrap_or_default());
    }
    let says =
        format!("`{}`, {} numbers a vector, sha256 {}", id.id, id.dim, &sha[..sha.len().min(16)]);
    if made_with.is_some_and(|made| *made != id) {
        return Finding::warn(
            CHECK,
            format!(
                "{says}; the generation was made with another one, so only its words are searched"
            ),
            "run `runbook-ingest`: it embeds everything anew",
        );
    }
    if is_known {
        Finding::ok(CHECK, says)
    } else {
        Finding::warn(
            CHECK,
            format!(
                "{says}; no confidence model is fitted for it, so the one for words alone decides"
            ),
            "fit one (evals/fit), or use the model that belongs to this program",
        )
    }
}

/// The current generation, every byte of it.
#[must_use]
pub fn generation(data: &Path) -> (Finding, Option<Manifest>) {
    const CHECK: &str = "generation";
    let opened = generation::current_id(data).and_then(|id| {
        let manifest = Generation::open(data, &id)?.manifest;
        generation::check_strangers(data, &id, &manifest)?;
        Ok((id, manifest))
    });
    let error = match opened {
        Ok((id, manifest)) => {
            let says = format!(
                "{id} is whole: {} documents, indexed {}",
                manifest.counts.indexed, manifest.indexed_at
            );
            return (Finding::ok(CHECK, says), Some(manifest));
        }
        Err(error) => error,
    };
    let hint = error.hint().unwrap_or_default();
    let finding = match &error {
        OpenError::Missing(_) => Finding::warn(CHECK, error.to_string(), hint),
        _ => Finding::fail(
            CHECK,
            error.to_string(),
            format!("{hint}, or go back: `runbook-ingest rollback`"),
        ),
    };
    (finding, None)
}

/// The pin, if there is one.
#[must_use]
pub fn pin(data: &Path) -> Finding {
    const CHECK: &str = "pin";
    match Pin::read(data) {
        Ok(None) => Finding::ok(CHECK, "nothing is pinned"),
        Ok(Some(pin)) => Finding::warn(
            CHECK,
            format!("generation {} is pinned {}", pin.generation, pin.story()),
            "`runbook-ingest unpin` once the source is right again",
        ),
        Err(e) => Finding::fail(CHECK, e.to_string(), e.hint().unwrap_or_default()),
    }
}

/// What the last run found, and how long ago it reached the source.
#[must_use]
pub fn last_run(data: &Path, now: jiff::Timestamp) -> Finding {
    const CHECK: &str = "last run";
    let last = match LastRun::read(data) {
        Ok(Some(last)) => last,
        Ok(None) => {
            return Finding::warn(
                CHECK,
                "no run of ingest has ended yet",
                "start one: `runbook-ingest`, or its timer",
            );
        }
        Err(e) => {
            return Finding::fail(CHECK, e.to_string(), "make it readable for this user");
        }
    };
    if last.outcome == Outcome::Failed {
        let error = last.error.unwrap_or_default();
        return Finding::warn(
            CHECK,
            format!("it failed at {}: {error}", last.finished_at),
            "see what `runbook-ingest doctor` says of the source, then run `runbook-ingest`",
        );
    }
    let checked = last.source_checked_at.as_deref().unwrap_or("never");
    let at: Option<jiff::Timestamp> = checked.parse().ok();
    let ago = at.and_then(|at| u64::try_from(now.as_second() - at.as_second()).ok());
    match ago {
        Some(ago) if ago > CHECKED_WITHIN_S => Finding::warn(
            CHECK,
            format!("the source was last reached {} ago", span(ago)),
            "see whether the timer runs: `systemctl list-timers runbook-ingest.timer`",
        ),
        _ => Finding::ok(
            CHECK,
            format!("it ended at {}, the source was reached at {checked}", last.finished_at),
        ),
    }
}
