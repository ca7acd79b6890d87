//! The gate on a collection with answerable and unanswerable questions.

use crate::corpus::Build;
use crate::metrics::{auc, brier, ece, ratio};
use crate::retrieval;
use anyhow::{Context, Result};
use runbook_query::service::Request;
use serde_json::{Value, json};
use std::path::Path;

/// One judged question: its Confidence, whether it can be answered, and its signals.
pub struct Judged {
    /// The question's id.
    pub id: String,
    /// The Confidence.
    pub confidence: f64,
    /// Whether the collection holds the answer.
    pub answerable: bool,
    /// The explanation's signals.
    pub signals: Value,
}

/// Asks every question that says whether it is answerable.
///
/// # Errors
/// When the collection cannot be read or asked.
pub fn judge(dataset: &Path, build: &Build) -> Result<Vec<Judged>> {
    let collection = retrieval::open(dataset, build)?;
    let rows = collection.queries.iter().filter_map(|q| Some((q, q.answerable?)));
    rows.map(|(query, answerable)| {
        let request = Request { question: query.text.clone(), explain: true, ..Request::default() };
        let reply = collection.service.ask(&request).with_context(|| query.id.clone())?;
        let signals = reply.explain.as_ref().map_or(Value::Null, |e| e["signals"].clone());
        Ok(Judged {
            id: query.id.clone(),
            confidence: f64::from(reply.confidence),
            answerable,
            signals,
        })
    })
    .collect()
}

/// The report over judged questions.
#[must_use]
pub fn report(judged: &[Judged]) -> Value {
    let scored: Vec<(f64, bool)> = judged.iter().map(|j| (j.confidence, j.answerable)).collect();
    let positives = scored.iter().filter(|s| s.1).count();
    let negatives = scored.len() - positives;
    let curve: Vec<Value> = (0..=20)
        .map(|step| {
            let floor = f64::from(step) / 20.0;
            let above = |label: bool| scored.iter().filter(|s| s.1 == label && s.0 >= floor).count();
            json!({"floor": floor, "answered": ratio(above(true), positives), "falsely_answered": ratio(above(false), negatives)})
        })
        .collect();
    let round = |v: f64| (v * 1e4).round() / 1e4;
    json!({
        "n_pos": positives, "n_neg": negatives,
        "auc": round(auc(&scored)), "ece": round(ece(&scored, 10)), "brier": round(brier(&scored)), "curve": curve,
    })
}
