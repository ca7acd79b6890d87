//! The analyser: text to terms, one and the same for what is indexed and what is asked.
//!
//! A text is cut at white space, brackets, quotes and commas into atoms. An atom that is more than
//! a plain word (`node_exporter`, `--dry-run=client`, `/etc/fstab`, `10.0.0.7:8080`,
//! `CrashLoopBackOff`) is an identifier: it gives one term for the whole, one for each piece between
//! `/ : = @ # ? & |`, and one for each word within. Words are stemmed by [`crate::stem`]; wholes,
//! digits and words that hold digits never are. Letters are lower-cased and lose their accents.

use crate::stem::stem;
use rustc_hash::FxHashSet;
use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

/// What a term is, which decides the fields it is looked up in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum TermKind {
    /// A word of prose, or a word within an identifier.
    Word,
    /// An identifier as a whole, or a piece of one that is an identifier itself.
    Whole,
}

/// One term of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Term {
    /// Lower-cased, without accents; for a word, not stemmed.
    pub surface: String,
    /// The stem for a word, the surface for a whole.
    pub stem: String,
    /// Word or whole.
    pub kind: TermKind,
    /// The number of the atom it stands in, from 0: a measure of distance.
    pub position: u32,
    /// True for a word within an identifier.
    pub within: bool,
}

/// The longest term kept, in bytes; longer runs (base64, minified code) carry no meaning.
const TERM_BYTES_MAX: usize = 80;

/// The terms of a text, in order.
#[must_use]
pub fn analyse(text: &str) -> Vec<Term> {
    let mut terms = Terms { found: Vec::with_capacity(text.len() / 5), wanted: None };
    terms.read(text);
    terms.found
}

/// Those of the terms of a text that are wanted, as [`analyse`] gives them. Most words of a text are
/// told apart by their first two letters, so this takes a small part of the time.
#[must_use]
pub fn analyse_for(text: &str, wanted: &Wanted<'_>) -> Vec<Term> {
    let mut terms = Terms { found: Vec::new(), wanted: Some(wanted) };
    terms.read(text);
    terms.found
}

/// Stems that are looked for in a text.
pub struct Wanted<'a> {
    stems: FxHashSet<&'a str>,
    /// A bit for each beginning that one of them has, by [`beginning`].
    beginnings: [u64; BEGINNINGS / 64],
}

/// How many beginnings are told apart.
const BEGINNINGS: usize = 1024;

/// A number for the first two bytes of a term. A stem begins as its word does.
fn beginning(first: u8, second: u8) -> usize {
    (usize::from(first) * 37 + usize::from(second)) % BEGINNINGS
}

impl<'a> FromIterator<&'a str> for Wanted<'a> {
    fn from_iter<I: IntoIterator<Item = &'a str>>(stems: I) -> Self {
        let mut wanted = Self { stems: FxHashSet::default(), beginnings: [0; BEGINNINGS / 64] };
        for stem in stems {
            let bytes = stem.as_bytes();
            let at = |n: usize| bytes.get(n).copied().unwrap_or(0);
            let bit = beginning(at(0), at(1));
            wanted.beginnings[bit / 64] |= 1 << (bit % 64);
            wanted.stems.insert(stem);
        }
        wanted
    }
}

impl Wanted<'_> {
    /// False only where no wanted stem can come of this piece of text.
    fn may_be(&self, piece: &str) -> bool {
        let bytes = piece.as_bytes();
        let at = |n: usize| bytes.get(n).copied().unwrap_or(0).to_ascii_lowercase();
        let (first, second) = (at(0), at(1));
        // What folds to other bytes, or to none, is looked at as a whole.
        if !first.is_ascii() || !second.is_ascii() || first == b'\'' || second == b'\'' {
            return true;
        }
        let bit = beginning(first, second);
        self.beginnings[bit / 64] & (1 << (bit % 64)) != 0
    }
}

