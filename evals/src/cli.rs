//! The command line of `runbook-eval`.

use crate::candidates::Detail;
use crate::corpus::Build;
use crate::modes::Modes;
use crate::promote::Known;
use crate::promote::branch::Target;
use crate::run::Run;
use crate::{ablation, candidates, gaps, gate, promote, questions, retrieval, secrets};
use anyhow::Result;
use clap::{Parser, Subcommand};
use serde_json::{Value, json};
use std::io::Write;
use std::path::PathBuf;

/// Measure retrieval, refusal and citations
///
/// Exit codes: 0 done, 1 failed or below a gate, 2 usage.
#[derive(Parser, Debug)]
#[command(name = "runbook-eval", version)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    /// Retrieval by arm on a collection: corpus.jsonl, queries.jsonl, qrels.tsv
    Retrieval {
        /// Directory of the collection
        #[arg(long, value_name = "DIR")]
        dataset: PathBuf,
        /// Print JSON
        #[arg(long)]
        json: bool,
        /// Share of the lexical arm in the fusion, for trying
        #[arg(long, value_name = "SHARE")]
        lexical_share: Option<f32>,
        /// Fail when nDCG@10 of the hybrid arm is below this
        #[arg(long, value_name = "NDCG")]
        min_ndcg: Option<f64>,
        #[command(flatten)]
        build: Build,
    },
    /// Questions with gold sections over a corpus
    Questions {
        /// Directory of the corpus; may be repeated, each takes its own rows
        #[arg(long, value_name = "DIR", required = true)]
        corpus: Vec<PathBuf>,
        /// File of questions
        #[arg(long, value_name = "FILE")]
        questions: PathBuf,
        /// Print JSON
        #[arg(long)]
        json: bool,
        /// Fail when heading hit@5 of the answerable rows is below this
        #[arg(long, value_name = "SHARE")]
        min_hit_at_5: Option<f64>,
        #[command(flatten)]
        build: Build,
    },
    /// What retrieval found for each question, one JSON object a line, for fitting
    Candidates {
        /// Directory of the corpus; may be repeated, each takes its own rows
        #[arg(long, value_name = "DIR", requires = "questions")]
        corpus: Vec<PathBuf>,
        /// File of questions
        #[arg(long, value_name = "FILE", requires = "corpus")]
        questions: Option<PathBuf>,
        /// Directory of a judged collection
        #[arg(long, value_name = "DIR", required_unless_present = "questions")]
        dataset: Option<PathBuf>,
        /// Print the gate's signals instead of the hits
        #[arg(long)]
        signals: bool,
        #[command(flatten)]
        build: Build,
    },
    /// What each idea of retrieval is worth: a table in Markdown, one row an idea
    Ablation {
        /// Directory of a corpus; may be repeated, each takes its own rows
        #[arg(long, value_name = "DIR", requires = "questions")]
        corpus: Vec<PathBuf>,
        /// File of questions; may be repeated
        #[arg(long, value_name = "FILE", requires = "corpus")]
        questions: Vec<PathBuf>,
        /// Directory of a judged collection; may be repeated
        #[arg(long, value_name = "DIR", required_unless_present = "questions")]
        dataset: Vec<PathBuf>,
        #[command(flatten)]
        build: Build,
    },
    /// The gate on a collection whose questions say whether they are answerable
    Gate {
        /// Directory of the collection
        #[arg(long, value_name = "DIR")]
        dataset: PathBuf,
        /// Print JSON
        #[arg(long)]
        json: bool,
        /// Print the signals of every question instead, one JSON object a line
        #[arg(long, conflicts_with = "min_auc")]
        signals: bool,
        /// Fail when the AUC of Confidence is below this
        #[arg(long, value_name = "AUC")]
        min_auc: Option<f64>,
        #[command(flatten)]
        build: Build,
    },
    /// The project's own suites of cases
    ///
    /// Exits with 1 when a total is below the baseline, a gold section is not approved, an approval
    /// has no case, or, with --strict, a ranking is not as it was. UPDATE=1 in the environment
    /// rewrites rankings.
    Run(Box<Run>),
    /// A suite mode by mode with a language model: one table, and how often the guard acted
    Modes(Box<Modes>),
    /// Reports of users to cases: asks for what is missing, leaves duplicates out
    Promote {
        /// Directory `feedback` in the daemon's state directory
        #[arg(long, value_name = "DIR")]
        feedback: PathBuf,
        /// File of cases to append to; with --branch a path from the root of the repository
        #[arg(long, value_name = "FILE", default_value = "feedback-cases.jsonl")]
        out: PathBuf,
        /// Commit them on this new branch, from HEAD; the work tree stays as it is
        #[arg(long, value_name = "NAME")]
        branch: Option<String>,
        /// The repository of --branch: a directory in it, or a bare one
        #[arg(long, value_name = "DIR", default_value = ".", requires = "branch")]
        repository: PathBuf,
        /// Files of cases that are there already; may be repeated
        #[arg(long, value_name = "FILE")]
        cases: Vec<PathBuf>,
        /// Ask nothing: leave what is missing for another time
        #[arg(long)]
        no_input: bool,
    },
    /// Refused questions by topic: which headings are worth writing
    Gaps {
        /// Directory `feedback` in the daemon's state directory
        #[arg(long, value_name = "DIR")]
        feedback: PathBuf,
        /// Embedding model, or `none`
        #[arg(long, value_name = "NAME|none")]
        embedder: Option<String>,
        /// How many to print
        #[arg(long, value_name = "N", default_value_t = 25)]
        most: usize,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Secrets in trees: each finding without its value, how fast they are found, and their precision
    Secrets {
        /// Directory of trees
        #[arg(value_name = "DIR")]
        trees: PathBuf,
        /// File of verdicts: path, line, rule, hash of the value, `true` or `false`
        #[arg(long, value_name = "FILE")]
        labels: Option<PathBuf>,
        /// Print the findings, in the form of that file
        #[arg(long)]
        list: bool,
        /// Fail when the precision is below this
        #[arg(long, value_name = "SHARE", requires = "labels")]
        min_precision: Option<f64>,
        /// Fail when fewer megabytes a second are read
        #[arg(long, value_name = "MB/S")]
        min_speed: Option<f64>,
    },
}

