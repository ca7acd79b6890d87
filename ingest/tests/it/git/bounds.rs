//! Sources that are made to exhaust: trees of ten thousand levels, blobs that unpack to hundreds of
//! megabytes, very many files, names that differ in case alone.

use super::*;
use crate::support::how_many;
use rustix::fs::{CWD, Mode, OFlags, mkdirat, openat};
use std::time::{Duration, Instant};

const DEEP: usize = 10_000;

#[test]
fn a_tree_of_ten_thousand_levels_is_skipped_by_name() {
    let world = World::new();
    let remote = world.remote("remote.git", "main");
    let mut tree = remote.tree(&[(b"deep.md", remote.blob(b"# Deep\n"))]);
    for _ in 0..DEEP {
        tree = remote.tree(&[(b"d", tree)]);
    }
    let top = remote.tree(&[(b"a.md", remote.blob(b"# A\n")), (b"d", tree)]);
    remote.commit_tree("main", top);
    let started = Instant::now();
    let run = world.ingest(&remote.url(), &[]).expect(0, "published");
    assert!(started.elapsed() < Duration::from_secs(60));
    assert_eq!(world.documents(), ["a.md"]);
    let problems = run.problems();
    assert_eq!(problems.len(), 1, "{run}");
    assert!(problems[0].0.starts_with("d/d/") && problems[0].1 == "invalid_path", "{run}");
}

#[test]
fn a_directory_of_ten_thousand_levels_is_left_out_by_name() {
    let world = World::new();
    let root = world.path("source");
    fs::create_dir(&root).unwrap();
    fs::write(root.join("a.md"), "# A\n").unwrap();
    let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC;
    let mut at = openat(CWD, &root, flags, Mode::empty()).unwrap();
    for _ in 0..DEEP {
        mkdirat(&at, "d", Mode::from_raw_mode(0o755)).unwrap();
        at = openat(&at, "d", flags, Mode::empty()).unwrap();
    }
    let file = openat(&at, "deep.md", OFlags::CREATE | OFlags::WRONLY, Mode::from_raw_mode(0o644));
    drop(file.unwrap());
    drop(at);
    let started = Instant::now();
    let run = world.finish(world.command("source", &[]).output().unwrap());
    assert!(started.elapsed() < Duration::from_secs(60));
    assert!([0, 3].contains(&run.code), "{run}");
    assert_eq!(world.documents(), ["a.md"]);
    assert!(run.code == 0 || run.problems()[0].0.starts_with("d/d/"), "{run}");
    // What the standard library cannot remove, since its paths are too long, rm can.
    assert!(Command::new("rm").arg("-rf").arg(&root).status().unwrap().success());
}

#[test]
fn a_blob_that_unpacks_to_much_is_not_unpacked() {
    let world = World::new();
    let remote = world.remote("remote.git", "main");
    let bytes = 256 * 1024 * 1024;
    let bomb = remote.blob(&vec![b'#'; bytes]);
    let tree = remote.tree(&[(b"a.md", remote.blob(b"# A\n")), (b"bomb.md", bomb)]);
    remote.commit_tree("main", tree);
    // The reader may not allocate as much as the blob has; libgit2's own transport for files may.
    let run = |source: &str, most: usize| {
        let mut command = world.hermetic("prlimit");
        command.arg(format!("--data={most}")).arg("--");
        command.arg(env!("CARGO_BIN_EXE_runbook-ingest"));
        command.args([
            "--embedder",
            "none",
            "--json",
            "--change-source",
            "--source",
            source,
            "--data",
        ]);
        command.arg(world.data());
        match command.output() {
            Ok(output) => Some(world.finish(output).expect(0, "published")),
            Err(e) => {
                skip(&format!("no prlimit: {e}"));
                None
            }
        }
    };
    for (source, most) in [(remote.url(), 8 * bytes), (remote.dir.display().to_string(), bytes)] {
        let Some(run) = run(&source, most) else { return };
        assert_eq!(run.problems(), [("bomb.md".to_owned(), "too_large".to_owned())], "{run}");
        assert_eq!(world.documents(), ["a.md"]);
    }
}

