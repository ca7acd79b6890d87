//! The exact scan of the int8 rows, and the dot products of both kinds of rows.
//!
//! Integer sums are exact, so every instruction set finds the same candidates.

use multiversion::multiversion;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The indexes of the `n` largest scores, in no order.
pub(super) fn top(scores: &[f32], n: usize) -> Vec<u32> {
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

/// The cosine of two int8 vectors; 0 where one of them is all zeros.
#[multiversion(targets("x86_64+avx512f+avx512bw+avx512vl", "x86_64+avx2+fma", "aarch64+neon"))]
pub(super) fn cosine(a: &[i8], b: &[i8]) -> f32 {
    // Wrapping, so that the loop is free of overflow branches; a product of two i8 fits an i16, and
    // the sum of 2^16 products fits an i32.
    let product = |x: i8, y: i8| i32::from(i16::from(x).wrapping_mul(i16::from(y)));
    let (mut ab, mut aa, mut bb) = (0i32, 0i32, 0i32);
    for (x, y) in a.iter().zip(b) {
        ab = ab.wrapping_add(product(*x, *y));
        aa = aa.wrapping_add(product(*x, *x));
        bb = bb.wrapping_add(product(*y, *y));
    }
    #[expect(
        clippy::cast_precision_loss,
        reason = "the sums are below 2^24 for vectors of up to 1040 numbers"
    )]
    {
        ab as f32 / ((aa as f32) * (bb as f32)).sqrt().max(1.0)
    }
}

/// The cosines of a question with rows, but for the question's scale.
#[multiversion(targets("x86_64+avx512f+avx512bw+avx512vl", "x86_64+avx2+fma", "aarch64+neon"))]
pub(super) fn scan_scores(question: &[i8], rows: &[i8], scales: &[f32]) -> Vec<f32> {
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
#[multiversion(targets("x86_64+avx2", "aarch64+neon"))]
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
