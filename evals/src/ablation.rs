//! The ablation: what each idea of retrieval is worth, one row an idea, on questions with gold sections
//! and on judged collections.
//!
//! A row changes one thing of the retrieval in force and leaves the rest. Figures of questions are hit@1
//! and hit@5 on headings, of collections nDCG@10.

use crate::corpus::{self, Build};
use crate::metrics::ranking;
use crate::questions::{self, Row, same_heading};
use crate::retrieval::{self, Collection};
use anyhow::Result;
use runbook_query::engine::{self, Ask, Policy};
use runbook_query::service::Service;
use runbook_shared::chunk::innermost;
use runbook_shared::retrieval::arms::{Arm, FEATURES, Tuning};
use runbook_shared::retrieval::question::Question;
use runbook_shared::retrieval::search::Found;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// What a row changes.
struct Idea {
    name: String,
    arm: Arm,
    tuning: Tuning,
}

/// The rows: the retrieval in force, other fusions, and it without one thing at a time.
fn ideas() -> Vec<Idea> {
    let in_force = Tuning::default();
    let of = |name: &str, arm| Idea { name: name.to_owned(), arm, tuning: in_force.clone() };
    let mut ideas = vec![
        of("in force", Arm::Hybrid),
        of("BM25 alone", Arm::Bm25),
        of("vectors alone", Arm::Dense),
        of("reciprocal ranks", Arm::Rrf),
        of("plain convex sum", Arm::Convex),
    ];
    let mut without = |name: &str, change: &dyn Fn(&mut Tuning)| {
        let mut tuning = in_force.clone();
        change(&mut tuning);
        ideas.push(Idea { name: name.to_owned(), arm: Arm::Hybrid, tuning });
    };
    for (at, feature) in FEATURES.iter().enumerate() {
        if in_force.ranker[at] > 0.0 {
            without(&format!("without {feature}"), &|t| t.ranker[at] = 0.0);
        } else {
            without(&format!("with {feature}, weight .2"), &|t| t.ranker[at] = 0.2);
        }
    }
    without("without proximity", &|t| t.proximity_share = 0.0);
    without("without putting back what only points elsewhere", &|t| t.pointers_factor = 1.0);
    without("without expansion", &|t| t.expand = false);
    without("fields weigh the same", &|t| t.fields = [1.0; 5]);
    without("without title and trail", &|t| (t.fields[0], t.fields[1]) = (0.0, 0.0));
    without("without whole identifiers", &|t| t.fields[4] = 0.0);
    ideas
}

/// A question with its vector, and what is right.
struct Asked<'a> {
    question: Question,
    vector: Option<Vec<f32>>,
    gold: Gold<'a>,
}

enum Gold<'a> {
    Sections(Row),
    Documents(&'a BTreeMap<String, f64>),
}

/// Measures every idea and returns a table in Markdown.
///
/// # Errors
/// When a corpus, a file or a collection cannot be read.
pub fn table(
    corpora: &[PathBuf],
    files: &[PathBuf],
    datasets: &[PathBuf],
    build: &Build,
) -> Result<String> {
    let ideas = ideas();
    let mut heads = Vec::new();
    let mut cells: Vec<Vec<String>> = vec![Vec::new(); ideas.len()];
    for file in files {
        let mut sums = vec![(0usize, 0usize); ideas.len()];
        let mut asked = 0;
        for dir in corpora {
            let service = corpus::open(dir, build, Policy::default())?;
            let rows = rows(dir, file, &service)?;
            asked += rows.len();
            for (idea, sum) in ideas.iter().zip(&mut sums) {
                for row in &rows {
                    let rank = rank(&service, row, idea)?;
                    sum.0 += usize::from(rank == Some(0));
                    sum.1 += usize::from(rank.is_some_and(|r| r < 5));
                }
            }
        }
        heads.push(format!("{} ({asked}) hit@1, @5", stem(file)));
        for (cell, sum) in cells.iter_mut().zip(sums) {
            cell.push(format!("{} {}", share(sum.0, asked), share(sum.1, asked)));
        }
    }
    for dataset in datasets {
        let collection = retrieval::open(dataset, build)?;
        let asked = judged(&collection)?;
        heads.push(format!("{} ({}) nDCG@10", stem(dataset), asked.len()));
        for (idea, cell) in ideas.iter().zip(&mut cells) {
            let sum = asked.iter().map(|a| ndcg(&collection, a, idea)).sum::<Result<f64>>()?;
            let n = u32::try_from(asked.len().max(1)).unwrap_or(u32::MAX);
            cell.push(format!("{:.3}", sum / f64::from(n)));
        }
    }
    let mut out =
        format!("| Idea | {} |\n|---|{}\n", heads.join(" | "), "---|".repeat(heads.len()));
    for (idea, cell) in ideas.iter().zip(cells) {
        out.push_str(&format!("| {} | {} |\n", idea.name, cell.join(" | ")));
    }
    Ok(out)
}

