//! `file` over the tree: what kind of content a file has, as file(1) says it of text. Kinds of programs, images and
//! the like are `data` here: a tree of documents has none.

use super::commands::{FILE, hint};
use super::files::NULL;
use super::notes::Notes;
use crate::tree::error::TreeError;
use crate::tree::path;
use crate::tree::router::View;
use crate::tree::store::Kind;
use async_trait::async_trait;
use bashkit::{Builtin, BuiltinContext, ExecResult};
use std::fmt::Write;
use std::sync::Arc;

/// A line from which on it is a very long one, in bytes.
const LONG_LINE: usize = 300;

/// The command.
pub struct File {
    /// What it looks at.
    pub view: View,
    /// Where it notes what it read.
    pub notes: Arc<Notes>,
}

/// What is said of a path.
struct Said {
    about: String,
    kind: &'static str,
    encoding: &'static str,
}

impl Said {
    fn new(about: impl Into<String>, kind: &'static str, encoding: &'static str) -> Self {
        Self { about: about.into(), kind, encoding }
    }

    fn content(bytes: &[u8]) -> Self {
        if bytes.is_empty() {
            return Self::new("empty", "inode/x-empty", "binary");
        }
        if bytes.len() == 1 {
            let about = "very short file (no magic)";
            return Self::new(about, "application/octet-stream", "binary");
        }
        // Control characters that text has: bell to carriage return, and escape.
        let odd = |b: &u8| (*b < 0x20 && !(7..=13).contains(b) && *b != 0x1b) || *b == 0x7f;
        let text = std::str::from_utf8(bytes).ok().filter(|_| !bytes.iter().any(odd));
        let (name, encoding) = match text {
            None => return Self::new("data", "application/octet-stream", "binary"),
            Some(text) if text.is_ascii() => ("ASCII text", "us-ascii"),
            Some(text) if text.starts_with('\u{feff}') => {
                ("Unicode text, UTF-8 (with BOM) text", "utf-8")
            }
            Some(_) => ("Unicode text, UTF-8 text", "utf-8"),
        };
        let mut about = name.to_owned();
        let longest = bytes.split(|b| *b == b'\n').map(<[u8]>::len).max().unwrap_or(0);
        if longest > LONG_LINE {
            let _ = write!(about, ", with very long lines ({longest})");
        }
        let feeds = bytes.iter().filter(|b| **b == b'\n').count();
        let both = bytes.windows(2).filter(|w| *w == b"\r\n").count();
        match (feeds, both) {
            (0, _) => about.push_str(", with no line terminators"),
            (_, 0) => {}
            (feeds, both) if feeds == both => about.push_str(", with CRLF line terminators"),
            _ => about.push_str(", with CRLF, LF line terminators"),
        }
        Self::new(about, "text/plain", encoding)
    }
}

#[derive(Default)]
struct Line {
    brief: bool,
    kind: bool,
    encoding: bool,
    no_pad: bool,
    separator: Option<String>,
}

impl File {
    fn of(&self, shown: &str, cwd: &str) -> Said {
        let found = path::resolve(cwd, shown).and_then(|full| {
            if full == NULL {
                return Ok(Said::content(b""));
            }
            if self.view.stat(&full)?.kind == Kind::Dir {
                return Ok(Said::new("directory", "inode/directory", "binary"));
            }
            let content = self.view.read_bytes(&full)?;
            self.notes.touch(self.view.source(&full, None));
            Ok(Said::content(&content))
        });
        found.unwrap_or_else(|e| {
            let why = match &e {
                TreeError::NotFound(_) => "No such file or directory".to_owned(),
                other => other.to_string(),
            };
            let about = format!("cannot open `{shown}' ({why})");
            Said { about, kind: "", encoding: "" }
        })
    }

    fn run(&self, args: &[String], cwd: &str, stdin: &[u8]) -> Result<ExecResult, (bool, String)> {
        let (given, mut operands) =
            FILE.parse(args).map_err(|u| (true, format!("option {} {}", u.option, u.why)))?;
        let mut line = Line::default();
        for option in given {
            match option.name.as_str() {
                "-b" | "brief" => line.brief = true,
                "-i" | "mime" => (line.kind, line.encoding) = (true, true),
                "mime-type" => line.kind = true,
                "mime-encoding" => line.encoding = true,
                "-N" | "no-pad" => line.no_pad = true,
                "-F" | "separator" => line.separator = option.value,
                "-f" | "files-from" => {
                    let name = option.value.unwrap_or_default();
                    let listed = path::resolve(cwd, &name).and_then(|p| self.view.read_bytes(&p));
                    let listed = listed.map_err(|e| (false, format!("{name}: {e}")))?;
                    operands.extend(String::from_utf8_lossy(&listed).lines().map(str::to_owned));
                }
                // There are no links and no archives.
                _ => {}
            }
        }
        if operands.is_empty() {
            return Err((false, "a file is wanted".into()));
        }
        let separator = line.separator.as_deref().unwrap_or(":");
        let widest = operands.iter().map(|o| o.chars().count()).max().unwrap_or(0);
        let mut out = String::new();
        for shown in &operands {
            let said = if shown == "-" { Said::content(stdin) } else { self.of(shown, cwd) };
            if !line.brief {
                let name = if shown == "-" { "/dev/stdin" } else { shown };
                let pad = if line.no_pad { 0 } else { widest.saturating_sub(name.chars().count()) };
                let _ = write!(out, "{name}{separator} {}", " ".repeat(pad));
            }
            let what = match (line.kind, line.encoding) {
                _ if said.kind.is_empty() => said.about,
                (true, true) => format!("{}; charset={}", said.kind, said.encoding),
                (true, false) => said.kind.to_owned(),
                (false, true) => said.encoding.to_owned(),
                (false, false) => said.about,
            };
            let _ = writeln!(out, "{what}");
        }
        Ok(ExecResult::ok(out))
    }
}

#[async_trait]
impl Builtin for File {
    async fn execute(&self, ctx: BuiltinContext<'_>) -> bashkit::Result<ExecResult> {
        if ctx.args.iter().any(|a| a == "--help") {
            return Ok(ExecResult::ok(super::help::one("file")));
        }
        let cwd = ctx.cwd.to_string_lossy().into_owned();
        let stdin = ctx.stdin.map(|s| s.as_bytes().to_vec()).unwrap_or_default();
        Ok(self.run(ctx.args, &cwd, &stdin).unwrap_or_else(|(unsupported, why)| {
            let message = format!("file: {why}");
            if unsupported {
                self.notes.fail("unsupported_option", message.clone(), hint("file"));
            }
            let code = if unsupported { 2 } else { 1 };
            ExecResult::err(format!("{message}\nhint: {}\n", hint("file")), code)
        }))
    }
}
