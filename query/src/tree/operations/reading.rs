//! Listing, reading, drawing and loading.

use super::{Done, place};
use crate::tree::envelope::Envelope;
use crate::tree::error::TreeError;
use crate::tree::path::{HOME, resolve, split};
use crate::tree::request::{Draw, Load, Ls, Read};
use crate::tree::router::{Mount, View};
use crate::tree::store::{Entry, Kind};
use crate::tree::walk::{self, Next};
use serde_json::{Value, json};
use std::fmt::Write;

impl View {
    /// Lists a directory, or names a file.
    #[must_use]
    pub fn ls(&self, request: &Ls) -> Envelope {
        self.operate(|view| {
            let path = place(request.path.as_deref())?;
            let meta = view.stat(&path)?;
            let entries = match meta.kind {
                Kind::Dir => view.list(&path)?,
                Kind::File => vec![Entry { name: split(&path).1.into(), meta }],
            };
            let mut content = String::new();
            for entry in &entries {
                let about = view
                    .mounts()
                    .iter()
                    .find(|m| path == "/" && m.at.strip_prefix('/') == Some(&entry.name))
                    .map_or(String::new(), |m| format!("  {}", m.about));
                let slash = if entry.meta.kind == Kind::Dir { "/" } else { "" };
                let _ = writeln!(content, "{}{slash}{about}", entry.name);
            }
            let data = json!({
                "path": path,
                "kind": if meta.kind == Kind::Dir { "dir" } else { "file" },
                "entries": entries.iter().map(entry_json).collect::<Vec<_>>(),
            });
            Ok(Envelope { content, data, ..Envelope::default() }.into())
        })
    }

    /// Reads a file, or lines of it.
    #[must_use]
    pub fn read(&self, request: &Read) -> Envelope {
        self.operate(|view| {
            let path = resolve(HOME, &request.path)?;
            let bytes = match &request.version {
                Some(version) => view.read_version(&path, version)?,
                None => view.read_bytes(&path)?,
            };
            let binary = bytes.contains(&0);
            let text = String::from_utf8_lossy(&bytes).replace('\0', "\u{2400}");
            let total = text.lines().count();
            let range = match &request.lines {
                Some(lines) => parse_lines(lines, total)?,
                None => (1, total),
            };
            let content = match request.lines {
                Some(_) => cut(&text, range),
                None => text,
            };
            let lines = request.lines.as_ref().map(|_| {
                [
                    u32::try_from(range.0).unwrap_or(u32::MAX),
                    u32::try_from(range.1).unwrap_or(u32::MAX),
                ]
            });
            let mut envelope = Envelope::new(content, vec![view.source(&path, lines)]);
            envelope.data = json!({
                "path": path, "lines": total, "first": range.0, "last": range.1,
                "bytes": bytes.len(), "version": request.version,
            });
            if binary {
                envelope.stderr = format!("{path} is binary: NUL is shown as \u{2400}\n");
                envelope.data["binary"] = json!(true);
            }
            let whole = request.lines.is_none() && request.version.is_none();
            Ok(Done { envelope, kept: whole.then_some(path) })
        })
    }

    /// Draws a directory and what lies beneath it.
    #[must_use]
    pub fn draw(&self, request: &Draw) -> Envelope {
        self.operate(|view| {
            let path = place(request.path.as_deref())?;
            let mut content = format!("{path}\n");
            let depth = request.depth.unwrap_or(usize::MAX);
            let mut failed = Vec::new();
            let mut counts = (0_u64, 0_u64);
            let mut stops: Vec<(usize, String, Kind)> = Vec::new();
            walk::walk(
                view,
                &path,
                &mut |stop| {
                    if stop.depth > 0 {
                        match stop.meta.kind {
                            Kind::Dir => counts.0 += 1,
                            Kind::File => counts.1 += 1,
                        }
                        stops.push((stop.depth, split(stop.path).1.into(), stop.meta.kind));
                    }
                    Ok(if stop.depth >= depth { Next::Skip } else { Next::Deeper })
                },
                &mut |e| failed.push(e),
            )?;
            content.push_str(&branches(&stops));
            let _ = writeln!(content, "\n{} directories, {} files", counts.0, counts.1);
            let data = json!({"path": path, "directories": counts.0, "files": counts.1});
            let mut envelope = Envelope { content, data, ..Envelope::default() };
            note_failed(&mut envelope, &failed);
            Ok(envelope.into())
        })
    }

