//! The vector index: exact f32 rows, int8 rows for the scan, and an HNSW graph over the int8 rows.
//!
//! A row is a window of a section; `windows.u32` tells which section. Rows stand in the order of
//! the sections, so a scope is a range of rows. Spans within the windows have int8 rows of their own,
//! which are not searched, only compared. docs/index-format.md describes the bytes.
//!
//! Search scans the int8 rows, or walks the graph above a number of rows, and computes the cosine
//! of the best candidates from the f32 rows. Integer sums are exact, so every instruction set finds
//! the same candidates.

mod graph;
mod rows;
mod scan;

use crate::error::PathError;
use crate::failpoint::reach;
use crate::score::CosineScore;
use graph::Graph;
use hnsw_rs::prelude::Distance;
use rows::{Rows, quantise, quantise_rows, write_file};
pub use scan::dot_f32;
use scan::{scan_scores, top};
use std::ops::Range;
use std::path::{Path, PathBuf};

const MAGIC_F32: &[u8; 8] = b"RBASKF32";
const MAGIC_I8: &[u8; 8] = b"RBASKI08";
const MAGIC_WINDOWS: &[u8; 8] = b"RBASKWIN";
const MAGIC_SPANS: &[u8; 8] = b"RBASKSPA";
const MAGIC_SPAN_ENDS: &[u8; 8] = b"RBASKSPE";
/// How many candidates of the scan are scored again in f32, at least.
const RESCORED_MIN: usize = 40;
/// Candidates scored again for each result asked for.
const RESCORED_PER_RESULT: usize = 4;

/// Which search serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VectorSearch {
    /// The exact scan.
    Scan,
    /// The graph, with this many candidates kept.
    Graph {
        /// Candidates kept while searching.
        ef: usize,
    },
}

/// The vector files are damaged or cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum VectorError {
    /// A file operation failed.
    #[error(transparent)]
    File(#[from] PathError),
    /// A file is not what it should be.
    #[error("`{}`: {message}", path.display())]
    Format {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        message: String,
    },
}

fn format_error(path: &Path, message: impl Into<String>) -> VectorError {
    VectorError::Format { path: path.to_owned(), message: message.into() }
}

/// What a vector index is made of.
#[derive(Clone, Copy, Debug)]
pub struct Contents<'a> {
    /// The length of a vector.
    pub dim: u32,
    /// Unit vectors of the windows, one after the other.
    pub rows: &'a [f32],
    /// The section of each window, ascending.
    pub sections: &'a [u32],
    /// Vectors of the spans, quantised by [`quantised`], one after the other.
    pub spans: &'a [i8],
    /// How many spans there are up to and with each window.
    pub span_ends: &'a [u32],
}

/// Vectors of length `dim` as int8 rows, each scaled to its largest number.
#[must_use]
pub fn quantised(dim: usize, rows: &[f32]) -> Vec<i8> {
    quantise_rows(dim, rows).0
}

/// Writes the files of a vector index into `dir` and opens it, the graph as it is in memory.
///
/// The graph is extended from the vector index in `before`, where that has enough in common with this
/// one; its files' hashes must have been verified.
///
/// # Errors
/// When a file cannot be written.
pub fn write(
    dir: &Path,
    contents: &Contents<'_>,
    before: Option<&Path>,
) -> Result<VectorIndex, VectorError> {
    let Contents { dim, rows, sections, spans, span_ends } = *contents;
    let count = sections.len();
    let span_count = span_ends.last().map_or(0, |n| *n as usize);
    assert_eq!(rows.len(), count * dim as usize, "one row a window");
    assert_eq!(spans.len(), span_count * dim as usize, "one row a span");
    assert_eq!(span_ends.len(), count, "one end a window");
    debug_assert!(sections.is_sorted() && span_ends.is_sorted());
    let bytes = |values: &[u8], path: &Path, magic| write_file(path, magic, dim, count, &[values]);
    bytes(bytemuck::cast_slice(rows), &dir.join("rows.f32"), MAGIC_F32)?;
    bytes(bytemuck::cast_slice(sections), &dir.join("windows.u32"), MAGIC_WINDOWS)?;
    bytes(bytemuck::cast_slice(span_ends), &dir.join("spans.u32"), MAGIC_SPAN_ENDS)?;
    let spans: &[u8] = bytemuck::cast_slice(spans);
    write_file(&dir.join("spans.i8"), MAGIC_SPANS, dim, span_count, &[spans])?;
    let (quantised, scales) = quantise_rows(dim as usize, rows);
    write_file(
        &dir.join("rows.i8"),
        MAGIC_I8,
        dim,
        count,
        &[bytemuck::cast_slice(&scales), bytemuck::cast_slice(&quantised)],
    )?;
    reach("vectors.rows");
    let extended = before
        .filter(|_| count > 0)
        .and_then(|before| Graph::extend(before, dim as usize, &quantised));
    let graph = extended.unwrap_or_else(|| Graph::build(dim as usize, &quantised));
    graph.dump(dir, dim)?;
    reach("vectors.graph");
    let mut index = VectorIndex::open(dir, false)?;
    index.graph = Some(graph);
    Ok(index)
}

