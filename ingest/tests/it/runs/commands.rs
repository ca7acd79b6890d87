//! The other commands of the program.

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
    write(&world, "guide.md", "# Guide\n\nIntro.\n\n## Stop\n\nStop it.\n\n### Hard\n\nKill it.\n");
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
    let chunks_of: Vec<Value> = lines.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
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
