//! A world of its own for each test: home, data directory, remotes made object by object, servers
//! that live as long as the test, and runs of the program whose traces are checked every time.

mod random;
mod remote;
mod server;

pub(crate) use random::{Random, how_many};
pub(crate) use remote::{Entry, Remote, noise};
use runbook_shared::generation::{Generation, current_id};
use serde_json::Value;
pub(crate) use server::{
    Server, advertise, git_daemon, pkt_line, read_pkt_line, serve, serve_part,
};
use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use tempfile::TempDir;

/// An instant long ago, to see whether a run has written a newer one.
pub(crate) const LONG_AGO: &str = "2020-01-01T00:00:00Z";

/// A home and a data directory that nothing else touches.
pub(crate) struct World {
    dir: TempDir,
}

impl World {
    pub(crate) fn new() -> Self {
        let world = Self { dir: tempfile::tempdir().unwrap() };
        for name in ["home", "tmp"] {
            fs::create_dir(world.path(name)).unwrap();
        }
        world
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.path("data")
    }

    /// A bare repository whose HEAD names `branch`.
    pub(crate) fn remote(&self, name: &str, branch: &str) -> Remote {
        Remote::bare(self.path(name), branch)
    }

    /// The program with an environment that holds nothing of the developer's.
    pub(crate) fn program(&self) -> Command {
        self.hermetic(env!("CARGO_BIN_EXE_runbook-ingest"))
    }

    /// Any program in that environment.
    pub(crate) fn hermetic(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        let path = std::env::var_os("PATH").unwrap_or_default();
        command
            .env_clear()
            .env("PATH", path)
            .env("HOME", self.path("home"))
            .env("TMPDIR", self.path("tmp"))
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .current_dir(self.dir.path())
            .stdin(Stdio::null());
        command
    }

    /// A run on this world's data directory, without embedder and with the report as JSON.
    pub(crate) fn command(&self, source: &str, args: &[&str]) -> Command {
        let mut command = self.program();
        command
            .args(["--embedder", "none", "--json", "--source", source, "--data"])
            .arg(self.data())
            .args(args);
        command
    }

    /// Runs it to the end and checks what every run must leave behind.
    #[track_caller]
    pub(crate) fn ingest(&self, source: &str, args: &[&str]) -> Run {
        self.finish(self.command(source, args).output().unwrap())
    }

    /// Checks what every run must leave behind: the report's sums, last-run.json, a whole current
    /// generation, nothing half made.
    #[track_caller]
    pub(crate) fn finish(&self, output: Output) -> Run {
        let run = Run {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
            last: self.last_run(),
        };
        run.check(self);
        run
    }

    /// last-run.json; null when there is none.
    #[track_caller]
    pub(crate) fn last_run(&self) -> Value {
        match fs::read(self.data().join("last-run.json")) {
            Ok(bytes) => serde_json::from_slice(&bytes).unwrap(),
            Err(_) => Value::Null,
        }
    }

    /// Puts the last check of the source into the past.
    #[track_caller]
    pub(crate) fn age_last_run(&self) {
        let mut last = self.last_run();
        last["source_checked_at"] = LONG_AGO.into();
        fs::write(self.data().join("last-run.json"), last.to_string()).unwrap();
    }

    /// The current generation, all of it verified.
    #[track_caller]
    pub(crate) fn generation(&self) -> Generation {
        Generation::open_current(&self.data()).unwrap_or_else(|e| panic!("current: {e}"))
    }

    /// The documents' paths in the current generation.
    #[track_caller]
    pub(crate) fn documents(&self) -> Vec<String> {
        self.generation().documents.into_iter().map(|d| d.path).collect()
    }

    /// The stored text of a document in the current generation.
    #[track_caller]
    pub(crate) fn stored(&self, path: &str) -> String {
        let bytes = fs::read(self.generation().dir.join("docs").join(path)).unwrap();
        String::from_utf8(bytes).unwrap()
    }

    /// How many generations there are.
    pub(crate) fn generations(&self) -> usize {
        fs::read_dir(self.data().join("generations")).map_or(0, Iterator::count)
    }

    /// Removes `current` and all generations, so that the next run has to read the source again.
    #[track_caller]
    pub(crate) fn forget_generations(&self) {
        fs::remove_file(self.data().join("current")).unwrap();
        fs::remove_dir_all(self.data().join("generations")).unwrap();
    }
}

/// A run that has ended.
pub(crate) struct Run {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    pub(crate) last: Value,
}

impl Run {
    /// Fails with everything there is to see unless the run ended like this.
    #[track_caller]
    pub(crate) fn expect(self, code: i32, outcome: &str) -> Self {
        let found = self.last["outcome"].as_str().unwrap_or("");
        assert!(
            self.code == code && found == outcome,
            "exit {}, outcome {found:?}; wanted {code}, {outcome:?}\n{self}",
            self.code
        );
        self
    }

    /// Fails unless stderr holds all of these.
    #[track_caller]
    pub(crate) fn says(self, parts: &[&str]) -> Self {
        for part in parts {
            assert!(self.stderr.contains(part), "stderr does not say {part:?}\n{self}");
        }
        self
    }

    /// The report: from stdout, or from last-run.json where the run failed.
    #[track_caller]
    pub(crate) fn report(&self) -> Value {
        if self.stdout.trim().is_empty() {
            return self.last["report"].clone();
        }
        serde_json::from_str(&self.stdout).unwrap_or_else(|e| panic!("{e}\n{self}"))
    }

