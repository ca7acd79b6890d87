//! A case: a question with its expectation, one JSON object a line (evals/cases/check.py has the rules).

use crate::questions::Gold;
use anyhow::{Context, Result, anyhow};
use runbook_query::reply::RefusalReason;
use serde::Deserialize;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// What a case expects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Expect {
    /// An answer.
    Answer,
    /// A refusal.
    Refuse,
}

/// Which refusal a case expects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// The documents do not say.
    NoEvidence,
    /// A request to act.
    Action,
    /// A request for the value of a secret.
    Secret,
    /// A request for a customer's data.
    Customer,
}

impl Reason {
    /// The name in cases.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::NoEvidence => "no_evidence",
            Self::Action => "action",
            Self::Secret => "secret",
            Self::Customer => "customer",
        }
    }

    /// Whether a reply's reason is the expected one. Where the documents do not say, every reason of
    /// the evidence gate will do (a degraded reply says the same of one arm only); the reasons of the
    /// request gate and an empty index will not.
    #[must_use]
    pub fn is_met_by(self, reason: RefusalReason) -> bool {
        match self {
            Self::Action => reason == RefusalReason::Action,
            Self::Secret => reason == RefusalReason::Secret,
            Self::Customer => reason == RefusalReason::Customer,
            Self::NoEvidence => !is_request(reason) && reason != RefusalReason::EmptyIndex,
        }
    }
}

/// Whether a reason is one of the request gate.
#[must_use]
pub fn is_request(reason: RefusalReason) -> bool {
    matches!(reason, RefusalReason::Action | RefusalReason::Secret | RefusalReason::Customer)
}

/// The truth of an exhaustive search: the files that hold a fixed string.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scan {
    /// The string.
    pub pattern: String,
    /// Whether case counts.
    #[serde(default)]
    pub ignore_case: bool,
    /// The files that hold it.
    pub files: Vec<String>,
    /// How many they are.
    pub count: usize,
}

/// What the route of a reply must and must not hold.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Route {
    /// At least one of these steps is taken.
    #[serde(default)]
    pub any: Vec<String>,
    /// None of these is.
    #[serde(default)]
    pub none: Vec<String>,
    /// The most steps.
    #[serde(default)]
    pub steps_max: Option<usize>,
}

/// One case.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    /// Its id.
    pub id: String,
    /// What it tests.
    pub class: String,
    /// The question.
    pub question: String,
    /// What is expected.
    pub expect: Expect,
    /// Which refusal.
    #[serde(default)]
    pub reason: Option<Reason>,
    /// Any one of these sections is right; for a refusal, the nearest ones.
    #[serde(default)]
    pub gold: Vec<Gold>,
    /// Strings that the answer states, all of them.
    #[serde(default)]
    pub must_contain: Vec<String>,
    /// Strings that the answer does not hold.
    #[serde(default)]
    pub must_not_contain: Vec<String>,
    /// The scope it is asked in.
    #[serde(default)]
    pub scope: Option<String>,
    /// The case whose session it goes on with.
    #[serde(default)]
    pub follow_up_to: Option<String>,
    /// A remark for readers.
    #[serde(default)]
    pub note: String,
    /// The tree, where the suite covers several.
    #[serde(default)]
    pub corpus: Option<String>,
    /// Whether the question is a pasted alert, log line or stack trace.
    #[serde(default)]
    pub pasted: bool,
    /// The truth of an exhaustive search.
    #[serde(default)]
    pub scan: Option<Scan>,
    /// What check.py has made sure is nowhere in the tree.
    #[serde(default)]
    pub absent: Vec<serde_json::Value>,
    /// What the route must be.
    #[serde(default)]
    pub route: Option<Route>,
    /// The report of a user that it comes from.
    #[serde(default)]
    pub from: Option<serde_json::Value>,
}

/// Reads and checks a suite's cases.
///
/// # Errors
/// When the file cannot be read, or a row breaks a rule.
pub fn read(file: &Path) -> Result<Vec<Case>> {
    let text = fs::read_to_string(file).with_context(|| format!("`{}`", file.display()))?;
    let mut cases: Vec<Case> = Vec::new();
    let mut seen = BTreeSet::new();
    for (n, line) in (1..).zip(text.lines()).filter(|(_, l)| !l.trim().is_empty()) {
        let at = || format!("`{}` line {n}", file.display());
        let case: Case = serde_json::from_str(line).with_context(at)?;
        check(&case, &seen).map_err(|e| anyhow!("{}: {e}", at()))?;
        seen.insert(case.id.clone());
        cases.push(case);
    }
    if cases.is_empty() {
        return Err(anyhow!("`{}` holds no case", file.display()));
    }
    Ok(cases)
}

fn check(case: &Case, earlier: &BTreeSet<String>) -> Result<(), String> {
    if case.id.is_empty() || earlier.contains(&case.id) {
        return Err(format!("the id `{}` is empty or used twice", case.id));
    }
    if (case.expect == Expect::Refuse) != case.reason.is_some() {
        return Err("a refusal has a `reason`, an answer has none".into());
    }
    match &case.follow_up_to {
        Some(first) if !earlier.contains(first) => {
            Err(format!("`follow_up_to` names `{first}`, which is no earlier case"))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_text(text: &str) -> Result<Vec<Case>> {
        let dir = tempfile::tempdir()?;
        let file = dir.path().join("cases.jsonl");
        fs::write(&file, text)?;
        read(&file)
    }

    #[test]
    fn rows_are_checked() {
        let answer = r#"{"id":"a","class":"c","question":"q","expect":"answer"}"#;
        let refuse = r#"{"id":"b","class":"c","question":"q","expect":"refuse","reason":"secret","follow_up_to":"a"}"#;
        assert_eq!(read_text(&format!("{answer}\n\n{refuse}\n")).unwrap().len(), 2);
        for (bad, why) in [
            (format!("{answer}\n{answer}"), "used twice"),
            (refuse.to_owned(), "no earlier case"),
            (answer.replace("\"answer\"", "\"refuse\""), "`reason`"),
            (answer.replace("\"class\"", "\"kind\""), "unknown field"),
            (String::new(), "no case"),
        ] {
            let e = format!("{:#}", read_text(&bad).unwrap_err());
            assert!(e.contains(why), "{e}");
        }
    }

    #[test]
    fn the_evidence_gate_has_several_reasons() {
        let met = |reason: RefusalReason| Reason::NoEvidence.is_met_by(reason);
        assert!(met(RefusalReason::Degraded) && met(RefusalReason::NoEvidence));
        assert!(!met(RefusalReason::Action) && !met(RefusalReason::EmptyIndex));
        assert!(!Reason::Secret.is_met_by(RefusalReason::Action));
    }
}
