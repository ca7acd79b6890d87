//! Targets of the fuzzer: Markdown to chunks, front matter, the manifest, names of git trees.

#[path = "../../../fuzz/engine.rs"]
mod engine;

use engine::{Target, fuzz, hash};
use git2::{ObjectType, Oid, Repository};
use runbook_ingest::config::Settings;
use runbook_ingest::document::{self, Rejected};
use runbook_ingest::read::Reader;
use runbook_ingest::report::Report;
use runbook_ingest::reuse::Documents;
use runbook_shared::doc_path::DocPath;
use runbook_shared::generation::manifest::{ForgeKind, Manifest, Versions};
use runbook_shared::tokens::TokenCounter;
use std::cell::RefCell;
use std::path::Path;
use std::time::Duration;

/// The sample's documents.
fn samples() -> Vec<Vec<u8>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../runbooks-sample");
    let files = walkdir::WalkDir::new(root).sort_by_file_name().into_iter().flatten();
    let pages = files.filter(|e| e.path().extension().is_some_and(|x| x == "md"));
    pages.take(12).map(|e| std::fs::read(e.path()).unwrap()).collect()
}

const MARKDOWN: [&str; 44] = [
    "# ",
    "## ",
    "### ",
    "###### ",
    "```",
    "~~~",
    "```sh\n",
    "> ",
    "- ",
    "1. ",
    "* ",
    "    ",
    "\t",
    "---\n",
    "===\n",
    "| a | b |\n",
    "|---|---|\n",
    "|",
    "[",
    "](",
    "![",
    "[^1]: ",
    "[a]: /b\n",
    "<!--",
    "-->",
    "<div>",
    "</div>",
    "<a id=\"x\">",
    "&amp;",
    "*",
    "**",
    "_",
    "`",
    "``",
    "\\",
    "\n\n",
    "\r\n",
    "{#id}",
    "$$",
    "<",
    "~~",
    ":::",
    "(",
    "- [ ] ",
];

/// Reads a document and checks what must hold for each.
fn read(bytes: &[u8], counter: &TokenCounter) -> u64 {
    match document::parse(b"a/b.md", bytes.to_vec(), Some(ForgeKind::Github), counter) {
        Err(Rejected::Failed(message)) => panic!("{message}"),
        Err(Rejected::Skipped(reason)) => hash(reason.name().as_bytes()),
        Ok(document) => {
            let mut line = 0;
            for chunk in &document.chunks {
                chunk.check().unwrap_or_else(|e| panic!("{e}: {chunk:?}"));
                assert!(chunk.lines[0] > 0 && chunk.lines[0] >= line, "{chunk:?}");
                assert!(chunk.lines[1] <= document.record.lines.max(1), "{chunk:?}");
                line = chunk.lines[0];
            }
            let sections: usize = document.chunks.iter().map(|c| c.sections.len()).sum();
            let parts = document.chunks.iter().filter(|c| c.part.is_some()).count();
            let warnings = document.warnings.len().min(3);
            let bucket = |n: usize| n.checked_ilog2().unwrap_or(99);
            let headings = document.record.headings.len();
            hash(
                format!("{} {} {} {warnings}", bucket(sections), bucket(parts), bucket(headings))
                    .as_bytes(),
            )
        }
    }
}

#[test]
fn markdown_to_chunks() {
    let counter = TokenCounter::default_model();
    let target = Target {
        name: "chunks",
        seeds: samples(),
        words: &MARKDOWN,
        bytes_max: 1 << 16,
        timed_bytes: 1 << 18,
        within: Duration::from_secs(5),
    };
    fuzz(&target, |bytes| read(bytes, &counter));
}

#[test]
fn front_matter() {
    let counter = TokenCounter::default_model();
    let words = [
        "---\n",
        "...\n",
        "title: ",
        "title: \"",
        "'",
        "\"",
        "|\n",
        ">\n",
        "  ",
        "- ",
        "{",
        "}",
        "[",
        "]",
        "#",
        "&a ",
        "*a",
        "!!",
        "+++\n",
        "title = ",
        "\n",
        ": ",
        "\r\n",
        "\\u0000",
        "~",
        "tags: [a, b]\n",
    ];
    let seed = b"---\ntitle: \"Disk: full\"\ntags: [a, b]\n---\n\n# Head\n\ntext\n".to_vec();
    let target = Target {
        name: "front-matter",
        seeds: vec![seed, b"title: x\n---\n# A\n".to_vec(), b"title: >\n  a\n  b\n".to_vec()],
        words: &words,
        bytes_max: 1 << 14,
        timed_bytes: 1 << 18,
        within: Duration::from_secs(5),
    };
    fuzz(&target, |bytes| read(&[b"---\n", bytes].concat(), &counter));
}

