//! A world of its own for each test: home, data directory, remotes made object by object, servers
//! that live as long as the test, and runs of the program whose traces are checked every time.

use git2::{ObjectType, Oid, Repository, RepositoryInitOptions, Signature, Time};
use runbook_shared::generation::{Generation, current_id};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;
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

/// A mode and an object of a tree.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    pub(crate) mode: &'static str,
    pub(crate) id: Oid,
}

/// A repository that is written object by object, so that it may hold what git would refuse.
pub(crate) struct Remote {
    pub(crate) dir: PathBuf,
    pub(crate) repository: Repository,
    clock: AtomicUsize,
}

impl Remote {
    fn bare(dir: PathBuf, branch: &str) -> Self {
        let mut options = RepositoryInitOptions::new();
        options.bare(true).initial_head(branch).external_template(false);
        let repository = Repository::init_opts(&dir, &options).unwrap();
        Self { dir, repository, clock: AtomicUsize::new(0) }
    }

    pub(crate) fn url(&self) -> String {
        format!("file://{}", self.dir.display())
    }

    pub(crate) fn blob(&self, bytes: &[u8]) -> Entry {
        Entry { mode: "100644", id: self.repository.blob(bytes).unwrap() }
    }

    pub(crate) fn link(&self, target: &str) -> Entry {
        Entry { mode: "120000", ..self.blob(target.as_bytes()) }
    }

    /// A tree with exactly these entries in this order; nothing is checked.
    pub(crate) fn tree(&self, entries: &[(&[u8], Entry)]) -> Entry {
        let mut bytes = Vec::new();
        for (name, entry) in entries {
            bytes.extend_from_slice(entry.mode.as_bytes());
            bytes.push(b' ');
            bytes.extend_from_slice(name);
            bytes.push(0);
            bytes.extend_from_slice(entry.id.as_bytes());
        }
        let id = self.repository.odb().unwrap().write(ObjectType::Tree, &bytes).unwrap();
        Entry { mode: "40000", id }
    }

    /// A tree of paths, as git would write it.
    pub(crate) fn files(&self, files: &[(&str, &str)]) -> Entry {
        let mut here: BTreeMap<&str, Vec<(&str, &str)>> = BTreeMap::new();
        let mut entries: Vec<(Vec<u8>, Entry)> = Vec::new();
        for (path, text) in files {
            match path.split_once('/') {
                Some((dir, rest)) => here.entry(dir).or_default().push((rest, text)),
                None => entries.push((path.as_bytes().to_vec(), self.blob(text.as_bytes()))),
            }
        }
        for (dir, files) in here {
            entries.push((dir.as_bytes().to_vec(), self.files(&files)));
        }
        let key = |(name, entry): &(Vec<u8>, Entry)| {
            let mut key = name.clone();
            key.extend_from_slice(if entry.mode == "40000" { b"/" } else { b"" });
            key
        };
        entries.sort_by_key(key);
        let entries: Vec<_> = entries.iter().map(|(n, e)| (n.as_slice(), *e)).collect();
        self.tree(&entries)
    }

    /// A commit of this tree on a branch, after the branch's own newest.
    pub(crate) fn commit_tree(&self, branch: &str, tree: Entry) -> String {
        let name = format!("refs/heads/{branch}");
        let parent = self.repository.refname_to_id(&name).ok();
        self.commit_onto(&name, parent, tree)
    }

    /// A commit of these files on a branch.
    pub(crate) fn commit(&self, branch: &str, files: &[(&str, &str)]) -> String {
        self.commit_tree(branch, self.files(files))
    }

    /// Puts a branch on a new history that knows nothing of the old one.
    pub(crate) fn rewrite(&self, branch: &str, files: &[(&str, &str)]) -> String {
        self.commit_onto(&format!("refs/heads/{branch}"), None, self.files(files))
    }

    fn commit_onto(&self, name: &str, parent: Option<Oid>, tree: Entry) -> String {
        let tick = self.clock.fetch_add(1, Ordering::Relaxed) as i64;
        let time = Time::new(1_700_000_000 + tick, 0);
        let author = Signature::new("Writer", "writer@example.org", &time).unwrap();
        let header = format!(
            "tree {}\n{}author {author} {} +0000\ncommitter {author} {} +0000\n\nchange {tick}\n",
            tree.id,
            parent.map_or_else(String::new, |p| format!("parent {p}\n")),
            time.seconds(),
            time.seconds(),
        );
        let odb = self.repository.odb().unwrap();
        let id = odb.write(ObjectType::Commit, header.as_bytes()).unwrap();
        self.repository.reference(name, id, true, "test").unwrap();
        id.to_string()
    }

