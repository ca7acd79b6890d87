//! A tree, its cases and its goldens in a temporary directory, and runs of the program over them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tempfile::TempDir;

const RESTORE: &str = "\
# Restore

Dumps and how they come back.

## Restore the nightly dump

Stop the worker, then run the restore of the nightly dump:

```sh
pg_restore --clean --dbname main /srv/dumps/nightly.dump
```

It takes about 20 minutes.

## Check the dump

Compare the size of the nightly dump with that of the day before.
";

const CASES: &str = r#"
{"id":"a1","class":"how_to","question":"restore the nightly dump","expect":"answer","gold":[{"path":"restore.md","heading":"Restore the nightly dump"}],"must_contain":["pg_restore --clean"]}
{"id":"a2","class":"follow_up","question":"check the size of the nightly dump","expect":"answer","gold":[{"path":"restore.md","heading":"Check the dump"}],"must_contain":["day before"],"follow_up_to":"a1","route":{"any":["lexical"],"none":["dense"]}}
{"id":"a3","class":"how_to","question":"zymurgy <b>&\u001b[0m</b>","expect":"answer","gold":[{"path":"restore.md","heading":"Restore"}],"must_contain":["nothing says this"]}
{"id":"r1","class":"action","question":"restart nginx for me please","expect":"refuse","reason":"action"}
{"id":"r2","class":"out_of_scope","question":"quokka habitat","expect":"refuse","reason":"no_evidence"}
"#;

/// Everything that a run needs.
pub(crate) struct Fixture {
    dir: TempDir,
}

/// What a run came to.
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Fixture {
    pub(crate) fn new() -> Self {
        let fixture = Self { dir: tempfile::tempdir().unwrap() };
        fixture.write("tree/restore.md", RESTORE);
        fixture.write("tree/other.md", "# Other\n\n## Pages\n\nNothing of note is here.\n");
        fixture.write("cases/sample.jsonl", CASES);
        fixture
    }

    /// One whose state was approved and taken as the baseline.
    pub(crate) fn approved() -> Self {
        let fixture = Self::new();
        fixture.run(&["--approve", "--update-baseline"]).expect(0);
        fixture
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// Replaces a text that a file holds.
    pub(crate) fn replace(&self, name: &str, from: &str, to: &str) {
        let text = self.read(name);
        assert!(text.contains(from), "{name} does not hold {from}:\n{text}");
        self.write(name, &text.replace(from, to));
    }

    pub(crate) fn run(&self, args: &[&str]) -> Ran {
        self.run_with(args, &[])
    }

    pub(crate) fn run_with(&self, args: &[&str], env: &[(&str, &str)]) -> Ran {
        let mut command = Command::new(env!("CARGO_BIN_EXE_runbook-eval"));
        command.args(["run", "sample", "--embedder", "none"]).args(args).env_remove("UPDATE");
        for (flag, dir) in [
            ("--cache", "cache"),
            ("--cases", "cases"),
            ("--golden", "golden"),
            ("--sample", "tree"),
        ] {
            command.arg(flag).arg(self.path(dir));
        }
        let Output { status, stdout, stderr } =
            command.current_dir(Path::new("/")).envs(env.iter().copied()).output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        Ran { code: status.code(), stdout: text(stdout), stderr: text(stderr) }
    }
}

impl Ran {
    /// Checks the exit code; a failure shows everything.
    pub(crate) fn expect(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "{}\n{}", self.stdout, self.stderr);
        self
    }

    /// Checks that something is said.
    pub(crate) fn says(self, what: &str) -> Self {
        assert!(self.stdout.contains(what), "no `{what}` in\n{}\n{}", self.stdout, self.stderr);
        self
    }

    /// Checks that something is not said.
    pub(crate) fn stays_silent_on(self, what: &str) -> Self {
        assert!(!self.stdout.contains(what), "`{what}` in\n{}", self.stdout);
        self
    }
}
