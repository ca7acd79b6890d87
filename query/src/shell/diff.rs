//! `diff` over the tree, as GNU diff prints it: normal, unified and copied context, of files and directories.

pub mod lines;
mod print;

use super::commands::{DIFF, hint};
use super::notes::Notes;
use super::options::Given;
use crate::tree::path;
use async_trait::async_trait;
use bashkit::{Builtin, BuiltinContext, ExecResult, FileSystem, FileType};
use lines::Change;
use print::{Form, Text};
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

/// Lines around a change where no number is given.
const AROUND: usize = 3;
/// Bytes that are looked at to tell text from binary.
const BINARY_LOOK: usize = 4096;

/// The command.
pub struct Diff {
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
#[derive(Clone, Copy, Default)]
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

/// One side of a comparison.
struct Named<'a> {
    shown: &'a str,
    bytes: Vec<u8>,
    modified: SystemTime,
}

/// What a run has printed so far.
#[derive(Default)]
struct Printed {
    out: Vec<u8>,
    err: String,
    code: i32,
}

impl Printed {
    fn differ(&mut self) {
        self.code = self.code.max(1);
    }

    fn trouble(&mut self, what: &str) {
        self.code = 2;
        let _ = writeln!(self.err, "diff: {what}");
    }

    fn say(&mut self, line: &str) {
        self.out.extend_from_slice(line.as_bytes());
        self.out.push(b'\n');
    }
}

/// A run of diff.
struct Run<'a> {
    line: &'a Line,
    fs: &'a dyn FileSystem,
    cwd: &'a str,
    stdin: &'a [u8],
}

fn full(cwd: &str, shown: &str) -> Result<String, Trouble> {
    path::resolve(cwd, shown).map_err(|e| format!("{shown}: {e}"))
}

/// What the file system says of a path, without the words that name the kind of error.
fn why(e: &bashkit::Error) -> String {
    let text = e.to_string();
    text.strip_prefix("io error: ").unwrap_or(&text).to_owned()
}

