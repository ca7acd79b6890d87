//! The words of a source, whole and in the pieces that an answer may name alone.

use super::kinds;
use runbook_shared::analyse::{analyse, is_stop_word};
use rustc_hash::FxHashSet;

/// What a text holds, for looking words of an answer up.
#[derive(Debug, Default)]
pub struct Atoms {
    exact: FxHashSet<String>,
    lower: FxHashSet<String>,
    /// Numbers with the unit that stands with them, empty where none does: `5 min`, `5 `.
    measures: FxHashSet<String>,
    stems: FxHashSet<String>,
}

impl Atoms {
    /// The words of some texts.
    #[must_use]
    pub fn of<'t>(texts: impl IntoIterator<Item = &'t str>) -> Self {
        let mut atoms = Self::default();
        for text in texts {
            atoms.read(text);
        }
        atoms
    }

    fn read(&mut self, text: &str) {
        let text = without_thousands(&kinds::plain(text));
        let words: Vec<&str> = text.split(is_separator).filter(|w| !w.is_empty()).collect();
        for (at, word) in words.iter().enumerate() {
            let word = bare(word);
            self.add(word);
            for piece in pieces(word) {
                self.add(piece);
            }
            let next = words.get(at + 1).map_or("", |w| bare(w));
            for number in numbers(word) {
                let unit = kinds::unit_of(next).unwrap_or("");
                self.measures.insert(format!("{number} {unit}"));
            }
            for part in word.split(['=', ':', '/']).chain([word]) {
                if let Some((number, unit)) = kinds::measure(part) {
                    self.add(&number);
                    self.measures.insert(format!("{number} {unit}"));
                }
            }
        }
        let terms = analyse(&text).into_iter().filter(|t| !is_stop_word(&t.surface));
        self.stems.extend(terms.map(|t| t.stem));
    }

    fn add(&mut self, word: &str) {
        if !word.is_empty() && !self.exact.contains(word) {
            self.exact.insert(word.to_owned());
            self.lower.insert(word.to_lowercase());
        }
    }

    /// Whether a word stands in the text, as it is or in any case.
    #[must_use]
    pub fn holds(&self, word: &str, any_case: bool) -> bool {
        self.exact.contains(word) || (any_case && self.lower.contains(&word.to_lowercase()))
    }

    /// Whether a number stands there with this unit, or with none.
    #[must_use]
    pub fn holds_measure(&self, number: &str, unit: &str) -> bool {
        self.measures.contains(&format!("{number} {unit}"))
            || self.measures.contains(&format!("{number} "))
    }

    /// How many of these stems stand in the text.
    #[must_use]
    pub fn shared(&self, stems: &[String]) -> usize {
        stems.iter().filter(|s| self.stems.contains(*s)).count()
    }
}

/// Where words end.
#[must_use]
pub fn is_separator(c: char) -> bool {
    c.is_whitespace()
        || matches!(
            c,
            '(' | ')' | '[' | ']' | '{' | '}' | '"' | '\'' | '`' | ',' | ';' | '|' | '<' | '>'
        )
}

/// A word without the marks around it.
#[must_use]
pub fn bare(word: &str) -> &str {
    let word = word.trim_matches(|c: char| "*_!?\\…·•→←".contains(c));
    let word = word.trim_end_matches(['.', ':', '=', '&']);
    word.trim_start_matches(['=', ':', '&'])
}

/// The pieces of a word that name something alone: what stands beside `=`, `:`, `@`, `#`; the parts of
/// a path and its directories; a version without its `v`.
fn pieces(word: &str) -> Vec<&str> {
    let mut out = Vec::new();
    for part in word.split(['=', ':', '@', '#', '?', '&', '+']) {
        out.push(bare(part));
    }
    if let Some((key, value)) = word.split_once('=') {
        out.extend([key, value]);
    }
    if let Some((_, rest)) = word.split_once("://") {
        out.push(rest);
        out.push(word.split(['?', '#']).next().unwrap_or(word));
        out.push(rest.split(['/', ':', '?', '#']).next().unwrap_or(rest));
        let place = rest.split(['/', '?', '#']).next().unwrap_or(rest);
        out.push(place);
        out.extend(place.split(':'));
    }
    if word.contains('/') {
        for (at, _) in word.match_indices('/').filter(|(at, _)| *at > 0) {
            out.extend([&word[..at], &word[..=at], &word[at..]]);
        }
        out.extend(word.split('/').map(bare));
    }
    if let Some(rest) = word.strip_prefix(['v', 'V'])
        && rest.starts_with(|c: char| c.is_ascii_digit())
    {
        out.push(rest);
    }
    out.retain(|p| !p.is_empty() && *p != word);
    out
}

fn numbers(word: &str) -> Vec<&str> {
    let is_number = |p: &&str| {
        !p.is_empty() && p.starts_with(|c: char| c.is_ascii_digit()) && p.parse::<f64>().is_ok()
    };
    word.trim_start_matches(['~', '+', '-', '<', '>', '≤', '≥'])
        .split(['=', ':', '/', '-'])
        .filter(is_number)
        .collect()
}

/// `10,000` as `10000`.
#[must_use]
pub fn without_thousands(text: &str) -> String {
    let bytes = text.as_bytes();
    let digit = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_digit);
    let group =
        |at: usize| (1..=3).all(|n| digit(at + n)) && !digit(at + 4) && at > 0 && digit(at - 1);
    let keep = |(at, c): &(usize, char)| *c != ',' || !group(*at);
    text.char_indices().filter(keep).map(|(_, c)| c).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_found_whole_and_in_pieces() {
        let atoms = Atoms::of([
            "Run `kubectl drain --timeout=300s node-1` (port 8080/tcp, v1.27.3).",
            "See https://grafana.example.org:3000/d/abc?x=1 and /etc/nginx/conf.d/a.conf.",
            "Keep 10,000 rows; wait 5 minutes, retry 3x; replicas: 4; user@db-1.example.org",
        ]);
        for word in [
            "kubectl",
            "--timeout=300s",
            "--timeout",
            "300s",
            "node-1",
            "8080",
            "v1.27.3",
            "1.27.3",
            "grafana.example.org",
            "grafana.example.org:3000",
            "3000",
            "https://grafana.example.org:3000/d/abc",
            "/etc/nginx/conf.d/a.conf",
            "/etc/nginx",
            "/etc/nginx/",
            "a.conf",
            "10000",
            "db-1.example.org",
        ] {
            assert!(atoms.holds(word, false), "{word}");
        }
        for word in ["--time", "808", "etc/nginx/a.conf", "1.27", "Kubectl", "10", "node"] {
            assert!(!atoms.holds(word, false), "{word}");
        }
        assert!(atoms.holds("Kubectl", true));
        for (number, unit, holds) in [
            ("5", "min", true),
            ("5", "h", false),
            ("300", "s", true),
            ("300", "min", false),
            ("4", "GB", true),
            ("10000", "", true),
        ] {
            assert_eq!(atoms.holds_measure(number, unit), holds, "{number} {unit}");
        }
    }
}
