//! `GET /v1/status`: what is served, how old it is, and what is wrong.

use crate::reply::round4;
use crate::service::{Service, age};
use crate::snapshot::RepoState;
use runbook_shared::embed::EmbedderId;
use runbook_shared::generation::Generation;
use runbook_shared::generation::manifest::{Counts, ExpectedRates, GraphReport};
use runbook_shared::generation::pin::Pin;
use runbook_shared::last_run::Outcome;
use runbook_shared::retrieval::model;
use runbook_shared::score::ScoreFloor;
use schemars::JsonSchema;
use serde::Serialize;

/// The state of the daemon: the keys of the first repository, and those of all.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Status {
    /// The first repository.
    #[serde(flatten)]
    first: Option<RepoStatus>,
    /// Every repository has a generation.
    ready: bool,
    /// Of the program.
    version: &'static str,
    /// Seconds since the start.
    uptime_s: u64,
    /// How often a new state was swapped in.
    reloads: u64,
    /// The floors in force.
    gate: GateStatus,
    /// The language model, where one is configured.
    #[serde(skip_serializing_if = "Option::is_none")]
    llm: Option<LlmStatus>,
    /// Every repository.
    repos: Vec<RepoStatus>,
}

/// The language model.
#[derive(Clone, Debug, Serialize, JsonSchema)]
struct LlmStatus {
    /// What it is for: `judge`, `answer` or `agent`.
    mode: &'static str,
    /// Its name at its endpoint.
    model: String,
    /// Whether it is asked: `closed` yes, `open` not now, `half_open` once, to see.
    breaker: &'static str,
    /// How far its verdicts count, and what was measured of them.
    trust: serde_json::Value,
}

/// The floors of the evidence gate.
#[derive(Clone, Debug, Serialize, JsonSchema)]
struct GateStatus {
    /// Confidence from which a passage is an answer.
    score_floor: f64,
    /// Confidence from which a refusal is in the band `closest`.
    closest_floor: f64,
    /// What the confidence model was fitted on.
    fitted_on: String,
    /// The embedder that it was fitted with, by the hash of its model; null for words alone.
    embedder_sha256: Option<String>,
}

/// The state of one repository.
#[derive(Clone, Debug, Serialize, JsonSchema)]
struct RepoStatus {
    /// Its name; empty where there is only one.
    repo: String,
    /// The open generation; null without one, as all that is known from it.
    generation: Option<String>,
    /// Its commit.
    commit: Option<String>,
    /// Its branch.
    branch: Option<String>,
    /// The source, without credentials.
    source: Option<String>,
    /// When it was written.
    indexed_at: Option<String>,
    /// When ingest last reached the source.
    source_checked_at: Option<String>,
    /// Seconds since it was written.
    age_s: Option<u64>,
    /// No vectors, or no embedder.
    degraded: bool,
    /// The last ingest failed.
    stale: bool,
    /// With what.
    source_error: Option<String>,
    /// Why the newest generation is not the open one, or why there is none.
    problem: Option<String>,
    /// Which generation is kept from being replaced, by whom and why; null when none is.
    pinned: Option<Pin>,
    /// How the last ingest ended.
    last_run: Option<LastRunStatus>,
    /// The embedder of its vectors.
    embedder: Option<EmbedderId>,
    /// What it holds.
    counts: Option<Counts>,
    /// What the HNSW graph reaches.
    graph: Option<GraphReport>,
    /// What the floor in force does to the probes of the generation; null for an empty corpus.
    calibration: Option<CalibrationStatus>,
}

/// The last ingest.
#[derive(Clone, Debug, Serialize, JsonSchema)]
struct LastRunStatus {
    /// How it ended.
    outcome: Outcome,
    /// When, RFC 3339, UTC.
    finished_at: String,
    /// What failed, in one line.
    error: Option<String>,
}

/// What a floor does to probes.
#[derive(Clone, Debug, Serialize, JsonSchema)]
struct CalibrationStatus {
    /// The floor.
    score_floor: f64,
    /// Share of the questions made from the generation's own sections that it refuses.
    false_refusals: f64,
    /// Share of the same that it answers with their sections left out.
    false_answers: f64,
    /// Share of the questions about other things that it answers.
    foreign_answers: f64,
    /// How many there were.
    probes: Probes,
    /// Set where the floor lets all or none through.
    warning: Option<&'static str>,
}

