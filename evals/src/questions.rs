//! Questions with gold sections over a corpus: hits, refusals and bands by kind, wrong answers.

use crate::corpus::{self, Build};
use crate::metrics::{auc, ratio};
use anyhow::{Context, Result};
use runbook_query::engine::Policy;
use runbook_query::reply::{Band, Reply};
use runbook_query::service::{Request, Service};
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// A gold section.
#[derive(Clone, Debug, Deserialize)]
pub struct Gold {
    /// Path of the document.
    pub path: String,
    /// Heading.
    pub heading: String,
}

/// A row of a question file.
#[derive(Clone, Debug, Deserialize)]
pub struct Row {
    /// Its id.
    pub id: String,
    /// The corpus it is about, where the file covers several.
    #[serde(default)]
    pub corpus: Option<String>,
    /// The question.
    pub question: String,
    /// `answerable`, or a kind of refusal; cases of the suite say it by `expect` and `class`.
    #[serde(default)]
    pub kind: String,
    /// `answer` or `refuse`.
    #[serde(default)]
    expect: Option<String>,
    /// What the case tests.
    #[serde(default)]
    pub class: Option<String>,
    /// The case this one follows up on; it cannot be read alone.
    #[serde(default)]
    pub follow_up_to: Option<String>,
    /// Any one of these is right.
    #[serde(default)]
    pub gold: Vec<Gold>,
}

/// What one question came to.
pub struct Outcome {
    /// The row.
    pub row: Row,
    /// The reply.
    pub reply: Reply,
    /// Rank of the first gold heading, from 1.
    pub heading_rank: Option<usize>,
    /// Rank of the first gold page.
    pub page_rank: Option<usize>,
}

/// Reads the rows of a file, those of one corpus where `corpus` is given.
///
/// # Errors
/// When the file is missing or not valid.
pub fn read(file: &Path, corpus: Option<&str>) -> Result<Vec<Row>> {
    let text = fs::read_to_string(file).with_context(|| file.display().to_string())?;
    let mut rows = Vec::new();
    for (n, line) in (1..).zip(text.lines()).filter(|(_, l)| !l.trim().is_empty()) {
        let mut row: Row =
            serde_json::from_str(line).with_context(|| format!("{} line {n}", file.display()))?;
        if let (true, Some(expect)) = (row.kind.is_empty(), &row.expect) {
            row.kind = if expect == "answer" {
                "answerable".into()
            } else {
                row.class.clone().unwrap_or_default()
            };
        }
        if corpus.is_none() || row.corpus.is_none() || row.corpus.as_deref() == corpus {
            rows.push(row);
        }
    }
    Ok(rows)
}

/// The sections of a reply in order: citations and related, or the nearest of a refusal.
#[must_use]
pub fn listed(reply: &Reply) -> Vec<(String, String)> {
    let cited =
        reply.citations.iter().chain(&reply.related).map(|c| (c.path.clone(), c.heading.clone()));
    let near =
        reply.refusal.iter().flat_map(|r| &r.nearest).map(|n| (n.path.clone(), n.heading.clone()));
    let mut list: Vec<(String, String)> = Vec::new();
    for entry in cited.chain(near) {
        if !list.contains(&entry) {
            list.push(entry);
        }
    }
    list
}

/// Whether two headings are the same but for markup, spacing and case.
#[must_use]
pub fn same_heading(a: &str, b: &str) -> bool {
    let plain = |t: &str| {
        t.replace(['`', '*', '_'], "")
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ")
            .to_lowercase()
    };
    plain(a) == plain(b)
}

/// Asks every row.
///
/// # Errors
/// When a question cannot be asked.
pub fn ask_all(service: &Service, rows: Vec<Row>) -> Result<Vec<Outcome>> {
    rows.into_iter()
        .map(|row| {
            let request =
                Request { question: row.question.clone(), explain: true, ..Request::default() };
            let reply = service.ask(&request).with_context(|| row.id.clone())?;
            let list = listed(&reply);
            let heading_rank = list
                .iter()
                .position(|(p, h)| {
                    row.gold.iter().any(|g| g.path == *p && same_heading(&g.heading, h))
                })
                .map(|r| r + 1);
            let page_rank =
                list.iter().position(|(p, _)| row.gold.iter().any(|g| g.path == *p)).map(|r| r + 1);
            Ok(Outcome { row, reply, heading_rank, page_rank })
        })
        .collect()
}

/// Measures a corpus against a question file.
///
/// # Errors
/// When the corpus or the file cannot be read.
pub fn measure(corpus: &Path, file: &Path, build: &Build) -> Result<Vec<Outcome>> {
    let service = corpus::open(corpus, build, Policy::default())?;
    let name = corpus.file_name().map(|n| n.to_string_lossy().into_owned());
    ask_all(&service, read(file, name.as_deref())?)
}

/// The report over outcomes.
#[must_use]
pub fn report(outcomes: &[Outcome]) -> Value {
    let answerable: Vec<&Outcome> =
        outcomes.iter().filter(|o| o.row.kind == "answerable").collect();
    let hits = |rank: &dyn Fn(&Outcome) -> Option<usize>, k: usize| {
        ratio(
            answerable.iter().filter(|o| rank(o).is_some_and(|r| r <= k)).count(),
            answerable.len(),
        )
    };
    let at = |rank: &dyn Fn(&Outcome) -> Option<usize>| json!({"hit_at_1": hits(rank, 1), "hit_at_3": hits(rank, 3), "hit_at_5": hits(rank, 5)});
    let mut bands: BTreeMap<&str, BTreeMap<&str, usize>> = BTreeMap::new();
    for o in outcomes {
        *bands.entry(&o.row.kind).or_default().entry(o.reply.band.name()).or_default() += 1;
    }
    let lost = answerable.iter().filter(|o| match o.reply.band {
        Band::Nothing => true,
        Band::Closest => o.heading_rank.is_none(),
        Band::Answer => false,
    });
    let near_miss: Vec<(f64, bool)> = outcomes
        .iter()
        .filter(|o| o.row.kind == "answerable" || o.row.kind == "near_miss")
        .map(|o| (f64::from(o.reply.confidence), o.row.kind == "answerable"))
        .collect();
    json!({
        "questions": outcomes.len(),
        "answerable": answerable.len(),
        "heading": at(&|o| o.heading_rank),
        "page": at(&|o| o.page_rank),
        "bands": bands,
        "false_refusals": answerable.iter().filter(|o| o.reply.band != Band::Answer).map(|o| &o.row.id).collect::<Vec<_>>(),
        "lost": lost.map(|o| &o.row.id).collect::<Vec<_>>(),
        "near_miss_auc": auc(&near_miss),
        "wrong_answers": outcomes.iter().filter(|o| o.reply.band == Band::Answer && o.heading_rank.is_none_or(|r| r > 1)).map(wrong).collect::<Vec<_>>(),
        "misses": answerable.iter().filter(|o| o.heading_rank.is_none()).map(|o| json!({"id": o.row.id, "question": o.row.question, "gold": o.row.gold.first().map(|g| format!("{}#{}", g.path, g.heading)), "listed": listed(&o.reply)})).collect::<Vec<_>>(),
    })
}

fn wrong(o: &Outcome) -> Value {
    json!({
        "id": o.row.id, "kind": o.row.kind, "question": o.row.question, "confidence": o.reply.confidence,
        "cited": o.reply.citations.first().map(|c| format!("{}#{}", c.path, c.heading)),
        "gold": o.row.gold.first().map(|g| format!("{}#{}", g.path, g.heading)),
        "signals": o.reply.explain.as_ref().map(|e| e["signals"].clone()),
    })
}
