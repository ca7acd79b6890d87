//! Named points of an ingest at which a test may end the process.
//!
//! The programs set no hook, and no variable, flag or file can set one: only code of the same process
//! can, which is a test's. Without a hook a point costs one load.

use std::sync::OnceLock;

/// All points, in the order in which a run comes by them.
pub const POINTS: [&str; 42] = [
    "run.locked",
    "run.swept",
    "run.planned",
    "fetch.probed",
    "fetch.opened",
    "fetch.downloaded",
    "fetch.named",
    "fetch.renewed",
    "fetch.moved_away",
    "fetch.moved_in",
    "fetch.merged",
    "fetch.pack_removed",
    "read.document",
    "read.done",
    "draft.begun",
    "draft.file",
    "text.written",
    "lexical.created",
    "lexical.filled",
    "lexical.committed",
    "model.read",
    "cache.opened",
    "cache.put",
    "vectors.rows",
    "vectors.graph",
    "indexes.written",
    "draft.probed",
    "report.written",
    "draft.hashed",
    "manifest.written",
    "fsync.file",
    "fsync.tree",
    "rename.done",
    "rename.synced",
    "sealed.verified",
    "swap.link_made",
    "swap.renamed",
    "swap.synced",
    "prune.file",
    "prune.done",
    "replace.written",
    "replace.renamed",
];

static HOOK: OnceLock<fn(&'static str)> = OnceLock::new();

/// Calls `hook` with the name of every point from now on; the first hook stays.
pub fn set_hook(hook: fn(&'static str)) {
    let _ = HOOK.set(hook);
}

/// A run has come to this point.
#[inline]
pub fn reach(point: &'static str) {
    if let Some(hook) = HOOK.get() {
        hook(point);
    }
}
