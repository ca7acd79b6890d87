//! Going back to an older generation, and staying there until somebody says otherwise.

use super::*;
use runbook_shared::generation::pin;

/// A world whose directory was ingested three times, with the ids of its generations, oldest first.
fn three() -> (World, Vec<String>) {
    let world = ingested();
    let mut ids = vec![world.generation().id];
    for n in 2..=3 {
        // Ids carry seconds, and their order is that of the runs.
        let second = jiff::Timestamp::now().as_second();
        while jiff::Timestamp::now().as_second() == second {
            std::thread::sleep(Duration::from_millis(20));
        }
        write(&world, "guide.md", &format!("# Guide\n\nVersion {n}.\n"));
        world.ingest(SOURCE, &[]).expect(0, "published");
        ids.push(world.generation().id);
    }
    assert!(ids.is_sorted());
    (world, ids)
}

/// Code, stdout, stderr of the program on this world's data directory.
fn call(world: &World, args: &[&str]) -> (i32, String, String) {
    let mut command = world.program();
    command.args(args).args(["--data", "data"]);
    let output = command.output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap_or(-1), text(output.stdout), text(output.stderr))
}

#[track_caller]
fn rolls_back(world: &World, args: &[&str]) -> Value {
    let (code, stdout, stderr) = call(world, &[&["rollback", "--json"], args].concat());
    assert_eq!((code, stderr.as_str()), (0, ""), "{stdout}");
    serde_json::from_str(&stdout).unwrap()
}

#[test]
fn a_rollback_holds_until_unpin() {
    let (world, ids) = three();
    let done = rolls_back(&world, &["--reason", "the new steps are wrong"]);
    assert_eq!(
        (&done["from"], &done["generation"]),
        (&ids[2].clone().into(), &ids[1].clone().into())
    );
    assert_eq!(done["pin"]["reason"], "the new steps are wrong");
    assert!(done["pin"]["by"].as_str().is_some_and(|by| !by.is_empty()), "{done}");
    assert_eq!(world.generation().id, ids[1]);
    assert!(world.stored("guide.md").contains("Version 2."));
    // The timer runs: the source is reached, has something newer still, and nothing is swapped.
    world.age_last_run();
    write(&world, "new.md", "# New\n");
    let run = world.ingest(SOURCE, &[]).expect(0, "pinned");
    assert_ne!(run.checked_at(), Some(LONG_AGO), "{run}");
    assert_eq!((run.state().as_str(), run.generation()), ("ContentMismatch", Some(ids[1].clone())));
    let note = run.report()["notes"][0].as_str().unwrap().to_owned();
    for part in [&ids[1], "is pinned since 20", "the new steps are wrong", "not built", "unpin"] {
        assert!(note.contains(part), "{note}");
    }
    assert_eq!(world.generations(), 3);
    let mut text = world.program();
    text.args(["--embedder", "none", "--source", SOURCE, "--data", "data"]);
    let text = String::from_utf8(text.output().unwrap().stdout).unwrap();
    assert!(text.starts_with("pinned (ContentMismatch): generation 2"), "{text}");
    assert!(text.contains("note: generation 2") && text.contains("unpin"), "{text}");
    // Once more goes further back; the oldest is the end.
    assert_eq!(rolls_back(&world, &[])["generation"], ids[0].as_str());
    let (code, stdout, stderr) = call(&world, &["rollback"]);
    assert_eq!((code, stdout.as_str()), (1, ""));
    assert!(stderr.contains(&format!("no generation before `{}`", ids[0])), "{stderr}");
    assert!(ids.iter().all(|id| stderr.contains(id)) && stderr.contains("hint: "), "{stderr}");
    assert_eq!(world.generation().id, ids[0]);
    // Without the pin the next run publishes what the source holds now.
    let (code, stdout, _) = call(&world, &["rollback", "--unpin"]);
    assert!(code == 0 && stdout.contains(&ids[0]) && stdout.contains("next run"), "{stdout}");
    assert_eq!(world.generation().id, ids[0]);
    let (code, stdout, _) = call(&world, &["unpin"]);
    assert_eq!((code, stdout.as_str()), (0, "nothing is pinned\n"));
    world.ingest(SOURCE, &[]).expect(0, "published");
    assert_eq!(world.documents(), ["disk.md", "guide.md", "new.md"]);
    assert!(world.stored("guide.md").contains("Version 3."));
}

