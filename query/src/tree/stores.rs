//! The stores: a generation, scratch in memory or in Redis, versioned objects on disk or in S3.

pub mod artifacts;
pub mod broken;
pub mod generation;
pub mod redis;
pub mod scratch;

use super::store::{Entry, Kind, Meta};

/// Seconds since 1970.
pub(crate) fn now() -> i64 {
    jiff::Timestamp::now().as_second()
}

/// The names right beneath `dir` in a list of files that is sorted by path in byte order; directories are
/// what lies above files. None when neither a file beneath `dir` nor `dir` itself is there.
pub(crate) fn children<'a>(
    files: impl Iterator<Item = (&'a str, Meta)>,
    dir: &str,
) -> Option<Vec<Entry>> {
    let mut entries: Vec<Entry> = Vec::new();
    let mut there = dir.is_empty();
    for (path, meta) in files {
        let rest = if dir.is_empty() {
            path
        } else {
            match path.strip_prefix(dir).and_then(|r| r.strip_prefix('/')) {
                Some(rest) => rest,
                None => continue,
            }
        };
        there = true;
        match rest.split_once('/') {
            // `dir/` alone marks a directory that is empty.
            Some(("", _)) => {}
            None if rest.is_empty() => {}
            Some((name, _)) => match entries.iter_mut().rev().find(|e| e.name == name) {
                Some(e) => e.meta.modified = e.meta.modified.max(meta.modified),
                None => entries.push(Entry {
                    name: name.into(),
                    meta: Meta { kind: Kind::Dir, size: 0, modified: meta.modified },
                }),
            },
            None => entries.push(Entry { name: rest.into(), meta }),
        }
    }
    entries.sort_by(|a, b| a.name.cmp(&b.name));
    there.then_some(entries)
}
