//! Questions that only mean something after another one, and what they mean then.
//!
//! A follow-up is known by its form alone: a pronoun with nothing before it that it could stand for,
//! or a fragment ("and on staging?", "what about redis"). A question with words of its own, or with an
//! identifier, stands by itself, whatever was asked before.

use crate::gate::is_deed;
use regex::Regex;
use runbook_shared::analyse::{TermKind, analyse, is_stop_word};
use std::sync::LazyLock;

/// How a question leans on the one before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Form {
    /// "and then?": what stands next.
    Continues,
    /// "what about redis": the same of another thing.
    Replaces(String),
    /// "and on staging?": the same under another condition.
    Adds(String),
    /// "how long does that take": something else of the same thing.
    Refers,
}

impl Form {
    /// What it brings that the question before did not have.
    #[must_use]
    pub fn added(&self) -> Option<&str> {
        match self {
            Self::Replaces(x) | Self::Adds(x) => Some(x),
            Self::Continues | Self::Refers => None,
        }
    }
}

/// The most words of a follow-up.
const WORDS_MAX: usize = 12;
/// The most content words of one.
const CONTENT_MAX: usize = 3;
/// The most readings that are tried.
const READINGS_MAX: usize = 6;

/// Words that say nothing of what a question is about.
const EMPTY: &str = "happen happens happened next each explain mean means again more details detail long often many \
    much work works go goes take takes one ones same thing also still first after before instead else example \
    examples step steps then now both other another exactly again else quickly usually really ok okay yes no \
    elaborate please show again last that's what's it's else";

static CONTINUES: LazyLock<Regex> = LazyLock::new(|| {
    regex(
        r"^(?:(?:and|ok|okay|so|done|yes|alright)[,.]?\s+)*(?:then|then what|what then|and then|what(?:'s| is|s)? next|(?:the )?next(?: steps?| one)?|what(?:'s| is|s)? the next step|what (?:comes|follows|do (?:i|we) do|should (?:i|we) do|happens) (?:next|after(?: that| this)?|afterwards?|then|now)|after (?:that|this)|afterwards|go on|continue|keep going|what now|now what|and now|step two)$",
    )
});
static REPLACES: LazyLock<Regex> = LazyLock::new(|| {
    regex(
        r"^(?:(?:and|ok|okay|so|but)[,]?\s+)?(?:(?:what|how) about|what of|same (?:question |thing )?(?:for|but for|with|but with|again for)|and for|and the same (?:for|with))\s+(?:the |our |a |an )?(?P<x>.+)$",
    )
});
static ADDS: LazyLock<Regex> = LazyLock::new(|| {
    regex(
        r"^(?:(?:and|but|ok|okay|so|what about|how about|and what about|also)[,]?\s+)+(?P<x>(?:on|in|at|with|without|from|under|via|using|during|when|if|after|before|for|over|inside|as)\s+.+)$",
    )
});
static FRAGMENT: LazyLock<Regex> = LazyLock::new(|| {
    regex(
        r"^(?P<x>(?:on|in|at|with|without|from|under|via|using|during|for)\s+(?:the |our )?\S+(?: \S+)?)$",
    )
});
static AND_X: LazyLock<Regex> =
    LazyLock::new(|| regex(r"^(?:and|or|also)\s+(?:the |our |a |an )?(?P<x>\S+(?: \S+){0,2})$"));
