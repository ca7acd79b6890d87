//! The lexical index: tantivy's postings and BM25 (k1 1.2, b 0.75) under our own analyser.
//!
//! One tantivy document is one [`crate::chunk::Section`] of a chunk, numbered in the order of
//! chunks.jsonl. A question becomes term queries; no text of a user ever reaches a query parser.

use crate::analyse::{Term, TermKind, analyse};
use crate::score::Bm25Score;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tantivy::collector::{FilterCollector, TopDocs};
use tantivy::directory::error::{DeleteError, LockError, OpenReadError, OpenWriteError};
use tantivy::directory::{
    DirectoryLock, FileHandle, Lock, MmapDirectory, WatchCallback, WatchHandle, WritePtr,
};
use tantivy::query::{BooleanQuery, BoostQuery, Occur, Query, TermQuery};
use tantivy::schema::{
    Field, FieldType, IndexRecordOption, NumericOptions, Schema, TextFieldIndexing, TextOptions,
};
use tantivy::tokenizer::{PreTokenizedString, Token};
use tantivy::{
    Directory, Index, IndexReader, IndexSettings, IndexWriter, ReloadPolicy, Searcher,
    TantivyDocument,
};

/// The text fields, in the order of [`Fields::text`].
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

struct Fields {
    section: Field,
    text: [Field; 5],
}

