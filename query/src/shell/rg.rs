//! `rg` over the tree, with ripgrep's options and its output to a pipe.

use super::commands::{RG, hint};
use super::files::{NULL, strerror};
use super::notes::Notes;
use super::options::Given;
use crate::tree::error::TreeError;
use crate::tree::path;
use crate::tree::request::Syntax;
use crate::tree::router::View;
use crate::tree::search::engine::{Engine, Printing, Show};
use crate::tree::search::files::{Filter, Search, Totals, glob};
use crate::tree::search::pattern::{Pattern, Spec};
use crate::tree::store::Kind;
use crate::tree::walk::{self, Next};
use async_trait::async_trait;
use bashkit::{Builtin, BuiltinContext, ExecResult};
use globset::GlobMatcher;
use std::fmt::Write;
use std::sync::Arc;

/// The command.
pub struct Rg {
    /// What it searches.
    pub view: View,
    /// Where it notes what it matched.
    pub notes: Arc<Notes>,
}

/// A glob of `-g`: with `!` it takes away.
struct Rule {
    matcher: GlobMatcher,
    away: bool,
    /// Whether it is about the name alone.
    name_only: bool,
}

#[derive(Default)]
struct Line {
    spec: Spec,
    printing: Printing,
    paths: Option<bool>,
    rules: Vec<Rule>,
    hidden: bool,
    depth: Option<usize>,
    list: bool,
    quiet: bool,
    silent: bool,
    smart: bool,
    given_patterns: bool,
    matches: bool,
}

/// Extensions of the types that documents have.
const TYPES: &[(&str, &[&str])] = &[
    ("md", &["md", "markdown", "mdown", "mkd", "mkdn", "mdx"]),
    ("markdown", &["md", "markdown", "mdown", "mkd", "mkdn", "mdx"]),
    ("txt", &["txt"]),
    ("json", &["json", "sarif"]),
    ("yaml", &["yaml", "yml"]),
    ("sh", &["sh", "bash", "zsh"]),
];

fn bad(message: String) -> TreeError {
    TreeError::BadRequest(message)
}

impl Line {
    fn rule(&mut self, pattern: &str, ignore_case: bool) -> Result<(), TreeError> {
        let (away, pattern) = match pattern.strip_prefix('!') {
            Some(rest) => (true, rest),
            None => (false, pattern),
        };
        let name_only = !pattern.trim_end_matches('/').contains('/');
        let plain = pattern.trim_start_matches('/').trim_end_matches('/');
        let matcher = glob(plain, ignore_case)?.compile_matcher();
        self.rules.push(Rule { matcher, away, name_only });
        Ok(())
    }

