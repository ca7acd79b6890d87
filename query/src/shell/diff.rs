//! `diff` over the tree, as GNU diff prints it: normal, unified and copied context, of files and directories.

mod frequent;
pub mod lines;
mod print;
mod run;
mod settle;

use super::commands::{DIFF, hint};
use super::notes::Notes;
use super::options::Given;
use crate::tree::router::View;
use async_trait::async_trait;
use bashkit::{Builtin, BuiltinContext, ExecResult, FileSystem};
use print::{Form, Text};
use run::{Printed, Run};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// Lines around a change where no number is given.
const AROUND: usize = 3;
/// Bytes that are looked at to tell text from binary.
const BINARY_LOOK: usize = 4096;

/// The command.
pub struct Diff {
    /// Whose clock runs.
    pub view: View,
    /// Where it complains.
    pub notes: Arc<Notes>,
}

/// A command line of diff.
struct Line {
    form: Form,
    brief: bool,
    report_same: bool,
    recursive: bool,
    absent_is_empty: bool,
    text: bool,
    minimal: bool,
    blank_lines: bool,
    fold: Fold,
    labels: Vec<String>,
    exclude: Vec<globset::GlobMatcher>,
    /// The options as they were given, for the headers of a recursive run.
    said: String,
}

/// Which lines are equal that are not the same bytes.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct Fold {
    case: bool,
    all_space: bool,
    space_change: bool,
    trailing_space: bool,
    carriage_return: bool,
}

/// What ends a run: it is said on stderr, with exit code 2.
type Trouble = String;

impl Line {
    fn new() -> Self {
        Self {
            form: Form::Normal,
            brief: false,
            report_same: false,
            recursive: false,
            absent_is_empty: false,
            text: false,
            minimal: false,
            blank_lines: false,
            fold: Fold::default(),
            labels: Vec::new(),
            exclude: Vec::new(),
            said: String::new(),
        }
    }

    fn apply(&mut self, option: &Given) -> Result<(), Trouble> {
        let value = || option.value.clone().unwrap_or_default();
        let around = || match option.value.as_deref() {
            None => Ok(AROUND),
            Some(text) => {
                text.parse::<usize>().map_err(|_| format!("invalid context length '{text}'"))
            }
        };
        match option.name.as_str() {
            "-u" | "-U" | "unified" => {
                self.form = Form::Unified(around()?.max(self.form.context()));
            }
            "-c" | "-C" | "context" => {
                self.form = Form::Context(around()?.max(self.form.context()));
            }
            "-NUM" => match self.form {
                Form::Context(_) => self.form = Form::Context(around()?),
                _ => self.form = Form::Unified(around()?),
            },
            "normal" => self.form = Form::Normal,
            "-q" | "brief" => self.brief = true,
            "-s" | "report-identical-files" => self.report_same = true,
            "-r" | "recursive" => self.recursive = true,
            "-N" | "new-file" => self.absent_is_empty = true,
            "-a" | "text" => self.text = true,
            "-d" | "minimal" => self.minimal = true,
            "-B" | "ignore-blank-lines" => self.blank_lines = true,
            "-i" | "ignore-case" => self.fold.case = true,
            "-w" | "ignore-all-space" => self.fold.all_space = true,
            "-b" | "ignore-space-change" => self.fold.space_change = true,
            "-Z" | "ignore-trailing-space" => self.fold.trailing_space = true,
            "strip-trailing-cr" => self.fold.carriage_return = true,
            "-L" | "label" => self.labels.push(value()),
            "-x" | "exclude" => {
                let glob = globset::Glob::new(&value()).map_err(|e| e.kind().to_string())?;
                self.exclude.push(glob.compile_matcher());
            }
            // Output is plain in any case.
            _ => {}
        }
        Ok(())
    }

    /// Whether files that are not the same bytes differ in any case.
    fn is_exact(&self) -> bool {
        !self.blank_lines && self.fold == Fold::default()
    }

