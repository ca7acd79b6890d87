//! Whether an answer is right.

use super::Verdict;
use super::negation::states;
use crate::case::Case;
use anyhow::Result;
use std::collections::BTreeSet;

/// What a judge sees of a reply.
#[derive(Clone, Copy, Debug)]
pub struct Shown<'a> {
    /// The answer's text.
    pub answer: &'a str,
    /// Paths of the citations.
    pub paths: &'a [&'a str],
}

/// Judges answers. [`Strings`] is the one that needs no model; another, such as an LLM, is handed to
/// [`crate::runner::Runner`] in its place.
pub trait AnswerJudge {
    /// The name in reports.
    fn name(&self) -> &str;
    /// Judges the answer to a case that expects one.
    ///
    /// # Errors
    /// When there is no judgement, which says nothing about the answer.
    fn judge(&self, case: &Case, shown: Shown<'_>) -> Result<Verdict>;
}

/// Judges by strings: all that must be stated are, and none that must not be there is. A wanted string
/// that only stands where it is negated does not count; an unwanted one counts however it is put. For
/// an exhaustive search, any mention counts, and the files that are cited are those that hold the
/// string, no more and no less.
#[derive(Clone, Copy, Debug, Default)]
pub struct Strings;

impl AnswerJudge for Strings {
    fn name(&self) -> &'static str {
        "strings"
    }

    fn judge(&self, case: &Case, shown: Shown<'_>) -> Result<Verdict> {
        let mut faults = Vec::new();
        for wanted in &case.must_contain {
            if !shown.answer.contains(wanted.as_str()) {
                faults.push(format!("does not say `{wanted}`"));
            } else if case.scan.is_none() && !states(shown.answer, wanted) {
                faults.push(format!("only says what is not so: `{wanted}`"));
            }
        }
        for unwanted in case.must_not_contain.iter().filter(|u| shown.answer.contains(u.as_str())) {
            faults.push(format!("says `{unwanted}`"));
        }
        faults.extend(case.scan.as_ref().and_then(|scan| wrong_list(&scan.files, shown.paths)));
        Ok(Verdict { faults })
    }
}

fn wrong_list(truth: &[String], cited: &[&str]) -> Option<String> {
    let truth: BTreeSet<&str> = truth.iter().map(String::as_str).collect();
    let cited: BTreeSet<&str> = cited.iter().copied().collect();
    let missing = truth.difference(&cited).count();
    let extra = cited.difference(&truth).count();
    (missing + extra > 0)
        .then(|| format!("of {} files it cites all but {missing}, and {extra} others", truth.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(case: &str, answer: &str, paths: &[&str]) -> Vec<String> {
        let row = format!(r#"{{"id":"a","class":"c","question":"q","expect":"answer",{case}}}"#);
        let case: Case = serde_json::from_str(&row).unwrap();
        Strings.judge(&case, Shown { answer, paths }).unwrap().faults
    }

    #[test]
    fn strings_are_wanted_and_unwanted() {
        let case = r#""must_contain":["5432"],"must_not_contain":["5433"]"#;
        assert!(faults(case, "The port is 5432.", &[]).is_empty());
        assert_eq!(faults(case, "5433", &[]), ["does not say `5432`", "says `5433`"]);
        assert_eq!(faults(case, "Do not use 5432.", &[]), ["only says what is not so: `5432`"]);
        assert_eq!(faults(case, "5432, never 5433", &[]), ["says `5433`"]);
    }

    #[test]
    fn a_search_is_right_when_its_list_is() {
        let case = r#""scan":{"pattern":"x","files":["a","b"],"count":2}"#;
        assert!(faults(case, "", &["b", "a", "a"]).is_empty());
        assert_eq!(faults(case, "", &["a", "c"]), ["of 2 files it cites all but 1, and 1 others"]);
    }
}