fn stem(path: &Path) -> String {
    path.file_stem().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default()
}

fn share(n: usize, of: usize) -> String {
    #[expect(clippy::cast_precision_loss, reason = "a few hundred questions")]
    let share = n as f64 / of.max(1) as f64;
    format!("{share:.3}")
}

/// The answerable questions of a file about one corpus that can be read alone.
fn rows<'a>(dir: &Path, file: &Path, service: &Service) -> Result<Vec<Asked<'a>>> {
    let name = dir.file_name().map(|n| n.to_string_lossy().into_owned());
    let mut asked = Vec::new();
    for row in questions::read(file, name.as_deref())? {
        // Rows without a corpus are about the project's own tree.
        let about = row.corpus.is_some() || name.as_deref() == Some("runbooks-sample");
        if !about || row.kind != "answerable" || row.follow_up_to.is_some() || row.gold.is_empty() {
            continue;
        }
        let Ok(question) = Question::parse(&row.question) else { continue };
        let vector = embed(service, &row.question)?;
        asked.push(Asked { question, vector, gold: Gold::Sections(row) });
    }
    Ok(asked)
}

fn judged(collection: &Collection) -> Result<Vec<Asked<'_>>> {
    let mut asked = Vec::new();
    for query in collection.judged() {
        let Ok(question) = Question::parse(&query.text) else { continue };
        let vector = embed(&collection.service, &query.text)?;
        let gold = Gold::Documents(&collection.qrels[&query.id]);
        asked.push(Asked { question, vector, gold });
    }
    Ok(asked)
}

fn embed(service: &Service, text: &str) -> Result<Option<Vec<f32>>> {
    Ok(service.embedder().map(|e| e.embed_question(text)).transpose()?)
}

fn search(service: &Service, asked: &Asked<'_>, idea: &Idea) -> Result<Found> {
    let embedder = service.embedder();
    let sha = embedder.as_ref().map(|e| e.id().model_sha256.as_str()).unwrap_or_default();
    let vector = asked.vector.as_deref().map(|v| (v, sha));
    let ask = Ask {
        question: &asked.question,
        vector,
        scope: None,
        k: 10,
        nearest: 10,
        explain: false,
        exact: None,
    };
    let policy = Policy { arm: idea.arm, tuning: idea.tuning.clone(), ..Policy::default() };
    Ok(engine::search(&service.snapshot().corpora(), &ask, &policy)?)
}

/// The place of the first gold section, from 0.
fn rank(service: &Service, asked: &Asked<'_>, idea: &Idea) -> Result<Option<usize>> {
    let Gold::Sections(row) = &asked.gold else { return Ok(None) };
    let found = search(service, asked, idea)?;
    let corpora = service.snapshot().corpora();
    Ok(found.hits.iter().position(|hit| {
        let (chunk, section) = corpora[hit.corpus].generation.section(hit.section);
        let heading = innermost(&section.heading_path, &chunk.title);
        row.gold.iter().any(|g| g.path == chunk.path && same_heading(&g.heading, heading))
    }))
}

fn ndcg(collection: &Collection, asked: &Asked<'_>, idea: &Idea) -> Result<f64> {
    let Gold::Documents(grades) = asked.gold else { return Ok(0.0) };
    let found = search(&collection.service, asked, idea)?;
    Ok(ranking(&collection.by_document(&found), grades).ndcg_at_10)
}
