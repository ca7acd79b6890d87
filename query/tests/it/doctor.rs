//! `doctor` of the daemon: each thing broken for real, and the line that says so.

use crate::support::{Daemon, Fixture};
use serde_json::Value;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

const TREE: &str = "//- ports.md\n# Ports\n\nThe unit harbor-web.service opens port 8080.\n";

fn command(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_runbook-query"));
    command.args(["doctor", "--json"]).args(args).env_remove("RUNBOOK_DATA");
    command
}

/// What `doctor` said, as JSON; its exit code must fit.
#[track_caller]
fn read(output: &Output) -> Value {
    let found: Value =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{e}: {output:?}"));
    let fails = found["checks"].as_array().unwrap().iter().any(|c| c["grade"] == "fail");
    assert_eq!(output.status.code(), Some(i32::from(fails)), "{found:#}");
    assert_eq!(found["ok"], !fails);
    found
}

#[track_caller]
fn doctor(data: &Path, args: &[&str]) -> Value {
    let usual = ["--data", data.to_str().unwrap(), "--listen", "127.0.0.1:0"];
    let mut all = usual.to_vec();
    if let Some(at) = args.iter().position(|a| *a == "--listen") {
        all.truncate(2);
        all.extend(&args[at..at + 2]);
        all.extend(args[..at].iter().chain(&args[at + 2..]));
    } else {
        all.extend(args);
    }
    read(&command(&all).output().unwrap())
}

#[track_caller]
fn says(found: &Value, check: &str, grade: &str, parts: &[&str]) {
    let checks = found["checks"].as_array().unwrap();
    let one = checks.iter().find(|c| c["check"] == check);
    let one = one.unwrap_or_else(|| panic!("no {check:?} in {found:#}"));
    assert_eq!(one["grade"], grade, "{one:#}");
    let text = format!("{} {}", one["message"], one["fix"]);
    assert!(parts.iter().all(|p| text.contains(p)), "{parts:?}: {one:#}");
    assert_eq!(one["fix"].is_null(), grade == "ok", "{one:#}");
}

#[test]
fn a_healthy_daemon_is_told_so() {
    let fixture = Fixture::lexical(TREE);
    let found = doctor(&fixture.data(), &[]);
    let checks = found["checks"].as_array().unwrap();
    let listed: Vec<&str> = checks.iter().map(|c| c["check"].as_str().unwrap()).collect();
    assert_eq!(
        listed,
        [
            "configuration",
            "data directory",
            "generation",
            "pin",
            "last run",
            "onnx library",
            "model",
            "state directory",
            "listen address",
            "file events",
            "memory",
            "clock"
        ]
    );
    says(&found, "generation", "ok", &["is whole: 1 documents"]);
    says(&found, "file events", "ok", &["inotify works", "max_user_watches"]);
    says(&found, "model", "ok", &["only words are searched"]);
    says(&found, "listen address", "ok", &["is free"]);
    let mut text = Command::new(env!("CARGO_BIN_EXE_runbook-query"));
    text.args(["doctor", "--listen", "127.0.0.1:0", "--data"]).arg(fixture.data());
    let text = String::from_utf8(text.output().unwrap().stdout).unwrap();
    assert!(text.starts_with("ok    configuration ") && text.contains("12 checks: "), "{text}");
}

#[test]
fn the_embedder_of_the_generation_is_loaded() {
    let fixture = Fixture::hybrid(TREE);
    let found = doctor(&fixture.data(), &[]);
    says(&found, "onnx library", "ok", &["ONNX Runtime 1."]);
    says(&found, "model", "ok", &["384 numbers", "sha256"]);
    let gone = doctor(&fixture.data(), &["--onnxruntime", "/nowhere/lib.so"]);
    says(&gone, "onnx library", "fail", &["/nowhere/lib.so", "deploy/setup"]);
    let gone = doctor(&fixture.data(), &["--model-dir", "/nowhere"]);
    says(&gone, "model", "fail", &["/nowhere", "--model-dir"]);
}

#[test]
fn an_address_that_is_taken_is_told_from_our_own() {
    let fixture = Fixture::lexical(TREE);
    let daemon = Daemon::start(&fixture.data(), &["--embedder", "none"]);
    let found = doctor(&fixture.data(), &["--listen", &daemon.address]);
    says(
        &found,
        "listen address",
        "ok",
        &["runbook-query", env!("CARGO_PKG_VERSION"), "serves on"],
    );
    // Something else, which never says what it is.
    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = other.local_addr().unwrap().to_string();
    let found = doctor(&fixture.data(), &["--listen", &address]);
    says(&found, "listen address", "fail", &["another program listens", "ss -ltnp", "--listen"]);
    let elsewhere = doctor(&fixture.data(), &["--listen", "203.0.113.1:8080", "--allow-remote"]);
    says(&elsewhere, "listen address", "fail", &["cannot listen on 203.0.113.1:8080"]);
    let open = doctor(&fixture.data(), &["--listen", "0.0.0.0:8080"]);
    says(&open, "configuration", "fail", &["can be reached from other machines", "--allow-remote"]);
}