/// Terms as they are found.
struct Terms<'a> {
    found: Vec<Term>,
    /// None: all are kept.
    wanted: Option<&'a Wanted<'a>>,
}

fn is_separator(c: char) -> bool {
    c.is_whitespace()
        || matches!(
            c,
            '(' | ')'
                | '['
                | ']'
                | '{'
                | '}'
                | '<'
                | '>'
                | '"'
                | '`'
                | ','
                | ';'
                | '!'
                | '|'
                | '*'
                | '“'
                | '”'
                | '„'
                | '«'
                | '»'
                | '…'
                | '—'
                | '–'
                | '→'
                | '•'
                | '\\'
        )
        || is_cjk(c)
}

/// Scripts that do not put spaces between words: each character stands alone.
fn is_cjk(c: char) -> bool {
    matches!(c, '\u{3000}'..='\u{303f}')
}

/// Removes punctuation around an atom, but leaves what makes it an identifier: the dashes of a
/// flag, the slash of a path, the dot of a dot file.
fn trim(atom: &str) -> &str {
    let atom = atom.trim_end_matches(|c: char| {
        !c.is_alphanumeric() && c != '_' && c != '+' && c != '#' && c != '/'
    });
    let atom = atom.trim_end_matches(['/', '#']);
    let start = atom.find(char::is_alphanumeric).unwrap_or(atom.len());
    let lead = &atom[..start];
    let keep = ["--", "-", "~/", "/", ".", "_", "__", "@", "$"]
        .iter()
        .filter(|l| lead.ends_with(**l))
        .map(|l| l.len())
        .max()
        .unwrap_or(0);
    &atom[start - keep..]
}

impl Terms<'_> {
    fn read(&mut self, text: &str) {
        let mut position = 0;
        for atom in text.split(is_separator) {
            let atom = trim(atom);
            if atom.is_empty() {
                continue;
            }
            self.atom(atom, position);
            position += 1;
        }
    }

    fn atom(&mut self, atom: &str, position: u32) {
        let atom = strip_possessive(atom);
        if atom.chars().all(|c| c.is_alphabetic() || matches!(c, '\'' | '’'))
            && !has_inner_case(atom)
        {
            self.push_word(atom, position, false);
            return;
        }
        let first = self.found.len();
        self.push_whole(atom, position);
        let pieces = atom.split(['/', ':', '=', '@', '#', '?', '&', '%', '$', '~']);
        for piece in pieces {
            let piece = piece.trim_matches(|c: char| !c.is_alphanumeric() && c != '_' && c != '+');
            if piece.is_empty() {
                continue;
            }
            if piece.chars().all(char::is_alphabetic) && !has_inner_case(piece) {
                self.push_word(piece, position, true);
                continue;
            }
            self.push_whole(piece, position);
            let bare = piece.strip_prefix(['v', 'V']).unwrap_or(piece);
            if is_numeric(bare) {
                self.push_whole(bare, position);
                continue;
            }
            if piece.chars().all(char::is_alphabetic) {
                // `PostgreSQL` is also the word `postgresql`.
                self.push_word(piece, position, false);
            }
            for word in piece.split(|c: char| !c.is_alphanumeric()) {
                for part in camel_parts(word) {
                    self.push_word(part, position, true);
                }
            }
        }
        dedup_from(&mut self.found, first);
    }

    fn push_word(&mut self, word: &str, position: u32, within: bool) {
        self.push(word, TermKind::Word, position, within);
    }

    fn push_whole(&mut self, text: &str, position: u32) {
        self.push(text, TermKind::Whole, position, false);
    }

    fn push(&mut self, text: &str, kind: TermKind, position: u32, within: bool) {
        if self.wanted.is_some_and(|w| !w.may_be(text)) {
            return;
        }
        let surface = fold(text);
        if surface.is_empty() || surface.len() > TERM_BYTES_MAX {
            return;
        }
        let stem = if kind == TermKind::Word { stem(&surface) } else { surface.clone() };
        if self.wanted.is_none_or(|w| w.stems.contains(stem.as_str())) {
            self.found.push(Term { surface, stem, kind, position, within });
        }
    }
}

