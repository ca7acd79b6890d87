//! The lexical index: tantivy's postings under our own analyser, scored by BM25F.
//!
//! One tantivy document is one [`crate::chunk::Section`] of a chunk, numbered in the order of
//! chunks.jsonl. A question becomes term queries; no text of a user ever reaches a query parser.

use crate::analyse::{Term, TermKind, analyse};
use crate::score::Bm25Score;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tantivy::directory::error::{DeleteError, LockError, OpenReadError, OpenWriteError};
use tantivy::directory::{
    DirectoryLock, FileHandle, Lock, MmapDirectory, WatchCallback, WatchHandle, WritePtr,
};
use tantivy::postings::Postings;
use tantivy::schema::{
    Field, FieldType, IndexRecordOption, NumericOptions, Schema, TextFieldIndexing, TextOptions,
};
use tantivy::tokenizer::{PreTokenizedString, Token};
use tantivy::{
    Directory, Index, IndexReader, IndexSettings, IndexWriter, ReloadPolicy, Searcher,
    TantivyDocument,
};
use tantivy::{DocSet, TERMINATED};

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
        self.writer.wait_merging_threads().map_err(at(&self.path))?;
        share(&self.path).map_err(|e| at(&self.path)(e.into()))
    }
}

/// Gives every file the permissions that a new file gets here: tantivy writes some of them for their
/// owner alone, and the daemon may run as another user.
fn share(dir: &Path) -> std::io::Result<()> {
    let probe = dir.join(".permissions.lock");
    let usual = std::fs::File::create(&probe)?.metadata()?.permissions();
    std::fs::remove_file(&probe)?;
    for entry in std::fs::read_dir(dir)? {
        std::fs::set_permissions(entry?.path(), usual.clone())?;
    }
    Ok(())
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

/// Saturation of term frequency (Robertson and Zaragoza 2009, k1).
const K1: f32 = 1.2;
/// Length normalisation of each field (their b): full for text, little for titles and headings.
const B: [f32; 5] = [0.3, 0.3, 0.75, 0.75, 0.5];

/// One term of a question: the forms under which the fields hold it, and its weight.
#[derive(Clone, Debug, PartialEq)]
pub struct QueryTerm {
    /// Field, form (a stem, or a surface in `code` and `ident`) and the weight of the form.
    pub forms: Vec<(TextField, String, f32)>,
    /// The factor of its score.
    pub weight: f32,
}

/// A section with its score.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LexicalHit {
    /// Number of the section.
    pub section: u32,
    /// BM25F.
    pub score: Bm25Score,
    /// Bit n is set when term n of the question stands in the section, for the first 64.
    pub matched: u64,
    /// The same for title and heading trail alone.
    pub matched_heading: u64,
}

/// A lexical index that is open for reading.
pub struct LexicalIndex {
    path: PathBuf,
    reader: IndexReader,
    fields: Fields,
    /// For each segment, the section of each of its documents.
    sections: Vec<Vec<u32>>,
    /// For each field, what a term frequency is divided by in each section.
    norms: [Vec<f32>; 5],
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
        let sections = read_sections(&reader, path)?;
        let norms = read_norms(&reader, &fields, &sections).map_err(at(path))?;
        Ok(Self { path: path.to_owned(), reader, fields, sections, norms })
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