impl Run<'_> {
    async fn kind(&self, shown: &str) -> Result<Option<FileType>, Trouble> {
        if shown == "-" {
            return Ok(Some(FileType::File));
        }
        let at = full(self.cwd, shown)?;
        match self.fs.stat(Path::new(&at)).await {
            Ok(meta) => Ok(Some(meta.file_type)),
            Err(_) if self.line.absent_is_empty => Ok(None),
            Err(e) => Err(format!("{shown}: {}", why(&e))),
        }
    }

    async fn read<'a>(&self, shown: &'a str, there: bool) -> Result<Named<'a>, Trouble> {
        let modified = SystemTime::UNIX_EPOCH;
        if shown == "-" {
            return Ok(Named { shown, bytes: self.stdin.to_vec(), modified: SystemTime::now() });
        }
        if !there {
            return Ok(Named { shown, bytes: Vec::new(), modified });
        }
        let at = full(self.cwd, shown)?;
        let failed = |e: bashkit::Error| format!("{shown}: {}", why(&e));
        let bytes = self.fs.read_file(Path::new(&at)).await.map_err(failed)?;
        let modified = self.fs.stat(Path::new(&at)).await.map_or(modified, |m| m.modified);
        Ok(Named { shown, bytes, modified })
    }

    async fn operands(&self, left: &str, right: &str, printed: &mut Printed) {
        let kinds = (self.kind(left).await, self.kind(right).await);
        let (left_kind, right_kind) = match kinds {
            (Ok(a), Ok(b)) if a.is_some() || b.is_some() => (a, b),
            (a, b) => {
                for trouble in [a.err(), b.err()].into_iter().flatten() {
                    printed.trouble(&trouble);
                }
                if printed.code != 2 {
                    printed.trouble(&format!("{left}: No such file or directory"));
                }
                return;
            }
        };
        let dir = |kind| kind == Some(FileType::Directory);
        match (dir(left_kind), dir(right_kind)) {
            (true, true) => self.directories(left, right, printed).await,
            // A file is compared with the one of its name in the directory.
            (true, false) if right != "-" => {
                let left = format!("{}/{}", left.trim_end_matches('/'), path::split(right).1);
                self.files(&left, right, (true, right_kind.is_some()), printed).await;
            }
            (false, true) if left != "-" => {
                let right = format!("{}/{}", right.trim_end_matches('/'), path::split(left).1);
                self.files(left, &right, (left_kind.is_some(), true), printed).await;
            }
            (true, false) | (false, true) => {
                printed.trouble("cannot compare '-' to a directory");
            }
            (false, false) => {
                let there = (left_kind.is_some(), right_kind.is_some());
                self.files(left, right, there, printed).await;
            }
        }
    }

    async fn names(&self, shown: &str) -> Result<BTreeSet<String>, Trouble> {
        let at = full(self.cwd, shown)?;
        let entries = self.fs.read_dir(Path::new(&at)).await;
        let entries = entries.map_err(|e| format!("{shown}: {}", why(&e)))?;
        let left_out = |name: &str| self.line.exclude.iter().any(|glob| glob.is_match(name));
        Ok(entries.into_iter().map(|e| e.name).filter(|n| !left_out(n)).collect())
    }

    /// Compares two directories, and with `-r` all beneath them.
    async fn directories(&self, left: &str, right: &str, printed: &mut Printed) {
        let mut open = vec![(left.to_owned(), right.to_owned())];
        while let Some((left, right)) = open.pop() {
            match left.strip_prefix('\0') {
                // A pair of files that waits for its turn.
                Some(left) => self.pair(left, &right, printed, &mut open).await,
                None => self.listing(&left, &right, printed, &mut open).await,
            }
        }
    }

    async fn listing(
        &self,
        left: &str,
        right: &str,
        printed: &mut Printed,
        open: &mut Vec<(String, String)>,
    ) {
        let (a, b) = match (self.names(left).await, self.names(right).await) {
            (Ok(a), Ok(b)) => (a, b),
            (a, b) => {
                for trouble in [a.err(), b.err()].into_iter().flatten() {
                    printed.trouble(&trouble);
                }
                return;
            }
        };
        let within = |dir: &str, name: &str| format!("{}/{name}", dir.trim_end_matches('/'));
        let names: Vec<&String> = a.union(&b).collect();
        for name in names.into_iter().rev() {
            open.push((format!("\0{}", within(left, name)), within(right, name)));
        }
    }

    /// Two entries of one name.
    async fn pair(
        &self,
        left: &str,
        right: &str,
        printed: &mut Printed,
        open: &mut Vec<(String, String)>,
    ) {
        let kind = |shown: &str| {
            let at = full(self.cwd, shown);
            async move {
                match at {
                    Ok(at) => self.fs.stat(Path::new(&at)).await.ok().map(|m| m.file_type),
                    Err(_) => None,
                }
            }
        };
        let (a, b) = (kind(left).await, kind(right).await);
        let is_dir = |k: Option<FileType>| k == Some(FileType::Directory);
        let only = |shown: &str| {
            let (dir, name) = shown.rsplit_once('/').unwrap_or((".", shown));
            format!("Only in {dir}: {name}")
        };
        match (a, b) {
            (Some(_), Some(_)) if is_dir(a) && is_dir(b) => {
                if self.line.recursive {
                    open.push((left.to_owned(), right.to_owned()));
                } else {
                    printed.say(&format!("Common subdirectories: {left} and {right}"));
                }
            }
            (Some(_), Some(_)) if is_dir(a) != is_dir(b) => {
                let word = |k| if is_dir(k) { "directory" } else { "regular file" };
                printed.differ();
                printed.say(&format!(
                    "File {left} is a {} while file {right} is a {}",
                    word(a),
                    word(b)
                ));
            }
            (Some(_), Some(_)) => self.files(left, right, (true, true), printed).await,
            (Some(_), None) | (None, Some(_)) => {
                let (there, shown) = if a.is_some() { (a, left) } else { (b, right) };
                if self.line.absent_is_empty && !is_dir(there) {
                    self.files(left, right, (a.is_some(), b.is_some()), printed).await;
                } else {
                    printed.differ();
                    printed.say(&only(shown));
                }
            }
            (None, None) => {}
        }
    }

    async fn files(&self, left: &str, right: &str, there: (bool, bool), printed: &mut Printed) {
        let read = (self.read(left, there.0).await, self.read(right, there.1).await);
        let (old, new) = match read {
            (Ok(old), Ok(new)) => (old, new),
            (a, b) => {
                for trouble in [a.err(), b.err()].into_iter().flatten() {
                    printed.trouble(&trouble);
                }
                return;
            }
        };
        self.contents(&old, &new, printed);
    }

    fn contents(&self, old: &Named<'_>, new: &Named<'_>, printed: &mut Printed) {
        let line = self.line;
        let (left, right) = (old.shown, new.shown);
        let same = |printed: &mut Printed| {
            if line.report_same {
                printed.say(&format!("Files {left} and {right} are identical"));
            }
        };
        if old.bytes == new.bytes {
            return same(printed);
        }
        if line.binary(&old.bytes) || line.binary(&new.bytes) {
            if line.brief {
                printed.differ();
                return printed.say(&format!("Files {left} and {right} differ"));
            }
            printed.code = 2;
            return printed.say(&format!("Binary files {left} and {right} differ"));
        }
        let (a, b) = (Text::of(&old.bytes), Text::of(&new.bytes));
        let classes = line.classes([&a, &b]);
        let same_bytes = same_ends(&a, &b);
        let (around, minimal) = (line.form.context(), line.minimal);
        let mut changes = lines::changes(&classes[0], &classes[1], same_bytes, around, minimal);
        if line.blank_lines {
            changes.retain(|c| !blank(&a, &b, c));
        }
        if changes.is_empty() {
            return same(printed);
        }
        printed.differ();
        if line.brief {
            return printed.say(&format!("Files {left} and {right} differ"));
        }
        if line.recursive {
            printed.say(&format!("diff{} {left} {right}", line.said));
        }
        let name = |n: usize, side: &Named<'_>| match line.labels.get(n) {
            Some(label) => label.clone(),
            None => format!("{}\t{}", side.shown, time(side.modified)),
        };
        let names = [name(0, old), name(1, new)];
        print::print(&mut printed.out, line.form, (&a, &b), &changes, &names);
    }
}

/// Lines that are the same bytes at both ends; a last line without a line end is not the one with it.
fn same_ends(old: &Text<'_>, new: &Text<'_>) -> (usize, usize) {
    let lines = |text: &Text<'_>| {
        let of = |(n, line): (usize, &&[u8])| (line.to_vec(), text.is_open(n));
        text.lines().iter().enumerate().map(of).collect::<Vec<_>>()
    };
    lines::same_ends(&lines(old), &lines(new))
}

fn blank(old: &Text<'_>, new: &Text<'_>, change: &Change) -> bool {
    let all = |text: &Text<'_>, lines: &std::ops::Range<usize>| {
        text.lines()[lines.clone()].iter().all(|l| l.is_empty())
    };
    all(old, &change.old) && all(new, &change.new)
}

/// A time as the headers have it, in UTC.
fn time(at: SystemTime) -> String {
    let at = jiff::Timestamp::try_from(at).unwrap_or_default();
    at.strftime("%Y-%m-%d %H:%M:%S.%9f +0000").to_string()
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
        let run = Run { line: &line, fs, cwd, stdin };
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
