//! The totals that a run must not fall below, by embedder: without vectors they are others.

use crate::figures::Figure;
use crate::golden;
use anyhow::{Context, Result};
use runbook_shared::embed::NO_EMBEDDER;
use std::collections::BTreeMap;
use std::path::Path;

/// Part and whole by figure, by embedder.
pub type Baseline = BTreeMap<String, BTreeMap<String, (usize, usize)>>;

/// Reads a baseline file; one that is not there holds nothing.
///
/// # Errors
/// When it cannot be read.
pub fn read(file: &Path) -> Result<Baseline> {
    let Some(text) = golden::read(file)? else { return Ok(Baseline::new()) };
    serde_json::from_str(&text).with_context(|| format!("`{}`", file.display()))
}

/// Writes a baseline file with the figures of one embedder replaced.
///
/// # Errors
/// When it cannot be written.
pub fn update(file: &Path, embedder: &str, figures: &[Figure]) -> Result<()> {
    let mut baseline = read(file)?;
    let own = figures.iter().map(|f| (f.name.to_owned(), (f.part, f.of))).collect();
    baseline.insert(embedder.to_owned(), own);
    golden::write(file, &text(&baseline))
}

/// One figure a line.
fn text(baseline: &Baseline) -> String {
    let entries = baseline.iter().map(|(embedder, figures)| {
        let lines = figures
            .iter()
            .map(|(name, (part, of))| format!("    {}: [{part}, {of}]", serde_json::json!(name)));
        let lines = lines.collect::<Vec<_>>().join(",\n");
        format!("  {}: {{\n{lines}\n  }}", serde_json::json!(embedder))
    });
    format!("{{\n{}\n}}\n", entries.collect::<Vec<_>>().join(",\n"))
}

/// A share may fall by one part in so many where vectors are involved: the model is quantised, and its
/// vectors differ a little from one kind of CPU to another (203 of 328 cases on one, 200 on the next).
const SLACK: u128 = 50;

/// What is below the baseline. The shares are compared as fractions, so that nothing is rounded and a
/// suite may grow. What was whole has to stay whole.
#[must_use]
pub fn regressions(baseline: &Baseline, embedder: &str, figures: &[Figure]) -> Vec<String> {
    let Some(own) = baseline.get(embedder) else {
        return vec![format!(
            "no baseline for the embedder `{embedder}`, run with --update-baseline"
        )];
    };
    own.iter()
        .filter_map(|(name, (part, of))| {
            let Some(now) = figures.iter().find(|f| f.name == name) else {
                return Some(format!("{name}: was {part}/{of}, is no longer measured"));
            };
            let (now_part, now_of) = (now.part as u128, now.of as u128);
            let (was_part, was_of) = (*part as u128, *of as u128);
            let exact = embedder == NO_EMBEDDER || part == of;
            let slack = if exact { 0 } else { now_of * was_of };
            let fell = SLACK * now_part * was_of + slack < SLACK * was_part * now_of;
            fell.then(|| format!("{name}: {}/{}, was {part}/{of}", now.part, now.of))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_smaller_share_is_a_regression() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("b.json");
        let figure = |part, of| [Figure { name: "passed", meaning: "", part, of }];
        let below = |part, of| regressions(&read(&file).unwrap(), "none", &figure(part, of));
        assert_eq!(
            below(1, 2),
            ["no baseline for the embedder `none`, run with --update-baseline"]
        );
        update(&file, "none", &figure(1, 3)).unwrap();
        update(&file, "m", &figure(3, 3)).unwrap();
        update(&file, "q", &figure(50, 100)).unwrap();
        let quantised = |part| regressions(&read(&file).unwrap(), "q", &figure(part, 100)).len();
        assert_eq!((quantised(50), quantised(48), quantised(47)), (0, 0, 1));
        assert_eq!(regressions(&read(&file).unwrap(), "m", &figure(99, 100)).len(), 1);
        assert!(below(1, 3).is_empty() && below(2, 6).is_empty());
        assert_eq!(below(33, 100), ["passed: 33/100, was 1/3"]);
        assert_eq!(regressions(&read(&file).unwrap(), "m", &[]).len(), 1);
    }
}
