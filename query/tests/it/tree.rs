//! The tree: mounts, envelopes, sources, overflow, versions, and mounts that do not work.

use crate::support::{Fixture, ingest};
use runbook_query::service::{Options as ServiceOptions, Service};
use runbook_query::snapshot::Repo;
use runbook_query::tree::envelope::{Envelope, Source};
use runbook_query::tree::limits::Limits;
use runbook_query::tree::request::{
    Delete, Draw, Edit, Find, Grep, History, Load, Ls, Read, Syntax, Write,
};
use runbook_query::tree::router::{Evidence, Options, Tree, View};
use runbook_query::tree::setup::{self, Settings};
use runbook_shared::locate::Places;
use std::sync::{Arc, Mutex};

const TREE: &str = "//- deploy/staging.md\n# Staging\n\nIntro line.\n\n## Reset\n\nRun `harborctl reset`.\n\n## Access\n\nssh app1\n//- ports.md\n# Ports\n\nnginx opens 8080.\n";

#[derive(Default)]
struct Noted(Mutex<Vec<(String, Source)>>);

impl Evidence for Noted {
    fn touched(&self, session: &str, places: &[Source]) {
        self.0.lock().unwrap().extend(places.iter().map(|p| (session.to_owned(), p.clone())));
    }
}

/// A view over the fixture with artifacts on disk.
fn view(fixture: &Fixture, limits: Limits, noted: &Arc<Noted>) -> View {
    let settings = Settings { tree: limits, ..Settings::default() };
    let options = setup::options(&settings, Some(&fixture.dir.path().join("state"))).unwrap();
    let tree = Tree::new(Options { evidence: Some(Arc::<Noted>::clone(noted)), ..options });
    fixture.service().with_tree(Arc::new(tree)).view(Some("s1")).unwrap()
}

fn read(view: &View, path: &str, lines: Option<&str>) -> Envelope {
    view.read(&Read { path: path.into(), lines: lines.map(str::to_owned), version: None })
}

fn write(view: &View, path: &str, content: &str) -> Envelope {
    view.write(&Write { path: path.into(), content: content.into() })
}

fn code(envelope: &Envelope) -> &str {
    envelope.error.as_ref().map_or("", |e| e.code.as_str())
}

#[test]
fn reading_names_its_sources_and_is_noted() {
    let fixture = Fixture::lexical(TREE);
    let noted = Arc::new(Noted::default());
    let view = view(&fixture, Limits::default(), &noted);
    let all = read(&view, "/runbooks/deploy/staging.md", None);
    assert!(all.content.starts_with("# Staging\n") && all.is_ok());
    assert_eq!(all.sources[0].document.as_deref(), Some("deploy/staging.md"));
    let part = read(&view, "deploy/staging.md", Some("7-7"));
    assert_eq!(part.content, "Run `harborctl reset`.\n");
    assert_eq!(part.sources[0].heading.as_deref(), Some("Reset"));
    assert_eq!(part.sources[0].lines, Some([7, 7]));
    let found = view.grep(&Grep { pattern: "ssh|harborctl".into(), ..Grep::default() });
    assert_eq!(
        found.content,
        "/runbooks/deploy/staging.md:7:Run `harborctl reset`.\n/runbooks/deploy/staging.md:11:ssh app1\n"
    );
    let headings: Vec<_> = found.sources.iter().map(|s| s.heading.as_deref().unwrap()).collect();
    assert_eq!(headings, ["Reset", "Access"]);
    assert_eq!(found.data["searched"], 2);
    let names = noted.0.lock().unwrap();
    assert_eq!(names.len(), 4, "{names:?}");
    assert!(names.iter().all(|(session, s)| session == "s1" && s.generation.is_some()));
    drop(names);
    let none = view.grep(&Grep { pattern: "nothing".into(), ..Grep::default() });
    assert_eq!((none.content.as_str(), code(&none)), ("", ""));
    assert_eq!(none.stderr, "no match in 2 files searched\n");
    assert_eq!(code(&read(&view, "/runbooks/none.md", None)), "not_found");
    assert_eq!(code(&read(&view, "/runbooks/deploy", None)), "is_a_directory");
    assert_eq!(code(&read(&view, "ports.md", Some("9-"))), "bad_request");
    let bad = view.grep(&Grep { pattern: "(".into(), ..Grep::default() });
    assert_eq!(code(&bad), "bad_pattern");
    let basic = Grep { pattern: "nginx\\|ssh".into(), syntax: Syntax::Basic, ..Grep::default() };
    assert_eq!(view.grep(&basic).data["lines"], 2);
}

