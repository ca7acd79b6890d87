//! `grep`, `egrep` and `fgrep` over the tree, with GNU's options and output.

use super::commands::{GREP, hint};
use super::files::{NULL, strerror};
use super::notes::Notes;
use super::options::Given;
use crate::tree::error::TreeError;
use crate::tree::path;
use crate::tree::request::Syntax;
use crate::tree::router::View;
use crate::tree::search::engine::{Engine, Printing, Show};
use crate::tree::search::files::{Filter, Search, Totals};
use crate::tree::search::pattern::{Pattern, Spec};
use crate::tree::store::Kind;
use async_trait::async_trait;
use bashkit::{Command, CommandContext, CommandStatus, ExecResult};
use std::fmt::Write;
use std::sync::Arc;

/// The command.
pub struct Grep {
    /// `grep`, `egrep` or `fgrep`.
    pub name: &'static str,
    /// What it searches.
    pub view: View,
    /// Where it notes what it matched.
    pub notes: Arc<Notes>,
}

/// A command line of grep.
#[derive(Default)]
struct Line {
    spec: Spec,
    printing: Printing,
    /// `-h` or `-H`; by the number of files where neither is given.
    paths: Option<bool>,
    recursive: bool,
    quiet: bool,
    silent: bool,
    include: Vec<String>,
    exclude: Vec<String>,
    exclude_dir: Vec<String>,
    label: Option<String>,
    skip_dirs: bool,
    given_patterns: bool,
}

/// Why grep ends with 2.
struct Usage {
    code: &'static str,
    message: String,
    hint: String,
}

impl From<TreeError> for Usage {
    fn from(e: TreeError) -> Self {
        let message = match &e {
            TreeError::BadPattern { why, .. } => why.clone(),
            other => other.to_string(),
        };
        Self { code: e.code(), message, hint: e.hint() }
    }
}

fn bad(message: String) -> Usage {
    Usage { code: "bad_request", message, hint: hint("grep") }
}

impl Line {
    fn number(given: &Given) -> Result<usize, Usage> {
        let value = given.value.as_deref().unwrap_or_default();
        let invalid = |_| bad(format!("{value}: invalid context length argument"));
        value.parse::<usize>().map(|n| n.min(1_000_000)).map_err(invalid)
    }

    fn apply(&mut self, given: &Given, view: &View, cwd: &str) -> Result<(), Usage> {
        let value = || given.value.clone().unwrap_or_default();
        let printing = &mut self.printing;
        match given.name.as_str() {
            "-E" | "extended-regexp" => self.spec.syntax = Syntax::Extended,
            "-F" | "fixed-strings" => self.spec.syntax = Syntax::Fixed,
            "-G" | "basic-regexp" => self.spec.syntax = Syntax::Basic,
            "-P" | "perl-regexp" => self.spec.syntax = Syntax::Rust,
            "-i" | "-y" | "ignore-case" => self.spec.ignore_case = true,
            "no-ignore-case" => self.spec.ignore_case = false,
            "-v" | "invert-match" => printing.invert = true,
            "-n" | "line-number" => printing.number = true,
            "-c" | "count" => printing.show = Show::Count,
            "-l" | "files-with-matches" => printing.show = Show::Files,
            "-L" | "files-without-match" => printing.show = Show::FilesWithout,
            "-o" | "only-matching" if printing.show == Show::Lines => printing.show = Show::Parts,
            "-r" | "-R" | "recursive" | "dereference-recursive" => self.recursive = true,
            "-w" | "word-regexp" => self.spec.word = true,
            "-x" | "line-regexp" => self.spec.line = true,
            "-h" | "no-filename" => self.paths = Some(false),
            "-H" | "with-filename" => self.paths = Some(true),
            "-q" | "quiet" | "silent" => self.quiet = true,
            "-s" | "no-messages" => self.silent = true,
            "-a" | "text" => printing.text = true,
            "-I" => printing.skip_binary = true,
            "-b" | "byte-offset" => printing.offset = true,
            "-Z" | "null" => printing.null = true,
            "-A" | "after-context" => printing.after = Self::number(given)?,
            "-B" | "before-context" => printing.before = Self::number(given)?,
            "-C" | "-NUM" | "context" => {
                printing.after = Self::number(given)?;
                printing.before = printing.after;
            }
            "-m" | "max-count" => {
                let text = value();
                let invalid = |_| bad(format!("{text}: invalid max count"));
                let count = text.parse::<i64>().map_err(invalid)?;
                printing.max_count = u64::try_from(count).ok();
            }
            "-e" | "regexp" => self.patterns(&value()),
            "-f" | "file" => {
                let name = value();
                let path = path::resolve(cwd, &name)?;
                let content = if path == NULL { None } else { Some(view.read_bytes(&path)?) };
                let text =
                    content.map_or(String::new(), |c| String::from_utf8_lossy(&c).into_owned());
                self.given_patterns = true;
                self.spec.patterns.extend(text.lines().map(str::to_owned));
            }
            "include" => self.include.push(value()),
            "exclude" => self.exclude.push(value()),
            "exclude-dir" => self.exclude_dir.push(value().trim_end_matches('/').to_owned()),
            "label" => self.label = Some(value()),
            "no-group-separator" => printing.no_separator = true,
            "-d" | "directories" => match value().as_str() {
                "recurse" => self.recursive = true,
                "skip" => self.skip_dirs = true,
                "read" => {}
                other => return Err(bad(format!("{other}: invalid argument for --directories"))),
            },
            "binary-files" => match value().as_str() {
                "text" => printing.text = true,
                "without-match" => printing.skip_binary = true,
                "binary" => {}
                other => return Err(bad(format!("{other}: unknown binary-files type"))),
            },
            // Output is plain in any case, and nothing is buffered.
            _ => {}
        }
        Ok(())
    }