    fn apply(&mut self, given: &Given, view: &View, cwd: &str) -> Result<(), TreeError> {
        let value = || given.value.clone().unwrap_or_default();
        let number = || {
            let text = value();
            text.parse::<usize>().map_err(|_| bad(format!("`{text}` is not a number")))
        };
        let printing = &mut self.printing;
        match given.name.as_str() {
            "-F" | "fixed-strings" => self.spec.syntax = Syntax::Fixed,
            "-i" | "ignore-case" => self.spec.ignore_case = true,
            "-s" | "case-sensitive" => (self.spec.ignore_case, self.smart) = (false, false),
            "-S" | "smart-case" => self.smart = true,
            "-v" | "invert-match" => printing.invert = true,
            "-n" | "line-number" => printing.number = true,
            "-N" | "no-line-number" => printing.number = false,
            "-c" | "count" => printing.show = Show::Count,
            "count-matches" => (printing.show, self.matches) = (Show::Count, true),
            "-l" | "files-with-matches" => printing.show = Show::Files,
            "files-without-match" => printing.show = Show::FilesWithout,
            "-o" | "only-matching" => printing.show = Show::Parts,
            "-w" | "word-regexp" => self.spec.word = true,
            "-x" | "line-regexp" => self.spec.line = true,
            "-H" | "with-filename" => self.paths = Some(true),
            "-I" | "no-filename" => self.paths = Some(false),
            "-q" | "quiet" => self.quiet = true,
            "no-messages" => self.silent = true,
            "-a" | "text" => printing.text = true,
            "-b" | "byte-offset" => printing.offset = true,
            "-0" | "null" => printing.null = true,
            "column" => (printing.column, printing.number) = (true, true),
            "heading" => printing.heading = true,
            "no-heading" => printing.heading = false,
            "include-zero" => printing.skip_zero = false,
            "-." | "hidden" => self.hidden = true,
            "-A" | "after-context" => printing.after = number()?.min(1_000_000),
            "-B" | "before-context" => printing.before = number()?.min(1_000_000),
            "-C" | "context" => {
                printing.after = number()?.min(1_000_000);
                printing.before = printing.after;
            }
            "-m" | "max-count" => printing.max_count = Some(number()? as u64),
            "-d" | "max-depth" => self.depth = Some(number()?),
            "-e" | "regexp" => {
                self.given_patterns = true;
                self.spec.patterns.push(value());
            }
            "-f" | "file" => {
                let content = view.read_bytes(&path::resolve(cwd, &value())?)?;
                self.given_patterns = true;
                let text = String::from_utf8_lossy(&content).into_owned();
                self.spec.patterns.extend(text.lines().map(str::to_owned));
            }
            "-g" | "glob" => self.rule(&value(), false)?,
            "iglob" => self.rule(&value(), true)?,
            "-t" | "type" | "-T" | "type-not" => {
                let name = value();
                let (_, extensions) = TYPES
                    .iter()
                    .find(|(n, _)| *n == name)
                    .ok_or_else(|| bad(format!("unrecognized file type: {name}")))?;
                let away = matches!(given.name.as_str(), "-T" | "type-not");
                for extension in *extensions {
                    self.rule(&format!("{}*.{extension}", if away { "!" } else { "" }), false)?;
                }
            }
            "files" => self.list = true,
            "sort" if value() != "path" && value() != "none" => {
                return Err(bad(format!(
                    "--sort={} is not supported; files come by path",
                    value()
                )));
            }
            // Output is plain, everything is searched, and there is nothing to ignore.
            _ => {}
        }
        Ok(())
    }

    /// Whether a file is searched.
    fn takes(&self, relative: &str) -> bool {
        let name = path::split(relative).1;
        let name = if name.is_empty() { relative } else { name };
        let fits = |r: &Rule| r.matcher.is_match(if r.name_only { name } else { relative });
        match self.rules.iter().rev().find(|r| fits(r)) {
            Some(rule) => !rule.away,
            None => self.rules.iter().all(|r| r.away),
        }
    }
}

impl Rg {
    fn run(
        &self,
        args: &[String],
        cwd: &str,
        stdin: Option<&[u8]>,
    ) -> Result<ExecResult, TreeError> {
        let mut line = Line::default();
        line.spec.syntax = Syntax::Rust;
        line.printing.skip_zero = true;
        let (given, mut operands) =
            RG.parse(args).map_err(|u| bad(format!("option {} {}", u.option, u.why)))?;
        for option in &given {
            line.apply(option, &self.view, cwd)?;
        }
        if !line.given_patterns && !line.list {
            if operands.is_empty() {
                return Err(bad("no pattern is given".into()));
            }
            line.spec.patterns.push(operands.remove(0));
        }
        if line.smart {
            let lower = |p: &String| !p.chars().any(char::is_uppercase);
            line.spec.ignore_case |= line.spec.patterns.iter().all(lower);
        }
        if line.quiet {
            line.printing.show = Show::Nothing;
        }
        if line.list {
            line.spec.patterns.push(String::new());
        }
        let from_stdin = operands.is_empty() && stdin.is_some() && !line.list;
        self.search(line, &operands, cwd, stdin.filter(|_| from_stdin))
    }

