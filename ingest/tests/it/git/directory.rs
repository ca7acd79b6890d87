//! Repositories and plain directories on this machine.

use super::*;

fn git(world: &World, args: &[&str]) {
    let identity = ["-c", "user.name=w", "-c", "user.email=w@example.org"];
    let output = world.hermetic("git").args(identity).args(args).output().unwrap();
    assert!(output.status.success(), "{output:?}");
}

fn write(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

#[test]
fn a_work_tree_is_read_at_its_head_and_not_as_it_lies() {
    let world = World::new();
    let tree = world.path("tree");
    write(&tree.join("a.md"), "# Committed\n");
    git(&world, &["init", "-q", "-b", "main", "tree"]);
    git(&world, &["-C", "tree", "add", "."]);
    git(&world, &["-C", "tree", "commit", "-qm", "one"]);
    write(&tree.join("a.md"), "# Edited\n");
    write(&tree.join("b.md"), "# Untracked\n");
    let run = world.ingest("tree", &[]).expect(0, "published");
    assert!(run.commit().is_some());
    assert_eq!(world.documents(), ["a.md"]);
    assert_eq!(world.stored("a.md"), "# Committed\n");
    world.ingest(tree.to_str().unwrap(), &[]).expect(0, "up_to_date");
    // A second work tree of it, where `.git` is a file, is a repository as well.
    git(&world, &["-C", "tree", "worktree", "add", "-q", "--detach", "../second"]);
    assert!(world.path("second/.git").is_file());
    let run = world.ingest("second", &["--change-source"]).expect(0, "published");
    assert!(run.commit().is_some());
    let says = ["has no branch `gone`", "refs/heads/gone", "it has: main"];
    world.ingest("tree", &["--change-source", "--branch", "gone"]).expect(1, "failed").says(&says);
}

#[test]
fn a_shallow_clone_is_read() {
    let world = World::new();
    let remote = world.remote("remote.git", "main");
    for n in 0..3 {
        remote.commit("main", &[("guide.md", &format!("# {n}\n"))]);
    }
    git(&world, &["clone", "-q", "--depth", "1", &remote.url(), "shallow"]);
    assert!(world.path("shallow/.git/shallow").is_file());
    let run = world.ingest("shallow", &[]).expect(0, "published");
    let tip = remote.repository.refname_to_id("refs/heads/main").unwrap();
    assert_eq!(run.commit(), Some(tip.to_string()));
    assert_eq!(world.stored("guide.md"), "# 2\n");
}

#[test]
fn a_head_that_names_no_branch_yet_is_empty_only_when_there_is_none() {
    let world = World::new();
    let remote = world.remote("runbooks", "main");
    let source = remote.dir.to_str().unwrap();
    let run = world.ingest(source, &[]).expect(0, "published");
    assert!(run.report()["notes"].to_string().contains("no commit"), "{run}");
    let commit = remote.commit("trunk", GUIDE);
    let run = world.ingest(source, &[]).expect(0, "published");
    assert_eq!(run.commit(), Some(commit));
    remote.commit("dev", GUIDE);
    keeps_all(&world, source, &[], &["HEAD", "dev, trunk", "--branch"]);
}

#[test]
fn a_directory_within_a_repository_is_read_as_plain_files() {
    let world = World::new();
    let tree = world.path("tree");
    write(&tree.join("docs/a.md"), "# A\n");
    write(&tree.join("b.md"), "# B\n");
    git(&world, &["init", "-q", "-b", "main", "tree"]);
    git(&world, &["-C", "tree", "add", "."]);
    git(&world, &["-C", "tree", "commit", "-qm", "one"]);
    write(&tree.join("docs/a.md"), "# Edited\n");
    let run = world.ingest("tree/docs", &[]).expect(0, "published");
    assert_eq!(run.commit(), None);
    let manifest = world.generation().manifest;
    assert!(manifest.tree_hash.is_some() && manifest.forge.is_none());
    assert_eq!(
        (world.documents(), world.stored("a.md")),
        (vec!["a.md".into()], "# Edited\n".into())
    );
    world.ingest("tree/docs", &[]).expect(0, "up_to_date");
    write(&tree.join("docs/a.md"), "# Again!\n");
    let run = world.ingest("tree/docs", &[]).expect(0, "published");
    assert_eq!(run.state(), "ContentMismatch");
}

#[test]
fn links_pipes_and_git_directories_of_a_plain_directory_are_left_alone() {
    let world = World::new();
    let dir = world.path("plain");
    write(&dir.join("a.md"), "# A\n");
    write(&dir.join("module/.git/description.md"), "# No\n");
    write(&dir.join("module/b.md"), "# B\n");
    let link = |target: &str, name: &str| {
        std::os::unix::fs::symlink(target, dir.join(name)).unwrap();
    };
    link("/etc/passwd", "help.md");
    link("nowhere", "dangling.md");
    link("..", "up");
    link(".", "loop");
    let pipe = Command::new("mkfifo").arg(dir.join("pipe.md")).status().unwrap();
    assert!(pipe.success());
    let run = world.ingest("plain", &[]).expect(0, "published");
    let wanted = [
        ("dangling.md", "symlink"),
        ("help.md", "symlink"),
        ("loop", "symlink"),
        ("pipe.md", "not_a_file"),
        ("up", "symlink"),
    ];
    assert_eq!(run.problems(), pairs(&wanted), "{run}");
    assert_eq!(world.documents(), ["a.md", "module/b.md"]);
}

fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect()
}

