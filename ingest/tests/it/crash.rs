//! Runs that are killed at every named point and at random times: `current` is a whole old or a whole
//! new generation, the next run succeeds, and nothing is left behind.
//!
//! The program has no switch that ends it. The process that is killed is this test's own binary, which
//! runs the same code with a hook set; for random times it is the program itself.

mod power;

use crate::support::{Random, Remote, Running, World, how_many, names, noise};
use runbook_shared::failpoint::{self, POINTS};
use runbook_shared::generation::{Generation, check_strangers, current_id};
use runbook_shared::limits::GENERATIONS_KEPT;
use rustix::process::{Signal, getpid, kill_process};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Arguments of the program, one a line.
const ARGS: &str = "RUNBOOK_TEST_ARGS";
/// `POINT N`: where to end, and the how manieth time; or `trace`.
const END_AT: &str = "RUNBOOK_TEST_END_AT";

static END: OnceLock<(String, usize)> = OnceLock::new();
static REACHED: AtomicUsize = AtomicUsize::new(0);

/// The process that is killed, not a test.
#[test]
#[ignore = "started by the other tests"]
fn child() {
    use clap::Parser;
    let args = std::env::var(ARGS).expect("only the other tests start this");
    let end = std::env::var(END_AT).unwrap();
    let (point, count) = end.split_once(' ').unwrap_or((&end, "0"));
    END.set((point.to_owned(), count.parse().unwrap())).unwrap();
    failpoint::set_hook(|point| {
        let (wanted, count) = END.get().unwrap();
        if wanted == "trace" {
            eprintln!("point {point}");
        } else if wanted == point && REACHED.fetch_add(1, Ordering::SeqCst) + 1 == *count {
            kill_process(getpid(), Signal::KILL).unwrap();
        }
    });
    let cli =
        runbook_ingest::cli::Cli::parse_from(["runbook-ingest"].into_iter().chain(args.lines()));
    let code = runbook_ingest::cli::main(cli);
    assert!([0, 3].contains(&code), "exit {code}");
}

/// A remote with a data directory, and how it is ingested.
struct Victim {
    world: World,
    remote: Remote,
    embedder: bool,
    commits: usize,
    /// How many kills found the old generation, and how many the new one.
    found: [usize; 2],
}

impl Victim {
    fn new(embedder: bool) -> Self {
        let world = World::new();
        let remote = world.remote("remote.git", "main");
        let mut victim = Self { world, remote, embedder, commits: 0, found: [0, 0] };
        for _ in 0..GENERATIONS_KEPT {
            victim.commit();
            victim.recover();
        }
        victim
    }

    /// A commit that changes two documents of four.
    fn commit(&mut self) -> String {
        self.commits += 1;
        let n = self.commits;
        let page = format!("# Disk\n\n## Full {n}\n\nRun `df -h /data{n}`.\n");
        let more = format!("# Ports\n\n## Port {n}\n\nThe unit opens port {}.\n", 8000 + n);
        let files = [
            ("disk.md", page.as_str()),
            ("guide.md", "# Guide\n\nRestart it with `systemctl`.\n"),
            ("net/ports.md", &more),
            ("net/dns.md", "# DNS\n\n## Cache\n\nRun `resolvectl flush-caches`.\n"),
        ];
        self.remote.commit("main", &files)
    }

    fn arguments(&self) -> Vec<String> {
        let data = self.world.data().display().to_string();
        let mut args = vec!["--source".into(), self.remote.url(), "--data".into(), data];
        args.push("--json".into());
        args.extend(if self.embedder {
            model()
        } else {
            ["--embedder".into(), "none".into()].into()
        });
        args
    }

    /// The program itself.
    fn program(&self) -> Command {
        let mut command = self.world.program();
        command.args(self.arguments());
        command
    }

    /// This binary as the program, which ends there.
    fn child(&self, end: &str) -> Command {
        let binary = std::env::current_exe().unwrap();
        let mut command = self.world.hermetic(binary.to_str().unwrap());
        command.args(["crash::child", "--exact", "--ignored", "--nocapture"]);
        command.env(ARGS, self.arguments().join("\n")).env(END_AT, end);
        command
    }

    /// How often the next run comes by each point; it publishes.
    fn trace(&self) -> BTreeMap<String, usize> {
        let output = self.child("trace").output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{stderr}");
        let mut points = BTreeMap::new();
        for point in stderr.lines().filter_map(|l| l.strip_prefix("point ")) {
            *points.entry(point.to_owned()).or_insert(0) += 1;
        }
        points
    }