/// `night's` is `night`; other apostrophes vanish with the word joined.
fn strip_possessive(atom: &str) -> &str {
    atom.strip_suffix("'s").or_else(|| atom.strip_suffix("’s")).unwrap_or(atom)
}

/// Digits and the punctuation of numbers alone: an address, a version, a port.
fn is_numeric(piece: &str) -> bool {
    piece.chars().all(|c| c.is_ascii_digit() || matches!(c, '.' | '-' | '_' | '+'))
}

/// An upper-case letter after a lower-case one, or an upper-case run before a lower-case one.
fn has_inner_case(word: &str) -> bool {
    word.bytes().any(|b| !b.is_ascii_lowercase()) && camel_parts(word).nth(1).is_some()
}

/// The words of `CrashLoopBackOff`, `HTTPSConnection`, `iPhone15`.
fn camel_parts(word: &str) -> impl Iterator<Item = &str> {
    let mut start = 0;
    let mut done = false;
    std::iter::from_fn(move || {
        if done || start >= word.len() {
            return None;
        }
        let mut chars = word[start..].char_indices().peekable();
        let mut previous: Option<char> = None;
        while let Some((at, c)) = chars.next() {
            let next = chars.peek().map(|(_, n)| *n);
            let boundary = previous.is_some_and(|p| {
                (p.is_lowercase() && c.is_uppercase())
                    || (p.is_uppercase()
                        && c.is_uppercase()
                        && next.is_some_and(char::is_lowercase)
                        && next != Some('s'))
            });
            if boundary {
                let part = &word[start..start + at];
                start += at;
                return Some(part);
            }
            previous = Some(c);
        }
        done = true;
        Some(&word[start..])
    })
}

/// Lower case, compatibility forms resolved, accents and apostrophes removed.
fn fold(text: &str) -> String {
    if text.is_ascii() {
        let mut lower = text.to_ascii_lowercase();
        lower.retain(|c| c != '\'');
        return lower;
    }
    text.nfkd()
        .filter(|c| !is_combining_mark(*c) && !matches!(c, '\'' | '’' | '\u{ad}' | '\u{200b}'))
        .flat_map(char::to_lowercase)
        .collect()
}

/// Removes repeats of a word or a whole from `first` on; the first of each stays.
fn dedup_from(terms: &mut Vec<Term>, first: usize) {
    // An atom may be a megabyte of base64: comparing all with all is for the few of ordinary ones.
    if terms.len() - first > 16 {
        let mut seen = FxHashSet::default();
        for term in terms.split_off(first) {
            if seen.insert((term.kind, term.surface.clone())) {
                terms.push(term);
            }
        }
        return;
    }
    let mut at = first;
    while at < terms.len() {
        let repeats = terms[first..at]
            .iter()
            .any(|t| t.kind == terms[at].kind && t.surface == terms[at].surface);
        if repeats {
            terms.remove(at);
        } else {
            at += 1;
        }
    }
}

/// Words that carry no meaning of their own in a question.
#[must_use]
pub fn is_stop_word(surface: &str) -> bool {
    STOP_WORDS.binary_search(&surface).is_ok()
}

/// Sorted, for the binary search; a test checks that.
static STOP_WORDS: &[&str] = &[
    "a", "about", "am", "an", "and", "any", "are", "arent", "as", "at", "be", "because", "been",
    "being", "but", "by", "can", "cant", "could", "did", "do", "does", "doesnt", "doing", "dont",
    "for", "from", "get", "had", "has", "have", "having", "he", "her", "here", "him", "his", "how",
    "i", "if", "im", "in", "into", "is", "isnt", "it", "its", "ive", "just", "let", "me", "my",
    "need", "now", "of", "on", "or", "our", "out", "please", "she", "should", "so", "some", "such",
    "tell", "than", "that", "the", "their", "them", "then", "there", "these", "they", "this",
    "those", "to", "too", "up", "us", "want", "was", "we", "were", "what", "when", "where",
    "which", "who", "whom", "whose", "why", "will", "with", "would", "you", "your",
];

