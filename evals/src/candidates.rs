//! What retrieval found for each question, with all that a ranker or a gate can be fitted on: one JSON
//! object a line. `evals/fit` reads it.

use crate::corpus::{self, Build};
use crate::questions::{self, Gold, same_heading};
use crate::retrieval;
use anyhow::{Context, Result};
use runbook_query::engine::Policy;
use runbook_query::service::{Request, Service};
use runbook_shared::analyse::TermKind;
use runbook_shared::chunk::innermost;
use runbook_shared::retrieval::arms::{Hit, LookedUp, features};
use runbook_shared::retrieval::corpus::Corpus;
use runbook_shared::retrieval::evidence;
use runbook_shared::retrieval::search::{self, Found};
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;

/// Hits that are kept of a question, best first.
const KEPT: usize = 60;

/// The questions of a file that are about this corpus.
///
/// # Errors
/// When the corpus or the file cannot be read.
pub fn of_questions(
    corpus: &Path,
    file: &Path,
    build: &Build,
    detail: Detail,
) -> Result<Vec<Value>> {
    let service = corpus::open(corpus, build, Policy::default())?;
    let name = corpus.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
    let rows = questions::read(file, Some(&name))?;
    rows.iter()
        .filter(|r| r.follow_up_to.is_none())
        .map(|row| {
            let about = json!({"id": row.id, "group": name, "class": row.class, "kind": row.kind});
            let grade = |path: &str, heading: &str| {
                let same = |g: &&Gold| g.path == path && same_heading(&g.heading, heading);
                f64::from(u8::from(row.gold.iter().any(|g| same(&g))))
            };
            let page = |path: &str| row.gold.iter().any(|g| g.path == path);
            found(&service, &row.question, about, &grade, &page, detail)
        })
        .collect()
}

/// The questions of a judged collection; the grade of a section is that of its document.
///
/// # Errors
/// When the collection cannot be read.
pub fn of_collection(dataset: &Path, build: &Build, detail: Detail) -> Result<Vec<Value>> {
    let collection = retrieval::open(dataset, build)?;
    let name = dataset.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
    let none = std::collections::BTreeMap::new();
    collection
        .queries
        .iter()
        .map(|query| {
            let judged = collection.qrels.get(&query.id).unwrap_or(&none);
            let kind = match query.answerable {
                Some(false) => "unanswerable",
                Some(true) => "answerable",
                None if judged.is_empty() => "unjudged",
                None => "answerable",
            };
            let about = json!({"id": query.id, "group": name, "kind": kind, "standalone": query.standalone});
            let grade = |path: &str, _: &str| {
                let id = collection.document(path);
                id.and_then(|id| judged.get(id)).copied().unwrap_or(0.0)
            };
            let page = |path: &str| grade(path, "") > 0.0;
            found(&collection.service, &query.text, about, &grade, &page, detail)
        })
        .collect()
}

/// What is printed of a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detail {
    /// Its hits with their texts and features.
    Hits,
    /// The gate's signals of the best section alone, as it is and with the gold sections left out.
    Signals,
}

fn found(
    service: &Service,
    question: &str,
    mut about: Value,
    grade: &dyn Fn(&str, &str) -> f64,
    page: &dyn Fn(&str) -> bool,
    detail: Detail,
) -> Result<Value> {
    let request = Request { question: question.to_owned(), ..Request::default() };
    let mut found = service.find(&request).with_context(|| question.to_owned())?;
    let corpora = service.snapshot().corpora();
    let graded = |hit: &Hit| {
        let (chunk, section) = corpora[hit.corpus].generation.section(hit.section);
        let path = chunk.path.as_str();
        (grade(path, innermost(&section.heading_path, &chunk.title)), page(path))
    };
    if detail == Detail::Hits {
        let terms = found.terms.first().map(Vec::as_slice).unwrap_or_default();
        about["question"] = question.into();
        about["rows"] =
            found.hits.iter().take(KEPT).map(|h| row(&corpora, terms, h, graded(h))).collect();
        about["terms"] = terms
            .iter()
            .map(|t| json!({"surface": t.term.surface, "stem": t.term.stem, "whole": t.term.kind == TermKind::Whole, "within": t.term.within, "position": t.term.position, "df": t.df, "idf": t.idf, "corrected": t.corrected}))
            .collect();
        return Ok(about);
    }
    let vector = service.embedder().map(|e| e.embed_question(question)).transpose()?;
    let best = found.hits.first().map(&graded);
    about["gold_section"] = best.is_some_and(|b| b.0 > 0.0).into();
    about["gold_page"] = best.is_some_and(|b| b.1).into();
    about["signals"] = signals(&corpora, &found, vector.as_deref());
    if found.hits.iter().any(|h| graded(h).0 > 0.0) {
        let policy = Policy::default();
        let gold = |h: &Hit| graded(h).0 > 0.0;
        search::leave_out(&corpora, &mut found, gold, policy.arm, &policy.tuning);
        about["left_out"] = signals(&corpora, &found, vector.as_deref());
    }
    Ok(about)
}

/// The gate's signals of the best section, by name; null without any.
fn signals(corpora: &[Arc<Corpus>], found: &Found, vector: Option<&[f32]>) -> Value {
    let Some(best) = found.hits.first() else { return Value::Null };
    let corpus = &corpora[best.corpus];
    let values = evidence::signals(corpus, &found.terms[best.corpus], vector, &found.hits, best);
    let named = evidence::NAMES.iter().zip(values);
    named.map(|(name, value)| ((*name).to_owned(), json!((value * 1e4).round() / 1e4))).collect()
}

fn row(corpora: &[Arc<Corpus>], terms: &[LookedUp], hit: &Hit, (gold, page): (f64, bool)) -> Value {
    let (chunk, section) = corpora[hit.corpus].generation.section(hit.section);
    let trail = format!("{}\n{}", chunk.title, section.heading_path.join("\n"));
    let text = chunk.section_text(section);
    json!({
        "section": hit.section, "path": chunk.path, "trail": trail, "text": text,
        "heading": innermost(&section.heading_path, &chunk.title),
        "gold": gold, "page": page, "f": features(hit), "fused": hit.fused.0,
        "in_text": present(terms, text), "in_trail": present(terms, &trail),
    })
}

/// Which of the terms stand in a text, by number.
fn present(terms: &[LookedUp], text: &str) -> Vec<usize> {
    let all: Vec<&LookedUp> = terms.iter().collect();
    let standing = evidence::standing([text], &all);
    (0..terms.len()).filter(|n| evidence::stands(&terms[*n], &standing)).collect()
}
