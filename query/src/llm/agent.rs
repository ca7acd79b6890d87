//! The agent: a bounded loop in which a model uses the product's own tools to find the answer.
//!
//! It reads through the same [`View`] as every client, in a session of its own, and writes nowhere but to
//! that session's scratch. Code keeps the rules, not the prompt: no search before files were looked at, no
//! answer before a page was read, nothing cited but what was touched, budgets of calls, tokens and time. A
//! document can ask for whatever it likes: there are these four tools and no other.

mod tools;

use super::Llm;
use super::answer::{self, Named, Phrased};
use super::client::{Call, LlmError, Message};
use super::given::Given;
use super::note::{Doing, Record, Told};
use super::prompt::{self, Marks};
use super::review::{self, Fault};
use crate::reply::Citation;
use crate::tree::router::View;
use runbook_shared::chunk::innermost;
use runbook_shared::retrieval::corpus::Corpus;
use serde::Deserialize;
use serde_json::json;
use std::sync::Arc;
use std::time::Instant;

/// Answers that may be rejected before the extractive one is given.
const ANSWERS_MAX: u32 = 2;
/// Sections that one question may touch; of more, the first count.
const SECTIONS_MAX: usize = 600;
/// Characters of an input that are shown in a trajectory.
const INPUT_CHARS_MAX: usize = 200;

/// What the loop is given.
pub struct Task<'a> {
    /// The corpora.
    pub corpora: &'a [Arc<Corpus>],
    /// The question.
    pub question: &'a str,
    /// What was asked and answered before, for the model; empty at the start.
    pub before: &'a str,
    /// Pages that are read before the model has its turn.
    pub reread: &'a [String],
    /// The tree, in the agent's own session.
    pub view: &'a View,
    /// What the tree holds, in short.
    pub index: &'a str,
    /// Searches by meaning, or says where to look first.
    pub search: &'a dyn Fn(&str) -> Searched,
    /// Notes that files were looked at.
    pub looked: &'a dyn Fn(),
    /// The most citations.
    pub k: usize,
    /// When it must be done.
    pub until: Instant,
    /// Who is told what is being done.
    pub told: Told<'a>,
}

/// What a search gave.
pub enum Searched {
    /// Sections, best first.
    Found(Vec<Citation>),
    /// Not executed: where to look first.
    Steered(String),
    /// It failed.
    Failed(String),
}

#[derive(Deserialize)]
struct Step {
    tool: String,
    #[serde(default)]
    input: String,
    #[serde(default)]
    answer: String,
    #[serde(default)]
    citations: Vec<Named>,
}

/// What a session of the loop has seen.
#[derive(Default)]
struct Touched {
    sections: Vec<(usize, u32)>,
    /// Whether the text of a page was read, not only matched or named.
    read: bool,
}

impl Touched {
    fn add(&mut self, section: (usize, u32)) {
        if self.sections.len() < SECTIONS_MAX && !self.sections.contains(&section) {
            self.sections.push(section);
        }
    }

    fn given(&self, corpora: &[Arc<Corpus>]) -> Vec<Given> {
        let of = |(corpus, number): &(usize, u32)| {
            let (chunk, section) = corpora[*corpus].generation.section(*number);
            Given {
                corpus: *corpus,
                section: *number,
                path: chunk.path.clone(),
                heading: innermost(&section.heading_path, &chunk.title).to_owned(),
                lines: Vec::new(),
                cut: true,
            }
        };
        self.sections.iter().map(of).collect()
    }
}

struct Loop<'a> {
    llm: &'a Llm,
    task: &'a Task<'a>,
    marks: Marks,
    messages: Vec<Message>,
    touched: Touched,
    /// Messages that are results, oldest first.
    results: Vec<usize>,
}

/// Runs the loop until there is an answer or a budget is used up.
///
/// # Errors
/// When there is no answer that may be shown: the call's error, or none where what it wrote was rejected.
pub fn run(llm: &Llm, task: &Task<'_>, record: &mut Record) -> Result<Phrased, Option<LlmError>> {
    let marks = Marks::new().map_err(|e| Some(LlmError::Down(e)))?;
    let question = if task.before.is_empty() {
        format!("Question: {}", task.question)
    } else {
        format!("Before:\n{}\nQuestion: {}", task.before, task.question)
    };
    let messages =
        vec![Message::system(prompt::agent(&marks, task.index)), Message::user(question)];
    let touched = Touched::default();
    let mut run = Loop { llm, task, marks, messages, touched, results: Vec::new() };
    for page in task.reread {
        let share = llm.settings.context_bytes() / task.reread.len().max(1);
        run.use_tool("read", page, record, share);
    }
    run.go(record)
}