static ELLIPTIC: LazyLock<Regex> = LazyLock::new(|| {
    regex(
        r"^(?:(?:and|but|ok|so)\s+)?(?:why|how|how long|how often|how many|how much|when|where|who|by whom|which ones?|how so|how come|why not|is (?:it|that) safe|is that all|(?:any |an |for )?examples?|more|(?:more|any) details|(?:can you |please )?(?:explain|elaborate)(?: (?:more|please|further))?|in short|what for|what else|anything else|what if not|what if (?:it|that) (?:fails|does not work|doesn't work))$",
    )
});
static EXPLETIVE: LazyLock<Regex> = LazyLock::new(|| {
    regex(
        r"\b(?:is|was|would be|makes) it (?:safe|ok|okay|possible|necessary|normal|allowed|better|required|important|enough|worth|fine|true|bad|good|a good idea|supposed) (?:to|that|if|for)\b|\bit is\b.+\bthat\b|\btakes? (?:it )?to\b|\bdoes it (?:take|matter|mean)\b.+\b(?:to|when|if|that)\b|\bwhat (?:time|day) is it\b|\bthis (?:morning|week|month|year|time|evening|afternoon)\b|\bwhat does it mean (?:when|if)\b|\b(?:and|or|but|then|after|before|when|if|while|because|so)\b.*\bit\b.*\bfor me\b",
    )
});

fn regex(pattern: &str) -> Regex {
    Regex::new(pattern).expect("a test compiles the forms")
}

/// The form of a follow-up; nothing for a question that stands by itself.
#[must_use]
pub fn form(question: &str) -> Option<Form> {
    let trimmed = question.trim();
    if trimmed.contains('\n') || trimmed.split_whitespace().count() > WORDS_MAX {
        return None;
    }
    let asks = trimmed.ends_with('?');
    let text = plain(trimmed);
    if CONTINUES.is_match(&text) {
        return Some(Form::Continues);
    }
    if ELLIPTIC.is_match(&text) {
        return Some(Form::Refers);
    }
    let words = content(&text);
    let named = |found: Option<regex::Captures<'_>>| {
        let x = found?.name("x")?.as_str().trim().to_owned();
        let count = content(&x).len();
        (count > 0 && count <= CONTENT_MAX).then_some(x)
    };
    if let Some(x) = named(REPLACES.captures(&text)).filter(|x| !starts_with_preposition(x)) {
        return Some(Form::Replaces(x));
    }
    if let Some(x) = named(ADDS.captures(&text)) {
        return Some(if pronoun(&x).is_some() { Form::Refers } else { Form::Adds(x) });
    }
    let is_question = |x: &String| {
        let first = x.split(' ').next().unwrap_or("");
        [
            "how", "what", "why", "when", "where", "who", "which", "is", "are", "do", "does",
            "can", "should",
        ]
        .contains(&first)
    };
    if let Some(x) = named(AND_X.captures(&text))
        .filter(|x| !is_question(x) && !is_deed(x.split(' ').next().unwrap_or("")))
    {
        return Some(Form::Replaces(x));
    }
    let short = text.split(' ').count() <= 4;
    if let Some(x) = named(FRAGMENT.captures(&text))
        .filter(|x| asks && short && !x.contains("which") && !x.contains("what"))
    {
        return Some(Form::Adds(x));
    }
    let identifier = analyse(trimmed).iter().any(|t| t.kind == TermKind::Whole);
    if identifier || words.len() > CONTENT_MAX || EXPLETIVE.is_match(&text) {
        return None;
    }
    let joined = ["and ", "but "].iter().any(|l| text.starts_with(l)) && words.len() <= 1;
    (pronoun(&text).is_some() || joined).then_some(Form::Refers)
}

fn starts_with_preposition(text: &str) -> bool {
    [
        "on", "in", "at", "with", "without", "from", "under", "via", "using", "during", "when",
        "if", "after", "before",
    ]
    .iter()
    .any(|p| text.strip_prefix(p).is_some_and(|rest| rest.starts_with(' ')))
}

/// Lower case, straight apostrophes, one blank between words, no mark at the end.
fn plain(text: &str) -> String {
    let lower = text.to_lowercase().replace('’', "'");
    let words: Vec<&str> = lower
        .split_whitespace()
        .map(|w| w.trim_matches(|c: char| "?!.;:\"()".contains(c)))
        .collect();
    words.into_iter().filter(|w| !w.is_empty()).collect::<Vec<_>>().join(" ")
}

fn is_content(word: &str) -> bool {
    let bare: String = word.chars().filter(|c| *c != '\'' && *c != ',').collect();
    !bare.is_empty() && !is_stop_word(&bare) && !EMPTY.split_whitespace().any(|w| w == word)
}

