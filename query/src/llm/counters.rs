//! What is counted of a model: questions by outcome, what was rejected and why, seconds and tokens.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;
use std::time::Duration;

/// Upper bounds of the seconds of a question with a model.
const SECONDS: [f64; 11] = [0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 60.0, 120.0, 300.0];

type Labels = Vec<(&'static str, String)>;

/// The counters; clones count together.
#[derive(Clone)]
pub struct Counters {
    questions: Family<Labels, Counter>,
    rejected: Family<Labels, Counter>,
    failures: Family<Labels, Counter>,
    seconds: Histogram,
    tokens: Counter,
    breaker: Gauge,
}

impl Default for Counters {
    fn default() -> Self {
        Self {
            questions: Family::default(),
            rejected: Family::default(),
            failures: Family::default(),
            seconds: Histogram::new(SECONDS),
            tokens: Counter::default(),
            breaker: Gauge::default(),
        }
    }
}

impl Counters {
    /// Puts them under their names; prefixed as all of the daemon's are.
    pub fn register(&self, registry: &mut Registry) {
        registry.register(
            "llm_questions",
            "Questions that a language model saw, by mode and outcome",
            self.questions.clone(),
        );
        registry.register(
            "llm_rejected",
            "Generations that the guard rejected, by mode and fault",
            self.rejected.clone(),
        );
        registry.register(
            "llm_failures",
            "Calls of the language model without a reply, by reason",
            self.failures.clone(),
        );
        registry.register(
            "llm_seconds",
            "Seconds of a question with the language model",
            self.seconds.clone(),
        );
        registry.register(
            "llm_tokens",
            "Tokens of prompts and replies of the language model",
            self.tokens.clone(),
        );
        registry.register(
            "llm_breaker_open",
            "1 while the language model is left alone",
            self.breaker.clone(),
        );
    }

    /// Counts a question.
    pub fn question(&self, mode: &str, outcome: &str, took: Duration, tokens: u64) {
        let labels = vec![("mode", mode.to_owned()), ("outcome", outcome.to_owned())];
        self.questions.get_or_create(&labels).inc();
        self.seconds.observe(took.as_secs_f64());
        self.tokens.inc_by(tokens);
    }

    /// Counts a generation that was rejected.
    pub fn rejected(&self, mode: &str, fault: &str) {
        let labels = vec![("mode", mode.to_owned()), ("fault", fault.to_owned())];
        self.rejected.get_or_create(&labels).inc();
    }

    /// Counts a call without a reply.
    pub fn failed(&self, reason: &str) {
        self.failures.get_or_create(&vec![("reason", reason.to_owned())]).inc();
    }

    /// Sets whether the breaker is open.
    pub fn breaker(&self, open: bool) {
        self.breaker.set(i64::from(open));
    }
}
