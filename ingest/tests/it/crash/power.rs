//! Power that fails during a publish: the calls of a run are recorded, and after every one of them the
//! disk is put together as a power failure may leave it.

mod disk;
mod trace;

use super::{left, model};
use crate::support::{Random, World, how_many, skip};
use disk::{Disk, Loss};
use runbook_shared::generation::{Generation, OpenError, current_id};
use runbook_shared::last_run::LastRun;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Instant;
use trace::Change;

const SOURCE: &str = "source";

fn write(world: &World, path: &str, text: &str) {
    let path = world.path(SOURCE).join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// The program over this world's directory of documents.
fn program(world: &World, data: &Path, with_model: bool, mut command: Command) -> Command {
    command.arg("--source").arg(world.path(SOURCE)).arg("--json").arg("--data").arg(data);
    command.args(if with_model { model() } else { ["--embedder".into(), "none".into()].into() });
    command
}

/// Records a run: the changes that it makes in the data directory.
fn recorded(world: &World, with_model: bool) -> Option<Vec<Change>> {
    let out = world.path("trace");
    let mut strace = world.hermetic("strace");
    strace.args(["-f", "-xx", "-s", "8388608", "-e", &format!("trace={}", trace::CALLS), "-o"]);
    strace.arg(&out).arg("--").arg(env!("CARGO_BIN_EXE_runbook-ingest"));
    let output = match program(world, &world.data(), with_model, strace).output() {
        Ok(output) => output,
        Err(e) => {
            skip(&format!("no strace: {e}"));
            return None;
        }
    };
    let stderr = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() && stderr.contains("ptrace") {
        skip(&format!("no process can be traced here: {stderr}"));
        return None;
    }
    assert!(output.status.success(), "{stderr}");
    Some(trace::changes(&fs::read_to_string(out).unwrap(), &world.data()))
}

/// What a power failure may leave: the generation from before or the one after, whole.
#[track_caller]
fn check(data: &Path, before: Option<&str>, after: &str, what: &str) -> bool {
    if let Err(e) = LastRun::read(data) {
        panic!("{what}: {e}");
    }
    let id = match current_id(data) {
        Ok(id) => id,
        Err(OpenError::Missing(_)) if before.is_none() => return false,
        Err(e) => panic!("{what}: {e}"),
    };
    if let Err(e) = Generation::open(data, &id) {
        panic!("{what}: {e}");
    }
    assert!(id == after || Some(id.as_str()) == before, "{what}: {id}");
    id == after
}

/// The next run on what is left makes all well.
#[track_caller]
fn recover(world: &World, data: &Path, with_model: bool, what: &str) {
    let output = program(world, data, with_model, world.program()).output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{what}: {stderr}");
    let open = Generation::open_current(data).unwrap_or_else(|e| panic!("{what}: {e}"));
    assert_eq!(open.documents.len(), 2, "{what}");
    assert_eq!(left(data), Vec::<String>::new(), "{what}");
}

/// Fails the power after every change of one run. `recoveries` says after how many failures a run
/// follows.
fn power_fails_during_a_run(name: &str, is_first: bool, with_model: bool, recoveries: usize) {
    let started = Instant::now();
    let world = World::new();
    write(&world, "guide.md", "# Guide\n\nRestart it with `systemctl`.\n");
    write(&world, "disk.md", "# Disk\n\n## Full\n\nRun `df -h`.\n");
    let mut random = Random::new(name);
    fs::create_dir(world.data()).unwrap();
    if !is_first {
        // As many generations as are kept, so that the recorded run removes one.
        for n in 0..3 {
            write(&world, "disk.md", &format!("# Disk\n\n## Full {n}\n\nRun `df -h`.\n"));
            let run = program(&world, &world.data(), with_model, world.program()).output().unwrap();
            assert!(run.status.success(), "{run:?}");
        }
        write(&world, "disk.md", "# Disk\n\n## Now\n\nRun `df -i`.\n");
    }
    let before = current_id(&world.data()).ok();
    let mut disk = Disk::of(&world.data());
    let Some(changes) = recorded(&world, with_model) else { return };
    let after = current_id(&world.data()).unwrap();
    assert_ne!(Some(&after), before.as_ref());
    let syncs = changes.iter().filter(|c| matches!(c, Change::Sync(_))).count();
    assert!(syncs > 10, "{syncs}");
    let (mut failures, mut found_new, mut recovered) = (0, 0, 0);
    let losses = [Loss::All, Loss::Data, Loss::Names, Loss::Nothing, Loss::Some, Loss::Some];
    let total = changes.len() * losses.len();
    let every = (total / recoveries.max(1)).max(1);
    for n in 0..=changes.len() {
        if n > 0 {
            disk.apply(&changes[n - 1]);
            if matches!(changes[n - 1], Change::Open(..)) {
                continue; // It changes nothing.
            }
            // Vectors are many bytes: of their writes, some.
            if with_model && n % 4 != 0 && matches!(changes[n - 1], Change::Write(..)) {
                continue;
            }
        }
        for loss in losses {
            let left = world.path("left");
            disk.fail(loss, &mut random, &left);
            let at = n.checked_sub(1).map(|n| format!("{:.120?}", changes[n]));
            let what = format!("{loss:?} lost after change {n} of {} ({at:?})", changes.len());
            found_new += usize::from(check(&left, before.as_deref(), &after, &what));
            failures += 1;
            if failures % every == 0 {
                recover(&world, &left, with_model, &what);
                recovered += 1;
            }
            fs::remove_dir_all(&left).unwrap();
        }
    }
    // The run itself has ended well: all of it is durable.
    assert!(found_new > 0);
    eprintln!(
        "{name}: {} changes, {syncs} syncs, {failures} failures, {found_new} found the new generation, \
         {recovered} recovered, in {:.1?}",
        changes.len(),
        started.elapsed()
    );
}

/// How many recoveries are tried: each is a run.
fn recoveries(usual: usize) -> usize {
    how_many("RUNBOOK_TEST_RECOVERIES", usual)
}

#[test]
fn power_fails_during_the_first_run() {
    power_fails_during_a_run("first run", true, false, recoveries(60));
}

#[test]
fn power_fails_while_a_generation_is_replaced() {
    power_fails_during_a_run("next run", false, false, recoveries(60));
}

#[test]
fn power_fails_while_vectors_are_written() {
    power_fails_during_a_run("with vectors", false, true, recoveries(5));
}

/// The mirror is not synced by libgit2: whatever of it a power failure has lost, the next run fetches.
#[test]
fn a_mirror_that_lost_what_was_not_synced_is_made_anew() {
    let world = World::new();
    let remote = world.remote("remote.git", "main");
    remote.commit("main", &[("a.md", "# A\n\nOne.\n")]);
    world.ingest(&remote.url(), &[]).expect(0, "published");
    remote.commit("main", &[("a.md", "# A\n\nTwo.\n")]);
    world.ingest(&remote.url(), &[]).expect(0, "published");
    let mirror = world.data().join("source/mirror.git");
    let files: Vec<_> = walkdir::WalkDir::new(&mirror)
        .into_iter()
        .flatten()
        .filter(|e| e.file_type().is_file())
        .map(|e| e.path().to_owned())
        .collect();
    assert!(files.len() > 5, "{files:?}");
    for (n, file) in files.iter().enumerate() {
        if !file.exists() {
            continue; // Made anew by a run before, under another name.
        }
        let size = fs::metadata(file).unwrap().len();
        let mut kept = fs::read(file).unwrap();
        kept.truncate(usize::try_from(size / 2).unwrap() * (n % 2));
        // Objects and packs are read-only files.
        fs::remove_file(file).unwrap();
        fs::write(file, kept).unwrap();
        let text = format!("# A\n\nText {n}.\n");
        remote.commit("main", &[("a.md", text.as_str())]);
        let run = world.ingest(&remote.url(), &[]);
        assert_eq!((run.code, world.stored("a.md")), (0, text), "{}: {run}", file.display());
    }
}
