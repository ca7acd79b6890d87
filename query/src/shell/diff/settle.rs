//! From marked lines to hunks: each is moved to where it reads best.

use super::lines::Change;

/// Moves each run of changed lines to where it reads best: merged with its neighbours, as far down as it goes,
/// or back to where the other text has changes.
pub(super) fn settle(lines: &[u32], changed: &mut [bool], other: &[bool]) {
    let at = |flags: &[bool], n: usize| flags.get(n).copied().unwrap_or(false);
    let before = |flags: &[bool], n: usize| n > 0 && at(flags, n - 1);
    // The line of the other text before this one that has not changed.
    let back = |j: usize| (0..j).rev().find(|n| !at(other, *n)).unwrap_or(0);
    let (mut i, mut j) = (0, 0);
    loop {
        // The next run, and the place in the other text that goes with it.
        while i < lines.len() && !changed[i] {
            while at(other, j) {
                j += 1;
            }
            (i, j) = (i + 1, j + 1);
        }
        if i == lines.len() {
            return;
        }
        let mut start = i;
        while at(changed, i) {
            i += 1;
        }
        while at(other, j) {
            j += 1;
        }
        let mut meets;
        loop {
            let length = i - start;
            // Up, as long as the line above is the last of the run.
            while start > 0 && lines[start - 1] == lines[i - 1] {
                start -= 1;
                changed[start] = true;
                i -= 1;
                changed[i] = false;
                while before(changed, start) {
                    start -= 1;
                }
                j = back(j);
            }
            meets = if before(other, j) { i } else { lines.len() };
            // Down, as long as the line below is the first of the run.
            while i < lines.len() && lines[start] == lines[i] {
                changed[start] = false;
                start += 1;
                changed[i] = true;
                i += 1;
                while at(changed, i) {
                    i += 1;
                }
                j += 1;
                while at(other, j) {
                    meets = i;
                    j += 1;
                }
            }
            if length == i - start {
                break;
            }
        }
        // Back to where both texts change.
        while meets < i {
            start -= 1;
            changed[start] = true;
            i -= 1;
            changed[i] = false;
            j = back(j);
        }
    }
}

/// The marked lines as changes, `start` lines further down.
pub(super) fn script(left: &[bool], right: &[bool], start: usize) -> Vec<Change> {
    let at = |flags: &[bool], n: usize| flags.get(n).copied().unwrap_or(false);
    let (mut i, mut j) = (0, 0);
    let mut changes = Vec::new();
    while i < left.len() || j < right.len() {
        let (from, to) = (i, j);
        while at(left, i) {
            i += 1;
        }
        while at(right, j) {
            j += 1;
        }
        if i > from || j > to {
            changes.push(Change { old: start + from..start + i, new: start + to..start + j });
        }
        (i, j) = (i + 1, j + 1);
    }
    changes
}
