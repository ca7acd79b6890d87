//! The totals of a run, scorer by scorer, as exact fractions.

use crate::case::{Expect, Reason};
use crate::outcome::CaseResult;
use crate::scorer::citation::CitationScore;

/// One total: `part` of `of`. More is better, in all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Figure {
    /// Its name in baselines and reports.
    pub name: &'static str,
    /// What it counts.
    pub meaning: &'static str,
    /// How many.
    pub part: usize,
    /// Of how many.
    pub of: usize,
}

/// All totals that have something to count.
#[must_use]
pub fn figures(results: &[CaseResult]) -> Vec<Figure> {
    let all: Vec<&CaseResult> = results.iter().collect();
    let answerable = of(&all, |r| r.case.expect == Expect::Answer);
    let asked = of(&answerable, |r| r.reply.is_some() || r.error.is_some());
    let answered = of(&all, |r| r.answered() && r.reply.is_some());
    let refused = of(&all, |r| r.refused());
    let unanswerable = of(&all, |r| r.case.expect == Expect::Refuse);
    let by_request = of(&unanswerable, |r| r.case.reason != Some(Reason::NoEvidence));
    let with_gold = of(&answerable, |r| !r.gold.is_empty());
    let refused_gold = of(&refused, |r| r.scores.gold.is_some());
    let routed = of(&all, |r| verdict(r).is_some());
    let right = |r: &CaseResult| r.scores.answer.as_ref().is_some_and(|v| v.passes());
    let gold = |test: fn(crate::scorer::gold::GoldScore) -> bool| {
        move |r: &CaseResult| r.scores.gold.is_some_and(test)
    };
    let rows = [
        count("passed", "cases that pass", &all, CaseResult::passes),
        count("answer_right", "answerables with a right answer", &asked, right),
        count("answer_trusted", "answers that are right", &answered, right),
        citations(results),
        nearest(results),
        count("gold_first", "answerables with gold named first", &with_gold, gold(|g| g.first())),
        count(
            "gold_cited",
            "answerables with gold among the citations",
            &with_gold,
            gold(|g| g.cited),
        ),
        count(
            "gold_named",
            "answerables with gold among all sections named",
            &with_gold,
            gold(|g| g.named()),
        ),
        count(
            "gold_nearest",
            "refusals with gold among the nearest",
            &refused_gold,
            gold(|g| g.named()),
        ),
        count("route", "expected routes that are taken", &routed, |r| verdict(r) == Some(true)),
        count("refusal_precision", "refusals that are right", &refused, |r| {
            r.case.expect == Expect::Refuse
        }),
        count(
            "refusal_recall",
            "unanswerables that are refused",
            &unanswerable,
            CaseResult::refused,
        ),
        count(
            "reason_right",
            "requests refused for the right reason",
            &by_request,
            CaseResult::reason_is_right,
        ),
    ];
    rows.into_iter().filter(|f| f.of > 0).collect()
}

fn of<'a>(results: &[&'a CaseResult], test: impl Fn(&CaseResult) -> bool) -> Vec<&'a CaseResult> {
    results.iter().copied().filter(|r| test(r)).collect()
}

fn count(
    name: &'static str,
    meaning: &'static str,
    results: &[&CaseResult],
    test: impl Fn(&CaseResult) -> bool,
) -> Figure {
    Figure { name, meaning, part: results.iter().filter(|r| test(r)).count(), of: results.len() }
}

fn citations(results: &[CaseResult]) -> Figure {
    let meaning = "citations whose quote is found at their lines, related ones included";
    held("citations_valid", meaning, results, |s| (s.checked, s.faults.len()))
}

fn nearest(results: &[CaseResult]) -> Figure {
    let meaning = "nearest sections whose preview is found at their lines";
    held("nearest_valid", meaning, results, |s| (s.nearest, s.nearest_faults.len()))
}

fn held(
    name: &'static str,
    meaning: &'static str,
    results: &[CaseResult],
    counts: fn(&CitationScore) -> (usize, usize),
) -> Figure {
    let counts: Vec<(usize, usize)> =
        results.iter().filter_map(|r| r.scores.citations.as_ref()).map(counts).collect();
    let of: usize = counts.iter().map(|c| c.0).sum();
    let faults = counts.iter().map(|c| c.1).sum();
    Figure { name, meaning, part: of.saturating_sub(faults), of }
}

/// Whether an expected route was taken.
fn verdict(result: &CaseResult) -> Option<bool> {
    Some(result.scores.trajectory.as_ref()?.verdict.as_ref()?.passes())
}
