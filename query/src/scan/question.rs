//! Which questions only an exhaustive scan can answer, and what they are about.
//!
//! Counting, listing and "is it anywhere" are recognised by the form of the whole sentence. Doubt
//! decides against: a question that merely asks for a page, or how a thing is done, is none of these.

use super::forms::{FORMS, Kind};
use super::subject::Subject;
use regex::Regex;
use std::sync::LazyLock;

/// What is counted or listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Documents, however they are called.
    Documents,
    /// What stands under one heading.
    Sections,
    /// Each place.
    Occurrences,
}

/// What is looked for.
#[derive(Clone, Debug, PartialEq)]
pub enum Want {
    /// Documents whose text holds all (or any) of these.
    Mention {
        /// The subjects.
        subjects: Vec<Subject>,
        /// Whether one of them is enough.
        any: bool,
    },
    /// A document about this.
    Topic {
        /// The phrase.
        phrase: String,
        /// True where any mention will do ("anything on .."), not only a page of its own.
        loose: bool,
    },
    /// All there are.
    Everything,
}

/// A question that is answered by a scan.
#[derive(Clone, Debug, PartialEq)]
pub struct ScanQuestion {
    /// What is counted or listed.
    pub unit: Unit,
    /// What is looked for.
    pub want: Want,
    /// True when those without it are asked for.
    pub without: bool,
    /// A path named in the question, where its end may be one.
    pub beneath: Option<(String, Box<ScanQuestion>)>,
}

static TAIL: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(
        r"(?ix)[\s,]+(?:
          in\ (?:them|it|there|here) | in\ (?:its|their)\ (?:text|body)
        | (?:in|within|across|throughout)\ (?:any|all|the|our|this|these|one)(?:\ of\ (?:the|our|these))?(?:\ whole|\ entire)?\ (?:runbooks?|docs?|documents?|documentation|files?|pages?|repo|repository|tree|index|corpus|wiki|runbook\ repo)
        | anywhere | somewhere | at\ all | by\ name | please | pls | thanks | or\ not | already | yet | right\ now | currently | so\ far
        | explicitly | directly | too | as\ well | do\ we\ have | are\ there | is\ there | exist | in\ total
        )$",
    )
    .expect("a test compiles it")
});

static BENEATH: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(?i)^(?P<q>.+?)\s+(?:in|under|below|beneath|within)\s+(?:the\s+)?(?P<p>[\w./-]+?)/?(?:\s+(?P<d>folder|directory|dir|subtree))?$")
        .expect("a test compiles it")
});

static NOUN_BENEATH: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(?i)^(?P<a>.*?\b(?:runbooks|pages|documents|docs|files|playbooks|articles|guides|sections))\s+(?:in|under|below|beneath|within)\s+(?:the\s+)?(?P<p>[\w.-]+(?:/[\w.-]+)+|[\w.-]+)/?\s+(?P<b>(?:folder|directory)?\b.+)$")
        .expect("a test compiles it")
});

/// The longest question that is read this way, in bytes.
const QUESTION_BYTES_MAX: usize = 300;
/// The most words of a subject.
const SUBJECT_WORDS_MAX: usize = 8;
/// The most subjects of one question.
const SUBJECTS_MAX: usize = 4;

/// The scan that a question asks for; nothing for every other question.
#[must_use]
pub fn recognise(question: &str) -> Option<ScanQuestion> {
    if question.len() > QUESTION_BYTES_MAX || question.trim().contains('\n') {
        return None;
    }
    let text = tidy(question);
    let noun = NOUN_BENEATH.captures(&text).and_then(|c| {
        let (path, rest) = (c.name("p")?.as_str(), c.name("b")?.as_str());
        let cut = rest.trim_start_matches("folder ").trim_start_matches("directory ");
        let looks =
            path.contains('/') || text.contains(&format!("{path}/")) || cut.len() < rest.len();
        let inner = looks.then(|| parse(&format!("{} {cut}", &c["a"]))).flatten()?;
        Some((path.to_owned(), Box::new(inner)))
    });
    if let Some((path, inner)) = noun {
        return Some(ScanQuestion { beneath: Some((path, inner.clone())), ..*inner });
    }
    let beneath = BENEATH.captures(&text).and_then(|c| {
        let (rest, path) = (c.name("q")?.as_str(), c.name("p")?.as_str());
        let looks = path.contains('/') || c.name("d").is_some();
        looks.then(|| parse(rest)).flatten().map(|inner| (path.to_owned(), Box::new(inner)))
    });
    match (parse(&text), beneath) {
        (Some(scan), beneath) => Some(ScanQuestion { beneath, ..scan }),
        // Without the path there is a scan, with it there is none: "how many pages are in docs/redis".
        (None, Some((path, inner))) => {
            Some(ScanQuestion { beneath: Some((path, inner.clone())), ..*inner })
        }
        (None, None) => None,
    }
}

