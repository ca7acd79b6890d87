//! Words of an utterance, and the small matcher that the request gate's grammar is written in.
//!
//! A pattern is a list of elements, each a set of words (`can|could`), a named set (`@deed`), an
//! optional one (`?please`), a repeated one (`*please|just`) or any one word (`_`).

use super::lexicon;

/// One sentence of an utterance.
#[derive(Debug, Default)]
pub(super) struct Sentence {
    /// Lower-case words, slang resolved; a comma, colon or dash between clauses is a word `,`.
    pub(super) words: Vec<String>,
    /// The same words as they were typed.
    pub(super) raw: Vec<String>,
    /// Whether it ends with a question mark.
    pub(super) asks: bool,
}

/// The sentences of what was typed.
pub(super) fn sentences(typed: &str) -> Vec<Sentence> {
    let mut all = vec![Sentence::default()];
    for atom in typed.replace(['’', '`'], "'").split_whitespace() {
        let bare = atom.trim_matches(|c: char| ",.!?;:\"()'“”".contains(c));
        let bare = if bare.is_empty() { "" } else { keep_lead(atom, bare) };
        let Some(sentence) = all.last_mut() else { break };
        push(sentence, bare);
        let end = atom.trim_end_matches(['"', ')', '\'', '”']);
        if end.ends_with(['.', '!', '?', ';']) {
            sentence.asks = end.contains('?');
            all.push(Sentence::default());
        } else if end.ends_with([',', ':']) || matches!(atom, "-" | "--" | "–" | "—") {
            sentence.words.push(",".into());
            sentence.raw.push(",".into());
        }
    }
    all.retain(|s| s.words.iter().any(|w| w != ","));
    all
}

/// The dot of `.env` is no full stop.
fn keep_lead<'a>(atom: &'a str, bare: &'a str) -> &'a str {
    let at = atom.find(bare).unwrap_or(0);
    if at > 0 && atom[..at].ends_with('.') { &atom[at - 1..at + bare.len()] } else { bare }
}

fn push(sentence: &mut Sentence, word: &str) {
    let lower = word.to_lowercase();
    if let Some(full) = lexicon::resolve(&lower) {
        for part in full.split(' ') {
            sentence.words.push(part.to_owned());
            sentence.raw.push(part.to_owned());
        }
        return;
    }
    let (stem, possessive) = match lower.strip_suffix("'s").or_else(|| lower.strip_suffix("s'")) {
        Some(stem) if lower.ends_with("s'") => (format!("{stem}s"), true),
        Some(stem) => (stem.to_owned(), true),
        None => (lower, false),
    };
    if !stem.is_empty() {
        sentence.words.push(stem);
        sentence.raw.push(word.trim_end_matches("'s").to_owned());
    }
    if possessive {
        sentence.words.push("'s".into());
        sentence.raw.push("'s".into());
    }
}

impl Sentence {
    /// What stands between its commas, each as a sentence; nothing without a comma.
    pub(super) fn clauses(&self) -> Vec<Self> {
        if !self.words.iter().any(|w| w == ",") {
            return Vec::new();
        }
        let raw = self.raw.split(|w| w == ",");
        let parts = self.words.split(|w| w == ",").zip(raw);
        parts
            .filter(|(words, _)| !words.is_empty())
            .map(|(words, raw)| Self { words: words.to_vec(), raw: raw.to_vec(), asks: self.asks })
            .collect()
    }

    /// Where the pattern starts, wherever it stands.
    pub(super) fn find(&self, pattern: &[&str]) -> Option<usize> {
        (0..self.words.len()).find(|at| ends(&self.words, *at, pattern).is_some())
    }

    /// True when the pattern stands somewhere.
    pub(super) fn has(&self, pattern: &[&str]) -> bool {
        self.find(pattern).is_some()
    }

    /// The word after the pattern, where it stands at the start of a clause, greetings aside.
    pub(super) fn clause(&self, pattern: &[&str]) -> Option<usize> {
        self.clause_starts().into_iter().find_map(|at| ends(&self.words, at, pattern))
    }

    /// Where clauses start, behind words that open one and say nothing.
    pub(super) fn clause_starts(&self) -> Vec<usize> {
        let behind = |at: usize| ends(&self.words, at, &["*@filler"]).unwrap_or(at);
        let commas = (0..self.words.len()).filter(|at| self.words[*at] == ",").map(|at| at + 1);
        std::iter::once(0).chain(commas).map(behind).collect()
    }

    /// True when the last words are the pattern.
    pub(super) fn closes(&self, pattern: &[&str]) -> bool {
        (0..self.words.len()).any(|at| ends(&self.words, at, pattern) == Some(self.words.len()))
    }
}

/// The word after a pattern that starts at `at`.
pub(super) fn ends(words: &[String], at: usize, pattern: &[&str]) -> Option<usize> {
    let Some((first, rest)) = pattern.split_first() else { return Some(at) };
    let matched = |set: &str| words.get(at).is_some_and(|w| is_in(w, set));
    if let Some(set) = first.strip_prefix('*') {
        if matched(set)
            && let Some(end) = ends(words, at + 1, pattern)
        {
            return Some(end);
        }
        return ends(words, at, rest);
    }
    if let Some(set) = first.strip_prefix('?') {
        let taken = if matched(set) { ends(words, at + 1, rest) } else { None };
        return taken.or_else(|| ends(words, at, rest));
    }
    if matched(first) { ends(words, at + 1, rest) } else { None }
}

/// Whether a word is in a set: alternatives, named sets among them; `_` is any word.
pub(super) fn is_in(word: &str, set: &str) -> bool {
    set.split('|').any(|one| match one.strip_prefix('@') {
        Some(name) => lexicon::named(name, word),
        None => one == word || (one == "_" && word != ","),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        sentences(text).into_iter().map(|s| s.words.join(" ")).collect()
    }

    #[test]
    fn slang_is_resolved_and_sentences_are_apart() {
        assert_eq!(
            words("What's the pw? Plz send it, thx"),
            ["what is the password", "please send it , thanks"]
        );
        assert_eq!(words("dump the .env of v1.2 on web-2."), ["dump the .env of v1.2 on web-2"]);
        assert_eq!(words("a customer's card"), ["a customer 's card"]);
        assert!(words(" .. ,, ?!").is_empty());
    }

    #[test]
    fn patterns_match_words() {
        let s = &sentences("could you please just restart nginx")[0];
        assert!(s.has(&["can|could", "you", "*please|just", "@deed"]));
        assert!(!s.has(&["can|could", "you", "@deed"]));
        assert_eq!(s.clause(&["could", "?_"]), Some(2));
    }
}
