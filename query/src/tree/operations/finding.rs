//! Finding files by name and lines by pattern.

use super::place;
use super::reading::note_failed;
use crate::tree::envelope::Envelope;
use crate::tree::error::TreeError;
use crate::tree::path::{beneath, split};
use crate::tree::request::{Find, Grep};
use crate::tree::router::View;
use crate::tree::search::engine::{Engine, Printing, Show};
use crate::tree::search::files::{Filter, Search, Totals, glob};
use crate::tree::search::pattern::{Pattern, Spec};
use crate::tree::store::Kind;
use crate::tree::walk::{self, Next};
use serde_json::json;
use std::fmt::Write;

impl View {
    /// Finds files and directories; `content` has one path a line.
    #[must_use]
    pub fn find(&self, request: &Find) -> Envelope {
        self.operate(|view| {
            let start = place(request.path.as_deref())?;
            let case = request.ignore_case;
            let compile = |pattern: &Option<String>| {
                pattern.as_deref().map(|p| glob(p, case).map(|g| g.compile_matcher())).transpose()
            };
            let (name, whole) = (compile(&request.name)?, compile(&request.glob)?);
            let kind = match request.kind.as_deref() {
                None => None,
                Some("file" | "f") => Some(Kind::File),
                Some("dir" | "d") => Some(Kind::Dir),
                Some(other) => {
                    return Err(TreeError::BadRequest(format!(
                        "kind is `file` or `dir`, not `{}`",
                        crate::tree::path::shown(other)
                    )));
                }
            };
            let depth = request.depth.unwrap_or(usize::MAX);
            let (mut content, mut found, mut visited) = (String::new(), 0_u64, 0_u64);
            let mut failed = Vec::new();
            walk::walk(
                view,
                &start,
                &mut |stop| {
                    visited += 1;
                    let relative = beneath(stop.path, &start).unwrap_or_default();
                    let fits = kind.is_none_or(|k| k == stop.meta.kind)
                        && name.as_ref().is_none_or(|g| g.is_match(split(stop.path).1))
                        && whole.as_ref().is_none_or(|g| g.is_match(relative));
                    if fits {
                        found += 1;
                        let _ = writeln!(content, "{}", stop.path);
                    }
                    Ok(if stop.depth >= depth { Next::Skip } else { Next::Deeper })
                },
                &mut |e| failed.push(e),
            )?;
            let data = json!({"path": start, "found": found, "visited": visited});
            let mut envelope = Envelope { content, data, ..Envelope::default() };
            if found == 0 {
                let _ = writeln!(
                    envelope.stderr,
                    "nothing found among {visited} files and directories"
                );
            }
            note_failed(&mut envelope, &failed);
            Ok(envelope.into())
        })
    }

    /// Searches lines; `content` is as `grep -rn` prints it, `data` says how many files were searched.
    #[must_use]
    pub fn grep(&self, request: &Grep) -> Envelope {
        self.operate(|view| {
            let start = place(request.path.as_deref())?;
            let pattern = Pattern::new(
                &Spec {
                    patterns: request.pattern.split('\n').map(str::to_owned).collect(),
                    syntax: request.syntax,
                    ignore_case: request.ignore_case,
                    word: request.word,
                    line: request.line,
                },
                view.limits(),
            )?;
            let filter = Filter::new(&request.include, &request.exclude, &[])?;
            let show = match () {
                () if request.files_only => Show::Files,
                () if request.count => Show::Count,
                () if request.only_matching => Show::Parts,
                () => Show::Lines,
            };
            let printing = Printing {
                show,
                invert: request.invert,
                path: true,
                number: true,
                before: request.before.min(1000),
                after: request.after.min(1000),
                max_count: request.max_count,
                skip_zero: true,
                ..Printing::default()
            };
            let mut search = Search {
                view,
                filter: &filter,
                engine: Engine::new(&pattern, &printing),
                show,
                out: Vec::new(),
                touched: Vec::new(),
                totals: Totals::default(),
                failed: Vec::new(),
                binary: Vec::new(),
                first_only: false,
            };
            let result = search.beneath(&start, &str::to_owned);
            let totals = search.totals.clone();
            for path in std::mem::take(&mut search.binary) {
                search.out.extend_from_slice(format!("{path}: binary file matches\n").as_bytes());
            }
            let content = String::from_utf8_lossy(&search.out).replace('\0', "\u{2400}");
            let mut envelope = Envelope::new(content, std::mem::take(&mut search.touched));
            envelope.data = json!({
                "path": start, "searched": totals.searched, "matched": totals.matched,
                "lines": totals.lines,
            });
            if totals.matched == 0 {
                let _ = writeln!(envelope.stderr, "no match in {} files searched", totals.searched);
            }
            note_failed(&mut envelope, &search.failed);
            match result {
                Err(e @ TreeError::Stopped(_)) => {
                    envelope.truncated = true;
                    note_failed(&mut envelope, &[e]);
                }
                other => other?,
            }
            Ok(envelope.into())
        })
    }
}
