//! The usage log: what was asked of this program, how it came out and how long it took; on this
//! machine alone, and off by a setting (`[usage] log = false`).
//!
//! One JSON object a line in `<state>/usage.jsonl`. Never the text of a document, of an answer or of a
//! question: of a search, the words that were looked for (`[usage] searches = false` drops them, too),
//! without those that might be a secret or an address. A line that cannot be written is no error of the
//! request.

pub mod summary;

use crate::reply::{RefusalReason, Reply};
use crate::route::Via;
use runbook_shared::analyse::{analyse, is_stop_word};
use serde::{Deserialize, Serialize};
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

/// The log's file under the state directory.
pub const FILE: &str = "usage.jsonl";
/// The file before it.
pub const FILE_BEFORE: &str = "usage.1.jsonl";
/// From this size on, in bytes, a new file is begun, and the one before the last goes.
const FILE_BYTES_MAX: u64 = 8 * 1024 * 1024;
/// Words of a search that are kept.
const WORDS_MAX: usize = 12;

/// One line.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Line {
    /// When, RFC 3339, UTC, to the second.
    pub at: String,
    /// By which way: `http`, `mcp`, `cli`.
    pub via: String,
    /// What was called: `ask`, `search`, `grep`, `shell` and so on.
    pub command: String,
    /// `answered`, `ok`, `empty`, `steered`, `refused:REASON`, `error:CODE`.
    pub outcome: String,
    /// Milliseconds.
    pub took_ms: f64,
    /// Documents or results that it came to.
    pub matched: usize,
    /// The words that were looked for; empty where there are none or they are not kept.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub words: String,
}

/// A line that ends now.
#[must_use]
pub fn line(via: Via, command: &str, outcome: &str, started: Instant, matched: usize) -> Line {
    Line {
        at: String::new(),
        via: via.name().to_owned(),
        command: command.to_owned(),
        outcome: outcome.to_owned(),
        took_ms: (started.elapsed().as_secs_f64() * 1e6).round() / 1e3,
        matched,
        words: String::new(),
    }
}

/// How a question came out, and how many sections were cited.
#[must_use]
pub fn of_reply(reply: Result<&Reply, &'static str>) -> (String, usize) {
    match reply {
        Err(code) => (format!("error:{code}"), 0),
        Ok(reply) => match &reply.refusal {
            None => ("answered".to_owned(), reply.citations.len()),
            Some(refusal) => {
                let reason = match refusal.reason {
                    RefusalReason::Action => "action",
                    RefusalReason::Secret => "secret",
                    RefusalReason::Customer => "customer_data",
                    RefusalReason::NoEvidence => "no_evidence",
                    RefusalReason::EmptyIndex => "empty_index",
                    RefusalReason::Degraded => "degraded",
                };
                (format!("refused:{reason}"), 0)
            }
        },
    }
}

/// What `[usage]` sets.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(default)]
pub struct Settings {
    /// Whether there is a log, where there is a state directory.
    pub log: bool,
    /// Whether the words of searches are kept in it.
    pub searches: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self { log: true, searches: true }
    }
}

/// The log; one that is off takes lines and drops them.
#[derive(Clone, Default)]
pub struct Log {
    open: Option<Arc<Open>>,
}

struct Open {
    dir: PathBuf,
    searches: bool,
    file: Mutex<Option<File>>,
    failed: AtomicBool,
}

impl Log {
    /// A log under this state directory; off without one, or where the settings say so.
    #[must_use]
    pub fn new(state: Option<&Path>, settings: Settings) -> Self {
        let open = state.filter(|_| settings.log).map(|dir| {
            Arc::new(Open {
                dir: dir.to_owned(),
                searches: settings.searches,
                file: Mutex::default(),
                failed: AtomicBool::new(false),
            })
        });
        Self { open }
    }

    /// Whether lines are kept.
    #[must_use]
    pub fn is_on(&self) -> bool {
        self.open.is_some()
    }