    /// All files beneath a path with their content, of all read-only mounts where none is named; above the
    /// limit only their names and sizes, and `data.complete` says so. Names no sources: a client that reads
    /// them says what it read.
    #[must_use]
    pub fn load(&self, request: &Load) -> Envelope {
        self.operate(|view| {
            let starts = match request.path.as_deref().filter(|p| !p.is_empty()) {
                Some(path) => vec![place(Some(path))?],
                None => {
                    let fixed = view.mounts().iter().filter(|m| !m.store.writable());
                    fixed.map(|m| m.at.clone()).collect()
                }
            };
            let most = request.limit.unwrap_or(u64::MAX).min(view.limits().load_bytes);
            let mut failed = Vec::new();
            let mut files = Vec::new();
            for start in &starts {
                let walked = walk::walk(
                    view,
                    start,
                    &mut |stop| {
                        if stop.meta.kind == Kind::File {
                            files.push((stop.path.to_owned(), stop.meta));
                        }
                        Ok(Next::Deeper)
                    },
                    &mut |e| failed.push(e),
                );
                match walked {
                    Err(e @ TreeError::Unavailable { .. }) if starts.len() > 1 => failed.push(e),
                    other => other?,
                }
            }
            let bytes: u64 = files.iter().map(|(_, m)| m.size).sum();
            let complete = bytes <= most;
            let mut listed = Vec::with_capacity(files.len());
            for (file, meta) in &files {
                let mut entry = json!({"path": file, "size": meta.size, "modified": meta.modified});
                if complete {
                    match view.read_bytes(file) {
                        Ok(content) => {
                            let text = String::from_utf8_lossy(&content);
                            if matches!(text, std::borrow::Cow::Owned(_)) {
                                entry["lossy"] = json!(true);
                            }
                            entry["content"] = json!(text);
                        }
                        Err(e) => failed.push(e),
                    }
                }
                listed.push(entry);
            }
            let content = format!("{} files, {bytes} bytes\n", files.len());
            let data = json!({
                "paths": starts, "stamp": view.stamp(), "complete": complete, "bytes": bytes,
                "limit": most, "files": listed, "mounts": mounts_json(view),
            });
            let mut envelope =
                Envelope { content, data, truncated: !complete, ..Envelope::default() };
            note_failed(&mut envelope, &failed);
            Ok(envelope.into())
        })
    }
}

/// The mounts as data.
#[must_use]
pub fn mounts_json(view: &View) -> Value {
    let one = |m: &Mount| {
        json!({
            "path": m.at, "about": m.about, "writable": m.store.writable(),
            "versioned": m.store.versioned(),
        })
    };
    view.mounts().iter().map(one).collect()
}

/// One entry as data.
pub(super) fn entry_json(entry: &Entry) -> Value {
    json!({
        "name": entry.name,
        "kind": if entry.meta.kind == Kind::Dir { "dir" } else { "file" },
        "size": entry.meta.size,
        "modified": entry.meta.modified,
    })
}

/// What could not be looked at is an error beside the rest, never left out in silence.
pub(super) fn note_failed(envelope: &mut Envelope, failed: &[TreeError]) {
    let Some(first) = failed.first() else { return };
    envelope.error = Some(first.into());
    for e in failed {
        let _ = writeln!(envelope.stderr, "{e}");
    }
}

/// `7`, `3-40`, `3-` or `-20`, as first and last line of `total`.
fn parse_lines(text: &str, total: usize) -> Result<(usize, usize), TreeError> {
    let bad = || {
        TreeError::BadRequest(format!(
            "lines are `7`, `3-40`, `3-` or `-20`, not `{}`",
            crate::tree::path::shown(text)
        ))
    };
    let number = |t: &str| t.trim().parse::<usize>().map_err(|_| bad());
    let (first, last) = match text.trim().split_once('-') {
        None => {
            let line = number(text)?;
            (line, line)
        }
        Some(("", last)) => (total.saturating_sub(number(last)?) + 1, total),
        Some((first, "")) => (number(first)?, total),
        Some((first, last)) => (number(first)?, number(last)?.min(total)),
    };
    if first == 0 || (last < first && first <= total) {
        return Err(bad());
    }
    if first > total && total > 0 {
        return Err(TreeError::BadRequest(format!("line {first} is beyond the last one, {total}")));
    }
    Ok((first, last))
}

fn cut(text: &str, (first, last): (usize, usize)) -> String {
    text.split_inclusive('\n').skip(first - 1).take((last + 1).saturating_sub(first)).collect()
}

/// The branches of a drawing, as tree(1) draws them.
fn branches(stops: &[(usize, String, Kind)]) -> String {
    let mut out = String::new();
    // From the end: whether a sibling follows at each depth.
    let mut lines: Vec<String> = Vec::with_capacity(stops.len());
    let mut follows: Vec<bool> = Vec::new();
    for (depth, name, kind) in stops.iter().rev() {
        follows.resize(depth + 1, false);
        let mut line = String::new();
        for more in &follows[1..*depth] {
            line.push_str(if *more { "│   " } else { "    " });
        }
        line.push_str(if follows[*depth] { "├── " } else { "└── " });
        line.push_str(name);
        if *kind == Kind::Dir {
            line.push('/');
        }
        follows[*depth] = true;
        lines.push(line);
    }
    for line in lines.iter().rev() {
        out.push_str(line);
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_of_lines() {
        for (text, is) in
            [("7", (7, 7)), ("3-5", (3, 5)), ("8-", (8, 10)), ("-2", (9, 10)), ("9-99", (9, 10))]
        {
            assert_eq!(parse_lines(text, 10).unwrap(), is, "{text}");
        }
        for text in ["0", "5-3", "x", "1-x", "11", "-", ""] {
            assert!(parse_lines(text, 10).is_err(), "{text}");
        }
        assert_eq!(cut("a\nb\nc", (2, 3)), "b\nc");
    }

    #[test]
    fn a_drawing_has_its_branches() {
        let stops = [
            (1, "a".to_owned(), Kind::Dir),
            (2, "x".to_owned(), Kind::File),
            (2, "y".to_owned(), Kind::File),
            (1, "b".to_owned(), Kind::File),
        ];
        assert_eq!(branches(&stops), "├── a/\n│   ├── x\n│   └── y\n└── b\n");
    }
}
