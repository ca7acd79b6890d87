//! The post-processor: what a model wrote is shown only if the sections that it cites support all of it.
//!
//! Citations must be among the sections that were given; every command, flag, port, path, host, unit,
//! version, number and identifier must stand in a cited one (the guard of `POST /v1/cite`, on those
//! sections alone); every sentence must share most of its words with one of them, and must not deny what
//! it says or say what it denies. A model that obeys a poisoned page gets through only with what the page
//! says, under the page's name.

use super::answer::Named;
use super::given::Given;
use super::prompt::Marks;
use crate::evidence::atoms::Atoms;
use crate::evidence::guard::{self, Ruling};
use crate::evidence::kinds;
use crate::reply::Citation;
use regex::Regex;
use runbook_shared::analyse::{analyse, is_stop_word};
use runbook_shared::retrieval::corpus::Corpus;
use rustc_hash::FxHashSet;
use std::sync::{Arc, LazyLock};

/// The longest answer of a model, in bytes.
const ANSWER_BYTES_MAX: usize = 16 * 1024;
/// The share of a sentence's words that one cited section must hold.
const SENTENCE_SHARE: f32 = 0.5;
/// Words of a sentence from which on it must be supported as one.
const SENTENCE_WORDS: usize = 3;
/// The share of its words from which on a sentence of a section says the same thing, or its opposite.
const SAME_SHARE: f32 = 0.7;
/// Words that turn a sentence into its opposite.
const DENIALS: [&str; 13] = [
    "not",
    "never",
    "no",
    "don't",
    "doesn't",
    "mustn't",
    "cannot",
    "can't",
    "isn't",
    "avoid",
    "without",
    "won't",
    "shouldn't",
];

static ITSELF: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(?i)\bI(?:'ve|’ve| have| just| did| was| am| will| can)\b|\bas an AI\b")
        .expect("a test compiles it")
});
static SECRET: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(
        r"(?i)\b(?:passwords?|passphrase|secret|token|api key|private key|credentials?)\b[^.\n]{0,60}?(?:\bis\b|\bare\b|:|=)\s*(\S+)",
    )
    .expect("a test compiles it")
});

/// What is wrong with something that a model wrote.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// Not the JSON that was asked for.
    #[error("the reply is not the JSON that was asked for ({0})")]
    Shape(String),
    /// Nothing is said.
    #[error("answer is empty")]
    Empty,
    /// Too long.
    #[error("answer is longer than {ANSWER_BYTES_MAX} bytes")]
    Long,
    /// A judge names a section that was not given.
    #[error("there is no section {0}")]
    NoSuchSection(i64),
    /// A judge names lines that the section does not have.
    #[error("lines {0} to {1} are not lines of that section")]
    NoSuchLines(i64, i64),
    /// An answer without a citation.
    #[error("answer is not \"I do not know\" and citations is empty")]
    NoCitation,
    /// A citation of a page that was not given.
    #[error("no section of `{0}` was given")]
    NotGiven(String),
    /// A citation of a heading that was not given, of a page that was.
    #[error("`{0}` was given, but not its heading `{1}`")]
    WrongHeading(String, String),
    /// Words that no cited section holds.
    #[error("no cited section supports: {0}")]
    Unsupported(String),
    /// A sentence that no cited section supports.
    #[error("no cited section supports the sentence \"{0}\"")]
    Sentence(String),
    /// A sentence that says the opposite.
    #[error("a cited section says the opposite of \"{0}\"")]
    Opposite(String),
    /// A command of the passage is missing.
    #[error("the command `{0}` of the section that answers is left out")]
    LeftOut(String),
    /// A mark of the request stands in it.
    #[error("answer holds a mark of this request")]
    Mark,
    /// It speaks of nothing that was asked.
    #[error("answer holds no word of the question")]
    OffTopic,
    /// It states the value of a secret.
    #[error("answer states the value of a secret")]
    Secret,
    /// It speaks of itself, as if it had done something.
    #[error("answer speaks of you or of what you did; say only what the runbooks say")]
    Itself,
    /// An agent that answers without having read anything.
    #[error("no page was read; read one before you answer")]
    NothingRead,
    /// An agent has used up what one question may cost.
    #[error("the budget of {0} is used up")]
    Budget(&'static str),
    /// An agent's tool or input that there is not.
    #[error("{0}")]
    Tool(String),
}

