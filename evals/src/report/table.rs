//! The report as text, 100 columns wide where questions allow.

use super::{SuiteReport, short};
use crate::metrics::ratio;
use crate::outcome::{CaseResult, ClassRow, Outcome};
use std::fmt::Write as _;

/// The report of one suite.
#[must_use]
pub fn suite(report: &SuiteReport, strict: bool) -> String {
    let mut out = String::new();
    let run = &report.run;
    let _ = writeln!(
        out,
        "suite {} · {} cases · embedder {} · judge {}\n",
        run.suite.name(),
        run.results.len(),
        run.embedder,
        run.judge
    );
    classes(report, &mut out);
    totals(report, &mut out);
    list(&mut out, "false answers", report.false_answers().into_iter().map(false_answer));
    let failing = run.results.iter().filter(|r| !r.passes() && r.outcome != Outcome::FalseAnswer);
    list(&mut out, "other failures", failing.map(failure));
    list(&mut out, "nearest sections that do not hold", report.nearest_faults().into_iter());
    list(&mut out, "cases to look at", run.doubts.iter().cloned());
    list(&mut out, "ranking", report.ranking_diff.iter().cloned());
    list(&mut out, "orphans", report.orphans.iter().cloned());
    list(&mut out, "below the baseline", report.regressions.iter().cloned());
    let verdict = if report.fails(strict) { "FAILED" } else { "within its gates" };
    let _ = writeln!(out, "\nsuite {}: {verdict}", run.suite.name());
    out
}

fn classes(report: &SuiteReport, out: &mut String) {
    let outcomes: Vec<Outcome> = Outcome::ALL
        .into_iter()
        .filter(|o| report.classes.iter().any(|c| c.outcomes.contains_key(o)))
        .collect();
    let _ = write!(out, "{:<20}{:>6}{:>6}{:>6} |", "class", "cases", "pass", "fail");
    let _ = write!(out, "{:>8}{:>8}{:>8} |", "answer", "closest", "nothing");
    for outcome in &outcomes {
        let _ = write!(out, "{:>width$}", outcome.name(), width = outcome.name().len() + 2);
    }
    out.push('\n');
    let mut all = ClassRow { class: "all".into(), ..ClassRow::default() };
    for class in &report.classes {
        class_row(class, &outcomes, out);
        all.add(class);
    }
    class_row(&all, &outcomes, out);
}

fn class_row(row: &ClassRow, outcomes: &[Outcome], out: &mut String) {
    let failed = row.cases - row.passed;
    let _ = write!(out, "{:<20}{:>6}{:>6}{failed:>6} |", row.class, row.cases, row.passed);
    for band in ["answer", "closest", "nothing"] {
        let _ = write!(out, "{:>8}", row.bands.get(band).copied().unwrap_or(0));
    }
    out.push_str(" |");
    for outcome in outcomes {
        let n = row.outcomes.get(outcome).copied().unwrap_or(0);
        let _ = write!(out, "{n:>width$}", width = outcome.name().len() + 2);
    }
    out.push('\n');
}

fn totals(report: &SuiteReport, out: &mut String) {
    out.push('\n');
    for f in &report.figures {
        let _ = writeln!(
            out,
            "{:<18} {:>5}/{:<5} {:.3}  {}",
            f.name,
            f.part,
            f.of,
            ratio(f.part, f.of),
            f.meaning
        );
    }
    for (reason, [cases, refused, right]) in report.reasons() {
        let _ = writeln!(
            out,
            "refuse as {reason:<12} {cases} cases, {refused} refused, {right} for the right reason"
        );
    }
    let c = &report.curves;
    if !c.reliability.is_empty() {
        let _ = write!(out, "confidence         ECE {:.3}, Brier {:.3}", c.ece, c.brier);
        if !c.near_miss.is_empty() {
            let _ = write!(out, ", AUC against near-misses {:.3}", c.near_miss_auc);
        }
        out.push('\n');
    }
    for (route, n) in report.routes() {
        let _ = writeln!(out, "route {n:>5}  {} steps: {route}", route.split(" > ").count());
    }
}

fn list(out: &mut String, title: &str, rows: impl Iterator<Item = String>) {
    let rows: Vec<String> = rows.collect();
    if !rows.is_empty() {
        let _ = writeln!(out, "\n{title} ({})", rows.len());
    }
    for row in rows {
        let _ = writeln!(out, "  {row}");
    }
}

fn false_answer(r: &CaseResult) -> String {
    let cited = r.named.first().map_or(String::new(), |n| format!(" -> {}#{}", n.path, n.heading));
    let confidence = r.confidence().map_or("-".into(), |c| format!("{c:.2}"));
    format!("{confidence} {} {} {}{cited}", r.case.id, r.case.class, short(&r.case.question, 70))
}

fn failure(r: &CaseResult) -> String {
    let confidence = r.confidence().map_or("-".into(), |c| format!("{c:.2}"));
    let rank =
        r.scores.gold.map_or("none".into(), |g| g.rank.map_or("-".into(), |n| n.to_string()));
    let faults = short(&r.faults().join("; "), 160);
    format!(
        "{:<9} {confidence} rank {rank} {} {} {}: {faults}",
        r.outcome.name(),
        r.case.id,
        r.case.class,
        short(&r.case.question, 60)
    )
}
