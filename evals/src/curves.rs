//! What the plots show: how well Confidence tells right from wrong, and near-miss from answerable.

use crate::case::{Expect, is_request};
use crate::metrics::{auc, brier, ece, ratio};
use crate::outcome::CaseResult;

/// A bin of a reliability curve.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bin {
    /// Mean Confidence.
    pub confidence: f64,
    /// Share whose first section is gold.
    pub correct: f64,
    /// Cases.
    pub cases: usize,
}

/// A point of the near-miss curve: what a floor lets through.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// The floor.
    pub floor: f64,
    /// Share of answerables answered.
    pub answerable: f64,
    /// Share of near-misses answered.
    pub near_miss: f64,
}

/// The curves of a run and the numbers that sum them up.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Curves {
    /// Ten bins of equal mass.
    pub reliability: Vec<Bin>,
    /// Expected calibration error.
    pub ece: f64,
    /// Brier score.
    pub brier: f64,
    /// One point a floor, from the highest.
    pub near_miss: Vec<Point>,
    /// Chance that an answerable has more Confidence than a near-miss.
    pub near_miss_auc: f64,
}

/// Computes the curves; questions that the request gate stopped have no place in them.
#[must_use]
pub fn curves(results: &[CaseResult]) -> Curves {
    let judged: Vec<(f64, &CaseResult)> =
        results.iter().filter(|r| !stopped(r)).filter_map(|r| Some((r.confidence()?, r))).collect();
    let correct: Vec<(f64, bool)> = judged.iter().map(|(c, r)| (*c, is_correct(r))).collect();
    let near: Vec<(f64, bool)> = judged
        .iter()
        .filter(|(_, r)| r.case.expect == Expect::Answer || r.case.class == "near_miss")
        .map(|(c, r)| (*c, r.case.expect == Expect::Answer))
        .collect();
    Curves {
        reliability: bins(&correct, 10),
        ece: ece(&correct, 10),
        brier: brier(&correct),
        near_miss: points(&near),
        near_miss_auc: auc(&near),
    }
}

fn stopped(result: &CaseResult) -> bool {
    result.reason.is_some_and(is_request)
}

/// What Confidence is the probability of: the best section answers.
fn is_correct(result: &CaseResult) -> bool {
    result.case.expect == Expect::Answer && result.scores.gold.is_some_and(|g| g.first())
}

fn bins(scored: &[(f64, bool)], most: usize) -> Vec<Bin> {
    let mut sorted = scored.to_vec();
    sorted.sort_by(|a, b| a.0.total_cmp(&b.0));
    let n = sorted.len();
    (0..most)
        .map(|b| &sorted[b * n / most..(b + 1) * n / most])
        .filter(|bin| !bin.is_empty())
        .map(|bin| Bin {
            confidence: bin.iter().map(|s| s.0).sum::<f64>() * ratio(1, bin.len()),
            correct: ratio(bin.iter().filter(|s| s.1).count(), bin.len()),
            cases: bin.len(),
        })
        .collect()
}

fn points(scored: &[(f64, bool)]) -> Vec<Point> {
    let whole = |label: bool| scored.iter().filter(|s| s.1 == label).count();
    if whole(true) == 0 || whole(false) == 0 {
        return Vec::new();
    }
    let mut floors: Vec<f64> = scored.iter().map(|s| s.0).collect();
    floors.push(1.0);
    floors.sort_by(|a, b| b.total_cmp(a));
    floors.dedup();
    let share = |label: bool, floor: f64| {
        ratio(scored.iter().filter(|s| s.1 == label && s.0 >= floor).count(), whole(label))
    };
    let point =
        |floor| Point { floor, answerable: share(true, floor), near_miss: share(false, floor) };
    floors.into_iter().map(point).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins_have_equal_mass() {
        let scored: Vec<(f64, bool)> = (0..20u32).map(|n| (f64::from(n) / 20.0, n >= 10)).collect();
        let bins = bins(&scored, 10);
        assert_eq!(bins.len(), 10);
        assert!(bins.iter().all(|b| b.cases == 2));
        assert!(
            (bins[9].confidence - 0.925).abs() < 1e-9
                && bins[9].correct > 0.99
                && bins[0].correct < 0.01
        );
    }

    #[test]
    fn a_lower_floor_lets_more_through() {
        let points = points(&[(0.9, true), (0.5, false), (0.4, true)]);
        let shares: Vec<(f64, f64)> = points.iter().map(|p| (p.answerable, p.near_miss)).collect();
        assert_eq!(shares, [(0.0, 0.0), (0.5, 0.0), (0.5, 1.0), (1.0, 1.0)]);
        assert!(super::points(&[(0.9, true)]).is_empty());
    }
}
