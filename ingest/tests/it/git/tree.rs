//! What a tree may hold: links, odd names, odd content.

use super::*;

fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    let mut pairs: Vec<_> = pairs.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect();
    pairs.sort();
    pairs
}

#[test]
fn links_and_submodules_are_skipped_by_name() {
    let world = World::new();
    let remote = world.remote("remote.git", "main");
    let id = Oid::from_str("1234567890123456789012345678901234567890").unwrap();
    let module = Entry { mode: "160000", id };
    let tree = remote.tree(&[
        (b"a.md", remote.blob(b"# A\n")),
        (b"deep", remote.tree(&[(b"out.md", remote.link("../../../etc/passwd"))])),
        (b"help.md", remote.link("/etc/passwd")),
        (b"logo.png", remote.link("/etc/passwd")),
        (b"module", module),
        (b"module.md", module),
        (b"self.md", remote.link("a.md")),
        (b"up", remote.link("../..")),
    ]);
    remote.commit_tree("main", tree);
    let run = world.ingest(&remote.url(), &[]).expect(0, "published");
    let wanted = [
        ("deep/out.md", "symlink"),
        ("help.md", "symlink"),
        ("self.md", "symlink"),
        ("up", "symlink"),
        ("module", "submodule"),
        ("module.md", "submodule"),
    ];
    assert_eq!(run.problems(), pairs(&wanted), "{run}");
    assert_eq!((run.count("documents"), run.count("indexed")), (7, 1));
    assert_eq!(world.documents(), ["a.md"]);
}

#[test]
fn names_that_are_no_text_are_escaped_and_their_neighbours_read() {
    let world = World::new();
    let remote = world.remote("remote.git", "main");
    let blob = |text: &str| remote.blob(text.as_bytes());
    let tree = remote.tree(&[
        (b"a.md", blob("# A\n")),
        (b"b\xC0.md", blob("# B\n")),
        (b"c\xC0", remote.tree(&[(b"nested.md", blob("# Nested\n"))])),
        (b"cc.md", blob("# CC\n")),
        (b"d.md", blob("# D\n")),
    ]);
    remote.commit_tree("main", tree);
    let run = world.ingest(&remote.url(), &[]).expect(0, "published");
    assert_eq!((run.count("documents"), run.count("indexed")), (5, 5), "{run}");
    let wanted = ["a.md", "b\\xC0.md", "c\\xC0/nested.md", "cc.md", "d.md"];
    assert_eq!(world.documents(), wanted);
    let generation = world.generation();
    let raw = |path: &str| generation.document(path).unwrap().raw_path.clone();
    assert_eq!(raw("b\\xC0.md").as_deref(), Some("b%C0.md"));
    assert_eq!(raw("c\\xC0/nested.md").as_deref(), Some("c%C0/nested.md"));
    assert_eq!(raw("d.md"), None);
}

#[test]
fn content_that_is_no_text_is_skipped_by_name_and_text_of_other_encodings_read() {
    let world = World::new();
    let remote = world.remote("remote.git", "main");
    let wide = |text: &str, mark: u16, bytes: fn(u16) -> [u8; 2]| -> Vec<u8> {
        [mark].into_iter().chain(text.encode_utf16()).flat_map(bytes).collect()
    };
    let mut large = noise(8 * 1024 * 1024, 3).into_bytes();
    large.truncate(8 * 1024 * 1024);
    large.push(b'x');
    let lfs = b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 5\n";
    let tree = remote.tree(&[
        (b"be.md", remote.blob(&wide("# Größe\n", 0xfeff, u16::to_be_bytes))),
        (b"bom.md", remote.blob(b"\xef\xbb\xbf# Bom\r\n\r\ntext\r\n")),
        (b"empty.md", remote.blob(b"")),
        (b"ibm.md", remote.blob(b"# \x83\x65\x83\x58\x83\x67\n")),
        (b"large.md", remote.blob(&large)),
        (b"latin.md", remote.blob(b"# Pr\xfcfung\n\nBen\xf6tigte Rechte pr\xfcfen.\n")),
        (b"le.md", remote.blob(&wide("# Länge\n", 0xfeff, u16::to_le_bytes))),
        (b"lfs.md", remote.blob(lfs)),
        (b"nul.md", remote.blob(b"# A\n\0\n")),
    ]);
    remote.commit_tree("main", tree);
    let run = world.ingest(&remote.url(), &[]).expect(0, "published");
    let wanted = [
        ("ibm.md", "unknown_encoding"),
        ("large.md", "too_large"),
        ("lfs.md", "lfs_pointer"),
        ("nul.md", "binary"),
    ];
    assert_eq!(run.problems(), pairs(&wanted), "{run}");
    assert_eq!((run.count("documents"), run.count("indexed")), (9, 5));
    let generation = world.generation();
    let title = |path: &str| generation.document(path).unwrap().title.clone();
    assert_eq!(title("latin.md"), "Prüfung");
    assert_eq!((title("be.md"), title("le.md")), ("Größe".into(), "Länge".into()));
    assert_eq!(title("bom.md"), "Bom");
    let latin = fs::read(generation.dir.join("docs/latin.md")).unwrap();
    assert!(latin.starts_with(b"# Pr\xfcfung"), "the stored copy keeps its bytes");
}

