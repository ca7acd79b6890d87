//! A suite mode by mode: the extractive answer and a language model in each of its roles, in one table.
//!
//! Beside what every run counts, a row says how often the model was asked, what came of it, and how often
//! the guard acted and why. Words of the model's own answers that no citation holds are counted by looking
//! at the replies, not by asking the guard that let them pass.

use crate::corpus::Build;
use crate::outcome::{CaseResult, Outcome};
use crate::runner::{Part, Runner};
use crate::scorer::answer::{AnswerJudge, Shown, Strings};
use crate::scorer::model::{Agreement, ModelJudge};
use crate::suite::{Choice, Dirs};
use anyhow::{Context, Result, anyhow};
use clap::Args;
use runbook_query::evidence::claims;
use runbook_query::llm::Llm;
use runbook_query::llm::settings::{Mode, Settings, TrustIn};
use runbook_query::reply::Reply;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write;

/// What `modes` is told.
#[derive(Args, Debug)]
pub struct Modes {
    /// Which suite
    #[arg(value_enum, default_value = "sample")]
    suite: Choice,
    /// What stands before /chat/completions
    #[arg(long, env = "RUNBOOK_LLM_URL", value_name = "URL")]
    url: String,
    /// The model's name
    #[arg(long, env = "RUNBOOK_LLM_MODEL", value_name = "NAME", default_value = "default")]
    model: String,
    /// Modes beside `off`, by comma
    #[arg(long, value_name = "MODES", default_value = "judge,answer,agent")]
    modes: String,
    /// Whether its verdicts count: measured, always or never
    #[arg(long, value_name = "TRUST", default_value = "measured")]
    trust: String,
    /// Ask only every Nth case
    #[arg(long, value_name = "N", default_value_t = 1)]
    every: usize,
    /// Ask at most this many cases
    #[arg(long, value_name = "N")]
    most: Option<usize>,
    /// Seconds that one call may take
    #[arg(long, value_name = "SECONDS", default_value_t = 120.0)]
    timeout_s: f64,
    /// Tokens of passages that one call may carry
    #[arg(long, value_name = "TOKENS", default_value_t = 1500)]
    context_tokens: usize,
    /// Calls of one question in mode `agent`
    #[arg(long, value_name = "N", default_value_t = 5)]
    agent_calls: u32,
    /// Let the model judge the extractive answers, too, and report its agreement with the strings
    #[arg(long)]
    judge: bool,
    /// Exit with 1 when a citation does not hold, a word is unsupported, or a mode scores below `off`
    #[arg(long)]
    gate: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    dirs: Dirs,
    #[command(flatten)]
    build: Build,
}

/// One row.
#[derive(Clone, Debug, Default)]
struct Row {
    mode: &'static str,
    cases: usize,
    passed: usize,
    outcomes: BTreeMap<&'static str, usize>,
    citations: usize,
    citation_faults: usize,
    unsupported: usize,
    asked: usize,
    of_model: BTreeMap<&'static str, usize>,
    faults: BTreeMap<String, usize>,
    calls: u64,
    tokens: u64,
    ms: Vec<f64>,
    trust: Value,
}

impl Modes {
    /// Runs the modes and returns the text and whether the gate fails.
    ///
    /// # Errors
    /// When the model cannot be used, or cases and trees cannot be read.
    pub fn run(&self) -> Result<(String, bool)> {
        let suite = *self.suite.suites().first().ok_or_else(|| anyhow!("no suite"))?;
        let mut rows = Vec::new();
        let mut agreement = None;
        for mode in std::iter::once(Mode::Off).chain(self.modes()?) {
            let llm = Llm::new(&self.settings(mode)?).map_err(|e| anyhow!(e))?;
            let runner = Runner {
                dirs: &self.dirs,
                build: &self.build,
                judge: &Strings,
                llm: llm.clone(),
                part: Part { every: self.every.max(1), most: self.most },
            };
            let run = runner.run(suite).with_context(|| format!("mode {}", mode.name()))?;
            if mode == Mode::Off && self.judge {
                agreement = Some(self.agreement(&run.results)?);
            }
            let mut row = row(mode.name(), &run.results);
            row.trust = llm.map_or(Value::Null, |l| l.trust.explain(l.settings.trust));
            rows.push(row);
        }
        let failed = self.gate && fails(&rows);
        let text = if self.json {
            let rows: Vec<Value> = rows.iter().map(as_json).collect();
            let agreement = agreement.map(|a| json!({
                "both_pass": a.both_pass, "both_fault": a.both_fault, "strings_only": a.strings_only,
                "model_only": a.model_only, "none": a.none, "share": a.share(),
            }));
            let all = json!({"model": self.model, "modes": rows, "agreement": agreement});
            format!("{}\n", serde_json::to_string_pretty(&all)?)
        } else {
            table(&rows, agreement)
        };
        Ok((text, failed))
    }

