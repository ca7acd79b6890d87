//! The goldens that are checked in.

use clap::ValueEnum;
use runbook_eval::suite::Suite;
use std::collections::BTreeSet;
use std::path::Path;

#[test]
fn no_golden_is_an_orphan() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("golden");
    let known: BTreeSet<String> = Suite::ALL
        .iter()
        .flat_map(|s| {
            ["approved.json", "ranking.txt", "baseline.json"]
                .map(|kind| format!("{}.{kind}", s.name()))
        })
        .collect();
    for entry in std::fs::read_dir(&dir).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(known.contains(&name), "evals/golden/{name} belongs to no suite");
    }
}

#[test]
fn every_suite_can_be_named() {
    let names: Vec<String> = runbook_eval::suite::Choice::value_variants()
        .iter()
        .filter_map(|c| Some(c.to_possible_value()?.get_name().to_owned()))
        .collect();
    for suite in Suite::ALL {
        assert!(names.iter().any(|n| n == suite.name()), "{}", suite.name());
    }
}
