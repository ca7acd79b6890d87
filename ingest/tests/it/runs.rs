//! Runs of the program: one at a time, configured in three places, state by state, with and without
//! the embedder, on a disk that is full.

use crate::support::{LONG_AGO, Running, Server, World, git_daemon, is_root, names, serve, skip};
use runbook_shared::generation::manifest;
use runbook_shared::locate::{DEFAULT_MODEL, Places};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};

const SOURCE: &str = "source";

fn write(world: &World, path: &str, text: &str) {
    let path = world.path(SOURCE).join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// A world with a directory of two documents that was ingested once.
fn ingested() -> World {
    let world = World::new();
    write(&world, "guide.md", "# Guide\n\nRestart it with `systemctl`.\n");
    write(&world, "disk.md", "# Disk\n\n## Full\n\nRun `df -h`.\n");
    world.ingest(SOURCE, &[]).expect(0, "published");
    world
}

/// The directory of the current generation.
fn current(world: &World) -> PathBuf {
    fs::canonicalize(world.data().join("current")).unwrap()
}

mod overlap {
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
}

mod settings {
    use super::*;

    /// A run without any flag but `--json` and these.
    fn bare(world: &World, args: &[&str]) -> Command {
        let mut command = world.program();
        command.arg("--json").args(args);
        command
    }

    #[track_caller]
    fn fails(mut command: Command, says: &[&str]) {
        let output = command.output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{stderr}");
        assert!(output.stdout.is_empty());
        for part in says {
            assert!(stderr.contains(part), "no {part:?} in {stderr}");
        }
    }

    #[test]
    fn an_unknown_key_is_refused_with_the_one_that_was_meant() {
        let world = ingested();
        fs::write(world.path("i.toml"), "source = \"source\"\n\nexclud = [\"*.md\"]\n").unwrap();
        let says = ["i.toml` line 3", "unknown key `exclud`", "did you mean `exclude`?"];
        fails(bare(&world, &["--config", "i.toml"]), &says);
        fs::write(world.path("i.toml"), "timeout_s = \"soon\"\n").unwrap();
        fails(bare(&world, &["--config", "i.toml"]), &["i.toml", "timeout_s"]);
        fs::write(world.path("i.toml"), "source = \n").unwrap();
        fails(bare(&world, &["--config", "i.toml"]), &["i.toml"]);
        fails(bare(&world, &["--config", "nowhere.toml"]), &["`nowhere.toml`"]);
    }

    #[test]
    fn a_flag_beats_a_variable_and_that_the_file() {
        let world = World::new();
        for name in ["by-file", "by-variable", "by-flag"] {
            fs::create_dir(world.path(name)).unwrap();
            fs::write(world.path(name).join(format!("{name}.md")), "# X\n").unwrap();
        }
        let file = "source = \"by-file\"\ndata = \"data\"\nembedder = \"none\"\n\
                    exclude = [\"no.md\"]\nchange_source = true\n";
        // Some keys may not be in a file; then they are flags.
        let file =
            if accepts(&world, file) { file } else { &file.replace("change_source = true\n", "") };
        fs::write(world.path("i.toml"), file).unwrap();
        let run = |args: &[&str], variables: &[(&str, &str)]| {
            let mut command = bare(&world, &["--config", "i.toml", "--change-source"]);
            command.args(args).envs(variables.iter().copied());
            world.finish(command.output().unwrap()).expect(0, "published");
            world.documents()
        };
        let variable = [("RUNBOOK_SOURCE", "by-variable")];
        assert_eq!(run(&[], &[]), ["by-file.md"]);
        assert_eq!(run(&[], &variable), ["by-variable.md"]);
        assert_eq!(run(&["--source", "by-flag"], &variable), ["by-flag.md"]);
        let mut command = bare(&world, &["--change-source"]);
        command.env("RUNBOOK_INGEST_CONFIG", "i.toml");
        world.finish(command.output().unwrap()).expect(0, "published");
        assert_eq!(world.documents(), ["by-file.md"]);
    }

    fn accepts(world: &World, file: &str) -> bool {
        fs::write(world.path("try.toml"), file).unwrap();
        let output =
            bare(world, &["--config", "try.toml", "--source", "nowhere"]).output().unwrap();
        !String::from_utf8_lossy(&output.stderr).contains("unknown key")
    }

    #[test]
    fn every_variable_is_read() {
        let world = World::new();
        let remote = world.remote("remote.git", "main");
        remote.commit("main", &[("no.md", "# No\n")]);
        remote.commit("dev", &[("docs/a.md", "# A\n"), ("b.md", "# B\n")]);
        let mut command = bare(&world, &[]);
        command.env("RUNBOOK_SOURCE", remote.url()).env("RUNBOOK_DATA", world.data());
        command.env("RUNBOOK_BRANCH", "dev").env("RUNBOOK_SUBDIR", "docs");
        command.env("RUNBOOK_EMBEDDER", "none").env("RUNBOOK_TIMEOUT_S", "9");
        command.env("RUNBOOK_FORGE", "gitea").env("RUNBOOK_FORGE_URL", "https://g.example/r");
        world.finish(command.output().unwrap()).expect(0, "published");
        assert_eq!(world.documents(), ["docs/a.md"]);
        let forge = world.generation().manifest.forge.unwrap();
        assert_eq!(forge.base_url, "https://g.example/r");
    }

    #[test]
    fn what_is_missing_or_wrong_is_named() {
        let world = ingested();
        fails(bare(&world, &["--data", "data"]), &["no source is set", "hint: ", "RUNBOOK_SOURCE"]);
        fails(bare(&world, &["--source", SOURCE]), &["no data is set", "RUNBOOK_DATA"]);
        let both = ["--source", SOURCE, "--data", "data"];
        let with = |args: &[&'static str]| bare(&world, &[&both[..], args].concat());
        fails(with(&["--include", "["]), &["`[` is not a glob"]);
        fails(with(&["--exclude", "a/{b"]), &["`a/{b` is not a glob"]);
        fails(with(&["--forge", "sourceforge"]), &["sourceforge", "github, gitlab"]);
        fails(with(&["--timeout-s", "soon"]), &["soon"]);
        fails(with(&["--no-such-flag"]), &["--no-such-flag"]);
        fails(bare(&world, &["--source", "nowhere", "--data", "data"]), &["`nowhere`", "hint: "]);
        let file = world.path(SOURCE).join("guide.md");
        let args = ["--source", file.to_str().unwrap(), "--data", "data"];
        fails(bare(&world, &args), &["guide.md", "not a directory"]);
    }

    #[test]
    fn one_data_directory_holds_one_source_unless_told_to_change() {
        let world = ingested();
        let other = world.path("other");
        fs::create_dir(&other).unwrap();
        fs::write(other.join("other.md"), "# Other\n").unwrap();
        let before = world.documents();
        world.age_last_run();
        let run = world.ingest("other", &[]);
        assert_eq!(run.code, 2, "{run}");
        let shown = fs::canonicalize(&other).unwrap();
        let run = run.says(&[SOURCE, shown.to_str().unwrap(), "hint: ", "--change-source"]);
        assert_eq!(run.last["source_checked_at"], LONG_AGO, "{run}");
        assert_eq!(world.documents(), before);
        let run = world.ingest("other", &["--change-source"]).expect(0, "published");
        assert_eq!(run.state(), "OptionMismatch");
        assert_eq!(world.documents(), ["other.md"]);
        world.ingest("other", &[]).expect(0, "up_to_date");
    }

    #[test]
    fn a_source_of_the_same_content_under_another_name_is_another_source() {
        let world = World::new();
        let remote = world.remote("remote.git", "main");
        remote.commit("main", &[("guide.md", "# Guide\n")]);
        world.ingest(&remote.url(), &[]).expect(0, "published");
        let moved = world.path("moved.git");
        fs::rename(&remote.dir, &moved).unwrap();
        let url = format!("file://{}", moved.display());
        assert_eq!(world.ingest(&url, &[]).code, 2);
        world.ingest(&url, &["--change-source"]).expect(0, "published");
        world.ingest(&url, &[]).expect(0, "up_to_date");
        assert_eq!(world.generation().manifest.source, url);
    }

    #[test]
    fn a_configuration_that_went_wrong_is_told_to_the_readers_of_last_run() {
        let world = ingested();
        let generation = world.last_run()["generation"].clone();
        world.age_last_run();
        fs::write(
            world.path("i.toml"),
            "data = \"data\"\nsource = \"source\"\ninclude = [\"[\"]\n",
        )
        .unwrap();
        fails(bare(&world, &["--config", "i.toml"]), &["not a glob"]);
        let last = world.last_run();
        assert_eq!(last["outcome"], "failed");
        assert!(last["error"].as_str().unwrap().contains("not a glob"), "{last}");
        assert_eq!(
            (&last["generation"], &last["source_checked_at"]),
            (&generation, &LONG_AGO.into())
        );
        // Where nothing was ever ingested, nothing is made.
        fails(bare(&world, &["--data", "typo", "--source", "nowhere"]), &["`nowhere`"]);
        assert!(!world.path("typo").exists());
    }
}

mod states {
    use super::*;

    #[track_caller]
    fn rebuilds(world: &World, args: &[&str], state: &str) {
        let run = world.ingest(SOURCE, args).expect(0, "published");
        assert_eq!(run.state(), state, "{run}");
        world.ingest(SOURCE, args).expect(0, "up_to_date");
    }

    #[test]
    fn each_reason_to_rebuild_has_its_name() {
        let world = ingested();
        rebuilds(&world, &["--exclude", "disk.md"], "OptionMismatch");
        rebuilds(&world, &["--forge", "none", "--exclude", "disk.md"], "OptionMismatch");
        rebuilds(&world, &[], "OptionMismatch");
        write(&world, "guide.md", "# Changed\n");
        rebuilds(&world, &[], "ContentMismatch");
        write(&world, "new.md", "# New\n");
        rebuilds(&world, &[], "ContentMismatch");
        fs::remove_file(world.path(SOURCE).join("new.md")).unwrap();
        rebuilds(&world, &[], "ContentMismatch");
        fs::rename(world.path(SOURCE).join("disk.md"), world.path(SOURCE).join("disks.md"))
            .unwrap();
        rebuilds(&world, &[], "ContentMismatch");
        write(&world, "ignored.txt", "not a document");
        world.ingest(SOURCE, &[]).expect(0, "up_to_date");
        world.forget_generations();
        rebuilds(&world, &[], "Missing");
    }

    #[test]
    fn every_kind_of_damage_is_seen_and_repaired() {
        type Damage = (&'static str, fn(&Path));
        let damages: [Damage; 9] = [
            ("a document is gone", |dir| fs::remove_file(dir.join("docs/guide.md")).unwrap()),
            ("chunks are cut", |dir| {
                let path = dir.join("chunks.jsonl");
                let bytes = fs::read(&path).unwrap();
                fs::write(&path, &bytes[..bytes.len() / 2]).unwrap();
            }),
            ("a byte is another", |dir| flip(&dir.join("chunks.jsonl"))),
            ("a document is another", |dir| flip(&dir.join("docs/disk.md"))),
            ("the manifest is another", |dir| flip(&dir.join("manifest.json"))),
            ("the manifest is gone", |dir| fs::remove_file(dir.join("manifest.json")).unwrap()),
            ("the lexical index is gone", |dir| fs::remove_dir_all(dir.join("lexical")).unwrap()),
            ("the generation is gone", |dir| fs::remove_dir_all(dir).unwrap()),
            ("current leads elsewhere", |dir| {
                let link = dir.ancestors().nth(2).unwrap().join("current");
                fs::remove_file(&link).unwrap();
                std::os::unix::fs::symlink("/etc", &link).unwrap();
            }),
        ];
        let world = ingested();
        for (what, damage) in damages {
            damage(&current(&world));
            let run = world.ingest(SOURCE, &[]).expect(0, "published");
            assert_eq!(run.state(), "Corrupt", "{what}\n{run}");
            assert_eq!(world.documents(), ["disk.md", "guide.md"], "{what}");
        }
        world.ingest(SOURCE, &[]).expect(0, "up_to_date");
    }

    #[test]
    fn a_touch_is_no_damage() {
        let world = ingested();
        let path = current(&world).join("chunks.jsonl");
        let bytes = fs::read(&path).unwrap();
        fs::write(&path, bytes).unwrap();
        world.ingest(SOURCE, &[]).expect(0, "up_to_date");
    }

    #[test]
    fn a_generation_of_another_format_is_rebuilt() {
        let world = ingested();
        republish(&world, |manifest| manifest["format_version"] = 999.into());
        rebuilds(&world, &[], "FormatMismatch");
        republish(&world, |manifest| manifest["content_version"] = 999.into());
        rebuilds(&world, &[], "OptionMismatch");
    }

    /// Makes the current generation one with another manifest, under the id that fits it.
    fn republish(world: &World, change: impl FnOnce(&mut Value)) {
        let old = current(world);
        let mut manifest: Value =
            serde_json::from_slice(&fs::read(old.join(manifest::FILE_NAME)).unwrap()).unwrap();
        change(&mut manifest);
        let bytes = serde_json::to_vec_pretty(&manifest).unwrap();
        let hash = &blake3::hash(&bytes).to_hex()[..16];
        let id = format!("20250101T000000Z-{hash}");
        assert!(manifest::id_matches(&id, &bytes));
        fs::write(old.join(manifest::FILE_NAME), bytes).unwrap();
        fs::rename(&old, old.with_file_name(&id)).unwrap();
        let link = world.data().join("current");
        fs::remove_file(&link).unwrap();
        std::os::unix::fs::symlink(Path::new("generations").join(id), &link).unwrap();
    }

    #[test]
    fn a_last_run_that_is_half_a_file_does_not_matter() {
        let world = ingested();
        fs::write(world.data().join("last-run.json"), "{\"finished").unwrap();
        let run = world.ingest(SOURCE, &[]).expect(0, "up_to_date");
        assert!(run.checked_at().is_some());
    }
}

/// Turns one bit of the byte in a file's middle.
fn flip(path: &Path) {
    let mut bytes = fs::read(path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(path, bytes).unwrap();
}

mod commands {
    use super::*;

    fn output(mut command: Command) -> (i32, String, String) {
        let output = command.output().unwrap();
        (
            output.status.code().unwrap_or(-1),
            String::from_utf8(output.stdout).unwrap(),
            String::from_utf8(output.stderr).unwrap(),
        )
    }

    #[test]
    fn chunks_prints_a_listing_and_stores_nothing() {
        let world = World::new();
        write(
            &world,
            "guide.md",
            "# Guide\n\nIntro.\n\n## Stop\n\nStop it.\n\n### Hard\n\nKill it.\n",
        );
        write(&world, "other.md", "# Other\n");
        let chunks = |args: &[&str]| {
            let mut command = world.program();
            command.args(["chunks", "--source", SOURCE]).args(args);
            output(command)
        };
        let (code, listing, _) = chunks(&[]);
        assert_eq!(code, 0);
        assert!(listing.contains("=== guide.md:1-3 Guide ("), "{listing}");
        assert!(listing.contains("=== guide.md:5-11 Guide > Stop ("), "{listing}");
        assert!(listing.contains("--- 9-11 Guide > Stop > Hard\n"), "{listing}");
        assert!(
            listing.contains("    Kill it.\n") && listing.contains("=== other.md:1-1"),
            "{listing}"
        );
        let (code, lines, _) = chunks(&["--json", "--path", "guide.md"]);
        assert_eq!(code, 0);
        let chunks_of: Vec<Value> =
            lines.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
        assert_eq!(chunks_of.len(), 2);
        assert!(chunks_of.iter().all(|c| c["path"] == "guide.md" && c["tokens"].is_u64()));
        assert_eq!(chunks_of[1]["heading_path"], serde_json::json!(["Guide", "Stop"]));
        let (code, stdout, stderr) = chunks(&["--path", "gone.md"]);
        assert_eq!((code, stdout.as_str()), (1, ""));
        assert!(stderr.contains("no document `gone.md`"), "{stderr}");
        assert_eq!(names(&world.path("")), ["home", SOURCE, "tmp"]);
        assert!(names(&world.path("tmp")).is_empty(), "{:?}", names(&world.path("tmp")));
    }

    #[test]
    fn chunks_of_a_remote_leave_nothing_behind_also_when_they_fail() {
        let world = World::new();
        let remote = world.remote("remote.git", "main");
        remote.commit("main", &[("guide.md", "# Guide\n")]);
        let chunks = |url: &str| {
            let mut command = world.program();
            command.args(["chunks", "--source", url]);
            output(command)
        };
        let (code, listing, stderr) = chunks(&remote.url());
        assert_eq!(code, 0, "{stderr}");
        assert!(listing.starts_with("=== guide.md:1-1 Guide ("), "{listing}");
        let (code, _, stderr) = chunks("file:///nowhere/at/all.git");
        assert_eq!(code, 1);
        assert!(stderr.contains("cannot fetch from"), "{stderr}");
        assert!(names(&world.path("tmp")).is_empty(), "{:?}", names(&world.path("tmp")));
    }

    #[test]
    fn verify_passes_and_names_what_is_damaged() {
        let world = ingested();
        let verify = |args: &[&str]| {
            let mut command = world.program();
            command.args(["verify", "--data", "data"]).args(args);
            output(command)
        };
        let (code, text, _) = verify(&[]);
        assert_eq!(code, 0);
        assert!(text.contains("is whole") && text.contains("2 documents"), "{text}");
        let (code, json, _) = verify(&["--json"]);
        let json: Value = serde_json::from_str(&json).unwrap();
        assert_eq!((code, &json["ok"]), (0, &true.into()));
        assert_eq!(json["counts"]["indexed"], 2);
        let mut files: Vec<String> = world.generation().manifest.files.into_keys().collect();
        files.push(manifest::FILE_NAME.to_owned());
        for file in files {
            let path = current(&world).join(&file);
            let bytes = fs::read(&path).unwrap();
            if bytes.is_empty() {
                continue;
            }
            flip(&path);
            let (code, stdout, stderr) = verify(&[]);
            assert_eq!((code, stdout.as_str()), (1, ""), "{file}");
            assert!(stderr.contains(&format!("`{file}`")) && stderr.contains("hint: "), "{stderr}");
            fs::write(&path, bytes).unwrap();
        }
        assert_eq!(verify(&[]).0, 0);
        fs::remove_file(world.data().join("current")).unwrap();
        let (code, _, stderr) = verify(&[]);
        assert_eq!(code, 1);
        assert!(stderr.contains("no generation yet") && stderr.contains("hint: "), "{stderr}");
    }

    #[test]
    fn a_person_gets_text_and_a_closed_pipe_is_no_failure() {
        let world = ingested();
        let mut command = world.program();
        command.args(["--embedder", "none", "--source", SOURCE, "--data", "data"]);
        let (code, text, stderr) = output(command);
        assert_eq!((code, stderr.as_str()), (0, ""));
        assert!(text.starts_with("up to date (UpToDate): generation 2"), "{text}");
        assert!(text.contains("2 documents: 2 indexed, 0 failed, 0 skipped"), "{text}");
        let script = format!(
            "'{}' --embedder none --source {SOURCE} --data data --json | true; exit ${{PIPESTATUS[0]}}",
            env!("CARGO_BIN_EXE_runbook-ingest")
        );
        let mut command = world.hermetic("bash");
        command.args(["-c", &script]);
        assert_eq!(output(command).0, 0);
    }
}

mod embedder {
    use super::*;

    /// The library that the set-up has installed; the tests are run after it.
    fn installed() -> Places {
        let places = Places::from_env(None, None);
        let onnxruntime = places.onnxruntime().unwrap_or_else(|e| panic!("{e}; run deploy/setup"));
        let model = places.model(DEFAULT_MODEL).unwrap_or_else(|_| {
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/models").join(DEFAULT_MODEL)
        });
        Places {
            model_dir: Some(fs::canonicalize(model).unwrap()),
            onnxruntime: Some(onnxruntime),
            ..Places::default()
        }
    }

    /// A run with the default embedder and this library.
    fn command(world: &World, library: &Path) -> Command {
        let mut command = world.program();
        let model = installed().model_dir.unwrap();
        command.args(["--json", "--source", SOURCE, "--data"]).arg(world.data());
        command.arg("--model-dir").arg(model).arg("--onnxruntime").arg(library);
        command
    }

    /// A shared library made of this C text.
    fn library(world: &World, name: &str, text: &str) -> Option<PathBuf> {
        let source = world.path(name).with_extension("c");
        fs::write(&source, text).unwrap();
        let library = world.path(name);
        let built = world
            .hermetic("cc")
            .args(["-shared", "-fPIC", "-o"])
            .arg(&library)
            .arg(&source)
            .output();
        match built {
            Ok(output) if output.status.success() => Some(library),
            other => {
                skip(&format!("no C compiler: {other:?}"));
                None
            }
        }
    }

    /// A remote that counts how often it is asked.
    fn source(world: &World) {
        write(world, "guide.md", "# Guide\n\nRestart it.\n");
    }

    #[track_caller]
    fn refused(world: &World, library: &Path, says: &[&str]) {
        let run = world.finish(command(world, library).output().unwrap()).expect(1, "failed");
        run.says(says).says(&["hint: ", "deploy/setup", "--embedder none"]);
        let left = names(&world.data());
        assert!(
            left.iter().all(|n| !["generations", "current", "source"].contains(&n.as_str())),
            "{left:?}"
        );
    }

    #[test]
    fn only_new_and_changed_text_is_embedded() {
        let world = World::new();
        let library = installed().onnxruntime.unwrap();
        write(&world, "guide.md", "# Guide\n\n## Stop\n\nStop it.\n\n## Start\n\nStart it.\n");
        write(&world, "disk.md", "# Disk\n\n## Full\n\nRun `df -h`.\n");
        let ingest = || world.finish(command(&world, &library).output().unwrap());
        let first = ingest().expect(0, "published");
        let windows = first.count("windows");
        assert!(windows >= 3 && first.count("reused") == 0, "{first}");
        assert_eq!(world.generation().vectors.unwrap().len() as u64, windows);
        ingest().expect(0, "up_to_date");
        write(&world, "disk.md", "# Disk\n\n## Full\n\nRun `du -sh`.\n");
        let second = ingest().expect(0, "published");
        assert_eq!(second.count("windows"), windows);
        let reused = second.count("reused");
        assert!(reused > 0 && reused < windows, "{second}");
        // Without an embedder it is another generation, and back again nothing is computed anew.
        world.ingest(SOURCE, &[]).expect(0, "published");
        assert!(world.generation().vectors.is_none());
        let third = ingest().expect(0, "published");
        assert_eq!((third.state().as_str(), third.count("reused")), ("OptionMismatch", windows));
        // A cache that is damaged costs time, not truth.
        let cache = world.data().join("cache");
        let dir = if cache.is_dir() { cache } else { world.data() };
        for name in names(&dir).iter().filter(|n| n.ends_with(".vectors")) {
            flip(&dir.join(name));
        }
        write(&world, "guide.md", "# Guide\n\n## Stop\n\nStop it.\n\n## Start\n\nStart it!\n");
        ingest().expect(0, "published");
    }

    /// What a generation says, without its time.
    fn content(world: &World) -> BTreeMap<String, String> {
        let mut files = world.generation().manifest.files;
        files.retain(|name, _| !name.starts_with("lexical/") && !name.starts_with("vectors/graph"));
        files.into_iter().map(|(name, entry)| (name, entry.blake3)).collect()
    }

    #[test]
    fn a_generation_made_from_the_one_before_is_the_one_made_from_nothing() {
        let (world, fresh) = (World::new(), World::new());
        let library = installed().onnxruntime.unwrap();
        let page = |n: u32, text: &str| {
            let steps: String =
                (0..8).map(|s| format!("## Step {s}\n\n{text} {n} {s}.\n\n")).collect();
            format!("# Page {n}\n\n{steps}```sh\necho {n}\n")
        };
        for n in 0..16 {
            write(&world, &format!("{n}.md"), &page(n, "Do"));
        }
        let ingest = |world: &World| world.finish(command(world, &library).output().unwrap());
        ingest(&world).expect(0, "published");
        assert!(!content(&world).contains_key("vectors/points.u32"));
        // One page changes, one goes, one comes, and one is another's by name.
        let texts =
            [("3.md", page(3, "Undo")), ("9.md", "# Nine\n".into()), ("1.md", page(2, "Do"))];
        fs::remove_file(world.path(SOURCE).join("5.md")).unwrap();
        for (name, text) in &texts {
            write(&world, name, text);
        }
        for entry in fs::read_dir(world.path(SOURCE)).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            let text = fs::read_to_string(world.path(SOURCE).join(&name)).unwrap();
            write(&fresh, &name, &text);
        }
        let run = ingest(&world).expect(0, "published");
        let anew = ingest(&fresh).expect(0, "published");
        for key in ["problems", "warnings", "sections", "chunks", "windows"] {
            assert_eq!(run.report()[key], anew.report()[key], "{key}");
        }
        assert!(run.count("reused") > 0 && anew.count("reused") == 0);
        let mut made = content(&world);
        assert!(made.remove("vectors/points.u32").is_some(), "the graph was built anew");
        assert_eq!(made, content(&fresh));
        let graph = world.generation().manifest.graph.unwrap();
        assert!(graph.recall_at_10 >= 0.99, "{graph:?}");
    }

    #[test]
    fn a_library_that_is_not_there_is_named_before_anything_is_fetched() {
        let world = World::new();
        source(&world);
        refused(&world, &world.path("nowhere.so"), &["was not found", "nowhere.so"]);
        let remote = world.remote("remote.git", "main");
        remote.commit("main", &[("guide.md", "# Guide\n")]);
        let mut command = command(&world, &world.path("nowhere.so"));
        command.args(["--source", &remote.url()]);
        let args: Vec<_> = command.get_args().map(ToOwned::to_owned).collect();
        let mut command = world.program();
        let at = args.iter().position(|a| a == "--source").unwrap();
        command.args(args[..at].iter().chain(&args[at + 2..]));
        let run = world.finish(command.output().unwrap()).expect(1, "failed");
        run.says(&["was not found", "nowhere.so", "hint: "]);
        assert!(!world.data().join("source").exists());
    }

    #[test]
    fn a_model_that_is_not_there_is_named_with_the_places() {
        let world = World::new();
        source(&world);
        let mut command = world.program();
        command.args([
            "--json",
            "--source",
            SOURCE,
            "--embedder",
            "no-such-model",
            "--data",
            "data",
        ]);
        let run = world.finish(command.output().unwrap()).expect(1, "failed");
        run.says(&["`no-such-model` was not found", "/usr/share/runbook-ask/models", "hint: "]);
    }

    #[test]
    fn a_file_that_is_no_library_is_refused() {
        let world = World::new();
        source(&world);
        fs::write(world.path("text.so"), "this is no library\n").unwrap();
        refused(&world, &world.path("text.so"), &["text.so", "cannot be loaded as a library"]);
        fs::write(world.path("empty.so"), "").unwrap();
        refused(&world, &world.path("empty.so"), &["empty.so", "cannot be loaded as a library"]);
        fs::create_dir(world.path("dir.so")).unwrap();
        refused(&world, &world.path("dir.so"), &["dir.so"]);
    }

    #[test]
    fn a_library_of_another_kind_is_refused() {
        let world = World::new();
        source(&world);
        let Some(other) = library(&world, "other.so", "int answer(void) { return 42; }\n") else {
            return;
        };
        refused(&world, &other, &["other.so", "is not ONNX Runtime", "OrtGetApiBase"]);
        let null = "const void *OrtGetApiBase(void) { return 0; }\n";
        let Some(null) = library(&world, "null.so", null) else { return };
        refused(&world, &null, &["null.so", "is not ONNX Runtime"]);
    }

    #[test]
    fn a_library_that_is_too_old_is_refused_with_both_versions() {
        let world = World::new();
        source(&world);
        for (version, says) in
            [("1.20.0", "is ONNX Runtime 1.20.0"), ("rubbish", "is ONNX Runtime rubbish")]
        {
            let text = format!(
                "static const char *version(void) {{ return \"{version}\"; }}\n\
                 static const void *api(unsigned v) {{ (void)v; return 0; }}\n\
                 static const struct {{ const void *(*api)(unsigned); const char *(*version)(void); }}\n\
                 base = {{ api, version }};\n\
                 const void *OrtGetApiBase(void) {{ return &base; }}\n"
            );
            let Some(old) = library(&world, "old.so", &text) else { return };
            refused(&world, &old, &["old.so", says, "needs 1.", "or newer"]);
        }
    }

    #[test]
    fn a_library_that_never_finishes_loading_is_given_up() {
        let world = World::new();
        source(&world);
        let text = "#include <unistd.h>\n\
                    __attribute__((constructor)) static void stay(void) { for (;;) pause(); }\n";
        let Some(slow) = library(&world, "a slow: one.so", text) else { return };
        // With a generation to keep, more is said, by more of the program.
        for is_first in [true, false] {
            if !is_first {
                world.ingest(SOURCE, &[]).expect(0, "published");
            }
            let start = Instant::now();
            let mut command = command(&world, &slow);
            command.env("RUNBOOK_ONNX_LOAD_S", "1");
            let run = world.finish(command.output().unwrap()).expect(1, "failed");
            run.says(&["a slow: one.so", "did not finish loading within 1 s", "hint: "]);
            assert!(start.elapsed() < Duration::from_secs(15), "{:?}", start.elapsed());
        }
        assert_eq!(world.documents(), ["guide.md"]);
    }
}

mod disk {
    use super::*;

    /// A small file system at a path, gone when dropped.
    struct Small(PathBuf);

    impl Small {
        fn mount(at: &Path, size: &str) -> Option<Self> {
            if !is_root() {
                skip("only root can mount a small file system");
                return None;
            }
            fs::create_dir_all(at).unwrap();
            let size = format!("size={size}");
            let mounted =
                Command::new("mount").args(["-t", "tmpfs", "-o", &size, "tmpfs"]).arg(at).output();
            match mounted {
                Ok(output) if output.status.success() => Some(Self(at.to_owned())),
                other => {
                    skip(&format!("no file system can be mounted here: {other:?}"));
                    None
                }
            }
        }

        /// Fills what is free, but for so many bytes.
        fn fill_but(&self, free: u64) {
            let disk = rustix::fs::statvfs(&self.0).unwrap();
            let available = disk.f_bavail * disk.f_frsize;
            let ballast = available.saturating_sub(free);
            fs::write(self.0.join("ballast"), vec![0; usize::try_from(ballast).unwrap()]).unwrap();
        }
    }

    impl Drop for Small {
        fn drop(&mut self) {
            let _ = Command::new("umount").arg("-l").arg(&self.0).status();
        }
    }

    /// On a full disk last-run.json may be the one of the run before; half of one it never is.
    #[track_caller]
    fn fails_for_want_of_space(world: &World, source: &str, args: &[&str]) {
        let output = world.command(source, args).output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{:?}: {stderr}", output.status);
        assert!(stderr.contains("hint: the disk is full"), "{stderr}");
        assert!(world.last_run()["outcome"].is_string());
        let left = names(&world.data().join("generations"));
        assert!(left.iter().all(|n| !n.starts_with('.')), "{left:?}");
        assert!(names(&world.data()).iter().all(|n| !n.contains("tmp")));
    }

    #[test]
    fn a_full_disk_fails_the_run_and_keeps_the_generation() {
        let world = World::new();
        let Some(small) = Small::mount(&world.data(), "24m") else { return };
        let text = "# Large\n\n".to_owned() + &"A line that takes its place.\n".repeat(20_000);
        write(&world, "large.md", &text);
        write(&world, "guide.md", "# Guide\n");
        let run = world.ingest(SOURCE, &[]).expect(0, "published");
        let size: u64 = world.generation().manifest.files.values().map(|f| f.bytes).sum();
        // Ever more room, so that every stage of the next generation is once the one without.
        for part in 0..10 {
            write(&world, "guide.md", &format!("# Guide {part}\n"));
            small.fill_but(size * part / 10);
            fails_for_want_of_space(&world, SOURCE, &[]);
            assert_eq!(world.stored("guide.md"), "# Guide\n");
            fs::remove_file(world.data().join("ballast")).unwrap();
        }
        write(&world, "guide.md", "# Guide\n");
        let same = world.ingest(SOURCE, &[]).expect(0, "up_to_date");
        assert_eq!(same.generation(), run.generation());
        write(&world, "guide.md", "# New\n");
        world.ingest(SOURCE, &[]).expect(0, "published");
    }

    #[test]
    fn a_disk_that_fills_while_fetching_fails_the_run_and_leaves_no_pack() {
        let world = World::new();
        let Some(small) = Small::mount(&world.data(), "20m") else { return };
        let remote = world.remote("remote.git", "main");
        remote.commit("main", &[("guide.md", "# Guide\n")]);
        world.ingest(&remote.url(), &[]).expect(0, "published");
        for n in 0..6 {
            let noise = crate::support::noise(2 << 20, n + 1);
            remote.commit("main", &[("guide.md", "# Guide\n\nnew\n"), ("noise.txt", &noise)]);
        }
        let shared = Arc::new(world);
        let served = Arc::clone(&shared);
        let server = Server::start(move |connection, _| {
            serve(git_daemon(&served), connection);
        });
        let over_git = format!("git://{}/remote.git", server.address);
        let packs = shared.data().join("source/mirror.git/objects/pack");
        let before = names(&packs);
        for (url, free) in [(remote.url(), 10 << 20), (over_git, 10 << 20), (remote.url(), 1 << 20)]
        {
            small.fill_but(free);
            fails_for_want_of_space(&shared, &url, &["--change-source"]);
            assert_eq!(shared.stored("guide.md"), "# Guide\n");
            assert_eq!(names(&packs), before);
            fs::remove_file(shared.data().join("ballast")).unwrap();
        }
    }
}