#[test]
fn listing_drawing_and_finding() {
    let fixture = Fixture::lexical(TREE);
    let view = view(&fixture, Limits::default(), &Arc::default());
    let root = view.ls(&Ls { path: Some("/".into()) });
    let names: Vec<_> =
        root.content.lines().map(|l| l.split_whitespace().next().unwrap()).collect();
    assert_eq!(names, ["artifacts/", "runbooks/", "tmp/"]);
    assert_eq!(view.ls(&Ls::default()).content, "deploy/\nports.md\n");
    let drawn = view.draw(&Draw::default());
    assert_eq!(
        drawn.content,
        "/runbooks\n├── deploy/\n│   └── staging.md\n└── ports.md\n\n1 directories, 2 files\n"
    );
    let find = |f: Find| view.find(&f).content;
    assert_eq!(
        find(Find { name: Some("*.md".into()), ..Find::default() }),
        "/runbooks/deploy/staging.md\n/runbooks/ports.md\n"
    );
    assert_eq!(
        find(Find { glob: Some("deploy/*".into()), ..Find::default() }),
        "/runbooks/deploy/staging.md\n"
    );
    assert_eq!(
        find(Find {
            kind: Some("dir".into()),
            path: Some("/".into()),
            depth: Some(1),
            ..Find::default()
        }),
        "/\n/artifacts\n/runbooks\n/tmp\n"
    );
    let loaded = view.load(&Load::default());
    assert_eq!(loaded.data["complete"], true);
    assert_eq!(loaded.data["files"][1]["content"], "# Ports\n\nnginx opens 8080.\n");
    let names_only = view.load(&Load { path: None, limit: Some(10) });
    assert_eq!((names_only.data["complete"].as_bool(), names_only.truncated), (Some(false), true));
    assert!(names_only.data["files"][1].get("content").is_none());
    assert_eq!(names_only.data["files"][1]["path"], "/runbooks/ports.md");
}

#[test]
fn only_writable_mounts_are_written_and_artifacts_keep_every_version() {
    let fixture = Fixture::lexical(TREE);
    let view = view(&fixture, Limits::default(), &Arc::default());
    for path in [
        "/runbooks/new.md",
        "/runbooks/ports.md",
        "/new.md",
        "/etc/passwd",
        "/",
        "/runbooks",
        "/tmp",
    ] {
        assert_eq!(code(&write(&view, path, "x")), "read_only", "{path}");
    }
    assert_eq!(
        code(&view.delete(&Delete { path: "ports.md".into(), recursive: true })),
        "read_only"
    );
    let edit = Edit { path: "ports.md".into(), old: "nginx".into(), new: "x".into(), all: false };
    assert_eq!(code(&view.edit(&edit)), "read_only");

    let path = "/artifacts/reports/weekly.md";
    assert!(write(&view, path, "one one\n").is_ok());
    let edit = |old: &str, all| {
        view.edit(&Edit { path: path.into(), old: old.into(), new: "two".into(), all })
    };
    assert_eq!(code(&edit("three", false)), "no_such_text");
    assert_eq!(code(&edit("one", false)), "no_such_text");
    assert!(edit("one", true).is_ok());
    assert_eq!(read(&view, path, None).content, "two two\n");
    let listed = |path: &str| view.ls(&Ls { path: Some(path.into()) }).content;
    assert_eq!(listed("/artifacts"), "reports/\n");
    assert_eq!(listed("/artifacts/reports"), "weekly.md\n");
    assert!(view.delete(&Delete { path: path.into(), recursive: false }).is_ok());
    assert_eq!(code(&read(&view, path, None)), "not_found");
    let history = view.history(&History { path: path.into() });
    let versions = history.data["versions"].as_array().unwrap();
    assert_eq!(versions.len(), 3, "{history:?}");
    assert_eq!(versions[0]["deleted"], true);
    let first = versions[2]["id"].as_str().unwrap().to_owned();
    let old = view.read(&Read { path: path.into(), lines: None, version: Some(first) });
    assert_eq!(old.content, "one one\n");
    let none = view.read(&Read { path: path.into(), lines: None, version: Some("0".into()) });
    assert_eq!(code(&none), "no_such_version");
    // A name that is odd on disk stays within the mount.
    assert!(write(&view, "/artifacts/a b/%2e%2e/ü=@.md", "x").is_ok());
    assert_eq!(listed("/artifacts/a b/%2e%2e"), "ü=@.md\n");
    assert!(fixture.dir.path().join("state/artifacts").is_dir());

    assert!(write(&view, "/tmp/notes/x.md", "scratch").is_ok());
    let again = fixture.service().view(Some("s1")).unwrap();
    assert_eq!(code(&read(&again, "/tmp/notes/x.md", None)), "not_found", "another program's /tmp");
    assert_eq!(code(&write(&view, "/tmp/notes/x.md/y", "z")), "not_a_directory");
}