/// Numbers of probes.
#[derive(Clone, Debug, Serialize, JsonSchema)]
struct Probes {
    /// Made from sections of the generation.
    own: usize,
    /// About other things.
    foreign: usize,
    /// Own ones that found their own section first.
    own_found: u32,
}

/// The status of a service.
#[must_use]
pub fn status(service: &Service) -> Status {
    let snapshot = service.snapshot();
    let embedder = service.embedder();
    let id = embedder.as_ref().map(|e| e.id());
    let floor = service.policy().score_floor;
    let repos: Vec<RepoStatus> = snapshot.repos.iter().map(|r| repo(r, id, floor)).collect();
    let (reloads, uptime_s) = service.uptime();
    let sha = embedder.as_ref().map(|e| e.id().model_sha256.clone());
    let model = model::for_embedder(sha.as_deref());
    Status {
        first: repos.first().cloned(),
        ready: snapshot.is_ready(),
        version: env!("CARGO_PKG_VERSION"),
        uptime_s,
        reloads,
        gate: GateStatus {
            score_floor: round4(floor.map_or(model.score_floor, ScoreFloor::get)),
            closest_floor: round4(model.closest_floor),
            fitted_on: model.fitted_on.clone(),
            embedder_sha256: model.embedder_sha256.clone(),
        },
        llm: service.llm().map(|llm| LlmStatus {
            mode: llm.settings.mode.name(),
            model: llm.settings.model.clone(),
            breaker: llm.client.state().name(),
            trust: llm.trust.explain(llm.settings.trust),
        }),
        repos,
    }
}

fn repo(state: &RepoState, embedder: Option<&EmbedderId>, floor: Option<ScoreFloor>) -> RepoStatus {
    let generation = state.corpus.as_ref().map(|c| &c.generation);
    let manifest = generation.map(|g| &g.manifest);
    let last = state.last_run.as_ref();
    let failed = last.filter(|l| l.outcome == Outcome::Failed);
    let checked = last.and_then(|l| l.source_checked_at.clone());
    RepoStatus {
        repo: state.repo.name.clone(),
        generation: generation.map(|g| g.id.clone()),
        commit: manifest.and_then(|m| m.commit.clone()),
        branch: manifest.and_then(|m| m.branch.clone()),
        source: manifest.map(|m| m.source.clone()),
        indexed_at: manifest.map(|m| m.indexed_at.clone()),
        source_checked_at: checked.or_else(|| manifest.map(|m| m.indexed_at.clone())),
        age_s: manifest.and_then(age),
        degraded: manifest.is_none_or(|m| m.embedder.is_none() || m.embedder.as_ref() != embedder),
        stale: failed.is_some(),
        source_error: failed.and_then(|l| l.error.clone()),
        problem: state.problem.clone(),
        pinned: state.pin.clone(),
        last_run: last.map(|l| LastRunStatus {
            outcome: l.outcome,
            finished_at: l.finished_at.clone(),
            error: l.error.clone(),
        }),
        embedder: manifest.and_then(|m| m.embedder.clone()),
        counts: manifest.map(|m| m.counts.clone()),
        graph: manifest.and_then(|m| m.graph),
        calibration: generation.and_then(|g| calibration(g, floor)),
    }
}

fn calibration(generation: &Generation, floor: Option<ScoreFloor>) -> Option<CalibrationStatus> {
    let manifest = &generation.manifest;
    let sha = manifest.embedder.as_ref().map(|e| e.model_sha256.as_str());
    let floor = floor.map_or(model::for_embedder(sha).score_floor, ScoreFloor::get);
    let calibration = manifest.calibration.as_ref()?;
    let ExpectedRates { score_floor, false_refusals, false_answers, foreign_answers, warning } =
        calibration.at(floor);
    Some(CalibrationStatus {
        score_floor: round4(score_floor),
        false_refusals: round4(false_refusals),
        false_answers: round4(false_answers),
        foreign_answers: round4(foreign_answers),
        probes: Probes {
            own: calibration.own.len(),
            foreign: calibration.foreign.len(),
            own_found: calibration.own_found,
        },
        warning,
    })
}
