//! `runbook-eval run`: the project's own suites, compared with what was approved and measured before.

use crate::corpus::Build;
use crate::golden::{self, approved, baseline, ranking};
use crate::report::{SuiteReport, html, json, junit, table};
use crate::runner::{Part, Runner};
use crate::scorer::answer::Strings;
use crate::suite::{Choice, Dirs, Suite, no_corpora};
use anyhow::{Context, Result};
use clap::Args;
use serde_json::{Value, json};
use std::fs;
use std::path::PathBuf;

/// What `run` is told.
#[derive(Args, Debug)]
pub struct Run {
    /// Which suite
    #[arg(value_enum, default_value = "sample")]
    suite: Choice,
    /// Approve the gold sections and the ranking as they are now
    #[arg(long)]
    approve: bool,
    /// Take the totals of this run as the new baseline
    #[arg(long)]
    update_baseline: bool,
    /// Fail when a ranking is not as it was
    #[arg(long)]
    strict: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Write JUnit XML
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
    /// Write one HTML page that needs nothing else
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    #[command(flatten)]
    dirs: Dirs,
    #[command(flatten)]
    build: Build,
}

/// What is printed, and whether all gates hold.
pub struct Done {
    /// The text for stdout.
    pub text: String,
    /// Whether a gate fails.
    pub failed: bool,
}

impl Run {
    /// Runs the suites. `update` rewrites rankings, as the environment variable `UPDATE=1` asks.
    ///
    /// # Errors
    /// When cases, trees or goldens cannot be read or written.
    pub fn run(&self, update: bool) -> Result<Done> {
        let mut reports = Vec::new();
        let mut skipped = Vec::new();
        for suite in self.suite.suites() {
            if suite.needs_corpora() && self.dirs.corpora().is_none() {
                if self.suite != Choice::All {
                    return Err(no_corpora());
                }
                skipped.push(*suite);
                continue;
            }
            reports.push(
                self.suite(*suite, update).with_context(|| format!("suite {}", suite.name()))?,
            );
        }
        if let Some(file) = &self.junit {
            fs::write(file, junit::suites(&reports, self.strict))
                .with_context(|| format!("`{}`", file.display()))?;
        }
        if let Some(file) = &self.html {
            fs::write(file, html::page(&reports, self.strict))
                .with_context(|| format!("`{}`", file.display()))?;
        }
        let failed = reports.iter().any(|r| r.fails(self.strict));
        Ok(Done { text: self.text(&reports, &skipped), failed })
    }

    fn suite(&self, suite: Suite, update: bool) -> Result<SuiteReport> {
        let runner = Runner {
            dirs: &self.dirs,
            build: &self.build,
            judge: &Strings,
            llm: None,
            part: Part::default(),
        };
        let mut run = runner.run(suite)?;
        let file = |kind: &str| self.dirs.golden.join(format!("{}.{kind}", suite.name()));
        let approvals = file("approved.json");
        if self.approve && suite.needs_approval() {
            let now = approved::current(&run.results);
            if !now.is_empty() {
                approved::write(&approvals, &now)?;
            }
        }
        let known = if suite.needs_approval() {
            approved::read(&approvals)?
        } else {
            approved::current(&run.results)
        };
        let orphans = approved::check(&mut run.results, &known);
        let mut report = SuiteReport::of(run);
        report.orphans = orphans;
        if suite != Suite::Requests {
            let now = ranking::current(&report.run.results, &report.run.embedder);
            if update || self.approve {
                golden::write(&file("ranking.txt"), &now)?;
            }
            let before = golden::read(&file("ranking.txt"))?;
            report.ranking_diff = before.map_or_else(
                || vec!["no ranking is kept yet, run with --approve".to_owned()],
                |before| ranking::diff(&before, &now),
            );
        }
        let kept = file("baseline.json");
        if self.update_baseline {
            baseline::update(&kept, &report.run.embedder, &report.figures)?;
        }
        report.regressions =
            baseline::regressions(&baseline::read(&kept)?, &report.run.embedder, &report.figures);
        Ok(report)
    }

    fn text(&self, reports: &[SuiteReport], skipped: &[Suite]) -> String {
        let skipped = skipped.iter().map(|s| s.name());
        if self.json {
            let suites: Vec<Value> = reports.iter().map(|r| json::suite(r, self.strict)).collect();
            let skipped: Vec<&str> = skipped.collect();
            let all = json!({"suites": suites, "skipped": skipped});
            return format!("{}\n", serde_json::to_string_pretty(&all).unwrap_or_default());
        }
        let mut text =
            reports.iter().map(|r| table::suite(r, self.strict)).collect::<Vec<_>>().join("\n");
        for name in skipped {
            text.push_str(&format!("suite {name}: skipped, {}\n", no_corpora()));
        }
        text
    }
}