    fn modes(&self) -> Result<Vec<Mode>> {
        self.modes
            .split(',')
            .filter(|m| !m.is_empty())
            .map(|m| match m.trim() {
                "judge" => Ok(Mode::Judge),
                "answer" => Ok(Mode::Answer),
                "agent" => Ok(Mode::Agent),
                other => {
                    Err(anyhow!("there is no mode `{other}`; the modes are judge, answer, agent"))
                }
            })
            .collect()
    }

    fn settings(&self, mode: Mode) -> Result<Settings> {
        let trust = match self.trust.as_str() {
            "measured" => TrustIn::Measured,
            "always" => TrustIn::Always,
            "never" => TrustIn::Never,
            other => return Err(anyhow!("trust is measured, always or never, not `{other}`")),
        };
        Ok(Settings {
            mode,
            base_url: self.url.clone(),
            model: self.model.clone(),
            timeout_s: self.timeout_s,
            context_tokens: self.context_tokens,
            max_tokens: 300,
            agent_calls: self.agent_calls,
            agent_seconds: 600,
            trust,
            ..Settings::default()
        })
    }

    fn agreement(&self, results: &[CaseResult]) -> Result<Agreement> {
        let settings = self.settings(Mode::Judge)?;
        let llm = Llm::new(&settings).map_err(|e| anyhow!(e))?.context("the mode is off")?;
        let judge = ModelJudge { llm };
        let mut agreement = Agreement::default();
        for result in results {
            let (Some(reply), Some(strings)) = (&result.reply, &result.scores.answer) else {
                continue;
            };
            if result.case.scan.is_some() || result.case.must_contain.is_empty() {
                continue;
            }
            let paths: Vec<&str> = reply.citations.iter().map(|c| c.path.as_str()).collect();
            let model = judge.judge(&result.case, Shown { answer: &reply.answer, paths: &paths });
            agreement.add(strings.passes(), model.ok().map(|v| v.passes()));
        }
        Ok(agreement)
    }
}

fn row(mode: &'static str, results: &[CaseResult]) -> Row {
    let mut row = Row { mode, cases: results.len(), ..Row::default() };
    for result in results {
        row.passed += usize::from(result.passes());
        *row.outcomes.entry(result.outcome.name()).or_default() += 1;
        if let Some(citations) = &result.scores.citations {
            row.citations += citations.checked;
            row.citation_faults += citations.faults.len();
        }
        let Some(reply) = &result.reply else { continue };
        row.ms.push(reply.took_ms);
        let Some(note) = &reply.llm else { continue };
        row.asked += 1;
        *row.of_model.entry(note.outcome.name()).or_default() += 1;
        if note.outcome == runbook_query::llm::note::Outcome::Phrased {
            row.unsupported += unsupported(reply);
        }
        let explained = reply.explain.as_ref().map(|e| &e["llm"]).cloned().unwrap_or_default();
        row.calls += explained["calls"].as_u64().unwrap_or(0);
        row.tokens += explained["tokens"].as_u64().unwrap_or(0);
        for rejected in explained["rejected"].as_array().into_iter().flatten() {
            let fault = rejected["fault"].as_str().unwrap_or("?").to_owned();
            *row.faults.entry(fault).or_default() += 1;
        }
    }
    row.ms.sort_by(f64::total_cmp);
    row
}