impl Fault {
    /// The name in replies and metrics.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Shape(_) => "shape",
            Self::Empty => "empty",
            Self::Long => "long",
            Self::NoSuchSection(_) => "no_such_section",
            Self::NoSuchLines(..) => "no_such_lines",
            Self::NoCitation => "no_citation",
            Self::NotGiven(_) => "not_given",
            Self::WrongHeading(..) => "wrong_heading",
            Self::Unsupported(_) => "unsupported",
            Self::Sentence(_) => "sentence",
            Self::Opposite(_) => "opposite",
            Self::LeftOut(_) => "left_out",
            Self::Mark => "mark",
            Self::OffTopic => "off_topic",
            Self::Secret => "secret",
            Self::Itself => "itself",
            Self::NothingRead => "nothing_read",
            Self::Budget(_) => "budget",
            Self::Tool(_) => "tool",
        }
    }

    /// The fault for the log: escaped, since a model's words are nobody's log lines.
    #[must_use]
    pub fn logged(&self) -> String {
        self.to_string().chars().take(300).flat_map(char::escape_debug).collect()
    }
}

/// The sections that a model's citations name.
///
/// # Errors
/// When there is none, or one was not given.
pub fn cited_sections(given: &[Given], named: &[Named]) -> Result<Vec<(usize, u32)>, Fault> {
    if named.is_empty() {
        return Err(Fault::NoCitation);
    }
    let mut sections = Vec::new();
    for citation in named {
        let of_path: Vec<&Given> =
            given.iter().filter(|g| g.path == citation.path.trim()).collect();
        if of_path.is_empty() {
            return Err(Fault::NotGiven(cut(&citation.path)));
        }
        let heading = citation.heading.trim().trim_start_matches('#').trim();
        let before = sections.len();
        for section in of_path.iter().filter(|g| g.heading == heading) {
            sections.push((section.corpus, section.section));
        }
        if sections.len() == before {
            return Err(Fault::WrongHeading(cut(&citation.path), cut(heading)));
        }
    }
    let mut seen = FxHashSet::default();
    sections.retain(|s| seen.insert(*s));
    Ok(sections)
}

/// Checks an answer against the sections that it is said to come from, and cites it from them.
///
/// # Errors
/// The first fault.
pub fn review(
    corpora: &[Arc<Corpus>],
    sections: &[(usize, u32)],
    marks: &Marks,
    (question, answer): (&str, &str),
    k: usize,
) -> Result<Vec<Citation>, Fault> {
    if answer.trim().is_empty() {
        return Err(Fault::Empty);
    }
    if answer.len() > ANSWER_BYTES_MAX {
        return Err(Fault::Long);
    }
    if answer.contains(marks.word()) {
        return Err(Fault::Mark);
    }
    check_manner(question, answer)?;
    let guarded = guard::cite_sections(corpora, sections, answer, k).map_err(|_| Fault::Long)?;
    if !guarded.unsupported.is_empty() {
        let tokens: Vec<String> = guarded
            .unsupported
            .iter()
            .map(|u| format!("the {} `{}`", u.kind, cut(&u.token)))
            .take(8)
            .collect();
        return Err(Fault::Unsupported(tokens.join(", ")));
    }
    let texts: Vec<String> = sections.iter().map(|s| text_of(corpora, *s)).collect();
    check_sentences(answer, &texts)?;
    if guarded.verdict != Ruling::Supported || guarded.citations.is_empty() {
        return Err(Fault::Sentence(cut(answer.trim())));
    }
    Ok(guarded.citations)
}