    /// What must hold after a kill: `current` is whole, and of the commit before or of this one.
    #[track_caller]
    fn check(&mut self, before: Option<&str>, commit: &str, what: &str) {
        let data = self.world.data();
        let id = current_id(&data).unwrap_or_else(|e| panic!("{what}: {e}"));
        let open = Generation::open(&data, &id).unwrap_or_else(|e| panic!("{what}: {e}"));
        check_strangers(&data, &id, &open.manifest).unwrap_or_else(|e| panic!("{what}: {e}"));
        let is_new = open.manifest.commit.as_deref() == Some(commit);
        assert!(is_new || Some(id.as_str()) == before, "{what}: neither old nor new: {id}");
        self.found[usize::from(is_new)] += 1;
        let left = left(&data);
        assert!(left.len() <= 4, "{what}: left behind: {left:?}");
        let generations = self.world.generations();
        assert!(generations <= GENERATIONS_KEPT + 2, "{what}: {generations} generations");
    }

    /// The next run succeeds, and nothing is left but what a data directory has.
    #[track_caller]
    fn recover(&mut self) {
        let output = self.program().output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{:?}: {stderr}", output.status);
        let data = self.world.data();
        let open = self.world.generation();
        let tip = self.remote.repository.refname_to_id("refs/heads/main").unwrap().to_string();
        assert_eq!(open.manifest.commit, Some(tip));
        check_strangers(&data, &open.id, &open.manifest).unwrap();
        assert_eq!(left(&data), Vec::<String>::new());
        // A run that finds nothing new leaves what the one that was killed did not prune.
        assert!(
            self.world.generations() <= GENERATIONS_KEPT + 1,
            "{:?}",
            names(&data.join("generations"))
        );
        let mut wanted = vec!["current", "generations", "ingest.lock", "last-run.json", "source"];
        if self.embedder {
            wanted.insert(0, "cache");
        }
        let found = names(&data);
        let strange: Vec<_> = found
            .iter()
            .filter(|n| !n.starts_with("model") && !wanted.contains(&n.as_str()))
            .collect();
        assert!(strange.is_empty(), "{found:?}");
        assert_eq!(names(&data.join("source")), ["mirror.git"]);
        if self.embedder {
            assert_eq!(names(&data.join("cache")).len(), 1);
        }
    }

    /// Kills runs at a point, `kills` times; every other kill finds what the one before has left.
    #[track_caller]
    fn kill_at(&mut self, point: &str, reached: usize, kills: usize, random: &mut Random) {
        for n in 0..kills {
            let before = current_id(&self.world.data()).ok();
            let commit = self.commit();
            let at = 1 + random.below(reached);
            let output = self.child(&format!("{point} {at}")).output().unwrap();
            let what = format!("{point} {at} of {reached}");
            use std::os::unix::process::ExitStatusExt;
            let was_killed = output.status.signal() == Some(9);
            // What a killed run has done, such as a fetch, the next one need not do again.
            let text = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(
                was_killed || n > 0 && output.status.success(),
                "{what}: {:?}: {text}",
                output.status
            );
            self.check(before.as_deref(), &commit, &what);
            if n % 2 == 1 || n + 1 == kills {
                self.recover();
            }
        }
    }
}

/// The model and the library that the set-up has installed, as arguments.
fn model() -> Vec<String> {
    use runbook_shared::locate::{DEFAULT_MODEL, Places};
    let places = Places::from_env(None, None);
    let library = places.onnxruntime().unwrap_or_else(|e| panic!("{e}; run deploy/setup"));
    let model = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/models").join(DEFAULT_MODEL);
    let text = |path: &Path| fs::canonicalize(path).unwrap().display().to_string();
    vec!["--model-dir".into(), text(&model), "--onnxruntime".into(), text(&library)]
}

/// What a run that was killed has left half done: all that the next one is to remove.
fn left(data: &Path) -> Vec<String> {
    let mut left = Vec::new();
    let is_left = |name: &str| {
        name.contains(".tmp-")
            || name.contains(".fresh.")
            || name.contains(".old.")
            || name.contains("_git2_")
            || name.starts_with("tmp_")
    };
    for entry in walkdir::WalkDir::new(data).into_iter().flatten() {
        let name = entry.file_name().to_string_lossy();
        let is_lock = name.ends_with(".lock") && name != "ingest.lock";
        if is_left(&name) || is_lock {
            left.push(entry.path().strip_prefix(data).unwrap().display().to_string());
        }
    }
    // What lies beneath a directory that is left is left with it.
    let above: Vec<String> = left.clone();
    left.retain(|path| !above.iter().any(|a| a != path && Path::new(path).starts_with(a)));
    left
}

fn kills() -> usize {
    how_many("RUNBOOK_TEST_KILLS", 5)
}

/// The tests that share the points between them.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Stage {
    Source,
    Draft,
    Publish,
    Vectors,
    Packs,
    Renewal,
}

/// Which test tries a point; a new point without a test does not get by.
fn stage(point: &str) -> Stage {
    match point {
        "fetch.merged" | "fetch.pack_removed" => return Stage::Packs,
        "fetch.renewed" | "fetch.moved_away" | "fetch.moved_in" => return Stage::Renewal,
        _ => {}
    }
    match point.split('.').next().unwrap_or_default() {
        "run" | "fetch" | "read" => Stage::Source,
        "draft" | "text" | "lexical" | "indexes" | "report" | "manifest" => Stage::Draft,
        "fsync" | "rename" | "sealed" | "swap" | "prune" | "replace" => Stage::Publish,
        "model" | "cache" | "vectors" => Stage::Vectors,
        _ => panic!("no test tries {point}"),
    }
}

