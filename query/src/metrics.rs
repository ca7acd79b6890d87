//! What is counted: questions, the time of each stage, the state of every repository; in the text
//! format of OpenMetrics, as Prometheus reads it.

use crate::llm::breaker::State;
use crate::reply::Reply;
use crate::service::{Service, age};
use crate::snapshot::RepoState;
use prometheus_client::encoding::text;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// The content type of what [`Metrics::encode`] writes.
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Upper bounds of the latency buckets, in seconds.
pub const BUCKETS: [f64; 13] =
    [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0];

/// A part of the way from request to response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Waiting for a core.
    Wait,
    /// The question's vector.
    Embed,
    /// From the question to the verdict: its vector, both arms, gate, passage, citations.
    Answer,
    /// The reply as a page.
    Render,
}

impl Stage {
    fn name(self) -> &'static str {
        match self {
            Self::Wait => "wait",
            Self::Embed => "embed",
            Self::Answer => "answer",
            Self::Render => "render",
        }
    }
}

type Labels = Vec<(&'static str, String)>;
type Seconds = Gauge<f64, AtomicU64>;

/// All counters; cheap to write, read when somebody scrapes.
pub struct Metrics {
    registry: Registry,
    questions: Family<Labels, Counter>,
    seconds: Histogram,
    stages: Family<Labels, Histogram, fn() -> Histogram>,
    rejected: Family<Labels, Counter>,
    feedback: Family<Labels, Counter>,
    repos: Repos,
    ready: Gauge,
    reloads: Counter,
    uptime: Gauge,
    /// One count for each of [`BUCKETS`], and one for what is slower.
    buckets: [AtomicU64; BUCKETS.len() + 1],
    scrape: Mutex<()>,
    /// Of the language model.
    pub llm: crate::llm::counters::Counters,
}

/// Gauges of each repository, set when somebody scrapes.
#[derive(Default)]
struct Repos {
    generation_age: Family<Labels, Seconds>,
    check_age: Family<Labels, Seconds>,
    run_age: Family<Labels, Seconds>,
    run_outcome: Family<Labels, Gauge>,
    documents: Family<Labels, Gauge>,
    problem: Family<Labels, Gauge>,
    pinned: Family<Labels, Gauge>,
}

fn latency() -> Histogram {
    Histogram::new(BUCKETS)
}

impl Default for Metrics {
    fn default() -> Self {
        let mut registry = Registry::with_prefix("runbook");
        let questions = Family::<Labels, Counter>::default();
        registry.register("questions", "Questions by outcome and reason", questions.clone());
        let seconds = latency();
        registry.register(
            "question_seconds",
            "From question to reply, without waiting",
            seconds.clone(),
        );
        let stages = Family::<Labels, Histogram, fn() -> Histogram>::new_with_constructor(latency);
        registry.register("stage_seconds", "The time of a stage", stages.clone());
        let rejected = Family::<Labels, Counter>::default();
        registry.register("rejected_requests", "Requests that got an error", rejected.clone());
        let feedback = Family::<Labels, Counter>::default();
        registry.register("feedback", "Reports by verdict", feedback.clone());
        let ready = Gauge::default();
        registry.register("ready", "1 when every repository is served", ready.clone());
        let reloads = Counter::default();
        registry.register("reloads", "Snapshots swapped in", reloads.clone());
        let uptime = Gauge::default();
        registry.register("uptime_seconds", "Seconds since the start", uptime.clone());
        let version = Family::<Labels, Gauge>::default();
        version.get_or_create(&vec![("version", env!("CARGO_PKG_VERSION").to_owned())]).set(1);
        registry.register("build_info", "The program's version", version);
        let llm = crate::llm::counters::Counters::default();
        llm.register(&mut registry);
        Self {
            llm,
            repos: Repos::register(&mut registry),
            registry,
            questions,
            seconds,
            stages,
            rejected,
            feedback,
            ready,
            reloads,
            uptime,
            buckets: Default::default(),
            scrape: Mutex::default(),
        }
    }
}

impl Repos {
    fn register(registry: &mut Registry) -> Self {
        let repos = Self::default();
        let mut add = |name, help, family: &Family<Labels, Seconds>| {
            registry.register(name, help, family.clone());
        };
        add(
            "generation_age_seconds",
            "Since the served generation was written",
            &repos.generation_age,
        );
        add(
            "source_check_age_seconds",
            "Since the source was last reached by ingest",
            &repos.check_age,
        );
        add("ingest_age_seconds", "Since the last ingest ended", &repos.run_age);
        let mut add = |name, help, family: &Family<Labels, Gauge>| {
            registry.register(name, help, family.clone());
        };
        add("ingest_last_outcome", "1 for how the last ingest ended", &repos.run_outcome);
        add("documents", "Documents by state", &repos.documents);
        add("generation_problem", "1 when the newest generation is not served", &repos.problem);
        add("generation_pinned", "1 when a generation is pinned", &repos.pinned);
        repos
    }

    fn set(&self, state: &RepoState) {
        let repo = || ("repo", state.repo.name.clone());
        let own = vec![repo()];
        if let Some(seconds) = state.corpus.as_ref().and_then(|c| age(&c.generation.manifest)) {
            self.generation_age.get_or_create(&own).set(whole(seconds));
        }
        let since = |text: Option<&String>| {
            let at: jiff::Timestamp = text?.parse().ok()?;
            let seconds = jiff::Timestamp::now().as_second() - at.as_second();
            Some(whole(u64::try_from(seconds).unwrap_or(0)))
        };
        let last = state.last_run.as_ref();
        if let Some(seconds) = since(last.and_then(|l| l.source_checked_at.as_ref())) {
            self.check_age.get_or_create(&own).set(seconds);
        }
        if let Some(seconds) = since(last.map(|l| &l.finished_at)) {
            self.run_age.get_or_create(&own).set(seconds);
        }
        if let Some(outcome) = last.and_then(|l| serde_json::to_value(l.outcome).ok()) {
            let outcome = outcome.as_str().unwrap_or_default().to_owned();
            self.run_outcome.get_or_create(&vec![repo(), ("outcome", outcome)]).set(1);
        }
        if let Some(corpus) = &state.corpus {
            let counts = &corpus.generation.manifest.counts;
            let skipped = counts.skipped.values().sum();
            let states =
                [("indexed", counts.indexed), ("failed", counts.failed), ("skipped", skipped)];
            for (name, count) in states {
                let labels = vec![repo(), ("state", name.to_owned())];
                self.documents.get_or_create(&labels).set(count.cast_signed());
            }
        }
        self.problem.get_or_create(&own).set(i64::from(state.problem.is_some()));
        self.pinned.get_or_create(&own).set(i64::from(state.pin.is_some()));
    }

    fn clear(&self) {
        self.generation_age.clear();
        self.check_age.clear();
        self.run_age.clear();
        self.run_outcome.clear();
        self.documents.clear();
        self.problem.clear();
        self.pinned.clear();
    }
}

#[expect(clippy::cast_precision_loss, reason = "seconds are far below 2^52")]
fn whole(seconds: u64) -> f64 {
    seconds as f64
}

impl Metrics {
    /// Counts a reply.
    pub fn question(&self, reply: &Reply) {
        let reason = reply.refusal.as_ref().map_or("", |r| r.reason.name());
        let labels = vec![
            ("outcome", reply.band.name().to_owned()),
            ("reason", reason.to_owned()),
            ("degraded", reply.provenance.degraded.to_string()),
        ];
        self.questions.get_or_create(&labels).inc();
        let seconds = reply.took_ms / 1e3;
        self.seconds.observe(seconds);
        let bucket = BUCKETS.iter().position(|b| seconds <= *b).unwrap_or(BUCKETS.len());
        self.buckets[bucket].fetch_add(1, Ordering::Relaxed);
    }

    /// Counts the time of a stage.
    pub fn stage(&self, stage: Stage, took: Duration) {
        let labels = vec![("stage", stage.name().to_owned())];
        self.stages.get_or_create(&labels).observe(took.as_secs_f64());
    }

    /// Counts a request that got an error, by its code.
    pub fn rejected(&self, code: &'static str) {
        self.rejected.get_or_create(&vec![("code", code.to_owned())]).inc();
    }

    /// Counts a report.
    pub fn feedback(&self, verdict: &'static str) {
        self.feedback.get_or_create(&vec![("verdict", verdict.to_owned())]).inc();
    }

    /// How many questions fell into each of [`BUCKETS`], and into none.
    #[must_use]
    pub fn latencies(&self) -> [u64; BUCKETS.len() + 1] {
        std::array::from_fn(|at| self.buckets[at].load(Ordering::Relaxed))
    }

    /// Everything as text, with the state of the service as it is now.
    #[must_use]
    pub fn encode(&self, service: &Service) -> String {
        // Two scrapes at once must not clear each other's gauges.
        let _one = self.scrape.lock().unwrap_or_else(PoisonError::into_inner);
        let snapshot = service.snapshot();
        self.repos.clear();
        for state in &snapshot.repos {
            self.repos.set(state);
        }
        self.ready.set(i64::from(snapshot.is_ready()));
        self.llm.breaker(service.llm().is_some_and(|l| l.client.state() == State::Open));
        let (reloads, uptime) = service.uptime();
        self.reloads.inc_by(reloads.saturating_sub(self.reloads.get()));
        self.uptime.set(uptime.cast_signed());
        let mut out = String::new();
        if text::encode(&mut out, &self.registry).is_err() {
            // Writing into a string fails only where an encoder is wrong.
            tracing::error!("the metrics cannot be encoded");
        }
        out
    }
}
