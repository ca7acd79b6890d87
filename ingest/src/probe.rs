//! Probes: questions to a new generation that show how its gate will do, before anybody asks.
//!
//! Own questions are made from sections of the corpus: with the section there, a refusal is a false
//! one; with it left out of the search, an answer is. Foreign questions are about things that no
//! runbook is for. What comes out is an estimate for the manifest and the status, not a promise: own
//! questions use the words of their section, which people do not always.

use crate::vector_cache::{Key, VectorCache, key};
use runbook_shared::analyse::{TermKind, analyse, is_stop_word};
use runbook_shared::chunk::Chunk;
use runbook_shared::embed::{EmbedError, Embedded, Embedder, EmbedderId};
use runbook_shared::error::PathError;
use runbook_shared::generation::manifest::Calibration;
use runbook_shared::lexical::LexicalError;
use runbook_shared::markdown::plain;
use runbook_shared::retrieval::arms::{Arm, Hit, Tuning};
use runbook_shared::retrieval::corpus::Corpus;
use runbook_shared::retrieval::question::Question;
use runbook_shared::retrieval::search::{self, Found, Search};
use runbook_shared::retrieval::{evidence, model};
use rustc_hash::FxHashSet;
use std::sync::Arc;

/// Own questions, at most.
const OWN: usize = 48;
/// Words of an own question.
const WORDS: usize = 4;
/// Terms that a section's prose must have to be asked about.
const TERMS_MIN: usize = 12;
/// Questions about other things than runbooks, one a line.
const FOREIGN: &str = include_str!("probe/foreign.txt");

/// A question and, where it was made from one, the number of its section.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Probe {
    /// The question.
    pub text: String,
    /// The section that answers it; none for a foreign one.
    pub section: Option<u32>,
}

/// The probes of a corpus: own questions of the sections whose content hashes are lowest, so that few
/// of them change from one generation to the next, and the foreign ones.
#[must_use]
pub fn probes(chunks: &[Chunk]) -> Vec<Probe> {
    let mut all: Vec<([u8; 8], u32, &Chunk, usize)> = Vec::new();
    let mut number = 0u32;
    for chunk in chunks {
        for (at, section) in chunk.sections.iter().enumerate() {
            let mut hasher = blake3::Hasher::new();
            hasher.update(section.heading_path.join("\n").as_bytes());
            hasher.update(chunk.section_text(section).as_bytes());
            let mut order = [0; 8];
            order.copy_from_slice(&hasher.finalize().as_bytes()[..8]);
            all.push((order, number, chunk, at));
            number += 1;
        }
    }
    all.sort_unstable_by_key(|(order, number, ..)| (*order, *number));
    let mut seen = FxHashSet::default();
    let own = all.iter().filter_map(|(_, number, chunk, at)| {
        let text = question(chunk, *at)?;
        seen.insert(text.clone()).then_some(Probe { text, section: Some(*number) })
    });
    let mut probes: Vec<Probe> = own.take(OWN).collect();
    let foreign = FOREIGN.lines().filter(|l| !l.is_empty());
    probes.extend(foreign.map(|l| Probe { text: l.to_owned(), section: None }));
    probes
}

/// A question for a section: a few words from all over its prose, without those of its headings. With
/// more words, or with headings, nearly every probe finds its section, which people's questions do not
/// (docs/measurements.md). None for a section with little prose.
fn question(chunk: &Chunk, section: usize) -> Option<String> {
    let section = &chunk.sections[section];
    let prose = plain(chunk.section_text(section)).prose;
    let terms: Vec<String> = analyse(&prose)
        .into_iter()
        .filter(|t| t.kind == TermKind::Word && !t.within && !is_stop_word(&t.surface))
        .map(|t| t.surface)
        .collect();
    if terms.len() < TERMS_MIN {
        return None;
    }
    let step = (terms.len() / WORDS).max(1);
    let words: Vec<&str> = terms.iter().step_by(step).take(WORDS).map(String::as_str).collect();
    Some(words.join(" "))
}