impl Loop<'_> {
    fn go(&mut self, record: &mut Record) -> Result<Phrased, Option<LlmError>> {
        let settings = &self.llm.settings;
        let schema = prompt::agent_schema();
        let mut answers = 0;
        loop {
            let spent = if record.calls >= settings.agent_calls {
                Some("calls")
            } else if record.tokens >= settings.agent_tokens {
                Some("tokens")
            } else if Instant::now() >= self.task.until {
                Some("time")
            } else {
                None
            };
            if let Some(budget) = spent {
                record.reject(Fault::Budget(budget), "");
                return Err(None);
            }
            self.forget(settings.context_bytes() * 2);
            let call = Call {
                messages: &self.messages,
                schema: &schema,
                schema_name: "step",
                tokens: settings.max_tokens,
                until: self.task.until,
            };
            record.calls += 1;
            (self.task.told)(&Doing::Thinking);
            let done = self.llm.client.complete(&call).map_err(Some)?;
            record.tokens += done.tokens;
            self.messages.push(Message::assistant(done.text.clone()));
            let step: Step = match serde_json::from_str(answer::unfenced(&done.text)) {
                Ok(step) => step,
                Err(e) => {
                    self.reject(Fault::Shape(e.to_string()), &done.text, record);
                    continue;
                }
            };
            if step.tool != "answer" {
                let bytes = settings.context_bytes() / 3;
                self.use_tool(&step.tool, &step.input, record, bytes);
                continue;
            }
            (self.task.told)(&Doing::Checking);
            match self.answer(&step) {
                Ok(phrased) => {
                    record.steps.push(json!({"tool": "answer", "outcome": "ok"}));
                    return Ok(phrased);
                }
                Err(fault) => {
                    record.steps.push(json!({"tool": "answer", "outcome": fault.name()}));
                    self.reject(fault, &done.text, record);
                    answers += 1;
                    if answers == ANSWERS_MAX {
                        return Err(None);
                    }
                }
            }
        }
    }

    fn reject(&mut self, fault: Fault, text: &str, record: &mut Record) {
        self.messages.push(Message::user(prompt::again(&fault.to_string())));
        record.reject(fault, text);
    }

    /// Checks an answer against everything that was touched; which of it is cited, the guard chooses by
    /// rare words.
    fn answer(&self, step: &Step) -> Result<Phrased, Fault> {
        if answer::is_unknown(&step.answer) {
            return Ok(Phrased::Unknown);
        }
        if !self.touched.read {
            return Err(Fault::NothingRead);
        }
        let strip = |n: &Named| Named {
            path: n.path.trim().trim_start_matches("/runbooks/").to_owned(),
            heading: n.heading.clone(),
        };
        let named: Vec<Named> = step.citations.iter().map(strip).collect();
        let corpora = self.task.corpora;
        review::cited_sections(&self.touched.given(corpora), &named)?;
        let sections = &self.touched.sections;
        let subject = if self.task.reread.is_empty() { self.task.question } else { "" };
        let texts = (subject, step.answer.as_str());
        let citations = review::review(corpora, sections, &self.marks, texts, self.task.k)?;
        let sections =
            citations.iter().filter_map(|c| super::given::section_of(corpora, c)).collect();
        Ok(Phrased::Text { text: step.answer.clone(), citations, sections })
    }

    /// Runs a tool and shows its result to the model, in at most this many bytes.
    fn use_tool(&mut self, tool: &str, input: &str, record: &mut Record, bytes: usize) {
        let started = Instant::now();
        let used = tools::run(self.task, tool, input);
        if used.looked {
            (self.task.looked)();
        }
        self.touched.read |= used.read;
        let count = used.sections.len();
        for section in used.sections {
            self.touched.add(section);
        }
        let input: String = input.chars().take(INPUT_CHARS_MAX).collect();
        record.steps.push(json!({
            "tool": tool, "input": input, "outcome": used.outcome, "bytes": used.text.len(),
            "sections": count, "ms": u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX),
        }));
        let text = tools::clipped(&used.text, bytes);
        let block = self.marks.block("result", &text);
        self.results.push(self.messages.len());
        self.messages.push(Message::user(block));
    }

    /// Leaves the oldest results out where the conversation grows too long.
    fn forget(&mut self, bytes: usize) {
        let length = |m: &[Message]| m.iter().map(|m| m.text.len()).sum::<usize>();
        let mut results = std::mem::take(&mut self.results);
        // The last result stays whatever it takes.
        while length(&self.messages) > bytes && results.len() > 1 {
            let at = results.remove(0);
            self.messages[at].text = "(an earlier result, left out)".into();
        }
        self.results = results;
    }
}
