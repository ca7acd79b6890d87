//! Keywords first, then the patterns of the rules whose keyword was seen, in the lines around it.

use super::context;
use super::rule::{AllowList, Candidate, Rule, RuleSet, Value};
use super::value::{self, Place};
use super::{Finding, Span};
use aho_corasick::{AhoCorasick, AhoCorasickBuilder, AhoCorasickKind, MatchKind};
use rustc_hash::FxHashMap;
use std::ops::Range;

pub(super) const GITLEAKS: &str = include_str!("data/gitleaks.toml");
pub(super) const OWN: &str = include_str!("data/own.toml");

/// Comments that let the values of a line stand, or those of the line below where they are alone.
const ALLOW_COMMENTS: [&str; 2] = ["runbook-secrets: allow", "gitleaks:allow"];

/// Rules of gitleaks that go by a name alone, whose values are looked at as ours are.
const VAGUE: [&str; 2] = ["generic-api-key", "hashicorp-tf-password"];
/// Rules of gitleaks that a rule of ours takes the place of, and why.
pub(super) const REPLACED: [(&str, &str); 1] =
    [("kubernetes-secret-yaml", "kubernetes-secret reads the manifest, and takes each value")];
const PRIVATE_KEY: &str = "private-key";

/// All rules, ready to be used.
pub(super) struct Finder {
    rules: Vec<Rule>,
    /// How many of `rules` are gitleaks'.
    pub(super) carried: usize,
    /// For all of gitleaks' rules.
    allow: AllowList,
    keywords: AhoCorasick,
    /// The rules of each keyword.
    rules_of: Vec<Vec<u16>>,
    /// Rules that look at all of a text.
    without_keyword: Vec<usize>,
    /// Rules that say nothing about text.
    pub(super) without_pattern: Vec<String>,
}

impl Finder {
    pub(super) fn new() -> Self {
        let carried =
            RuleSet::read(GITLEAKS).expect("gitleaks.toml is part of the program and tested");
        let own = RuleSet::read(OWN).expect("own.toml is part of the program and tested");
        let RuleSet { mut rules, allow, without_pattern } = carried;
        rules.retain(|r| !REPLACED.iter().any(|(id, _)| *id == r.id));
        let count = rules.len();
        rules.extend(own.rules);
        let mut numbers: FxHashMap<String, usize> = FxHashMap::default();
        let mut words: Vec<String> = Vec::new();
        let mut rules_of: Vec<Vec<u16>> = Vec::new();
        for (number, rule) in rules.iter().enumerate() {
            for word in &rule.keywords {
                let at = *numbers.entry(word.to_lowercase()).or_insert_with(|| {
                    words.push(word.to_lowercase());
                    rules_of.push(Vec::new());
                    words.len() - 1
                });
                rules_of[at].push(u16::try_from(number).expect("a few hundred rules"));
            }
        }
        let without_keyword = (0..rules.len()).filter(|n| rules[*n].keywords.is_empty()).collect();
        let keywords = AhoCorasickBuilder::new()
            .ascii_case_insensitive(true)
            .match_kind(MatchKind::Standard)
            .kind(Some(AhoCorasickKind::DFA))
            .build(&words)
            .expect("a few hundred short words");
        Self { rules, carried: count, allow, keywords, rules_of, without_keyword, without_pattern }
    }

    /// The names of the rules in use, and of those that say nothing about text.
    pub(super) fn names(&self) -> (Vec<String>, Vec<String>) {
        let mut used: Vec<String> = self.rules.iter().map(|r| r.id.clone()).collect();
        used.extend(context::RULES.iter().map(|r| (*r).to_owned()));
        used.sort();
        used.dedup();
        (used, self.without_pattern.clone())
    }

    #[cfg(test)]
    pub(super) fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// Every secret in a text, in order, none over another.
    pub(super) fn find(&self, text: &str, path: &str) -> Vec<Finding> {
        let lines = Lines::of(text);
        let mut spans = Vec::new();
        for (number, windows) in self.windows(text, &lines) {
            let rule = &self.rules[number];
            let is_carried = number < self.carried;
            for window in windows {
                self.apply(rule, is_carried, text, &lines, window, path, &mut spans);
            }
        }
        context::find(text, &mut spans);
        spans.retain(|s| !is_let_stand(text, &lines, &s.range));
        again(text, &mut spans);
        joined(spans)
            .into_iter()
            .map(|s| Finding { line: lines.number(s.range.start), rule: s.rule, span: s.range })
            .collect()
    }

