//! Reading a lexical index, and BM25F over its fields.

use super::read_only::ReadOnly;
use super::{Fields, LexicalError, TEXT_FIELDS, TextField, at, schema};
use crate::score::Bm25Score;
use std::ops::Range;
use std::path::{Path, PathBuf};
use tantivy::directory::MmapDirectory;
use tantivy::postings::Postings;
use tantivy::schema::{Field, FieldType, IndexRecordOption, Schema};
use tantivy::{DocSet, Index, IndexReader, ReloadPolicy, Searcher, TERMINATED};

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
