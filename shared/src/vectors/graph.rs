//! The HNSW graph over the int8 rows: built, or extended from the one of the generation before.
//!
//! A point of the graph has an id of its own, which stays when rows move; `points.u32` tells the row
//! of each. A point whose row is gone stays as a way through, and is never found. Only rows with new
//! bytes are inserted, so that a publish costs what has changed.

use super::rows::{Rows, quantise, write_file};
use super::{Int8Cosine, VectorError, format_error};
use hnsw_rs::prelude::{AnnT, FilterT, Hnsw, HnswIo};
use rustc_hash::FxHashMap;
use std::ops::Range;
use std::path::Path;

/// The base name of the graph's files.
const GRAPH: &str = "graph";
/// Which row each point stands for.
const POINTS_FILE: &str = "points.u32";
const MAGIC_POINTS: &[u8; 8] = b"RBASKPTS";
/// Stands for the row of a point that has none any more.
const GONE: u32 = u32::MAX;
/// Neighbours a node keeps on a layer; 2 x this on the lowest (Malkov and Yashunin 2018, M).
const GRAPH_NEIGHBOURS: usize = 16;
/// Candidates kept while the graph is built (their efConstruction).
const GRAPH_EF_BUILD: usize = 128;
/// Most layers of the graph; hnsw_rs takes 16 at most.
const GRAPH_LAYERS: usize = 16;
/// A graph is built anew when more than one in this many of its points is gone, or was inserted since
/// it was built: the reader of a dump draws its layers from the same numbers each time, and too low.
const WORN_ONE_IN: usize = 5;
/// From how many points on they are inserted on all cores.
const PARALLEL_FROM: usize = 256;

type Points<'a> = Hnsw<'a, i8, Int8Cosine>;

self_cell::self_cell!(
    /// The points may borrow from their reader.
    struct Held {
        owner: HnswIo,
        #[not_covariant]
        dependent: Points,
    }
);

/// A graph with the rows of its points.
pub(super) struct Graph {
    held: Held,
    /// The row of each point, or [`GONE`].
    rows: Vec<u32>,
    /// How many points it had when it was built; the others were inserted since.
    built: usize,
}

impl Graph {
    /// Builds a graph over all rows.
    pub(super) fn build(dim: usize, quantised: &[i8]) -> Self {
        let count = quantised.len() / dim.max(1);
        let held = Held::new(HnswIo::default(), |_| {
            Points::new(GRAPH_NEIGHBOURS, count, GRAPH_LAYERS, GRAPH_EF_BUILD, Int8Cosine)
        });
        let data: Vec<(&[i8], usize)> = quantised.chunks_exact(dim.max(1)).zip(0..).collect();
        held.with_dependent(|_, points| points.parallel_insert_slice(&data));
        Self { held, rows: (0..).take(count).collect(), built: count }
    }

    /// Extends the graph in `before`, whose files must have been verified, to the rows of now; none
    /// where too little of it is left, or it cannot be read.
    pub(super) fn extend(before: &Path, dim: usize, quantised: &[i8]) -> Option<Self> {
        let old = super::open_quantised(before).ok()?;
        // Without rows there is no graph, and hnsw_rs would say so on stdout.
        if old.dim != dim || old.count == 0 {
            return None;
        }
        let mut graph = Self::load(before, dim, old.count)
            .inspect_err(|e| tracing::warn!("the graph of before is not used: {e}"))
            .ok()?;
        let mut points_of: FxHashMap<&[i8], Vec<usize>> = FxHashMap::default();
        let old_rows: &[i8] = bytemuck::cast_slice(&old.body()[old.count * 4..]);
        for (point, row) in graph.rows.iter().enumerate().filter(|(_, row)| **row != GONE) {
            let row = *row as usize;
            points_of.entry(&old_rows[row * dim..(row + 1) * dim]).or_default().push(point);
        }
        graph.rows.fill(GONE);
        let mut fresh = Vec::new();
        for (row, bytes) in (0u32..).zip(quantised.chunks_exact(dim)) {
            match points_of.get_mut(bytes).and_then(Vec::pop) {
                Some(point) => graph.rows[point] = row,
                None => fresh.push((bytes, row)),
            }
        }
        let gone = graph.rows.iter().filter(|row| **row == GONE).count();
        let points = graph.rows.len() + fresh.len();
        if gone.max(points - graph.built) * WORN_ONE_IN > points {
            return None;
        }
        graph.insert(&fresh);
        Some(graph)
    }

