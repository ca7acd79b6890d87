//! Counting tokens as the embedder's tokenizer does, fast enough to cut chunks with.
//!
//! A tokenizer of the BERT family splits a text on white space and punctuation before it looks
//! anything up, so the count of a text is the sum of the counts of its words. Words repeat, so a
//! memo of counts turns the tokenizer into a hash lookup per word. For tokenizers that do not
//! split on punctuation, words are split on white space alone.

use rustc_hash::FxHashMap;
use std::sync::Mutex;
use tokenizers::Tokenizer;

/// The tokenizer of the default model, so that chunks are cut alike with and without an embedder.
static DEFAULT_TOKENIZER: &[u8] = include_bytes!("../models/all-MiniLM-L6-v2-int8/tokenizer.json");

/// Words whose counts are remembered before the memo is emptied.
const MEMO_WORDS_MAX: usize = 400_000;

/// Counts tokens, special tokens not included.
pub struct TokenCounter {
    tokenizer: Tokenizer,
    splits_punctuation: bool,
    memo: Mutex<FxHashMap<Box<str>, u32>>,
}

/// A tokenizer file that cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("the tokenizer is not usable: {0}")]
pub struct TokenizerError(String);

impl TokenCounter {
    /// Counts as the default model does.
    ///
    /// # Panics
    /// Never: the file is part of the program and a test reads it.
    #[must_use]
    pub fn default_model() -> Self {
        Self::from_json(DEFAULT_TOKENIZER)
            .expect("the tokenizer that is part of the program is whole")
    }

    /// Reads a `tokenizer.json`.
    ///
    /// # Errors
    /// When it is not one.
    pub fn from_json(json: &[u8]) -> Result<Self, TokenizerError> {
        let mut tokenizer =
            Tokenizer::from_bytes(json).map_err(|e| TokenizerError(e.to_string()))?;
        tokenizer.with_padding(None);
        tokenizer.with_truncation(None).map_err(|e| TokenizerError(e.to_string()))?;
        let value: serde_json::Value =
            serde_json::from_slice(json).map_err(|e| TokenizerError(e.to_string()))?;
        let splits_punctuation = value["pre_tokenizer"]["type"] == "BertPreTokenizer";
        Ok(Self { tokenizer, splits_punctuation, memo: Mutex::default() })
    }

    /// The tokens of a text.
    #[must_use]
    pub fn count(&self, text: &str) -> usize {
        let mut memo = self.memo.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let mut total = 0;
        for word in text.split_whitespace() {
            if !self.splits_punctuation {
                total += self.count_word(&mut memo, word) as usize;
                continue;
            }
            let mut start = 0;
            for (at, byte) in word.bytes().enumerate() {
                if byte.is_ascii_punctuation() {
                    if at > start {
                        total += self.count_word(&mut memo, &word[start..at]) as usize;
                    }
                    total += 1;
                    start = at + 1;
                }
            }
            if start < word.len() {
                total += self.count_word(&mut memo, &word[start..]) as usize;
            }
        }
        total
    }

    /// True when the text has more than `cap` tokens; most texts are told by their length alone.
    #[must_use]
    pub fn exceeds(&self, text: &str, cap: usize) -> bool {
        // Every token stands for at least one byte that is not white space.
        text.len() > cap && self.count(text) > cap
    }

    /// The length in bytes of the longest prefix of `text` with at most `cap` tokens; it ends at
    /// white space where there is some, else on a character boundary, and is never empty.
    #[must_use]
    pub fn prefix(&self, text: &str, cap: usize) -> usize {
        let (mut used, mut end) = (0, 0);
        for word in text.split_inclusive(char::is_whitespace) {
            used += self.count(word);
            if used > cap {
                break;
            }
            end += word.len();
        }
        if end > 0 {
            return end;
        }
        // One word alone is over the cap: halve the range until a piece fits.
        let mut fits = text.chars().next().map_or(0, char::len_utf8);
        let mut over = text.find(char::is_whitespace).unwrap_or(text.len());
        while over - fits > 1 {
            let middle = text.floor_char_boundary(fits + (over - fits) / 2);
            if middle <= fits {
                break;
            }
            if self.count(&text[..middle]) <= cap { fits = middle } else { over = middle }
        }
        fits
    }

    fn count_word(&self, memo: &mut FxHashMap<Box<str>, u32>, word: &str) -> u32 {
        if let Some(&n) = memo.get(word) {
            return n;
        }
        let n = self.tokenizer.encode_fast(word, false).map_or_else(
            |_| u32::try_from(word.len()).unwrap_or(u32::MAX),
            |encoding| u32::try_from(encoding.len()).unwrap_or(u32::MAX),
        );
        if word.len() <= 64 {
            if memo.len() >= MEMO_WORDS_MAX {
                memo.clear();
            }
            memo.insert(word.into(), n);
        }
        n
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn whole(counter: &TokenCounter, text: &str) -> usize {
        counter.tokenizer.encode_fast(text, false).unwrap().len()
    }

    #[test]
    fn sums_of_words_are_the_tokenizers_own_count() {
        let counter = TokenCounter::default_model();
        for text in [
            "",
            "restart nginx",
            "pg_dump -Fc --no-owner app > /var/backups/app.dump",
            "kubectl get po -l app=web -o jsonpath='{.items[*].metadata.name}'",
            "Überprüfung der Datensicherung — 障害対応 🚨 café",
            "a\u{200b}b\u{ad}c\u{301}",
        ] {
            assert_eq!(counter.count(text), whole(&counter, text), "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn any_text_counts_alike(text in "[ -~\\n\\té🚨中]{0,200}") {
            let counter = TokenCounter::default_model();
            prop_assert_eq!(counter.count(&text), whole(&counter, &text));
        }

        #[test]
        fn a_prefix_fits_and_advances(text in "\\PC{1,300}", cap in 1usize..40) {
            let counter = TokenCounter::default_model();
            let end = counter.prefix(&text, cap);
            prop_assert!(end > 0 && text.is_char_boundary(end));
            let one = text.chars().next().unwrap().len_utf8();
            prop_assert!(end <= one || counter.count(&text[..end]) <= cap);
        }
    }
}