#[test]
fn a_kept_generation_is_named_and_the_list_shows_them() {
    let (world, ids) = three();
    let hash = ids[0].len() - 4;
    rolls_back(&world, &["--to", &ids[0][..hash]]);
    assert_eq!(world.generation().id, ids[0]);
    let (code, json, _) = call(&world, &["rollback", "--list", "--json"]);
    let list: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(code, 0);
    let of =
        |key: &str| list.as_array().unwrap().iter().map(|k| k[key].clone()).collect::<Vec<_>>();
    let newest_first: Vec<Value> = ids.iter().rev().map(|id| id.clone().into()).collect();
    assert_eq!(of("generation"), newest_first);
    assert_eq!(of("current"), [false, false, true].map(Value::from));
    assert_eq!(of("pinned"), [false, false, true].map(Value::from));
    assert_eq!(of("documents"), [2, 2, 2].map(Value::from));
    let (_, text, _) = call(&world, &["rollback", "--list"]);
    assert!(text.lines().nth(2).unwrap().contains("current, pinned"), "{text}");
    // Forward again, and as it is: both are pinned.
    rolls_back(&world, &["--to", &ids[2]]);
    assert_eq!(rolls_back(&world, &["--to", &ids[2]])["from"], ids[2].as_str());
    world.ingest(SOURCE, &[]).expect(0, "pinned");
    for wanted in ["2020", "../data", ".", ""] {
        let (code, stdout, stderr) = call(&world, &["rollback", "--to", wanted]);
        assert_eq!((code, stdout.as_str()), (1, ""), "{wanted}");
        assert!(stderr.contains("kept are, oldest first: "), "{stderr}");
    }
    let (code, _, stderr) = call(&world, &["rollback", "--to", "20"]);
    assert!(code == 1 && stderr.contains("several generations"), "{stderr}");
    assert_eq!(world.generation().id, ids[2]);
}

#[test]
fn what_is_damaged_is_refused_before_the_switch() {
    let (world, ids) = three();
    flip(&world.data().join("generations").join(&ids[1]).join("chunks.jsonl"));
    let (code, stdout, stderr) = call(&world, &["rollback"]);
    assert_eq!((code, stdout.as_str()), (1, ""));
    assert!(
        stderr.contains(&format!("generation `{}` is damaged: `chunks.jsonl`", ids[1])),
        "{stderr}"
    );
    assert!(stderr.contains(&ids[0]) && stderr.contains("hint: "), "{stderr}");
    assert_eq!(world.generation().id, ids[2]);
    assert!(!world.data().join(pin::FILE_NAME).exists());
    world.ingest(SOURCE, &[]).expect(0, "up_to_date");
    // The others still do.
    rolls_back(&world, &["--to", &ids[0]]);
    assert_eq!(world.generation().id, ids[0]);
}

