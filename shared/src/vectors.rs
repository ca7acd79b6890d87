//! The vector index: exact f32 rows, int8 rows for the scan, and an HNSW graph over the int8 rows.
//!
//! A row is a window of a section; `windows.u32` tells which section. Rows stand in the order of
//! the sections, so a scope is a range of rows. docs/index-format.md describes the bytes.
//!
//! Search scans the int8 rows, or walks the graph above a number of rows, and computes the cosine
//! of the best candidates from the f32 rows. Integer sums are exact, so every instruction set finds
//! the same candidates.

use crate::error::{IoContext, PathError};
use crate::score::CosineScore;
use hnsw_rs::prelude::{AnnT, Distance, FilterT, Hnsw, HnswIo};
use memmap2::Mmap;
use multiversion::multiversion;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};

/// Bytes of the header of a row file.
const HEADER_BYTES: usize = 64;
const MAGIC_F32: &[u8; 8] = b"RBASKF32";
const MAGIC_I8: &[u8; 8] = b"RBASKI08";
const MAGIC_WINDOWS: &[u8; 8] = b"RBASKWIN";
const VERSION: u32 = 1;
/// How many candidates of the scan are scored again in f32, at least.
const RESCORED_MIN: usize = 40;
/// Candidates scored again for each result asked for.
const RESCORED_PER_RESULT: usize = 4;
/// The base name of the graph's files.
const GRAPH: &str = "graph";
/// Neighbours a node keeps on a layer; 2 x this on the lowest (Malkov and Yashunin 2018, M).
const GRAPH_NEIGHBOURS: usize = 16;
/// Candidates kept while the graph is built (their efConstruction).
const GRAPH_EF_BUILD: usize = 128;
/// Most layers of the graph; hnsw_rs takes 16 at most.
const GRAPH_LAYERS: usize = 16;

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

/// Writes the files of a vector index into `dir`.
///
/// `rows` are unit vectors of length `dim`, one after the other; `sections` names the section of
/// each, in ascending order.
///
/// # Errors
/// When a file cannot be written.
pub fn write(dir: &Path, dim: u32, rows: &[f32], sections: &[u32]) -> Result<(), VectorError> {
    let count = sections.len();
    assert_eq!(rows.len(), count * dim as usize, "one row a window");
    debug_assert!(sections.is_sorted());
    let bytes = |values: &[u8], path: &Path, magic| write_file(path, magic, dim, count, &[values]);
    bytes(bytemuck::cast_slice(rows), &dir.join("rows.f32"), MAGIC_F32)?;
    bytes(bytemuck::cast_slice(sections), &dir.join("windows.u32"), MAGIC_WINDOWS)?;
    let (quantised, scales) = quantise_rows(dim as usize, rows);
    write_file(
        &dir.join("rows.i8"),
        MAGIC_I8,
        dim,
        count,
        &[bytemuck::cast_slice(&scales), bytemuck::cast_slice(&quantised)],
    )?;
    write_graph(dir, dim as usize, &quantised)
}

fn write_file(
    path: &Path,
    magic: &[u8; 8],
    dim: u32,
    count: usize,
    parts: &[&[u8]],
) -> Result<(), VectorError> {
    let mut header = [0u8; HEADER_BYTES];
    header[..8].copy_from_slice(magic);
    header[8..12].copy_from_slice(&VERSION.to_le_bytes());
    header[12..16].copy_from_slice(&dim.to_le_bytes());
    header[16..24].copy_from_slice(&(count as u64).to_le_bytes());
    let mut file = BufWriter::new(File::create(path).at("create", path)?);
    file.write_all(&header).at("write", path)?;
    for part in parts {
        file.write_all(part).at("write", path)?;
    }
    file.flush().at("write", path)?;
    Ok(())
}

fn quantise_rows(dim: usize, rows: &[f32]) -> (Vec<i8>, Vec<f32>) {
    let mut quantised = vec![0i8; rows.len()];
    let scales = rows
        .chunks_exact(dim.max(1))
        .zip(quantised.chunks_exact_mut(dim.max(1)))
        .map(|(row, out)| quantise(row, out))
        .collect();
    (quantised, scales)
}

/// Scales a row to -127..127 and returns the factor that undoes it.
fn quantise(row: &[f32], out: &mut [i8]) -> f32 {
    let max = row.iter().fold(0f32, |m, v| m.max(v.abs()));
    if max == 0.0 {
        out.fill(0);
        return 0.0;
    }
    let factor = 127.0 / max;
    for (o, v) in out.iter_mut().zip(row) {
        #[expect(clippy::cast_possible_truncation, reason = "the value is within -127..=127")]
        {
            *o = (v * factor).round() as i8;
        }
    }
    1.0 / factor
}

/// One minus the cosine of two int8 vectors: hnsw_rs needs a distance that is not negative.
#[derive(Clone, Copy, Debug, Default)]
struct Int8Cosine;

