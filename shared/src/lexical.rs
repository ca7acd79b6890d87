//! The lexical index: tantivy's postings under our own analyser, scored by BM25F.
//!
//! One tantivy document is one [`crate::chunk::Section`] of a chunk, numbered in the order of
//! chunks.jsonl. A question becomes term queries; no text of a user ever reaches a query parser.

mod read;
mod read_only;
mod write;

pub use read::{LexicalHit, LexicalIndex, QueryTerm, idf};
use std::path::{Path, PathBuf};
use tantivy::schema::{
    Field, IndexRecordOption, NumericOptions, Schema, TextFieldIndexing, TextOptions,
};
pub use write::LexicalWriter;

/// Names of the text fields in the schema, in the order of [`TextField`].
pub const FIELD_NAMES: [&str; 5] = ["title", "trail", "body", "code", "ident"];

/// A text field of the index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum TextField {
    /// The document's title, stemmed.
    Title = 0,
    /// The heading trail without the title, stemmed.
    Trail = 1,
    /// Prose, stemmed.
    Body = 2,
    /// Code blocks and code spans, not stemmed.
    Code = 3,
    /// Identifiers as wholes, from everywhere.
    Ident = 4,
}

/// All text fields.
pub const TEXT_FIELDS: [TextField; 5] =
    [TextField::Title, TextField::Trail, TextField::Body, TextField::Code, TextField::Ident];

/// The tokenizer that the schema names; no reader asks it for anything.
const TOKENIZER: &str = "raw";

struct Fields {
    section: Field,
    text: [Field; 5],
}

fn schema() -> (Schema, Fields) {
    let mut builder = Schema::builder();
    let section = builder.add_u64_field("section", NumericOptions::default().set_fast());
    let text = FIELD_NAMES.map(|name| {
        let indexing = TextFieldIndexing::default()
            .set_tokenizer(TOKENIZER)
            .set_fieldnorms(true)
            .set_index_option(IndexRecordOption::WithFreqs);
        builder.add_text_field(name, TextOptions::default().set_indexing_options(indexing))
    });
    (builder.build(), Fields { section, text })
}

/// What is indexed of one section.
#[derive(Clone, Debug, Default)]
pub struct LexicalDoc<'a> {
    /// Title of the document.
    pub title: &'a str,
    /// Headings, joined by spaces.
    pub trail: &'a str,
    /// Prose.
    pub prose: &'a str,
    /// Code.
    pub code: &'a str,
}

/// The index cannot be written or read.
#[derive(Debug, thiserror::Error)]
#[error("lexical index `{}`: {source}", path.display())]
pub struct LexicalError {
    path: PathBuf,
    #[source]
    source: tantivy::TantivyError,
}

impl LexicalError {
    /// What a file operation failed on, where it was one: the files may be as they should be.
    #[must_use]
    pub fn as_io(&self) -> Option<std::io::ErrorKind> {
        use tantivy::TantivyError as T;
        use tantivy::directory::error::{OpenDirectoryError, OpenReadError};
        match &self.source {
            T::IoError(e)
            | T::OpenReadError(OpenReadError::IoError { io_error: e, .. })
            | T::OpenDirectoryError(OpenDirectoryError::IoError { io_error: e, .. }) => {
                Some(e.kind())
            }
            _ => None,
        }
    }
}

fn at(path: &Path) -> impl FnOnce(tantivy::TantivyError) -> LexicalError + '_ {
    move |source| LexicalError { path: path.to_owned(), source }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ops::Range;

    fn index(docs: &[(&str, &str)]) -> (tempfile::TempDir, LexicalIndex) {
        let dir = tempfile::tempdir().unwrap();
        let mut writer = LexicalWriter::create(dir.path()).unwrap();
        for (n, (prose, code)) in docs.iter().enumerate() {
            writer.add(n as u64, &LexicalDoc { prose, code, ..LexicalDoc::default() }).unwrap();
        }
        writer.finish().unwrap();
        let index = LexicalIndex::open(dir.path()).unwrap();
        (dir, index)
    }

    fn body(text: &str) -> QueryTerm {
        QueryTerm { forms: vec![(TextField::Body, text.into(), 1.0)], weight: 1.0 }
    }

    fn sections(index: &LexicalIndex, terms: &[QueryTerm], range: Range<u32>) -> Vec<u32> {
        index.search(terms, &[1.0; 5], &range).unwrap().iter().map(|h| h.section).collect()
    }

    #[test]
    fn finds_inflections_and_keeps_to_the_range() {
        let (_dir, index) = index(&[
            ("restarting the database", ""),
            ("dns", ""),
            ("a database restarted twice", ""),
        ]);
        let restart = [body(&crate::stem::stem("restarts"))];
        assert_eq!(sections(&index, &restart, 0..3), [0, 2]);
        assert_eq!(sections(&index, &restart, 1..3), [2]);
    }

    #[test]
    fn matched_bits_name_the_terms() {
        let (_dir, index) = index(&[("alpha beta", "gamma"), ("alpha", "")]);
        let code = QueryTerm { forms: vec![(TextField::Code, "gamma".into(), 1.0)], weight: 1.0 };
        let hits = index.search(&[body("alpha"), body("beta"), code], &[1.0; 5], &(0..2)).unwrap();
        assert_eq!(
            hits.iter().map(|h| (h.section, h.matched)).collect::<Vec<_>>(),
            [(0, 0b111), (1, 0b001)]
        );
        assert!(hits[0].score.0 > hits[1].score.0);
    }

    #[test]
    fn every_file_has_the_permissions_of_a_new_one() {
        let (dir, _index) = index(&[("x", "")]);
        let usual = std::fs::File::create(dir.path().join("new")).unwrap();
        let usual = usual.metadata().unwrap().permissions();
        for entry in std::fs::read_dir(dir.path()).unwrap() {
            let entry = entry.unwrap();
            assert_eq!(entry.metadata().unwrap().permissions(), usual, "{:?}", entry.file_name());
        }
    }

    #[test]
    fn opening_writes_nothing() {
        let (dir, index) = index(&[("x", "")]);
        let list = |dir: &Path| {
            let mut names: Vec<_> =
                std::fs::read_dir(dir).unwrap().map(|e| e.unwrap().file_name()).collect();
            names.sort();
            names
        };
        drop(index);
        for name in list(dir.path()) {
            if name.to_string_lossy().ends_with(".lock") {
                std::fs::remove_file(dir.path().join(name)).unwrap();
            }
        }
        let before = list(dir.path());
        LexicalIndex::open(dir.path()).unwrap();
        assert_eq!(list(dir.path()), before);
    }
}