/// One line without greetings in front, and marks and courtesies behind.
fn tidy(question: &str) -> String {
    let mut text = question.split_whitespace().collect::<Vec<_>>().join(" ").replace('’', "'");
    for lead in [
        "hey",
        "hi",
        "please",
        "pls",
        "ok",
        "so",
        "and",
        "can you",
        "could you",
        "tell me",
        "do you know",
        "i need",
        "i want",
    ] {
        let rest = text
            .get(..lead.len())
            .filter(|s| s.eq_ignore_ascii_case(lead))
            .map(|_| text[lead.len()..].trim_start_matches([',', ':']));
        if let Some(rest) = rest.and_then(|r| r.strip_prefix(' ')) {
            text = rest.to_owned();
        }
    }
    loop {
        let cut = text.trim_end_matches(['?', '!', '.', ',', ';', ':', ' ']);
        let cut = TAIL.find(cut).filter(|m| m.start() > 0).map_or(cut, |m| &cut[..m.start()]);
        if cut.len() == text.len() {
            return text;
        }
        text = cut.to_owned();
    }
}

fn parse(text: &str) -> Option<ScanQuestion> {
    // "are there" and the like may be what a form ends with, so the text is tried as a whole first.
    FORMS.iter().find_map(|form| {
        let found = form.pattern.captures(text)?;
        let without = found.name("not").is_some();
        let want = match form.kind {
            Kind::Everything => Want::Everything,
            kind => wanted(kind, found.name("s")?.as_str())?,
        };
        Some(ScanQuestion { unit: form.unit, want, without, beneath: None })
    })
}

fn wanted(kind: Kind, text: &str) -> Option<Want> {
    let text = text.trim();
    let words = text.split_whitespace().count();
    if words == 0 || words > SUBJECT_WORDS_MAX || is_pronoun(text) {
        return None;
    }
    if kind == Kind::Topic {
        return Some(Want::Topic { phrase: bare(text), loose: false });
    }
    if kind == Kind::Loose {
        return Some(Want::Topic { phrase: bare(text), loose: true });
    }
    let (any, parts) = split(text);
    if parts.len() > SUBJECTS_MAX {
        return None;
    }
    let subjects: Vec<Subject> = parts.iter().map(|p| Subject::parse(p)).collect::<Option<_>>()?;
    let fits = match kind {
        Kind::One => subjects.iter().all(Subject::is_exact),
        Kind::Holds => subjects.iter().all(|s| s.is_exact() || s.words() <= 2),
        _ => true,
    };
    fits.then_some(Want::Mention { subjects, any })
}

fn bare(text: &str) -> String {
    let lower = text.to_lowercase();
    let lead = ["the ", "a ", "an ", "our "].iter().find(|l| lower.starts_with(**l));
    text[lead.map_or(0, |l| l.len())..].to_owned()
}

fn is_pronoun(text: &str) -> bool {
    let lower = text.to_lowercase();
    ["it", "this", "that", "these", "those", "them", "they", "what", "me", "us", "there", "one"]
        .contains(&lower.as_str())
}