#[test]
fn names_that_are_no_text_are_read_from_a_directory_as_well() {
    use std::os::unix::ffi::OsStrExt;
    let world = World::new();
    let dir = world.path("plain");
    for name in [&b"a.md"[..], b"b\xC0.md", b"c\xC0/nested.md", b"cc.md", b"d.md"] {
        write(&dir.join(std::ffi::OsStr::from_bytes(name)), "# X\n");
    }
    write(&dir.join("new\nline.md"), "# X\n");
    let run = world.ingest("plain", &[]).expect(0, "published");
    assert_eq!((run.count("indexed"), run.count("documents")), (5, 6), "{run}");
    assert_eq!(run.skipped().get("invalid_path"), Some(&1));
    let wanted = ["a.md", "b\\xC0.md", "c\\xC0/nested.md", "cc.md", "d.md"];
    assert_eq!(world.documents(), wanted);
}

#[test]
fn files_and_directories_that_cannot_be_read_fail_alone() {
    let world = World::new();
    let dir = world.path("plain");
    write(&dir.join("a.md"), "# A\n");
    write(&dir.join("closed.md"), "# Closed\n");
    write(&dir.join("vault/b.md"), "# B\n");
    for name in ["closed.md", "vault"] {
        fs::set_permissions(dir.join(name), fs::Permissions::from_mode(0o000)).unwrap();
    }
    // Root reads everything, so the program runs as nobody.
    let command = |world: &World| {
        let mut command = world.command("plain", &[]);
        if is_root() {
            let program = command.get_program().to_owned();
            let args: Vec<_> = command.get_args().map(ToOwned::to_owned).collect();
            command = world.hermetic("setpriv");
            command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]);
            command.arg(program).args(args);
        }
        command
    };
    if is_root() {
        let status = Command::new("chown").args(["-R", "65534:65534"]).arg(world.path("")).status();
        assert!(status.unwrap().success());
    }
    let run = world.finish(command(&world).output().unwrap()).expect(3, "published");
    assert_eq!(run.problems(), pairs(&[("closed.md", "failed"), ("vault", "failed")]), "{run}");
    assert_eq!((run.count("documents"), run.count("indexed"), run.count("failed")), (3, 1, 2));
    let run = world.finish(command(&world).output().unwrap()).expect(0, "up_to_date");
    assert_eq!(run.count("failed"), 2);
    for name in ["closed.md", "vault"] {
        fs::set_permissions(dir.join(name), fs::Permissions::from_mode(0o755)).unwrap();
    }
    let run = world.finish(command(&world).output().unwrap()).expect(0, "published");
    assert_eq!(run.state(), "ContentMismatch");
    assert_eq!(world.documents(), ["a.md", "closed.md", "vault/b.md"]);
}

#[test]
fn a_source_that_vanished_is_told_to_the_readers_of_last_run() {
    let world = World::new();
    write(&world.path("plain/guide.md"), "# G\n");
    let first = world.ingest("plain", &[]).expect(0, "published");
    world.age_last_run();
    fs::rename(world.path("plain"), world.path("unmounted")).unwrap();
    let run = world.ingest("plain", &[]);
    assert_eq!(run.code, 2, "{run}");
    let last = world.last_run();
    assert_eq!(last["outcome"], "failed", "{last}");
    assert_eq!(last["source_checked_at"], crate::support::LONG_AGO);
    assert_eq!(last["generation"].as_str().map(str::to_owned), first.generation());
}
