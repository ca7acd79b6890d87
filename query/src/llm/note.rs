//! What a reply says of the model: what it was for, what came of it, and for `explain` all that happened.

use super::client::LlmError;
use super::review::Fault;
use serde::Serialize;
use serde_json::{Value, json};

/// What came of a model's work on a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The extractive reply stands.
    Kept,
    /// The text is the model's, and the guard has passed it.
    Phrased,
    /// A refusal became the passage, since the model named lines that hold the question's rare terms.
    Lifted,
    /// An answer became a refusal, since the model found that no section answers.
    Withdrawn,
    /// What the model said was rejected; the extractive reply stands.
    Rejected,
    /// The model could not be used; the extractive reply stands.
    Degraded,
}

impl Outcome {
    /// The name in replies and metrics.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Kept => "kept",
            Self::Phrased => "phrased",
            Self::Lifted => "lifted",
            Self::Withdrawn => "withdrawn",
            Self::Rejected => "rejected",
            Self::Degraded => "degraded",
        }
    }
}

/// What a reply says of the model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Note {
    /// The mode.
    pub mode: &'static str,
    /// The model's name at its endpoint.
    pub model: String,
    /// What came of it.
    pub outcome: Outcome,
    /// Why, where it could not be used or was rejected.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<&'static str>,
    /// The same for people.
    pub message: String,
}

/// What is being done, for a client that listens while it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Doing {
    /// Sections are looked for.
    Searching(String),
    /// A page is read.
    Reading(String),
    /// A command of the shell or a grep runs.
    Running(String),
    /// The model judges, writes or chooses its next step.
    Thinking,
    /// What it wrote is checked.
    Checking,
}

impl Doing {
    /// The name in events.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Searching(_) => "searching",
            Self::Reading(_) => "reading",
            Self::Running(_) => "running",
            Self::Thinking => "thinking",
            Self::Checking => "checking",
        }
    }

    /// What it is done with; empty where that says nothing.
    #[must_use]
    pub fn what(&self) -> &str {
        match self {
            Self::Searching(what) | Self::Reading(what) | Self::Running(what) => what,
            Self::Thinking | Self::Checking => "",
        }
    }
}

/// Who is told.
pub type Told<'a> = &'a (dyn Fn(&Doing) + Send + Sync);

/// Something that was rejected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejected {
    /// What was wrong.
    pub fault: Fault,
    /// What the model said, cut.
    pub text: String,
}

/// What happened, for `explain`, the log and the metrics.
#[derive(Clone, Debug, Default)]
pub struct Record {
    /// Calls of the model.
    pub calls: u32,
    /// Their tokens.
    pub tokens: u64,
    /// What was rejected, in order.
    pub rejected: Vec<Rejected>,
    /// What the agent did, in order.
    pub steps: Vec<Value>,
    /// The model's verdict and why it counted or did not.
    pub verdict: Value,
    /// Why a call had no reply.
    pub failed: Option<LlmError>,
}

/// Characters of a rejected text that are shown.
const SHOWN_CHARS_MAX: usize = 400;

impl Record {
    /// Adds a text that was rejected.
    pub fn reject(&mut self, fault: Fault, text: &str) {
        tracing::warn!(fault = fault.name(), "a generation was rejected: {}", fault.logged());
        let text = text.chars().take(SHOWN_CHARS_MAX).collect();
        self.rejected.push(Rejected { fault, text });
    }

    /// All of it for `explain`.
    #[must_use]
    pub fn explain(&self, note: &Note, trust: Value) -> Value {
        let rejected: Vec<Value> = self
            .rejected
            .iter()
            .map(|r| json!({"fault": r.fault.name(), "why": r.fault.to_string(), "text": r.text}))
            .collect();
        json!({
            "mode": note.mode, "model": note.model, "outcome": note.outcome, "reason": note.reason,
            "calls": self.calls, "tokens": self.tokens, "rejected": rejected, "steps": self.steps,
            "verdict": self.verdict, "trust": trust,
            "failed": self.failed.as_ref().map(|e| json!({"reason": e.name(), "message": e.to_string()})),
        })
    }
}
