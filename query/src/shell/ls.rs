//! `ls` over the tree, as GNU prints to a pipe: one name a line, in byte order.

use super::commands::{LS, hint};
use super::files::strerror;
use super::notes::Notes;
use crate::tree::error::TreeError;
use crate::tree::path;
use crate::tree::router::View;
use crate::tree::store::{Entry, Kind, Meta};
use async_trait::async_trait;
use bashkit::{Builtin, BuiltinContext, ExecResult};
use std::fmt::Write;
use std::sync::Arc;

/// The command.
pub struct Ls {
    /// What it lists.
    pub view: View,
    /// Where it complains.
    pub notes: Arc<Notes>,
}

#[derive(Default)]
struct Line {
    all: bool,
    dots: bool,
    itself: bool,
    long: bool,
    human: bool,
    recursive: bool,
    reverse: bool,
    by_size: bool,
    by_time: bool,
    unsorted: bool,
    sizes: bool,
    dirs_first: bool,
    commas: bool,
    no_owner: bool,
    no_group: bool,
    /// What follows a directory's name.
    mark: &'static str,
}

impl Line {
    fn parse(args: &[String]) -> Result<(Self, Vec<String>), String> {
        let (given, operands) =
            LS.parse(args).map_err(|u| format!("option {} {}", u.option, u.why))?;
        let mut line = Self::default();
        for option in given {
            match option.name.as_str() {
                "-a" | "all" => (line.all, line.dots) = (true, true),
                "-A" | "almost-all" => line.all = true,
                "-d" | "directory" => line.itself = true,
                "-l" | "-n" => line.long = true,
                "-g" => (line.long, line.no_owner) = (true, true),
                "-o" => (line.long, line.no_group) = (true, true),
                "-h" | "human-readable" => line.human = true,
                "-R" | "recursive" => line.recursive = true,
                "-r" | "reverse" => line.reverse = true,
                "-S" => line.by_size = true,
                "-t" => line.by_time = true,
                "-U" => line.unsorted = true,
                "-s" | "size" => line.sizes = true,
                "-F" | "-p" | "classify" | "file-type" => line.mark = "/",
                "-m" => line.commas = true,
                "group-directories-first" => line.dirs_first = true,
                "sort" => match option.value.as_deref() {
                    Some("size") => line.by_size = true,
                    Some("time") => line.by_time = true,
                    Some("name") => {}
                    Some("none") => line.unsorted = true,
                    other => {
                        return Err(format!("--sort={} is not supported", other.unwrap_or("")));
                    }
                },
                // One name a line, without colours, is how it is in any case.
                _ => {}
            }
        }
        Ok((line, operands))
    }

    fn arrange(&self, entries: &mut [Entry]) {
        entries.sort_by(|a, b| a.name.cmp(&b.name));
        if self.unsorted {
            return;
        }
        if self.by_size {
            entries.sort_by_key(|e| std::cmp::Reverse(e.meta.size));
        } else if self.by_time {
            entries.sort_by_key(|e| std::cmp::Reverse(e.meta.modified));
        }
        if self.reverse {
            entries.reverse();
        }
        if self.dirs_first {
            entries.sort_by_key(|e| e.meta.kind == Kind::File);
        }
    }

    fn size(&self, bytes: u64) -> String {
        if !self.human || bytes < 1024 {
            return bytes.to_string();
        }
        #[expect(clippy::cast_precision_loss, reason = "rounded for a reader")]
        let mut value = bytes as f64;
        let mut units = "KMGT".chars();
        loop {
            value /= 1024.0;
            let unit = units.next().unwrap_or('P');
            if value < 10.0 {
                return format!("{:.1}{unit}", (value * 10.0).ceil() / 10.0);
            }
            if value < 1024.0 {
                return format!("{:.0}{unit}", value.ceil());
            }
        }
    }

    fn print(&self, out: &mut String, entries: &[Entry], writable: bool) {
        let widest = entries.iter().map(|e| self.size(e.meta.size).len()).max().unwrap_or(0);
        if self.commas {
            let names: Vec<String> = entries.iter().map(|e| self.name(e)).collect();
            if !names.is_empty() {
                let _ = writeln!(out, "{}", names.join(", "));
            }
            return;
        }
        for entry in entries {
            if self.sizes {
                let _ = write!(out, "{:>4} ", entry.meta.size.div_ceil(1024));
            }
            if self.long {
                let at = jiff::Timestamp::from_second(entry.meta.modified).unwrap_or_default();
                let at = at.strftime("%Y-%m-%d %H:%M");
                let size = self.size(entry.meta.size);
                let owner = if self.no_owner { "" } else { " reader" };
                let group = if self.no_group { "" } else { " reader" };
                let mode = mode(entry.meta, writable);
                let _ = write!(out, "{mode} 1{owner}{group} {size:>widest$} {at} ");
            }
            let _ = writeln!(out, "{}", self.name(entry));
        }
    }

