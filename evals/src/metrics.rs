//! The measures, as the literature defines them.

use std::collections::BTreeMap;

/// Quality of one ranking.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Ranking {
    /// nDCG at 10 with linear gain (Järvelin and Kekäläinen 2002; as trec_eval computes it).
    pub ndcg_at_10: f64,
    /// Share of the relevant documents among the first 5.
    pub recall_at_5: f64,
    /// Reciprocal rank of the first relevant document among the first 10.
    pub mrr_at_10: f64,
    /// 1 when the first document is relevant.
    pub hit_at_1: f64,
}

/// Scores one ranking of document ids, best first and each once, against graded judgements.
#[must_use]
pub fn ranking(ranked: &[&str], grades: &BTreeMap<String, f64>) -> Ranking {
    let gain = |id: &&str| grades.get(*id).copied().unwrap_or(0.0);
    let discount =
        |rank: usize| 1.0 / f64::from(u32::try_from(rank + 2).unwrap_or(u32::MAX)).log2();
    let dcg: f64 = ranked.iter().take(10).enumerate().map(|(r, id)| gain(id) * discount(r)).sum();
    let mut ideal: Vec<f64> = grades.values().copied().filter(|g| *g > 0.0).collect();
    ideal.sort_by(|a, b| b.total_cmp(a));
    let best: f64 = ideal.iter().take(10).enumerate().map(|(r, g)| g * discount(r)).sum();
    let relevant = ideal.len().max(1);
    let found = ranked.iter().take(5).filter(|id| gain(id) > 0.0).count();
    let first = ranked.iter().take(10).position(|id| gain(id) > 0.0);
    Ranking {
        ndcg_at_10: if best > 0.0 { dcg / best } else { 0.0 },
        recall_at_5: ratio(found, relevant),
        mrr_at_10: first.map_or(0.0, |r| ratio(1, r + 1)),
        hit_at_1: if first == Some(0) { 1.0 } else { 0.0 },
    }
}

/// A quotient of counts; 0 for nothing of nothing.
#[must_use]
pub fn ratio(part: usize, whole: usize) -> f64 {
    let float = |n: usize| f64::from(u32::try_from(n).unwrap_or(u32::MAX));
    if whole == 0 { 0.0 } else { float(part) / float(whole) }
}

/// Area under the ROC curve: the chance that a positive scores above a negative, ties half
/// (Mann and Whitney 1947).
#[must_use]
pub fn auc(scored: &[(f64, bool)]) -> f64 {
    let (mut wins, mut pairs) = (0.0, 0usize);
    for (p, _) in scored.iter().filter(|s| s.1) {
        for (n, _) in scored.iter().filter(|s| !s.1) {
            pairs += 1;
            wins += if p > n {
                1.0
            } else if (p - n).abs() < f64::EPSILON {
                0.5
            } else {
                0.0
            };
        }
    }
    if pairs == 0 { 0.0 } else { wins / f64::from(u32::try_from(pairs).unwrap_or(u32::MAX)) }
}

/// Expected calibration error over bins of equal mass (Nguyen and O'Connor 2015).
#[must_use]
pub fn ece(scored: &[(f64, bool)], bins: usize) -> f64 {
    let mut sorted = scored.to_vec();
    sorted.sort_by(|a, b| a.0.total_cmp(&b.0));
    let n = sorted.len();
    (0..bins)
        .map(|b| &sorted[b * n / bins..(b + 1) * n / bins])
        .filter(|bin| !bin.is_empty())
        .map(|bin| {
            let mean = bin.iter().map(|s| s.0).sum::<f64>() / ratio_base(bin.len());
            let share = ratio(bin.iter().filter(|s| s.1).count(), bin.len());
            (mean - share).abs() * ratio(bin.len(), n)
        })
        .sum()
}

fn ratio_base(n: usize) -> f64 {
    f64::from(u32::try_from(n).unwrap_or(u32::MAX))
}

/// Mean squared distance of probabilities from outcomes (Brier 1950).
#[must_use]
pub fn brier(scored: &[(f64, bool)]) -> f64 {
    let sum: f64 = scored.iter().map(|(p, y)| (p - f64::from(u8::from(*y))).powi(2)).sum();
    if scored.is_empty() { 0.0 } else { sum / ratio_base(scored.len()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ranking_is_scored_as_by_hand() {
        let grades: BTreeMap<String, f64> =
            [("a", 1.0), ("b", 1.0)].map(|(k, v)| (k.to_owned(), v)).into();
        let r = ranking(&["x", "a", "y"], &grades);
        let expected = (1.0 / 3f64.log2()) / (1.0 + 1.0 / 3f64.log2());
        assert!((r.ndcg_at_10 - expected).abs() < 1e-9);
        assert_eq!((r.recall_at_5, r.mrr_at_10, r.hit_at_1), (0.5, 0.5, 0.0));
    }

    #[test]
    fn auc_counts_pairs() {
        assert!((auc(&[(0.9, true), (0.8, false), (0.7, true), (0.1, false)]) - 0.75).abs() < 1e-9);
        assert!(ece(&[(1.0, true), (0.0, false)], 2) < 1e-9);
        assert!((brier(&[(0.5, true), (0.5, false)]) - 0.25).abs() < 1e-9);
    }
}