    pub(crate) fn head(&self, branch: &str) {
        fs::write(self.dir.join("HEAD"), format!("ref: refs/heads/{branch}\n")).unwrap();
    }

    pub(crate) fn delete_branch(&self, branch: &str) {
        let name = format!("refs/heads/{branch}");
        self.repository.find_reference(&name).unwrap().delete().unwrap();
    }
}

/// Text that does not compress, in lines.
pub(crate) fn noise(bytes: usize, seed: u64) -> String {
    let mut state = seed | 1;
    let mut text = String::with_capacity(bytes + 64);
    while text.len() < bytes {
        for _ in 0..4 {
            // xorshift64: no two tests need the same noise, none needs good noise.
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            text.push_str(&format!("{state:016x}"));
        }
        text.push('\n');
    }
    text
}

/// A server on a free loopback port; each connection is handled on a thread of its own.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// `handle` gets each connection with its number, from 0.
    pub(crate) fn start(handle: impl Fn(TcpStream, usize) + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let (flag, handle) = (Arc::clone(&stop), Arc::new(handle));
        let thread = std::thread::spawn(move || {
            for (number, connection) in listener.incoming().enumerate() {
                if flag.load(Ordering::SeqCst) {
                    return;
                }
                let (connection, handle) = (connection.unwrap(), Arc::clone(&handle));
                std::thread::spawn(move || handle(connection, number));
            }
        });
        Self { address, stop, thread: Some(thread) }
    }

    pub(crate) fn port(&self) -> u16 {
        self.address.port()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        let _ = TcpStream::connect(self.address);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Hands a connection to a program that serves one on its standard input and output.
pub(crate) fn serve(mut command: Command, connection: TcpStream) -> ExitStatus {
    let fd = OwnedFd::from(connection);
    command.stdin(fd.try_clone().unwrap()).stdout(fd).stderr(Stdio::null()).status().unwrap()
}

/// `git daemon` for one connection.
pub(crate) fn git_daemon(world: &World) -> Command {
    let mut command = world.hermetic("git");
    command.args(["daemon", "--inetd", "--export-all", "--informative-errors"]);
    command.arg(format!("--base-path={}", world.dir.path().display()));
    command
}

/// Carries a connection to a program on pipes, and after so many bytes of its answer does `then`;
/// when that returns, or the answer ends, the connection is cut.
pub(crate) fn serve_part(
    mut command: Command,
    connection: &TcpStream,
    bytes: usize,
    then: impl FnOnce(),
) {
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let (to, from) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    let questions = connection.try_clone().unwrap();
    let pump = std::thread::spawn(move || carry(questions, to, usize::MAX));
    carry(from, connection, bytes);
    then();
    let _ = connection.shutdown(Shutdown::Both);
    let _ = child.kill();
    let _ = child.wait();
    let _ = pump.join();
}

/// Copies piece by piece as it comes (`std::io::copy` may splice, which waits for more).
fn carry(mut from: impl Read, mut to: impl Write, mut bytes: usize) {
    let mut buffer = [0; 8192];
    while bytes > 0 {
        let wanted = bytes.min(buffer.len());
        match from.read(&mut buffer[..wanted]) {
            Ok(0) | Err(_) => return,
            Ok(n) if to.write_all(&buffer[..n]).is_ok() => bytes -= n,
            Ok(_) => return,
        }
    }
}

/// One line of git's wire protocol.
pub(crate) fn pkt_line(text: &str) -> Vec<u8> {
    format!("{:04x}{text}", text.len() + 4).into_bytes()
}

/// Reads one line of git's wire protocol: empty for a flush, none at the end.
pub(crate) fn read_pkt_line(from: &mut impl Read) -> Option<Vec<u8>> {
    let mut length = [0; 4];
    from.read_exact(&mut length).ok()?;
    let length = usize::from_str_radix(std::str::from_utf8(&length).ok()?, 16).ok()?;
    let mut line = vec![0; length.saturating_sub(4)];
    from.read_exact(&mut line).ok()?;
    Some(line)
}

/// A git server that advertises these references, whatever they are, and sends nothing else.
pub(crate) fn advertise(mut connection: TcpStream, refs: &[(String, String)], capabilities: &str) {
    let mut questions = connection.try_clone().unwrap();
    if read_pkt_line(&mut questions).is_none() {
        return;
    }
    let mut answer = Vec::new();
    for (n, (id, name)) in refs.iter().enumerate() {
        let capabilities = if n == 0 { format!("\0{capabilities}") } else { String::new() };
        answer.extend(pkt_line(&format!("{id} {name}{capabilities}\n")));
    }
    answer.extend_from_slice(b"0000");
    let _ = connection.write_all(&answer);
    let _ = std::io::copy(&mut questions, &mut std::io::sink());
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
