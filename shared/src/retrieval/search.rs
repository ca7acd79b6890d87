//! One search over all corpora in scope: both arms, their fusion, and the lift for proximity.

use super::arms::{self, Arm, Hit, LookedUp, Tuning};
use super::corpus::Corpus;
use super::evidence;
use super::question::Question;
use crate::lexical::LexicalError;
use crate::markdown::link_share;
use std::sync::Arc;

/// What is searched for.
#[derive(Clone, Copy, Debug)]
pub struct Search<'a> {
    /// The question.
    pub question: &'a Question,
    /// The question's vector with the sha256 of the model that made it, where the dense arm can run.
    pub vector: Option<(&'a [f32], &'a str)>,
    /// Path prefix, or `repo:NAME`.
    pub scope: Option<&'a str>,
}

/// Sections in order, with what they were looked up by.
pub struct Found {
    /// Hits, best first.
    pub hits: Vec<Hit>,
    /// Terms of the question in each corpus.
    pub terms: Vec<Vec<LookedUp>>,
}

/// Searches all corpora in scope.
///
/// # Errors
/// When an index cannot be read.
pub fn search(
    corpora: &[Arc<Corpus>],
    search: &Search<'_>,
    arm: Arm,
    tuning: &Tuning,
) -> Result<Found, LexicalError> {
    let (repo, prefix) = match search.scope.and_then(|s| s.strip_prefix("repo:")) {
        Some(repo) => (Some(repo), None),
        None => (None, search.scope),
    };
    let in_scope = |c: &Corpus| repo.is_none_or(|name| name == c.repo);
    // Where one corpus can only be searched by words, all are: sections without a cosine would lose to
    // any that has one.
    let vector =
        search.vector.filter(|v| corpora.iter().filter(|c| in_scope(c)).all(|c| made_with(c, v.1)));
    let mut found = Found { hits: Vec::new(), terms: vec![Vec::new(); corpora.len()] };
    for (number, corpus) in corpora.iter().enumerate() {
        if !in_scope(corpus) {
            continue;
        }
        let scope = corpus.scope(prefix);
        let vector = vector.map(|v| v.0);
        let result = arms::retrieve(corpus, number, search.question, vector, &scope, tuning)?;
        found.hits.extend(result.hits);
        found.terms[number] = result.terms;
    }
    order(corpora, &mut found, arm, tuning);
    Ok(found)
}

/// Leaves hits out, as if the corpora did not hold them, and orders the rest anew: what a question
/// finds whose answer is missing. For fitting and for probes.
pub fn leave_out(
    corpora: &[Arc<Corpus>],
    found: &mut Found,
    mut left_out: impl FnMut(&Hit) -> bool,
    arm: Arm,
    tuning: &Tuning,
) {
    found.hits.retain(|hit| !left_out(hit));
    for (number, corpus) in corpora.iter().enumerate() {
        arms::rate_pages(corpus, number, &mut found.hits);
    }
    order(corpora, found, arm, tuning);
}

fn order(corpora: &[Arc<Corpus>], found: &mut Found, arm: Arm, tuning: &Tuning) {
    arms::fuse(&mut found.hits, arm, tuning);
    if arm == Arm::Hybrid {
        drop_those_that_ask(corpora, found, tuning);
        rerank(corpora, found, tuning);
    }
}

/// Drops those of the first hits that were found by a list of questions: it asks what was asked, and
/// answers nothing.
fn drop_those_that_ask(corpora: &[Arc<Corpus>], found: &mut Found, tuning: &Tuning) {
    let terms = &found.terms;
    let mut looked_at = 0;
    found.hits.retain(|hit| {
        looked_at += 1;
        let (chunk, section) = corpora[hit.corpus].generation.section(hit.section);
        let heading = section.heading_path.join(" ");
        let own: Vec<&LookedUp> = terms[hit.corpus].iter().filter(|t| !t.term.within).collect();
        let text = chunk.section_text(section);
        looked_at > tuning.reranked || !evidence::only_asks(text, &[&chunk.title, &heading], &own)
    });
}

/// Lifts those of the first hits in which the question's terms stand close together: a line that
/// holds them all is more likely to hold the fact than a page that mentions each somewhere. The less of
/// a question stands in any section, the less it says where the rest of it does. What only points to other
/// pages is put back: it holds their words and none of what they say.
fn rerank(corpora: &[Arc<Corpus>], found: &mut Found, tuning: &Tuning) {
    let covered = found.hits.iter().map(|h| h.coverage).fold(0f32, f32::max);
    let share = tuning.proximity_share * covered;
    for hit in found.hits.iter_mut().take(tuning.reranked) {
        let (chunk, section) = corpora[hit.corpus].generation.section(hit.section);
        let own: Vec<&LookedUp> =
            found.terms[hit.corpus].iter().filter(|t| !t.term.within).collect();
        let text = chunk.section_text(section);
        let near = evidence::proximity(text, &own, tuning.stretch);
        hit.fused.0 = (1.0 - share) * hit.fused.0 + share * near;
        if link_share(text) >= tuning.pointers_from {
            hit.fused.0 *= tuning.pointers_factor;
        }
    }
    for hit in found.hits.iter_mut().skip(tuning.reranked) {
        hit.fused.0 *= 1.0 - share;
    }
    found.hits.sort_by(|a, b| {
        b.fused.0.total_cmp(&a.fused.0).then((a.corpus, a.section).cmp(&(b.corpus, b.section)))
    });
}

/// Vectors compare only with those of the same model.
#[must_use]
pub fn made_with(corpus: &Corpus, model_sha256: &str) -> bool {
    corpus.generation.manifest.embedder.as_ref().is_some_and(|e| e.model_sha256 == model_sha256)
}