/// What an answer may never do, whatever the sections say: tell a secret, speak of deeds, change the
/// subject. `question` is empty where any word may be meant.
fn check_manner(question: &str, answer: &str) -> Result<(), Fault> {
    if ITSELF.is_match(answer) {
        return Err(Fault::Itself);
    }
    let tells = |found: regex::Captures<'_>| {
        let value = found[1].trim_matches(|c: char| "`'\"*_.,;:".contains(c)).to_owned();
        kinds::of(&value).is_some_and(|k| !matches!(k, kinds::Kind::Path | kinds::Kind::Host))
    };
    if SECRET.captures_iter(answer).any(tells) {
        return Err(Fault::Secret);
    }
    let (asked, said) = (stems(question), stems(answer));
    if !asked.is_empty() && !asked.iter().any(|w| said.contains(w)) {
        return Err(Fault::OffTopic);
    }
    Ok(())
}

/// Whether an answer holds these command lines: a phrased how-to must not lose a command.
///
/// # Errors
/// The first that is missing.
pub fn complete(answer: &str, commands: &[Vec<String>]) -> Result<(), Fault> {
    let atoms = Atoms::of([answer]);
    let missing = commands.iter().find(|c| !c.iter().all(|w| atoms.holds(w, false)));
    missing.map_or(Ok(()), |c| Err(Fault::LeftOut(cut(&c.join(" ")))))
}

fn text_of(corpora: &[Arc<Corpus>], (corpus, number): (usize, u32)) -> String {
    let (chunk, section) = corpora[corpus].generation.section(number);
    let trail = section.heading_path.join(". ");
    format!("{}.\n\n{trail}.\n\n{}", chunk.title, chunk.section_text(section))
}

fn check_sentences(answer: &str, texts: &[String]) -> Result<(), Fault> {
    let atoms: Vec<Atoms> = texts.iter().map(|t| Atoms::of([t.as_str()])).collect();
    let said: Vec<(Vec<String>, bool)> = texts
        .iter()
        .flat_map(|t| sentences(t))
        .map(|s| (stems(&s), denies(&s)))
        .filter(|(stems, _)| stems.len() >= SENTENCE_WORDS)
        .collect();
    for sentence in sentences(answer) {
        let words = stems(&sentence);
        if words.len() < SENTENCE_WORDS {
            continue;
        }
        let share = |held: usize| held as f32 / words.len() as f32;
        let best = atoms.iter().map(|a| share(a.shared(&words))).fold(0.0, f32::max);
        if best < SENTENCE_SHARE {
            return Err(Fault::Sentence(cut(&sentence)));
        }
        let denied = denies(&sentence);
        let same = |(stems, _): &&(Vec<String>, bool)| {
            share(words.iter().filter(|w| stems.contains(w)).count()) >= SAME_SHARE
        };
        let alike: Vec<&(Vec<String>, bool)> = said.iter().filter(same).collect();
        if !alike.is_empty() && alike.iter().all(|(_, d)| *d != denied) {
            return Err(Fault::Opposite(cut(&sentence)));
        }
    }
    Ok(())
}

fn stems(text: &str) -> Vec<String> {
    let mut seen = FxHashSet::default();
    analyse(text)
        .into_iter()
        .filter(|t| !t.within && !is_stop_word(&t.surface))
        .filter(|t| !DENIALS.contains(&t.surface.as_str()) && seen.insert(t.stem.clone()))
        .map(|t| t.stem)
        .collect()
}

fn denies(sentence: &str) -> bool {
    let plain = kinds::plain(sentence).to_lowercase();
    plain.split(|c: char| !c.is_alphanumeric() && c != '\'').any(|w| DENIALS.contains(&w))
}