fn content(text: &str) -> Vec<String> {
    text.split(' ')
        .map(|w| w.trim_matches(','))
        .filter(|w| is_content(w))
        .map(str::to_owned)
        .collect()
}

/// Where a pronoun stands that nothing before it explains.
fn pronoun(text: &str) -> Option<usize> {
    let words: Vec<&str> = text.split(' ').map(|w| w.trim_matches(',')).collect();
    let at = words.iter().enumerate().position(|(at, word)| {
        let next = words.get(at + 1).copied();
        let before = at.checked_sub(1).and_then(|b| words.get(b)).copied().unwrap_or("");
        match *word {
            "it" | "they" | "them" | "those" | "these" | "each" | "both" => true,
            "this" => next.is_none_or(|n| !is_content(n)),
            // Behind a noun it opens a clause: "the host that runs redis".
            "that" => {
                let relative = is_content(before)
                    && next.is_some_and(|n| {
                        is_content(n)
                            || [
                                "is", "are", "was", "were", "has", "have", "can", "will", "do",
                                "does", "i", "we",
                            ]
                            .contains(&n)
                    });
                !relative
                    && next.is_none_or(|n| {
                        !["the", "a", "an", "our", "we", "i", "there", "it", "they", "you", "this"]
                            .contains(&n)
                    })
            }
            "one" | "ones" => {
                ["which", "other", "second", "first", "last", "that", "this"].contains(&before)
            }
            _ => false,
        }
    })?;
    let count = |words: &[&str]| words.iter().filter(|w| is_content(w)).count();
    (count(&words[..at]) <= 1 && count(&words[at + 1..]) <= 2).then_some(at)
}

/// What a follow-up may mean after a question, the likeliest first; none where that question says
/// nothing to go on with.
#[must_use]
pub fn readings(form: &Form, follow_up: &str, previous: &str) -> Vec<String> {
    let before = plain(previous);
    let about = subject(&before);
    if about.is_empty() {
        return Vec::new();
    }
    let mut readings = match form {
        Form::Continues => vec![before],
        Form::Refers => vec![format!("{} {about}", without_pronoun(&plain(follow_up)))],
        Form::Adds(x) => {
            let preposition = x.split(' ').next().unwrap_or("");
            let replaced = replace_phrase(&before, preposition, x);
            replaced.into_iter().chain([format!("{before} {x}")]).collect()
        }
        Form::Replaces(x) => replacements(&before, x),
    };
    readings.truncate(READINGS_MAX);
    readings
}

/// A question without the words that ask.
fn subject(text: &str) -> String {
    let words: Vec<&str> = text.split(' ').collect();
    let first = words.iter().position(|w| is_content(w));
    let last = words.iter().rposition(|w| is_content(w));
    first.zip(last).map_or(String::new(), |(f, l)| words[f..=l].join(" "))
}

fn without_pronoun(text: &str) -> String {
    let drop = [
        "it", "that", "this", "they", "them", "those", "these", "each", "both", "and", "but", "ok",
        "so", "then",
    ];
    let words: Vec<&str> =
        text.split(' ').filter(|w| !drop.contains(&w.trim_matches(','))).collect();
    words.join(" ")
}

/// "restart nginx on production" with "on staging": the phrase of the same preposition goes.
fn replace_phrase(before: &str, preposition: &str, with: &str) -> Option<String> {
    let words: Vec<&str> = before.split(' ').collect();
    let at = words.iter().rposition(|w| *w == preposition)?;
    let mut end = at + 1;
    while words.get(end).is_some_and(|w| ["the", "our", "a", "an"].contains(w)) {
        end += 1;
    }
    let end = (end + 1).min(words.len());
    let mut out: Vec<&str> = words[..at].to_vec();
    out.push(with);
    out.extend(&words[end..]);
    Some(out.join(" "))
}