    /// The parts of the text that each rule is to look at.
    fn windows(&self, text: &str, lines: &Lines) -> Vec<(usize, Vec<Range<usize>>)> {
        let mut by_rule: Vec<Vec<Range<usize>>> = vec![Vec::new(); self.rules.len()];
        let mut line = 0;
        for hit in self.keywords.find_overlapping_iter(text) {
            // Hits come in the order of their ends.
            while lines.starts.get(line + 1).is_some_and(|s| *s < hit.end()) {
                line += 1;
            }
            for number in &self.rules_of[hit.pattern().as_usize()] {
                let number = usize::from(*number);
                let rule = &self.rules[number];
                let from = lines.start(line.saturating_sub(1));
                let to = rule.lines.map_or(text.len(), |l| lines.start(line + l + 1));
                match by_rule[number].last_mut() {
                    Some(last) if last.end >= from => last.end = last.end.max(to),
                    _ => by_rule[number].push(from..to),
                }
            }
        }
        for number in &self.without_keyword {
            by_rule[*number].push(0..text.len());
        }
        by_rule.into_iter().enumerate().filter(|(_, windows)| !windows.is_empty()).collect()
    }

    #[expect(clippy::too_many_arguments, reason = "one call, and all of it is needed")]
    fn apply(
        &self,
        rule: &Rule,
        is_carried: bool,
        text: &str,
        lines: &Lines,
        window: Range<usize>,
        path: &str,
        spans: &mut Vec<Span>,
    ) {
        let Some(regex) = rule.regex() else { return };
        let part = &text[window.clone()];
        for found in regex.captures_iter(part) {
            let Some(whole) = found.get(0) else { continue };
            let group = match rule.group {
                Some(n) => found.get(n),
                None => found.iter().skip(1).flatten().find(|m| !m.is_empty()),
            };
            let secret = group.unwrap_or(whole);
            let kind = if VAGUE.contains(&rule.id.as_str()) { Value::Loose } else { rule.value };
            let range = value_range(part, secret.range(), kind);
            let secret = &part[range.clone()];
            if secret.is_empty() || rule.entropy.is_some_and(|min| value::entropy(secret) <= min) {
                continue;
            }
            let place = Place {
                name: &name_before(part, range.start),
                rest: part[range.end..].split('\n').next().unwrap_or_default(),
            };
            if place.name.trim_end().ends_with("]:") && rule.value != Value::Form {
                continue; // A definition of a link.
            }
            if !looks_secret(rule, kind, secret, &place) {
                continue;
            }
            let at = window.start + whole.start()..window.start + whole.end();
            let candidate =
                Candidate { secret, whole: whole.as_str(), line: lines.text(text, &at), path };
            let allowed = (is_carried && self.allow.allows(&candidate))
                || rule.allow.iter().any(|a| a.allows(&candidate));
            if !allowed {
                let range = window.start + range.start..window.start + range.end;
                let is_vague = rule.value != Value::Form || VAGUE.contains(&rule.id.as_str());
                spans.push(Span { range, rule: rule.id.clone(), is_vague });
            }
        }
    }
}

fn looks_secret(rule: &Rule, kind: Value, secret: &str, place: &Place<'_>) -> bool {
    match kind {
        Value::Form if rule.id == PRIVATE_KEY => has_key_material(secret),
        Value::Form => value::is_form(secret, place),
        Value::Strong => value::is_strong(secret, place),
        Value::Weak => value::is_weak(secret, place),
        Value::Loose => !value::is_digest(secret) && value::is_weak(secret, place),
    }
}

/// True for a key block that holds a key, not `...`.
fn has_key_material(block: &str) -> bool {
    let runs = block.split(|c: char| !(c.is_ascii_alphanumeric() || "+/=".contains(c)));
    let has = |run: &str, test: fn(&u8) -> bool| run.as_bytes().iter().any(test);
    runs.filter(|run| run.len() >= 16)
        .any(|run| has(run, u8::is_ascii_digit) && has(run, u8::is_ascii_alphabetic))
}

/// The value without what belongs to the sentence or the code around it.
fn value_range(text: &str, range: Range<usize>, kind: Value) -> Range<usize> {
    if kind == Value::Form {
        let found = &text[range.clone()];
        let start = range.start + (found.len() - found.trim_start_matches('\n').len());
        return start..range.start + found.trim_end_matches('\n').len().max(start - range.start);
    }
    let mut found = &text[range.clone()];
    // `a;B=c` and `a&b=c` are a value and the next assignment.
    let next = found.char_indices().find(|(at, c)| {
        ";&,".contains(*c) && {
            let rest = found[at + 1..].trim_start();
            let name = rest.find(|c: char| !(c.is_ascii_alphanumeric() || "_- .".contains(c)));
            name.is_some_and(|n| n > 0 && rest[n..].starts_with('='))
        }
    });
    if let Some((at, _)) = next {
        found = &found[..at];
    }
    for escape in ["\\n", "\\r", "\\t", "&quot;", "&amp;", "&lt;", "&nbsp;", "]("] {
        found = found.find(escape).map_or(found, |at| &found[..at]);
    }
    let quoted = text[..range.start].ends_with(['"', '\'', '`']);
    let end: &[char] = if quoted && kind != Value::Form {
        &['\\', '\n', '"', '\'', '`']
    } else {
        &['`', '.', ',', ';', ':', ')', ']', '}', '*', '_', '\\', '"', '\'', '?', '|']
    };
    let start_trim = found.len() - found.trim_start_matches(['(', '*', '"', '\'']).len();
    let trimmed = found[start_trim..].trim_end_matches(end);
    let start = range.start + start_trim;
    start..start + trimmed.len()
}