#[test]
fn manifests() {
    let text = r#"{"format_version":2,"content_version":2,"written_by":"x","source":"s","branch":null,
        "commit":null,"tree_hash":null,"indexed_at":"2026-01-01T00:00:00Z","embedder":null,"option_hash":"0",
        "options":{},"forge":{"kind":"github","base_url":"https://x"},"counts":{"documents":1,"indexed":1,
        "failed":0,"skipped":{"symlink":1},"sections":1,"chunks":1,"windows":0},"graph":{"ef":64,
        "recall_at_10":1.0,"serves":false},"calibration":{"own":[0.5],"left_out":[],"foreign":[0.1],
        "own_found":1},"files":{"chunks.jsonl":{"bytes":1,"blake3":"00"}}}"#;
    let words = [
        "{",
        "}",
        "[",
        "]",
        "\"",
        ":",
        ",",
        "null",
        "true",
        "-1",
        "1e999",
        "0.1",
        "18446744073709551616",
        "\\u0000",
        "\\ud800",
        "\"files\":",
        "\"format_version\":",
        "\"../../etc/passwd\"",
        "\"calibration\":",
        "1",
        " ",
    ];
    let target = Target {
        name: "manifest",
        seeds: vec![text.as_bytes().to_vec()],
        words: &words,
        bytes_max: 1 << 15,
        timed_bytes: 1 << 20,
        within: Duration::from_secs(2),
    };
    fuzz(&target, |bytes| {
        let versions = serde_json::from_slice::<Versions>(bytes).is_ok();
        let Ok(manifest) = serde_json::from_slice::<Manifest>(bytes) else {
            return u64::from(versions);
        };
        assert!(versions, "a manifest that has no versions");
        let again = serde_json::to_vec(&manifest).unwrap();
        let rates = manifest.calibration.as_ref().map(|c| c.at(0.5));
        let sound = rates.is_none_or(|r| (0.0..=1.0).contains(&r.false_refusals));
        assert!(sound && !again.is_empty());
        2 + u64::from(manifest.graph.is_some())
            + 2 * u64::from(manifest.calibration.is_some())
            + 4 * manifest.files.len().min(9) as u64
    });
}

/// A commit whose tree has these bytes: nothing of it was checked by git.
fn commit(repository: &Repository, tree: &[u8]) -> Option<Oid> {
    let odb = repository.odb().ok()?;
    let tree = odb.write(ObjectType::Tree, tree).ok()?;
    let text = format!("tree {tree}\nauthor a <a@b> 1 +0000\ncommitter a <a@b> 1 +0000\n\nx\n");
    odb.write(ObjectType::Commit, text.as_bytes()).ok()
}

/// A repository with a blob and a tree that trees may name.
struct Repo {
    dir: tempfile::TempDir,
    tries: usize,
}

impl Repo {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let repository = Repository::init_bare(dir.path()).unwrap();
        let blob = repository.blob(BLOB).unwrap();
        let tree = [b"100644 in.md\0", blob.as_bytes()].concat();
        repository.odb().unwrap().write(ObjectType::Tree, &tree).unwrap();
        Self { dir, tries: 0 }
    }
}

const BLOB: &[u8] = b"# A\n\ntext\n";

#[test]
fn names_of_git_trees() {
    let repo = RefCell::new(Repo::new());
    let id = |kind, bytes: &[u8]| Oid::hash_object(kind, bytes).unwrap();
    let blob = id(ObjectType::Blob, BLOB);
    let inner = id(ObjectType::Tree, &[b"100644 in.md\0", blob.as_bytes()].concat());
    let entry = |mode: &str, name: &[u8], id: Oid| {
        [mode.as_bytes(), b" ", name, b"\0", id.as_bytes()].concat()
    };
    let seeds = vec![
        entry("100644", b"a.md", blob),
        [entry("100644", b"a.md", blob), entry("40000", b"b", inner)].concat(),
        entry("100644", b"..", blob),
        entry("100644", b".git", blob),
        entry("100644", b"a/b.md", blob),
        entry("100644", b"a\nb\x1b.md", blob),
        entry("120000", b"l.md", blob),
        entry("160000", b"s.md", blob),
        entry("40000", b"..", inner),
        entry("40000", b".git", inner),
    ];
    let words = [
        "100644 ", "40000 ", "120000 ", "160000 ", "100755 ", "..", ".git", "/", ".md", "\u{202e}",
        "%00",
    ];
    let settings = Settings {
        source: Some(repo.borrow().dir.path().display().to_string()),
        data: Some(repo.borrow().dir.path().join("data")),
        embedder: Some("none".into()),
        ..Settings::default()
    };
    let config = settings.resolve().unwrap();
    let counter = TokenCounter::default_model();
    let target = Target {
        name: "tree-names",
        seeds,
        words: &words,
        bytes_max: 1 << 13,
        timed_bytes: 0,
        within: Duration::from_secs(5),
    };
    fuzz(&target, |bytes| {
        let mut repo = repo.borrow_mut();
        repo.tries += 1;
        if repo.tries > 2000 {
            *repo = Repo::new(); // Each try leaves two objects.
        }
        let repository = Repository::open_bare(repo.dir.path()).unwrap();
        let Some(commit) = commit(&repository, bytes) else { return 0 };
        let reader = Reader::Git(Box::new(repository), commit);
        let mut report = Report::default();
        let Ok(candidates) = reader.list(&config.selection, &mut report) else { return 1 };
        let documents = reader.documents(
            &candidates,
            None,
            &counter,
            &config.secrets,
            Documents::default(),
            &mut report,
        );
        for document in &documents {
            let path = &document.record.path;
            DocPath::from_bytes(path.as_bytes()).unwrap_or_else(|_| panic!("{path:?}"));
            let odd = |part: &str| {
                ["", ".", ".."].contains(&part) || part.contains(['\0', '\n', '\u{1b}'])
            };
            assert!(!path.split('/').any(odd), "{path:?}");
        }
        let skipped: u64 = report.skipped.values().sum();
        assert_eq!(report.documents, report.indexed + report.failed + skipped);
        hash(format!("{} {:?}", documents.len().min(5), report.skipped.keys()).as_bytes())
    });
}
