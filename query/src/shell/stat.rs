//! `stat` over the tree: GNU's formats, for what a file of the tree has. There is no disk beneath it, so device,
//! inode and blocks follow from name and size, and the only time is that of the last write.

use super::commands::{STAT, hint};
use super::files::{NULL, strerror};
use super::notes::Notes;
use crate::tree::path;
use crate::tree::router::View;
use crate::tree::store::{Kind, Meta};
use async_trait::async_trait;
use bashkit::{Builtin, BuiltinContext, ExecResult};
use std::fmt::Write;
use std::sync::Arc;

/// The name of every owner and group.
const OWNER: &str = "reader";
/// Their number.
const OWNER_ID: u32 = 1000;
/// Bytes that a client should read at once.
const IO_BLOCK: u64 = 4096;

/// The command.
pub struct Stat {
    /// What it looks at.
    pub view: View,
    /// Where it complains.
    pub notes: Arc<Notes>,
}

/// What is known of a path.
struct Facts<'a> {
    shown: &'a str,
    full: String,
    meta: Meta,
    writable: bool,
    mount: String,
}

impl Facts<'_> {
    fn mode(&self) -> u32 {
        match (self.meta.kind, self.writable) {
            (Kind::File, false) => 0o444,
            (Kind::File, true) => 0o644,
            (Kind::Dir, false) => 0o555,
            (Kind::Dir, true) => 0o755,
        }
    }

    fn is_dir(&self) -> bool {
        self.meta.kind == Kind::Dir
    }

    fn rights(&self) -> String {
        let mode = self.mode();
        let mut text = String::from(if self.is_dir() { "d" } else { "-" });
        for at in (0..9).rev() {
            let letter = ['x', 'w', 'r'][at % 3];
            text.push(if mode & (1 << at) == 0 { '-' } else { letter });
        }
        text
    }

    fn kind(&self) -> &'static str {
        match (self.is_dir(), self.meta.size) {
            (true, _) => "directory",
            (false, 0) => "regular empty file",
            (false, _) => "regular file",
        }
    }

    /// A number that stays with the path.
    fn inode(&self) -> u64 {
        let hash = blake3::hash(self.full.as_bytes());
        let mut bytes = [0; 8];
        bytes[4..].copy_from_slice(&hash.as_bytes()[..4]);
        u64::from_be_bytes(bytes).max(1)
    }

    fn blocks(&self) -> u64 {
        self.meta.size.div_ceil(IO_BLOCK) * (IO_BLOCK / 512)
    }

    fn time(&self) -> String {
        let at = jiff::Timestamp::from_second(self.meta.modified).unwrap_or_default();
        at.strftime("%Y-%m-%d %H:%M:%S.000000000 +0000").to_string()
    }

    /// The value of a directive, or none where there is no such one.
    fn value(&self, directive: char) -> Option<String> {
        Some(match directive {
            'n' => self.shown.to_owned(),
            'N' => quoted(self.shown),
            's' => self.meta.size.to_string(),
            'F' => self.kind().to_owned(),
            'a' => format!("{:o}", self.mode()),
            'A' => self.rights(),
            'f' => format!("{:x}", self.mode() | if self.is_dir() { 0o040_000 } else { 0o100_000 }),
            'y' | 'x' | 'z' => self.time(),
            'Y' | 'X' | 'Z' => self.meta.modified.to_string(),
            'w' => "-".to_owned(),
            'W' | 'd' | 't' | 'T' => "0".to_owned(),
            'D' => "0".to_owned(),
            'u' | 'g' => OWNER_ID.to_string(),
            'U' | 'G' => OWNER.to_owned(),
            'h' => "1".to_owned(),
            'i' => self.inode().to_string(),
            'b' => self.blocks().to_string(),
            'B' => "512".to_owned(),
            'o' => IO_BLOCK.to_string(),
            'm' => self.mount.clone(),
            _ => return None,
        })
    }

    fn whole(&self) -> String {
        let Self { shown, .. } = self;
        let (size, blocks, kind) = (self.meta.size, self.blocks(), self.kind());
        let time = self.time();
        format!(
            "  File: {shown}\n  Size: {size:<10}\tBlocks: {blocks:<10} IO Block: {IO_BLOCK:<6} {kind}\n\
             Device: 0,0\tInode: {inode:<11} Links: 1\n\
             Access: ({mode:04o}/{rights})  Uid: ({OWNER_ID:>5}/{OWNER:>8})   Gid: ({OWNER_ID:>5}/{OWNER:>8})\n\
             Access: {time}\nModify: {time}\nChange: {time}\n Birth: -\n",
            inode = self.inode(),
            mode = self.mode(),
            rights = self.rights(),
        )
    }

    fn terse(&self) -> String {
        let modified = self.meta.modified;
        format!(
            "{} {} {} {} {OWNER_ID} {OWNER_ID} 0 {} 1 0 0 {modified} {modified} {modified} 0 {IO_BLOCK}\n",
            self.shown,
            self.meta.size,
            self.blocks(),
            self.value('f').unwrap_or_default(),
            self.inode(),
        )
    }

    /// A format with its directives filled in; an unknown one is an error.
    fn filled(&self, format: &str, escapes: bool) -> Result<String, String> {
        let mut out = String::new();
        let mut rest = format.chars().peekable();
        while let Some(c) = rest.next() {
            match c {
                '\\' if escapes => out.push_str(&escape(&mut rest)),
                '%' => {
                    let mut spec = String::new();
                    while let Some(c) = rest.next_if(|c| {
                        c.is_ascii_digit() || matches!(c, '-' | '0' | '+' | ' ' | '.' | '#' | '\'')
                    }) {
                        spec.push(c);
                    }
                    let Some(directive) = rest.next() else {
                        out.push('%');
                        out.push_str(&spec);
                        break;
                    };
                    if directive == '%' {
                        out.push('%');
                        continue;
                    }
                    let value = self
                        .value(directive)
                        .ok_or_else(|| format!("%{directive} is not supported in a format"))?;
                    out.push_str(&padded(&value, &spec)?);
                }
                c => out.push(c),
            }
        }
        Ok(out)
    }
}