/// "postgres and redis", "`a`, `b` or `c`": single words or quoted pieces, joined.
fn split(text: &str) -> (bool, Vec<String>) {
    for (joint, any) in [(" or ", true), (" and ", false)] {
        let parts: Vec<String> = text
            .split(joint)
            .flat_map(|p| p.split(", "))
            .map(|p| bare(p.trim().trim_start_matches("both ").trim_start_matches("either ")))
            .filter(|p| !p.is_empty())
            .collect();
        let short =
            |p: &String| p.split_whitespace().count() == 1 || p.starts_with(['"', '`', '\'', '“']);
        if parts.len() > 1 && text.contains(joint) && parts.iter().all(short) {
            return (any, parts);
        }
    }
    (false, vec![text.to_owned()])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn subject(question: &str) -> String {
        match recognise(question).map(|q| q.want) {
            Some(Want::Mention { subjects, any }) => {
                let names: Vec<&str> = subjects.iter().map(Subject::name).collect();
                names.join(if any { "|" } else { "&" })
            }
            Some(Want::Topic { phrase, loose }) => {
                format!("{}{phrase}", if loose { "~" } else { "=" })
            }
            Some(Want::Everything) => "*".into(),
            None => String::new(),
        }
    }

    #[test]
    fn counting_listing_and_absence_are_scans() {
        for (question, expected) in [
            ("how many runbooks mention MaxStartups", "MaxStartups"),
            ("How many of the docs talk about osquery?", "osquery"),
            ("which files name host db-01?", "db-01"),
            ("which runbooks mention growpart", "growpart"),
            ("list pages with cl_waiting in them", "cl_waiting"),
            ("files that name accept-dataloss", "accept-dataloss"),
            ("how many pages use tcpdump", "tcpdump"),
            ("everything that uses gkms-vault-edit", "gkms-vault-edit"),
            ("count of runbooks that talk about osquery", "osquery"),
            ("all docs where chef-client-enable shows up", "chef-client-enable"),
            ("in how many documents does \"split brain\" occur?", "split brain"),
            ("where is node_exporter mentioned?", "node_exporter"),
            ("how often is sidekiq mentioned in the runbooks", "sidekiq"),
            ("number of references to pgbouncer", "pgbouncer"),
            ("which pages mention both redis and sentinel", "redis&sentinel"),
            ("which docs mention sentry or bugsnag", "sentry|bugsnag"),
            ("which runbooks don't mention rollback", "rollback"),
            ("is vault mentioned anywhere", "vault"),
            ("does any runbook mention kafka?", "kafka"),
            ("which documents mention the tcpdump command", "tcpdump"),
            ("which runbooks mention port 8080", "8080"),
            ("is there a runbook for velero backups", "=velero backups"),
            ("do we have a runbook for failing over postgres?", "=failing over postgres"),
            ("any docs on how to rotate the certificates", "=rotate the certificates"),
            ("do we have anything on argo cd", "~argo cd"),
            ("is there anything about the mail relay?", "~mail relay"),
            ("list all pages about certificates", "~certificates"),
            ("how many runbooks are there", "*"),
            ("how many documents do we have?", "*"),
        ] {
            assert_eq!(subject(question), expected, "{question}");
        }
        assert_eq!(recognise("how many sections mention redis").unwrap().unit, Unit::Sections);
        assert_eq!(recognise("how many times is redis mentioned").unwrap().unit, Unit::Occurrences);
        assert!(recognise("which runbooks do not mention redis").unwrap().without);
        let scoped = recognise("how many pages in docs/redis")
            .or_else(|| recognise("how many pages are there in docs/redis"));
        assert_eq!(scoped.unwrap().beneath.unwrap().0, "docs/redis");
    }

    #[test]
    fn ordinary_questions_are_not() {
        for question in [
            "how do I restart nginx",
            "how many replicas does postgres have",
            "how many shards are there",
            "how many times does the job retry",
            "how many files can a process open",
            "how often is the certificate renewed",
            "how many pages of results does the api return",
            "which runbook covers failing over postgres",
            "which file contains the haproxy configuration",
            "which files hold the nginx configuration of the load balancers",
            "where is the retry queue used",
            "where is the root password kept",
            "which unit opens 8080",
            "list open ports",
            "show me the runbook for restarting nginx",
            "find the page for the disk alert",
            "is there a way to drain a node",
            "is there a backup of the database",
            "do we have a standby for postgres",
            "is redis used for sessions",
            "does nginx use http2",
            "any idea why the deploy hangs",
            "what does the runbook say about retries",
            "how many runbooks mention it",
            "which docs should I read first",
            "the page mentions a port, which one",
            "which hosts run redis",
            "list users in postgres",
            "tell me something about the mail relay",
            "count rows in a table",
        ] {
            assert_eq!(recognise(question), None, "{question}");
        }
    }
}
