//! `lint`: each rule finds what it should, and nothing beside it.

use super::*;

struct Linted {
    code: i32,
    /// `path:line: rule: message`, a line each.
    text: String,
    stderr: String,
}

#[track_caller]
fn lint(world: &World, args: &[&str]) -> Linted {
    let mut command = world.program();
    let output = command.arg("lint").args(args).output().unwrap();
    Linted {
        code: output.status.code().unwrap(),
        text: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

/// `path:line: rule` of each finding in a tree of these files.
#[track_caller]
fn found(files: &[(&str, &str)]) -> Vec<String> {
    let world = World::new();
    for (path, text) in files {
        write(&world, path, text);
    }
    let linted = lint(&world, &["--repo", SOURCE]);
    assert_ne!(linted.code, 2, "{}", linted.stderr);
    let places = linted.text.lines().map(|line| line.splitn(4, ':').take(3).collect::<Vec<_>>());
    places.map(|p| format!("{}:{}:{}", p[0], p[1], p[2])).collect()
}

#[test]
fn a_tree_without_faults_is_quiet_and_one_with_faults_says_where_and_what_to_do() {
    let world = World::new();
    write(&world, "a/disk.md", "# Disk\n\n## Full\n\nSee [the guide](../guide.md#how-to).\n");
    write(&world, "guide.md", "# Guide\n\n## How to\n\n![shot](img/a.png)\n");
    write(&world, "img/a.png", "PNG");
    let clean = lint(&world, &["--repo", SOURCE]);
    assert_eq!((clean.code, clean.text.as_str()), (0, ""));
    assert_eq!(clean.stderr, "2 documents; errors: none; warnings: none\n");
    write(&world, "bad.md", "# Bad\n\n## Misc\n\nSee [it](gone.md).\n\n```sh\ndf -h\n");
    let bad = lint(&world, &["--repo", SOURCE]);
    assert_eq!(bad.code, 1);
    let lines: Vec<&str> = bad.text.lines().collect();
    assert_eq!(lines.len(), 3, "{}", bad.text);
    assert!(lines[0].starts_with("bad.md:3: vague-heading: `Misc` says nothing"), "{}", bad.text);
    assert!(
        lines[1].starts_with("bad.md:5: dead-link: `gone.md` leads to `gone.md`"),
        "{}",
        bad.text
    );
    assert!(lines[2].starts_with("bad.md:7: unclosed-fence: "), "{}", bad.text);
    assert!(lines.iter().all(|l| l.contains(';')), "each says what to do: {}", bad.text);
    assert!(
        bad.stderr.contains("errors: dead-link 1, unclosed-fence 1; warnings: vague-heading 1")
    );
    // The order is that of paths and lines, run after run.
    assert_eq!(lint(&world, &["--repo", SOURCE]).text, bad.text);
    let json = lint(&world, &["--repo", SOURCE, "--json"]);
    let json: Value = serde_json::from_str(&json.text).unwrap();
    assert_eq!((&json["ok"], &json["documents"]), (&false.into(), &3.into()));
    assert_eq!(json["findings"][1]["rule"], "dead-link");
    assert_eq!(json["findings"][1]["severity"], "error");
    // One document of them; the links of all are known.
    let one = lint(&world, &["--repo", SOURCE, "--path", "a"]);
    assert_eq!((one.code, one.text.as_str()), (0, ""));
    assert_eq!(lint(&world, &["--repo", SOURCE, "--path", "b"]).code, 1);
    assert!(names(&world.path("tmp")).is_empty() && !world.data().exists());
}

#[test]
fn warnings_fail_where_they_are_denied_and_errors_pass_where_they_are_allowed() {
    let world = World::new();
    write(&world, "a.md", "# A\n\n## Notes\n\nText.\n");
    let code = |args: &[&str]| lint(&world, &[&["--repo", SOURCE], args].concat()).code;
    assert_eq!(code(&[]), 0);
    assert_eq!(code(&["--deny", "vague-heading"]), 1);
    assert_eq!(code(&["--deny", "all"]), 1);
    assert_eq!(code(&["--deny", "all", "--allow", "vague-heading"]), 0);
    let unknown = lint(&world, &["--repo", SOURCE, "--deny", "vague"]);
    assert_eq!(unknown.code, 2);
    assert!(
        unknown.stderr.contains("`vague` is no rule") && unknown.stderr.contains("vague-heading")
    );
    fs::write(world.path("i.toml"), "source = \"source\"\n[lint]\ndeny = [\"vague-heading\"]\n")
        .unwrap();
    assert_eq!(lint(&world, &["--config", "i.toml"]).code, 1);
    fs::write(world.path("i.toml"), "source = \"source\"\n[lint]\nalow = []\n").unwrap();
    let typo = lint(&world, &["--config", "i.toml"]);
    assert!(typo.code == 2 && typo.stderr.contains("did you mean `lint.allow`"), "{}", typo.stderr);
    assert_eq!(lint(&world, &["--repo", "gone"]).code, 2);
}

#[test]
fn a_comment_allows_a_rule_for_the_document_the_section_or_the_heading_below() {
    let misc = "## Misc\n\nText.\n\n";
    let text = format!(
        "# A\n\n{misc}<!-- runbook-lint: allow vague-heading -->\n\n## Notes\n\nText.\n\n## Other\n\nText.\n"
    );
    assert_eq!(found(&[("a.md", &text)]), ["a.md:13: vague-heading"]);
    let within =
        "# A\n\n## Misc\n<!-- runbook-lint: allow vague-heading -->\nText.\n\n## Notes\n\nText.\n";
    assert_eq!(found(&[("a.md", within)]), ["a.md:7: vague-heading"]);
    let whole = format!(
        "<!-- runbook-lint: allow vague-heading, dead-link -->\n# A\n\n{misc}[x](gone.md)\n"
    );
    assert!(found(&[("a.md", &whole)]).is_empty());
    let wrong =
        "# A\n\n<!-- runbook-lint: allow vague -->\n\n```\n<!-- runbook-lint: allow x -->\n```\n";
    assert_eq!(found(&[("a.md", wrong)]), ["a.md:3: unknown-rule"]);
    let twice = "# A\n\n## Steps\n\nOne.\n\n## B\n\n<!-- runbook-lint: allow duplicate-anchor -->\n\n### Steps\n\nTwo.\n";
    assert!(found(&[("a.md", twice)]).is_empty());
}

#[test]
fn headings_that_say_nothing_or_are_there_twice() {
    let empty = "# A\n\n## Misc\n\n### Ports\n\n8080\n\n## 2. Other stuff\n\nText.\n";
    assert_eq!(found(&[("a.md", empty)]), ["a.md:9: vague-heading"]);
    let twice = "# A\n\n## Steps\n\nOne.\n\n## Steps!\n\nTwo.\n\n## steps\n\nThree.\n";
    assert_eq!(found(&[("a.md", twice)]), ["a.md:7: duplicate-anchor"]);
    assert!(found(&[("a.md", "# A\n\n## Step 1\n\nOne.\n\n## Step 2\n\nTwo.\n")]).is_empty());
    let title = [
        ("a.md", "# Restore\n"),
        ("b/c.md", "---\ntitle: restore\n---\n\n# X\n"),
        ("d.md", "# D\n"),
    ];
    assert_eq!(found(&title), ["a.md:1: ambiguous-title", "b/c.md:1: ambiguous-title"]);
}

#[test]
fn sections_that_are_cut_for_want_of_headings() {
    let paragraphs =
        "This paragraph tells how one disk of the pool is replaced by another.\n\n".repeat(130);
    let long = format!("# A\n\nIntro.\n\n## Replace\n\n{paragraphs}");
    assert_eq!(found(&[("a.md", &long)]), ["a.md:5: long-section"]);
    assert_eq!(found(&[("a.md", &paragraphs)]), ["a.md:1: long-section"]);
    let half = paragraphs.len() / 2;
    let divided = format!(
        "# A\n\n## Replace\n\n### One\n\n{}\n\n### Two\n\n{}\n",
        &paragraphs[..half],
        &paragraphs[half..]
    );
    assert!(found(&[("a.md", &divided)]).is_empty());
    // A listing cannot be divided.
    let listing = format!(
        "# A\n\n## Log\n\n```\n{}```\n",
        "a line of a log that goes on and on\n".repeat(300)
    );
    assert!(found(&[("a.md", &listing)]).is_empty());
}

#[test]
fn links_are_dead_only_where_that_is_sure() {
    let target = "# Target\n\n## 2.1 How to\n\n<a id=\"old\"></a>\n\n### Named {#own}\n\nText.\n";
    let with = |link: &str| {
        let text = format!("# A\n\n## Here\n\n{link}\n");
        found(&[("docs/a.md", &text), ("docs/b/target.md", target), ("docs/b/x y.png", "")])
    };
    for alive in [
        "[x](b/target.md)",
        "[x](./b/../b/target.md#21-how-to)",
        "[x](b/target.md#how-to)",
        "[x](b/target.md#old)",
        "[x](b/target.md#own)",
        "[x](b/target.md#L3)",
        "[x](b/target.md?plain=1)",
        "[x](/docs/b/target.md)",
        "[x](b)",
        "[x](b/)",
        "![x](b/x%20y.png)",
        "![x](<b/x y.png>)",
        "[x](#here)",
        "[x](#top)",
        "[x](../../issues/5)",
        "[x](../other/page)",
        "[x](target.html)",
        "[x](https://h.example/gone.md)",
        "<gone@h.example>",
        "`[x](gone.md)`",
        "```\n[x](gone.md)\n```",
        "[x]({{< ref \"gone.md\" >}})",
        "<!-- [x](gone.md) -->",
        "[x][y]\n\n[y]: b/target.md",
    ] {
        assert!(with(alive).is_empty(), "{alive}: {:?}", with(alive));
    }
    for dead in [
        "[x](gone.md)",
        "[x](target.md)",
        "![x](b/gone.png)",
        "[x][y]\n\n[y]: gone.md",
        "[x](/docs/gone.md)",
    ] {
        assert_eq!(with(dead), ["docs/a.md:5: dead-link"], "{dead}");
    }
    for dead in ["[x](#gone)", "[x](b/target.md#gone)"] {
        assert_eq!(with(dead), ["docs/a.md:5: dead-anchor"], "{dead}");
    }
}

#[test]
fn what_is_not_indexed_is_told() {
    let world = World::new();
    write(&world, "a.md", "# A\n");
    fs::write(world.path(SOURCE).join("binary.md"), b"a\0b").unwrap();
    std::os::unix::fs::symlink("a.md", world.path(SOURCE).join("link.md")).unwrap();
    let linted = lint(&world, &["--repo", SOURCE]);
    assert!(
        linted
            .text
            .contains("binary.md:1: skipped-document: it is not indexed (binary): holds a NUL")
    );
    assert!(linted.text.contains("link.md:1: skipped-document: it is not indexed (symlink)"));
    assert_eq!(linted.code, 0);
}

/// The files of a work tree are read as they are; a source is read as ingest reads it.
#[test]
fn a_repository_is_read_at_its_commit_or_as_it_lies_there() {
    let world = World::new();
    let remote = world.remote("remote.git", "main");
    remote.commit(
        "main",
        &[
            ("a.md", "# A\n\n[x](b.md) [y](img/c.png) [z](gone.md)\n"),
            ("b.md", "# B\n"),
            ("img/c.png", ""),
        ],
    );
    let linted = lint(&world, &["--source", &remote.url()]);
    assert_eq!(linted.code, 1, "{}", linted.stderr);
    assert!(linted.text.starts_with("a.md:3: dead-link: `gone.md`"), "{}", linted.text);
    assert_eq!(linted.text.lines().count(), 1, "{}", linted.text);
    let clone = world.hermetic("git").args(["clone", "-q", &remote.url(), SOURCE]).output();
    assert!(clone.unwrap().status.success());
    write(&world, "gone.md", "# Not committed\n");
    assert_eq!(lint(&world, &["--source", SOURCE]).code, 1);
    assert_eq!(lint(&world, &["--repo", SOURCE]).code, 0);
    let mut here = world.program();
    here.arg("lint").current_dir(world.path(SOURCE));
    assert_eq!(here.output().unwrap().status.code(), Some(0));
    assert!(names(&world.path("tmp")).is_empty());
}
