//! What is searched for in every document: exact for identifiers and what is quoted, in any inflection
//! for ordinary words; whole words, in any case.

use regex::{Regex, RegexBuilder};
use runbook_shared::stem::stem;
use std::collections::BTreeSet;
use std::sync::Arc;

/// The longest subject, in characters.
const SUBJECT_CHARS_MAX: usize = 120;
/// The largest compiled pattern, in bytes.
const PATTERN_BYTES_MAX: usize = 1 << 20;

/// A literal subject.
#[derive(Clone, Debug)]
pub struct Subject {
    name: String,
    exact: bool,
    /// For each word the stem that must come out, or none where it stands as it is.
    stems: Arc<[Option<String>]>,
    pattern: Regex,
}

impl PartialEq for Subject {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name && self.exact == other.exact
    }
}

/// The places of a subject in one text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Places {
    /// Byte ranges, in order.
    pub ranges: Vec<(usize, usize)>,
    /// The forms that stand there, in lower case.
    pub forms: BTreeSet<String>,
}

impl Subject {
    /// Reads a subject: articles, kinds ("the host ..", ".. command") and quotes go.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let (name, quoted) = match unquoted(text).or_else(|| unquoted(without_kind(text))) {
            Some(inner) => (inner, true),
            None => (without_kind(text), false),
        };
        let words: Vec<&str> = name.split_whitespace().collect();
        if words.is_empty()
            || name.chars().count() > SUBJECT_CHARS_MAX
            || !name.chars().any(char::is_alphanumeric)
        {
            return None;
        }
        let stems: Vec<Option<String>> = words
            .iter()
            .map(|w| (!quoted && !is_identifier(w)).then(|| stem(&w.to_lowercase())))
            .collect();
        let exact = stems.iter().all(Option::is_none);
        let parts: Vec<String> =
            words.iter().zip(&stems).map(|(w, s)| part(w, s.as_deref())).collect();
        // Words of a phrase may stand on two lines of one paragraph, ordinary ones be hyphenated.
        let gap = if exact { r"(?:[ \t]+|[ \t]*\n[ \t]*)" } else { r"(?:[ \t]+|[ \t]*\n[ \t]*|-)" };
        let pattern = RegexBuilder::new(&parts.join(gap))
            .case_insensitive(true)
            .size_limit(PATTERN_BYTES_MAX)
            .build()
            .ok()?;
        Some(Self { name: words.join(" "), exact, stems: stems.into(), pattern })
    }

    /// The subject as it is looked for.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// True when every word of it is looked for as it stands.
    #[must_use]
    pub fn is_exact(&self) -> bool {
        self.exact
    }

    /// How many words it has.
    #[must_use]
    pub fn words(&self) -> usize {
        self.stems.len()
    }

    /// All places in a text: whole words that do not overlap.
    #[must_use]
    pub fn places(&self, text: &str) -> Places {
        let mut places = Places::default();
        let mut at = 0;
        while let Some(found) = self.pattern.captures_at(text, at) {
            let Some(whole) = found.get(0) else { break };
            if is_word_at(text, whole.start(), whole.end()) && self.stems_fit(&found) {
                places.ranges.push((whole.start(), whole.end()));
                if !self.exact && places.forms.len() < 8 {
                    let form = whole.as_str().to_lowercase();
                    places.forms.insert(form.split_whitespace().collect::<Vec<_>>().join(" "));
                }
                at = whole.end().max(whole.start() + 1);
            } else {
                at = whole.start() + text[whole.start()..].chars().next().map_or(1, char::len_utf8);
            }
            if at >= text.len() {
                break;
            }
        }
        places
    }

    fn stems_fit(&self, found: &regex::Captures<'_>) -> bool {
        self.stems.iter().flatten().enumerate().all(|(n, wanted)| {
            found.get(n + 1).is_some_and(|m| stem(&m.as_str().to_lowercase()) == *wanted)
        })
    }
}

/// The pattern of one word: itself, or every word with the letters that its inflections share.
fn part(word: &str, stem: Option<&str>) -> String {
    let Some(stem) = stem else { return regex::escape(word) };
    let lower = word.to_lowercase();
    let shared: String =
        lower.chars().zip(stem.chars()).take_while(|(a, b)| a == b).map(|(a, _)| a).collect();
    // `copies` and `copy` share `cop`.
    let shared = if stem.ends_with('i') { shared.trim_end_matches('i') } else { &shared };
    let shared = shared.strip_suffix('y').unwrap_or(shared);
    format!(r"({}\w*)", regex::escape(shared))
}

/// No letter, digit or underscore before and after: what `grep -w` calls a word.
fn is_word_at(text: &str, start: usize, end: usize) -> bool {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    !text[..start].chars().next_back().is_some_and(is_word)
        && !text[end..].chars().next().is_some_and(is_word)
}

