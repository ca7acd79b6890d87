//! The report as JSON.

use super::SuiteReport;
use crate::outcome::CaseResult;
use serde_json::{Map, Value, json};

/// The report of one suite.
#[must_use]
pub fn suite(report: &SuiteReport, strict: bool) -> Value {
    let run = &report.run;
    let figures: Map<String, Value> = report
        .figures
        .iter()
        .map(|f| (f.name.to_owned(), json!({"part": f.part, "of": f.of})))
        .collect();
    let classes = report.classes.iter().map(|c| {
        let outcomes: Map<String, Value> =
            c.outcomes.iter().map(|(o, n)| (o.name().to_owned(), json!(n))).collect();
        json!({"class": c.class, "cases": c.cases, "passed": c.passed, "bands": c.bands, "outcomes": outcomes})
    });
    let reasons: Map<String, Value> = report
        .reasons()
        .into_iter()
        .map(|(name, [cases, refused, right])| {
            (name.to_owned(), json!({"cases": cases, "refused": refused, "right": right}))
        })
        .collect();
    let bins = report.curves.reliability.iter();
    let points = report.curves.near_miss.iter();
    json!({
        "suite": run.suite.name(), "embedder": run.embedder, "judge": run.judge, "failed": report.fails(strict),
        "figures": figures,
        "classes": classes.collect::<Vec<_>>(),
        "reasons": reasons,
        "routes": report.routes().into_iter().map(|(route, n)| json!({"route": route, "cases": n})).collect::<Vec<_>>(),
        "reliability": bins.map(|b| json!({"confidence": b.confidence, "correct": b.correct, "cases": b.cases})).collect::<Vec<_>>(),
        "ece": report.curves.ece, "brier": report.curves.brier, "near_miss_auc": report.curves.near_miss_auc,
        "near_miss_curve": points.map(|p| json!({"floor": p.floor, "answerable": p.answerable, "near_miss": p.near_miss})).collect::<Vec<_>>(),
        "false_answers": report.false_answers().iter().map(|r| json!({"id": r.case.id, "confidence": r.confidence()})).collect::<Vec<_>>(),
        "doubts": run.doubts, "ranking_diff": report.ranking_diff, "orphans": report.orphans, "regressions": report.regressions,
        "cases": run.results.iter().map(case).collect::<Vec<_>>(),
    })
}

fn case(r: &CaseResult) -> Value {
    let gold = r.scores.gold;
    json!({
        "id": r.case.id, "class": r.case.class, "question": r.case.question, "pasted": r.case.pasted,
        "passed": r.passes(), "outcome": r.outcome.name(), "band": r.band(), "confidence": r.confidence(),
        "reason": r.reason_name(), "faults": r.faults(),
        "answer_right": r.scores.answer.as_ref().map(|v| v.passes()),
        "citations": r.scores.citations.as_ref().map(|c| json!({"checked": c.checked, "faults": c.faults, "nearest": c.nearest, "nearest_faults": c.nearest_faults})),
        "gold": gold.map(|g| json!({"rank": g.rank, "cited": g.cited})),
        "route": r.scores.trajectory.as_ref().map(|t| &t.route),
        "named": r.named.iter().map(|n| json!({"path": n.path, "heading": n.heading, "lines": n.lines})).collect::<Vec<_>>(),
        "answer": r.reply.as_ref().map(|reply| &reply.answer),
    })
}