fn schema() -> (Schema, Fields) {
    let mut builder = Schema::builder();
    let section = builder.add_u64_field("section", NumericOptions::default().set_fast());
    let text = FIELD_NAMES.map(|name| {
        let indexing = TextFieldIndexing::default()
            .set_tokenizer("raw")
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

fn at(path: &Path) -> impl FnOnce(tantivy::TantivyError) -> LexicalError + '_ {
    move |source| LexicalError { path: path.to_owned(), source }
}

/// Memory the writer may use before it writes a segment, in bytes.
const WRITER_BYTES: usize = 64 * 1024 * 1024;

/// Writes a lexical index.
pub struct LexicalWriter {
    path: PathBuf,
    writer: IndexWriter,
    fields: Fields,
}

impl LexicalWriter {
    /// Starts an index in an empty directory.
    ///
    /// # Errors
    /// When the directory cannot be written.
    pub fn create(path: &Path) -> Result<Self, LexicalError> {
        let (schema, fields) = schema();
        let directory = MmapDirectory::open(path).map_err(|e| at(path)(e.into()))?;
        let index = Index::create(directory, schema, IndexSettings::default()).map_err(at(path))?;
        let writer = index.writer_with_num_threads(1, WRITER_BYTES).map_err(at(path))?;
        Ok(Self { path: path.to_owned(), writer, fields })
    }

    /// Adds the section with this number.
    ///
    /// # Errors
    /// When the index cannot be written.
    pub fn add(&mut self, section: u64, doc: &LexicalDoc<'_>) -> Result<(), LexicalError> {
        let analysed = [doc.title, doc.trail, doc.prose, doc.code].map(analyse);
        let mut document = TantivyDocument::default();
        document.add_u64(self.fields.section, section);
        for field in TEXT_FIELDS {
            let tokens = match field {
                TextField::Ident => {
                    tokens(analysed.iter().flatten().filter(|t| t.kind == TermKind::Whole), false)
                }
                TextField::Code => tokens(words(&analysed[3]), false),
                _ => tokens(words(&analysed[field as usize]), true),
            };
            document.add_pre_tokenized_text(self.fields.text[field as usize], tokens);
        }
        self.writer.add_document(document).map_err(at(&self.path))?;
        Ok(())
    }

    /// Commits, merges into one segment and closes.
    ///
    /// # Errors
    /// When the index cannot be written.
    pub fn finish(mut self) -> Result<(), LexicalError> {
        self.writer.commit().map_err(at(&self.path))?;
        let segments = self.writer.index().searchable_segment_ids().map_err(at(&self.path))?;
        if segments.len() > 1 {
            self.writer.merge(&segments).wait().map_err(at(&self.path))?;
        }
        self.writer.garbage_collect_files().wait().map_err(at(&self.path))?;
        self.writer.wait_merging_threads().map_err(at(&self.path))
    }
}

fn words(terms: &[Term]) -> impl Iterator<Item = &Term> {
    terms.iter().filter(|t| t.kind == TermKind::Word)
}

fn tokens<'a>(terms: impl Iterator<Item = &'a Term>, stemmed: bool) -> PreTokenizedString {
    let tokens = terms
        .enumerate()
        .map(|(position, term)| Token {
            offset_from: 0,
            offset_to: 0,
            position,
            text: if stemmed { term.stem.clone() } else { term.surface.clone() },
            position_length: 1,
        })
        .collect();
    PreTokenizedString { text: String::new(), tokens }
}

/// A term in a field with the weight its BM25 score is multiplied by.
#[derive(Clone, Debug, PartialEq)]
pub struct WeightedTerm {
    /// The field.
    pub field: TextField,
    /// The term as indexed: a stem, or a surface in `code` and `ident`.
    pub text: String,
    /// The factor.
    pub weight: f32,
}

/// A lexical index that is open for reading.
pub struct LexicalIndex {
    path: PathBuf,
    reader: IndexReader,
    fields: Fields,
}

impl LexicalIndex {
    /// Opens the index in `path`; nothing is written there.
    ///
    /// # Errors
    /// When it is not an index of this program.
    pub fn open(path: &Path) -> Result<Self, LexicalError> {
        let directory = ReadOnly(MmapDirectory::open(path).map_err(|e| at(path)(e.into()))?);
        let index = Index::open(directory).map_err(at(path))?;
        let (expected, fields) = schema();
        let found = index.schema();
        if let Some((_, entry)) =
            expected.fields().find(|(f, e)| !same_field(&found, *f, e.name(), e.field_type()))
        {
            let message = format!("its field `{}` is missing or of another kind", entry.name());
            return Err(at(path)(tantivy::TantivyError::SchemaError(message)));
        }
        let reader = index
            .reader_builder()
            .reload_policy(ReloadPolicy::Manual)
            .try_into()
            .map_err(at(path))?;
        Ok(Self { path: path.to_owned(), reader, fields })
    }

    /// The number of sections.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.reader.searcher().num_docs()
    }

    /// True when nothing is indexed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// In how many sections a term stands in a field.
    ///
    /// # Errors
    /// When the index cannot be read.
    pub fn doc_freq(&self, field: TextField, text: &str) -> Result<u64, LexicalError> {
        let term = tantivy::Term::from_field_text(self.fields.text[field as usize], text);
        self.reader.searcher().doc_freq(&term).map_err(at(&self.path))
    }

    /// Calls `visit` with every term of a field and the number of sections it stands in.
    ///
    /// # Errors
    /// When the index cannot be read.
    pub fn for_each_term(
        &self,
        field: TextField,
        mut visit: impl FnMut(&str, u64),
    ) -> Result<(), LexicalError> {
        for segment in self.reader.searcher().segment_readers() {
            let inverted =
                segment.inverted_index(self.fields.text[field as usize]).map_err(at(&self.path))?;
            let mut stream = inverted.terms().stream().map_err(|e| at(&self.path)(e.into()))?;
            while stream.advance() {
                if let Ok(text) = std::str::from_utf8(stream.key()) {
                    visit(text, u64::from(stream.value().doc_freq));
                }
            }
        }
        Ok(())
    }

    /// The `k` best sections within `range`, best first; equal scores in the order of the sections.
    ///
    /// # Errors
    /// When the index cannot be read.
    pub fn search(
        &self,
        terms: &[WeightedTerm],
        range: &Range<u32>,
        k: usize,
    ) -> Result<Vec<(u32, Bm25Score)>, LexicalError> {
        if terms.is_empty() || k == 0 || range.is_empty() {
            return Ok(Vec::new());
        }
        let query = self.query(terms);
        let searcher = self.reader.searcher();
        let (from, to) = (u64::from(range.start), u64::from(range.end));
        let top = TopDocs::with_limit(k).order_by_score();
        let hits = if from == 0 && to >= searcher.num_docs() {
            searcher.search(&query, &top)
        } else {
            let inside = move |section: u64| (from..to).contains(&section);
            searcher.search(&query, &FilterCollector::new("section".into(), inside, top))
        };
        let hits = hits.map_err(at(&self.path))?;
        self.number(&searcher, hits).map_err(at(&self.path))
    }

    fn query(&self, terms: &[WeightedTerm]) -> BooleanQuery {
        let clauses = terms
            .iter()
            .map(|t| {
                let term =
                    tantivy::Term::from_field_text(self.fields.text[t.field as usize], &t.text);
                let query: Box<dyn Query> = Box::new(BoostQuery::new(
                    Box::new(TermQuery::new(term, IndexRecordOption::WithFreqs)),
                    t.weight,
                ));
                (Occur::Should, query)
            })
            .collect();
        BooleanQuery::new(clauses)
    }

    fn number(
        &self,
        searcher: &Searcher,
        hits: Vec<(f32, tantivy::DocAddress)>,
    ) -> tantivy::Result<Vec<(u32, Bm25Score)>> {
        let columns = searcher
            .segment_readers()
            .iter()
            .map(|s| s.fast_fields().u64("section"))
            .collect::<tantivy::Result<Vec<_>>>()?;
        let mut numbered: Vec<_> = hits
            .into_iter()
            .filter_map(|(score, address)| {
                let section = columns[address.segment_ord as usize].first(address.doc_id)?;
                Some((u32::try_from(section).ok()?, Bm25Score(score)))
            })
            .collect();
        numbered.sort_by(|a, b| b.1.0.total_cmp(&a.1.0).then(a.0.cmp(&b.0)));
        Ok(numbered)
    }
}

