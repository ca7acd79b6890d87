//! `tree` over the tree, as tree(1) draws it.

use super::commands::{TREE, hint};
use super::notes::Notes;
use crate::tree::error::TreeError;
use crate::tree::path;
use crate::tree::router::View;
use crate::tree::search::files::glob;
use crate::tree::store::{Entry, Kind};
use async_trait::async_trait;
use bashkit::{Builtin, BuiltinContext, ExecResult};
use globset::GlobMatcher;
use std::fmt::Write;
use std::sync::Arc;

/// The command.
pub struct Tree {
    /// What it draws.
    pub view: View,
    /// Where it complains.
    pub notes: Arc<Notes>,
}

#[derive(Default)]
struct Line {
    all: bool,
    dirs_only: bool,
    full: bool,
    flat: bool,
    marks: bool,
    no_report: bool,
    dirs_first: bool,
    prune: bool,
    depth: Option<usize>,
    only: Vec<GlobMatcher>,
    without: Vec<GlobMatcher>,
}

/// A directory with what is drawn of it.
struct Node {
    name: String,
    path: String,
    dir: bool,
    inner: Vec<Node>,
}

fn globs(pattern: &str) -> Result<Vec<GlobMatcher>, String> {
    let parts = pattern.split('|').filter(|p| !p.is_empty());
    parts.map(|p| glob(p, false).map(|g| g.compile_matcher()).map_err(|e| e.to_string())).collect()
}

impl Line {
    fn parse(args: &[String]) -> Result<(Self, Vec<String>), String> {
        let (given, operands) =
            TREE.parse(args).map_err(|u| format!("option {} {}", u.option, u.why))?;
        let mut line = Self::default();
        for option in given {
            let value = option.value.as_deref().unwrap_or_default();
            match option.name.as_str() {
                "-a" => line.all = true,
                "-d" => line.dirs_only = true,
                "-f" => line.full = true,
                "-i" => line.flat = true,
                "-F" => line.marks = true,
                "noreport" => line.no_report = true,
                "dirsfirst" => line.dirs_first = true,
                "prune" => line.prune = true,
                "-L" => {
                    let depth = value.parse::<usize>().ok().filter(|d| *d > 0);
                    line.depth = Some(depth.ok_or("Invalid level, must be greater than 0.")?);
                }
                "-P" => line.only.extend(globs(value)?),
                "-I" => line.without.extend(globs(value)?),
                _ => {}
            }
        }
        Ok((line, operands))
    }

    fn takes(&self, entry: &Entry) -> bool {
        let dir = entry.meta.kind == Kind::Dir;
        let fits = |globs: &[GlobMatcher]| globs.iter().any(|g| g.is_match(&entry.name));
        (self.all || !entry.name.starts_with('.'))
            && (dir || !self.dirs_only)
            && !fits(&self.without)
            && (dir || self.only.is_empty() || fits(&self.only))
    }
}

impl Tree {
    /// What lies beneath a directory; `visited` counts against the bound.
    fn inner(
        &self,
        line: &Line,
        full: &str,
        shown: &str,
        depth: usize,
        visited: &mut usize,
    ) -> Result<Vec<Node>, TreeError> {
        self.view.check_time()?;
        let mut entries = self.view.list(full)?;
        entries.retain(|e| line.takes(e));
        if line.dirs_first {
            entries.sort_by_key(|e| e.meta.kind == Kind::File);
        }
        let mut nodes = Vec::new();
        for entry in entries {
            *visited += 1;
            if *visited > self.view.limits().walk_entries {
                return Err(TreeError::Stopped("too many files and directories".into()));
            }
            let dir = entry.meta.kind == Kind::Dir;
            let path = format!("{}/{}", shown.trim_end_matches('/'), entry.name);
            let deeper = dir && line.depth.is_none_or(|most| depth < most);
            let inner = if deeper {
                match self.inner(line, &path::join(full, &entry.name), &path, depth + 1, visited) {
                    Ok(inner) => inner,
                    Err(e @ TreeError::Stopped(_)) => return Err(e),
                    Err(e) => {
                        self.notes.fail(e.code(), format!("tree: {e}"), e.hint());
                        Vec::new()
                    }
                }
            } else {
                Vec::new()
            };
            if !(line.prune && dir && inner.is_empty()) {
                nodes.push(Node { name: entry.name, path, dir, inner });
            }
        }
        Ok(nodes)
    }

    fn run(&self, args: &[String], cwd: &str) -> Result<ExecResult, String> {
        let (line, mut operands) = Line::parse(args)?;
        if operands.is_empty() {
            operands.push(".".into());
        }
        let (mut out, mut counts, mut visited, mut code) = (String::new(), [0_u64; 2], 0, 0);
        for operand in &operands {
            let full = path::resolve(cwd, operand).map_err(|e| e.to_string())?;
            match self.view.stat(&full) {
                Ok(meta) if meta.kind == Kind::Dir => {
                    let slash = if line.marks && !operand.ends_with('/') { "/" } else { "" };
                    let _ = writeln!(out, "{operand}{slash}");
                    let nodes = self
                        .inner(&line, &full, operand, 1, &mut visited)
                        .map_err(|e| e.to_string())?;
                    counts[0] += 1;
                    draw(&mut out, &line, &nodes, "", &mut counts);
                }
                other => {
                    let _ = writeln!(out, "{operand}  [error opening dir]");
                    counts[1] += u64::from(other.is_ok());
                    code = 2;
                }
            }
        }
        if !line.no_report {
            let plural =
                |n: u64, one: &str, more: &str| format!("{n} {}", if n == 1 { one } else { more });
            let _ = write!(out, "\n{}", plural(counts[0], "directory", "directories"));
            if !line.dirs_only {
                let _ = write!(out, ", {}", plural(counts[1], "file", "files"));
            }
            out.push('\n');
        }
        Ok(ExecResult { exit_code: code, ..ExecResult::ok(out) })
    }
}

fn draw(out: &mut String, line: &Line, nodes: &[Node], indent: &str, counts: &mut [u64; 2]) {
    for (n, node) in nodes.iter().enumerate() {
        counts[usize::from(!node.dir)] += 1;
        let last = n + 1 == nodes.len();
        let name = if line.full { &node.path } else { &node.name };
        let mark = if line.marks && node.dir { "/" } else { "" };
        if line.flat {
            let _ = writeln!(out, "{name}{mark}");
        } else {
            let branch = if last { "└── " } else { "├── " };
            let _ = writeln!(out, "{indent}{branch}{name}{mark}");
        }
        // tree(1) keeps its columns together with spaces that do not break.
        let deeper = if last { "    " } else { "│\u{a0}\u{a0} " };
        draw(out, line, &node.inner, &format!("{indent}{deeper}"), counts);
    }
}

#[async_trait]
impl Builtin for Tree {
    async fn execute(&self, ctx: BuiltinContext<'_>) -> bashkit::Result<ExecResult> {
        if ctx.args.iter().any(|a| a == "--help") {
            return Ok(ExecResult::ok(super::help::one("tree")));
        }
        let cwd = ctx.cwd.to_string_lossy().into_owned();
        Ok(self.run(ctx.args, &cwd).unwrap_or_else(|why| {
            let message = format!("tree: {why}");
            self.notes.fail("unsupported_option", message.clone(), hint("tree"));
            ExecResult::err(format!("{message}\nhint: {}\n", hint("tree")), 2)
        }))
    }
}
