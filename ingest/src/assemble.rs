//! Writes a draft: the documents' bytes, chunks.jsonl, both indexes; and measures the graph.

use crate::document::Document;
use crate::embedding::{self, EmbeddingError, Windows};
use crate::progress::Progress;
use crate::vector_cache::VectorCache;
use runbook_shared::chunk::{Chunk, DocumentRecord};
use runbook_shared::embed::Embedder;
use runbook_shared::error::{IoContext, PathError};
use runbook_shared::failpoint::reach;
use runbook_shared::generation::manifest::GraphReport;
use runbook_shared::generation::publish::Draft;
use runbook_shared::lexical::{LexicalDoc, LexicalError, LexicalWriter};
use runbook_shared::limits::GRAPH_SERVES_FROM;
use runbook_shared::markdown::plain;
use runbook_shared::vectors::{self, Contents, VectorError, VectorIndex, VectorSearch};
use serde::Serialize;
use std::path::Path;

/// Why a draft cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum AssembleError {
    /// A file operation failed.
    #[error(transparent)]
    File(#[from] PathError),
    /// The lexical index failed.
    #[error(transparent)]
    Lexical(#[from] LexicalError),
    /// The vector index failed.
    #[error(transparent)]
    Vectors(#[from] VectorError),
    /// Embedding failed.
    #[error(transparent)]
    Embedding(#[from] EmbeddingError),
}

/// Writes docs/, documents.jsonl and chunks.jsonl.
///
/// # Errors
/// When a file cannot be written.
pub fn write_text(draft: &Draft, documents: &[Document]) -> Result<(), AssembleError> {
    for document in documents {
        draft.write(&Path::new("docs").join(&document.record.path), &document.bytes)?;
    }
    let records: Vec<&DocumentRecord> = documents.iter().map(|d| &d.record).collect();
    draft.write(Path::new("documents.jsonl"), &json_lines(&records))?;
    let chunks: Vec<&Chunk> = documents.iter().flat_map(|d| &d.chunks).collect();
    draft.write(Path::new("chunks.jsonl"), &json_lines(&chunks))?;
    Ok(())
}

fn json_lines<T: Serialize>(items: &[T]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for item in items {
        serde_json::to_writer(&mut bytes, item).expect("records of strings and numbers serialise");
        bytes.push(b'\n');
    }
    bytes
}

/// Writes lexical/ and returns the number of sections.
///
/// # Errors
/// When the index cannot be written.
pub fn write_lexical(draft: &Draft, chunks: &[Chunk]) -> Result<u64, AssembleError> {
    let dir = draft.dir().join("lexical");
    std::fs::create_dir(&dir).at("create directory", &dir)?;
    let mut writer = LexicalWriter::create(&dir)?;
    reach("lexical.created");
    let mut number = 0;
    for chunk in chunks {
        for section in &chunk.sections {
            let plain = plain(chunk.section_text(section));
            // A heading without text of its own is in the section's text, but not always in its trail.
            let own = section.heading_path.iter().map(String::as_str);
            let further =
                plain.headings.lines().filter(|h| !section.heading_path.iter().any(|t| t == h));
            let trail: Vec<&str> =
                own.chain(further).filter(|h| !h.is_empty() && *h != chunk.title).collect();
            let trail = trail.join(" / ");
            let doc = LexicalDoc {
                title: &chunk.title,
                trail: &trail,
                prose: &plain.prose,
                code: &plain.code,
            };
            writer.add(number, &doc)?;
            number += 1;
        }
    }
    reach("lexical.filled");
    writer.finish()?;
    reach("lexical.committed");
    Ok(number)
}

/// What [`write_vectors`] did.
pub struct VectorsWritten {
    /// Number of windows.
    pub windows: u64,
    /// Windows whose vector was known.
    pub reused: u64,
    /// How the graph does.
    pub graph: GraphReport,
}

/// What [`write_vectors`] writes.
pub struct VectorsOf<'a> {
    /// The windows.
    pub windows: &'a Windows,
    /// The verified vector index of the generation before, whose graph is extended.
    pub before: Option<&'a Path>,
}

/// Embeds what is new, writes vectors/ and measures the graph.
///
/// # Errors
/// When the model fails or a file cannot be written.
pub fn write_vectors(
    draft: &Draft,
    of: &VectorsOf<'_>,
    cache: &mut VectorCache,
    embedder: &dyn Embedder,
    progress: &Progress,
) -> Result<VectorsWritten, AssembleError> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let windows = of.windows;
    let reused = embedding::fill(windows, cache, embedder, threads, progress)?;
    let dim = embedder.id().dim;
    let all = embedding::rows(windows, cache, dim as usize);
    let contents = Contents {
        dim,
        rows: &all.rows,
        sections: &windows.sections,
        spans: &all.spans,
        span_ends: &all.span_ends,
    };
    let dir = draft.dir().join("vectors");
    let write = |before| -> Result<GraphReport, AssembleError> {
        std::fs::create_dir(&dir).at("create directory", &dir)?;
        Ok(measure_graph(&vectors::write(&dir, &contents, before)?))
    };
    let mut graph = write(of.before)?;
    if of.before.is_some() && graph.recall_at_10 < RECALL_WANTED {
        tracing::info!(
            "the extended graph finds {} of the nearest: built anew",
            graph.recall_at_10
        );
        std::fs::remove_dir_all(&dir).at("remove", &dir)?;
        graph = write(None)?;
    }
    Ok(VectorsWritten { windows: windows.sections.len() as u64, reused, graph })
}

/// Recall of the graph wanted before it may serve.
const RECALL_WANTED: f64 = 0.99;
/// How many of the corpus's own vectors are asked.
const PROBES: usize = 200;

/// Raises the candidates kept until the graph finds what the scan finds.
fn measure_graph(index: &VectorIndex) -> GraphReport {
    let count = index.len();
    let step = (count / PROBES).max(1);
    let probes: Vec<usize> = (0..count).step_by(step).take(PROBES).collect();
    let all = 0..u32::MAX;
    // The scan is what serves where the graph does not.
    let nearest = |probe: usize, how| index.search(index.row(probe), &all, 10, how);
    let truth: Vec<_> = probes.iter().map(|p| nearest(*p, VectorSearch::Scan)).collect();
    let mut report = GraphReport { ef: 0, recall_at_10: 1.0, serves: false };
    for ef in [64, 128, 256, 512, 1024] {
        let (mut found, mut wanted) = (0usize, 0usize);
        for (probe, truth) in probes.iter().zip(&truth) {
            let hits = nearest(*probe, VectorSearch::Graph { ef });
            wanted += truth.len();
            found += truth.iter().filter(|t| hits.iter().any(|h| h.0 == t.0)).count();
        }
        #[expect(clippy::cast_precision_loss, reason = "a few thousand")]
        let recall = if wanted == 0 { 1.0 } else { found as f64 / wanted as f64 };
        report.ef = u32::try_from(ef).unwrap_or(u32::MAX);
        report.recall_at_10 = (recall * 1e4).round() / 1e4;
        if recall >= RECALL_WANTED {
            break;
        }
    }
    report.serves = count >= GRAPH_SERVES_FROM && report.recall_at_10 >= RECALL_WANTED;
    report
}
