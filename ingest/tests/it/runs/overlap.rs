//! One run at a time, and what killed ones leave.

use super::*;

/// A remote whose server holds the first connection until it is told to go on.
struct Gate {
    world: Arc<World>,
    server: Server,
    reached: mpsc::Receiver<()>,
    go_on: mpsc::Sender<()>,
}

impl Gate {
    fn new() -> Self {
        let world = Arc::new(World::new());
        world.remote("remote.git", "main").commit("main", &[("guide.md", "# Guide\n")]);
        let served = Arc::clone(&world);
        let (tell, reached) = mpsc::channel();
        let (go_on, wait) = mpsc::channel();
        let doors = Mutex::new((tell, wait));
        let server = Server::start(move |connection, number| {
            if number == 0 {
                let doors = doors.lock().unwrap();
                doors.0.send(()).unwrap();
                // An error says that the test is over.
                let _ = doors.1.recv();
            }
            serve(git_daemon(&served), connection);
        });
        Self { world, server, reached, go_on }
    }

    fn url(&self) -> String {
        format!("git://{}/remote.git", self.server.address)
    }

    /// A run that has reached the remote and is held there.
    fn held(&self) -> Running {
        let run = Running::start(self.world.command(&self.url(), &[]));
        self.reached.recv_timeout(Duration::from_secs(60)).unwrap();
        run
    }
}

#[test]
fn a_second_run_waits_for_the_first_and_finds_nothing_new() {
    let gate = Gate::new();
    let first = gate.held();
    let mut second = Running::start(gate.world.command(&gate.url(), &[]));
    second.wait_for("waiting for it");
    gate.go_on.send(()).unwrap();
    let first = first.output();
    assert_eq!(first.status.code(), Some(0), "{first:?}");
    let second = gate.world.finish(second.output()).expect(0, "up_to_date");
    let report: Value = serde_json::from_slice(&first.stdout).unwrap();
    assert_eq!(report["outcome"], "published");
    assert_eq!(report["generation"].as_str().map(str::to_owned), second.generation());
    assert_eq!(gate.world.generations(), 1);
}

#[test]
fn a_second_run_that_must_not_wait_leaves_at_once() {
    let gate = Gate::new();
    let held = gate.held();
    fs::write(
        gate.world.data().join("last-run.json"),
        format!(
            r#"{{"finished_at": "{LONG_AGO}", "outcome": "up_to_date", "error": null,
                     "source_checked_at": "{LONG_AGO}", "source": "", "generation": null,
                     "commit": null}}"#
        ),
    )
    .unwrap();
    let run = gate.world.ingest(&gate.url(), &["--no-wait"]).expect(1, "busy");
    let run = run.says(&["another ingest is at work", "hint: ", "--no-wait"]);
    assert_eq!(run.checked_at(), Some(LONG_AGO), "{run}");
    gate.go_on.send(()).unwrap();
    let run = gate.world.finish(held.output()).expect(0, "published");
    assert_ne!(run.checked_at(), Some(LONG_AGO), "{run}");
    gate.world.ingest(&gate.url(), &["--no-wait"]).expect(0, "up_to_date");
}

#[test]
fn a_killed_run_blocks_nobody() {
    let gate = Gate::new();
    let mut held = gate.held();
    let mut waiting = Running::start(gate.world.command(&gate.url(), &[]));
    waiting.wait_for("waiting for it");
    held.kill();
    let run = gate.world.finish(waiting.output()).expect(0, "published");
    assert_eq!(run.count("indexed"), 1);
}

#[test]
fn the_chunks_of_a_remote_wait_for_a_run_on_the_same_mirror() {
    let gate = Gate::new();
    let held = gate.held();
    let mut command = gate.world.program();
    command.args(["chunks", "--source", &gate.url(), "--data"]).arg(gate.world.data());
    let mut chunks = Running::start(command);
    chunks.wait_for("waiting for it");
    gate.go_on.send(()).unwrap();
    gate.world.finish(held.output()).expect(0, "published");
    let output = chunks.output();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert!(String::from_utf8(output.stdout).unwrap().contains("=== guide.md:1-1"));
}

#[test]
fn what_crashed_runs_left_is_swept() {
    let world = ingested();
    let left = world.data().join("generations/.tmp-4711");
    fs::create_dir_all(left.join("docs")).unwrap();
    fs::write(left.join("docs/a.md"), "half").unwrap();
    let link = world.data().join("current.tmp-4711");
    std::os::unix::fs::symlink("generations/none", &link).unwrap();
    fs::write(world.data().join("last-run.tmp-4711"), "{").unwrap();
    write(&world, "guide.md", "# New\n");
    world.ingest(SOURCE, &[]).expect(0, "published");
    assert!(!left.exists() && fs::symlink_metadata(&link).is_err());
    let wanted = ["current", "generations", "ingest.lock", "last-run.json"];
    assert_eq!(names(&world.data()), wanted);
}
