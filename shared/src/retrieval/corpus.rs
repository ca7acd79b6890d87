//! An open generation with what retrieval derives from it once: the vocabulary and the statistics.

use crate::generation::Generation;
use crate::lexical::{LexicalError, TextField};
use crate::vectors::dot_f32;
use rustc_hash::FxHashMap;
use std::ops::Range;

/// Windows from which the spread of a question's cosines is taken, at most.
const WINDOWS_SAMPLED: usize = 1024;

/// A generation that is ready to be asked.
pub struct Corpus {
    /// Name of the repository, as configured; empty when there is only one.
    pub repo: String,
    /// The generation.
    pub generation: Generation,
    /// In how many sections each stem stands, in any field.
    stems: FxHashMap<Box<str>, u32>,
    /// In how many sections each identifier stands.
    wholes: FxHashMap<Box<str>, u32>,
}

impl Corpus {
    /// Reads the vocabulary of a generation.
    ///
    /// # Errors
    /// When the lexical index cannot be read.
    pub fn new(repo: String, generation: Generation) -> Result<Self, LexicalError> {
        let mut stems: FxHashMap<Box<str>, u32> = FxHashMap::default();
        for field in [TextField::Title, TextField::Trail, TextField::Body] {
            generation.lexical.for_each_term(field, |text, df| add(&mut stems, text, df))?;
        }
        generation.lexical.for_each_term(TextField::Code, |text, df| {
            add(&mut stems, &crate::stem::stem(text), df);
        })?;
        let mut wholes: FxHashMap<Box<str>, u32> = FxHashMap::default();
        generation
            .lexical
            .for_each_term(TextField::Ident, |text, df| add(&mut wholes, text, df))?;
        Ok(Self { repo, generation, stems, wholes })
    }

    /// In how many sections a stem stands, roughly: fields are counted one by one, the most counts.
    #[must_use]
    pub fn stem_df(&self, stem: &str) -> u32 {
        self.stems.get(stem).copied().unwrap_or(0)
    }

    /// In how many sections an identifier stands as a whole.
    #[must_use]
    pub fn whole_df(&self, whole: &str) -> u32 {
        self.wholes.get(whole).copied().unwrap_or(0)
    }

    /// The number of sections.
    #[must_use]
    pub fn len(&self) -> usize {
        self.generation.sections.len()
    }

    /// True when nothing is indexed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Inverse document frequency of a term that stands in `df` sections.
    #[must_use]
    pub fn idf(&self, df: u32) -> f32 {
        crate::lexical::idf(self.len(), df as usize)
    }

    /// The word of the vocabulary that was probably meant by one that it does not hold: one edit
    /// away, two for words of eight letters and more, the most frequent of the nearest.
    #[must_use]
    pub fn correct(&self, stem: &str) -> Option<&str> {
        let length = stem.chars().count();
        if length < 5 || !stem.chars().all(char::is_alphabetic) {
            return None;
        }
        let most = if length >= 8 { 2 } else { 1 };
        let first = stem.chars().next();
        self.stems
            .iter()
            .filter(|(word, _)| {
                word.len().abs_diff(stem.len()) <= most && word.chars().next() == first
            })
            .map(|(word, df)| (strsim::osa_distance(stem, word), df, word))
            .filter(|(distance, _, _)| *distance <= most)
            .min_by(|a, b| a.0.cmp(&b.0).then(b.1.cmp(a.1)).then(a.2.cmp(b.2)))
            .map(|(_, _, word)| &**word)
    }

    /// Mean and standard deviation of a question's cosine over evenly spaced windows of the corpus;
    /// none without vectors.
    #[must_use]
    pub fn cosines(&self, question: &[f32]) -> Option<(f32, f32)> {
        let vectors = self.generation.vectors.as_ref().filter(|v| v.dim() == question.len())?;
        let step = vectors.len().div_ceil(WINDOWS_SAMPLED).max(1);
        let cosines: Vec<f32> = (0..vectors.len())
            .step_by(step)
            .map(|window| dot_f32(vectors.row(window), question))
            .collect();
        #[expect(clippy::cast_precision_loss, reason = "at most WINDOWS_SAMPLED")]
        let n = cosines.len().max(1) as f32;
        let mean = cosines.iter().sum::<f32>() / n;
        let variance = cosines.iter().map(|c| (c - mean).powi(2)).sum::<f32>() / n;
        (!cosines.is_empty()).then(|| (mean, variance.sqrt()))
    }

    /// The numbers of the sections in a scope: a path prefix, or everything.
    #[must_use]
    pub fn scope(&self, prefix: Option<&str>) -> Range<u32> {
        self.generation.scope(prefix.unwrap_or(""))
    }
}

fn add(map: &mut FxHashMap<Box<str>, u32>, text: &str, df: u64) {
    let df = u32::try_from(df).unwrap_or(u32::MAX);
    match map.get_mut(text) {
        Some(known) => *known = (*known).max(df),
        None => {
            map.insert(text.into(), df);
        }
    }
}