fn open_quantised(dir: &Path) -> Result<Rows, VectorError> {
    Rows::open(&dir.join("rows.i8"), MAGIC_I8, |dim, n| n * 4 + dim * n)
}

/// One minus the cosine of two int8 vectors: hnsw_rs needs a distance that is not negative. The graph's
/// files hold the name of this type.
#[derive(Clone, Copy, Debug, Default)]
struct Int8Cosine;

impl Distance<i8> for Int8Cosine {
    fn eval(&self, a: &[i8], b: &[i8]) -> f32 {
        (1.0 - scan::cosine(a, b)).max(0.0)
    }
}

/// A vector index that is open for reading.
pub struct VectorIndex {
    exact: Rows,
    quantised: Rows,
    sections: Rows,
    spans: Rows,
    span_ends: Rows,
    graph: Option<Graph>,
}

impl VectorIndex {
    /// Opens the index in `dir`; the files' hashes must have been verified before, since the graph's
    /// reader trusts its input.
    ///
    /// # Errors
    /// When a file is damaged or the files do not belong together.
    pub fn open(dir: &Path, with_graph: bool) -> Result<Self, VectorError> {
        let exact = Rows::open(&dir.join("rows.f32"), MAGIC_F32, |dim, n| dim * n * 4)?;
        let quantised = open_quantised(dir)?;
        let sections = Rows::open(&dir.join("windows.u32"), MAGIC_WINDOWS, |_, n| n * 4)?;
        if (exact.dim, exact.count) != (quantised.dim, quantised.count)
            || exact.count != sections.count
        {
            return Err(format_error(dir, "the row files do not have the same shape"));
        }
        let spans = Rows::open(&dir.join("spans.i8"), MAGIC_SPANS, |dim, n| dim * n)?;
        let span_ends = Rows::open(&dir.join("spans.u32"), MAGIC_SPAN_ENDS, |_, n| n * 4)?;
        let ends: &[u32] = bytemuck::cast_slice(span_ends.body());
        if (spans.dim, ends.len()) != (exact.dim, exact.count)
            || !ends.is_sorted()
            || ends.last().map_or(0, |n| *n as usize) != spans.count
        {
            return Err(format_error(dir, "the files of the spans do not fit the windows"));
        }
        let graph = (with_graph && exact.count > 0)
            .then(|| Graph::load(dir, exact.dim, exact.count))
            .transpose()?;
        Ok(Self { exact, quantised, sections, spans, span_ends, graph })
    }

    /// The number of windows.
    #[must_use]
    pub fn len(&self) -> usize {
        self.exact.count
    }

    /// True when there is no window.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The length of a vector.
    #[must_use]
    pub fn dim(&self) -> usize {
        self.exact.dim
    }

    /// The section of each window, ascending.
    #[must_use]
    pub fn sections(&self) -> &[u32] {
        bytemuck::cast_slice(self.sections.body())
    }

    /// One vector.
    #[must_use]
    pub fn row(&self, window: usize) -> &[f32] {
        let rows: &[f32] = bytemuck::cast_slice(self.exact.body());
        &rows[window * self.dim()..(window + 1) * self.dim()]
    }

    /// The best cosine of `question` (int8, as [`quantised`] makes it) with a span of these windows;
    /// none where they have no span.
    #[must_use]
    pub fn best_span(&self, windows: Range<usize>, question: &[i8]) -> Option<CosineScore> {
        let ends: &[u32] = bytemuck::cast_slice(self.span_ends.body());
        let before = |window: usize| window.checked_sub(1).map_or(0, |w| ends[w] as usize);
        let (from, to) = (before(windows.start), before(windows.end));
        let spans: &[i8] = bytemuck::cast_slice(self.spans.body());
        spans[from * self.dim()..to * self.dim()]
            .chunks_exact(self.dim().max(1))
            .map(|span| CosineScore(scan::cosine(span, question)))
            .reduce(|best, next| if next.0 > best.0 { next } else { best })
    }

