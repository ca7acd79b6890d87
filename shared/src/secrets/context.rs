//! Secrets that a pattern over a few lines does not see: columns of a table, Kubernetes Secrets, the
//! secret that stands near an access id.

use super::Span;
use super::value::{self, Place};
use regex::Regex;
use std::ops::Range;
use std::sync::LazyLock;

/// The rules here.
pub(super) const RULES: [&str; 3] = ["table-column", "kubernetes-secret", "aws-secret-near-id"];

/// Looks for all of them.
pub(super) fn find(text: &str, spans: &mut Vec<Span>) {
    table_columns(text, spans);
    kubernetes_secrets(text, spans);
    near_access_ids(text, spans);
}

fn push(spans: &mut Vec<Span>, range: Range<usize>, rule: &str) {
    spans.push(Span { range, rule: rule.to_owned(), is_vague: true });
}

/// Lines with where they start.
fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut at = 0;
    text.split('\n').map(move |line| {
        let start = at;
        at += line.len() + 1;
        (start, line)
    })
}

/// Cells of columns that are headed by a word for a secret.
fn table_columns(text: &str, spans: &mut Vec<Span>) {
    static HEAD: LazyLock<Regex> = LazyLock::new(|| {
        let words = r"(?i)^[\s*_`]*(?:(?:the|admin|root|default|db|database|user|initial|current|login|service) )?(?:password|passwd|passphrase|pass|pwd|secret|token|api[ _-]?key|(?:access|secret|private|auth)[ _-]?(?:key|token)|credentials?|pin)s?[\s*_`]*$";
        Regex::new(words).expect("a pattern of this file")
    });
    static RULE: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(r"^[\s>]*\|?\s*:?-+:?\s*(?:\|\s*:?-+:?\s*)*\|?\s*$")
            .expect("a pattern of this file")
    });
    let mut above: Option<(usize, &str)> = None;
    let mut columns: Vec<(usize, String)> = Vec::new();
    let mut in_table = false;
    for (start, line) in lines(text) {
        if !line.contains('|') {
            (in_table, above) = (false, None);
            continue;
        }
        if in_table {
            for (number, cell) in cells(line).into_iter().enumerate() {
                let Some((_, name)) = columns.iter().find(|(c, _)| *c == number) else { continue };
                let inner = line[cell.clone()]
                    .trim_matches(|c: char| c.is_whitespace() || "`*_\"'".contains(c));
                let at = cell.start + line[cell.clone()].find(inner).unwrap_or(0);
                let place = Place { name, rest: "" };
                if !inner.contains(' ') && value::is_weak(inner, &place) {
                    push(spans, start + at..start + at + inner.len(), RULES[0]);
                }
            }
        } else if let Some((_, head)) = above.filter(|_| RULE.is_match(line)) {
            let is_head = |cell: &Range<usize>| HEAD.is_match(&head[cell.clone()]);
            columns = cells(head)
                .into_iter()
                .enumerate()
                .filter(|(_, c)| is_head(c))
                .map(|(n, c)| (n, head[c].to_lowercase()))
                .collect();
            in_table = true;
        }
        above = Some((start, line));
    }
}

fn cells(line: &str) -> Vec<Range<usize>> {
    let lead = line.len() - line.trim_start_matches([' ', '\t', '>']).len();
    let start = lead + usize::from(line[lead..].starts_with('|'));
    let mut out = Vec::new();
    let mut at = start;
    for part in line[start..].split('|') {
        out.push(at..at + part.len());
        at += part.len() + 1;
    }
    out
}

/// Values beneath `data:` and `stringData:` of a Kubernetes Secret.
fn kubernetes_secrets(text: &str, spans: &mut Vec<Span>) {
    static KIND: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(r#"(?mi)^([ \t>]*)(?:- )?["']?kind["']?[ \t]*:[ \t]*["']?Secret["']?,?[ \t]*$"#)
            .expect("a pattern of this file")
    });
    if !text.contains("ecret") {
        return;
    }
    for document in manifests(text).filter(|d| KIND.is_match(&text[d.clone()])) {
        let part = &text[document.clone()];
        let mut inside: Option<(usize, bool)> = None;
        let mut block_of: Option<usize> = None;
        for (start, line) in lines(part) {
            let bare = line.trim_start_matches([' ', '\t', '>']);
            let indent = line.len() - bare.len();
            if bare.is_empty() {
                continue;
            }
            let key = bare.trim_start_matches('"');
            if key.starts_with("data:") || key.starts_with("data\":") {
                (inside, block_of) = (Some((indent, true)), None);
                continue;
            }
            if key.starts_with("stringData:") || key.starts_with("stringData\":") {
                (inside, block_of) = (Some((indent, false)), None);
                continue;
            }
            let Some((outer, is_encoded)) = inside else { continue };
            if indent <= outer {
                inside = None;
                continue;
            }
            let value = if block_of.is_some_and(|b| indent > b) {
                Some(bare.trim_end())
            } else {
                let value = bare.split_once(':').map(|(_, v)| v.trim());
                block_of = value.is_some_and(|v| v.starts_with(['|', '>'])).then_some(indent);
                value.filter(|_| block_of.is_none())
            };
            let Some(value) = value else { continue };
            let value = value.split(" #").next().unwrap_or(value);
            let value = value.trim_end_matches(',').trim().trim_matches(['"', '\'']);
            if value.is_empty() || !is_kubernetes_value(value, bare, is_encoded) {
                continue;
            }
            if let Some(at) = line.rfind(value) {
                let at = document.start + start + at;
                push(spans, at..at + value.len(), RULES[1]);
            }
        }
    }
}