fn same_field(schema: &Schema, field: Field, name: &str, kind: &FieldType) -> bool {
    schema.get_field(name).is_ok_and(|f| f == field)
        && schema.get_field_entry(field).field_type() == kind
}

/// A directory that can only be read: tantivy would put a lock file there on opening.
#[derive(Clone, Debug)]
struct ReadOnly(MmapDirectory);

fn read_only() -> std::io::Error {
    std::io::Error::new(std::io::ErrorKind::ReadOnlyFilesystem, "a generation is never written")
}

impl Directory for ReadOnly {
    fn get_file_handle(&self, path: &Path) -> Result<Arc<dyn FileHandle>, OpenReadError> {
        self.0.get_file_handle(path)
    }
    fn delete(&self, path: &Path) -> Result<(), DeleteError> {
        Err(DeleteError::IoError { io_error: Arc::new(read_only()), filepath: path.to_owned() })
    }
    fn exists(&self, path: &Path) -> Result<bool, OpenReadError> {
        self.0.exists(path)
    }
    fn open_write(&self, path: &Path) -> Result<WritePtr, OpenWriteError> {
        Err(OpenWriteError::wrap_io_error(read_only(), path.to_owned()))
    }
    fn atomic_read(&self, path: &Path) -> Result<Vec<u8>, OpenReadError> {
        self.0.atomic_read(path)
    }
    fn atomic_write(&self, _path: &Path, _data: &[u8]) -> std::io::Result<()> {
        Err(read_only())
    }
    fn sync_directory(&self) -> std::io::Result<()> {
        Ok(())
    }
    fn acquire_lock(&self, _lock: &Lock) -> Result<DirectoryLock, LockError> {
        Ok(DirectoryLock::from(Box::new(())))
    }
    fn watch(&self, _callback: WatchCallback) -> tantivy::Result<WatchHandle> {
        Ok(WatchHandle::empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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

    fn body(text: &str) -> WeightedTerm {
        WeightedTerm { field: TextField::Body, text: text.into(), weight: 1.0 }
    }

    #[test]
    fn finds_inflections_and_keeps_to_the_range() {
        let (_dir, index) = index(&[
            ("restarting the database", ""),
            ("dns", ""),
            ("a database restarted twice", ""),
        ]);
        let restart = [body(&crate::stem::stem("restarts"))];
        let all = index.search(&restart, &(0..3), 10).unwrap();
        assert_eq!(all.iter().map(|h| h.0).collect::<Vec<_>>(), [0, 2]);
        let scoped = index.search(&restart, &(1..3), 1).unwrap();
        assert_eq!(scoped.iter().map(|h| h.0).collect::<Vec<_>>(), [2]);
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
