//! One run of the model: the vector of a text, and the vectors of spans within it.
//!
//! A span's vector is the mean of the model's outputs for its own tokens, each of which has seen the
//! whole window with its title and headings: late pooling (Guenther et al. 2024, "Late Chunking"). It
//! costs no run of its own. One fact in a long section is diluted in the mean over all of it, not in
//! that over its own line.

use super::Embedded;
use fastembed::{Error, OutputKey, Pooling, Result, TextEmbedding};
use std::ops::Range;

/// Which of the model's outputs is taken, the first that it has: what fastembed takes by default.
const OUTPUTS: &[OutputKey] = &[
    OutputKey::OnlyOne,
    OutputKey::ByName("text_embeds"),
    OutputKey::ByName("last_hidden_state"),
    OutputKey::ByName("sentence_embedding"),
];

/// Runs the model over one text; `spans` are byte ranges of it.
pub(super) fn run(
    session: &mut TextEmbedding,
    pooling: Pooling,
    text: &str,
    spans: &[Range<usize>],
) -> Result<Embedded> {
    let offsets = if spans.is_empty() { Vec::new() } else { offsets(session, text)? };
    let mut batches = session.transform([text], None)?.into_raw();
    let batch = batches.pop().ok_or_else(|| Error::Other("it returned no vector".into()))?;
    let pooled = batch.select_and_pool_output(&OUTPUTS, Some(pooling))?;
    let vector = unit(pooled.iter().copied().collect());
    if spans.is_empty() {
        return Ok(Embedded { vector, spans: Vec::new() });
    }
    let tokens = batch.select_output(&OUTPUTS)?;
    let per_token = tokens.shape() == [1, offsets.len(), vector.len()];
    let Some(tokens) = tokens.as_slice().filter(|_| per_token) else {
        // The model pools by itself: it has no vectors of tokens.
        return Ok(Embedded { vector, spans: Vec::new() });
    };
    let spans = spans.iter().flat_map(|span| mean(tokens, &offsets, span, &vector)).collect();
    Ok(Embedded { vector, spans })
}

/// Where each token stands in the text, in bytes; special tokens are empty.
fn offsets(session: &TextEmbedding, text: &str) -> Result<Vec<(usize, usize)>> {
    let encoding =
        session.tokenizer.encode(text, true).map_err(|e| Error::Tokenization(e.to_string()))?;
    Ok(encoding.get_offsets().to_vec())
}

/// The mean over the tokens of a span, of length 1; the whole text's where the span has no token, such
/// as one that the model no longer sees.
fn mean(
    tokens: &[f32],
    offsets: &[(usize, usize)],
    span: &Range<usize>,
    whole: &[f32],
) -> Vec<f32> {
    let mut sum = vec![0f32; whole.len()];
    let mut some = false;
    for (token, (start, end)) in tokens.chunks_exact(whole.len()).zip(offsets) {
        if start < end && *start >= span.start && *end <= span.end {
            some = true;
            sum.iter_mut().zip(token).for_each(|(s, t)| *s += t);
        }
    }
    if some { unit(sum) } else { whole.to_vec() }
}

fn unit(mut vector: Vec<f32>) -> Vec<f32> {
    let norm = vector.iter().map(|v| v * v).sum::<f32>().sqrt() + 1e-12;
    vector.iter_mut().for_each(|v| *v /= norm);
    vector
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_is_the_mean_of_its_own_tokens() {
        // Four tokens of two numbers: a special one, two words, a special one.
        let tokens = [9.0, 9.0, 1.0, 0.0, 0.0, 1.0, 9.0, 9.0];
        let offsets = [(0, 0), (0, 3), (4, 7), (0, 0)];
        let whole = [0.6, 0.8];
        assert_eq!(mean(&tokens, &offsets, &(0..3), &whole), [1.0, 0.0]);
        assert_eq!(mean(&tokens, &offsets, &(4..7), &whole), [0.0, 1.0]);
        let both = mean(&tokens, &offsets, &(0..7), &whole);
        assert!((both[0] - both[1]).abs() < 1e-6 && (both[0] - 0.5f32.sqrt()).abs() < 1e-6);
        // Half a token is none.
        assert_eq!(mean(&tokens, &offsets, &(5..6), &whole), whole);
    }
}
