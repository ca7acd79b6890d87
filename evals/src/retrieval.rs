//! Retrieval on a judged collection: corpus.jsonl, queries.jsonl, qrels.tsv.

use crate::corpus::{self, Build};
use crate::metrics::{Ranking, ranking};
use anyhow::{Context, Result, anyhow};
use runbook_query::engine::{self, Ask, Policy};
use runbook_query::service::Service;
use runbook_shared::retrieval::arms::Arm;
use runbook_shared::retrieval::question::Question;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The arms that are compared, by the name in the report.
pub const ARMS: [(&str, Arm); 4] =
    [("bm25", Arm::Bm25), ("dense", Arm::Dense), ("rrf", Arm::Rrf), ("hybrid", Arm::Hybrid)];

#[derive(Deserialize)]
struct Doc {
    id: String,
    #[serde(default)]
    title: Option<String>,
    text: String,
}

/// A question of a collection.
#[derive(Clone, Debug, Deserialize)]
pub struct Query {
    /// Its id.
    pub id: String,
    /// Its text.
    pub text: String,
    /// Whether the collection holds the answer, where the collection says so.
    #[serde(default)]
    pub answerable: Option<bool>,
    /// False for a turn of a conversation that cannot be read alone.
    #[serde(default)]
    pub standalone: Option<bool>,
}

/// A collection that has been ingested.
pub struct Collection {
    /// The service over it.
    pub service: Service,
    /// Its questions.
    pub queries: Vec<Query>,
    /// Grades by question and document.
    pub qrels: BTreeMap<String, BTreeMap<String, f64>>,
    /// Document by path.
    documents: BTreeMap<String, String>,
}

/// Writes a collection's documents as Markdown files and ingests them.
///
/// # Errors
/// When a file is missing or not valid.
pub fn open(dataset: &Path, build: &Build) -> Result<Collection> {
    let name = dataset.file_name().map_or_else(String::new, |n| n.to_string_lossy().into_owned());
    let dir = build.cache.join("sources").join(&name);
    let mut documents = BTreeMap::new();
    fs::create_dir_all(&dir)?;
    for line in read_maybe_zst(&dataset.join("corpus.jsonl"))?.lines() {
        let doc: Doc =
            serde_json::from_str(line).with_context(|| format!("{name}/corpus.jsonl"))?;
        let path = format!("{}.md", &blake3::hash(doc.id.as_bytes()).to_hex()[..16]);
        let title = doc.title.unwrap_or_default();
        let text = if title.is_empty() {
            doc.text
        } else {
            format!("---\ntitle: {}\n---\n\n{}", json!(title), doc.text)
        };
        let file = dir.join(&path);
        if fs::read_to_string(&file).ok().as_deref() != Some(&text) {
            fs::write(&file, text)?;
        }
        documents.insert(path, doc.id);
    }
    for entry in fs::read_dir(&dir)? {
        let entry = entry?;
        if !documents.contains_key(entry.file_name().to_string_lossy().as_ref()) {
            fs::remove_file(entry.path())?;
        }
    }
    let queries = read_maybe_zst(&dataset.join("queries.jsonl"))?
        .lines()
        .map(|l| serde_json::from_str(l).with_context(|| format!("{name}/queries.jsonl")))
        .collect::<Result<Vec<Query>>>()?;
    let mut qrels: BTreeMap<String, BTreeMap<String, f64>> = BTreeMap::new();
    for line in read_maybe_zst(&dataset.join("qrels.tsv"))?.lines() {
        let fields: Vec<&str> = line.split('\t').collect();
        let [query, document, grade] = fields[..] else { continue };
        let grade = grade.parse().with_context(|| format!("{name}/qrels.tsv: {line}"))?;
        qrels.entry(query.to_owned()).or_default().insert(document.to_owned(), grade);
    }
    Ok(Collection {
        service: corpus::open(&dir, build, Policy::default())?,
        queries,
        qrels,
        documents,
    })
}