/// The sentences of prose in a piece of Markdown; code is left to the guard.
fn sentences(markdown: &str) -> Vec<String> {
    let mut out = Vec::new();
    let mut open = String::new();
    let mut fenced = false;
    let end = |open: &mut String, out: &mut Vec<String>| {
        split(open, out);
        open.clear();
    };
    for line in markdown.lines() {
        let line = line.trim();
        if line.starts_with("```") || line.starts_with("~~~") {
            fenced = !fenced;
            end(&mut open, &mut out);
            continue;
        }
        if fenced {
            continue;
        }
        let bullet = line.trim_start_matches(['-', '*', '+', '>', '#', ' ']);
        let numbered = bullet.trim_start_matches(|c: char| c.is_ascii_digit());
        let item = numbered.strip_prefix(['.', ')']).filter(|_| numbered.len() < bullet.len());
        let text = item.unwrap_or(bullet).trim();
        if line.is_empty() || text.len() < line.len() || line.starts_with('|') {
            end(&mut open, &mut out);
        }
        if !open.is_empty() {
            open.push(' ');
        }
        open.push_str(text);
    }
    end(&mut open, &mut out);
    out
}

fn split(text: &str, out: &mut Vec<String>) {
    let mut from = 0;
    for (at, c) in text.char_indices() {
        let next = text[at + c.len_utf8()..].chars().next();
        let short = text[..at].ends_with("e.g") || text[..at].ends_with("i.e");
        if matches!(c, '.' | '!' | '?' | ';') && next.is_none_or(char::is_whitespace) && !short {
            out.push(text[from..=at].trim().to_owned());
            from = at + 1;
        }
    }
    out.push(text[from..].trim().to_owned());
    out.retain(|s| !s.is_empty());
}

/// The first part of a text, for a message.
fn cut(text: &str) -> String {
    const CHARS_MAX: usize = 160;
    let one_line: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    match one_line.char_indices().nth(CHARS_MAX) {
        Some((at, _)) => format!("{}…", &one_line[..at]),
        None => one_line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(answer: &str, text: &str) -> Result<(), &'static str> {
        check_sentences(answer, &[text.to_owned()]).map_err(|f| f.name())
    }

    #[test]
    fn sentences_need_support_and_must_not_be_turned_round() {
        let text = "# Failover\n\nPromote the standby when the primary is\ngone. Never restart the primary \
                    during a failover.\n\n- Page the database team first.\n";
        assert_eq!(check("Promote the standby when the primary is gone.", text), Ok(()));
        assert_eq!(check("First page the database team; then promote the standby.", text), Ok(()));
        assert_eq!(check("Do not restart the primary during a failover.", text), Ok(()));
        assert_eq!(check("Restart the primary during the failover.", text), Err("opposite"));
        assert_eq!(check("Do not page the database team first.", text), Err("opposite"));
        assert_eq!(
            check("Call the vendor hotline and open a severity ticket.", text),
            Err("sentence")
        );
        assert_eq!(check("Yes.", text), Ok(()));
    }

    #[test]
    fn prose_is_cut_into_sentences() {
        let all = sentences("1. Stop it.\n2. Wait, e.g. an hour\n\n```\nrm -rf /\n```\na\nb. c\n");
        assert_eq!(all, ["Stop it.", "Wait, e.g. an hour", "a b.", "c"]);
    }

    #[test]
    fn manners() {
        let check = |q: &str, a: &str| check_manner(q, a).map_err(|f| f.name());
        assert_eq!(
            check("where is the root password", "The root password is kept in the vault."),
            Ok(())
        );
        assert_eq!(check("where is it", "The password is in /etc/app/password."), Ok(()));
        assert_eq!(check("root password", "The root password is hunter2-x."), Err("secret"));
        assert_eq!(check("api key", "API key: `sk-12345`"), Err("secret"));
        assert_eq!(check("restart nginx", "I have restarted nginx."), Err("itself"));
        assert_eq!(check("restart nginx", "Drain the queue."), Err("off_topic"));
        assert_eq!(check("", "Drain the queue."), Ok(()));
    }

    #[test]
    fn commands_must_not_be_lost() {
        let all = vec![vec!["systemctl".to_owned(), "restart".into(), "nginx".into()]];
        assert!(complete("Run `systemctl restart nginx`.", &all).is_ok());
        assert_eq!(complete("Restart nginx.", &all).unwrap_err().name(), "left_out");
    }
}