#[test]
fn what_is_wrong_with_configuration_and_directories_is_told() {
    let fixture = Fixture::lexical(TREE);
    let path = |name: &str| fixture.dir.path().join(name);
    let file = path("query.toml");
    std::fs::write(&file, "[gate]\nscore_flor = 1\n").unwrap();
    let file = file.to_str().unwrap();
    let found = doctor(&fixture.data(), &["--config", file]);
    says(&found, "configuration", "fail", &["line 2", "did you mean `gate.score_floor`"]);
    says(&found, "generation", "ok", &["whole"]);
    let none = read(&command(&[]).output().unwrap());
    says(&none, "configuration", "fail", &["no data directory is set", "--data"]);

    let state = path("state");
    std::fs::create_dir(&state).unwrap();
    std::fs::set_permissions(&state, std::fs::Permissions::from_mode(0o777)).unwrap();
    let found = doctor(&fixture.data(), &["--state", state.to_str().unwrap()]);
    says(&found, "state directory", "fail", &["every user may write", "chmod o-w"]);
    says(&found, "disk", "ok", &["free"]);
    let nowhere = doctor(&path("nowhere"), &[]);
    says(&nowhere, "data directory", "warn", &["is not there", "runbook-ingest"]);
    says(&nowhere, "generation", "warn", &["no generation yet"]);
    says(&nowhere, "last run", "warn", &["no run of ingest"]);

    let id = fixture.service().snapshot().corpora()[0].generation.id.clone();
    let chunks = fixture.data().join("generations").join(id).join("chunks.jsonl");
    std::fs::write(chunks, "{}").unwrap();
    let found = doctor(&fixture.data(), &[]);
    says(&found, "generation", "fail", &["`chunks.jsonl`", "rollback"]);
    std::fs::remove_dir_all(fixture.data().join("generations")).unwrap();
    let found = doctor(&fixture.data(), &[]);
    says(&found, "data directory", "fail", &["current` leads nowhere", "rollback --list"]);
}

#[test]
fn several_repositories_are_told_apart() {
    let (one, two) = (Fixture::lexical(TREE), Fixture::lexical(TREE));
    let file = one.dir.path().join("query.toml");
    let table = |name: &str, data: &Path| {
        format!("[[repo]]\nname = \"{name}\"\ndata = \"{}\"\n", data.display())
    };
    std::fs::write(&file, table("net", &one.data()) + &table("db", &two.data())).unwrap();
    std::fs::write(two.data().join("pin.json"), "{").unwrap();
    let args = ["--listen", "127.0.0.1:0", "--config", file.to_str().unwrap()];
    let found = read(&command(&args).output().unwrap());
    says(&found, "generation (net)", "ok", &["whole"]);
    says(&found, "pin (net)", "ok", &["nothing is pinned"]);
    says(&found, "pin (db)", "fail", &["damaged", "unpin"]);
}

/// A user namespace has limits of its own, so nobody else's watches are touched.
#[test]
fn a_limit_of_file_events_that_is_used_up_is_told() {
    let fixture = Fixture::lexical(TREE);
    let script = format!(
        "echo 0 >/proc/sys/user/max_inotify_instances && exec '{}' doctor --json --listen 127.0.0.1:0 --data '{}'",
        env!("CARGO_BIN_EXE_runbook-query"),
        fixture.data().display()
    );
    let output = Command::new("unshare")
        .args(["--user", "--map-root-user", "sh", "-c", &script])
        .env_remove("RUNBOOK_DATA")
        .output();
    let Some(output) = output.ok().filter(|o| !o.stdout.is_empty()) else {
        println!("skipped: no user namespace can be made here");
        return;
    };
    says(&read(&output), "file events", "warn", &["no file events", "every 5 s", "sysctl -w"]);
}

#[test]
fn another_user_is_told_what_he_may_not_read() {
    if !std::fs::read_to_string("/proc/self/status").unwrap().contains("\nUid:\t0\t") {
        println!("skipped: only root can become another user");
        return;
    }
    let fixture = Fixture::lexical(TREE);
    let open = |path: &Path, mode| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    open(fixture.dir.path(), 0o755);
    open(&fixture.data(), 0o755);
    open(&fixture.data().join("generations"), 0o700);
    // The program must be one that he may run.
    let program = fixture.dir.path().join("runbook-query");
    std::fs::copy(env!("CARGO_BIN_EXE_runbook-query"), &program).unwrap();
    let mut command = Command::new(program);
    std::os::unix::process::CommandExt::uid(&mut command, 12345);
    command.args(["doctor", "--json", "--listen", "127.0.0.1:0", "--data"]).arg(fixture.data());
    let found = read(&command.current_dir("/").output().unwrap());
    says(
        &found,
        "data directory",
        "fail",
        &["user 12345 may not read", "generations`", "chmod g+rX"],
    );
    says(&found, "generation", "fail", &["cannot read"]);
}
