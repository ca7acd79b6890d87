//! `GET /v1/status`: what is served, how old it is, and what is wrong.

use crate::reply::round4;
use crate::service::{Service, age};
use crate::snapshot::RepoState;
use runbook_shared::embed::EmbedderId;
use runbook_shared::generation::manifest::ExpectedRates;
use runbook_shared::last_run::Outcome;
use runbook_shared::retrieval::model;
use runbook_shared::score::ScoreFloor;
use serde_json::{Value, json};

/// The status as JSON.
#[must_use]
pub fn status(service: &Service) -> Value {
    let snapshot = service.snapshot();
    let embedder = service.embedder();
    let id = embedder.as_ref().map(|e| e.id());
    let repos: Vec<Value> =
        snapshot.repos.iter().map(|r| repo(r, id, service.policy().score_floor)).collect();
    let (reloads, uptime_s) = service.uptime();
    let sha = embedder.as_ref().map(|e| e.id().model_sha256.clone());
    let model = model::for_embedder(sha.as_deref());
    let mut status = repos.first().cloned().unwrap_or_else(|| json!({}));
    if let Some(map) = status.as_object_mut() {
        map.insert("ready".into(), json!(snapshot.is_ready()));
        map.insert("version".into(), json!(env!("CARGO_PKG_VERSION")));
        map.insert("uptime_s".into(), json!(uptime_s));
        map.insert("reloads".into(), json!(reloads));
        map.insert(
            "gate".into(),
            json!({
                "score_floor": round4(service.policy().score_floor.map_or(model.score_floor, ScoreFloor::get)),
                "closest_floor": round4(model.closest_floor),
                "fitted_on": model.fitted_on,
                "embedder_sha256": model.embedder_sha256,
            }),
        );
        if let Some(llm) = service.llm() {
            map.insert(
                "llm".into(),
                json!({
                    "mode": llm.settings.mode.name(),
                    "model": llm.settings.model,
                    "breaker": llm.client.state().name(),
                    "trust": llm.trust.explain(llm.settings.trust),
                }),
            );
        }
        map.insert("repos".into(), json!(repos));
    }
    status
}

fn repo(state: &RepoState, embedder: Option<&EmbedderId>, floor: Option<ScoreFloor>) -> Value {
    let calibration = state.corpus.as_ref().and_then(|c| {
        let manifest = &c.generation.manifest;
        let sha = manifest.embedder.as_ref().map(|e| e.model_sha256.as_str());
        let floor = floor.map_or(model::for_embedder(sha).score_floor, ScoreFloor::get);
        let calibration = manifest.calibration.as_ref()?;
        let ExpectedRates { score_floor, false_refusals, false_answers, foreign_answers, warning } =
            calibration.at(floor);
        Some(json!({
            "score_floor": round4(score_floor), "false_refusals": round4(false_refusals),
            "false_answers": round4(false_answers), "foreign_answers": round4(foreign_answers),
            "probes": {"own": calibration.own.len(), "foreign": calibration.foreign.len(), "own_found": calibration.own_found},
            "warning": warning,
        }))
    });
    let manifest = state.corpus.as_ref().map(|c| &c.generation.manifest);
    let last = state.last_run.as_ref();
    let failed = last.filter(|l| l.outcome == Outcome::Failed);
    json!({
        "repo": state.repo.name,
        "generation": state.corpus.as_ref().map(|c| &c.generation.id),
        "commit": manifest.and_then(|m| m.commit.as_ref()),
        "branch": manifest.and_then(|m| m.branch.as_ref()),
        "source": manifest.map(|m| &m.source),
        "indexed_at": manifest.map(|m| &m.indexed_at),
        "source_checked_at": last.and_then(|l| l.source_checked_at.as_ref()).or_else(|| manifest.map(|m| &m.indexed_at)),
        "age_s": manifest.and_then(age),
        "degraded": manifest.is_none_or(|m| m.embedder.is_none() || m.embedder.as_ref() != embedder),
        "stale": failed.is_some(),
        "source_error": failed.and_then(|l| l.error.as_ref()),
        "problem": state.problem,
        "last_run": last.map(|l| json!({"outcome": l.outcome, "finished_at": l.finished_at, "error": l.error})),
        "embedder": manifest.and_then(|m| m.embedder.as_ref()),
        "counts": manifest.map(|m| &m.counts),
        "graph": manifest.and_then(|m| m.graph.as_ref()),
        "calibration": calibration,
    })
}
