//! `doctor`: each thing broken for real, and the line that says so.

use super::*;
use runbook_shared::generation::pin;

/// What `doctor` said.
struct Doctor {
    code: i32,
    json: Value,
}

impl Doctor {
    /// Grade, message and fix of a check.
    #[track_caller]
    fn of(&self, check: &str) -> (&str, &str, &str) {
        let checks = self.json["checks"].as_array().unwrap();
        let found = checks.iter().find(|c| c["check"] == check);
        let found = found.unwrap_or_else(|| panic!("no {check:?} in {:#}", self.json));
        let text = |key: &str| found[key].as_str().unwrap_or("");
        (text("grade"), text("message"), text("fix"))
    }

    /// Fails unless the check ended like this, with these words, and with something to do.
    #[track_caller]
    fn says(&self, check: &str, grade: &str, parts: &[&str]) -> &Self {
        let (found, message, fix) = self.of(check);
        assert_eq!(found, grade, "{:#}", self.json);
        assert!(parts.iter().all(|p| format!("{message} {fix}").contains(p)), "{:#}", self.json);
        assert_eq!(fix.is_empty(), grade == "ok", "{:#}", self.json);
        let fails = self.json["checks"].as_array().unwrap().iter().any(|c| c["grade"] == "fail");
        assert_eq!((self.code, &self.json["ok"]), (i32::from(fails), &Value::from(!fails)));
        self
    }
}

#[track_caller]
fn doctor(world: &World, args: &[&str]) -> Doctor {
    let mut command = world.program();
    command.args(["doctor", "--json", "--embedder", "none"]).args(args);
    let output = command.output().unwrap();
    let json = serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{e}: {output:?}"));
    Doctor { code: output.status.code().unwrap(), json }
}

const USUAL: [&str; 4] = ["--source", SOURCE, "--data", "data"];

#[test]
fn a_healthy_machine_is_told_so_and_nothing_is_changed() {
    let world = ingested();
    let before = names(&world.data());
    let found = doctor(&world, &USUAL);
    let checks = found.json["checks"].as_array().unwrap();
    let listed: Vec<&str> = checks.iter().map(|c| c["check"].as_str().unwrap()).collect();
    assert_eq!(
        listed,
        [
            "configuration",
            "onnx library",
            "model",
            "data directory",
            "generation",
            "pin",
            "last run",
            "source",
            "disk",
            "memory",
            "clock"
        ]
    );
    found.says("generation", "ok", &["is whole: 2 documents"]).says(
        "clock",
        "ok",
        &["after the last"],
    );
    assert_eq!(names(&world.data()), before);
    assert!(names(&world.path("tmp")).is_empty());
    let mut text = world.program();
    text.args(["doctor", "--embedder", "none"]).args(USUAL);
    let text = String::from_utf8(text.output().unwrap().stdout).unwrap();
    assert!(text.starts_with("ok    configuration   flags and environment: source "), "{text}");
    assert!(text.contains("\n11 checks: ") && text.ends_with(" 0 failed\n"), "{text}");
}

#[test]
fn a_configuration_that_is_wrong_is_named_and_the_rest_is_looked_at() {
    let world = ingested();
    fs::write(world.path("ingest.toml"), "sorce = \"x\"\n").unwrap();
    let found = doctor(&world, &["--config", "ingest.toml", "--data", "data", "--source", SOURCE]);
    let typo = ["`ingest.toml` line 1", "unknown key `sorce`", "did you mean `source`"];
    found.says("configuration", "fail", &typo).says("generation", "ok", &["whole"]);
    fs::write(world.path("ingest.toml"), "source = \"gone\"\ndata = \"data\"\n").unwrap();
    let found = doctor(&world, &["--config", "ingest.toml"]);
    found.says(
        "configuration",
        "fail",
        &["`gone` is not a directory", "name a directory, or a URL"],
    );
    found.says("generation", "ok", &["whole"]);
    doctor(&world, &["--source", SOURCE]).says("configuration", "fail", &["no data is set"]);
}