    /// The `k` windows of the sections in `range` that are nearest to `question`, best first.
    ///
    /// `question` is a unit vector of [`VectorIndex::dim`] numbers. Without a loaded graph,
    /// [`VectorSearch::Graph`] scans.
    #[must_use]
    pub fn search(
        &self,
        question: &[f32],
        range: &Range<u32>,
        k: usize,
        how: VectorSearch,
    ) -> Vec<(u32, CosineScore)> {
        if question.len() != self.dim() || k == 0 {
            return Vec::new();
        }
        let sections = self.sections();
        let windows = sections.partition_point(|s| *s < range.start)
            ..sections.partition_point(|s| *s < range.end);
        let candidates = (k * RESCORED_PER_RESULT).max(RESCORED_MIN);
        let found = match (how, &self.graph) {
            (VectorSearch::Graph { ef }, Some(graph)) => {
                graph.walk(question, &windows, candidates, ef)
            }
            _ => self.scan(question, windows, candidates),
        };
        let mut scored: Vec<_> = found
            .into_iter()
            .map(|w| (w, CosineScore(dot_f32(self.row(w as usize), question))))
            .collect();
        scored.sort_by(|a, b| b.1.0.total_cmp(&a.1.0).then(a.0.cmp(&b.0)));
        scored.truncate(k);
        scored
    }

