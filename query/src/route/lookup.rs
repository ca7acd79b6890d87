//! Questions that name what they want: a page by its name, or nothing but an identifier. The files
//! answer them without a search.

use regex::Regex;
use runbook_shared::analyse::{TermKind, analyse, is_stop_word};
use runbook_shared::retrieval::corpus::Corpus;
use std::sync::{Arc, LazyLock};

/// The name of this step in a route.
pub const STEP: &str = "files";
/// How sure a page is that was asked for by its name.
pub const NAMED: f32 = 0.95;
/// The longest question that is read this way, in bytes.
const QUESTION_BYTES_MAX: usize = 200;

/// What a question names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lookup {
    /// A page, by file name, path or title.
    Page(String),
    /// An identifier, and nothing else.
    Identifier(String),
}

static OPENS: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(
        r"(?ix)^(?:please\s+)?(?:can\ you\s+|could\ you\s+)?
          (?:show|open|read|cat|display|print|get|give)\s+(?:me\s+)?(?:the\s+)?
          (?:(?:page|runbook|document|doc|file)\s+)?(?P<n>.+?)
          (?:\s+(?:page|runbook|document|doc|file))?\s*[?.!]*$",
    )
    .expect("a test compiles it")
});
static FILE: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(?i)^[\w.@ -]*(?:/[\w.@ -]+)*\.(?:md|markdown|mdx|txt|rst|adoc|erb)$")
        .expect("a test compiles it")
});
static ASKS: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(?i)^(?:what\s+is|what's|what\s+does|explain|define|grep|find|where\s+is)\s+")
        .expect("a test compiles it")
});

/// What a question names, by its form; none for every other question.
#[must_use]
pub fn recognise(question: &str) -> Option<Lookup> {
    let text = question.trim();
    if text.len() > QUESTION_BYTES_MAX || text.contains('\n') {
        return None;
    }
    let quoted = |t: &str| t.trim_matches(['`', '"', '\'', '?', ' ']).to_owned();
    if FILE.is_match(&quoted(text)) && !quoted(text).contains(' ') {
        return Some(Lookup::Page(quoted(text)));
    }
    if let Some(found) = OPENS.captures(text) {
        return Some(Lookup::Page(quoted(&found["n"])));
    }
    let bare = quoted(&ASKS.replace(text, ""));
    let named = bare.trim_end_matches(" mean").trim();
    let identifier = !named.contains(char::is_whitespace)
        && analyse(named).iter().any(|t| t.kind == TermKind::Whole && t.position == 0);
    identifier.then(|| Lookup::Identifier(named.to_owned()))
}

/// The one document of this name, as (corpus, path); none when there is no such or more than one.
#[must_use]
pub fn page(corpora: &[Arc<Corpus>], name: &str, scope: Option<&str>) -> Option<(usize, String)> {
    let wanted = key(name);
    if wanted.is_empty() {
        return None;
    }
    let within = |corpus: &Corpus, path: &str| match scope {
        Some(s) => match s.strip_prefix("repo:") {
            Some(repo) => repo == corpus.repo,
            None => {
                let s = s.trim_matches('/');
                path.strip_prefix(s).is_some_and(|r| r.is_empty() || r.starts_with('/'))
            }
        },
        None => true,
    };
    let mut found = Vec::new();
    for (at, corpus) in corpora.iter().enumerate() {
        for document in &corpus.generation.documents {
            let path = document.path.as_str();
            let base = path.rsplit('/').next().unwrap_or(path);
            let is = path == name.trim_start_matches('/')
                || base.eq_ignore_ascii_case(name)
                || key(stem(base)) == wanted
                || key(&document.title) == wanted
                || (name.contains('/') && key(stem(path)) == key(stem(name)));
            if is && within(corpus, path) {
                found.push((at, path.to_owned()));
            }
        }
    }
    // Of several pages of a name, one at that very path.
    if found.len() > 1 {
        found.retain(|(_, path)| path == name.trim_start_matches('/'));
    }
    if found.len() == 1 { found.pop() } else { None }
}

/// Whether a text holds an identifier as a whole, in any case.
#[must_use]
pub fn holds(text: &str, identifier: &str) -> bool {
    let (text, wanted) = (text.to_lowercase(), identifier.to_lowercase());
    let inside = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    !wanted.is_empty()
        && text.match_indices(&wanted).any(|(at, _)| {
            !inside(text[..at].chars().next_back())
                && !inside(text[at + wanted.len()..].chars().next())
        })
}

/// The word that a grep should start with: an identifier, else the longest word that says something.
#[must_use]
pub fn rarest_word(question: &str) -> Option<String> {
    let plain = |t: &&runbook_shared::analyse::Term| {
        t.surface.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '.'))
            && t.surface.len() > 2
            && !is_stop_word(&t.surface)
    };
    let terms = analyse(question);
    let whole = terms.iter().filter(|t| t.kind == TermKind::Whole).find(plain);
    let word = || terms.iter().filter(plain).min_by_key(|t| std::cmp::Reverse(t.surface.len()));
    whole.or_else(word).map(|t| t.surface.clone())
}

fn stem(file: &str) -> &str {
    file.rsplit_once('.').map_or(file, |(stem, _)| stem)
}

/// Words of a name in lower case: `Fail_over-main` and "fail over main" are the same.
fn key(name: &str) -> String {
    let words = name.split(|c: char| !c.is_alphanumeric()).filter(|w| !w.is_empty());
    words.map(str::to_lowercase).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_known_by_their_form() {
        let page = |n: &str| Some(Lookup::Page(n.into()));
        let identifier = |n: &str| Some(Lookup::Identifier(n.into()));
        for (question, expected) in [
            ("database/failover-main.md", page("database/failover-main.md")),
            ("open failover-main", page("failover-main")),
            ("show me the on-call handover page", page("on-call handover")),
            ("cat `nginx.md`", page("nginx.md")),
            ("CrashLoopBackOff", identifier("CrashLoopBackOff")),
            ("what is max_connections?", identifier("max_connections")),
            ("how do I restart nginx", None),
            ("what is the staging hostname", None),
            ("nginx", None),
            ("which unit opens 8080", None),
        ] {
            assert_eq!(recognise(question), expected, "{question}");
        }
        assert!(
            holds("a MaxStartups 10:30", "maxstartups") && !holds("xmaxstartups", "maxstartups")
        );
        assert_eq!(
            rarest_word("how do I raise max_connections now").as_deref(),
            Some("max_connections")
        );
        assert_eq!(rarest_word("drain the old relay").as_deref(), Some("drain"));
        assert_eq!(key("Fail_over-main"), key("fail over MAIN"));
    }
}
