//! The rules as data: a file of gitleaks' format, read once; each pattern is compiled when a keyword of
//! its rule is first seen.

use super::go_syntax::translate;
use regex::{Regex, RegexBuilder};
use serde::Deserialize;
use std::sync::OnceLock;

/// The most memory that one compiled pattern may take, in bytes.
const PATTERN_BYTES_MAX: usize = 32 << 20;
/// The most memory that the lazy automaton of one pattern may take while it searches, in bytes.
const AUTOMATON_BYTES_MAX: usize = 8 << 20;

/// A file of rules.
#[derive(Debug, Deserialize)]
struct RulesFile {
    #[serde(default)]
    allowlist: AllowListFile,
    rules: Vec<RuleFile>,
}

#[derive(Debug, Deserialize)]
struct RuleFile {
    id: String,
    regex: Option<String>,
    entropy: Option<f64>,
    #[serde(rename = "secretGroup")]
    secret_group: Option<usize>,
    #[serde(default)]
    keywords: Vec<String>,
    #[serde(default)]
    allowlists: Vec<AllowListFile>,
    #[serde(default)]
    value: Value,
    lines: Option<usize>,
}

#[derive(Debug, Default, Deserialize)]
struct AllowListFile {
    #[serde(default)]
    condition: String,
    #[serde(default)]
    paths: Vec<String>,
    #[serde(default, rename = "regexTarget")]
    regex_target: String,
    #[serde(default)]
    regexes: Vec<String>,
    #[serde(default)]
    stopwords: Vec<String>,
}

/// What a value must look like before it counts; a key of our own in the files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Value {
    /// Whatever the pattern takes, save placeholders and published samples.
    #[default]
    Form,
    /// The place alone says that it is a secret; words are secrets there, too.
    Strong,
    /// The name beside it says so: it must look like a password or key, not like a word or a name.
    Weak,
    /// Like `Weak`, and not a digest or UUID either.
    Loose,
}

/// A rule.
#[derive(Debug)]
pub(super) struct Rule {
    pub(super) id: String,
    pattern: String,
    compiled: OnceLock<Option<Regex>>,
    pub(super) entropy: Option<f64>,
    pub(super) group: Option<usize>,
    pub(super) keywords: Vec<String>,
    pub(super) allow: Vec<AllowList>,
    pub(super) value: Value,
    /// Lines after the one with the keyword that a match may reach; none for all that follow.
    pub(super) lines: Option<usize>,
}

/// When a match is no finding, as gitleaks means it.
#[derive(Debug)]
pub(super) struct AllowList {
    all_must_match: bool,
    paths: Patterns,
    target: Target,
    regexes: Patterns,
    stopwords: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Target {
    Secret,
    Match,
    Line,
}

/// What a list is asked about.
pub(super) struct Candidate<'a> {
    pub(super) secret: &'a str,
    pub(super) whole: &'a str,
    pub(super) line: &'a str,
    pub(super) path: &'a str,
}

#[derive(Debug)]
struct Patterns(Vec<(String, OnceLock<Option<Regex>>)>);

impl Patterns {
    fn new(go: &[String]) -> Self {
        Self(go.iter().map(|p| (translate(p), OnceLock::new())).collect())
    }

    fn any(&self, text: &str) -> bool {
        self.0.iter().any(|(pattern, compiled)| {
            compiled
                .get_or_init(|| compile(pattern).ok())
                .as_ref()
                .is_some_and(|r| r.is_match(text))
        })
    }
}

fn compile(pattern: &str) -> Result<Regex, regex::Error> {
    RegexBuilder::new(pattern)
        .size_limit(PATTERN_BYTES_MAX)
        .dfa_size_limit(AUTOMATON_BYTES_MAX)
        .build()
}

impl AllowList {
    fn new(file: &AllowListFile) -> Self {
        Self {
            all_must_match: file.condition.eq_ignore_ascii_case("and"),
            paths: Patterns::new(&file.paths),
            target: match file.regex_target.as_str() {
                "match" => Target::Match,
                "line" => Target::Line,
                _ => Target::Secret,
            },
            regexes: Patterns::new(&file.regexes),
            stopwords: file.stopwords.iter().map(|w| w.to_lowercase()).collect(),
        }
    }

    /// True when the candidate is no finding.
    pub(super) fn allows(&self, candidate: &Candidate<'_>) -> bool {
        let target = match self.target {
            Target::Secret => candidate.secret,
            Target::Match => candidate.whole,
            Target::Line => candidate.line,
        };
        let lower = candidate.secret.to_lowercase();
        let mut checks = Vec::with_capacity(3);
        if !self.paths.0.is_empty() {
            checks.push(self.paths.any(candidate.path));
        }
        if !self.regexes.0.is_empty() {
            checks.push(self.regexes.any(target));
        }
        if !self.stopwords.is_empty() {
            checks.push(self.stopwords.iter().any(|w| lower.contains(w)));
        }
        if self.all_must_match {
            !checks.is_empty() && checks.iter().all(|c| *c)
        } else {
            checks.contains(&true)
        }
    }
}

impl Rule {
    /// The pattern, compiled; none where it does not compile.
    pub(super) fn regex(&self) -> Option<&Regex> {
        self.compiled.get_or_init(|| compile(&self.pattern).ok()).as_ref()
    }

    /// Why the pattern does not compile.
    #[cfg(test)]
    pub(super) fn problem(&self) -> Option<String> {
        compile(&self.pattern).err().map(|e| e.to_string())
    }
}

/// A set of rules with the list that holds for all of them.
pub(super) struct RuleSet {
    pub(super) rules: Vec<Rule>,
    pub(super) allow: AllowList,
    /// Rules that look at paths alone and say nothing about text.
    pub(super) without_pattern: Vec<String>,
}

/// How far a match reaches where the file does not say.
const LINES: usize = 8;

impl RuleSet {
    /// Reads a file of rules. `path` conditions of a rule are not kept: a runbook quotes files of every
    /// kind. Nor are the paths of the list for all: what is indexed is looked at.
    ///
    /// # Errors
    /// When it is not such a file.
    pub(super) fn read(text: &str) -> Result<Self, toml::de::Error> {
        let file: RulesFile = toml::from_str(text)?;
        let mut without_pattern = Vec::new();
        let mut rules = Vec::with_capacity(file.rules.len());
        for rule in file.rules {
            let Some(pattern) = rule.regex else {
                without_pattern.push(rule.id);
                continue;
            };
            let unbounded = ["(?s", r"\s\S", r"\r\n]{"].iter().any(|p| pattern.contains(p));
            rules.push(Rule {
                id: rule.id,
                lines: rule.lines.or((!unbounded).then_some(LINES)),
                pattern: translate(&pattern),
                compiled: OnceLock::new(),
                entropy: rule.entropy,
                group: rule.secret_group,
                keywords: rule.keywords,
                allow: rule.allowlists.iter().map(AllowList::new).collect(),
                value: rule.value,
            });
        }
        let mut all = file.allowlist;
        all.paths.clear();
        Ok(Self { rules, allow: AllowList::new(&all), without_pattern })
    }
}