    fn insert(&mut self, fresh: &[(&[i8], u32)]) {
        let first = self.rows.len();
        self.rows.extend(fresh.iter().map(|(_, row)| *row));
        let data: Vec<(&[i8], usize)> =
            fresh.iter().map(|(bytes, _)| *bytes).zip(first..).collect();
        self.held.with_dependent(|_, points| {
            if data.len() >= PARALLEL_FROM {
                points.parallel_insert_slice(&data);
            } else {
                data.iter().for_each(|point| points.insert_slice(*point));
            }
        });
    }

    /// Writes the graph's files into a directory that has none. An empty graph has none: hnsw_rs
    /// cannot read it back.
    ///
    /// # Errors
    /// When they cannot be written.
    pub(super) fn dump(&self, dir: &Path, dim: u32) -> Result<(), VectorError> {
        if self.rows.is_empty() {
            return Ok(());
        }
        let name = self
            .held
            .with_dependent(|_, points| points.file_dump(dir, GRAPH))
            .map_err(|e| format_error(dir, format!("the graph: {e}")))?;
        if name != GRAPH {
            return Err(format_error(
                dir,
                format!("the graph was written as `{name}`: the directory is not empty"),
            ));
        }
        if self.rows.len() == self.built && self.rows.iter().zip(0..).all(|(row, n)| *row == n) {
            return Ok(()); // Each point stands for the row of its own number.
        }
        let built = [u32::try_from(self.built).unwrap_or(u32::MAX)];
        let parts: [&[u8]; 2] = [bytemuck::cast_slice(&built), bytemuck::cast_slice(&self.rows)];
        write_file(&dir.join(POINTS_FILE), MAGIC_POINTS, dim, self.rows.len(), &parts)
    }

    /// Loads the graph in `dir` over `count` rows; its files must have been verified.
    ///
    /// # Errors
    /// When the files are damaged or do not belong together.
    pub(super) fn load(dir: &Path, dim: usize, count: usize) -> Result<Self, VectorError> {
        let (rows, built) = read_points(dir, dim, count)?;
        let held = Held::try_new(HnswIo::new(dir, GRAPH), |io| {
            io.load_hnsw_with_dist(Int8Cosine).map(|mut points: Points<'_>| {
                points.set_extend_candidates(false); // As it was built; the reader sets it.
                points
            })
        })
        .map_err(|e| format_error(dir, format!("the graph: {e}")))?;
        let found = held.with_dependent(|_, points| {
            (points.get_nb_point(), points.get_point_indexation().get_data_dimension())
        });
        if found != (rows.len(), dim) {
            let (points, length) = found;
            return Err(format_error(
                dir,
                format!(
                    "the graph has {points} points of {length}, there should be {} of {dim}",
                    rows.len()
                ),
            ));
        }
        Ok(Self { held, rows, built })
    }

    /// The rows nearest to `question` among `windows`: at most `candidates`, in no order.
    pub(super) fn walk(
        &self,
        question: &[f32],
        windows: &Range<usize>,
        candidates: usize,
        ef: usize,
    ) -> Vec<u32> {
        let mut q = vec![0i8; question.len()];
        quantise(question, &mut q);
        let filter = Within { rows: &self.rows, windows };
        self.held
            .with_dependent(|_, points| {
                points.search_filter(&q, candidates, ef.max(candidates), Some(&filter))
            })
            .into_iter()
            .map(|found| self.rows[found.d_id])
            .collect()
    }
}

/// The row of each point, and how many points the graph was built with.
fn read_points(dir: &Path, dim: usize, count: usize) -> Result<(Vec<u32>, usize), VectorError> {
    let path = dir.join(POINTS_FILE);
    if !path.exists() {
        return Ok(((0..).take(count).collect(), count));
    }
    let points = Rows::open(&path, MAGIC_POINTS, |_, n| (n + 1) * 4)?;
    let body: &[u32] = bytemuck::cast_slice(points.body());
    let (built, rows) = (body[0] as usize, &body[1..]);
    let mut seen = vec![false; count];
    for row in rows.iter().filter(|row| **row != GONE) {
        let first = seen.get_mut(*row as usize).is_some_and(|seen| !std::mem::replace(seen, true));
        if !first {
            return Err(format_error(
                &path,
                format!("row {row} does not exist, or has two points"),
            ));
        }
    }
    if points.dim != dim || built > rows.len() || seen.contains(&false) {
        return Err(format_error(&path, "it does not fit the rows"));
    }
    Ok((rows.to_vec(), built))
}

struct Within<'a> {
    rows: &'a [u32],
    windows: &'a Range<usize>,
}

impl FilterT for Within<'_> {
    fn hnsw_filter(&self, point: &usize) -> bool {
        self.rows.get(*point).is_some_and(|row| self.windows.contains(&(*row as usize)))
    }
}
