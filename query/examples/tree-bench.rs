//! tree-bench - how long a search and a shell command take over a data directory, in memory.
//!
//!     cargo run --release --workspace --example tree-bench -- DATA [PATTERN]
//!
//! evals/bench/tree runs it over 20 MB, beside ripgrep.

use runbook_query::service::{Options, Service};
use runbook_query::shell::{self, Request};
use runbook_query::snapshot::Repo;
use runbook_query::tree::request::{Grep, Syntax};
use runbook_shared::locate::Places;
use std::time::{Duration, Instant};

const RUNS: usize = 30;

/// Median, fastest and slowest of some runs, after one that fills the memory.
fn time(mut work: impl FnMut()) -> [Duration; 3] {
    work();
    let mut took: Vec<Duration> = (0..RUNS)
        .map(|_| {
            let started = Instant::now();
            work();
            started.elapsed()
        })
        .collect();
    took.sort();
    [took[RUNS / 2], took[0], took[RUNS - 1]]
}

#[expect(clippy::print_stdout, reason = "a program for a terminal")]
fn main() {
    let mut args = std::env::args().skip(1);
    let data = args.next().expect("a data directory");
    let pattern = args.next().unwrap_or_else(|| "kubelet".into());
    let service = Service::new(Options {
        repos: vec![Repo { name: String::new(), data: data.into() }],
        policy: runbook_query::engine::Policy::default(),
        embedder: Some("none".into()),
        places: Places::from_env(None, None),
    });
    service.open().expect("a generation");
    let view = service.view(None).expect("a view");
    let bytes: u64 = service
        .snapshot()
        .corpora()
        .iter()
        .flat_map(|c| c.generation.documents.iter())
        .map(|d| d.bytes)
        .sum();
    println!("| {bytes} bytes in memory | median, ms | least | most |\n|---|---|---|---|");
    let ms = |d: Duration| format!("{:.2}", d.as_secs_f64() * 1e3);
    let grep = |files_only, syntax| Grep {
        pattern: pattern.clone(),
        syntax,
        files_only,
        ..Grep::default()
    };
    for (name, request) in [
        ("grep fixed, names of files", grep(true, Syntax::Fixed)),
        ("grep fixed, lines", grep(false, Syntax::Fixed)),
    ] {
        let took = time(|| assert!(view.grep(&request).error.is_none())).map(ms);
        println!("| {name} | {} |", took.join(" | "));
    }
    for command in [
        format!("grep -rlF '{pattern}' ."),
        format!("grep -rn '{pattern}' . | wc -l"),
        "tree | tail -n 1".into(),
        "find . -name '*.md' | wc -l".into(),
        "cat $(find . -type f | head -n 1) | wc -c".into(),
    ] {
        let request = Request { command: command.clone(), ..Request::default() };
        let took = time(|| assert_eq!(shell::run(&view, &request).exit_code, Some(0))).map(ms);
        println!("| shell `{}` | {} |", command.replace('|', "\\|"), took.join(" | "));
    }
}
