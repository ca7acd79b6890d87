//! The one place where secrets leave a document: its bytes and path, before anything is made of them.
//!
//! What comes out of here is what is cut, embedded, indexed, copied, logged and reported. The number of
//! lines stays, and so do encoding, byte order mark and line ends.

use crate::decode::{self, Encoded};
use crate::document::Rejected;
use crate::source::printable;
use runbook_shared::error::{IoContext, PathError};
use runbook_shared::generation::{self, GENERATIONS};
use runbook_shared::secrets::{self, Finding, Policy};
use serde::{Deserialize, Serialize};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::Path;

/// The key of the options under which a manifest says how secrets were looked for.
pub const OPTION: &str = "secrets";

/// A secret that was found and redacted; its value is nowhere.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
pub struct Secret {
    /// Path of the document, redacted itself.
    pub path: String,
    /// 1-based line; 0 where the path holds it.
    pub line: u32,
    /// The rule that found it.
    pub rule: String,
}

/// What is left of a file.
#[derive(Debug, PartialEq, Eq)]
pub struct Clean {
    /// Its path.
    pub path: Vec<u8>,
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// What was redacted.
    pub secrets: Vec<Secret>,
}

/// Redacts a file. Bytes that are no text are given back as they are: no document is made of them.
#[must_use]
pub fn clean(raw_path: &[u8], bytes: Vec<u8>, policy: &Policy) -> Clean {
    let (path, in_path) = clean_path(raw_path, policy);
    let shown = printable(&String::from_utf8_lossy(&path));
    let noted = |f: &Finding, line| Secret { path: shown.clone(), line, rule: f.rule.clone() };
    let mut secrets: Vec<Secret> = in_path.iter().map(|f| noted(f, 0)).collect();
    let bytes = match decode::decode_with_ends(&bytes) {
        Ok(encoded) if policy.enabled => {
            let found = policy.find(&encoded.decoded.text, &shown);
            secrets.extend(found.iter().map(|f| noted(f, f.line)));
            if found.is_empty() { bytes } else { redacted(encoded, &found) }
        }
        _ => bytes,
    };
    Clean { path, bytes, secrets }
}

/// Redacts files on all cores, in their order. One on which this fails, a panic among it, is rejected:
/// nothing is made of a file that could not be looked at.
#[must_use]
pub fn clean_all(files: Vec<File<'_>>, policy: &Policy) -> Vec<Result<Clean, Rejected>> {
    let one = |(path, bytes): File<'_>| {
        let bytes = bytes?;
        catch_unwind(AssertUnwindSafe(|| clean(path, bytes, policy)))
            .map_err(|_| Rejected::Failed("looking for secrets failed; this is a bug".into()))
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let share = files.len().div_ceil(threads).max(1);
    let mut files = files.into_iter();
    let shares: Vec<Vec<File<'_>>> = std::iter::from_fn(|| {
        let part: Vec<_> = files.by_ref().take(share).collect();
        (!part.is_empty()).then_some(part)
    })
    .collect();
    std::thread::scope(|scope| {
        let running: Vec<_> = shares
            .into_iter()
            .map(|part| scope.spawn(move || part.into_iter().map(one).collect::<Vec<_>>()))
            .collect();
        running.into_iter().flat_map(|t| t.join().unwrap_or_else(|p| resume_unwind(p))).collect()
    })
}

/// A path, and what was read.
pub type File<'a> = (&'a [u8], Result<Vec<u8>, Rejected>);

fn redacted(mut encoded: Encoded, found: &[Finding]) -> Vec<u8> {
    encoded.decoded.text = secrets::redact(&encoded.decoded.text, found);
    encoded.bytes()
}

/// A path without secrets, and what was in it.
#[must_use]
pub fn clean_path(path: &[u8], policy: &Policy) -> (Vec<u8>, Vec<Finding>) {
    let Ok(text) = std::str::from_utf8(path) else { return (path.to_vec(), Vec::new()) };
    let mut found = policy.find(text, text);
    // A name is one line, and what stands between slashes is one name.
    found.retain(|f| !text[f.span.clone()].contains('/'));
    (secrets::redact(text, &found).into_bytes(), found)
}

/// A message about a file, without the secrets of its path.
#[must_use]
pub fn clean_message(path: &[u8], message: &str, in_path: &[Finding]) -> String {
    let Ok(path) = std::str::from_utf8(path) else { return message.to_owned() };
    in_path.iter().fold(message.to_owned(), |message, finding| {
        message.replace(&path[finding.span.clone()], &format!("[REDACTED:{}]", finding.rule))
    })
}

/// Removes generations that were made with other rules for secrets: they may hold what is redacted now.
/// `kept` are those that a reader may still be about to open.
///
/// # Errors
/// When a directory cannot be listed or removed.
pub fn forget_others(data: &Path, kept: &[&str], stamp: &str) -> Result<(), PathError> {
    let dir = data.join(GENERATIONS);
    for entry in std::fs::read_dir(&dir).at("list", &dir)? {
        let entry = entry.at("list", &dir)?;
        let name = entry.file_name();
        let Some(id) = name.to_str().filter(|id| !kept.contains(id) && !id.starts_with('.')) else {
            continue;
        };
        // What cannot be read is left to the one who looks after it.
        let Ok(manifest) = generation::read_manifest(data, id) else { continue };
        if manifest.options.get(OPTION).is_none_or(|s| s != stamp) {
            tracing::info!("generation {id} is removed: it was made with other rules for secrets");
            std::fs::remove_dir_all(entry.path()).at("remove", &entry.path())?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cleaned(bytes: &[u8]) -> Clean {
        clean(b"db.md", bytes.to_vec(), &Policy::default())
    }

    #[test]
    fn bytes_keep_their_encoding_ends_and_lines() {
        let text = "h\u{e9}\r\nurl: postgres://app:Zq8-uT5x@db/x\r\nlast\rone\n";
        let wanted =
            "h\u{e9}\r\nurl: postgres://app:[REDACTED:url-credentials]@db/x\r\nlast\rone\n";
        let with_mark = |t: &str| [b"\xef\xbb\xbf", t.as_bytes()].concat();
        assert_eq!(cleaned(&with_mark(text)).bytes, with_mark(wanted));
        let utf16 = |t: &str| -> Vec<u8> {
            let units = t.encode_utf16().flat_map(u16::to_be_bytes);
            [0xfe, 0xff].into_iter().chain(units).collect()
        };
        let clean = cleaned(&utf16(text));
        assert_eq!(clean.bytes, utf16(wanted));
        let rule = "url-credentials".to_owned();
        assert_eq!(clean.secrets, [Secret { path: "db.md".into(), line: 2, rule }]);
        let latin1 = |t: &str| -> Vec<u8> { t.chars().map(|c| c as u8).collect() };
        assert_eq!(cleaned(&latin1(text)).bytes, latin1(wanted));
        let none = cleaned(b"no \r\n secret");
        assert_eq!((none.bytes.as_slice(), none.secrets.len()), (&b"no \r\n secret"[..], 0));
    }

    #[test]
    fn a_path_is_redacted_too() {
        let name = format!("ops/token-{}{}.md", "ghp_", "x7Kq2LmZ9aRt4VwB8nCd3EfGh6JkPs1QyTuM");
        let clean = clean(name.as_bytes(), b"text".to_vec(), &Policy::default());
        let path = String::from_utf8(clean.path).unwrap();
        assert_eq!(path, "ops/token-[REDACTED:github-pat].md");
        assert_eq!((clean.secrets[0].path.as_str(), clean.secrets[0].line), (path.as_str(), 0));
    }
}