fn read_maybe_zst(path: &Path) -> Result<String> {
    if path.exists() {
        return fs::read_to_string(path).with_context(|| path.display().to_string());
    }
    let packed = PathBuf::from(format!("{}.zst", path.display()));
    let output = Command::new("zstd")
        .arg("-dc")
        .arg(&packed)
        .output()
        .context("zstd is needed to read the collection")?;
    if !output.status.success() {
        return Err(anyhow!("{}: {}", packed.display(), String::from_utf8_lossy(&output.stderr)));
    }
    Ok(String::from_utf8(output.stdout)?)
}

/// Measures every arm and returns the report.
///
/// # Errors
/// When the collection cannot be read or searched.
pub fn measure(dataset: &Path, build: &Build, share: Option<f32>) -> Result<Value> {
    let collection = open(dataset, build)?;
    let mut arms = serde_json::Map::new();
    for (name, arm) in ARMS {
        let mut policy = Policy { arm, ..Policy::default() };
        if let Some(share) = share {
            policy.tuning.lexical_share = share;
        }
        let sums = measure_arm(&collection, &policy)?;
        arms.insert(name.into(), sums);
    }
    Ok(
        json!({"dataset": dataset.display().to_string(), "queries": collection.judged().len(), "arms": arms}),
    )
}

impl Collection {
    /// The document that a path stands for.
    #[must_use]
    pub fn document(&self, path: &str) -> Option<&str> {
        self.documents.get(path).map(String::as_str)
    }

    /// The questions with at least one relevant document.
    #[must_use]
    pub fn judged(&self) -> Vec<&Query> {
        self.queries
            .iter()
            .filter(|q| self.qrels.get(&q.id).is_some_and(|g| g.values().any(|v| *v > 0.0)))
            .collect()
    }

    /// The documents for a question, best first, each by its best section.
    ///
    /// # Errors
    /// When the index cannot be read.
    pub fn rank(&self, text: &str, policy: &Policy) -> Result<Vec<&str>> {
        let Ok(question) = Question::parse(text) else { return Ok(Vec::new()) };
        let corpora = self.service.snapshot().corpora();
        let embedder = self.service.embedder();
        let vector = embedder.as_ref().map(|e| e.embed_question(text)).transpose()?;
        let sha = embedder.as_ref().map(|e| e.id().model_sha256.clone()).unwrap_or_default();
        let ask = Ask {
            question: &question,
            vector: vector.as_deref().map(|v| (v, sha.as_str())),
            scope: None,
            k: 10,
            explain: false,
            exact: None,
        };
        let found = engine::search(&corpora, &ask, policy)?;
        let mut ranked: Vec<&str> = Vec::new();
        for hit in &found.hits {
            let path = &corpora[hit.corpus].generation.section(hit.section).0.path;
            let Some(id) = self.documents.get(path) else { continue };
            if !ranked.contains(&id.as_str()) {
                ranked.push(id);
            }
        }
        Ok(ranked)
    }
}

fn measure_arm(collection: &Collection, policy: &Policy) -> Result<Value> {
    let mut sum = Ranking::default();
    let judged = collection.judged();
    for query in &judged {
        let ranked = collection.rank(&query.text, policy)?;
        let r = ranking(&ranked, &collection.qrels[&query.id]);
        sum.ndcg_at_10 += r.ndcg_at_10;
        sum.recall_at_5 += r.recall_at_5;
        sum.mrr_at_10 += r.mrr_at_10;
        sum.hit_at_1 += r.hit_at_1;
    }
    let n = f64::from(u32::try_from(judged.len().max(1))?);
    let round = |v: f64| (v / n * 1e4).round() / 1e4;
    Ok(json!({
        "ndcg_at_10": round(sum.ndcg_at_10),
        "recall_at_5": round(sum.recall_at_5),
        "mrr_at_10": round(sum.mrr_at_10),
        "hit_at_1": round(sum.hit_at_1),
    }))
}