    #[track_caller]
    pub(crate) fn count(&self, key: &str) -> u64 {
        self.report()[key].as_u64().unwrap_or_else(|| panic!("no number {key:?}\n{self}"))
    }

    #[track_caller]
    pub(crate) fn skipped(&self) -> BTreeMap<String, u64> {
        serde_json::from_value(self.report()["skipped"].clone()).unwrap()
    }

    /// Path and reason of all that is not in the generation, in order of path.
    #[track_caller]
    pub(crate) fn problems(&self) -> Vec<(String, String)> {
        let report = self.report();
        let problems = report["problems"].as_array().unwrap();
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let mut problems: Vec<_> =
            problems.iter().map(|p| (text(&p["path"]), text(&p["reason"]))).collect();
        problems.sort();
        problems
    }

    #[track_caller]
    pub(crate) fn state(&self) -> String {
        self.report()["state"].as_str().unwrap().to_owned()
    }

    pub(crate) fn generation(&self) -> Option<String> {
        self.last["generation"].as_str().map(str::to_owned)
    }

    pub(crate) fn commit(&self) -> Option<String> {
        self.last["commit"].as_str().map(str::to_owned)
    }

    pub(crate) fn checked_at(&self) -> Option<&str> {
        self.last["source_checked_at"].as_str()
    }

    #[track_caller]
    fn check(&self, world: &World) {
        if self.code == 2 {
            return;
        }
        assert!([0, 1, 3].contains(&self.code), "{self}");
        let report = self.report();
        assert_eq!(report, self.last["report"], "{self}");
        assert_eq!(report["outcome"], self.last["outcome"], "{self}");
        let skipped: u64 = self.skipped().values().sum();
        let sum = self.count("indexed") + self.count("failed") + skipped;
        if self.code != 1 {
            assert_eq!(self.count("documents"), sum, "{self}");
            let is_partial = report["outcome"] == "published" && self.count("failed") > 0;
            assert_eq!(self.code == 3, is_partial, "{self}");
            assert_eq!(self.last["error"], Value::Null, "{self}");
        } else {
            assert!(self.last["error"].is_string() && self.stdout.is_empty(), "{self}");
            assert!(self.stderr.contains("runbook-ingest: "), "{self}");
        }
        let Ok(id) = current_id(&world.data()) else {
            assert_eq!(self.generation(), None, "{self}");
            return;
        };
        assert_eq!(self.generation().as_deref(), Some(id.as_str()), "{self}");
        let generation = world.generation();
        assert_eq!(generation.manifest.commit, self.commit(), "{self}");
        if self.code != 1 {
            let counts = &generation.manifest.counts;
            assert_eq!(counts.documents, self.count("documents"), "{self}");
            assert_eq!(counts.sections, self.count("sections"), "{self}");
            assert_eq!(counts.chunks, self.count("chunks"), "{self}");
        }
        check_tree(&generation);
        let names = names(&world.data().join("generations"));
        assert!(names.iter().all(|n| !n.starts_with('.')), "left behind: {names:?}\n{self}");
    }
}

impl std::fmt::Display for Run {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let last = serde_json::to_string_pretty(&self.last).unwrap_or_default();
        write!(
            f,
            "--- exit {}\n--- stdout\n{}\n--- stderr\n{}\n--- last-run.json\n{last}",
            self.code, self.stdout, self.stderr
        )
    }
}

/// docs/ holds the documents of the list, as plain files, and nothing else.
#[track_caller]
fn check_tree(generation: &Generation) {
    let docs = generation.dir.join("docs");
    let mut found = Vec::new();
    let mut pending = vec![docs.clone()];
    while let Some(dir) = pending.pop() {
        for entry in fs::read_dir(&dir).into_iter().flatten() {
            let path = entry.unwrap().path();
            let kind = fs::symlink_metadata(&path).unwrap().file_type();
            if kind.is_dir() {
                pending.push(path);
            } else {
                assert!(kind.is_file(), "{} is no plain file", path.display());
                found.push(path.strip_prefix(&docs).unwrap().to_str().unwrap().to_owned());
            }
        }
    }
    found.sort();
    let listed: Vec<_> = generation.documents.iter().map(|d| d.path.clone()).collect();
    assert_eq!(found, listed);
}

/// The names in a directory, sorted; none when it is not there.
pub(crate) fn names(dir: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(dir)
        .into_iter()
        .flatten()
        .map(|e| e.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

/// A run at work: it is killed when dropped.
pub(crate) struct Running {
    child: Child,
    stderr: Option<BufReader<std::process::ChildStderr>>,
}

impl Running {
    pub(crate) fn start(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let stderr = child.stderr.take().map(BufReader::new);
        Self { child, stderr }
    }

    /// Waits until a line of stderr holds this.
    #[track_caller]
    pub(crate) fn wait_for(&mut self, part: &str) {
        let stderr = self.stderr.as_mut().unwrap();
        let mut line = String::new();
        while !line.contains(part) {
            line.clear();
            assert!(stderr.read_line(&mut line).unwrap() > 0, "it ended without {part:?}");
        }
    }

    pub(crate) fn has_ended(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// What it left, at its end.
    pub(crate) fn output(mut self) -> Output {
        let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
        self.child.stdout.take().unwrap().read_to_end(&mut stdout).unwrap();
        self.stderr.take().unwrap().read_to_end(&mut stderr).unwrap();
        Output { status: self.child.wait().unwrap(), stdout, stderr }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Says that a test cannot run here; the reason stands in the test's output.
pub(crate) fn skip(reason: &str) {
    eprintln!("skipped: {reason}");
}

pub(crate) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}
