//! What a case came to, and the counts by class.

use crate::case::{Case, Expect};
use crate::gold::GoldSection;
use crate::scorer::Scores;
use crate::scorer::gold::Named;
use runbook_query::reply::{Band, RefusalReason, Reply};
use std::collections::BTreeMap;

/// What a case came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Outcome {
    /// Answered, as expected, and no scorer finds a fault.
    Right,
    /// Answered, as expected, with a fault.
    Wrong,
    /// Refused against expectation; the gold section is among the nearest.
    Near,
    /// Refused against expectation, and the gold section is not shown.
    Lost,
    /// Refused, as expected, for the expected reason.
    Refused,
    /// Refused, as expected, for another reason or with a citation that does not hold.
    Otherwise,
    /// Answered where a refusal is expected.
    FalseAnswer,
    /// Could not be asked.
    Failed,
}

impl Outcome {
    /// All of them, in the order of a table.
    pub const ALL: [Self; 8] = [
        Self::Right,
        Self::Wrong,
        Self::Near,
        Self::Lost,
        Self::Refused,
        Self::Otherwise,
        Self::FalseAnswer,
        Self::Failed,
    ];

    /// The name in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Right => "right",
            Self::Wrong => "wrong",
            Self::Near => "near",
            Self::Lost => "lost",
            Self::Refused => "refused",
            Self::Otherwise => "otherwise",
            Self::FalseAnswer => "false_answer",
            Self::Failed => "failed",
        }
    }

    /// Whether it is the expected one.
    #[must_use]
    pub fn passes(self) -> bool {
        matches!(self, Self::Right | Self::Refused)
    }
}

/// A case with what it came to.
#[derive(Clone, Debug)]
pub struct CaseResult {
    /// The case.
    pub case: Case,
    /// The reply; none where only the request gate was asked, or nothing could be.
    pub reply: Option<Reply>,
    /// The reason of a refusal.
    pub reason: Option<RefusalReason>,
    /// The sections that the reply names, in order.
    pub named: Vec<Named>,
    /// The gold sections.
    pub gold: Vec<GoldSection>,
    /// What the scorers say.
    pub scores: Scores,
    /// What it came to.
    pub outcome: Outcome,
    /// What of its gold is not approved; it fails whatever the reply is.
    pub unapproved: Vec<String>,
    /// Why it could not be asked.
    pub error: Option<String>,
}

impl CaseResult {
    /// Whether the case passes.
    #[must_use]
    pub fn passes(&self) -> bool {
        self.outcome.passes() && self.unapproved.is_empty()
    }

    /// Whether it was refused; by the request gate, where only that was asked.
    #[must_use]
    pub fn refused(&self) -> bool {
        self.reason.is_some()
    }

    /// Whether there was an answer.
    #[must_use]
    pub fn answered(&self) -> bool {
        !self.refused() && self.outcome != Outcome::Failed
    }

    /// The Confidence, where one was computed.
    #[must_use]
    pub fn confidence(&self) -> Option<f64> {
        self.reply.as_ref().map(|r| f64::from(r.confidence))
    }

    /// The band; of the request gate alone, whether it let the question through.
    #[must_use]
    pub fn band(&self) -> &'static str {
        match &self.reply {
            Some(reply) => reply.band.name(),
            None if self.refused() => Band::Nothing.name(),
            None if self.error.is_some() => "none",
            None => Band::Answer.name(),
        }
    }

    /// Everything that is wrong, in words.
    #[must_use]
    pub fn faults(&self) -> Vec<String> {
        let mut faults = self.unapproved.clone();
        faults.extend(self.error.iter().map(|e| format!("cannot be asked: {e}")));
        let why = self.reason_name().unwrap_or_default();
        match self.outcome {
            Outcome::Near => faults.push(format!("refused ({why}); gold is near")),
            Outcome::Lost => faults.push(format!("refused ({why}); gold is not shown")),
            Outcome::Otherwise if !self.reason_is_right() => {
                faults.push(format!("refused as {why}"));
            }
            Outcome::FalseAnswer => faults.push("answered".into()),
            _ => {}
        }
        let scores = &self.scores;
        faults.extend(scores.answer.iter().flat_map(|v| v.faults.clone()));
        faults.extend(scores.citations.iter().flat_map(|c| c.faults.clone()));
        if self.outcome == Outcome::Wrong && scores.gold.is_some_and(|g| !g.cited) {
            faults.push("gold is not cited".into());
        }
        let way = scores.trajectory.as_ref().and_then(|t| t.verdict.as_ref());
        faults.extend(way.iter().flat_map(|v| v.faults.clone()));
        faults
    }

    /// Whether a refusal is for the expected reason.
    #[must_use]
    pub fn reason_is_right(&self) -> bool {
        self.case.reason.zip(self.reason).is_some_and(|(want, got)| want.is_met_by(got))
    }

    /// The reason of a refusal, as replies name it.
    #[must_use]
    pub fn reason_name(&self) -> Option<String> {
        let reason = self.reason?;
        match serde_json::to_value(reason) {
            Ok(serde_json::Value::String(name)) => Some(name),
            _ => Some(format!("{reason:?}")),
        }
    }

    /// Decides the outcome from what the scorers say.
    #[must_use]
    pub fn decided(mut self) -> Self {
        let s = &self.scores;
        let way = s.trajectory.as_ref().and_then(|t| t.verdict.as_ref());
        let holds = s.citations.as_ref().is_none_or(|c| c.faults.is_empty())
            && way.is_none_or(|v| v.passes());
        let right = s.answer.as_ref().is_none_or(|v| v.passes()) && s.gold.is_none_or(|g| g.cited);
        self.outcome = match (self.case.expect, self.refused()) {
            (Expect::Answer, false) if holds && right => Outcome::Right,
            (Expect::Answer, false) => Outcome::Wrong,
            (Expect::Answer, true) if s.gold.is_some_and(|g| g.named()) => Outcome::Near,
            (Expect::Answer, true) => Outcome::Lost,
            (Expect::Refuse, true) if holds && self.reason_is_right() => Outcome::Refused,
            (Expect::Refuse, true) => Outcome::Otherwise,
            (Expect::Refuse, false) => Outcome::FalseAnswer,
        };
        self
    }
}