    fn scan(&self, question: &[f32], windows: Range<usize>, candidates: usize) -> Vec<u32> {
        let mut q = vec![0i8; question.len()];
        quantise(question, &mut q);
        let body = self.quantised.body();
        let (scales, rows) = body.split_at(self.quantised.count * 4);
        let scales: &[f32] = bytemuck::cast_slice(scales);
        let rows: &[i8] = bytemuck::cast_slice(rows);
        let dim = self.dim();
        let scores = scan_scores(
            &q,
            &rows[windows.start * dim..windows.end * dim],
            &scales[windows.clone()],
        );
        top(&scores, candidates)
            .into_iter()
            .map(|at| at + u32::try_from(windows.start).unwrap_or(u32::MAX))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn unit_rows(dim: usize, count: usize, mut seed: u64) -> Vec<f32> {
        let mut rows = Vec::with_capacity(dim * count);
        for _ in 0..count {
            let row: Vec<f32> = (0..dim)
                .map(|_| {
                    seed = seed
                        .wrapping_mul(6_364_136_223_846_793_005)
                        .wrapping_add(1_442_695_040_888_963_407);
                    (seed >> 40) as f32 / 8_388_608.0 - 1.0
                })
                .collect();
            let norm = dot_f32(&row, &row).sqrt();
            rows.extend(row.iter().map(|v| v / norm));
        }
        rows
    }

    /// Writes an index in which the only span of a window is the window itself; every third has none.
    fn store(
        dir: &Path,
        dim: usize,
        rows: &[f32],
        sections: &[u32],
        before: Option<&Path>,
    ) -> Result<VectorIndex, VectorError> {
        let (mut spans, mut span_ends) = (Vec::new(), Vec::new());
        for (window, row) in rows.chunks_exact(dim).enumerate() {
            if window % 3 != 2 {
                spans.extend(quantised(dim, row));
            }
            span_ends.push((spans.len() / dim) as u32);
        }
        let (spans, span_ends) = (&spans[..], &span_ends[..]);
        write(dir, &Contents { dim: dim as u32, rows, sections, spans, span_ends }, before)
    }

    #[test]
    fn the_best_span_of_some_windows_and_of_none() {
        let (dim, count) = (32, 12);
        let rows = unit_rows(dim, count, 5);
        let sections: Vec<u32> = (0..count as u32).collect();
        let dir = tempfile::tempdir().unwrap();
        store(dir.path(), dim, &rows, &sections, None).unwrap();
        let index = VectorIndex::open(dir.path(), true).unwrap();
        let question = quantised(dim, &rows[4 * dim..5 * dim]);
        assert!(index.best_span(0..count, &question).unwrap().0 > 0.999);
        assert!(index.best_span(4..5, &question).unwrap().0 > 0.999);
        assert!(index.best_span(0..4, &question).unwrap().0 < 0.9);
        assert_eq!(index.best_span(2..3, &question).map(|c| c.0), None);
        assert_eq!(index.best_span(3..3, &question).map(|c| c.0), None);
    }

    fn exact(
        rows: &[f32],
        dim: usize,
        question: &[f32],
        range: Range<usize>,
        k: usize,
    ) -> Vec<u32> {
        let mut all: Vec<_> =
            range.map(|w| (w as u32, dot_f32(&rows[w * dim..(w + 1) * dim], question))).collect();
        all.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        all.into_iter().take(k).map(|h| h.0).collect()
    }

    #[test]
    fn scan_and_graph_find_what_brute_force_finds() {
        let (dim, count) = (48, 3000);
        let rows = unit_rows(dim, count, 7);
        let sections: Vec<u32> = (0..count as u32).map(|w| w / 2).collect();
        let dir = tempfile::tempdir().unwrap();
        store(dir.path(), dim, &rows, &sections, None).unwrap();
        let index = VectorIndex::open(dir.path(), true).unwrap();
        let (mut scanned, mut walked) = (0, 0);
        for question in unit_rows(dim, 50, 99).chunks_exact(dim) {
            let truth = exact(&rows, dim, question, 0..count, 10);
            let hits = |how| -> usize {
                let found = index.search(question, &(0..1500), 10, how);
                truth.iter().filter(|t| found.iter().any(|f| f.0 == **t)).count()
            };
            scanned += hits(VectorSearch::Scan);
            walked += hits(VectorSearch::Graph { ef: 400 });
        }
        assert!(scanned >= 499, "the scan found {scanned} of 500");
        assert!(walked >= 480, "the graph found {walked} of 500");
        for (w, row) in rows.chunks_exact(dim).enumerate() {
            assert_eq!(index.search(row, &(0..1500), 1, VectorSearch::Scan)[0].0 as usize, w);
        }
    }

    #[test]
    fn a_scope_is_searched_before_the_cut() {
        let (dim, count) = (16, 400);
        let rows = unit_rows(dim, count, 3);
        let sections: Vec<u32> = (0..count as u32).collect();
        let dir = tempfile::tempdir().unwrap();
        store(dir.path(), dim, &rows, &sections, None).unwrap();
        let index = VectorIndex::open(dir.path(), true).unwrap();
        let question = &unit_rows(dim, 1, 5)[..];
        let found = index.search(question, &(100..120), 5, VectorSearch::Scan);
        let windows: Vec<u32> = found.iter().map(|f| f.0).collect();
        assert_eq!(windows, exact(&rows, dim, question, 100..120, 5));
    }

    #[test]
    fn no_rows_and_cut_files() {
        let dir = tempfile::tempdir().unwrap();
        store(dir.path(), 4, &[], &[], None).unwrap();
        let index = VectorIndex::open(dir.path(), true).unwrap();
        assert!(index.search(&[1.0, 0.0, 0.0, 0.0], &(0..9), 3, VectorSearch::Scan).is_empty());
        for name in ["rows.f32", "rows.i8", "windows.u32", "spans.i8", "spans.u32"] {
            let path = dir.path().join(name);
            let whole = std::fs::read(&path).unwrap();
            for cut in [0, 10, rows::HEADER_BYTES - 1] {
                std::fs::write(&path, &whole[..cut]).unwrap();
                assert!(VectorIndex::open(dir.path(), true).is_err(), "{name} cut to {cut}");
            }
            std::fs::write(&path, &whole).unwrap();
        }
    }

    /// The graph's recall at 10 over all rows, each row asked for itself and its neighbours.
    fn recall(index: &VectorIndex, rows: &[f32], dim: usize) -> f64 {
        let count = rows.len() / dim;
        let (mut found, mut wanted) = (0usize, 0usize);
        for question in rows.chunks_exact(dim).step_by(7) {
            let truth = exact(rows, dim, question, 0..count, 10);
            let hits = index.search(question, &(0..u32::MAX), 10, VectorSearch::Graph { ef: 128 });
            wanted += truth.len();
            found += truth.iter().filter(|t| hits.iter().any(|h| h.0 == **t)).count();
        }
        found as f64 / wanted as f64
    }

    fn files(dir: &Path) -> Vec<String> {
        let entries = std::fs::read_dir(dir).unwrap();
        let mut names: Vec<String> =
            entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    /// A step from one generation to the next: rows by number, as they stand in it.
    fn step(
        all: &[f32],
        dim: usize,
        numbers: &[usize],
        before: Option<&Path>,
    ) -> (tempfile::TempDir, Vec<f32>) {
        let rows: Vec<f32> =
            numbers.iter().flat_map(|n| &all[n * dim..(n + 1) * dim]).copied().collect();
        let sections: Vec<u32> = (0..numbers.len() as u32).collect();
        let dir = tempfile::tempdir().unwrap();
        let made = store(dir.path(), dim, &rows, &sections, before).unwrap();
        let read = VectorIndex::open(dir.path(), true).unwrap();
        for index in [&made, &read] {
            let recall = recall(index, &rows, dim);
            assert!(recall >= 0.98, "recall {recall}");
        }
        (dir, rows)
    }

    #[test]
    fn a_graph_is_extended_and_what_is_gone_is_never_found() {
        let dim = 32;
        let all = unit_rows(dim, 1200, 11);
        let first: Vec<usize> = (0..1000).collect();
        let (one, _) = step(&all, dim, &first, None);
        assert!(!files(one.path()).contains(&"points.u32".to_owned()));
        // Fifty rows go, fifty come in front of all others, which move; one stands there twice.
        let second: Vec<usize> = (1000..1050).chain(0..300).chain(350..1000).chain([20]).collect();
        let (two, rows) = step(&all, dim, &second, Some(one.path()));
        assert!(files(two.path()).contains(&"points.u32".to_owned()), "it was built anew");
        let index = VectorIndex::open(two.path(), true).unwrap();
        let graph = index.graph.as_ref().unwrap();
        // The graph is built on many threads from drawn numbers: a point may have no way to it.
        let mut every = graph.walk(&rows[..dim], &(0..second.len()), 2000, 2000);
        every.sort_unstable();
        assert!(every.windows(2).all(|pair| pair[0] < pair[1]), "each row is found once");
        assert!(
            every.iter().all(|row| (*row as usize) < second.len()),
            "what is gone is not found"
        );
        assert!(every.len() * 100 >= second.len() * 98, "{} of {}", every.len(), second.len());
        // And again from the extended one.
        let third: Vec<usize> = second.iter().copied().skip(10).chain(1050..1060).collect();
        let (three, _) = step(&all, dim, &third, Some(two.path()));
        assert!(files(three.path()).contains(&"points.u32".to_owned()));
    }

    #[test]
    fn a_worn_or_foreign_graph_is_built_anew() {
        let dim = 16;
        let all = unit_rows(dim, 600, 23);
        let first: Vec<usize> = (0..400).collect();
        let (one, _) = step(&all, dim, &first, None);
        for numbers in [(0..300).collect(), (0..520).collect(), Vec::from_iter(400..500)] {
            let (next, _) = step(&all, dim, &numbers, Some(one.path()));
            assert!(!files(next.path()).contains(&"points.u32".to_owned()), "{}", numbers.len());
        }
        // A step in which nothing changed is one: nothing of it is inserted.
        let (same, _) = step(&all, dim, &first, Some(one.path()));
        assert_eq!(
            std::fs::read(same.path().join("graph.hnsw.data")).unwrap(),
            std::fs::read(one.path().join("graph.hnsw.data")).unwrap()
        );
        // What cannot be read is no reason to fail.
        let (cut, _) = step(&all, dim, &first, Some(Path::new("/nowhere")));
        std::fs::write(cut.path().join("points.u32"), b"short").unwrap();
        assert!(VectorIndex::open(cut.path(), true).is_err());
        step(&all, dim, &first, Some(cut.path()));
    }

    proptest! {
        #[test]
        fn the_fast_cosine_is_the_naive_one(a in prop::collection::vec(any::<i8>(), 0..500)) {
            let b: Vec<i8> = a.iter().rev().copied().collect();
            let naive = |a: &[i8], b: &[i8]| -> i32 {
                a.iter().zip(b).map(|(x, y)| i32::from(*x) * i32::from(*y)).sum()
            };
            let product = (naive(&a, &a) as f32) * (naive(&b, &b) as f32);
            prop_assert_eq!(scan::cosine(&a, &b), naive(&a, &b) as f32 / product.sqrt().max(1.0));
        }
    }
}