/// Parts of keys of a Secret whose values are none.
const KEPT: [&str; 16] = [
    "user",
    "login",
    "email",
    "host",
    "port",
    "url",
    "uri",
    "endpoint",
    "database",
    "dbname",
    "namespace",
    "region",
    ".crt",
    "cert",
    "expiration",
    "usage-",
];

fn is_kubernetes_value(value: &str, line: &str, is_encoded: bool) -> bool {
    let name = line.split(':').next().unwrap_or_default().to_lowercase();
    let is_open =
        KEPT.iter().any(|k| name.contains(k)) || name.trim_end_matches(['"', '\'']).ends_with("id");
    if value::is_stand_in(value) || is_open {
        return false;
    }
    if is_encoded {
        let is_base64 = value.bytes().all(|b| b.is_ascii_alphanumeric() || b"+/=".contains(&b));
        // Not what only looks like base64: a word, or a name that is kept as it is.
        return is_base64 && value.len() >= 4 && {
            value.len().is_multiple_of(4) || value.len() >= 16
        };
    }
    let place = Place { name: &name, rest: "" };
    value::is_weak(value, &place)
}

/// What stands between lines of `---` and of fences.
fn manifests(text: &str) -> impl Iterator<Item = Range<usize>> {
    let is_end = |l: &str| {
        let l = l.trim_start_matches([' ', '\t', '>']);
        l.starts_with("---") || l.starts_with("```") || l.starts_with("~~~")
    };
    let mut start = 0;
    let mut out = Vec::new();
    for (at, l) in lines(text) {
        if is_end(l) {
            out.push(start..at);
            start = at + l.len();
        }
    }
    out.push(start..text.len());
    out.into_iter()
}

/// Forty characters of base64 within a few lines of an AWS access id.
fn near_access_ids(text: &str, spans: &mut Vec<Span>) {
    const LINES: usize = 6;
    // Bytes, where lines are long.
    const REACH: usize = 1000;
    static ID: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(r"\b(?:AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{16}\b").expect("a pattern of this file")
    });
    static SECRET: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(r"(?:^|[^A-Za-z0-9/+=_-])([A-Za-z0-9/+]{40})(?:[^A-Za-z0-9/+=_-]|$)")
            .expect("a pattern of this file")
    });
    if !["AKIA", "ASIA", "ABIA", "ACCA"].iter().any(|p| text.contains(p)) {
        return;
    }
    for id in ID.find_iter(text) {
        let before = &text[floor(text, id.start().saturating_sub(REACH))..id.start()];
        let from = before.rmatch_indices('\n').nth(LINES).map_or(0, |(at, _)| at);
        let from = id.start() - before.len() + from;
        let after = &text[id.end()..floor(text, (id.end() + REACH).min(text.len()))];
        let to = after.match_indices('\n').nth(LINES).map_or(after.len(), |(at, _)| at);
        let to = id.end() + to;
        for found in SECRET.captures_iter(&text[from..to]) {
            let Some(value) = found.get(1) else { continue };
            let has = |test: fn(char) -> bool| value.as_str().chars().any(test);
            let is_mixed = has(|c| c.is_ascii_lowercase())
                && has(|c| c.is_ascii_uppercase())
                && has(|c| c.is_ascii_digit());
            if is_mixed
                && !value::is_stand_in(value.as_str())
                && value::entropy(value.as_str()) > 3.5
            {
                push(spans, from + value.start()..from + value.end(), RULES[2]);
            }
        }
    }
}

/// The nearest bound of a character at or before a byte.
fn floor(text: &str, mut at: usize) -> usize {
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}
