//! `refused.jsonl`: the questions that found nothing, for whoever writes the runbooks.
//!
//! Bounded: a full file becomes `refused.1.jsonl`, and the one before it goes. A write that fails
//! costs a record and never an answer.

use super::reports::{open_lines, private_dir};
use crate::reply::{Refusal, Reply, round4};
use runbook_shared::error::{IoContext, PathError};
use rustc_hash::FxHashMap;
use serde_json::json;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The file that is written.
pub const FILE_NAME: &str = "refused.jsonl";
/// The full one before it.
pub const FILE_NAME_BEFORE: &str = "refused.1.jsonl";
/// The size from which a file is full, in bytes (4 MiB).
const FILE_BYTES_MAX: u64 = 4 * 1024 * 1024;
/// The longest question that is recorded, in bytes: a longer one is a paste.
const QUESTION_BYTES_MAX: usize = 2000;
/// Questions that are counted in memory.
const COUNTED_MAX: usize = 2000;

/// The record; without a file nothing is kept, in memory neither.
#[derive(Default)]
pub struct Refused(Option<Mutex<Record>>);

struct Record {
    path: PathBuf,
    file: File,
    bytes: u64,
    counts: FxHashMap<String, Count>,
}

struct Count {
    times: u64,
    last: String,
    as_asked: String,
}

/// A question that was refused, how often, and when last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Often {
    /// The question, as it was asked first.
    pub question: String,
    /// How often.
    pub times: u64,
    /// When last, RFC 3339.
    pub last: String,
}

impl Refused {
    /// Opens or creates the record in a directory, and counts what it holds.
    ///
    /// # Errors
    /// When a file cannot be read or written.
    pub fn open(dir: &Path) -> Result<Self, PathError> {
        private_dir(dir)?;
        let path = dir.join(FILE_NAME);
        let mut counts = FxHashMap::default();
        for name in [FILE_NAME_BEFORE, FILE_NAME] {
            let path = dir.join(name);
            match fs::read(&path).at("read", &path) {
                Ok(bytes) => String::from_utf8_lossy(&bytes)
                    .lines()
                    .filter_map(|l| serde_json::from_str::<serde_json::Value>(l).ok())
                    .filter_map(|row| {
                        Some((row["question"].as_str()?.to_owned(), row["at"].as_str()?.to_owned()))
                    })
                    .for_each(|(question, at)| count(&mut counts, &question, at)),
                Err(e) if e.is_not_found() => {}
                Err(e) => return Err(e),
            }
        }
        let file = open_lines(&path)?;
        let bytes = file.metadata().at("read", &path)?.len();
        Ok(Self(Some(Mutex::new(Record { path, file, bytes, counts }))))
    }

