//! One tree of documents twice: as files for the real tools, and as a view for the shell.

use crate::support::ingest;
use runbook_query::service::{Options, Service};
use runbook_query::shell::Shell;
use runbook_query::snapshot::Repo;
use runbook_query::tree::limits::Limits;
use runbook_query::tree::router::{Options as TreeOptions, Tree, View};
use runbook_shared::locate::Places;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use tempfile::TempDir;

/// A tree of documents, as files on disk and in a view.
pub(crate) struct Pair {
    _dir: Option<TempDir>,
    pub(crate) docs: PathBuf,
    view: View,
}

fn service(data: &Path) -> Service {
    let service = Service::new(Options {
        repos: vec![Repo { name: String::new(), data: data.to_owned() }],
        policy: runbook_query::engine::Policy::default(),
        embedder: Some("none".into()),
        places: Places::from_env(None, None),
    });
    service.open().unwrap();
    service
}

impl Pair {
    pub(crate) fn sample() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let data = dir.path().join("data");
        let sample = Path::new(env!("CARGO_MANIFEST_DIR")).join("../runbooks-sample");
        ingest(&sample.display().to_string(), &data, Some("none"));
        Self { _dir: Some(dir), ..Self::of(&data) }
    }

    pub(crate) fn of(data: &Path) -> Self {
        let docs = std::fs::canonicalize(data.join("current")).unwrap().join("docs");
        let limits = Limits { output_bytes: 512 << 20, wall_clock_s: 60.0, ..Limits::default() };
        let tree = Arc::new(Tree::new(TreeOptions { limits, ..TreeOptions::default() }));
        let view = service(data).with_tree(tree).view(None).unwrap();
        Self { _dir: None, docs, view }
    }

    /// Exit code and output of the real tools.
    pub(crate) fn real(&self, command: &str) -> (i32, String) {
        let output = Command::new("bash")
            .args(["-c", command])
            .current_dir(&self.docs)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("LC_ALL", "C.UTF-8")
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        (output.status.code().unwrap_or(-1), text)
    }

    pub(crate) fn ours(&self, command: &str) -> (i32, String, String) {
        let mut shell = Shell::new(&self.view, None).unwrap();
        let envelope = shell.run(command);
        (envelope.exit_code.unwrap_or(-1), envelope.content, envelope.stderr)
    }

    /// Compares commands; `sorted` where the order of files is the real tool's own.
    pub(crate) fn compare(&self, commands: &[String], sorted: bool) -> Vec<String> {
        let arrange = |text: &str| {
            let mut lines: Vec<&str> = text.split('\n').collect();
            if sorted {
                lines.sort_unstable();
            }
            lines.join("\n")
        };
        let mut differ = Vec::new();
        for command in commands {
            let (real_code, real) = self.real(command);
            let (code, ours, stderr) = self.ours(command);
            if arrange(&real) != arrange(&ours) || real_code != code {
                differ.push(format!(
                    "$ {command}\n  real {real_code}, ours {code} {stderr}\n{}",
                    first_difference(&arrange(&real), &arrange(&ours))
                ));
            }
        }
        differ
    }
}

fn first_difference(real: &str, ours: &str) -> String {
    let (mut a, mut b) = (real.split('\n'), ours.split('\n'));
    for n in 1.. {
        match (a.next(), b.next()) {
            (None, None) => break,
            (x, y) if x != y => return format!("  line {n}\n  real {x:?}\n  ours {y:?}\n"),
            _ => {}
        }
    }
    String::new()
}