#[cfg(test)]
mod tests {
    use super::*;

    fn terms(text: &str, kind: TermKind) -> Vec<String> {
        analyse(text).into_iter().filter(|t| t.kind == kind).map(|t| t.surface).collect()
    }

    #[test]
    fn identifiers_are_whole_and_in_parts() {
        for (text, wholes, words) in [
            (
                "CrashLoopBackOff",
                &["crashloopbackoff"][..],
                &["crashloopbackoff", "crash", "loop", "back", "off"][..],
            ),
            ("HTTPSConnection", &["httpsconnection"], &["httpsconnection", "https", "connection"]),
            ("node_exporter", &["node_exporter"], &["node", "exporter"]),
            ("kube-proxy", &["kube-proxy"], &["kube", "proxy"]),
            ("--dry-run=client", &["--dry-run=client", "dry-run"], &["dry", "run", "client"]),
            ("pg_dump -Fc", &["pg_dump", "-fc"], &["pg", "dump", "fc"]),
            ("10.0.0.7:8080", &["10.0.0.7:8080", "10.0.0.7", "8080"], &[]),
            ("v1.27.3", &["v1.27.3", "1.27.3"], &[]),
            ("spring.datasource.url", &["spring.datasource.url"], &["spring", "datasource", "url"]),
            (
                "/etc/haproxy/haproxy.cfg",
                &["/etc/haproxy/haproxy.cfg", "haproxy.cfg"],
                &["etc", "haproxy", "cfg"],
            ),
            ("ORA-00600", &["ora-00600"], &["ora", "00600"]),
            ("E11000", &["e11000"], &["e11000"]),
        ] {
            assert_eq!(terms(text, TermKind::Whole), wholes, "{text}");
            assert_eq!(terms(text, TermKind::Word), words, "{text}");
        }
    }

    #[test]
    fn prose_is_words_without_punctuation() {
        assert_eq!(
            terms("Don't restore last night's dump (yet)!", TermKind::Word),
            ["dont", "restore", "last", "night", "dump", "yet"]
        );
        assert_eq!(
            terms("the café: PostgreSQL's log.", TermKind::Word),
            ["the", "cafe", "postgresql", "postgre", "sql", "log"]
        );
    }

    #[test]
    fn what_is_wanted_is_found_as_among_all() {
        let text = "Don't restart O'Brien's `node_exporter` --dry-run=client at 10.0.0.7:8080, \
                    restarting CAFÉ PostgreSQL's flies' ties; the café uses v1.27.3 — 'quoted' it";
        let all = analyse(text);
        for one in &all {
            let wanted: Wanted = [one.stem.as_str(), "absent"].into_iter().collect();
            let expected: Vec<&Term> = all.iter().filter(|t| t.stem == one.stem).collect();
            assert_eq!(analyse_for(text, &wanted).iter().collect::<Vec<_>>(), expected);
        }
        let wanted: Wanted = all.iter().map(|t| t.stem.as_str()).collect();
        assert_eq!(analyse_for(text, &wanted), all);
        assert!(analyse_for(text, &Wanted::from_iter([])).is_empty());
    }

    #[test]
    fn nothing_breaks_it() {
        for text in [
            "",
            "***",
            ">>>",
            "-v",
            "a AND",
            "\"unbalanced",
            "foo(",
            "C:\\logs",
            "::",
            "--",
            "/",
            "'s",
            "_",
        ] {
            let _ = analyse(text);
        }
        assert_eq!(terms("-v", TermKind::Whole), ["-v"]);
    }

    #[test]
    fn stop_words_are_sorted() {
        assert!(STOP_WORDS.is_sorted());
        assert!(is_stop_word("which") && !is_stop_word("restart"));
    }
}
