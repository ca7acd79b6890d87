//! Secrets in trees: what is found, how fast, and how much of it is one by hand-made verdicts.
//!
//! A verdict names a finding by path, line, rule and a hash of the value; the value stands nowhere.

use anyhow::{Context, Result, bail};
use runbook_ingest::decode::decode;
use runbook_ingest::select::Selection;
use runbook_ingest::source::{CandidateKind, dir};
use runbook_shared::secrets;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::time::Instant;

/// A finding without its value.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Found {
    /// Path beneath the directory of trees.
    pub path: String,
    /// 1-based line.
    pub line: u32,
    /// The rule.
    pub rule: String,
    /// blake3 of the value, 16 hex digits.
    pub hash: String,
}

/// What was found in all documents.
pub struct Findings {
    /// In order of path and line.
    pub all: Vec<Found>,
    /// Documents that were read.
    pub documents: u64,
    /// Their size in bytes, decoded.
    pub bytes: u64,
    /// Megabytes (10^6 bytes) that one core reads in a second.
    pub mb_per_s: f64,
}

/// Verdicts on findings.
pub struct Judged {
    /// Findings that are secrets.
    pub right: usize,
    /// Findings that are none.
    pub wrong: usize,
    /// Findings without a verdict.
    pub unknown: Vec<Found>,
    /// Verdicts without a finding.
    pub left_over: usize,
}

impl Judged {
    /// Share of the findings with a verdict that are secrets, 0 to 1.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "a few hundred")]
    pub fn precision(&self) -> f64 {
        self.right as f64 / (self.right + self.wrong).max(1) as f64
    }
}

/// Looks for secrets in every document beneath a directory, on one core.
///
/// # Errors
/// When it cannot be listed, or holds no document.
pub fn find(trees: &Path) -> Result<Findings> {
    let selection = Selection::new(None, &[], &[])?;
    let (candidates, failed) = dir::list(trees, &selection)?;
    if let Some((path, message)) = failed.first() {
        bail!("{}: {message}", String::from_utf8_lossy(path));
    }
    let mut texts = Vec::new();
    for candidate in candidates.iter().filter(|c| matches!(c.kind, CandidateKind::File)) {
        let Ok(bytes) = dir::read(trees, &candidate.path)? else { continue };
        if let Ok(decoded) = decode(&bytes) {
            texts.push((String::from_utf8_lossy(&candidate.path).into_owned(), decoded.text));
        }
    }
    if texts.is_empty() {
        bail!("`{}` holds no document", trees.display());
    }
    // Patterns are compiled when they are first used.
    for (path, text) in &texts {
        let _ = secrets::find(&text[..text.floor_char_boundary(20_000)], path);
    }
    let bytes: usize = texts.iter().map(|(_, text)| text.len()).sum();
    let started = Instant::now();
    let found: Vec<_> = texts.iter().map(|(path, text)| secrets::find(text, path)).collect();
    let took = started.elapsed().as_secs_f64();
    let mut all: Vec<Found> = Vec::new();
    for ((path, text), found) in texts.iter().zip(found) {
        all.extend(found.into_iter().map(|f| Found {
            path: path.clone(),
            line: f.line,
            hash: blake3::hash(&text.as_bytes()[f.span]).to_hex()[..16].to_owned(),
            rule: f.rule,
        }));
    }
    all.sort();
    #[expect(clippy::cast_precision_loss, reason = "some megabytes")]
    let mb_per_s = bytes as f64 / 1e6 / took.max(1e-9);
    Ok(Findings { all, documents: texts.len() as u64, bytes: bytes as u64, mb_per_s })
}

impl Findings {
    /// A line for each.
    #[must_use]
    pub fn table(&self) -> String {
        let line = |f: &Found| format!("{}\t{}\t{}\t{}\n", f.path, f.line, f.rule, f.hash);
        self.all.iter().map(line).collect()
    }

    /// Looks up the verdicts.
    ///
    /// # Errors
    /// When the file cannot be read, or a line of it is not a verdict.
    pub fn judge(&self, file: &Path) -> Result<Judged> {
        let text = std::fs::read_to_string(file)
            .with_context(|| format!("cannot read `{}`", file.display()))?;
        let mut verdicts = BTreeMap::new();
        for (number, line) in text.lines().enumerate().filter(|(_, l)| !l.starts_with('#')) {
            let fields: Vec<&str> = line.split('\t').collect();
            let at = || format!("`{}` line {}", file.display(), number + 1);
            let [path, line, rule, hash, verdict] = fields[..] else {
                bail!("{}: five fields are wanted, separated by tabs", at());
            };
            let found = Found {
                path: path.to_owned(),
                line: line.parse().with_context(at)?,
                rule: rule.to_owned(),
                hash: hash.to_owned(),
            };
            match verdict {
                "true" => verdicts.insert(found, true),
                "false" => verdicts.insert(found, false),
                _ => bail!("{}: a verdict is `true` or `false`", at()),
            };
        }
        let mut judged = Judged { right: 0, wrong: 0, unknown: Vec::new(), left_over: 0 };
        for found in &self.all {
            match verdicts.remove(found) {
                Some(true) => judged.right += 1,
                Some(false) => judged.wrong += 1,
                None => judged.unknown.push(found.clone()),
            }
        }
        judged.left_over = verdicts.len();
        Ok(judged)
    }

    /// Figures, and the findings without a verdict.
    #[must_use]
    pub fn summary(&self, judged: Option<&Judged>) -> String {
        let mut out = format!(
            "{} findings in {} documents, {:.1} MB, {:.1} MB/s on one core\n",
            self.all.len(),
            self.documents,
            megabytes(self.bytes),
            self.mb_per_s
        );
        let mut rules: BTreeMap<&str, usize> = BTreeMap::new();
        for found in &self.all {
            *rules.entry(&found.rule).or_default() += 1;
        }
        for (rule, count) in rules {
            let _ = writeln!(out, "{count:6}  {rule}");
        }
        if let Some(j) = judged {
            let _ = writeln!(
                out,
                "precision {:.3}: {} right, {} wrong; {} without a verdict, {} verdicts without a finding",
                j.precision(),
                j.right,
                j.wrong,
                j.unknown.len(),
                j.left_over
            );
            for f in &j.unknown {
                let _ = writeln!(out, "no verdict: {}:{} {} {}", f.path, f.line, f.rule, f.hash);
            }
        }
        out
    }
}

#[expect(clippy::cast_precision_loss, reason = "some megabytes")]
fn megabytes(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}