/// Anything that is more than a word: digits, marks inside, capitals inside, capitals only.
fn is_identifier(word: &str) -> bool {
    let inner = word.chars().skip(1).any(char::is_uppercase);
    inner || word.chars().any(|c| !c.is_alphabetic() && !matches!(c, '\'' | ','))
}

fn unquoted(text: &str) -> Option<&str> {
    [('"', '"'), ('`', '`'), ('\'', '\''), ('“', '”'), ('«', '»')].into_iter().find_map(
        |(open, close)| {
            let inner = text.strip_prefix(open)?.strip_suffix(close)?.trim();
            (!inner.is_empty() && !inner.contains(close)).then_some(inner)
        },
    )
}

/// "the host db-01" is `db-01`, "the tcpdump command" is `tcpdump`, "port 8080" is `8080`.
fn without_kind(text: &str) -> &str {
    const BEFORE: &[&str] = &[
        "word",
        "words",
        "string",
        "term",
        "phrase",
        "name",
        "text",
        "identifier",
        "keyword",
        "host",
        "hostname",
        "server",
        "machine",
        "node",
        "command",
        "tool",
        "alert",
        "service",
        "unit",
        "flag",
        "option",
        "variable",
        "port",
        "script",
        "user",
        "metric",
        "file",
        "path",
        "package",
        "bucket",
        "address",
        "ip",
        "url",
        "domain",
        "setting",
        "table",
        "database",
        "cookbook",
        "label",
        "version",
        "error",
        "code",
        "cluster",
    ];
    const BEHIND: &[&str] = &[
        "command", "tool", "utility", "binary", "script", "cli", "host", "alert", "flag", "option",
        "variable", "setting", "metric", "cookbook", "program",
    ];
    let mut rest = text;
    let lower = rest.to_lowercase();
    for article in ["the ", "a ", "an ", "our ", "any ", "this "] {
        if lower.starts_with(article) {
            rest = rest[article.len()..].trim_start();
            break;
        }
    }
    if let Some((kind, name)) = rest.split_once(' ') {
        let name = name.trim();
        let lone = !name.contains(' ');
        let said = ["word", "string", "term", "phrase", "words", "text", "identifier", "keyword"];
        let kind = kind.to_lowercase();
        if (BEFORE.contains(&kind.as_str()) && lone && is_identifier(name))
            || (BEFORE.contains(&kind.as_str()) && unquoted(name).is_some())
            || (said.contains(&kind.as_str()))
        {
            return name;
        }
    }
    if let Some((name, kind)) = rest.rsplit_once(' ')
        && BEHIND.contains(&kind.to_lowercase().as_str())
        && (!name.contains(' ') || unquoted(name).is_some())
    {
        return name;
    }
    rest
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(subject: &str, text: &str) -> usize {
        Subject::parse(subject).unwrap().places(text).ranges.len()
    }

    #[test]
    fn identifiers_are_exact_and_whole() {
        let text =
            "node_exporter, node_exporters and my_node_exporter; Node_Exporter: node_exporter-1";
        assert_eq!(count("node_exporter", text), 3);
        assert_eq!(count("db-01", "db-01 db-011 xdb-01 DB-01.example.com"), 2);
        assert_eq!(count("--dry-run=client", "kubectl --dry-run=client x--dry-run=client"), 1);
        assert_eq!(count("10.0.0.7", "10.0.0.7 110.0.0.7 10x0.0.7"), 1);
        assert_eq!(count("a(b", "a(b a(bc"), 1);
    }

    #[test]
    fn words_are_found_in_all_inflections() {
        let subject = Subject::parse("certificate").unwrap();
        let places = subject.places("Certificates: a certificate, certificated, certification");
        assert_eq!(places.ranges.len(), 3);
        assert_eq!(
            places.forms.into_iter().collect::<Vec<_>>(),
            ["certificate", "certificated", "certificates"]
        );
        assert_eq!(count("copies", "copy copies copied copyright"), 3);
        assert_eq!(count("read replica", "Read\nreplicas, read-replica, read the replica"), 2);
        assert_eq!(count("\"certificate\"", "certificates certificate"), 1);
        assert_eq!(count("redis", "redis redi rediscover"), 1);
    }

    #[test]
    fn kinds_and_articles_are_not_searched_for() {
        for (text, name) in [
            ("the host db-01", "db-01"),
            ("the tcpdump command", "tcpdump"),
            ("port 8080", "8080"),
            ("the phrase split brain", "split brain"),
            ("the word \"restart\"", "restart"),
            ("host keys", "host keys"),
            ("`pg_dump -Fc`", "pg_dump -Fc"),
        ] {
            assert_eq!(Subject::parse(text).unwrap().name(), name, "{text}");
        }
        assert!(Subject::parse("\"\"").is_none_or(|s| s.name() == "\"\""));
        assert!(Subject::parse("---").is_none() && Subject::parse(" ").is_none());
    }
}