/// `%-10n`, `%010s`, `%.3n` as printf has them.
fn padded(value: &str, spec: &str) -> Result<String, String> {
    let flags: String = spec.chars().take_while(|c| !matches!(c, '1'..='9' | '.')).collect();
    let numbers = &spec[flags.len()..];
    let (width, precision) = numbers.split_once('.').unwrap_or((numbers, ""));
    let number = |text: &str, none: usize| {
        let some = if text.is_empty() { Some(none) } else { text.parse().ok() };
        some.filter(|n| *n <= 4096 || text.is_empty())
            .ok_or_else(|| format!("%{spec}: a width is 4096 at most"))
    };
    let cut: String = value.chars().take(number(precision, usize::MAX)?).collect();
    let width = number(width, 0)?;
    let fill = width.saturating_sub(cut.chars().count());
    let digits = cut.chars().all(|c| c.is_ascii_digit());
    Ok(if flags.contains('-') {
        format!("{cut}{}", " ".repeat(fill))
    } else if flags.contains('0') && digits {
        format!("{}{cut}", "0".repeat(fill))
    } else {
        format!("{}{cut}", " ".repeat(fill))
    })
}

fn escape(rest: &mut std::iter::Peekable<std::str::Chars<'_>>) -> String {
    match rest.next() {
        Some('n') => "\n".into(),
        Some('t') => "\t".into(),
        Some('r') => "\r".into(),
        Some('a') => "\u{7}".into(),
        Some('\\') => "\\".into(),
        Some('"') => "\"".into(),
        Some(first @ '0'..='7') => {
            let mut code = first.to_digit(8).unwrap_or(0);
            for _ in 0..2 {
                let Some(digit) = rest.peek().and_then(|c| c.to_digit(8)) else { break };
                code = code * 8 + digit;
                rest.next();
            }
            char::from_u32(code & 0xff).map_or(String::new(), String::from)
        }
        Some(other) => format!("\\{other}"),
        None => "\\".into(),
    }
}

/// A name as `%N` has it: in quotes that a shell reads.
fn quoted(name: &str) -> String {
    if name.contains('\'') && !name.contains(['"', '$', '`', '\\']) {
        return format!("\"{name}\"");
    }
    format!("'{}'", name.replace('\'', "'\\''"))
}

impl Stat {
    fn run(&self, args: &[String], cwd: &str) -> Result<ExecResult, (bool, String)> {
        let (given, operands) =
            STAT.parse(args).map_err(|u| (true, format!("option {} {}", u.option, u.why)))?;
        let (mut format, mut terse) = (None, false);
        for option in given {
            match (option.name.as_str(), option.value) {
                ("-c" | "format", Some(text)) => format = Some((format!("{text}\n"), false)),
                ("printf", Some(text)) => format = Some((text, true)),
                ("-t" | "terse", _) => terse = true,
                // There are no links to follow.
                _ => {}
            }
        }
        if operands.is_empty() {
            return Err((false, "missing operand".into()));
        }
        let (mut out, mut err, mut code) = (String::new(), String::new(), 0);
        for shown in &operands {
            let found = path::resolve(cwd, shown).and_then(|full| {
                let meta = if full == NULL {
                    Meta { kind: Kind::File, size: 0, modified: 0 }
                } else {
                    self.view.stat(&full)?
                };
                let writable = full == NULL || self.view.write_check(&full).is_ok();
                let mounts = self.view.mounts();
                let mount = mounts
                    .iter()
                    .filter(|m| full == m.at || path::beneath(&full, &m.at).is_some())
                    .map(|m| m.at.clone())
                    .max_by_key(String::len)
                    .unwrap_or_else(|| "/".into());
                Ok(Facts { shown, full, meta, writable, mount })
            });
            match found {
                Ok(facts) => out.push_str(&match &format {
                    Some((format, escapes)) => {
                        facts.filled(format, *escapes).map_err(|e| (true, e))?
                    }
                    None if terse => facts.terse(),
                    None => facts.whole(),
                }),
                Err(e) => {
                    code = 1;
                    let _ = writeln!(err, "stat: cannot statx '{shown}': {}", strerror(&e));
                }
            }
        }
        Ok(ExecResult { stderr: err.into(), exit_code: code, ..ExecResult::ok(out) })
    }
}

#[async_trait]
impl Builtin for Stat {
    async fn execute(&self, ctx: BuiltinContext<'_>) -> bashkit::Result<ExecResult> {
        if ctx.args.iter().any(|a| a == "--help") {
            return Ok(ExecResult::ok(super::help::one("stat")));
        }
        let cwd = ctx.cwd.to_string_lossy().into_owned();
        Ok(self.run(ctx.args, &cwd).unwrap_or_else(|(unsupported, why)| {
            let message = format!("stat: {why}");
            if unsupported {
                self.notes.fail("unsupported_option", message.clone(), hint("stat"));
            }
            let code = if unsupported { 2 } else { 1 };
            ExecResult::err(format!("{message}\nhint: {}\n", hint("stat")), code)
        }))
    }
}
