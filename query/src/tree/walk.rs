//! Visits what lies beneath a path, in byte order, within bounds.

use super::error::TreeError;
use super::path::join;
use super::router::View;
use super::store::{Kind, Meta};

/// One stop of a walk.
pub struct Stop<'a> {
    /// The path.
    pub path: &'a str,
    /// What is there.
    pub meta: Meta,
    /// Levels beneath the start; 0 is the start itself.
    pub depth: usize,
}

/// Whether a walk goes on beneath a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// It does.
    Deeper,
    /// It does not.
    Skip,
}

/// Calls `visit` for the start and all beneath it, each directory before what is in it. A directory that
/// cannot be listed goes to `failed`, and the walk goes on.
///
/// # Errors
/// When the start is not there, a bound is reached, or `visit` fails.
pub fn walk(
    view: &View,
    start: &str,
    visit: &mut dyn FnMut(&Stop<'_>) -> Result<Next, TreeError>,
    failed: &mut dyn FnMut(TreeError),
) -> Result<(), TreeError> {
    let meta = view.stat(start)?;
    let most = view.limits().walk_entries;
    let mut visited = 0_usize;
    // What is still to be visited, the next one last.
    let mut open = vec![(start.to_owned(), meta, 0_usize)];
    while let Some((path, meta, depth)) = open.pop() {
        visited += 1;
        if visited > most {
            return Err(TreeError::Stopped(format!("more than {most} files and directories")));
        }
        if visited.is_multiple_of(64) {
            view.check_time()?;
        }
        let next = visit(&Stop { path: &path, meta, depth })?;
        if meta.kind == Kind::File || next == Next::Skip {
            continue;
        }
        match view.list(&path) {
            Ok(entries) => open.extend(
                entries.into_iter().rev().map(|e| (join(&path, &e.name), e.meta, depth + 1)),
            ),
            Err(e) => failed(e),
        }
    }
    Ok(())
}
