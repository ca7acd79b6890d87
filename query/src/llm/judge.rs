//! The judge: whether one of the sections answers, and which lines. Its verdict is one more signal of the
//! gate; what is shown is still the passage, byte for byte.

use super::Llm;
use super::client::{Call, LlmError, Message};
use super::given::{self, Given};
use super::note::{Doing, Record, Told};
use super::prompt::{self, Marks};
use super::review::Fault;
use runbook_shared::retrieval::corpus::Corpus;
use runbook_shared::retrieval::question::Question;
use serde::Deserialize;
use serde_json::json;
use std::sync::Arc;
use std::time::Instant;

/// Tokens that a verdict may have.
const TOKENS: u32 = 80;

/// What a judge says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// No section answers.
    No,
    /// These lines of a section do.
    Yes {
        /// Which of the sections that were given.
        at: usize,
        /// First and last line.
        lines: [u32; 2],
    },
}

#[derive(Deserialize)]
struct Said {
    answers: bool,
    section: i64,
    from: i64,
    to: i64,
}

/// Reads a verdict: its shape, a section that was given, and lines of it.
///
/// # Errors
/// The fault.
pub fn read(text: &str, given: &[Given]) -> Result<Verdict, Fault> {
    let text = super::answer::unfenced(text);
    let said: Said = serde_json::from_str(text).map_err(|e| Fault::Shape(e.to_string()))?;
    if !said.answers {
        return Ok(Verdict::No);
    }
    let at = usize::try_from(said.section).ok().and_then(|n| n.checked_sub(1));
    let Some((at, section)) = at.and_then(|at| Some((at, given.get(at)?))) else {
        return Err(Fault::NoSuchSection(said.section));
    };
    let lines = [u32::try_from(said.from).unwrap_or(0), u32::try_from(said.to).unwrap_or(0)];
    let (first, last) = (section.lines.first(), section.lines.last());
    let within = first.zip(last).is_some_and(|(first, last)| {
        first.0 <= lines[0] && lines[0] <= lines[1] && lines[1] <= last.0
    });
    if !within {
        return Err(Fault::NoSuchLines(said.from, said.to));
    }
    Ok(Verdict::Yes { at, lines })
}

/// Asks for a verdict; one that has a fault is asked for once more.
///
/// # Errors
/// When the model gives none that can be read: the call's error, or none where it was rejected twice.
pub fn ask(
    llm: &Llm,
    question: &str,
    given: &[Given],
    record: &mut Record,
    until: Instant,
    told: Told<'_>,
) -> Result<Verdict, Option<LlmError>> {
    let marks = Marks::new().map_err(|e| Some(LlmError::Down(e)))?;
    let schema = prompt::judge_schema();
    let mut messages = vec![
        Message::system(prompt::judge(&marks)),
        Message::user(prompt::question(&prompt::sections(given, &marks), question)),
    ];
    for _ in 0..2 {
        let call = Call {
            messages: &messages,
            schema: &schema,
            schema_name: "verdict",
            tokens: TOKENS,
            until,
        };
        record.calls += 1;
        told(&Doing::Thinking);
        let done = llm.client.complete(&call).map_err(Some)?;
        record.tokens += done.tokens;
        match read(&done.text, given) {
            Ok(verdict) => {
                record.verdict = match &verdict {
                    Verdict::No => json!({"answers": false}),
                    Verdict::Yes { at, lines } => json!({
                        "answers": true, "path": given[*at].path, "heading": given[*at].heading,
                        "lines": lines,
                    }),
                };
                return Ok(verdict);
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

/// Whether the lines of a yes hold the question's rare terms; heading and title count as theirs.
///
/// # Errors
/// The term that is missing.
pub fn may_lift(
    question: &Question,
    corpora: &[Arc<Corpus>],
    section: &Given,
    lines: [u32; 2],
) -> Result<(), String> {
    let corpus = &corpora[section.corpus];
    let (chunk, own) = corpus.generation.section(section.section);
    let named: Vec<&str> = section
        .lines
        .iter()
        .filter(|(n, _)| (lines[0]..=lines[1]).contains(n))
        .map(|(_, line)| line.as_str())
        .collect();
    let trail = own.heading_path.join("\n");
    let texts: Vec<&str> = named.into_iter().chain([chunk.title.as_str(), &trail]).collect();
    given::holds_rare(question, corpus, &texts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verdicts_are_read_and_checked() {
        let lines = (5..9).map(|n| (n, "x".to_owned())).collect();
        let given = [Given {
            corpus: 0,
            section: 3,
            path: "a.md".into(),
            heading: "A".into(),
            lines,
            cut: false,
        }];
        let say = |answers, section, from, to| {
            format!(r#"{{"answers":{answers},"section":{section},"from":{from},"to":{to}}}"#)
        };
        assert_eq!(read(&say(false, 0, 0, 0), &given), Ok(Verdict::No));
        assert_eq!(
            read(&format!("```json\n{}\n```", say(true, 1, 5, 8)), &given),
            Ok(Verdict::Yes { at: 0, lines: [5, 8] })
        );
        for text in [
            say(true, 2, 5, 8),
            say(true, 0, 5, 8),
            say(true, 1, 4, 8),
            say(true, 1, 8, 5),
            say(true, 1, 5, 9),
            say(true, -1, 5, 9),
            "yes".into(),
            r#"{"answers":true"#.into(),
        ] {
            assert!(read(&text, &given).is_err(), "{text}");
        }
    }
}