#[test]
fn a_long_result_goes_to_the_overflow() {
    let text = (1..=4000).map(|n| format!("line {n} of the log\n")).collect::<String>();
    let fixture = Fixture::lexical(&format!("//- big.md\n# Big\n\n{text}"));
    let view = view(&fixture, Limits::default(), &Arc::default());
    let found = view.grep(&Grep { pattern: "line".into(), ..Grep::default() });
    assert!(found.truncated && found.content.chars().count() <= 20_000);
    let overflow = found.overflow.unwrap();
    assert!(overflow.path.starts_with("/tmp/overflow/"), "{overflow:?}");
    assert_eq!(overflow.lines, 4000);
    assert!(found.content.starts_with("/runbooks/big.md:3:line 1 of the log\n"));
    assert!(found.content.ends_with("line 4000 of the log\n"));
    assert!(
        found.content.contains("characters left out") && found.content.contains(&overflow.path)
    );
    let rest = read(&view, &overflow.path, Some("2000-2001"));
    assert_eq!(
        rest.content,
        "/runbooks/big.md:2002:line 2000 of the log\n/runbooks/big.md:2003:line 2001 of the log\n"
    );
    // A file that is read as a whole is where it is already.
    let whole = read(&view, "big.md", None);
    assert_eq!(whole.overflow.unwrap().path, "/runbooks/big.md");
    // The oldest make room.
    let small = Limits { tmp_bytes: 400_000, ..Limits::default() };
    let view = self::view(&fixture, small, &Arc::default());
    for n in 0..6 {
        let found = view.grep(&Grep { pattern: format!("line|{n}"), ..Grep::default() });
        assert_eq!(code(&found), "", "{n}");
        assert!(read(&view, &found.overflow.unwrap().path, Some("1")).is_ok());
    }
}

#[test]
fn a_mount_that_does_not_work_is_an_error_of_its_own_paths_alone() {
    let fixture = Fixture::lexical(TREE);
    let other = fixture.dir.path().join("other");
    let repos = vec![
        Repo { name: "main".into(), data: fixture.data() },
        Repo { name: "infra".into(), data: other.clone() },
    ];
    let service = Service::new(ServiceOptions {
        repos,
        policy: runbook_query::engine::Policy::default(),
        embedder: Some("none".into()),
        places: Places::from_env(None, None),
    });
    service.open().unwrap();
    let view = service.view(None).unwrap();
    assert!(read(&view, "/runbooks/ports.md", None).is_ok());
    let broken = view.ls(&Ls { path: Some("/repo/infra".into()) });
    assert_eq!(code(&broken), "unavailable");
    let all =
        view.grep(&Grep { pattern: "nginx".into(), path: Some("/".into()), ..Grep::default() });
    assert!(all.content.contains("/runbooks/ports.md:3:nginx"), "{all:?}");
    let error = all.error.unwrap();
    assert!(error.message.contains("/repo/infra"), "{error:?}");
    assert!(!error.message.contains(&*other.to_string_lossy()), "no path of the machine");
    let shell = runbook_query::shell::run(
        &view,
        &runbook_query::shell::Request {
            command: "grep -r nginx / 2>/dev/null".into(),
            ..Default::default()
        },
    );
    assert_eq!(shell.exit_code, Some(2));
    assert!(shell.content.contains("/runbooks/ports.md:nginx opens"), "{shell:?}");
    assert!(shell.error.unwrap().message.contains("/repo/infra"));
    // Once it is there, it is searched.
    ingest(&fixture.source().display().to_string(), &other, Some("none"));
    service.refresh();
    let view = service.view(None).unwrap();
    let all =
        view.grep(&Grep { pattern: "nginx".into(), path: Some("/".into()), ..Grep::default() });
    assert!(all.is_ok() && all.content.contains("/repo/infra/ports.md:3:nginx"), "{all:?}");
    assert_eq!(all.sources[0].repo.as_deref(), Some("infra"));
    assert_eq!(all.sources[1].repo.as_deref(), Some("main"));
}

#[test]
fn bounds_are_kept_and_said() {
    let fixture = Fixture::lexical(TREE);
    let limits = Limits { walk_entries: 2, pattern_bytes: 20, file_bytes: 10, ..Limits::default() };
    let view = view(&fixture, limits, &Arc::default());
    let walked = view.grep(&Grep { pattern: "x".into(), ..Grep::default() });
    assert_eq!(code(&walked), "stopped");
    assert!(walked.error.unwrap().message.contains("more than 2 files"));
    assert_eq!(code(&view.find(&Find::default())), "stopped");
    let long = view.grep(&Grep { pattern: "x".repeat(21), ..Grep::default() });
    assert_eq!(code(&long), "bad_pattern");
    for pattern in ["((a{100}){100}){100}", "(?:\\w{1000}){1000}"] {
        let heavy =
            view.grep(&Grep { pattern: pattern.into(), syntax: Syntax::Rust, ..Grep::default() });
        assert_eq!(code(&heavy), "bad_pattern", "{pattern}");
    }
    assert_eq!(code(&write(&view, "/tmp/x", "01234567890")), "too_large");
    assert_eq!(code(&write(&view, "/artifacts/x", "01234567890")), "too_large");
}