#[test]
fn paths_that_lead_out_are_skipped_by_name() {
    let world = World::new();
    let remote = world.remote("remote.git", "main");
    let blob = remote.blob(b"# Evil\n");
    let below = |name: &[u8]| remote.tree(&[(name, blob)]);
    let tree = remote.tree(&[
        (b".", below(b"dot.md")),
        (b"..", below(b"evil.md")),
        (b"../../../tmp/flat.md", blob),
        (b".GIT", below(b"config.md")),
        (b".git", below(b"hooks.md")),
        (b"/etc/absolute.md", blob),
        (b"a.md", blob),
        (b"esc\x1b[31m.md", blob),
        (b"new\nline.md", blob),
        (b"ok", remote.tree(&[(b"..", below(b"deep.md")), (b"fine.md", blob)])),
        (b"tab\there.md", blob),
    ]);
    remote.commit_tree("main", tree);
    let run = world.ingest(&remote.url(), &[]).expect(0, "published");
    assert_eq!(world.documents(), ["a.md", "ok/fine.md"]);
    assert_eq!(run.skipped().get("invalid_path"), Some(&10), "{run}");
    assert_eq!((run.count("documents"), run.count("indexed")), (12, 2));
    assert!(run.problems().iter().all(|(p, _)| !p.chars().any(char::is_control)), "{run}");
    assert_eq!(names(&world.path("")), ["data", "home", "remote.git", "tmp"]);
    // The same from a run for a person: nothing of it may reach the terminal.
    let mut command = world.program();
    command.args(["--embedder", "none", "--source", &remote.url(), "--data"]).arg(world.data());
    let text = String::from_utf8(command.output().unwrap().stdout).unwrap();
    assert!(!text.contains('\u{1b}'), "{text}");
}

#[test]
fn two_documents_of_one_path_and_a_document_above_another_collide_by_name() {
    let world = World::new();
    let remote = world.remote("remote.git", "main");
    let blob = |text: &str| remote.blob(text.as_bytes());
    let tree = remote.tree(&[
        (b"README.md", blob("# Upper\n")),
        (b"a.md", blob("# First\n")),
        (b"a.md", blob("# Second\n")),
        (b"b\\xC0.md", blob("# Escaped\n")),
        (b"b\xC0.md", blob("# Raw\n")),
        (b"c.md", blob("# File\n")),
        (b"c.md", remote.tree(&[(b"d.md", blob("# Below\n"))])),
        (b"readme.md", blob("# Lower\n")),
    ]);
    remote.commit_tree("main", tree);
    let run = world.ingest(&remote.url(), &[]).expect(0, "published");
    assert_eq!(run.skipped().get("duplicate_path"), Some(&3), "{run}");
    assert_eq!(world.documents(), ["README.md", "a.md", "b\\xC0.md", "c.md", "readme.md"]);
    assert_eq!(world.stored("readme.md"), "# Lower\n");
    assert_eq!(world.stored("README.md"), "# Upper\n");
}

#[test]
fn modes_that_git_no_longer_writes_are_files() {
    let world = World::new();
    let remote = world.remote("remote.git", "main");
    let blob = remote.blob(b"# A\n");
    let tree = remote.tree(&[
        (b"group.md", Entry { mode: "100664", ..blob }),
        (b"private.md", Entry { mode: "100600", ..blob }),
        (b"run.md", Entry { mode: "100755", ..blob }),
    ]);
    remote.commit_tree("main", tree);
    world.ingest(&remote.url(), &[]).expect(0, "published");
    assert_eq!(world.documents(), ["group.md", "private.md", "run.md"]);
}

