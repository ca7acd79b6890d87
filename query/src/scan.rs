//! Questions that no list of best sections can answer: how many, which all, is there any.
//!
//! Every document of the scope is read and searched, so that the count is the count, and "none" means
//! none. What was matched, and how, stands in the answer; each document of the list is cited.

mod forms;
mod place;
pub mod question;
pub mod subject;
pub mod text;
mod topic;

use crate::citation;
use crate::engine::Verdict;
use crate::reply::{Band, Citation};
use place::{first_line, line_of, passage, quote};
use question::{ScanQuestion, Unit, Want};
use runbook_shared::chunk::DocumentRecord;
use runbook_shared::generation::Generation;
use runbook_shared::limits::K_MAX;
use runbook_shared::retrieval::corpus::Corpus;
use runbook_shared::score::Confidence;
use serde_json::json;
use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;
use subject::{Places, Subject};

/// How sure a list is whose words stand exactly as they were asked for.
const EXACT: f32 = 1.0;
/// How sure it is where other inflections count.
const INFLECTED: f32 = 0.98;
/// How sure a page is whose title and headings hold all words of a topic.
const TITLED: f32 = 0.9;

/// The name of this step in a route.
pub const STEP: &str = "scan";

/// What is scanned.
#[derive(Clone, Copy, Debug)]
pub struct Scan<'a> {
    /// The question.
    pub question: &'a ScanQuestion,
    /// Path prefix, or `repo:NAME`.
    pub scope: Option<&'a str>,
    /// The most documents to list; as many as there may be where the client does not say.
    pub k: Option<usize>,
}

/// What a scan comes to.
#[derive(Debug)]
pub enum Outcome {
    /// The list.
    Found(Found),
    /// Every document was read, and none holds it.
    Absent(String),
    /// Words are there, but no page of that name: other ways must answer.
    Open,
}

/// A list with its citations.
#[derive(Debug)]
pub struct Found {
    /// The answer.
    pub answer: String,
    /// One for each listed document.
    pub citations: Vec<Citation>,
    /// By the exactness of the match.
    pub confidence: Confidence,
    /// The corpus of the first document.
    pub corpus: usize,
}

impl Found {
    /// The verdict of a scan that found something.
    #[must_use]
    pub fn verdict(self, explain: bool) -> Verdict {
        Verdict {
            explain: explain.then(
                || json!({"scan": self.citations.len(), "confidence": self.confidence.get()}),
            ),
            answer: self.answer,
            band: Band::Answer,
            citations: self.citations,
            related: Vec::new(),
            confidence: self.confidence,
            refusal: None,
            route: vec!["request_gate".to_owned(), STEP.to_owned()],
            corpus: self.corpus,
            degraded: false,
        }
    }
}

/// One document that was read.
struct Page<'a> {
    corpus: usize,
    of: &'a Corpus,
    document: &'a DocumentRecord,
    text: String,
}

/// A document of the list: where the subject stands in it, how often, and in how many sections.
struct Match<'a> {
    page: &'a Page<'a>,
    first: Option<(usize, usize)>,
    heading: Option<String>,
    count: usize,
    sections: usize,
}

/// Reads all documents in scope and answers.
///
/// # Errors
/// When a document cannot be read: then nothing can be said of all of them.
pub fn run(
    corpora: &[Arc<Corpus>],
    scan: &Scan<'_>,
    read: &dyn Fn(&Generation, &DocumentRecord) -> io::Result<String>,
) -> io::Result<Outcome> {
    let (question, beneath) = beneath(corpora, scan.question);
    if let (None, Some((path, inner))) = (&beneath, &question.beneath)
        && inner.want == question.want
    {
        return Ok(Outcome::Absent(format!("no document is `{path}` or lies beneath it")));
    }
    let pages = pages(corpora, scan.scope, beneath.as_deref(), read)?;
    let scanner = Scanner { scan, pages: &pages, several: corpora.len() > 1, beneath };
    Ok(match &question.want {
        Want::Everything => scanner.everything(question),
        Want::Mention { subjects, any } => scanner.mentions(question, subjects, *any),
        Want::Topic { phrase, loose } => topic::answer(&scanner, phrase, *loose),
    })
}

/// The question, and the path it names, where there is one; else its words are part of the subject.
fn beneath<'q>(
    corpora: &[Arc<Corpus>],
    question: &'q ScanQuestion,
) -> (&'q ScanQuestion, Option<String>) {
    match &question.beneath {
        Some((path, inner)) if corpora.iter().any(|c| !c.scope(Some(path)).is_empty()) => {
            (inner, Some(path.clone()))
        }
        _ => (question, None),
    }
}

