//! A question: checked once, cut into the terms that are looked up.

use crate::analyse::{Term, TermKind, analyse, is_stop_word};
use crate::limits::QUESTION_BYTES_MAX;
use rustc_hash::FxHashSet;

/// A question that can be asked.
#[derive(Clone, Debug)]
pub struct Question {
    text: String,
    terms: Vec<Term>,
}

/// Why a text is no question.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QuestionError {
    /// Nothing but white space.
    #[error("the question is empty")]
    Empty,
    /// Longer than a question may be.
    #[error("the question has {0} bytes, at most {QUESTION_BYTES_MAX} are read")]
    TooLong(usize),
}

impl Question {
    /// Checks a question; control characters become spaces.
    ///
    /// # Errors
    /// When it is empty or too long.
    pub fn parse(text: &str) -> Result<Self, QuestionError> {
        if text.len() > QUESTION_BYTES_MAX {
            return Err(QuestionError::TooLong(text.len()));
        }
        let text: String =
            text.chars().map(|c| if c.is_control() && c != '\n' { ' ' } else { c }).collect();
        let text = text.trim().to_owned();
        if text.is_empty() {
            return Err(QuestionError::Empty);
        }
        let terms = content_terms(&text);
        Ok(Self { text, terms })
    }

    /// The text, trimmed.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Its terms in order, each once; stop words only when there is nothing else.
    #[must_use]
    pub fn terms(&self) -> &[Term] {
        &self.terms
    }
}

fn content_terms(text: &str) -> Vec<Term> {
    let mut seen = FxHashSet::default();
    let all: Vec<Term> =
        analyse(text).into_iter().filter(|t| seen.insert((t.kind, t.stem.clone()))).collect();
    let carries = |t: &Term| t.kind == TermKind::Whole || t.within || !is_stop_word(&t.surface);
    if all.iter().any(carries) { all.into_iter().filter(carries).collect() } else { all }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stems(text: &str) -> Vec<String> {
        Question::parse(text).unwrap().terms().iter().map(|t| t.stem.clone()).collect()
    }

    #[test]
    fn stop_words_stay_when_there_is_nothing_else() {
        assert_eq!(
            stems("how do we restore last night's dump"),
            ["restor", "last", "night", "dump"]
        );
        assert_eq!(stems("to be or not to be"), ["not"]);
        assert_eq!(stems("what is it"), ["what", "is", "it"]);
        assert!(stems("?!").is_empty());
    }

    #[test]
    fn what_is_no_question() {
        assert!(matches!(Question::parse(" \n\t "), Err(QuestionError::Empty)));
        assert!(matches!(
            Question::parse(&"x".repeat(QUESTION_BYTES_MAX + 1)),
            Err(QuestionError::TooLong(_))
        ));
    }
}
