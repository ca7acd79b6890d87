//! Flags, variables, the file.

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
    let output = bare(world, &["--config", "try.toml", "--source", "nowhere"]).output().unwrap();
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
    fs::write(world.path("i.toml"), "data = \"data\"\nsource = \"source\"\ninclude = [\"[\"]\n")
        .unwrap();
    fails(bare(&world, &["--config", "i.toml"]), &["not a glob"]);
    let last = world.last_run();
    assert_eq!(last["outcome"], "failed");
    assert!(last["error"].as_str().unwrap().contains("not a glob"), "{last}");
    assert_eq!((&last["generation"], &last["source_checked_at"]), (&generation, &LONG_AGO.into()));
    // Where nothing was ever ingested, nothing is made.
    fails(bare(&world, &["--data", "typo", "--source", "nowhere"]), &["`nowhere`"]);
    assert!(!world.path("typo").exists());
}

#[test]
fn a_subdirectory_is_read_however_it_is_written() {
    let world = World::new();
    write(&world, "docs/guide.md", "# Guide\n");
    write(&world, "other.md", "# Other\n");
    for subdir in ["docs", "./docs", "/docs/", "docs//."] {
        world.ingest(SOURCE, &["--subdir", subdir]);
        assert_eq!(world.documents(), ["docs/guide.md"], "{subdir}");
    }
    assert_eq!(world.generations(), 1, "one and the same option");
    fails(
        bare(&world, &["--data", "data", "--source", SOURCE, "--subdir", "docs/../.."]),
        &["`docs/../..` leads out of the source"],
    );
}

#[test]
fn every_flag_may_stand_in_the_file() {
    let world = ingested();
    fs::create_dir(world.path("other")).unwrap();
    fs::write(world.path("other/o.md"), "# Other\n").unwrap();
    let file = "source = \"other\"\ndata = \"data\"\nembedder = \"none\"\n\
                change_source = true\nno_wait = true\njson = true\n";
    fs::write(world.path("i.toml"), file).unwrap();
    let output = world.program().args(["--config", "i.toml"]).output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["documents"], 1);
    assert_eq!(world.documents(), ["o.md"]);
}