    fn name(&self, entry: &Entry) -> String {
        let mark = if entry.meta.kind == Kind::Dir { self.mark } else { "" };
        format!("{}{mark}", entry.name)
    }
}

fn mode(meta: Meta, writable: bool) -> &'static str {
    match (meta.kind, writable) {
        (Kind::Dir, false) => "dr-xr-xr-x",
        (Kind::Dir, true) => "drwxr-xr-x",
        (Kind::File, false) => "-r--r--r--",
        (Kind::File, true) => "-rw-r--r--",
    }
}

impl Ls {
    fn run(&self, args: &[String], cwd: &str) -> Result<ExecResult, String> {
        let (line, mut operands) = Line::parse(args)?;
        let (mut out, mut err, mut code) = (String::new(), String::new(), 0);
        let several = operands.len() > 1;
        if operands.is_empty() {
            operands.push(".".into());
        }
        let (mut files, mut dirs) = (Vec::new(), Vec::new());
        for operand in operands {
            let found = path::resolve(cwd, &operand)
                .and_then(|full| self.view.stat(&full).map(|meta| (full, meta)));
            match found {
                Ok((full, meta)) if meta.kind == Kind::Dir && !line.itself => {
                    dirs.push((full, Entry { name: operand, meta }));
                }
                Ok((_, meta)) => files.push(Entry { name: operand, meta }),
                Err(e) => {
                    code = 2;
                    let _ = writeln!(err, "ls: cannot access '{operand}': {}", strerror(&e));
                }
            }
        }
        line.arrange(&mut files);
        line.print(&mut out, &files, false);
        dirs.sort_by(|a, b| a.1.name.cmp(&b.1.name));
        if line.reverse {
            dirs.reverse();
        }
        let headed = several || line.recursive || !files.is_empty();
        let mut open: Vec<(String, String)> =
            dirs.into_iter().rev().map(|(full, entry)| (full, entry.name)).collect();
        let mut visited = 0_usize;
        let mut first = files.is_empty();
        while let Some((full, shown)) = open.pop() {
            visited += 1;
            if visited > self.view.limits().walk_entries {
                let e = TreeError::Stopped("too many directories".into());
                self.notes.fail(e.code(), format!("ls: {e}"), e.hint());
                break;
            }
            self.view.check_time().map_err(|e| e.to_string())?;
            match self.entries(&line, &full) {
                Ok(entries) => {
                    if headed {
                        let blank = if first { "" } else { "\n" };
                        let _ = writeln!(out, "{blank}{shown}:");
                    }
                    first = false;
                    if line.long {
                        let blocks: u64 = entries.iter().map(|e| e.meta.size.div_ceil(1024)).sum();
                        let _ = writeln!(out, "total {blocks}");
                    }
                    let writable = self.view.write_check(&path::join(&full, "x")).is_ok();
                    line.print(&mut out, &entries, writable);
                    if line.recursive {
                        let dirs = entries.iter().rev().filter(|e| {
                            e.meta.kind == Kind::Dir && e.name != "." && e.name != ".."
                        });
                        open.extend(dirs.map(|e| {
                            let shown = format!("{}/{}", shown.trim_end_matches('/'), e.name);
                            (path::join(&full, &e.name), shown)
                        }));
                    }
                }
                Err(e) => {
                    code = 2;
                    let message = format!("ls: cannot open directory '{shown}': {}", strerror(&e));
                    let _ = writeln!(err, "{message}");
                    self.notes.fail(e.code(), message, e.hint());
                }
            }
        }
        Ok(ExecResult { stderr: err.into(), exit_code: code, ..ExecResult::ok(out) })
    }

    fn entries(&self, line: &Line, full: &str) -> Result<Vec<Entry>, TreeError> {
        let mut entries = self.view.list(full)?;
        entries.retain(|e| line.all || !e.name.starts_with('.'));
        if line.dots {
            let meta = Meta { kind: Kind::Dir, size: 0, modified: 0 };
            entries.push(Entry { name: ".".into(), meta });
            entries.push(Entry { name: "..".into(), meta });
        }
        line.arrange(&mut entries);
        Ok(entries)
    }
}

#[async_trait]
impl Builtin for Ls {
    async fn execute(&self, ctx: BuiltinContext<'_>) -> bashkit::Result<ExecResult> {
        if ctx.args.iter().any(|a| a == "--help") {
            return Ok(ExecResult::ok(super::help::one("ls")));
        }
        let cwd = ctx.cwd.to_string_lossy().into_owned();
        Ok(self.run(ctx.args, &cwd).unwrap_or_else(|why| {
            let message = format!("ls: {why}");
            self.notes.fail("unsupported_option", message.clone(), hint("ls"));
            ExecResult::err(format!("{message}\nhint: {}\n", hint("ls")), 2)
        }))
    }
}