/// The counts of one class.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClassRow {
    /// The class.
    pub class: String,
    /// Cases.
    pub cases: usize,
    /// Cases that pass.
    pub passed: usize,
    /// Cases by band.
    pub bands: BTreeMap<&'static str, usize>,
    /// Cases by outcome.
    pub outcomes: BTreeMap<Outcome, usize>,
}

impl ClassRow {
    /// Adds the counts of another class.
    pub fn add(&mut self, other: &Self) {
        self.cases += other.cases;
        self.passed += other.passed;
        for (band, n) in &other.bands {
            *self.bands.entry(band).or_default() += n;
        }
        for (outcome, n) in &other.outcomes {
            *self.outcomes.entry(*outcome).or_default() += n;
        }
    }
}

/// Counts by class, in the order in which the classes come.
#[must_use]
pub fn by_class(results: &[CaseResult]) -> Vec<ClassRow> {
    let mut rows: Vec<ClassRow> = Vec::new();
    for result in results {
        let at = rows.iter().position(|r| r.class == result.case.class).unwrap_or(rows.len());
        if at == rows.len() {
            rows.push(ClassRow { class: result.case.class.clone(), ..ClassRow::default() });
        }
        let row = &mut rows[at];
        row.cases += 1;
        row.passed += usize::from(result.passes());
        *row.bands.entry(result.band()).or_default() += 1;
        *row.outcomes.entry(result.outcome).or_default() += 1;
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scorer::Verdict;
    use crate::scorer::citation::CitationScore;
    use crate::scorer::gold::GoldScore;

    fn outcome(expect: &str, reason: Option<RefusalReason>, scores: Scores) -> Outcome {
        let row = format!(r#"{{"id":"a","class":"c","question":"q","expect":{expect}}}"#);
        let result = CaseResult {
            case: serde_json::from_str(&row).unwrap(),
            reply: None,
            reason,
            named: Vec::new(),
            gold: Vec::new(),
            scores,
            outcome: Outcome::Failed,
            unapproved: Vec::new(),
            error: None,
        };
        result.decided().outcome
    }

    #[test]
    fn an_outcome_follows_from_the_scores() {
        let (answer, refuse) = ("\"answer\"", "\"refuse\",\"reason\":\"action\"");
        let fault = || vec!["x".to_owned()];
        let gold =
            |rank, cited| Scores { gold: Some(GoldScore { rank, cited }), ..Scores::default() };
        let wrong = Scores { answer: Some(Verdict { faults: fault() }), ..Scores::default() };
        let cite = CitationScore { checked: 1, faults: fault(), ..CitationScore::default() };
        let broken = Scores { citations: Some(cite), ..Scores::default() };
        let (act, none) = (Some(RefusalReason::Action), Some(RefusalReason::NoEvidence));
        for (expect, reason, scores, wanted) in [
            (answer, None, Scores::default(), Outcome::Right),
            (answer, None, gold(Some(1), true), Outcome::Right),
            (answer, None, gold(Some(2), false), Outcome::Wrong),
            (answer, None, wrong, Outcome::Wrong),
            (answer, None, broken.clone(), Outcome::Wrong),
            (answer, none, gold(Some(3), false), Outcome::Near),
            (answer, none, gold(None, false), Outcome::Lost),
            (refuse, act, Scores::default(), Outcome::Refused),
            (refuse, none, Scores::default(), Outcome::Otherwise),
            (refuse, act, broken, Outcome::Otherwise),
            (refuse, None, Scores::default(), Outcome::FalseAnswer),
        ] {
            assert_eq!(outcome(expect, reason, scores), wanted, "{expect} {reason:?}");
        }
    }
}