    /// All sections within `range` that hold a term, best first; equal scores in the order of the
    /// sections. The score is BM25F (Zaragoza et al. 2004): a term's frequencies are summed over the
    /// fields with their weights before they saturate, and its inverse document frequency counts the
    /// sections that hold it in any field.
    ///
    /// # Errors
    /// When the index cannot be read.
    pub fn search(
        &self,
        terms: &[QueryTerm],
        field_weights: &[f32; 5],
        range: &Range<u32>,
    ) -> Result<Vec<LexicalHit>, LexicalError> {
        let count = self.norms[0].len();
        let mut scores = vec![0f32; count];
        let mut matched = vec![[0u64; 2]; count];
        let mut frequency = vec![0f32; count];
        let mut touched: Vec<u32> = Vec::new();
        let mut all: Vec<u32> = Vec::new();
        let searcher = self.reader.searcher();
        for (n, term) in terms.iter().enumerate() {
            let bit = if n < 64 { 1u64 << n } else { 0 };
            for (field, form, form_weight) in &term.forms {
                let weight = field_weights[*field as usize] * form_weight;
                let heading = matches!(field, TextField::Title | TextField::Trail);
                self.postings(&searcher, *field, form, |section, tf| {
                    let at = section as usize;
                    if frequency[at] == 0.0 {
                        touched.push(section);
                    }
                    frequency[at] +=
                        (weight * tf / self.norms[*field as usize][at]).max(f32::MIN_POSITIVE);
                    matched[at][0] |= bit;
                    matched[at][1] |= if heading { bit } else { 0 };
                })
                .map_err(at(&self.path))?;
            }
            let idf = idf(count, touched.len()) * term.weight;
            for section in touched.drain(..) {
                let tf = std::mem::take(&mut frequency[section as usize]);
                let score = &mut scores[section as usize];
                if *score == 0.0 && range.contains(&section) {
                    all.push(section);
                }
                *score += (idf * tf * (K1 + 1.0) / (tf + K1)).max(f32::MIN_POSITIVE);
            }
        }
        let hit = |section: u32| LexicalHit {
            section,
            score: Bm25Score(scores[section as usize]),
            matched: matched[section as usize][0],
            matched_heading: matched[section as usize][1],
        };
        let mut hits: Vec<LexicalHit> = all.into_iter().map(hit).collect();
        hits.sort_by(|a, b| b.score.0.total_cmp(&a.score.0).then(a.section.cmp(&b.section)));
        Ok(hits)
    }

    fn postings(
        &self,
        searcher: &Searcher,
        field: TextField,
        form: &str,
        mut visit: impl FnMut(u32, f32),
    ) -> tantivy::Result<()> {
        let term = tantivy::Term::from_field_text(self.fields.text[field as usize], form);
        for (segment, sections) in searcher.segment_readers().iter().zip(&self.sections) {
            let inverted = segment.inverted_index(self.fields.text[field as usize])?;
            let Some(mut postings) = inverted.read_postings(&term, IndexRecordOption::WithFreqs)?
            else {
                continue;
            };
            let mut doc = postings.doc();
            while doc != TERMINATED {
                #[expect(clippy::cast_precision_loss, reason = "term frequencies are small")]
                visit(sections[doc as usize], postings.term_freq() as f32);
                doc = postings.advance();
            }
        }
        Ok(())
    }
}

/// Inverse document frequency as in BM25, never below 0.
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "counts of sections are far below 2^24")]
pub fn idf(sections: usize, holding: usize) -> f32 {
    let (n, df) = (sections as f32, holding as f32);
    (1.0 + (n - df + 0.5).max(0.0) / (df + 0.5)).ln()
}

fn read_sections(reader: &IndexReader, path: &Path) -> Result<Vec<Vec<u32>>, LexicalError> {
    let damaged =
        || at(path)(tantivy::TantivyError::SchemaError("its sections are not numbered".into()));
    let count = reader.searcher().num_docs();
    let mut seen = vec![false; usize::try_from(count).unwrap_or(0)];
    let mut all = Vec::new();
    for segment in reader.searcher().segment_readers() {
        let column = segment.fast_fields().u64("section").map_err(at(path))?;
        let mut sections = Vec::with_capacity(segment.max_doc() as usize);
        for doc in 0..segment.max_doc() {
            let section =
                column.first(doc).and_then(|s| u32::try_from(s).ok()).ok_or_else(damaged)?;
            let first = seen.get_mut(section as usize).is_some_and(|s| !std::mem::replace(s, true));
            if !first {
                return Err(damaged());
            }
            sections.push(section);
        }
        all.push(sections);
    }
    Ok(all)
}

#[expect(clippy::cast_precision_loss, reason = "lengths are far below 2^24")]
fn read_norms(
    reader: &IndexReader,
    fields: &Fields,
    sections: &[Vec<u32>],
) -> tantivy::Result<[Vec<f32>; 5]> {
    let count: usize = sections.iter().map(Vec::len).sum();
    let mut norms: [Vec<f32>; 5] = std::array::from_fn(|_| vec![1.0; count]);
    for field in TEXT_FIELDS {
        let norms = &mut norms[field as usize];
        for (segment, sections) in reader.searcher().segment_readers().iter().zip(sections) {
            let lengths = segment.get_fieldnorms_reader(fields.text[field as usize])?;
            for (doc, section) in (0u32..).zip(sections) {
                norms[*section as usize] = lengths.fieldnorm(doc) as f32;
            }
        }
        let mean = (norms.iter().sum::<f32>() / count.max(1) as f32).max(1e-3);
        let b = B[field as usize];
        for norm in norms.iter_mut() {
            *norm = 1.0 - b + b * *norm / mean;
        }
    }
    Ok(norms)
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