    fn patterns(&mut self, text: &str) {
        self.given_patterns = true;
        self.spec.patterns.extend(text.split('\n').map(str::to_owned));
    }
}

impl Grep {
    fn run(&self, args: &[String], cwd: &str, stdin: &[u8]) -> Result<ExecResult, Usage> {
        let mut line = Line::default();
        line.spec.syntax = match self.name {
            "egrep" => Syntax::Extended,
            "fgrep" => Syntax::Fixed,
            _ => Syntax::Basic,
        };
        let (given, mut operands) = GREP.parse(args).map_err(|u| Usage {
            code: "unsupported_option",
            message: format!("option {} {}", u.option, u.why),
            hint: hint(self.name),
        })?;
        for option in &given {
            line.apply(option, &self.view, cwd)?;
        }
        if !line.given_patterns {
            if operands.is_empty() {
                return Err(bad("no pattern is given".into()));
            }
            let pattern = operands.remove(0);
            line.patterns(&pattern);
        }
        if line.spec.patterns.is_empty() {
            // An empty file of patterns matches nothing.
            line.printing.max_count = Some(0);
            line.spec.patterns.push(String::new());
        }
        if line.quiet {
            line.printing.show = Show::Nothing;
        }
        self.search(line, &operands, cwd, stdin)
    }

    fn search(
        &self,
        mut line: Line,
        operands: &[String],
        cwd: &str,
        stdin: &[u8],
    ) -> Result<ExecResult, Usage> {
        let pattern = Pattern::new(&line.spec, self.view.limits())?;
        let filter = Filter::new(&line.include, &line.exclude, &line.exclude_dir)?;
        let only_one_file = operands.len() == 1
            && path::resolve(cwd, &operands[0])
                .is_ok_and(|p| self.view.stat(&p).is_ok_and(|m| m.kind == Kind::File));
        let several = operands.len() > 1 || (line.recursive && !only_one_file);
        line.printing.path = line.paths.unwrap_or(several);
        let show = line.printing.show;
        let mut search = Search {
            view: &self.view,
            filter: &filter,
            engine: Engine::new(&pattern, &line.printing),
            show,
            out: Vec::new(),
            touched: Vec::new(),
            totals: Totals::default(),
            failed: Vec::new(),
            binary: Vec::new(),
            first_only: line.quiet,
        };
        let mut stderr = String::new();
        let mut troubled = false;
        let mut files = operands.to_vec();
        if files.is_empty() {
            files.push(if line.recursive { String::new() } else { "-".into() });
        }
        for file in &files {
            let before = search.failed.len();
            let said = match file.as_str() {
                "-" => {
                    let label = line.label.as_deref().unwrap_or("(standard input)");
                    search.stdin(label, stdin).err()
                }
                _ => self.one(&mut search, &line, file, cwd).err(),
            };
            for e in search.failed.split_off(before).iter().chain(&said) {
                troubled = true;
                self.complain(&mut stderr, e, file, line.silent);
            }
        }
        for path in std::mem::take(&mut search.binary) {
            let message = format!("grep: {path}: binary file matches");
            let _ = writeln!(stderr, "{message}");
            self.notes.fail("binary_file", message, "grep -a prints its lines".into());
        }
        let totals = search.totals.clone();
        let touched = std::mem::take(&mut search.touched);
        let out = std::mem::take(&mut search.out);
        drop(search);
        for source in touched {
            self.notes.touch(source);
        }
        let only_stdin = files.len() == 1 && files[0] == "-";
        if totals.matched == 0 && out.is_empty() && !line.quiet && !only_stdin && !troubled {
            let _ = writeln!(stderr, "grep: no match in {} files searched", totals.searched);
        }
        let selected = totals.matched > 0;
        let code = match (troubled, selected) {
            (_, true) if line.quiet => 0,
            (true, _) => 2,
            (false, selected) => i32::from(!selected),
        };
        Ok(ExecResult { stderr: stderr.into(), exit_code: code, ..ExecResult::ok_bytes(out) })
    }

