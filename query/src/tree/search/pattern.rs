//! From patterns to a matcher, within bounds of length and memory.

use super::posix;
use crate::tree::error::TreeError;
use crate::tree::limits::Limits;
use crate::tree::request::Syntax;
use grep_matcher::Matcher;
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use regex_automata::hybrid::dfa::{Cache, DFA};
use regex_automata::{Anchored, Input, MatchKind};
use std::sync::Mutex;

/// Depth of groups in a pattern.
const NEST_MAX: u32 = 100;

/// How patterns are matched.
#[derive(Clone, Debug, Default)]
pub struct Spec {
    /// The patterns; a line matches when one of them does.
    pub patterns: Vec<String>,
    /// How they are read.
    pub syntax: Syntax,
    /// Whether case does not matter.
    pub ignore_case: bool,
    /// Whole words only.
    pub word: bool,
    /// Whole lines only.
    pub line: bool,
}

/// A compiled pattern.
pub struct Pattern {
    matcher: RegexMatcher,
    /// Finds the longest match at a place, as POSIX wants it; none where the first is the longest.
    longest: Option<Mutex<(DFA, Cache)>>,
}

impl Pattern {
    /// Compiles.
    ///
    /// # Errors
    /// When a pattern is too long, does not compile, or would take too much memory.
    pub fn new(spec: &Spec, limits: &Limits) -> Result<Self, TreeError> {
        let length: usize = spec.patterns.iter().map(String::len).sum();
        let shown = || {
            let all = spec.patterns.join("\\n");
            if all.chars().count() > 80 {
                format!("{}…", all.chars().take(80).collect::<String>())
            } else {
                all
            }
        };
        let refused = |why: String| TreeError::BadPattern { pattern: shown(), why };
        if length > limits.pattern_bytes {
            let most = limits.pattern_bytes;
            return Err(refused(format!("it is {length} bytes long, {most} is the most")));
        }
        let mut parts = Vec::new();
        for pattern in &spec.patterns {
            parts.push(match spec.syntax {
                Syntax::Fixed => regex::escape(pattern),
                Syntax::Basic => posix::translate(pattern, false).map_err(&refused)?,
                Syntax::Extended => posix::translate(pattern, true).map_err(&refused)?,
                Syntax::Rust => pattern.clone(),
            });
        }
        let mut builder = RegexMatcherBuilder::new();
        builder
            .multi_line(true)
            .unicode(true)
            .octal(false)
            .line_terminator(Some(b'\n'))
            .case_insensitive(spec.ignore_case)
            .size_limit(limits.regex_bytes)
            .dfa_size_limit(limits.regex_bytes)
            .nest_limit(NEST_MAX)
            .word(spec.word && !spec.line)
            .whole_line(spec.line);
        let matcher =
            builder.build_many(&parts).map_err(|e| refused(first_line(&e.to_string())))?;
        let posix = matches!(spec.syntax, Syntax::Basic | Syntax::Extended);
        let unsure = parts.len() > 1 || parts.iter().any(|p| p.contains('|') || p.contains(")?"));
        let plain = !spec.word && !spec.line;
        let longest = ((posix || parts.len() > 1) && unsure && plain)
            .then(|| longest(&parts, spec.ignore_case, limits))
            .flatten();
        Ok(Self { matcher, longest })
    }

    /// The matcher.
    #[must_use]
    pub fn matcher(&self) -> &RegexMatcher {
        &self.matcher
    }

    /// The next match in a line from an offset on: leftmost, and of those the longest.
    #[must_use]
    pub fn find_at(&self, line: &[u8], at: usize) -> Option<std::ops::Range<usize>> {
        let found = self.matcher.find_at(line, at).ok().flatten()?;
        let end = self.longest.as_ref().and_then(|longest| {
            let mut held = longest.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            let (dfa, cache) = &mut *held;
            let input = Input::new(line).range(found.start()..).anchored(Anchored::Yes);
            dfa.try_search_fwd(cache, &input).ok().flatten().map(|half| half.offset())
        });
        Some(found.start()..end.unwrap_or(found.end()).max(found.end()))
    }
}

fn longest(parts: &[String], ignore_case: bool, limits: &Limits) -> Option<Mutex<(DFA, Cache)>> {
    let syntax = regex_automata::util::syntax::Config::new()
        .multi_line(true)
        .case_insensitive(ignore_case)
        .nest_limit(NEST_MAX)
        .utf8(false);
    let dfa = DFA::builder()
        .configure(
            DFA::config()
                .match_kind(MatchKind::All)
                .unicode_word_boundary(true)
                .cache_capacity(limits.regex_bytes),
        )
        .syntax(syntax)
        .thompson(
            regex_automata::nfa::thompson::Config::new()
                .utf8(false)
                .nfa_size_limit(Some(limits.regex_bytes)),
        )
        .build_many(parts)
        .ok()?;
    let cache = dfa.create_cache();
    Some(Mutex::new((dfa, cache)))
}

/// The message of the regex crate without its drawing of the pattern.
fn first_line(message: &str) -> String {
    message.lines().rev().find_map(|l| l.strip_prefix("error: ")).unwrap_or(message).trim().into()
}