#[test]
fn very_many_small_files_are_all_read() {
    let count = how_many("RUNBOOK_TEST_FILES", 5_000);
    let world = World::new();
    let remote = world.remote("remote.git", "main");
    let names: Vec<String> = (0..count).map(|n| format!("{n:07}.md")).collect();
    let blob = remote.blob(b"# A\n\ntext\n");
    let entries: Vec<_> = names.iter().map(|n| (n.as_bytes(), blob)).collect();
    remote.commit_tree("main", remote.tree(&entries));
    let started = Instant::now();
    let run = world.ingest(&remote.url(), &[]).expect(0, "published");
    assert_eq!(run.count("indexed"), count as u64);
    eprintln!("{count} files in {:.1?}", started.elapsed());
}

#[test]
fn names_that_differ_in_case_alone_are_two_documents() {
    let world = World::new();
    let remote = world.remote("remote.git", "main");
    let files =
        [("A.md", "# Upper\n"), ("a.md", "# Lower\n"), ("D/x.md", "# X\n"), ("d/x.md", "# Y\n")];
    remote.commit("main", &files);
    world.ingest(&remote.url(), &[]).expect(0, "published");
    assert_eq!(world.documents(), ["A.md", "D/x.md", "a.md", "d/x.md"]);
    assert_eq!(world.stored("a.md"), "# Lower\n");
    assert_eq!(world.stored("d/x.md"), "# Y\n");
}

/// While a directory and a file in it are replaced by links and back, nothing outside is ever read.
#[test]
fn races_with_links_lead_nowhere() {
    use runbook_ingest::source::dir;
    use std::os::unix::fs::symlink;
    use std::sync::atomic::{AtomicBool, Ordering};
    let tries = how_many("RUNBOOK_TEST_RACES", 3_000);
    let world = World::new();
    let (root, outside) = (world.path("source"), world.path("outside"));
    fs::create_dir_all(root.join("d")).unwrap();
    fs::create_dir_all(&outside).unwrap();
    fs::write(outside.join("a.md"), "# canary-5f2c91\n").unwrap();
    fs::write(root.join("d/a.md"), "# Ours\n").unwrap();
    fs::write(root.join("b.md"), "# Ours\n").unwrap();
    let settings = runbook_ingest::config::Settings {
        source: Some(root.display().to_string()),
        data: Some(world.data()),
        embedder: Some("none".into()),
        ..Default::default()
    };
    let selection = settings.resolve().unwrap().selection;
    let stop = AtomicBool::new(false);
    let (mut ours, mut refused) = (0, 0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let (d, kept, b) = (root.join("d"), root.join(".kept"), root.join("b.md"));
            while !stop.load(Ordering::Relaxed) {
                fs::rename(&d, &kept).unwrap();
                symlink(&outside, &d).unwrap();
                let _ = fs::remove_file(&b);
                symlink(outside.join("a.md"), &b).unwrap();
                fs::remove_file(&d).unwrap();
                fs::rename(&kept, &d).unwrap();
                fs::remove_file(&b).unwrap();
                fs::write(&b, "# Ours\n").unwrap();
            }
        });
        for _ in 0..tries {
            // Listed once as they are, then read whatever they have become.
            let listed = dir::list(&root, &selection).map(|l| l.0.len()).unwrap_or(0);
            assert!(listed <= 4, "{listed}");
            for path in [b"d/a.md".as_slice(), b"b.md"] {
                match dir::read(&root, path) {
                    Ok(Ok(bytes)) => {
                        assert!(!bytes.windows(6).any(|w| w == b"canary"), "read through a link");
                        ours += 1;
                    }
                    Ok(Err(_)) | Err(_) => refused += 1,
                }
            }
        }
        stop.store(true, Ordering::Relaxed);
    });
    eprintln!("{tries} tries: {ours} reads were ours, {refused} were refused");
    assert!(ours > 0 && refused > 0, "{ours} {refused}");
}