#[test]
fn a_path_longer_than_the_file_system_takes_is_skipped() {
    let world = World::new();
    let remote = world.remote("remote.git", "main");
    let mut tree = remote.tree(&[(b"deep.md", remote.blob(b"# Deep\n"))]);
    for _ in 0..20 {
        tree = remote.tree(&["d".repeat(203).as_bytes()].map(|name| (name, tree)));
    }
    let long = "n".repeat(300) + ".md";
    let tree = remote.tree(&[
        (b"a.md", remote.blob(b"# A\n")),
        (b"deep", tree),
        (long.as_bytes(), remote.blob(b"# Long\n")),
    ]);
    remote.commit_tree("main", tree);
    let run = world.ingest(&remote.url(), &[]).expect(0, "published");
    assert_eq!(run.skipped().get("invalid_path"), Some(&2), "{run}");
    assert_eq!(world.documents(), ["a.md"]);
}

#[test]
fn a_tree_that_multiplies_itself_is_refused() {
    let (world, remote) = ingested("main");
    let mut tree = remote.tree(&[(b"a.md", remote.blob(b"# A\n"))]);
    for _ in 0..9 {
        let names: Vec<Vec<u8>> = (b'0'..=b'9').map(|n| vec![n]).collect();
        let entries: Vec<_> = names.iter().map(|n| (n.as_slice(), tree)).collect();
        tree = remote.tree(&entries);
    }
    remote.commit_tree("main", tree);
    keeps_generation(&world, &remote.url(), &[], &["entries"]);
}

#[test]
fn an_entry_without_its_object_fails_alone() {
    let world = Arc::new(World::new());
    let remote = world.remote("runbooks", "main");
    let id = Oid::from_str("1234567890123456789012345678901234567890").unwrap();
    let tree = remote.tree(&[
        (b"a.md", remote.blob(b"# A\n")),
        (b"b.md", Entry { mode: "100644", id }),
        (b"c.md", remote.tree(&[])),
        (b"d.md", Entry { mode: "100644", ..remote.tree(&[]) }),
    ]);
    remote.commit_tree("main", tree);
    let run = world.ingest(remote.dir.to_str().unwrap(), &[]).expect(3, "published");
    assert_eq!(run.problems(), pairs(&[("b.md", "failed"), ("d.md", "failed")]), "{run}");
    assert_eq!((run.count("failed"), run.count("indexed")), (2, 1));
    world.ingest(remote.dir.to_str().unwrap(), &[]).expect(0, "up_to_date");
}

#[test]
fn a_tree_that_is_none_keeps_the_generation() {
    let (world, remote) = ingested("main");
    let bad = Entry { mode: "40000", ..remote.blob(b"no tree") };
    remote.commit_tree("main", bad);
    keeps_generation(&world, &remote.url(), &[], &["cannot fetch from"]);
    let source = remote.dir.to_str().unwrap();
    let run = world.ingest(source, &["--change-source"]).expect(1, "failed");
    run.says(&["cannot read the repository", "hint: "]);
}

#[test]
fn a_subdirectory_and_globs_choose() {
    let world = World::new();
    let remote = world.remote("remote.git", "main");
    let files = [
        ("README.md", "# R\n"),
        ("docs/a.md", "# A\n"),
        ("docs/old/b.md", "# B\n"),
        ("docs/c.txt", "# C\n"),
        ("docs2/d.md", "# D\n"),
        ("docs/e.md.erb", "# E\n"),
    ];
    remote.commit("main", &files);
    let args = ["--subdir", "docs/", "--exclude", "docs/old/**"];
    world.ingest(&remote.url(), &args).expect(0, "published");
    assert_eq!(world.documents(), ["docs/a.md", "docs/e.md.erb"]);
    // What no path of a document can be is reported within the subdirectory, and not outside.
    let odd = ["docs/bell\u{7}.md", "docs/tab\t/x.md", "other\u{7}.md"].map(|p| (p, "# X\n"));
    remote.commit("main", &[&files[..], &odd[..]].concat());
    let run = world.ingest(&remote.url(), &args).expect(0, "published");
    let problems = run.problems();
    assert!(problems.iter().all(|(_, reason)| reason == "invalid_path"), "{run}");
    assert_eq!(problems.len(), 2, "{run}");
    let args = ["--include", "*.txt", "--include", "README.md"];
    let run = world.ingest(&remote.url(), &args).expect(0, "published");
    assert_eq!(run.state(), "OptionMismatch");
    assert_eq!(world.documents(), ["README.md", "docs/c.txt"]);
}