fn pages<'c>(
    corpora: &'c [Arc<Corpus>],
    scope: Option<&str>,
    beneath: Option<&str>,
    read: &dyn Fn(&Generation, &DocumentRecord) -> io::Result<String>,
) -> io::Result<Vec<Page<'c>>> {
    let (repo, prefix) = match scope.and_then(|s| s.strip_prefix("repo:")) {
        Some(repo) => (Some(repo), None),
        None => (None, scope),
    };
    let lies = |path: &str, prefix: Option<&str>| {
        let prefix = prefix.unwrap_or("").trim_matches('/');
        prefix.is_empty()
            || path.strip_prefix(prefix).is_some_and(|r| r.is_empty() || r.starts_with('/'))
    };
    let mut pages = Vec::new();
    for (corpus, of) in corpora.iter().enumerate() {
        if repo.is_some_and(|name| name != of.repo) {
            continue;
        }
        for document in &of.generation.documents {
            if lies(&document.path, prefix) && lies(&document.path, beneath) {
                let text = read(&of.generation, document)?;
                pages.push(Page { corpus, of, document, text });
            }
        }
    }
    Ok(pages)
}

struct Scanner<'a> {
    scan: &'a Scan<'a>,
    pages: &'a [Page<'a>],
    several: bool,
    beneath: Option<String>,
}

impl<'a> Scanner<'a> {
    fn most(&self) -> usize {
        self.scan.k.unwrap_or(K_MAX).min(K_MAX)
    }

    fn everything(&self, question: &ScanQuestion) -> Outcome {
        let all: Vec<Match<'a>> = self.pages.iter().map(Match::whole).collect();
        let head = match question.unit {
            Unit::Sections => {
                let sections = all.iter().map(|m| m.page.document.headings.len()).sum();
                format!(
                    "{} in {}{}:",
                    counted(sections, "section"),
                    counted(all.len(), "document"),
                    self.place()
                )
            }
            _ => format!("{}{}:", counted(all.len(), "document"), self.place()),
        };
        self.list(&head, "", all, EXACT)
    }

    fn mentions(&self, question: &ScanQuestion, subjects: &[Subject], any: bool) -> Outcome {
        let mut forms = BTreeSet::new();
        let mut found: Vec<Match<'a>> = Vec::new();
        for page in self.pages {
            let places: Vec<Places> = subjects.iter().map(|s| s.places(&page.text)).collect();
            let held = places.iter().filter(|p| !p.ranges.is_empty()).count();
            let holds = if any { held > 0 } else { held == subjects.len() };
            if holds == question.without {
                continue;
            }
            if question.without {
                found.push(Match::whole(page));
                continue;
            }
            forms.extend(places.iter().flat_map(|p| p.forms.iter().cloned()));
            found.push(Match::of(page, &places));
        }
        let joint = if any { " or " } else { " and " };
        let name =
            subjects.iter().map(|s| format!("\"{}\"", s.name())).collect::<Vec<_>>().join(joint);
        let exact = subjects.iter().all(Subject::is_exact);
        let how = how(&forms, exact);
        if found.is_empty() {
            let (none, holds) =
                if question.without { ("each", "mentions") } else { ("none", "mentions") };
            return Outcome::Absent(format!(
                "{} scanned{}, and {none} {holds} {name}; {how}",
                all_of(self.pages.len()),
                self.place()
            ));
        }
        let (count, sections) =
            found.iter().fold((0, 0), |(c, s), m| (c + m.count, s + m.sections));
        let documents = counted(found.len(), "document");
        let plural = found.len() != 1;
        let head = match question.unit {
            _ if question.without => {
                format!(
                    "{documents}{} {} not mention {name}:",
                    self.place(),
                    if plural { "do" } else { "does" }
                )
            }
            Unit::Documents => {
                format!(
                    "{documents}{} mention{} {name}:",
                    self.place(),
                    if plural { "" } else { "s" }
                )
            }
            Unit::Sections => format!(
                "{} in {documents}{} mention{} {name}:",
                counted(sections, "section"),
                self.place(),
                if sections == 1 { "s" } else { "" }
            ),
            Unit::Occurrences => format!(
                "{name} is mentioned {} in {documents}{}:",
                counted(count, "time"),
                self.place()
            ),
        };
        self.list(&head, &how, found, if exact { EXACT } else { INFLECTED })
    }

