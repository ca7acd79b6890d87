//! `runbook-sh` at a terminal: script(1) gives it one, with keys as a person presses them.

use crate::support::Fixture;
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

const TREE: &str = "//- deploy/staging.md\n# Staging\n\n## Reset\n\nRun `harborctl reset`.\n//- deploy/status.md\n# Status\n//- ports.md\n# Ports\n\nnginx opens 8080.\n";

const UP: &str = "\u{1b}[A";
const CTRL_C: &str = "\u{3}";
const CTRL_D: &str = "\u{4}";
const CTRL_R: &str = "\u{12}";

/// A shell at a terminal.
struct Terminal {
    child: Child,
    keys: ChildStdin,
    shown: Arc<Mutex<String>>,
    reader: std::thread::JoinHandle<()>,
    /// How much of what was shown has been looked at.
    seen: usize,
}

impl Terminal {
    fn open(data: &Path, home: &Path) -> Self {
        let command = format!("{} --data {}", env!("CARGO_BIN_EXE_runbook-sh"), data.display());
        let mut child = Command::new("script")
            .args(["-qec", &command, "/dev/null"])
            .env("HOME", home)
            .env("TERM", "xterm")
            .env_remove("XDG_STATE_HOME")
            .env_remove("RUNBOOK_DATA")
            .env_remove("RUNBOOK_URL")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let keys = child.stdin.take().unwrap();
        let mut output = child.stdout.take().unwrap();
        let shown = Arc::new(Mutex::new(String::new()));
        let log = Arc::clone(&shown);
        let reader = std::thread::spawn(move || {
            let mut buffer = [0; 1024];
            while let Ok(n) = output.read(&mut buffer) {
                if n == 0 {
                    break;
                }
                let text = String::from_utf8_lossy(&buffer[..n]);
                log.lock().unwrap_or_else(PoisonError::into_inner).push_str(&text);
            }
        });
        Self { child, keys, shown, reader, seen: 0 }
    }

    fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
    }

    fn text(&self) -> String {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Waits until this is shown after all that was waited for before.
    fn wait(&mut self, what: &str) {
        for _ in 0..400 {
            let text = self.text();
            if let Some(at) = text[self.seen..].find(what) {
                self.seen += at + what.len();
                return;
            }
            std::thread::sleep(Duration::from_millis(25));
        }
        panic!("no {what:?} in {:?}", &self.text()[self.seen..]);
    }

    /// Presses keys, and waits for what they bring and the prompt after it. What is typed while a command still
    /// runs is dropped when the prompt comes.
    fn enter(&mut self, keys: &str, brings: &str) {
        self.press(keys);
        self.wait("\r\n");
        if brings != "\r\n" {
            self.wait(brings);
        }
        self.wait("$ ");
    }

    /// The last line that was printed before the prompt.
    fn expect_last(&self, line: &str) {
        let text = self.text();
        let before = &text[..self.seen];
        let printed = before.rsplit("\r\n").nth(1).unwrap_or_default();
        assert!(printed.ends_with(line), "{line:?} is not the end of {printed:?}");
    }

    fn end(mut self) -> Option<i32> {
        let status = self.child.wait().unwrap();
        drop(self.keys);
        self.reader.join().unwrap();
        status.code()
    }
}

#[test]
fn keys_complete_and_recall() {
    let fixture = Fixture::lexical(TREE);
    let home = fixture.dir.path().join("home");
    std::fs::create_dir_all(&home).unwrap();
    let mut first = Terminal::open(&fixture.data(), &home);
    first.wait("/runbooks $ ");
    first.enter("cd depl\t\r", "");
    // One command begins so.
    first.enter("basen\tx\r", "x\r\n");
    first.enter("head -n 1 stag\t\r", "# Staging\r\n");
    // Two paths begin so: the part that they share, then both.
    first.press("cat st\t\t");
    first.wait("staging.md");
    first.wait("status.md");
    first.wait("cat sta");
    first.enter(CTRL_C, "\r\n");
    // After a pipe a command, and a path from the root.
    first.enter("cat /runbooks/por\t| gre\t-c nginx\r", "\r\n");
    first.expect_last("1");
    // The line before, once more; and one that is looked for.
    first.enter(&format!("{UP}\r"), "\r\n");
    first.expect_last("1");
    first.enter(&format!("{CTRL_R}head\r"), "# Staging\r\n");
    first.enter("kubectl get pods\r", "kubectl: command not found");
    first.enter("grep -c zzz staging.md\r", "0\r\n");
    first.enter(" echo not kept\r", "not kept\r\n");
    first.press(CTRL_D);
    let shown = first.text();
    assert_eq!(first.end(), Some(0), "that of the last command: {shown}");
    let history =
        std::fs::read_to_string(home.join(".local/state/runbook-ask/sh-history")).unwrap();
    assert!(history.contains("grep -c zzz staging.md"), "{history}");
    assert!(!history.contains("not kept"), "a line that begins with a blank: {history}");

    // The next start knows what was typed.
    let mut second = Terminal::open(&fixture.data(), &home);
    second.wait("/runbooks $ ");
    second.press(UP);
    second.wait("grep -c zzz staging.md");
    second.enter(CTRL_C, "\r\n");
    second.press("exit 7\r");
    assert_eq!(second.end(), Some(7));
}
