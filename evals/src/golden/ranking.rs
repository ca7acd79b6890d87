//! The ranking of every case, one line each: where the gold section is, and what comes first.
//!
//! ```text
//! s001  2  a.md#First | b.md#Gold | c.md#Third
//! ```

use crate::outcome::CaseResult;
use std::collections::BTreeMap;

/// The ranking of a run.
#[must_use]
pub fn current(results: &[CaseResult], embedder: &str) -> String {
    let mut out = format!("# embedder {embedder}; case, rank of gold, the first three sections\n");
    for result in results.iter().filter(|r| r.reply.is_some()) {
        out.push_str(&line(result));
        out.push('\n');
    }
    out
}

fn line(result: &CaseResult) -> String {
    let rank = result.scores.gold.and_then(|g| g.rank).map_or("-".to_owned(), |r| r.to_string());
    let first = result.named.iter().take(3).map(|n| format!("{}#{}", n.path, n.heading));
    let first = first.collect::<Vec<_>>().join(" | ").replace(['\n', '\r', '\t'], " ");
    format!("{}\t{rank}\t{first}", result.case.id)
}

/// What a reviewer reads: lines that are gone, new or other than they were. A ranking that another
/// embedder made is not compared.
#[must_use]
pub fn diff(before: &str, now: &str) -> Vec<String> {
    if before.lines().next() != now.lines().next() {
        return vec![format!(
            "not compared: it was made with {}",
            before.lines().next().unwrap_or("")
        )];
    }
    let (old, new) = (by_id(before), by_id(now));
    let ids: std::collections::BTreeSet<&str> = old.keys().chain(new.keys()).copied().collect();
    let mut out = Vec::new();
    for id in ids {
        let (old, new) = (old.get(id), new.get(id));
        if old != new {
            out.extend(old.map(|line| format!("-{line}")));
            out.extend(new.map(|line| format!("+{line}")));
        }
    }
    out
}

fn by_id(text: &str) -> BTreeMap<&str, &str> {
    let lines = text.lines().filter(|l| !l.starts_with('#'));
    lines.map(|l| (l.split('\t').next().unwrap_or(l), l)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_diff_shows_what_changed() {
        let before = "# e\na\t1\tx\nb\t2\ty\nd\t1\tz\n";
        let now = "# e\na\t1\tx\nb\t1\tz\nc\t-\t\n";
        assert_eq!(diff(before, now), ["-b\t2\ty", "+b\t1\tz", "+c\t-\t", "-d\t1\tz"]);
        assert!(diff(now, now).is_empty());
        assert_eq!(diff("# f\n", now).len(), 1);
    }
}
