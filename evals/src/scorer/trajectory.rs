//! Which way a reply took, and in how many steps.

use super::Verdict;
use crate::case::Route;

/// The way of one reply.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trajectory {
    /// The steps, in order.
    pub route: Vec<String>,
    /// Whether it is the expected way; none when the case expects none.
    pub verdict: Option<Verdict>,
}

/// Scores a route.
#[must_use]
pub fn score(route: &[String], expected: Option<&Route>) -> Trajectory {
    Trajectory { route: route.to_vec(), verdict: expected.map(|e| judge(route, e)) }
}

fn judge(route: &[String], expected: &Route) -> Verdict {
    let mut faults = Vec::new();
    if !expected.any.is_empty() && !expected.any.iter().any(|step| route.contains(step)) {
        faults.push(format!("takes none of {}", expected.any.join(", ")));
    }
    for step in expected.none.iter().filter(|step| route.contains(step)) {
        faults.push(format!("takes {step}"));
    }
    if let Some(most) = expected.steps_max.filter(|most| route.len() > *most) {
        faults.push(format!("takes {} steps, at most {most} are expected", route.len()));
    }
    Verdict { faults }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_route_is_compared_where_one_is_expected() {
        let route = ["request_gate", "scan"].map(str::to_owned);
        assert_eq!(score(&route, None).verdict, None);
        let expect = |any: &[&str], none: &[&str], steps_max| {
            let own = |l: &[&str]| l.iter().map(|s| (*s).to_owned()).collect();
            let expected = Route { any: own(any), none: own(none), steps_max };
            score(&route, Some(&expected)).verdict.unwrap().faults
        };
        assert!(expect(&["scan", "dense"], &["fusion"], Some(2)).is_empty());
        assert_eq!(expect(&["dense"], &["scan"], Some(1)).len(), 3);
    }
}
