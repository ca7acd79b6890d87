//! Reads every candidate of a source at one state into documents.

use crate::document::{self, Document, Rejected};
use crate::redaction;
use crate::report::{Problem, Report};
use crate::reuse;
use crate::select::{Selection, SkipReason};
use crate::source::{Candidate, CandidateKind, SourceError, dir, git, printable};
use git2::{Oid, Repository};
use runbook_shared::doc_path::DocPath;
use runbook_shared::failpoint::reach;
use runbook_shared::generation::manifest::ForgeKind;
use runbook_shared::limits::DOC_PATH_BYTES_MAX;
use runbook_shared::secrets::Policy;
use runbook_shared::tokens::TokenCounter;
use std::path::PathBuf;

/// The longest path that is stored, in bytes: what the file system takes, less a quarter for the path
/// of the data directory.
const STORED_PATH_BYTES_MAX: usize = DOC_PATH_BYTES_MAX / 4 * 3;

/// Bytes that are read before secrets are looked for in them, on all cores at once.
const BATCH_BYTES: usize = 16 << 20;

/// A source that is open at one state.
pub enum Reader {
    /// A repository at a commit.
    Git(Box<Repository>, Oid),
    /// A directory.
    Dir(PathBuf),
    /// A repository without a commit.
    Empty,
}

impl Reader {
    /// Lists the candidates; what could not be listed is put into the report.
    ///
    /// # Errors
    /// When the source cannot be listed at all.
    pub fn list(
        &self,
        selection: &Selection,
        report: &mut Report,
    ) -> Result<Vec<Candidate>, SourceError> {
        match self {
            Self::Git(repository, commit) => git::list(repository, *commit, selection),
            Self::Dir(root) => {
                let (candidates, failed) = dir::list(root, selection)?;
                for (path, message) in failed {
                    // A directory that cannot be listed; the policy lets no file of it stand.
                    let (clean, found) = redaction::clean_path(&path, &Policy::default());
                    let message = redaction::clean_message(&path, &message, &found);
                    fail(report, &clean, message);
                }
                Ok(candidates)
            }
            Self::Empty => Ok(Vec::new()),
        }
    }

    /// True when the source holds a file, a directory or a link at this path, which has no `..`.
    #[must_use]
    pub fn exists(&self, path: &str) -> bool {
        match self {
            Self::Git(repository, commit) => git::exists(repository, *commit, path),
            Self::Dir(root) => root.join(path).symlink_metadata().is_ok(),
            Self::Empty => false,
        }
    }

    /// The bytes of a candidate, as they lie in the source.
    pub(crate) fn bytes(&self, candidate: &Candidate) -> Result<Vec<u8>, Rejected> {
        let flatten = |result: Result<Result<Vec<u8>, SkipReason>, String>| match result {
            Ok(Ok(bytes)) => Ok(bytes),
            Ok(Err(reason)) => Err(Rejected::Skipped(reason)),
            Err(message) => Err(Rejected::Failed(message)),
        };
        match (self, &candidate.kind) {
            (_, CandidateKind::Skipped(reason)) => Err(Rejected::Skipped(*reason)),
            (Self::Git(repository, _), CandidateKind::Blob { id }) => {
                flatten(git::read(repository, *id).map_err(|e| printable(e.message())))
            }
            (Self::Dir(root), CandidateKind::File) => {
                flatten(dir::read(root, &candidate.path).map_err(|e| printable(&e.to_string())))
            }
            _ => Err(Rejected::Failed("it changed its kind while it was read".into())),
        }
    }

    /// Reads the candidates into documents, by path in byte order; the rest goes into the report.
    /// Those that are in `known` with the same bytes are not read anew. Nothing is made of a file before
    /// its secrets are redacted.
    #[must_use]
    pub fn documents(
        &self,
        candidates: &[Candidate],
        forge: Option<ForgeKind>,
        counter: &TokenCounter,
        policy: &Policy,
        mut known: reuse::Documents,
        report: &mut Report,
    ) -> Vec<Document> {
        let mut documents: Vec<Document> = Vec::with_capacity(candidates.len());
        let mut read = Vec::new();
        let mut bytes_read = 0;
        for (number, candidate) in candidates.iter().enumerate() {
            reach("read.document");
            let bytes = self.bytes(candidate);
            bytes_read += bytes.as_ref().map_or(0, Vec::len);
            read.push((candidate.path.as_slice(), bytes));
            if bytes_read < BATCH_BYTES && number + 1 < candidates.len() {
                continue;
            }
            bytes_read = 0;
            let paths: Vec<&[u8]> = read.iter().map(|(path, _)| *path).collect();
            let cleaned = redaction::clean_all(std::mem::take(&mut read), policy);
            for (raw, cleaned) in paths.into_iter().zip(cleaned) {
                report.documents += 1;
                let (path, in_path) = redaction::clean_path(raw, policy);
                let mut secrets = Vec::new();
                let parsed = cleaned.and_then(|clean| {
                    secrets = clean.secrets;
                    match known.take(&path, clean.bytes) {
                        Ok(document) => Ok(document),
                        Err(bytes) => document::parse(&path, bytes, forge, counter),
                    }
                });
                match parsed {
                    Ok(document) if document.record.path.len() > STORED_PATH_BYTES_MAX => {
                        skip(report, &path, SkipReason::InvalidPath);
                    }
                    Ok(document) => {
                        report.secrets.append(&mut secrets);
                        documents.push(document);
                    }
                    Err(Rejected::Skipped(reason)) => skip(report, &path, reason),
                    Err(Rejected::Failed(message)) => {
                        report.documents -= 1;
                        let message = redaction::clean_message(raw, &message, &in_path);
                        fail(report, &path, message);
                    }
                }
            }
        }
        documents.sort_by(|a, b| a.record.path.cmp(&b.record.path));
        drop_conflicts(&mut documents, report);
        report.secrets.sort();
        report.indexed = documents.len() as u64;
        report.warnings.extend(documents.iter_mut().flat_map(|d| std::mem::take(&mut d.warnings)));
        documents
    }
}

/// Two files may get one path once bytes are escaped, and a hostile tree may hold `a` beside `a/b`.
fn drop_conflicts(documents: &mut Vec<Document>, report: &mut Report) {
    let mut kept: Vec<Document> = Vec::with_capacity(documents.len());
    let mut seen: rustc_hash::FxHashSet<String> = rustc_hash::FxHashSet::default();
    for document in documents.drain(..) {
        let path = &document.record.path;
        let above = path.match_indices('/').any(|(at, _)| seen.contains(&path[..at]));
        if above || !seen.insert(path.clone()) {
            skip(report, path.as_bytes(), SkipReason::DuplicatePath);
        } else {
            kept.push(document);
        }
    }
    *documents = kept;
}

fn shown(path: &[u8]) -> String {
    DocPath::from_bytes(path).map_or_else(
        |_| String::from_utf8_lossy(path).escape_debug().to_string(),
        |p| p.as_str().to_owned(),
    )
}

fn skip(report: &mut Report, path: &[u8], reason: SkipReason) {
    *report.skipped.entry(reason.name().to_owned()).or_insert(0) += 1;
    report.problems.push(Problem {
        path: shown(path),
        reason: reason.name().to_owned(),
        message: reason.explanation().to_owned(),
    });
}

fn fail(report: &mut Report, path: &[u8], message: String) {
    report.documents += 1;
    report.failed += 1;
    report.problems.push(Problem { path: shown(path), reason: "failed".into(), message });
}
