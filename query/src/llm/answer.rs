//! The phraser: an answer from the sections that it is given and nothing else, with one retry that names
//! the fault.

use super::Llm;
use super::client::{Call, LlmError, Message};
use super::given::Given;
use super::note::{Doing, Record, Told};
use super::prompt::{self, Marks};
use super::review::{self, Fault};
use crate::reply::{Citation, I_DO_NOT_KNOW};
use runbook_shared::retrieval::corpus::Corpus;
use serde::Deserialize;
use std::sync::Arc;
use std::time::Instant;

/// A citation as a model names it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Named {
    /// The document.
    pub path: String,
    /// The innermost heading.
    pub heading: String,
}

/// What a model has written.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Generation {
    /// The text.
    pub answer: String,
    /// What it says that it comes from.
    pub citations: Vec<Named>,
    /// How sure it says it is; told in `explain`, used for nothing.
    #[serde(default)]
    pub confidence: f64,
}

/// A text that may be shown.
#[derive(Clone, Debug)]
pub enum Phrased {
    /// The model says that it does not know.
    Unknown,
    /// An answer with citations that hold.
    Text {
        /// The answer.
        text: String,
        /// What supports it.
        citations: Vec<Citation>,
        /// The sections that it comes from.
        sections: Vec<(usize, u32)>,
    },
}

/// A reply without the fence that some models put around JSON.
#[must_use]
pub fn unfenced(text: &str) -> &str {
    let text = text.trim();
    let inner = text.strip_prefix("```json").or_else(|| text.strip_prefix("```"));
    inner.and_then(|t| t.trim_end().strip_suffix("```")).map_or(text, str::trim)
}

/// Whether a text is the refusal, and nothing else.
#[must_use]
pub fn is_unknown(text: &str) -> bool {
    text.trim().trim_end_matches('.').eq_ignore_ascii_case(I_DO_NOT_KNOW)
}

/// Reads a generation and checks it against the sections that were given.
///
/// # Errors
/// The first fault.
pub fn read(task: &Task<'_>, marks: &Marks, text: &str) -> Result<(Phrased, f64), Fault> {
    let said: Generation =
        serde_json::from_str(unfenced(text)).map_err(|e| Fault::Shape(e.to_string()))?;
    if is_unknown(&said.answer) {
        return Ok((Phrased::Unknown, said.confidence));
    }
    let sections = review::cited_sections(task.given, &said.citations)?;
    let texts = (task.question, said.answer.as_str());
    let citations = review::review(task.corpora, &sections, marks, texts, task.k)?;
    review::complete(&said.answer, task.must_hold)?;
    Ok((Phrased::Text { text: said.answer, citations, sections }, said.confidence))
}

/// What is asked of the phraser.
pub struct Task<'a> {
    /// The corpora.
    pub corpora: &'a [Arc<Corpus>],
    /// The question.
    pub question: &'a str,
    /// The sections.
    pub given: &'a [Given],
    /// Command lines that the answer must hold.
    pub must_hold: &'a [Vec<String>],
    /// The most citations.
    pub k: usize,
    /// When it must be done.
    pub until: Instant,
    /// Who is told what is being done.
    pub told: Told<'a>,
}

/// Asks for an answer; one that has a fault is asked for once more, with the fault.
///
/// # Errors
/// When there is none that may be shown: the call's error, or none where it was rejected twice.
pub fn ask(llm: &Llm, task: &Task<'_>, record: &mut Record) -> Result<Phrased, Option<LlmError>> {
    let marks = Marks::new().map_err(|e| Some(LlmError::Down(e)))?;
    let schema = prompt::answer_schema();
    let mut messages = vec![
        Message::system(prompt::answer(&marks)),
        Message::user(prompt::question(&prompt::sections(task.given, &marks), task.question)),
    ];
    for _ in 0..2 {
        let call = Call {
            messages: &messages,
            schema: &schema,
            schema_name: "answer",
            tokens: llm.settings.max_tokens,
            until: task.until,
        };
        record.calls += 1;
        (task.told)(&Doing::Thinking);
        let done = llm.client.complete(&call).map_err(Some)?;
        record.tokens += done.tokens;
        (task.told)(&Doing::Checking);
        let read = read(task, &marks, &done.text);
        match read {
            Ok((phrased, confidence)) => {
                record.verdict = serde_json::json!({
                    "answers": matches!(phrased, Phrased::Text { .. }), "confidence": confidence,
                });
                return Ok(phrased);
            }
            Err(fault) => {
                messages.push(Message::assistant(done.text.clone()));
                messages.push(Message::user(prompt::again(&fault.to_string())));
                record.reject(fault, &done.text);
            }
        }
    }
    Err(None)
}
