//! What the usage log says: how much, how fast, what was looked for most, what found nothing.

use super::{FILE, FILE_BEFORE, Line};
use rustc_hash::FxHashMap;
use serde::Serialize;
use std::fmt::Write;
use std::path::Path;

/// Searches that are named.
const NAMED: usize = 10;

/// The figures of one command.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OfCommand {
    /// The command.
    pub command: String,
    /// How often it was called.
    pub calls: usize,
    /// How often it found nothing.
    pub empty: usize,
    /// How often it was refused.
    pub refused: usize,
    /// How often it failed.
    pub failed: usize,
    /// Milliseconds at the median.
    pub median_ms: f64,
    /// Milliseconds that 95 of 100 calls stay under.
    pub p95_ms: f64,
}

/// A search and how often it was made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Search {
    /// The words.
    pub words: String,
    /// How often.
    pub times: usize,
}

/// The log in figures.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Summary {
    /// Lines that were read.
    pub lines: usize,
    /// Lines that could not be read.
    pub unreadable: usize,
    /// The first line's time.
    pub from: Option<String>,
    /// The last line's.
    pub to: Option<String>,
    /// By command, most calls first.
    pub commands: Vec<OfCommand>,
    /// The most frequent searches.
    pub searches: Vec<Search>,
    /// The most frequent searches that found nothing or were not answered.
    pub without_result: Vec<Search>,
    /// Refusals by reason, most frequent first.
    pub refusals: Vec<Search>,
}

/// Reads the log of a state directory, from this time on where one is given (RFC 3339).
///
/// # Errors
/// When there is a log that cannot be read.
pub fn read(state: &Path, since: Option<&str>) -> std::io::Result<Summary> {
    let mut lines = Vec::new();
    let mut unreadable = 0;
    for file in [FILE_BEFORE, FILE] {
        let text = match std::fs::read(state.join(file)) {
            Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => continue,
            Err(e) => return Err(e),
        };
        for line in text.lines() {
            match serde_json::from_str::<Line>(line) {
                Ok(line) if since.is_none_or(|s| line.at.as_str() >= s) => lines.push(line),
                Ok(_) => {}
                Err(_) => unreadable += 1,
            }
        }
    }
    Ok(Summary { unreadable, ..summarise(&lines) })
}

/// The figures of these lines.
#[must_use]
pub fn summarise(lines: &[Line]) -> Summary {
    let mut by_command: FxHashMap<&str, Vec<&Line>> = FxHashMap::default();
    for line in lines {
        by_command.entry(&line.command).or_default().push(line);
    }
    let mut commands: Vec<OfCommand> =
        by_command.iter().map(|(name, lines)| of_command(name, lines)).collect();
    commands.sort_by(|a, b| b.calls.cmp(&a.calls).then(a.command.cmp(&b.command)));
    let searched = |l: &&Line| !l.words.is_empty();
    let nothing = |l: &&Line| l.outcome == "empty" || l.outcome.starts_with("refused:");
    let refused = |l: &Line| l.outcome.strip_prefix("refused:").map(str::to_owned);
    Summary {
        lines: lines.len(),
        unreadable: 0,
        from: lines.iter().map(|l| l.at.clone()).min(),
        to: lines.iter().map(|l| l.at.clone()).max(),
        commands,
        searches: top(lines.iter().filter(searched).map(|l| l.words.clone())),
        without_result: top(lines.iter().filter(searched).filter(nothing).map(|l| l.words.clone())),
        refusals: top(lines.iter().filter_map(refused)),
    }
}

fn of_command(name: &str, lines: &[&Line]) -> OfCommand {
    let count = |is: &dyn Fn(&str) -> bool| lines.iter().filter(|l| is(&l.outcome)).count();
    let mut took: Vec<f64> = lines.iter().map(|l| l.took_ms).collect();
    took.sort_by(f64::total_cmp);
    let at = |share: usize| took.get((took.len() * share / 100).min(took.len() - 1)).copied();
    OfCommand {
        command: name.to_owned(),
        calls: lines.len(),
        empty: count(&|o| o == "empty"),
        refused: count(&|o| o.starts_with("refused:")),
        failed: count(&|o| o.starts_with("error:")),
        median_ms: at(50).unwrap_or(0.0),
        p95_ms: at(95).unwrap_or(0.0),
    }
}

fn top(all: impl Iterator<Item = String>) -> Vec<Search> {
    let mut times: FxHashMap<String, usize> = FxHashMap::default();
    for words in all {
        *times.entry(words).or_default() += 1;
    }
    let mut top: Vec<Search> =
        times.into_iter().map(|(words, times)| Search { words, times }).collect();
    top.sort_by(|a, b| b.times.cmp(&a.times).then(a.words.cmp(&b.words)));
    top.truncate(NAMED);
    top
}

impl Summary {
    /// The figures as a table.
    #[must_use]
    pub fn render(&self) -> String {
        let mut out = String::new();
        let (Some(from), Some(to)) = (&self.from, &self.to) else {
            return "no usage is logged\n".into();
        };
        let _ = writeln!(out, "{} calls, {from} to {to}", self.lines);
        if self.unreadable > 0 {
            let _ = writeln!(out, "{} lines could not be read", self.unreadable);
        }
        let _ = writeln!(out, "\ncommand     calls   empty refused  failed  median ms   p95 ms");
        for c in &self.commands {
            let _ = writeln!(
                out,
                "{:<10} {:>6} {:>7} {:>7} {:>7} {:>10.1} {:>8.1}",
                c.command, c.calls, c.empty, c.refused, c.failed, c.median_ms, c.p95_ms
            );
        }
        for (title, list) in [
            ("searched most", &self.searches),
            ("without a result", &self.without_result),
            ("refusals", &self.refusals),
        ] {
            if !list.is_empty() {
                let _ = writeln!(out, "\n{title}");
            }
            for search in list {
                let _ = writeln!(out, "{:>6}  {}", search.times, search.words);
            }
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_of_some_lines() {
        let line = |command: &str, outcome: &str, words: &str, took_ms| Line {
            at: "2026-01-01T00:00:00Z".into(),
            via: "http".into(),
            command: command.into(),
            outcome: outcome.into(),
            took_ms,
            matched: 0,
            words: words.into(),
        };
        let lines = [
            line("ask", "answered", "nginx restart", 2.0),
            line("ask", "refused:no_evidence", "mongo sharding", 4.0),
            line("ask", "refused:no_evidence", "mongo sharding", 6.0),
            line("grep", "empty", "kafka", 1.0),
            line("grep", "error:bad_pattern", "", 1.0),
        ];
        let summary = summarise(&lines);
        assert_eq!(summary.commands[0].command, "ask");
        assert_eq!((summary.commands[0].calls, summary.commands[0].refused), (3, 2));
        assert_eq!((summary.commands[1].empty, summary.commands[1].failed), (1, 1));
        assert_eq!(summary.searches[0], Search { words: "mongo sharding".into(), times: 2 });
        assert_eq!(summary.without_result.len(), 2);
        assert_eq!(summary.refusals[0].words, "no_evidence");
        assert!(summary.render().contains("mongo sharding"));
        assert_eq!(Summary::default().render(), "no usage is logged\n");
    }
}