#[test]
fn a_pinned_generation_that_is_damaged_is_not_replaced_in_silence() {
    let (world, ids) = three();
    rolls_back(&world, &[]);
    world.age_last_run();
    let chunks = current(&world).join("chunks.jsonl");
    let bytes = fs::read(&chunks).unwrap();
    flip(&chunks);
    let output = world.command(SOURCE, &[]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        stderr.contains(&format!("pinned generation cannot be served: generation `{}`", ids[1])),
        "{stderr}"
    );
    assert!(stderr.contains("rollback --list") && stderr.contains("unpin"), "{stderr}");
    let last = world.last_run();
    assert_eq!(last["outcome"], "failed");
    assert_ne!(last["source_checked_at"], LONG_AGO, "the source was reached");
    fs::write(&chunks, bytes).unwrap();
    world.ingest(SOURCE, &[]).expect(0, "pinned");
    // A pin that is half a file still holds.
    fs::write(world.data().join(pin::FILE_NAME), "{\"generation").unwrap();
    let run = world.ingest(SOURCE, &[]).expect(1, "failed");
    run.says(&["pin.json` is damaged", "unpin"]);
    assert_eq!(world.generation().id, ids[1]);
    let (code, stdout, _) = call(&world, &["unpin"]);
    assert!(code == 0 && stdout.contains("could not be read"), "{stdout}");
    world.ingest(SOURCE, &[]).expect(0, "published");
}

#[test]
fn a_rollback_that_was_killed_half_way_is_ended_by_the_next_run() {
    let (world, ids) = three();
    rolls_back(&world, &["--to", &ids[0]]);
    // As it is between its two steps: pinned, and `current` is still the newest.
    let link = world.data().join("current");
    fs::remove_file(&link).unwrap();
    std::os::unix::fs::symlink(Path::new("generations").join(&ids[2]), &link).unwrap();
    world.ingest(SOURCE, &[]).expect(0, "pinned");
    assert_eq!(world.generation().id, ids[0]);
    fs::remove_dir_all(world.data().join("generations").join(&ids[0])).unwrap();
    fs::remove_file(&link).unwrap();
    std::os::unix::fs::symlink(Path::new("generations").join(&ids[2]), &link).unwrap();
    world.ingest(SOURCE, &[]).expect(1, "failed").says(&[&ids[0], "not kept any more"]);
    assert_eq!(world.generation().id, ids[2]);
}

#[test]
fn it_waits_for_a_run_or_leaves_and_needs_no_source() {
    let (world, ids) = three();
    fs::remove_dir_all(world.path(SOURCE)).unwrap();
    let lock = fs::File::open(world.data().join("ingest.lock")).unwrap();
    rustix::fs::flock(&lock, rustix::fs::FlockOperation::LockExclusive).unwrap();
    for args in [&["rollback", "--no-wait"][..], &["unpin", "--no-wait"]] {
        let (code, _, stderr) = call(&world, args);
        assert!(code == 1 && stderr.contains("another ingest is at work"), "{stderr}");
    }
    let mut command = world.program();
    command.args(["rollback", "--data", "data"]);
    let mut waiting = Running::start(command);
    waiting.wait_for("waiting for it");
    assert!(!waiting.has_ended());
    assert_eq!(world.generation().id, ids[2]);
    drop(lock);
    assert_eq!(waiting.output().status.code(), Some(0));
    assert_eq!(world.generation().id, ids[1]);
    // The directory may be named by the file of the service.
    fs::write(world.path("ingest.toml"), "source = \"gone\"\ndata = \"data\"\n").unwrap();
    let unpin = world.program().args(["unpin", "--config", "ingest.toml"]).output().unwrap();
    assert_eq!(unpin.status.code(), Some(0), "{unpin:?}");
    let none = world.program().args(["rollback"]).output().unwrap();
    assert_eq!(none.status.code(), Some(2));
    let (code, _, stderr) = {
        let output = world.program().args(["rollback", "--data", "empty"]).output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        (output.status.code(), output.stdout, stderr)
    };
    assert!(code == Some(1) && stderr.contains("no generation is kept"), "{stderr}");
}

/// Whoever goes back may be root with a narrow umask; the daemon must see the pin all the same.
#[test]
fn the_pin_can_be_read_whatever_the_umask() {
    use std::os::unix::fs::PermissionsExt;
    let (world, _) = three();
    let script =
        format!("umask 077; '{}' rollback --data data", env!("CARGO_BIN_EXE_runbook-ingest"));
    let output = world.hermetic("bash").args(["-c", &script]).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let mode = fs::metadata(world.data().join(pin::FILE_NAME)).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o644);
}