    /// Writes a line; `searched` is what was looked for, of which only words are kept.
    pub fn note(&self, mut line: Line, searched: Option<&str>) {
        let Some(open) = &self.open else { return };
        let at = jiff::Timestamp::now();
        line.at = at.round(jiff::Unit::Second).unwrap_or(at).to_string();
        line.words = searched.filter(|_| open.searches).map(words).unwrap_or_default();
        let Ok(mut text) = serde_json::to_string(&line) else { return };
        text.push('\n');
        if let Err(e) = open.append(&text)
            && !open.failed.swap(true, Ordering::Relaxed)
        {
            tracing::warn!("the usage log cannot be written under `{}`: {e}", open.dir.display());
        }
    }
}

impl Open {
    fn append(&self, text: &str) -> std::io::Result<()> {
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let path = self.dir.join(FILE);
        if let Some(open) = file.as_ref()
            && open.metadata()?.len() >= FILE_BYTES_MAX
        {
            std::fs::rename(&path, self.dir.join(FILE_BEFORE))?;
            *file = None;
        }
        if file.is_none() {
            std::fs::create_dir_all(&self.dir)?;
            *file = Some(OpenOptions::new().create(true).append(true).open(&path)?);
        }
        // One write of a whole line: several programs may append to the same file.
        file.as_mut().map_or(Ok(()), |f| f.write_all(text.as_bytes()))
    }
}

/// The words of a search: no stop words, nothing that may be a secret, an address or a number of many
/// digits.
fn words(searched: &str) -> String {
    let mut kept: Vec<String> = Vec::new();
    for term in analyse(searched) {
        let word = term.surface;
        let digits = word.chars().filter(char::is_ascii_digit).count();
        let long = word.len() > 32 || (word.len() >= 16 && digits > 2);
        let told = kept.len() < WORDS_MAX
            && !term.within
            && !is_stop_word(&word)
            && !long
            && digits <= 6
            && !word.contains(['@', '=', ':', '$']);
        if told && !kept.contains(&word) {
            kept.push(word);
        }
    }
    kept.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(command: &str) -> Line {
        Line { command: command.into(), outcome: "ok".into(), ..Line::default() }
    }

    #[test]
    fn lines_are_kept_without_content_and_only_where_they_may() {
        let dir = tempfile::tempdir().unwrap();
        let log = Log::new(Some(dir.path()), Settings::default());
        log.note(line("ask"), Some("how do I reset bob@example.org token=sk-123456789 on db-01"));
        log.note(line("read"), None);
        let text = std::fs::read_to_string(dir.path().join(FILE)).unwrap();
        assert_eq!(text.lines().count(), 2);
        assert!(text.contains("reset") && text.contains("db-01"), "{text}");
        assert!(!text.contains("bob@") && !text.contains("sk-1234"), "{text}");
        let settings = Settings { searches: false, ..Settings::default() };
        Log::new(Some(dir.path()), settings).note(line("ask"), Some("nginx"));
        assert!(!std::fs::read_to_string(dir.path().join(FILE)).unwrap().contains("nginx"));
        let off = Settings { log: false, ..Settings::default() };
        assert!(!Log::new(Some(dir.path()), off).is_on() && !Log::new(None, settings).is_on());
    }

    #[test]
    fn a_log_that_cannot_be_written_is_no_error() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("file"), "").unwrap();
        let log = Log::new(Some(&dir.path().join("file")), Settings::default());
        log.note(line("ask"), None);
        log.note(line("ask"), None);
    }

    #[test]
    fn a_full_file_makes_room() {
        let dir = tempfile::tempdir().unwrap();
        let log = Log::new(Some(dir.path()), Settings::default());
        log.note(line("ask"), None);
        let file = OpenOptions::new().append(true).open(dir.path().join(FILE)).unwrap();
        file.set_len(FILE_BYTES_MAX).unwrap();
        log.note(line("ask"), None);
        assert!(dir.path().join(FILE_BEFORE).exists());
        let text = std::fs::read_to_string(dir.path().join(FILE)).unwrap();
        assert_eq!(text.lines().count(), 1);
    }
}