    /// Searches one operand.
    fn one(
        &self,
        search: &mut Search<'_>,
        line: &Line,
        file: &str,
        cwd: &str,
    ) -> Result<(), TreeError> {
        let full = path::resolve(cwd, file)?;
        if full == NULL {
            return search.stdin(file, b"");
        }
        let meta = self.view.stat(&full)?;
        match meta.kind {
            Kind::File => {
                if line.recursive && !search.filter.file(path::split(file).1) {
                    return Ok(());
                }
                search.file(&full, file)
            }
            Kind::Dir if line.recursive => search.beneath(&full, &|path| {
                let rest = path::beneath(path, &full).unwrap_or(path);
                match file {
                    "" => rest.to_owned(),
                    f if f.ends_with('/') => format!("{f}{rest}"),
                    f => format!("{f}/{rest}"),
                }
            }),
            Kind::Dir if line.skip_dirs => Ok(()),
            Kind::Dir => Err(TreeError::IsDirectory(full)),
        }
    }

    fn complain(&self, stderr: &mut String, e: &TreeError, file: &str, silent: bool) {
        match e {
            TreeError::NotFound(_) | TreeError::IsDirectory(_) | TreeError::NotDirectory(_) => {
                if !silent {
                    let _ = writeln!(stderr, "grep: {file}: {}", strerror(e));
                }
            }
            other => {
                let _ = writeln!(stderr, "grep: {other}");
                self.notes.fail(other.code(), format!("grep: {other}"), other.hint());
            }
        }
    }
}

impl Grep {
    /// Whether a command line reads standard input.
    fn reads_stdin(args: &[String]) -> bool {
        let Ok((given, operands)) = GREP.parse(args) else { return false };
        let named = |names: &[&str]| given.iter().any(|g| names.contains(&g.name.as_str()));
        let pattern = usize::from(!named(&["-e", "regexp", "-f", "file"]));
        let files = operands.get(pattern..).unwrap_or_default();
        let recursive = named(&["-r", "-R", "recursive", "dereference-recursive"]);
        files.iter().any(|f| f == "-") || (files.is_empty() && !recursive)
    }
}

#[async_trait]
impl Command for Grep {
    async fn execute(&self, ctx: CommandContext<'_>) -> bashkit::Result<CommandStatus> {
        if ctx.args.iter().any(|a| a == "--help") {
            ctx.stdout.write_all(super::help::one(self.name).as_bytes()).await?;
            return Ok(CommandStatus::success());
        }
        let mut stdin = Vec::new();
        if Self::reads_stdin(ctx.args) {
            while let Some(chunk) = ctx.stdin.read_chunk().await? {
                stdin.extend_from_slice(&chunk);
            }
        }
        let cwd = ctx.cwd.to_string_lossy().into_owned();
        let result = match self.run(ctx.args, &cwd, &stdin) {
            Ok(result) => result,
            Err(usage) => {
                let message = format!("{}: {}", self.name, usage.message);
                let stderr = format!("{message}\nhint: {}\n", usage.hint);
                self.notes.fail(usage.code, message, usage.hint);
                ExecResult::err(stderr, 2)
            }
        };
        ctx.stderr.write_all(result.stderr.as_bytes()).await?;
        ctx.stdout.write_all(result.stdout.as_bytes()).await?;
        Ok(CommandStatus::with_code(result.exit_code))
    }
}
