//! Documents, headings, sections and chunks: what ingest cuts and query serves.
//!
//! These are also the records of `documents.jsonl` and `chunks.jsonl`; docs/index-format.md
//! describes the fields for readers that are not this program.

use serde::{Deserialize, Serialize};

/// A heading of a document, as CommonMark sees it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Heading {
    /// 1 to 6.
    pub level: u8,
    /// Plain text: no markup, no `{#id}`, no comment, one line.
    pub text: String,
    /// The fragment under which the forge shows it, without `#`; empty when it has none.
    pub anchor: String,
    /// 1-based line of the heading.
    pub line: u32,
}

/// One document of a generation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DocumentRecord {
    /// Path relative to the root of the repository; bytes that are not UTF-8 are escaped as `\xNN`.
    pub path: String,
    /// Front matter title, else the first h1, else the file name.
    pub title: String,
    /// Size of the stored copy, in bytes.
    pub bytes: u64,
    /// Number of lines.
    pub lines: u32,
    /// How the bytes were decoded: `utf-8`, `utf-16le`, `utf-16be` or `latin-1`.
    pub encoding: String,
    /// All headings, in order.
    pub headings: Vec<Heading>,
    /// The path percent-encoded byte for byte, where it is not UTF-8; links are made from it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw_path: Option<String>,
}

/// One piece of a Section that was too large for one chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Part {
    /// 1-based number of this piece.
    pub index: u32,
    /// How many pieces there are.
    pub of: u32,
}

/// What stands under one heading within a chunk.
///
/// A chunk holds a `##` section with its subsections; each subsection is one of these, so that a
/// citation names the innermost heading.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Section {
    /// Headings from the outermost to the innermost; empty for a preamble.
    pub heading_path: Vec<String>,
    /// The innermost heading's anchor, empty for a preamble.
    pub anchor: String,
    /// First and last line in the document, 1-based and inclusive.
    pub lines: [u32; 2],
    /// Where the section starts in the chunk's text, in bytes.
    pub start: u32,
    /// Where it ends.
    pub end: u32,
}

/// A retrievable piece of a document.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Chunk {
    /// Stable name: it depends on path, headings and part, not on line numbers.
    pub id: String,
    /// Path of the document.
    pub path: String,
    /// Title of the document.
    pub title: String,
    /// Headings from the outermost to the one the chunk stands under; empty for a preamble.
    pub heading_path: Vec<String>,
    /// Anchor of the innermost heading of `heading_path`, empty for a preamble.
    pub anchor: String,
    /// First and last line in the document, 1-based and inclusive.
    pub lines: [u32; 2],
    /// Which piece of its section this is, where the section had to be cut.
    pub part: Option<Part>,
    /// The text: `repeated` lines, then the lines of the document, then `appended` lines.
    pub text: String,
    /// Tokens of `text`, counted with the embedder's tokenizer.
    pub tokens: u32,
    /// blake3 of title, headings and text, 32 hex digits.
    pub content_hash: String,
    /// Leading lines of `text` that repeat a fence or a table header from further up.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub repeated: u32,
    /// Trailing lines of `text` that stand elsewhere: a closing fence, link and footnote definitions.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub appended: u32,
    /// The sections within, in order; they cover the text.
    pub sections: Vec<Section>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands a reference")]
fn is_zero(n: &u32) -> bool {
    *n == 0
}

impl Chunk {
    /// The text of one of its sections.
    ///
    /// # Panics
    /// When `section` is not one of this chunk's own; [`Chunk::check`] guards what is read from disk.
    #[must_use]
    pub fn section_text(&self, section: &Section) -> &str {
        &self.text[section.start as usize..section.end as usize]
    }

    /// Checks what a reader relies on: sections lie in the text, on character boundaries, in order.
    ///
    /// # Errors
    /// A message that says what is wrong.
    pub fn check(&self) -> Result<(), String> {
        let mut end = 0;
        for s in &self.sections {
            let (from, to) = (s.start as usize, s.end as usize);
            if from < end
                || to < from
                || !self.text.is_char_boundary(from)
                || !self.text.is_char_boundary(to)
            {
                return Err(format!(
                    "chunk `{}`: section range {from}..{to} is not in its text",
                    self.id
                ));
            }
            end = to;
        }
        if self.sections.is_empty() {
            return Err(format!("chunk `{}` has no section", self.id));
        }
        if self.lines[0] == 0 || self.lines[0] > self.lines[1] {
            return Err(format!("chunk `{}`: lines {:?} are not a range", self.id, self.lines));
        }
        Ok(())
    }
}

/// The heading a citation names: the innermost one, or the title for a preamble.
#[must_use]
pub fn innermost<'a>(heading_path: &'a [String], title: &'a str) -> &'a str {
    heading_path.last().map_or(title, String::as_str)
}
