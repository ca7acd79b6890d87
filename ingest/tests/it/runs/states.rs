//! Each reason to build a generation.

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
    fs::rename(world.path(SOURCE).join("disk.md"), world.path(SOURCE).join("disks.md")).unwrap();
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

/// A mistyped option or a lost mount looks like a tree without documents; it never replaces one.
#[test]
fn a_tree_without_documents_replaces_none_that_has_some() {
    let world = ingested();
    let before = world.generation().id;
    for args in [["--subdir", "nowhere"], ["--include", "*.none"], ["--exclude", "**"]] {
        let run = world.ingest(SOURCE, &args).expect(1, "failed");
        run.says(&["holds no document any more", "has 2", "keeps serving"]);
        assert_eq!(world.generation().id, before, "{args:?}");
    }
    fs::remove_file(world.path(SOURCE).join("guide.md")).unwrap();
    fs::remove_file(world.path(SOURCE).join("disk.md")).unwrap();
    world.ingest(SOURCE, &[]).expect(1, "failed");
    assert_eq!(world.generation().id, before);
    let last = world.last_run();
    assert_eq!(last["outcome"], "failed");
    assert_eq!(last["generation"], before);
}

#[test]
fn what_failed_is_named_again_when_nothing_is_new() {
    let world = ingested();
    fs::write(world.path(SOURCE).join("binary.md"), b"a\0b").unwrap();
    let problems = world.ingest(SOURCE, &[]).expect(0, "published").problems();
    assert!(problems.iter().any(|p| p.0 == "binary.md"), "{problems:?}");
    assert_eq!(world.ingest(SOURCE, &[]).expect(0, "up_to_date").problems(), problems);
}

#[test]
fn a_file_that_the_manifest_does_not_name_is_found() {
    let world = ingested();
    fs::write(current(&world).join("docs/extra.md"), "# Extra\n").unwrap();
    let output = world.program().args(["verify", "--data", "data"]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(stderr.contains("docs/extra.md") && stderr.contains("not in the manifest"), "{stderr}");
}
