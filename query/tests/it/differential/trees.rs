//! Whole trees beside the checkout: grep, and find, ls, wc, head, tail and sort.
//!
//! `evals/shared-checks` makes generations of the trees and names them: RUNBOOK_TREES holds data directories,
//! separated by `:`. Without RUN_SLOW_TESTS=1 every second command of grep is run.

use super::greps::greps;
use super::pair::Pair;
use std::path::Path;

/// Documents of a tree, spread over its paths in byte order.
fn some_files(docs: &Path, count: usize) -> Vec<String> {
    let mut all = Vec::new();
    let mut open = vec![docs.to_owned()];
    while let Some(dir) = open.pop() {
        for entry in std::fs::read_dir(&dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else {
                all.push(path.strip_prefix(docs).unwrap().display().to_string());
            }
        }
    }
    all.sort();
    let step = (all.len() / count).max(1);
    all.into_iter().step_by(step).take(count).collect()
}

/// Command lines of find, ls, wc, head, tail and sort for a tree.
fn listings(docs: &Path) -> Vec<String> {
    let mut commands: Vec<String> = [
        "find .",
        "find . -type d",
        "find . -name '*a*.md' -type f",
        "find . -iname '*READ*'",
        "find . -maxdepth 2",
        "find . -mindepth 3 -type f",
        "find . -size +20k",
        "find . -path '*e*/*' -not -name '*s*'",
        "find . -regex '.*/[a-f][^/]*\\.md'",
        "find . -type f -size -2k -o -type d -name 'a*'",
        "ls",
        "ls -R",
        "ls -1 .",
        "ls -a",
        "ls -p",
        "ls -d *",
        "ls -rR",
        "find . -type f | sort | xargs wc -l | tail -n 1",
        "find . -type f -print0 | sort -z | xargs -0 wc -w | sort -rn | head -n 40",
        "find . -type f | sort | xargs cat | sort | uniq -c | sort -rn | head -n 60",
        "find . -type f | sort | xargs cat | wc",
        "find . -type f | sort | head -n 30 | xargs head -n 2",
        "find . -type f | sort | tail -n 30 | xargs tail -n 2",
    ]
    .map(str::to_owned)
    .to_vec();
    for file in some_files(docs, 6) {
        for command in [
            "wc",
            "wc -l",
            "wc -m",
            "wc -L",
            "head",
            "head -n 3",
            "head -c 200",
            "head -n -5",
            "tail",
            "tail -n 4",
            "tail -n +9",
            "tail -c 120",
            "sort",
            "sort -r",
            "sort -u",
            "sort -f",
            "sort -k2",
            "sort -n",
            "sort -t: -k2,2",
        ] {
            commands.push(format!("{command} '{file}'"));
        }
    }
    commands
}

#[test]
#[expect(clippy::print_stdout, reason = "the figure that shared-checks shows")]
fn trees_beside_the_checkout() {
    let Some(trees) = std::env::var_os("RUNBOOK_TREES") else { return };
    let all = std::env::var_os("RUN_SLOW_TESTS").is_some_and(|v| v == "1");
    for data in std::env::split_paths(&trees) {
        let pair = Pair::of(&data);
        let name = data.file_name().unwrap_or_default().display().to_string();
        let mut commands = greps();
        commands.retain(|c| c.starts_with("grep -r"));
        if !all {
            commands = commands.into_iter().step_by(2).collect();
        }
        assert!(commands.len() >= 100, "{} commands of grep", commands.len());
        let listings = listings(&pair.docs);
        for (what, commands) in [("grep", commands), ("find, ls, wc, head, tail, sort", listings)] {
            let differ = pair.compare(&commands, true);
            println!("{name}: {what}: {} of {} commands differ", differ.len(), commands.len());
            assert!(differ.is_empty(), "{name}\n{}", differ.join("\n"));
        }
    }
}