#[test]
fn library_and_model_are_loaded_and_told_by_hash() {
    let world = ingested();
    let places = embedder::installed();
    let (model, library) = (places.model_dir.unwrap(), places.onnxruntime.unwrap());
    let with = |model: &Path, library: &Path| {
        let paths = [model.to_str().unwrap(), library.to_str().unwrap()];
        let own = ["--embedder", DEFAULT_MODEL, "--model-dir", paths[0], "--onnxruntime", paths[1]];
        let mut command = world.program();
        command.args(["doctor", "--json"]).args(USUAL).args(own);
        let output = command.output().unwrap();
        let json = serde_json::from_slice(&output.stdout).unwrap();
        Doctor { code: output.status.code().unwrap(), json }
    };
    let found = with(&model, &library);
    found.says("onnx library", "ok", &["ONNX Runtime 1."]).says("model", "ok", &["384", "sha256 "]);
    let garbage = world.path("garbage.so");
    fs::write(&garbage, "no library").unwrap();
    let found = with(&model, &garbage);
    found.says("onnx library", "fail", &["cannot be loaded as a library", "deploy/setup"]);
    found.says("model", "fail", &["cannot be loaded"]);
    let found = with(&model, &world.path("gone.so"));
    found.says("onnx library", "fail", &["was not found", "gone.so", "deploy/setup"]);
    // One byte of the model is another one.
    let copy = world.path("models").join(DEFAULT_MODEL);
    fs::create_dir_all(&copy).unwrap();
    for name in ["config.json", "tokenizer.json", "model.onnx"] {
        fs::copy(model.join(name), copy.join(name)).unwrap();
    }
    flip(&copy.join("model.onnx"));
    let found = with(&copy, &library);
    found.says("model", "fail", &["not the one that belongs to this program", "deploy/setup"]);
    fs::remove_file(copy.join("tokenizer.json")).unwrap();
    with(&copy, &library).says("model", "fail", &[copy.to_str().unwrap(), "deploy/setup"]);
}

#[test]
fn what_is_wrong_with_the_data_directory_is_told_with_the_command_that_helps() {
    use std::os::unix::fs::PermissionsExt;
    let world = World::new();
    write(&world, "guide.md", "# Guide\n");
    let found = doctor(&world, &USUAL);
    found.says("data directory", "ok", &["not there yet, and can be made"]);
    found.says("generation", "warn", &["no generation yet", "run `runbook-ingest"]);
    found.says("last run", "warn", &["no run of ingest has ended"]);
    fs::write(world.path("file"), "").unwrap();
    let found = doctor(&world, &["--source", SOURCE, "--data", "file"]);
    found.says("data directory", "fail", &["`file` is no directory"]);
    let world = ingested();
    let mode = |bits| fs::set_permissions(world.data(), fs::Permissions::from_mode(bits)).unwrap();
    mode(0o777);
    doctor(&world, &USUAL).says(
        "data directory",
        "fail",
        &["every user may write", "chmod o-w data"],
    );
    mode(0o755);
    doctor(&world, &USUAL).says("data directory", "ok", &["may write `data`"]);
    if !is_root() {
        return skip("only root can give files away");
    }
    let give = |path: &Path, to: u32| std::os::unix::fs::chown(path, Some(to), None).unwrap();
    give(&world.data().join("ingest.lock"), 12345);
    let says = ["`data/ingest.lock` does not belong to `root`", "chown -R --reference=data"];
    doctor(&world, &USUAL).says("data directory", "fail", &says);
    give(&world.data().join("ingest.lock"), 0);
    give(&world.data().join("generations"), 12345);
    doctor(&world, &USUAL).says("data directory", "fail", &["`data/generations` does not belong"]);
    for name in ["", "ingest.lock", "generations"] {
        give(&world.data().join(name), 12345);
    }
    let says = ["belongs to `12345`, and this runs as `root`", "sudo -u 12345"];
    doctor(&world, &USUAL).says("data directory", "warn", &says);
    // Another user looks at what is root's; the program must be one that he may run.
    for name in ["", "ingest.lock", "generations"] {
        give(&world.data().join(name), 0);
    }
    mode(0o755);
    fs::set_permissions(world.path(""), fs::Permissions::from_mode(0o755)).unwrap();
    let program = world.path("runbook-ingest");
    fs::copy(env!("CARGO_BIN_EXE_runbook-ingest"), &program).unwrap();
    let mut command = world.hermetic(program.to_str().unwrap());
    std::os::unix::process::CommandExt::uid(&mut command, 12345);
    command.args(["doctor", "--json", "--embedder", "none"]).args(USUAL);
    let output = command.output().unwrap();
    let found = Doctor {
        code: output.status.code().unwrap(),
        json: serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{e}: {output:?}")),
    };
    let says = ["user 12345 may not write `data` (owner `root`, mode 755)", "sudo -u root"];
    found.says("data directory", "fail", &says);
}

