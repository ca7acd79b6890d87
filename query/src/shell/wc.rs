//! `wc` over the tree and standard input, as GNU prints it.

use super::commands::{WC, hint};
use super::files::{NULL, strerror};
use super::notes::Notes;
use crate::tree::path;
use crate::tree::router::View;
use async_trait::async_trait;
use bashkit::{Builtin, BuiltinContext, ExecResult};
use std::fmt::Write;
use std::sync::Arc;

/// The command.
pub struct Wc {
    /// What it counts in.
    pub view: View,
    /// Where it notes what it read.
    pub notes: Arc<Notes>,
}

/// Lines, words, characters, bytes, and the width of the longest line.
type Counts = [u64; 5];

fn count(text: &[u8]) -> Counts {
    let lines = memchr::memchr_iter(b'\n', text).count() as u64;
    let decoded = String::from_utf8_lossy(text);
    let words = decoded.split_whitespace().count() as u64;
    let characters = decoded.chars().count() as u64;
    let widest = decoded.lines().map(width).max().unwrap_or(0) as u64;
    [lines, words, characters, text.len() as u64, widest]
}

/// Columns of a terminal; a tab goes to the next multiple of eight.
fn width(line: &str) -> usize {
    line.chars().fold(0, |at, c| match c {
        '\t' => (at / 8 + 1) * 8,
        c => at + unicode_width::UnicodeWidthChar::width(c).unwrap_or(0),
    })
}

impl Wc {
    fn run(&self, args: &[String], cwd: &str, stdin: &[u8]) -> Result<ExecResult, String> {
        let (given, mut files) =
            WC.parse(args).map_err(|u| format!("option {} {}", u.option, u.why))?;
        let has = |short: &str, long: &str| given.iter().any(|g| g.name == short || g.name == long);
        let mut wanted = [
            has("-l", "lines"),
            has("-w", "words"),
            has("-m", "chars"),
            has("-c", "bytes"),
            has("-L", "max-line-length"),
        ];
        if !wanted.contains(&true) {
            wanted = [true, true, false, true, false];
        }
        let from_stdin = files.is_empty();
        if from_stdin {
            files.push("-".into());
        }
        let (mut err, mut code) = (String::new(), 0);
        let mut rows: Vec<(Counts, &str)> = Vec::new();
        let mut total: Counts = [0; 5];
        let (mut sizes, mut irregular) = (0_u64, false);
        for file in &files {
            let text = if file == "-" {
                irregular = true;
                Ok(None)
            } else {
                path::resolve(cwd, file).and_then(|full| {
                    if full == NULL {
                        irregular = true;
                        return Ok(Some(crate::tree::store::Content::owned(Vec::new())));
                    }
                    let content = self.view.read_bytes(&full)?;
                    self.notes.touch(self.view.source(&full, None));
                    Ok(Some(content))
                })
            };
            match text {
                Ok(text) => {
                    let counts = count(text.as_deref().unwrap_or(stdin));
                    for (sum, n) in total.iter_mut().zip(counts) {
                        *sum += n;
                    }
                    // What comes through a pipe has no size beforehand.
                    if file != "-" {
                        sizes += counts[3];
                    }
                    rows.push((counts, if from_stdin { "" } else { file }));
                }
                Err(e) => {
                    code = 1;
                    let _ = writeln!(err, "wc: {file}: {}", strerror(&e));
                    // GNU counts a directory as nothing, and says so.
                    if matches!(e, crate::tree::error::TreeError::IsDirectory(_)) {
                        rows.push(([0; 5], file));
                        irregular = true;
                    }
                }
            }
        }
        total[4] = rows.iter().map(|(c, _)| c[4]).max().unwrap_or(0);
        let single = wanted.iter().filter(|w| **w).count() == 1;
        let digits = sizes.to_string().len();
        let width = match (files.len(), single) {
            (1, true) => 1,
            _ if irregular => digits.max(7),
            _ => digits,
        };
        if files.len() > 1 {
            rows.push((total, "total"));
        }
        let mut out = String::new();
        for (counts, name) in rows {
            let shown: Vec<String> = counts
                .iter()
                .zip(wanted)
                .filter(|(_, wanted)| *wanted)
                .map(|(n, _)| format!("{n:>width$}"))
                .collect();
            out.push_str(&shown.join(" "));
            if !name.is_empty() {
                out.push(' ');
                out.push_str(name);
            }
            out.push('\n');
        }
        Ok(ExecResult { stderr: err.into(), exit_code: code, ..ExecResult::ok(out) })
    }
}

#[async_trait]
impl Builtin for Wc {
    async fn execute(&self, ctx: BuiltinContext<'_>) -> bashkit::Result<ExecResult> {
        if ctx.args.iter().any(|a| a == "--help") {
            return Ok(ExecResult::ok(super::help::one("wc")));
        }
        let cwd = ctx.cwd.to_string_lossy().into_owned();
        let stdin = ctx.stdin.map(|s| s.as_bytes().to_vec()).unwrap_or_default();
        Ok(self.run(ctx.args, &cwd, &stdin).unwrap_or_else(|why| {
            let message = format!("wc: {why}");
            self.notes.fail("unsupported_option", message.clone(), hint("wc"));
            ExecResult::err(format!("{message}\nhint: {}\n", hint("wc")), 2)
        }))
    }
}