    fn place(&self) -> String {
        match (self.beneath.as_deref(), self.scan.scope) {
            (Some(path), _) | (None, Some(path)) => format!(" in `{path}`"),
            (None, None) => String::new(),
        }
    }

    /// The list, best first, each document cited; those that cannot be listed are counted.
    fn list(&self, head: &str, how: &str, mut found: Vec<Match<'a>>, confidence: f32) -> Outcome {
        found.sort_by(|a, b| {
            b.heading.is_some().cmp(&a.heading.is_some()).then(b.count.cmp(&a.count)).then_with(
                || {
                    (a.page.corpus, &a.page.document.path)
                        .cmp(&(b.page.corpus, &b.page.document.path))
                },
            )
        });
        let total = found.len();
        let mut answer = format!("{head}\n\n");
        let mut citations = Vec::new();
        for m in &found {
            if citations.len() == self.most() {
                break;
            }
            let Some(citation) = self.cite(m) else { continue };
            let repo = citation.repo.as_deref().map_or(String::new(), |r| format!("{r}: "));
            answer.push_str(&format!("- {repo}{}\n", citation.path));
            citations.push(citation);
        }
        if citations.len() < total {
            answer.push_str(&format!("- and {} more\n", total - citations.len()));
        }
        let tail = format!(
            "{} scanned{}{how}.",
            all_of(self.pages.len()),
            if how.is_empty() { "" } else { "; " }
        );
        answer.push_str(&format!("\n{}{}", tail[..1].to_uppercase(), &tail[1..]));
        if citations.is_empty() {
            return Outcome::Open;
        }
        let corpus = found.first().map_or(0, |m| m.page.corpus);
        Outcome::Found(Found { answer, citations, confidence: Confidence::new(confidence), corpus })
    }

    /// The section where the subject first stands; the document's first lines where it stands in
    /// front matter or a comment, which no section shows.
    fn cite(&self, m: &Match<'_>) -> Option<Citation> {
        let generation = &m.page.of.generation;
        let own = generation.scope(&m.page.document.path);
        let at_match = m.first.and_then(|(start, end)| {
            let lines = [line_of(&m.page.text, start), line_of(&m.page.text, end)];
            let quote = quote(&m.page.text, start, end);
            let holds = |n: &u32| {
                let (chunk, section) = generation.section(*n);
                section.lines[0] <= lines[0]
                    && lines[1] <= section.lines[1]
                    && chunk.section_text(section).contains(&quote)
            };
            let number = own.clone().find(holds)?;
            Some((number, passage(quote.clone(), lines)))
        });
        let (number, passage) =
            at_match.or_else(|| own.clone().find_map(|n| first_line(generation, n)))?;
        Some(citation::cite(m.page.of, number, &passage, 1.0, self.several))
    }
}

impl<'a> Match<'a> {
    fn whole(page: &'a Page<'a>) -> Self {
        Self { page, first: None, heading: None, count: 0, sections: 0 }
    }

    fn of(page: &'a Page<'a>, places: &[Places]) -> Self {
        let mut ranges: Vec<(usize, usize)> =
            places.iter().flat_map(|p| p.ranges.iter().copied()).collect();
        ranges.sort_unstable();
        let headings = &page.document.headings;
        let section = |at: usize| {
            let line = line_of(&page.text, at);
            headings.partition_point(|h| h.line <= line)
        };
        let sections: BTreeSet<usize> = ranges.iter().map(|r| section(r.0)).collect();
        let titled =
            headings.iter().find(|h| ranges.iter().any(|r| line_of(&page.text, r.0) == h.line));
        Self {
            page,
            first: ranges.first().copied(),
            heading: titled.map(|h| h.text.clone()),
            count: ranges.len(),
            sections: sections.len(),
        }
    }
}

fn counted(n: usize, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}

fn all_of(n: usize) -> String {
    if n == 1 { "the one document was".into() } else { format!("all {n} documents were") }
}

fn how(forms: &BTreeSet<String>, exact: bool) -> String {
    let mut how = String::from("whole words in any case");
    if exact {
        how.push_str(", exactly as written");
    } else if forms.is_empty() {
        how.push_str(", in every inflection");
    } else {
        let forms: Vec<&str> = forms.iter().take(6).map(String::as_str).collect();
        how.push_str(&format!(", found as {}", forms.join(", ")));
    }
    how
}