    fn search(
        &self,
        mut line: Line,
        operands: &[String],
        cwd: &str,
        stdin: Option<&[u8]>,
    ) -> Result<ExecResult, TreeError> {
        let pattern = Pattern::new(&line.spec, self.view.limits())?;
        let filter = Filter::default();
        let single = stdin.is_some()
            || (operands.len() == 1
                && path::resolve(cwd, &operands[0])
                    .is_ok_and(|p| self.view.stat(&p).is_ok_and(|m| m.kind == Kind::File)));
        line.printing.path = line.paths.unwrap_or(!single);
        let mut search = Search {
            view: &self.view,
            filter: &filter,
            engine: Engine::new(&pattern, &line.printing),
            show: line.printing.show,
            out: Vec::new(),
            touched: Vec::new(),
            totals: Totals::default(),
            failed: Vec::new(),
            binary: Vec::new(),
            first_only: line.quiet,
        };
        let (mut stderr, mut troubled) = (String::new(), false);
        match stdin {
            Some(text) => search.stdin("<stdin>", text)?,
            None => {
                let here = [String::new()];
                let starts = if operands.is_empty() { &here[..] } else { operands };
                for start in starts {
                    let before = search.failed.len();
                    let said = self.one(&mut search, &line, start, cwd).err();
                    for e in search.failed.split_off(before).iter().chain(&said) {
                        troubled = true;
                        if !line.silent {
                            let _ = writeln!(stderr, "rg: {start}: {}", strerror(e));
                        }
                        if !matches!(e, TreeError::NotFound(_)) {
                            self.notes.fail(e.code(), format!("rg: {e}"), e.hint());
                        }
                    }
                }
            }
        }
        for path in std::mem::take(&mut search.binary) {
            let note = format!("{path}: binary file matches (found \"\\0\" byte)\n");
            search.out.extend_from_slice(note.as_bytes());
        }
        let totals = search.totals.clone();
        let out = std::mem::take(&mut search.out);
        for source in std::mem::take(&mut search.touched) {
            self.notes.touch(source);
        }
        if totals.matched == 0 && out.is_empty() && !line.quiet && stdin.is_none() && !troubled {
            let _ = writeln!(stderr, "rg: no match in {} files searched", totals.searched);
        }
        let selected = totals.matched > 0
            || (!out.is_empty() && (line.list || line.printing.show == Show::FilesWithout));
        let code = match (troubled, selected) {
            (_, true) if line.quiet => 0,
            (true, _) => 2,
            (false, selected) => i32::from(!selected),
        };
        Ok(ExecResult { stderr: stderr.into(), exit_code: code, ..ExecResult::ok_bytes(out) })
    }

    fn one(
        &self,
        search: &mut Search<'_>,
        line: &Line,
        start: &str,
        cwd: &str,
    ) -> Result<(), TreeError> {
        let full = path::resolve(cwd, start)?;
        if full == NULL {
            return search.stdin(start, b"");
        }
        let mut files = Vec::new();
        let mut failed = Vec::new();
        let depth = line.depth.unwrap_or(usize::MAX);
        walk::walk(
            &self.view,
            &full,
            &mut |stop| {
                let relative = path::beneath(stop.path, &full).unwrap_or_default();
                let name = path::split(stop.path).1;
                if stop.depth > 0 && name.starts_with('.') && !line.hidden {
                    return Ok(Next::Skip);
                }
                let wanted = stop.depth == 0 || line.takes(relative);
                if stop.meta.kind == Kind::File && wanted {
                    let shown = match start {
                        "" => relative.to_owned(),
                        s if relative.is_empty() => s.to_owned(),
                        s if s.ends_with('/') => format!("{s}{relative}"),
                        s => format!("{s}/{relative}"),
                    };
                    files.push((stop.path.to_owned(), shown));
                }
                Ok(if stop.depth >= depth { Next::Skip } else { Next::Deeper })
            },
            &mut |e| failed.push(e),
        )?;
        search.failed.append(&mut failed);
        for (full, shown) in files {
            if line.list {
                search.out.extend_from_slice(shown.as_bytes());
                search.out.push(if line.printing.null { 0 } else { b'\n' });
                continue;
            }
            if line.quiet && search.totals.matched > 0 {
                break;
            }
            self.view.check_time()?;
            search.file(&full, &shown)?;
        }
        Ok(())
    }
}

#[async_trait]
impl Builtin for Rg {
    async fn execute(&self, ctx: BuiltinContext<'_>) -> bashkit::Result<ExecResult> {
        if ctx.args.iter().any(|a| a == "--help") {
            return Ok(ExecResult::ok(super::help::one("rg")));
        }
        let cwd = ctx.cwd.to_string_lossy().into_owned();
        let stdin = ctx.stdin.map(|s| s.as_bytes().to_vec());
        Ok(match self.run(ctx.args, &cwd, stdin.as_deref()) {
            Ok(result) => result,
            Err(e) => {
                let code = if e.to_string().starts_with("option ") {
                    "unsupported_option"
                } else {
                    e.code()
                };
                let hint = if e.hint().is_empty() { hint("rg") } else { e.hint() };
                let stderr = format!("rg: {e}\nhint: {hint}\n");
                self.notes.fail(code, format!("rg: {e}"), hint);
                ExecResult::err(stderr, 2)
            }
        })
    }
}