    fn binary(&self, bytes: &[u8]) -> bool {
        !self.text && bytes[..bytes.len().min(BINARY_LOOK)].contains(&0)
    }

    /// The two texts as classes of lines.
    fn classes(&self, texts: [&Text<'_>; 2]) -> [Vec<u32>; 2] {
        let mut known: FxHashMap<Vec<u8>, u32> = FxHashMap::default();
        texts.map(|text| {
            let of = |(n, line): (usize, &&[u8])| {
                let mut key = self.fold.key(line);
                if text.is_open(n) && !self.fold.ignores_end() {
                    key.push(b'\n');
                }
                let next = u32::try_from(known.len()).unwrap_or(u32::MAX);
                *known.entry(key).or_insert(next)
            };
            text.lines().iter().enumerate().map(of).collect()
        })
    }
}

impl Fold {
    fn ignores_end(self) -> bool {
        self.all_space || self.space_change || self.trailing_space
    }

    fn key(self, line: &[u8]) -> Vec<u8> {
        let mut key = line.to_vec();
        if self.carriage_return && key.last() == Some(&b'\r') {
            key.pop();
        }
        let space = |b: &u8| matches!(b, b' ' | b'\t' | b'\r' | 0x0b | 0x0c);
        if self.all_space {
            key.retain(|b| !space(b));
        } else if self.space_change || self.trailing_space {
            while key.last().is_some_and(space) {
                key.pop();
            }
        }
        if self.space_change {
            key.iter_mut().filter(|b| space(b)).for_each(|b| *b = b' ');
            key.dedup_by(|a, b| *a == b' ' && *b == b' ');
        }
        if self.case {
            key = match String::from_utf8(key) {
                Ok(text) => text.to_lowercase().into_bytes(),
                Err(e) => e.into_bytes().to_ascii_lowercase(),
            };
        }
        key
    }
}

impl Diff {
    async fn run(
        &self,
        args: &[String],
        cwd: &str,
        fs: &dyn FileSystem,
        stdin: &[u8],
    ) -> Result<ExecResult, (bool, String)> {
        let (given, operands) =
            DIFF.parse(args).map_err(|u| (true, format!("option {} {}", u.option, u.why)))?;
        let mut line = Line::new();
        for option in &given {
            line.apply(option).map_err(|e| (false, e))?;
        }
        let options = args.iter().take_while(|a| *a != "--").filter(|a| !operands.contains(a));
        line.said = options.fold(String::new(), |said, a| format!("{said} {a}"));
        let [left, right] = &operands[..] else {
            let what = match operands.len() {
                0 | 1 => "two files are wanted".to_owned(),
                _ => format!("extra operand '{}'", operands[2]),
            };
            return Err((false, what));
        };
        let run = Run { line: &line, view: &self.view, notes: &self.notes, fs, cwd, stdin };
        let mut printed = Printed::default();
        run.operands(left, right, &mut printed).await;
        let result = ExecResult::ok_bytes(printed.out);
        Ok(ExecResult { stderr: printed.err.into(), exit_code: printed.code, ..result })
    }
}

#[async_trait]
impl Builtin for Diff {
    async fn execute(&self, ctx: BuiltinContext<'_>) -> bashkit::Result<ExecResult> {
        if ctx.args.iter().any(|a| a == "--help") {
            return Ok(ExecResult::ok(super::help::one("diff")));
        }
        let cwd = ctx.cwd.to_string_lossy().into_owned();
        let stdin = ctx.stdin.map(|s| s.as_bytes().to_vec()).unwrap_or_default();
        let result = self.run(ctx.args, &cwd, &*ctx.fs, &stdin).await;
        Ok(result.unwrap_or_else(|(unsupported, why)| {
            let message = format!("diff: {why}");
            if unsupported {
                self.notes.fail("unsupported_option", message.clone(), hint("diff"));
            }
            ExecResult::err(format!("{message}\nhint: {}\n", hint("diff")), 2)
        }))
    }
}