/// Runs the command and returns the exit code.
#[must_use]
pub fn main(cli: Cli) -> u8 {
    match run(cli.command) {
        Ok(code) => code,
        Err(e) => {
            // When stderr is closed there is nobody to tell.
            let _ = writeln!(std::io::stderr(), "runbook-eval: {e:#}");
            1
        }
    }
}

#[expect(clippy::too_many_lines, reason = "one arm a command")]
fn run(command: Command) -> Result<u8> {
    match command {
        Command::Retrieval { dataset, json, lexical_share, min_ndcg, build } => {
            let report = retrieval::measure(&dataset, &build, lexical_share)?;
            print(&if json { pretty(&report) } else { retrieval_table(&report) })?;
            let reached = report["arms"]["hybrid"]["ndcg_at_10"].as_f64().unwrap_or(0.0);
            Ok(u8::from(min_ndcg.is_some_and(|min| reached < min)))
        }
        Command::Questions { corpus, questions: file, json, min_hit_at_5, build } => {
            let mut outcomes = Vec::new();
            for dir in &corpus {
                outcomes.extend(questions::measure(dir, &file, &build)?);
            }
            let report = questions::report(&outcomes);
            print(&if json { pretty(&report) } else { questions_table(&report) })?;
            let reached = report["heading"]["hit_at_5"].as_f64().unwrap_or(0.0);
            Ok(u8::from(min_hit_at_5.is_some_and(|min| reached < min)))
        }
        Command::Candidates { corpus, questions: file, dataset, signals, build } => {
            let detail = if signals { Detail::Signals } else { Detail::Hits };
            let mut rows = Vec::new();
            for (dir, file) in corpus.iter().flat_map(|dir| file.iter().map(move |f| (dir, f))) {
                rows.extend(candidates::of_questions(dir, file, &build, detail)?);
            }
            if let Some(dataset) = &dataset {
                rows.extend(candidates::of_collection(dataset, &build, detail)?);
            }
            for row in rows {
                print(&format!("{row}\n"))?;
            }
            Ok(0)
        }
        Command::Ablation { corpus, questions, dataset, build } => {
            print(&ablation::table(&corpus, &questions, &dataset, &build)?)?;
            Ok(0)
        }
        Command::Secrets { trees, labels, list, min_precision, min_speed } => {
            let found = secrets::find(&trees)?;
            if list {
                print(&found.table())?;
            }
            let judged = labels.map(|file| found.judge(&file)).transpose()?;
            print(&found.summary(judged.as_ref()))?;
            let is_slow = min_speed.is_some_and(|min| found.mb_per_s < min);
            let is_wrong = judged.is_some_and(|j| {
                !j.unknown.is_empty() || min_precision.is_some_and(|min| j.precision() < min)
            });
            Ok(u8::from(is_slow || is_wrong))
        }
        Command::Gate { dataset, json: _, signals, min_auc, build } => {
            let mut reached = 1.0;
            let judged = gate::judge(&dataset, &build)?;
            if signals {
                for j in &judged {
                    print(&format!(
                        "{}\n",
                        json!({"id": j.id, "label": j.answerable, "signals": j.signals})
                    ))?;
                }
            } else {
                let report = gate::report(&judged);
                reached = report["auc"].as_f64().unwrap_or(0.0);
                print(&pretty(&report))?;
            }
            Ok(u8::from(min_auc.is_some_and(|min| reached < min)))
        }
        Command::Promote { feedback, out, branch, repository, cases, no_input } => {
            let target = branch.map(|b| Target::new(&repository, &b, &out)).transpose()?;
            promote_command(&feedback, &out, target.as_ref(), cases, no_input)
        }
        Command::Gaps { feedback, embedder, most, json } => {
            let (questions, unread) = gaps::read(&feedback)?;
            warn_unread(unread)?;
            let embedder = gaps::embedder(embedder.as_deref())?;
            let embedder = embedder.as_ref().map(|e| e as &dyn runbook_shared::embed::Embedder);
            let found = gaps::group(&questions, embedder)?;
            print(&if json {
                pretty(&gaps::to_json(&questions, &found))
            } else {
                gaps::text(&questions, &found, most)
            })?;
            Ok(0)
        }
        Command::Modes(modes) => {
            let (text, failed) = modes.run()?;
            print(&text)?;
            Ok(u8::from(failed))
        }
        Command::Run(run) => {
            let done = run.run(std::env::var_os("UPDATE").is_some_and(|v| v == "1"))?;
            print(&done.text)?;
            Ok(u8::from(done.failed))
        }
    }
}