/// What went wrong while probing.
#[derive(Debug, thiserror::Error)]
pub enum ProbeError {
    /// The model failed.
    #[error(transparent)]
    Embed(#[from] EmbedError),
    /// The cache cannot be written.
    #[error(transparent)]
    Cache(#[from] PathError),
    /// The lexical index cannot be read.
    #[error(transparent)]
    Lexical(#[from] LexicalError),
}

/// The key of a question in the cache; questions and passages do not share vectors.
fn question_key(probe: &Probe, embedder: &EmbedderId) -> Key {
    key(&format!("question\0{}{}", embedder.query_prefix, probe.text))
}

/// The keys of the probes' vectors in the cache.
pub fn keys<'a>(probes: &'a [Probe], embedder: &'a EmbedderId) -> impl Iterator<Item = Key> + 'a {
    probes.iter().map(|p| question_key(p, embedder))
}

/// The vectors of the probes, known ones from the cache.
///
/// # Errors
/// When the model fails or the cache cannot be written.
pub fn embed(
    probes: &[Probe],
    embedder: &dyn Embedder,
    cache: &mut VectorCache,
) -> Result<Vec<Vec<f32>>, ProbeError> {
    let mut vectors = Vec::with_capacity(probes.len());
    for probe in probes {
        let key = question_key(probe, embedder.id());
        if cache.get(&key).is_none() {
            let vector = embedder.embed_question(&probe.text)?;
            cache.put(key, &Embedded { vector, spans: Vec::new() })?;
        }
        vectors.push(cache.get(&key).map(|k| k.vector.to_vec()).unwrap_or_default());
    }
    Ok(vectors)
}

/// Asks the probes; `vectors` are theirs, empty without an embedder.
///
/// # Errors
/// When the index cannot be read.
pub fn measure(
    corpus: Corpus,
    probes: &[Probe],
    vectors: &[Vec<f32>],
) -> Result<Calibration, ProbeError> {
    let sha = corpus.generation.manifest.embedder.as_ref().map(|e| e.model_sha256.clone());
    let corpora = [Arc::new(corpus)];
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let each = probes.len().div_ceil(threads).max(1);
    let asked: Vec<Result<Vec<Asked>, LexicalError>> = std::thread::scope(|scope| {
        let parts = probes.chunks(each).enumerate().map(|(n, part)| {
            let (corpora, sha) = (&corpora, sha.as_deref());
            scope.spawn(move || {
                let one = |(at, probe)| {
                    let vector = vectors.get(n * each + at).map(Vec::as_slice);
                    ask(corpora, probe, vector.zip(sha))
                };
                part.iter().enumerate().map(one).collect()
            })
        });
        let parts: Vec<_> = parts.collect();
        let join = |p: std::thread::ScopedJoinHandle<'_, _>| {
            p.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        parts.into_iter().map(join).collect()
    });
    let mut calibration = Calibration::default();
    let mut own_found = 0u32;
    for one in asked.into_iter().collect::<Result<Vec<_>, _>>()?.into_iter().flatten() {
        match one {
            Asked::Own { there, left_out, found } => {
                calibration.own.push(there);
                calibration.left_out.push(left_out);
                own_found += u32::from(found);
            }
            Asked::Foreign(confidence) => calibration.foreign.push(confidence),
        }
    }
    calibration.own_found = own_found;
    for list in [&mut calibration.own, &mut calibration.left_out, &mut calibration.foreign] {
        list.sort_by(f32::total_cmp);
    }
    Ok(calibration)
}

/// The Confidence in the best section that a probe found.
enum Asked {
    Own { there: f32, left_out: f32, found: bool },
    Foreign(f32),
}

fn ask(
    corpora: &[Arc<Corpus>],
    probe: &Probe,
    vector: Option<(&[f32], &str)>,
) -> Result<Asked, LexicalError> {
    let tuning = Tuning::default();
    // A text that is no question (white space, too long) finds nothing.
    let Ok(question) = Question::parse(&probe.text) else { return Ok(Asked::Foreign(0.0)) };
    let asked = Search { question: &question, vector, scope: None };
    let mut found = search::search(corpora, &asked, Arm::Hybrid, &tuning)?;
    let there = confidence(corpora, &found, vector);
    let Some(section) = probe.section else { return Ok(Asked::Foreign(there)) };
    let own = |hit: &Hit| same_text(&corpora[0], hit.section, section);
    let first = found.hits.first().is_some_and(own);
    search::leave_out(corpora, &mut found, own, Arm::Hybrid, &tuning);
    Ok(Asked::Own { there, left_out: confidence(corpora, &found, vector), found: first })
}

/// Copies of a section answer what it answers.
fn same_text(corpus: &Corpus, a: u32, b: u32) -> bool {
    let text = |number| {
        let (chunk, section) = corpus.generation.section(number);
        chunk.section_text(section)
    };
    a == b || text(a) == text(b)
}

/// The Confidence in the best hit, to four digits; 0 without one.
fn confidence(corpora: &[Arc<Corpus>], found: &Found, vector: Option<(&[f32], &str)>) -> f32 {
    let Some(best) = found.hits.first() else { return 0.0 };
    let vector_of = vector.map(|v| v.0);
    let signals = evidence::signals(&corpora[0], &found.terms[0], vector_of, &found.hits, best);
    let confidence = model::for_embedder(vector.map(|v| v.1)).confidence(&signals).get();
    (confidence * 1e4).round() / 1e4
}