    fn lock(&self) -> Option<MutexGuard<'_, Record>> {
        Some(self.0.as_ref()?.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Records a question.
    pub fn note(&self, question: &str, refusal: &Refusal, reply: &Reply) {
        if question.len() > QUESTION_BYTES_MAX {
            return;
        }
        let Some(mut record) = self.lock() else { return };
        let at = now();
        let near: Vec<_> = refusal
            .nearest
            .iter()
            .take(3)
            .map(|n| json!({"path": n.path, "heading": n.heading}))
            .collect();
        let row = json!({
            "at": at, "question": question, "reason": refusal.reason.name(), "band": reply.band.name(),
            "confidence": round4(reply.confidence), "generation": reply.provenance.generation, "nearest": near,
        });
        count(&mut record.counts, question, at);
        if let Err(e) = record.append(&format!("{row}\n")) {
            tracing::warn!("{e}: a refused question is not recorded");
        }
    }

    /// The questions that were refused most often.
    #[must_use]
    pub fn top(&self, most: usize) -> Vec<Often> {
        let Some(record) = self.lock() else { return Vec::new() };
        let mut all: Vec<Often> = record
            .counts
            .values()
            .map(|c| Often { question: c.as_asked.clone(), times: c.times, last: c.last.clone() })
            .collect();
        all.sort_by(|a, b| b.times.cmp(&a.times).then_with(|| b.last.cmp(&a.last)));
        all.truncate(most);
        all
    }

    /// Whether anything is recorded at all.
    #[must_use]
    pub fn is_kept(&self) -> bool {
        self.0.is_some()
    }
}

impl Record {
    fn append(&mut self, line: &str) -> Result<(), PathError> {
        if self.bytes + line.len() as u64 > FILE_BYTES_MAX {
            let before = self.path.with_file_name(FILE_NAME_BEFORE);
            fs::rename(&self.path, &before).at("rename", &self.path)?;
            self.file = open_lines(&self.path)?;
            self.bytes = 0;
        }
        self.file.write_all(line.as_bytes()).at("write", &self.path)?;
        self.bytes += line.len() as u64;
        Ok(())
    }
}

fn now() -> String {
    jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// Counts a question under its words alone; of too many, the rare ones are forgotten.
fn count(counts: &mut FxHashMap<String, Count>, question: &str, at: String) {
    let words: Vec<String> = question
        .to_lowercase()
        .split(|c: char| c.is_whitespace() || matches!(c, '?' | '!' | ','))
        .filter(|w| !w.is_empty())
        .map(str::to_owned)
        .collect();
    let key = words.join(" ");
    if let Some(count) = counts.get_mut(&key) {
        count.times += 1;
        count.last = at;
        return;
    }
    if counts.len() >= COUNTED_MAX {
        let mut times: Vec<u64> = counts.values().map(|c| c.times).collect();
        let (_, median, _) = times.select_nth_unstable(COUNTED_MAX / 2);
        let median = *median;
        let mut spare = COUNTED_MAX / 2;
        counts.retain(|_, c| {
            let goes = c.times <= median && spare > 0;
            spare -= usize::from(goes);
            !goes
        });
    }
    counts.insert(key, Count { times: 1, last: at, as_asked: question.to_owned() });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reply::{Band, RefusalReason};

    fn refusal() -> (Refusal, Reply) {
        let refusal = Refusal {
            reason: RefusalReason::NoEvidence,
            message: String::new(),
            searched: Vec::new(),
            nearest: Vec::new(),
        };
        let reply = Reply {
            id: "r1".into(),
            answer: String::new(),
            band: Band::Nothing,
            citations: Vec::new(),
            related: Vec::new(),
            confidence: 0.1,
            refusal: Some(refusal.clone()),
            provenance: crate::reply::Provenance::default(),
            route: Vec::new(),
            session: String::new(),
            took_ms: 1.0,
            explain: None,
            llm: None,
        };
        (refusal, reply)
    }

    #[test]
    fn it_counts_across_a_restart_and_stays_bounded() {
        let dir = tempfile::tempdir().unwrap();
        let (refusal, reply) = refusal();
        let refused = Refused::open(dir.path()).unwrap();
        for question in ["Where is the VPN?", "where is  the vpn", "who has keys"] {
            refused.note(question, &refusal, &reply);
        }
        drop(refused);
        let refused = Refused::open(dir.path()).unwrap();
        let top = refused.top(5);
        assert_eq!((top[0].question.as_str(), top[0].times), ("Where is the VPN?", 2));
        assert_eq!(top.len(), 2);
        for n in 0..6000 {
            refused.note(&format!("{n} {}", "x".repeat(1800)), &refusal, &reply);
        }
        let sizes: Vec<u64> = [FILE_NAME, FILE_NAME_BEFORE]
            .iter()
            .map(|f| fs::metadata(dir.path().join(f)).unwrap().len())
            .collect();
        assert!(sizes.iter().all(|s| *s <= FILE_BYTES_MAX), "{sizes:?}");
        // What is asked often is not forgotten for what is asked once.
        assert_eq!(refused.top(1)[0].times, 2);
    }

    #[test]
    fn without_a_directory_nothing_is_kept() {
        let (refusal, reply) = refusal();
        let refused = Refused::default();
        refused.note("q", &refusal, &reply);
        assert!(refused.top(5).is_empty() && !refused.is_kept());
    }
}