impl Distance<i8> for Int8Cosine {
    fn eval(&self, a: &[i8], b: &[i8]) -> f32 {
        #[expect(
            clippy::cast_precision_loss,
            reason = "the sums are below 2^24 for vectors of up to 1040 numbers"
        )]
        let cosine = dot(a, b) as f32 / ((dot(a, a) as f32) * (dot(b, b) as f32)).sqrt().max(1.0);
        (1.0 - cosine).max(0.0)
    }
}

type Graph<'a> = Hnsw<'a, i8, Int8Cosine>;

fn write_graph(dir: &Path, dim: usize, quantised: &[i8]) -> Result<(), VectorError> {
    let count = quantised.len() / dim.max(1);
    if count == 0 {
        return Ok(()); // hnsw_rs cannot read an empty graph back.
    }
    let graph = Graph::new(GRAPH_NEIGHBOURS, count, GRAPH_LAYERS, GRAPH_EF_BUILD, Int8Cosine);
    let data: Vec<(&[i8], usize)> = quantised.chunks_exact(dim).zip(0..).collect();
    graph.parallel_insert_slice(&data);
    let name =
        graph.file_dump(dir, GRAPH).map_err(|e| format_error(dir, format!("the graph: {e}")))?;
    if name != GRAPH {
        return Err(format_error(
            dir,
            format!("the graph was written as `{name}`: the directory is not empty"),
        ));
    }
    Ok(())
}

/// Memory-mapped rows after their header.
struct Rows {
    map: Mmap,
    dim: usize,
    count: usize,
}

impl Rows {
    #[expect(unsafe_code, reason = "mapping a file")]
    fn open(
        path: &Path,
        magic: &[u8; 8],
        bytes_of: impl Fn(usize, usize) -> usize,
    ) -> Result<Self, VectorError> {
        let file = File::open(path).at("open", path)?;
        // SAFETY: a generation is immutable once published: ingest writes it under another name and
        // never touches it again, other writers break the documented contract of the directory.
        let map = unsafe { Mmap::map(&file) }.at("map", path)?;
        let header = map
            .get(..HEADER_BYTES)
            .ok_or_else(|| format_error(path, "it is shorter than its header"))?;
        let u32_at = |at: usize| {
            u32::from_le_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]])
        };
        if &header[..8] != magic {
            return Err(format_error(path, "it does not start with the right magic bytes"));
        }
        if u32_at(8) != VERSION {
            return Err(format_error(
                path,
                format!("version {} is not known, {VERSION} is", u32_at(8)),
            ));
        }
        let (dim, count) = (u32_at(12) as usize, u32_at(16) as usize);
        if u32_at(20) != 0 || map.len() != HEADER_BYTES + bytes_of(dim, count) {
            return Err(format_error(
                path,
                format!("{} bytes do not hold {count} rows of {dim}", map.len()),
            ));
        }
        Ok(Self { map, dim, count })
    }

    fn body(&self) -> &[u8] {
        &self.map[HEADER_BYTES..]
    }
}

self_cell::self_cell!(
    /// The graph borrows from its reader.
    struct LoadedGraph {
        owner: HnswIo,
        #[not_covariant]
        dependent: Graph,
    }
);

/// A vector index that is open for reading.
pub struct VectorIndex {
    exact: Rows,
    quantised: Rows,
    sections: Rows,
    graph: Option<LoadedGraph>,
}