/// The question with each of its things replaced by another, last ones first; verbs stay.
fn replacements(before: &str, x: &str) -> Vec<String> {
    let words: Vec<&str> = before.split(' ').collect();
    let plain = |w: &str| w.chars().filter(|c| *c != '\'' && *c != ',').collect::<String>();
    let is_thing = |w: &str| !is_stop_word(&plain(w)) && !is_deed(w.trim_matches(','));
    let mut runs: Vec<(usize, usize)> = Vec::new();
    for (at, word) in words.iter().enumerate() {
        match runs.last_mut() {
            _ if !is_thing(word) => {}
            Some(run) if run.1 == at => run.1 = at + 1,
            _ => runs.push((at, at + 1)),
        }
    }
    let replace = |from: usize, to: usize| {
        let mut out: Vec<&str> = words[..from].to_vec();
        out.push(x);
        out.extend(&words[to..]);
        out.join(" ")
    };
    let mut readings = Vec::new();
    for (from, to) in runs.into_iter().rev() {
        readings.push(replace(from, to));
        if to - from > 1 {
            readings.push(replace(to - 1, to));
            readings.push(replace(from, from + 1));
        }
    }
    if readings.is_empty() {
        readings.push(format!("{before} {x}"));
    }
    readings.dedup();
    readings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn follow_ups_are_known_by_their_form() {
        let x = |s: &str| s.to_owned();
        for (question, expected) in [
            ("and then?", Form::Continues),
            ("What next?", Form::Continues),
            ("ok, and after that?", Form::Continues),
            ("what about redis", Form::Replaces(x("redis"))),
            ("And for the standby?", Form::Replaces(x("standby"))),
            ("same for postgres?", Form::Replaces(x("postgres"))),
            ("and redis?", Form::Replaces(x("redis"))),
            ("and on staging?", Form::Adds(x("on staging"))),
            ("what about on staging", Form::Adds(x("on staging"))),
            ("on staging?", Form::Adds(x("on staging"))),
            ("how long does that take?", Form::Refers),
            ("can you explain each?", Form::Refers),
            ("how do I undo it", Form::Refers),
            ("and if it fails?", Form::Refers),
            ("what if that fails", Form::Refers),
            ("which one is the primary?", Form::Refers),
            ("why?", Form::Refers),
            ("who can do that", Form::Refers),
            ("what are those for", Form::Refers),
            ("and how do I verify?", Form::Refers),
        ] {
            assert_eq!(form(question), Some(expected), "{question}");
        }
    }

    #[test]
    fn a_question_of_its_own_is_none() {
        for question in [
            "how do I restart nginx",
            "restart nginx",
            "how do I restart redis after it crashes",
            "is it safe to restart postgres",
            "how long does it take to restore the dump",
            "which hosts run redis and how do I restart them",
            "the host that runs redis",
            "which services are critical",
            "what does this alert mean: DiskFull",
            "why is node_exporter down, is it the disk",
            "who is on call this week",
            "in which order are services started",
            "on-call phone number",
            "what is the staging hostname",
            "so how do I restart nginx",
            "what happens when the disk is full",
            "drain a node and then reboot",
            "where did they find the heart of the ocean",
            "i heard that there is a standby",
            "which unit opens 8080",
        ] {
            assert_eq!(form(question), None, "{question}");
        }
    }

    #[test]
    fn they_are_completed_from_the_question_before() {
        let first = |follow: &str, previous: &str| {
            let form = form(follow).unwrap();
            readings(&form, follow, previous).into_iter().next()
        };
        assert_eq!(
            first("what about redis?", "how do I restart nginx?").as_deref(),
            Some("how do i restart redis")
        );
        assert_eq!(
            first("and on staging?", "restart nginx").as_deref(),
            Some("restart nginx on staging")
        );
        assert_eq!(
            first("and on staging?", "how do I restart nginx on production").as_deref(),
            Some("how do i restart nginx on staging")
        );
        assert_eq!(
            first("how long does that take", "how do we restore last night's dump?").as_deref(),
            Some("how long does take restore last night's dump")
        );
        assert_eq!(first("why?", "what is it"), None);
    }
}