fn promote_command(
    feedback: &std::path::Path,
    out: &std::path::Path,
    target: Option<&Target>,
    mut cases: Vec<PathBuf>,
    no_input: bool,
) -> Result<u8> {
    let (reports, unread) = promote::read(feedback)?;
    warn_unread(unread)?;
    // What an earlier run has written is known, too.
    cases.extend((target.is_none() && out.exists()).then(|| out.to_owned()));
    let mut known = Known::of(&cases)?;
    if let Some(target) = target {
        known.add(&target.earlier()?, target.file())?;
    }
    let (mut input, mut talk) = (std::io::stdin().lock(), std::io::stderr());
    let promoted = promote::promote(&reports, &known, &mut |report| {
        if no_input { Ok(None) } else { promote::ask(report, &mut input, &mut talk) }
    })?;
    let place = match target {
        // An empty commit is nothing to review.
        Some(_) if promoted.cases.is_empty() => "no branch".to_owned(),
        Some(target) => format!("{} of commit {}", target.file(), target.commit(&promoted.cases)?),
        None => {
            promote::append(out, &promoted.cases)?;
            out.display().to_string()
        }
    };
    print(&format!(
        "{} reports: {} new cases in {place}, {} duplicates, {} without a verdict\n",
        reports.len(),
        promoted.cases.len(),
        promoted.duplicates,
        promoted.pending.len()
    ))?;
    for question in &promoted.pending {
        print(&format!("pending: {}\n", question.replace('\n', " ")))?;
    }
    Ok(0)
}

fn warn_unread(lines: usize) -> Result<()> {
    if lines > 0 {
        writeln!(std::io::stderr(), "runbook-eval: {lines} lines cannot be read; left out")?;
    }
    Ok(())
}

fn pretty(value: &Value) -> String {
    format!("{}\n", serde_json::to_string_pretty(value).unwrap_or_default())
}

fn print(text: &str) -> Result<()> {
    Ok(std::io::stdout().write_all(text.as_bytes())?)
}

fn retrieval_table(report: &Value) -> String {
    let mut out = format!(
        "{} ({} questions)\n{:<8}{:>10}{:>10}{:>10}{:>10}\n",
        report["dataset"].as_str().unwrap_or(""),
        report["queries"],
        "arm",
        "nDCG@10",
        "recall@5",
        "MRR@10",
        "hit@1"
    );
    for (arm, values) in report["arms"].as_object().into_iter().flatten() {
        out.push_str(&format!(
            "{arm:<8}{:>10.3}{:>10.3}{:>10.3}{:>10.3}\n",
            values["ndcg_at_10"].as_f64().unwrap_or(0.0),
            values["recall_at_5"].as_f64().unwrap_or(0.0),
            values["mrr_at_10"].as_f64().unwrap_or(0.0),
            values["hit_at_1"].as_f64().unwrap_or(0.0)
        ));
    }
    out
}

fn questions_table(report: &Value) -> String {
    let mut out =
        format!("{} questions, {} answerable\n", report["questions"], report["answerable"]);
    for what in ["heading", "page"] {
        let hit = |k: &str| report[what][k].as_f64().unwrap_or(0.0);
        out.push_str(&format!(
            "{what:<8} hit@1 {:.3}  hit@3 {:.3}  hit@5 {:.3}\n",
            hit("hit_at_1"),
            hit("hit_at_3"),
            hit("hit_at_5")
        ));
    }
    for (kind, bands) in report["bands"].as_object().into_iter().flatten() {
        out.push_str(&format!("{kind:<18} {bands}\n"));
    }
    out.push_str(&format!(
        "near-miss AUC {:.3}\nlost {}\n",
        report["near_miss_auc"].as_f64().unwrap_or(0.0),
        report["lost"]
    ));
    for row in report["misses"].as_array().into_iter().flatten() {
        out.push_str(&format!("miss {row}\n"));
    }
    for row in report["wrong_answers"].as_array().into_iter().flatten() {
        out.push_str(&format!(
            "wrong {} {:.2} {} | cited {} | gold {}\n",
            row["id"],
            row["confidence"].as_f64().unwrap_or(0.0),
            row["question"],
            row["cited"],
            row["gold"]
        ));
    }
    out
}
