//! What a question comes back with. The JSON keys are a contract; every one is always there.

use runbook_shared::generation::pin::Pin;
use schemars::JsonSchema;
use serde::Serialize;

/// Four decimals are all that a score means; f32 noise would only look like more.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands a reference")]
fn rounded<S: serde::Serializer>(value: &f32, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(round4(*value))
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands a reference")]
fn rounded_option<S: serde::Serializer>(
    value: &Option<f32>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match value {
        Some(value) => serializer.serialize_some(&round4(*value)),
        None => serializer.serialize_none(),
    }
}

/// Rounds to four decimals.
#[must_use]
pub fn round4(value: f32) -> f64 {
    (f64::from(value) * 1e4).round() / 1e4
}

/// The text of every refusal.
pub const I_DO_NOT_KNOW: &str = "I do not know";

/// How sure the reply is of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Band {
    /// A passage is shown as the answer.
    Answer,
    /// A refusal with sections that are near enough to be read.
    Closest,
    /// A refusal with nothing near.
    Nothing,
}

impl Band {
    /// The name in replies and headers.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Answer => "answer",
            Self::Closest => "closest",
            Self::Nothing => "nothing",
        }
    }
}

/// Why there is no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RefusalReason {
    /// A request to act.
    Action,
    /// A request for the value of a secret.
    Secret,
    /// A request for a customer's data.
    #[serde(rename = "customer_data")]
    Customer,
    /// Both arms were searched, and no section is sure enough.
    NoEvidence,
    /// Nothing is indexed.
    EmptyIndex,
    /// Only one arm could be searched, so nothing can be said of what is not there.
    Degraded,
}

impl RefusalReason {
    /// Whether the request gate refuses for it.
    #[must_use]
    pub fn is_request(self) -> bool {
        matches!(self, Self::Action | Self::Secret | Self::Customer)
    }

    /// The name in replies, logs and metrics.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Action => "action",
            Self::Secret => "secret",
            Self::Customer => "customer_data",
            Self::NoEvidence => "no_evidence",
            Self::EmptyIndex => "empty_index",
            Self::Degraded => "degraded",
        }
    }

    /// What the person is told, and what to use instead.
    #[must_use]
    pub fn explanation(self) -> &'static str {
        match self {
            Self::Action => {
                "this only reads runbooks and cannot act on any system; ask how it is done, and do it yourself or page whoever is on call"
            }
            Self::Secret => {
                "secrets are never shown; ask where the secret is kept or how it is rotated, and use your password manager or vault"
            }
            Self::Customer => {
                "customer data is not in the runbooks and never shown; ask for the procedure, and use the system that holds the data under its access rules"
            }
            Self::NoEvidence => {
                "no section of the runbooks is sure enough to answer this; the nearest ones are listed"
            }
            Self::EmptyIndex => "no documents are indexed",
            Self::Degraded => {
                "only the words of the runbooks could be searched, not their meaning, so this says nothing about what is not there; the nearest sections are listed"
            }
        }
    }
}

/// A place in the runbooks that supports an answer.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Citation {
    /// Path relative to the root of the repository.
    pub path: String,
    /// The innermost heading, or the document's title.
    pub heading: String,
    /// Headings from the outermost to the innermost.
    pub heading_path: Vec<String>,
    /// First and last line of the quote, 1-based and inclusive.
    pub lines: [u32; 2],
    /// The lines, as indexed.
    pub quote: String,
    /// Link into the forge at the indexed commit; null when there is no forge.
    pub url: Option<String>,
    /// The score that ordered it, 0 to 1 within this reply.
    #[serde(serialize_with = "rounded")]
    pub score: f32,
    /// The repository, where several are served.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repo: Option<String>,
}

/// A heading that was searched.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Searched {
    /// Path of the document.
    pub path: String,
    /// The innermost heading.
    pub heading: String,
}

/// A near section of a refusal.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Nearest {
    /// Path of the document.
    pub path: String,
    /// The innermost heading.
    pub heading: String,
    /// First and last line.
    pub lines: [u32; 2],
    /// Link into the forge.
    pub url: Option<String>,
    /// Raw BM25.
    #[serde(serialize_with = "rounded")]
    pub bm25: f32,
    /// Raw cosine; null without vectors.
    #[serde(serialize_with = "rounded_option")]
    pub cosine: Option<f32>,
    /// The first two lines of its best passage.
    pub preview: String,
    /// The repository, where several are served.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repo: Option<String>,
}

/// Why a question was not answered, and what was near.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Refusal {
    /// The reason.
    pub reason: RefusalReason,
    /// The reason in words.
    pub message: String,
    /// Headings from both arms, at most 20.
    pub searched: Vec<Searched>,
    /// The nearest sections.
    pub nearest: Vec<Nearest>,
}

/// Which snapshot a reply comes from.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Provenance {
    /// The generation.
    pub generation: Option<String>,
    /// Its commit.
    pub commit: Option<String>,
    /// When it was written.
    pub indexed_at: Option<String>,
    /// When the source was last checked.
    pub source_checked_at: Option<String>,
    /// Seconds since it was written.
    pub age_s: Option<u64>,
    /// True when an arm could not be searched.
    pub degraded: bool,
    /// Who keeps which generation from being replaced, since when and why; null when nobody does.
    pub pinned: Option<Pin>,
}

/// A reply.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Reply {
    /// Names this reply, for feedback.
    pub id: String,
    /// The passage, or `I do not know`.
    pub answer: String,
    /// The band.
    pub band: Band,
    /// What supports the answer, best first; empty for a refusal.
    pub citations: Vec<Citation>,
    /// Further sections.
    pub related: Vec<Citation>,
    /// Calibrated probability that the best section answers, 0 to 1.
    #[serde(serialize_with = "rounded")]
    pub confidence: f32,
    /// Why there is no answer.
    pub refusal: Option<Refusal>,
    /// The snapshot.
    #[serde(flatten)]
    pub provenance: Provenance,
    /// The steps taken.
    pub route: Vec<String>,
    /// The conversation.
    pub session: String,
    /// Milliseconds from question to reply.
    pub took_ms: f64,
    /// Signals, weights and verdict, when asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub explain: Option<serde_json::Value>,
    /// What a language model did, where one was asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub llm: Option<crate::llm::note::Note>,
}