impl VectorIndex {
    /// Opens the index in `dir`; the files' hashes must have been verified before, since the graph's
    /// reader trusts its input.
    ///
    /// # Errors
    /// When a file is damaged or the files do not belong together.
    pub fn open(dir: &Path, with_graph: bool) -> Result<Self, VectorError> {
        let exact = Rows::open(&dir.join("rows.f32"), MAGIC_F32, |dim, n| dim * n * 4)?;
        let quantised = Rows::open(&dir.join("rows.i8"), MAGIC_I8, |dim, n| n * 4 + dim * n)?;
        let sections = Rows::open(&dir.join("windows.u32"), MAGIC_WINDOWS, |_, n| n * 4)?;
        if (exact.dim, exact.count) != (quantised.dim, quantised.count)
            || exact.count != sections.count
        {
            return Err(format_error(dir, "the row files do not have the same shape"));
        }
        let graph =
            if with_graph && exact.count > 0 { Some(load_graph(dir, &exact)?) } else { None };
        Ok(Self { exact, quantised, sections, graph })
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
                walk(graph, question, &windows, candidates, ef)
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

/// The indexes of the `n` largest scores, in no order.
fn top(scores: &[f32], n: usize) -> Vec<u32> {
    let mut heap: BinaryHeap<Reverse<(OrderedScore, Reverse<u32>)>> =
        BinaryHeap::with_capacity(n + 1);
    for (at, score) in (0u32..).zip(scores) {
        if heap.len() < n {
            heap.push(Reverse((OrderedScore(*score), Reverse(at))));
        } else if heap.peek().is_some_and(|Reverse((least, _))| *score > least.0) {
            heap.pop();
            heap.push(Reverse((OrderedScore(*score), Reverse(at))));
        }
    }
    heap.into_iter().map(|Reverse((_, Reverse(at)))| at).collect()
}

#[derive(Clone, Copy, PartialEq)]
struct OrderedScore(f32);
impl Eq for OrderedScore {}
impl PartialOrd for OrderedScore {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for OrderedScore {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0)
    }
}

struct InRange(Range<usize>);
impl FilterT for InRange {
    fn hnsw_filter(&self, id: &usize) -> bool {
        self.0.contains(id)
    }
}

fn walk(
    graph: &LoadedGraph,
    question: &[f32],
    windows: &Range<usize>,
    candidates: usize,
    ef: usize,
) -> Vec<u32> {
    let mut q = vec![0i8; question.len()];
    quantise(question, &mut q);
    let filter = InRange(windows.clone());
    graph
        .with_dependent(|_, graph| {
            graph.search_filter(&q, candidates, ef.max(candidates), Some(&filter))
        })
        .into_iter()
        .filter_map(|n| u32::try_from(n.d_id).ok())
        .collect()
}

fn load_graph(dir: &Path, exact: &Rows) -> Result<LoadedGraph, VectorError> {
    let loaded =
        LoadedGraph::try_new(HnswIo::new(dir, GRAPH), |io| io.load_hnsw_with_dist(Int8Cosine))
            .map_err(|e| format_error(dir, format!("the graph: {e}")))?;
    let (points, dim) = loaded.with_dependent(|_, graph| {
        (graph.get_nb_point(), graph.get_point_indexation().get_data_dimension())
    });
    if (points, dim) != (exact.count, exact.dim) {
        return Err(format_error(
            dir,
            format!(
                "the graph has {points} points of {dim}, the rows {} of {}",
                exact.count, exact.dim
            ),
        ));
    }
    Ok(loaded)
}

#[multiversion(targets("x86_64+avx512f+avx512bw+avx512vl", "x86_64+avx2+fma", "aarch64+neon"))]
fn dot(a: &[i8], b: &[i8]) -> i32 {
    // Wrapping, so that the loop is free of overflow branches; a product of two i8 fits an i16, and
    // the sum of 2^16 products fits an i32.
    a.iter().zip(b).fold(0i32, |sum, (x, y)| {
        sum.wrapping_add(i32::from(i16::from(*x).wrapping_mul(i16::from(*y))))
    })
}

#[multiversion(targets("x86_64+avx512f+avx512bw+avx512vl", "x86_64+avx2+fma", "aarch64+neon"))]
fn scan_scores(question: &[i8], rows: &[i8], scales: &[f32]) -> Vec<f32> {
    rows.chunks_exact(question.len())
        .zip(scales)
        .map(|(row, scale)| {
            let sum = row.iter().zip(question).fold(0i32, |sum, (x, y)| {
                sum.wrapping_add(i32::from(i16::from(*x).wrapping_mul(i16::from(*y))))
            });
            sum as f32 * scale
        })
        .collect()
}

/// The dot product, summed in eight lanes so that it is fast and the same everywhere.
#[must_use]
pub fn dot_f32(a: &[f32], b: &[f32]) -> f32 {
    let mut lanes = [0f32; 8];
    let (a8, b8) = (a.chunks_exact(8), b.chunks_exact(8));
    let rest: f32 = a8.remainder().iter().zip(b8.remainder()).map(|(x, y)| x * y).sum();
    for (x, y) in a8.zip(b8) {
        for lane in 0..8 {
            lanes[lane] += x[lane] * y[lane];
        }
    }
    lanes.iter().sum::<f32>() + rest
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
        write(dir.path(), dim as u32, &rows, &sections).unwrap();
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
        write(dir.path(), dim as u32, &rows, &sections).unwrap();
        let index = VectorIndex::open(dir.path(), true).unwrap();
        let question = &unit_rows(dim, 1, 5)[..];
        let found = index.search(question, &(100..120), 5, VectorSearch::Scan);
        let windows: Vec<u32> = found.iter().map(|f| f.0).collect();
        assert_eq!(windows, exact(&rows, dim, question, 100..120, 5));
    }

    #[test]
    fn no_rows_and_cut_files() {
        let dir = tempfile::tempdir().unwrap();
        write(dir.path(), 4, &[], &[]).unwrap();
        let index = VectorIndex::open(dir.path(), true).unwrap();
        assert!(index.search(&[1.0, 0.0, 0.0, 0.0], &(0..9), 3, VectorSearch::Scan).is_empty());
        for name in ["rows.f32", "rows.i8", "windows.u32"] {
            let path = dir.path().join(name);
            let whole = std::fs::read(&path).unwrap();
            for cut in [0, 10, HEADER_BYTES - 1] {
                std::fs::write(&path, &whole[..cut]).unwrap();
                assert!(VectorIndex::open(dir.path(), true).is_err(), "{name} cut to {cut}");
            }
            std::fs::write(&path, &whole).unwrap();
        }
    }

    proptest! {
        #[test]
        fn the_fast_dot_is_the_naive_one(a in prop::collection::vec(any::<i8>(), 0..500)) {
            let b: Vec<i8> = a.iter().rev().copied().collect();
            let naive: i32 = a.iter().zip(&b).map(|(x, y)| i32::from(*x) * i32::from(*y)).sum();
            prop_assert_eq!(dot(&a, &b), naive);
        }
    }
}
