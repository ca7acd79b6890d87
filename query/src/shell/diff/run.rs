//! One run of diff: from two operands to what is printed about each pair of files.

use super::lines::{self, Change};
use super::print::{self, Text};
use super::{Line, Trouble};
use crate::shell::notes::Notes;
use crate::tree::error::TreeError;
use crate::tree::path;
use crate::tree::router::View;
use bashkit::{FileSystem, FileType};
use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::Path;
use std::time::SystemTime;

/// One side of a comparison.
struct Named<'a> {
    shown: &'a str,
    bytes: Vec<u8>,
    modified: SystemTime,
}

/// What a run has printed so far.
#[derive(Default)]
pub(super) struct Printed {
    pub(super) out: Vec<u8>,
    pub(super) err: String,
    pub(super) code: i32,
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
pub(super) struct Run<'a> {
    pub(super) line: &'a Line,
    pub(super) view: &'a View,
    pub(super) notes: &'a Notes,
    pub(super) fs: &'a dyn FileSystem,
    pub(super) cwd: &'a str,
    pub(super) stdin: &'a [u8],
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

    pub(super) async fn operands(&self, left: &str, right: &str, printed: &mut Printed) {
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
        if line.brief && line.is_exact() {
            printed.differ();
            return printed.say(&format!("Files {left} and {right} differ"));
        }
        let (a, b) = (Text::of(&old.bytes), Text::of(&new.bytes));
        let classes = line.classes([&a, &b]);
        let same_bytes = same_ends(&a, &b);
        let (around, minimal) = (line.form.context(), line.minimal);
        let stop = || self.view.check_time().is_err();
        let found = lines::changes(&classes[0], &classes[1], same_bytes, (around, minimal), &stop);
        let Some(mut changes) = found else {
            let e = TreeError::Stopped(format!("{left} and {right}: comparing took too long"));
            self.notes.fail(e.code(), format!("diff: {e}"), e.hint());
            return printed.trouble(&e.to_string());
        };
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
    fn marked<'a>(text: &Text<'a>) -> Vec<(&'a [u8], bool)> {
        text.lines().iter().enumerate().map(|(n, line)| (*line, text.is_open(n))).collect()
    }
    lines::same_ends(&marked(old), &marked(new))
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
