//! One file to one document: decoded, outlined, cut; nothing here knows where it came from.

use crate::anchors::anchors;
use crate::chunker::{self, Source};
use crate::decode::{Decoded, decode};
use crate::outline::Outline;
use crate::select::SkipReason;
use runbook_shared::chunk::{Chunk, DocumentRecord, Heading};
use runbook_shared::doc_path::DocPath;
use runbook_shared::generation::manifest::ForgeKind;
use runbook_shared::limits::CHUNK_TOKENS_MAX;
use runbook_shared::tokens::TokenCounter;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// A document that is ready to be indexed.
#[derive(Debug)]
pub struct Document {
    /// Its record.
    pub record: DocumentRecord,
    /// Its own bytes.
    pub bytes: Vec<u8>,
    /// Its chunks, in order.
    pub chunks: Vec<Chunk>,
    /// What a writer should know.
    pub warnings: Vec<Warning>,
}

/// Something in a document that its writer should look at.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Warning {
    /// Path of the document.
    pub path: String,
    /// 1-based line.
    pub line: u32,
    /// What is odd.
    pub message: String,
}

/// Why a file did not become a document.
#[derive(Debug)]
pub enum Rejected {
    /// A rule leaves it out.
    Skipped(SkipReason),
    /// Something broke.
    Failed(String),
}

/// Reads a document.
///
/// # Errors
/// When it is skipped, or the parser fails on it: a panic in the parser is caught, since one bad
/// document must not stop the run.
pub fn parse(
    raw_path: &[u8],
    bytes: Vec<u8>,
    forge: Option<ForgeKind>,
    counter: &TokenCounter,
) -> Result<Document, Rejected> {
    let path =
        DocPath::from_bytes(raw_path).map_err(|_| Rejected::Skipped(SkipReason::InvalidPath))?;
    let decoded = decode(&bytes).map_err(Rejected::Skipped)?;
    let raw_path = std::str::from_utf8(raw_path).is_err().then(|| percent_encode(raw_path));
    catch_unwind(AssertUnwindSafe(|| build(&path, raw_path, &bytes, &decoded, forge, counter)))
        .map(|mut document| {
            document.bytes = bytes;
            document
        })
        .map_err(|panic| {
            let message = panic.downcast_ref::<String>().map(String::as_str);
            let message =
                message.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("unknown");
            Rejected::Failed(format!("the parser failed: {message}"))
        })
}

fn build(
    path: &DocPath,
    raw_path: Option<String>,
    bytes: &[u8],
    decoded: &Decoded,
    forge: Option<ForgeKind>,
    counter: &TokenCounter,
) -> Document {
    let outline = Outline::of(&decoded.text);
    let headings: Vec<Heading> = outline
        .headings
        .iter()
        .zip(anchors(&outline.headings, forge))
        .map(|(h, anchor)| Heading { level: h.level, text: h.text.clone(), anchor, line: h.line })
        .collect();
    let title = chunker::title(&outline, path.file_name());
    let source = Source {
        path: path.as_str(),
        text: &decoded.text,
        outline: &outline,
        headings: &headings,
        title: &title,
    };
    let chunks = chunker::chunks(&source, counter, CHUNK_TOKENS_MAX);
    let warnings = outline
        .unclosed
        .iter()
        .map(|f| Warning {
            path: path.as_str().to_owned(),
            line: f.line,
            message: "this fence is never closed: everything below it is code".into(),
        })
        .collect();
    let record = DocumentRecord {
        path: path.as_str().to_owned(),
        title: title.clone(),
        bytes: bytes.len() as u64,
        lines: u32::try_from(decoded.text.lines().count()).unwrap_or(u32::MAX),
        encoding: decoded.encoding.to_owned(),
        headings,
        raw_path,
    };
    Document { record, bytes: Vec::new(), chunks, warnings }
}

/// Percent-encodes all but unreserved characters and `/` (RFC 3986, 2.3).
fn percent_encode(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len());
    for b in bytes {
        if b.is_ascii_alphanumeric() || b"-._~/".contains(b) {
            out.push(char::from(*b));
        } else {
            out.push_str(&format!("%{b:02X}"));
        }
    }
    out
}