#[test]
fn what_is_wrong_with_generation_pin_and_last_run_is_told() {
    let world = ingested();
    let chunks = current(&world).join("chunks.jsonl");
    let bytes = fs::read(&chunks).unwrap();
    flip(&chunks);
    let found = doctor(&world, &USUAL);
    found.says("generation", "fail", &["is damaged: `chunks.jsonl`", "runbook-ingest rollback"]);
    fs::write(&chunks, bytes).unwrap();
    let rolled = world
        .program()
        .args(["rollback", "--data", "data", "--to"])
        .arg(world.generation().id)
        .output();
    assert!(rolled.unwrap().status.success());
    doctor(&world, &USUAL).says("pin", "warn", &["is pinned since", "runbook-ingest unpin"]);
    fs::write(world.data().join(pin::FILE_NAME), "{").unwrap();
    doctor(&world, &USUAL).says("pin", "fail", &["pin.json` is damaged", "runbook-ingest unpin"]);
    fs::remove_file(world.data().join(pin::FILE_NAME)).unwrap();
    world.age_last_run();
    doctor(&world, &USUAL).says("last run", "warn", &["days ago", "list-timers"]);
    world.ingest("gone", &[]);
    doctor(&world, &USUAL).says("last run", "warn", &["it failed at", "`gone` is not a directory"]);
}

#[test]
fn a_clock_that_was_set_back_is_told() {
    let world = ingested();
    let mut last = world.last_run();
    last["finished_at"] = "2099-01-01T00:00:00Z".into();
    fs::write(world.data().join("last-run.json"), last.to_string()).unwrap();
    let found = doctor(&world, &USUAL);
    found.says("clock", "fail", &["days before the last run ended", "timedatectl set-ntp"]);
}

#[test]
fn a_disk_without_room_is_told() {
    let world = World::new();
    let Some(small) = disk::Small::mount(&world.data(), "80m") else { return };
    write(&world, "guide.md", "# Guide\n");
    doctor(&world, &USUAL).says("disk", "ok", &["MiB free"]);
    small.fill_but(1 << 20);
    doctor(&world, &USUAL).says("disk", "fail", &["MiB free", "make room beneath `data`"]);
}

#[test]
fn a_remote_is_asked_and_what_it_says_is_told() {
    let world = Arc::new(World::new());
    let remote = world.remote("remote.git", "main");
    let commit = remote.commit("main", &[("guide.md", "# Guide\n")]);
    let served = Arc::clone(&world);
    let server = Server::start(move |connection, _| {
        serve(git_daemon(&served), connection);
    });
    let url = format!("git://{}/remote.git", server.address);
    let at =
        |args: &[&str]| doctor(&world, &[&["--source", &url, "--data", "data"], args].concat());
    let says = [&commit[..12], "branch main"];
    at(&[]).says("source", "ok", &says);
    assert!(!world.data().exists(), "nothing is made");
    world.ingest(&url, &[]).expect(0, "published");
    at(&[]).says("source", "ok", &["which is indexed"]);
    remote.commit("main", &[("new.md", "# New\n")]);
    at(&[]).says("source", "ok", &["which is not indexed yet"]);
    at(&["--branch", "gone"]).says("source", "fail", &["has no branch `gone`", "main", "--branch"]);
    drop(server);
    at(&[]).says("source", "fail", &["cannot fetch from", "git ls-remote"]);
    assert!(names(&world.path("tmp")).is_empty());
}