fn points(wanted: Stage) -> Vec<&'static str> {
    POINTS.into_iter().filter(|point| stage(point) == wanted).collect()
}

/// Kills runs at all points of a stage.
fn kill_at_all(wanted: Stage) {
    let start = Instant::now();
    let mut random = Random::new("killed at points");
    let mut victim = Victim::new(wanted == Stage::Vectors);
    victim.commit();
    let reached = victim.trace();
    let points = points(wanted);
    for point in &points {
        let count =
            reached.get(*point).unwrap_or_else(|| panic!("no run comes by {point}: {reached:?}"));
        victim.kill_at(point, *count, kills(), &mut random);
    }
    let [old, new] = victim.found;
    eprintln!(
        "{wanted:?}: {} points, {} kills, {old} found the old generation, {new} the new one, in {:.1?}",
        points.len(),
        old + new,
        start.elapsed()
    );
}

#[test]
fn killed_while_the_source_is_read() {
    kill_at_all(Stage::Source);
}

#[test]
fn killed_while_the_draft_is_written() {
    kill_at_all(Stage::Draft);
}

#[test]
fn killed_while_it_is_published() {
    kill_at_all(Stage::Publish);
}

#[test]
fn killed_while_vectors_are_made() {
    kill_at_all(Stage::Vectors);
}

/// Copies a directory with its links.
fn copy(from: &Path, to: &Path) {
    let done = Command::new("cp").arg("-a").arg(from).arg(to).status().unwrap();
    assert!(done.success());
}

/// Kills runs at rare points, each on a copy of the same data directory.
#[track_caller]
fn kill_on_copies(mut victim: Victim, wanted: Stage) {
    let points = points(wanted);
    let mut random = Random::new("rare points");
    let (data, kept) = (victim.world.data(), victim.world.path("kept"));
    let tip = victim.remote.repository.refname_to_id("refs/heads/main").unwrap().to_string();
    fs::rename(&data, &kept).unwrap();
    copy(&kept, &data);
    let reached = victim.trace();
    for point in &points {
        let count =
            reached.get(*point).unwrap_or_else(|| panic!("no run comes by {point}: {reached:?}"));
        for _ in 0..kills() {
            fs::remove_dir_all(&data).unwrap();
            copy(&kept, &data);
            let before = current_id(&data).unwrap();
            let at = 1 + random.below(*count);
            let output = victim.child(&format!("{point} {at}")).output().unwrap();
            assert!(output.status.code().is_none(), "{point}: {output:?}");
            victim.check(Some(&before), &tip, point);
            victim.recover();
        }
    }
    eprintln!("{wanted:?}: {} points, {} kills", points.len(), points.len() * kills());
}

#[test]
fn killed_while_packs_are_merged() {
    let mut victim = Victim::new(false);
    // A run that adds the twentieth pack merges.
    while names(&victim.world.data().join("source/mirror.git/objects/pack"))
        .iter()
        .filter(|n| n.ends_with(".pack"))
        .count()
        < 19
    {
        victim.commit();
        victim.recover();
    }
    victim.commit();
    kill_on_copies(victim, Stage::Packs);
}

#[test]
fn killed_while_the_mirror_is_renewed() {
    let mut victim = Victim::new(false);
    // The fifth pack makes the others outgrow the largest.
    let text = |n: u64| noise(800_000, 2 * n);
    for n in 1..=5 {
        victim.remote.rewrite("main", &[("noise.txt", &text(n)), ("a.md", "# A\n\ntext\n")]);
        if n < 5 {
            victim.recover();
        }
    }
    kill_on_copies(victim, Stage::Renewal);
}

#[test]
fn killed_at_random_times() {
    let mut random = Random::new("killed_at_random_times");
    let kills = how_many("RUNBOOK_TEST_RANDOM_KILLS", 50);
    let mut victim = Victim::new(false);
    victim.commit();
    let start = Instant::now();
    victim.recover();
    let whole = start.elapsed();
    let mut ended = 0;
    for n in 0..kills {
        let before = current_id(&victim.world.data()).ok();
        let commit = victim.commit();
        let mut run = Running::start(victim.program());
        let at = Duration::from_micros(random.below(whole.as_micros() as usize + 1) as u64);
        std::thread::sleep(at);
        ended += usize::from(run.has_ended());
        run.kill();
        victim.check(before.as_deref(), &commit, &format!("kill {n} after {at:?}"));
        if n % 4 == 3 || n + 1 == kills {
            victim.recover();
        }
    }
    let [old, new] = victim.found;
    eprintln!("{kills} kills within {whole:?}: {old} old, {new} new; {ended} had ended before");
}