/// The name before a value, lower case without copying much: the last letters before the separator.
fn name_before(text: &str, at: usize) -> String {
    let line_start = text[..at].rfind('\n').map_or(0, |n| n + 1);
    let mut from = at.saturating_sub(80).max(line_start);
    while !text.is_char_boundary(from) {
        from += 1;
    }
    text[from..at].to_lowercase()
}

fn is_let_stand(text: &str, lines: &Lines, range: &Range<usize>) -> bool {
    let has = |line: &str| ALLOW_COMMENTS.iter().any(|c| line.contains(c));
    let first = lines.index(range.start);
    let above = first.checked_sub(1).map(|n| lines.line(text, n).trim());
    let is_alone = |l: &str| {
        has(l)
            && (l.starts_with("<!--") && l.ends_with("-->")
                || l.starts_with('#')
                || l.starts_with("//"))
    };
    has(lines.text(text, range)) || above.is_some_and(is_alone)
}

/// Adds further places of values that were found, in the same text.
fn again(text: &str, spans: &mut Vec<Span>) {
    let mut values: Vec<(&str, &Span)> = spans
        .iter()
        .map(|s| (&text[s.range.clone()], s))
        .filter(|(v, _)| (8..=400).contains(&v.len()) && !v.contains('\n') && is_distinct(v))
        .collect();
    values.sort_by(|a, b| a.0.cmp(b.0));
    values.dedup_by(|a, b| a.0 == b.0);
    if values.is_empty() {
        return;
    }
    let Ok(search) = AhoCorasick::new(values.iter().map(|v| v.0)) else { return };
    let more: Vec<Span> = search
        .find_iter(text)
        .map(|hit| {
            let known = values[hit.pattern().as_usize()].1;
            Span { range: hit.range(), rule: known.rule.clone(), is_vague: known.is_vague }
        })
        .collect();
    spans.extend(more);
}

/// True for values that stand for nothing else wherever they stand.
fn is_distinct(value: &str) -> bool {
    let has = |test: fn(char) -> bool| value.chars().any(test);
    has(|c| c.is_ascii_digit()) && has(char::is_alphabetic) && value::entropy(value) >= 2.5
}

/// Spans in order; those that overlap become one, named by the most telling rule.
fn joined(mut spans: Vec<Span>) -> Vec<Span> {
    spans.sort_by_key(|s| (s.range.start, std::cmp::Reverse(s.range.end)));
    let mut out: Vec<Span> = Vec::with_capacity(spans.len());
    for span in spans {
        match out.last_mut() {
            Some(last) if span.range.start < last.range.end => {
                last.range.end = last.range.end.max(span.range.end);
                if last.is_vague && !span.is_vague {
                    last.rule = span.rule;
                    last.is_vague = false;
                }
            }
            _ => out.push(span),
        }
    }
    out
}

/// Where the lines of a text start.
pub(super) struct Lines {
    starts: Vec<usize>,
    len: usize,
}

impl Lines {
    pub(super) fn of(text: &str) -> Self {
        let ends = memchr::memchr_iter(b'\n', text.as_bytes()).map(|at| at + 1);
        let starts = std::iter::once(0).chain(ends).collect();
        Self { starts, len: text.len() }
    }

    /// Where a line starts, 0-based; the end of the text for those beyond it.
    fn start(&self, line: usize) -> usize {
        self.starts.get(line).copied().unwrap_or(self.len)
    }

    /// The line of a byte, 0-based.
    fn index(&self, byte: usize) -> usize {
        self.starts.partition_point(|s| *s <= byte).saturating_sub(1)
    }

    /// The line of a byte, 1-based.
    fn number(&self, byte: usize) -> u32 {
        u32::try_from(self.index(byte) + 1).unwrap_or(u32::MAX)
    }

    fn line<'t>(&self, text: &'t str, line: usize) -> &'t str {
        text[self.start(line)..self.start(line + 1)].trim_end_matches('\n')
    }

    /// The lines that a range is in.
    fn text<'t>(&self, text: &'t str, range: &Range<usize>) -> &'t str {
        let from = self.start(self.index(range.start));
        let to = self.start(self.index(range.end.saturating_sub(1).max(range.start)) + 1);
        text[from..to].trim_end_matches('\n')
    }
}
