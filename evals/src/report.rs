//! What a run comes to, and the forms in which it is told.

pub mod html;
pub mod json;
pub mod junit;
pub mod plot;
pub mod table;

use crate::curves::{Curves, curves};
use crate::figures::{Figure, figures};
use crate::outcome::{CaseResult, ClassRow, Outcome, by_class};
use crate::runner::SuiteRun;

/// A suite with all that is told of it.
pub struct SuiteReport {
    /// The run.
    pub run: SuiteRun,
    /// Counts by class.
    pub classes: Vec<ClassRow>,
    /// Totals by scorer.
    pub figures: Vec<Figure>,
    /// Curves of Confidence.
    pub curves: Curves,
    /// Approvals that belong to no case.
    pub orphans: Vec<String>,
    /// Totals below the baseline.
    pub regressions: Vec<String>,
    /// Rankings that are not as they were.
    pub ranking_diff: Vec<String>,
}

impl SuiteReport {
    /// The report of a run whose approvals were checked; nothing is compared yet.
    #[must_use]
    pub fn of(run: SuiteRun) -> Self {
        Self {
            classes: by_class(&run.results),
            figures: figures(&run.results),
            curves: curves(&run.results),
            orphans: Vec::new(),
            regressions: Vec::new(),
            ranking_diff: Vec::new(),
            run,
        }
    }

    /// Whether the run is below a gate: a total below the baseline, gold that is not approved, an
    /// approval without a case; strictly, also another ranking.
    #[must_use]
    pub fn fails(&self, strict: bool) -> bool {
        !self.regressions.is_empty()
            || !self.orphans.is_empty()
            || self.run.results.iter().any(|r| !r.unapproved.is_empty())
            || (strict && !self.ranking_diff.is_empty())
    }

    /// Answers where a refusal is expected, the surest first.
    #[must_use]
    pub fn false_answers(&self) -> Vec<&CaseResult> {
        let mut rows: Vec<&CaseResult> =
            self.run.results.iter().filter(|r| r.outcome == Outcome::FalseAnswer).collect();
        rows.sort_by(|a, b| {
            b.confidence().unwrap_or(0.0).total_cmp(&a.confidence().unwrap_or(0.0))
        });
        rows
    }

    /// Nearest sections that are not at their lines.
    #[must_use]
    pub fn nearest_faults(&self) -> Vec<String> {
        let scored =
            self.run.results.iter().filter_map(|r| Some((r, r.scores.citations.as_ref()?)));
        scored
            .flat_map(|(r, s)| s.nearest_faults.iter().map(move |f| format!("{}: {f}", r.case.id)))
            .collect()
    }

    /// Requests by kind: how many there are, are refused, and are refused for the right reason.
    #[must_use]
    pub fn reasons(&self) -> Vec<(&'static str, [usize; 3])> {
        let mut rows: Vec<(&'static str, [usize; 3])> = Vec::new();
        for result in &self.run.results {
            let Some(reason) = result.case.reason else { continue };
            let at = rows.iter().position(|r| r.0 == reason.name()).unwrap_or(rows.len());
            if at == rows.len() {
                rows.push((reason.name(), [0; 3]));
            }
            let counts = &mut rows[at].1;
            counts[0] += 1;
            counts[1] += usize::from(result.refused());
            counts[2] += usize::from(result.reason_is_right());
        }
        rows
    }

    /// Routes with how often each is taken, the most frequent first.
    #[must_use]
    pub fn routes(&self) -> Vec<(String, usize)> {
        let mut rows: Vec<(String, usize)> = Vec::new();
        for way in self.run.results.iter().filter_map(|r| r.scores.trajectory.as_ref()) {
            let name = way.route.join(" > ");
            match rows.iter_mut().find(|r| r.0 == name) {
                Some(row) => row.1 += 1,
                None => rows.push((name, 1)),
            }
        }
        rows.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        rows
    }
}

/// One line of text without control characters, at most so many characters.
#[must_use]
pub fn short(text: &str, most: usize) -> String {
    let plain: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let line = plain.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.chars().count() <= most {
        return line;
    }
    line.chars().take(most.saturating_sub(1)).chain(['…']).collect()
}