/// Exact words of an answer that no quote of its citations holds, by plain search.
fn unsupported(reply: &Reply) -> usize {
    let quotes: String = reply
        .citations
        .iter()
        .map(|c| format!("{}\n{}\n{}\n", c.path, c.heading_path.join("\n"), c.quote))
        .collect::<String>()
        .to_lowercase();
    let all = claims::claims(&reply.answer);
    let tokens = all.iter().flat_map(|c| c.tokens.iter().map(|t| t.text.clone()));
    let words = all.iter().flat_map(|c| c.commands.iter().flat_map(|c| c.words.clone()));
    // Of a number with a unit only the number: the unit may be written in another way.
    let needle = |w: String| {
        let digits: String = w.chars().take_while(|c| c.is_ascii_digit() || *c == '.').collect();
        if digits.is_empty() { w.to_lowercase() } else { digits.trim_end_matches('.').to_owned() }
    };
    tokens.chain(words).map(needle).filter(|w| !quotes.contains(w.as_str())).count()
}

fn fails(rows: &[Row]) -> bool {
    let base = rows.first().map_or(0, |r| r.passed);
    rows.iter().any(|r| {
        let failed = r.outcomes.get(Outcome::Failed.name()).copied().unwrap_or(0);
        r.citation_faults > 0 || r.unsupported > 0 || r.passed < base || failed > 0
    })
}

fn median(sorted: &[f64]) -> f64 {
    sorted.get(sorted.len() / 2).copied().unwrap_or(0.0)
}

fn as_json(row: &Row) -> Value {
    json!({
        "mode": row.mode, "cases": row.cases, "passed": row.passed, "outcomes": row.outcomes,
        "citations": row.citations, "citation_faults": row.citation_faults,
        "unsupported": row.unsupported, "asked": row.asked, "of_model": row.of_model,
        "rejected": row.faults, "calls": row.calls, "tokens": row.tokens,
        "median_ms": median(&row.ms), "trust": row.trust,
    })
}

fn table(rows: &[Row], agreement: Option<Agreement>) -> String {
    let mut out = String::from(
        "| mode | cases | passed | right | wrong | near | lost | refused | false answers | citations hold | unsupported words | asked | kept | phrased | lifted | withdrawn | rejected | degraded | calls | median ms |\n|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n",
    );
    for row in rows {
        let outcome = |name: &str| row.outcomes.get(name).copied().unwrap_or(0);
        let of_model = |name: &str| row.of_model.get(name).copied().unwrap_or(0);
        let _ = writeln!(
            out,
            "| {} | {} | {} | {} | {} | {} | {} | {} | {} | {}/{} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {:.0} |",
            row.mode,
            row.cases,
            row.passed,
            outcome("right"),
            outcome("wrong"),
            outcome("near"),
            outcome("lost"),
            outcome("refused"),
            outcome("false_answer"),
            row.citations - row.citation_faults,
            row.citations,
            row.unsupported,
            row.asked,
            of_model("kept"),
            of_model("phrased"),
            of_model("lifted"),
            of_model("withdrawn"),
            of_model("rejected"),
            of_model("degraded"),
            row.calls,
            median(&row.ms),
        );
    }
    for row in rows.iter().filter(|r| r.asked > 0) {
        let all: usize = row.faults.values().sum();
        let faults: Vec<String> = row.faults.iter().map(|(n, c)| format!("{n} {c}")).collect();
        let _ = writeln!(
            out,
            "{}: the guard rejected {all} of {} generations ({}); trust {}",
            row.mode,
            row.calls,
            faults.join(", "),
            row.trust
        );
    }
    if let Some(a) = agreement {
        let _ = writeln!(
            out,
            "the model as a judge agrees with the strings on {:.1} % (both pass {}, both fault {}, only strings {}, only model {}, no judgement {})",
            a.share() * 100.0,
            a.both_pass,
            a.both_fault,
            a.strings_only,
            a.model_only,
            a.none
        );
    }
    out
}
