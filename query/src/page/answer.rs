//! The page of a reply: the answer first, then where it stands, how sure it is and how old; or a
//! refusal that helps.

use super::layout::{self, Page};
use super::links::{self, Place};
use super::markdown::{self, Rendered};
use super::words;
use crate::llm::note::Outcome as ByModel;
use crate::reply::{Citation, Nearest, Refusal, Reply};
use crate::snapshot::Snapshot;
use maud::{Markup, PreEscaped, html};
use runbook_shared::last_run::Outcome;
use runbook_shared::retrieval::corpus::Corpus;
use std::sync::Arc;

/// A source that was last reached this many seconds ago (a day) is told as stale.
const STALE_AFTER_S: u64 = 24 * 3600;
/// Headings of a refusal that are named as searched.
const SEARCHED_SHOWN: usize = 12;

/// A question with its reply, as a page.
pub struct Asked<'a> {
    /// The question as it was typed.
    pub question: &'a str,
    /// The scope it was asked in.
    pub scope: Option<&'a str>,
    /// The reply.
    pub reply: &'a Reply,
    /// What is served.
    pub snapshot: &'a Snapshot,
    /// Whether reports are taken.
    pub takes_reports: bool,
}

/// The start page: the box, and a few headings to see what there is.
#[must_use]
pub fn home(snapshot: &Snapshot) -> Markup {
    let corpora = snapshot.corpora();
    let documents: u64 = corpora.iter().map(|c| c.generation.manifest.counts.indexed).sum();
    let sections: u64 = corpora.iter().map(|c| c.generation.manifest.counts.sections).sum();
    let page = Page { focus: true, kind: "narrow home", ..Page::default() };
    layout::render(
        &page,
        &html! {
            h1.quiet { "Runbook Ask" }
            @if corpora.is_empty() {
                section.card.notice {
                    h2 { "Nothing is indexed yet" }
                    p { (snapshot.problem()) }
                    p.muted { "Run runbook-ingest; this page picks the runbooks up by itself." }
                }
            } @else {
                p.lead {
                    "Ask as you would ask a colleague, or paste an alert. The answer is a passage of the "
                    "runbooks with its place, or an honest “I do not know”."
                }
                p.muted {
                    a href="/browse" { (layout::counted(documents, "runbook")) }
                    ", " (layout::counted(sections, "section")) ". "
                    span.keys { kbd { "/" } " goes to the box, " kbd { "Enter" } " asks." }
                }
                (directories(&corpora))
                (state(&corpora, snapshot, None))
            }
        },
    )
}

/// The first directories of the tree, for whoever does not know what to ask.
fn directories(corpora: &[Arc<Corpus>]) -> Markup {
    const SHOWN_MAX: usize = 24;
    let mut all: Vec<(Option<&str>, &str)> = Vec::new();
    for corpus in corpora {
        let repo = (corpora.len() > 1).then_some(corpus.repo.as_str());
        for document in &corpus.generation.documents {
            let first = document.path.split_once('/').map(|(dir, _)| (repo, dir));
            if let Some(first) = first.filter(|f| all.last() != Some(f) && all.len() < SHOWN_MAX) {
                all.push(first);
            }
        }
    }
    html! {
        @if !all.is_empty() {
            nav aria-label="Directories" {
                ul.chips {
                    @for (repo, dir) in &all {
                        li {
                            a href=(super::browse::address(*repo, dir)) {
                                @if let Some(repo) = repo { (repo) "/" }
                                (dir)
                            }
                        }
                    }
                }
            }
        }
    }
}

/// The page of a reply.
#[must_use]
pub fn page(asked: &Asked<'_>) -> Markup {
    let page = Page {
        title: asked.question,
        question: asked.question,
        scope: asked.scope,
        kind: "narrow",
        ..Page::default()
    };
    let corpora = asked.snapshot.corpora();
    let main = match &asked.reply.refusal {
        None => answered(asked, &corpora),
        Some(refusal) => refused(asked, refusal, &corpora),
    };
    layout::render(&page, &main)
}

fn answered(asked: &Asked<'_>, corpora: &[Arc<Corpus>]) -> Markup {
    let reply = asked.reply;
    let first = reply.citations.first();
    let place = first.and_then(|c| place(corpora, c.repo.as_deref(), &c.path));
    let rendered = markdown::passage(&reply.answer, place);
    html! {
        (warnings(asked))
        article.card.answer aria-labelledby="ui:answer" {
            h1.quiet id="ui:answer" { "Answer" }
            @if let Some(citation) = first { (trail(citation)) }
            p.verdict {
                span class=(level(reply.confidence)) {
                    strong { (words::confidence(reply.confidence)) } ", "
                    (words::percent(reply.confidence))
                }
                @if let Some(indexed) = indexed(asked) { " · " (indexed) }
            }
            (notes(&rendered))
            div.passage { (PreEscaped(rendered.html)) }
        }
        section aria-labelledby="ui:sources" {
            h2 id="ui:sources" { "Sources" }
            ol.places {
                @for citation in &reply.citations { li { (source(asked, citation)) } }
            }
        }
        @if !reply.related.is_empty() {
            section aria-labelledby="ui:related" {
                h2 id="ui:related" { "See also" }
                ul.places {
                    @for citation in &reply.related { li { (source(asked, citation)) } }
                }
            }
        }
        (report(asked, "Was this wrong?"))
    }
}

fn refused(asked: &Asked<'_>, refusal: &Refusal, corpora: &[Arc<Corpus>]) -> Markup {
    let reply = asked.reply;
    let is_request = refusal.reason.is_request();
    html! {
        (warnings(asked))
        article.card.refusal aria-labelledby="ui:answer" {
            h1 id="ui:answer" { (reply.answer) }
            p { (sentence(&refusal.message)) }
            p.verdict {
                @if !is_request && !refusal.nearest.is_empty() {
                    span.low {
                        "The best section answers with a confidence of "
                        (words::percent(reply.confidence))
                    }
                }
                @if let Some(indexed) = indexed(asked) { " · " (indexed) }
            }
        }
        @if !refusal.nearest.is_empty() {
            section aria-labelledby="ui:nearest" {
                h2 id="ui:nearest" { "Nearest sections, to read for yourself" }
                ul.places {
                    @for near in &refusal.nearest { li { (nearest(near, corpora)) } }
                }
            }
        }
        @if !refusal.searched.is_empty() {
            details.searched {
                summary { "What was searched" }
                p.muted {
                    @if corpora.len() > 1 { (corpora.len()) " repositories. " }
                    "Closest headings: "
                    @for (n, s) in refusal.searched.iter().take(SEARCHED_SHOWN).enumerate() {
                        @if n > 0 { "; " }
                        a href=(links::reader(None, &s.path)) { (s.heading) }
                    }
                    "."
                }
            }
        }
        p.muted {
            "Other words may find it: a unit, a host, an error message as it stands. Or "
            a href="/browse" { "browse the tree" } "."
        }
        (report(asked, "Should this have an answer?"))
    }
}

fn sentence(text: &str) -> String {
    let mut chars = text.chars();
    let first = chars.next().map(|c| c.to_uppercase().collect::<String>()).unwrap_or_default();
    format!("{first}{}.", chars.as_str().trim_end_matches('.'))
}

fn level(confidence: f32) -> &'static str {
    if confidence >= 0.7 { "high" } else { "middle" }
}

fn place<'a>(corpora: &'a [Arc<Corpus>], repo: Option<&str>, path: &'a str) -> Option<Place<'a>> {
    let corpus = links::corpus_of(corpora, repo, path)?;
    Some(Place { corpus, path, several: corpora.len() > 1 })
}

/// Repository, path and headings of what is shown.
fn trail(citation: &Citation) -> Markup {
    let href = links::reader_lines(citation.repo.as_deref(), &citation.path, citation.lines);
    html! {
        p.trail {
            a href=(href) {
                @if let Some(repo) = &citation.repo { (repo) ": " }
                (citation.path)
            }
            @for heading in &citation.heading_path { span.sep aria-hidden="true" { " › " } (heading) }
        }
    }
}

/// What is to be filled in, and what destroys.
fn notes(rendered: &Rendered) -> Markup {
    html! {
        @if rendered.destructive > 0 {
            p.note.danger-note {
                strong { "Careful: " }
                (layout::counted(rendered.destructive as u64, "marked line"))
                " cannot be undone."
            }
        }
        @if !rendered.placeholders.is_empty() {
            p.note {
                strong { "Fill in: " }
                @for (n, name) in rendered.placeholders.iter().take(12).enumerate() {
                    @if n > 0 { ", " }
                    code { mark.fill { (name) } }
                }
            }
        }
    }
}

fn lines(lines: [u32; 2]) -> String {
    if lines[0] == lines[1] {
        format!("line {}", lines[0])
    } else {
        format!("lines {}–{}", lines[0], lines[1])
    }
}

fn source(asked: &Asked<'_>, citation: &Citation) -> Markup {
    let href = links::reader_lines(citation.repo.as_deref(), &citation.path, citation.lines);
    let corpora = asked.snapshot.corpora();
    let corpus = links::corpus_of(&corpora, citation.repo.as_deref(), &citation.path);
    let at = corpus.and_then(|c| c.generation.manifest.commit.as_deref()).map(words::short);
    html! {
        a.heading href=(href) { (citation.heading) }
        span.where {
            @if let Some(repo) = &citation.repo { (repo) ": " }
            (citation.path) ", " (lines(citation.lines))
            (forge(citation.url.as_deref(), at, &citation.heading))
        }
    }
}

fn forge(url: Option<&str>, at: Option<&str>, heading: &str) -> Markup {
    html! {
        @if let Some(url) = url.filter(|u| u.starts_with("https://") || u.starts_with("http://")) {
            " · "
            a.forge href=(url) rel="noopener noreferrer" {
                "in the repository"
                @if let Some(at) = at { " at " code { (at) } }
                span.quiet { ": " (heading) }
            }
        }
    }
}

fn nearest(near: &Nearest, corpora: &[Arc<Corpus>]) -> Markup {
    let repo = near.repo.as_deref();
    let corpus = links::corpus_of(corpora, repo, &near.path);
    let at = corpus.and_then(|c| c.generation.manifest.commit.as_deref()).map(words::short);
    html! {
        a.heading href=(links::reader_lines(repo, &near.path, near.lines)) { (near.heading) }
        span.where {
            @if let Some(repo) = repo { (repo) ": " }
            (near.path) ", " (lines(near.lines))
            (forge(near.url.as_deref(), at, &near.heading))
        }
        @if !near.preview.is_empty() {
            p.preview {
                @for (n, line) in near.preview.lines().enumerate() {
                    @if n > 0 { br; }
                    (PreEscaped(markdown::line(line)))
                }
            }
        }
    }
}

/// "indexed 3 minutes ago at abc1234".
fn indexed(asked: &Asked<'_>) -> Option<Markup> {
    let p = &asked.reply.provenance;
    let age = p.age_s?;
    Some(html! {
        span.muted {
            "indexed "
            time datetime=[p.indexed_at.as_deref()] { (words::ago(age)) }
            @if let Some(commit) = &p.commit { " at " code { (words::short(commit)) } }
        }
    })
}

fn warnings(asked: &Asked<'_>) -> Markup {
    let corpora = asked.snapshot.corpora();
    state(&corpora, asked.snapshot, Some(asked.reply))
}

/// What a reader must know before trusting a reply: that it is degraded, or that it may be old.
fn state(corpora: &[Arc<Corpus>], snapshot: &Snapshot, reply: Option<&Reply>) -> Markup {
    let mut notices: Vec<String> = Vec::new();
    let note = reply.and_then(|r| r.llm.as_ref());
    match note.map(|n| (n.outcome, &n.message)) {
        Some((ByModel::Degraded, message)) => notices.push(format!("Degraded: {message}.")),
        Some((ByModel::Phrased | ByModel::Lifted | ByModel::Withdrawn, message)) => {
            notices.push(format!("Language model: {message}."));
        }
        _ => {}
    }
    let by_model = note.is_some_and(|n| n.outcome == ByModel::Degraded);
    if reply.is_some_and(|r| r.provenance.degraded) && !by_model {
        notices.push(
            "Degraded: not everything could be searched (see the status), so something better may be missed."
                .into(),
        );
    }
    for repo in &snapshot.repos {
        let of = if corpora.len() > 1 { format!("{}: ", repo.repo.name) } else { String::new() };
        let checked = repo.last_run.as_ref().and_then(|l| l.source_checked_at.as_ref());
        let since = checked.and_then(|at| words::seconds_since(at));
        let when = since.map_or_else(|| "never".to_owned(), words::ago);
        let last = repo.last_run.as_ref();
        if let Some(pin) = &repo.pin {
            let ago = words::seconds_since(&pin.pinned_at).map_or_else(String::new, words::ago);
            let reason = pin.reason.as_ref().map_or_else(String::new, |r| format!(" ({r})"));
            notices.push(format!(
                "{of}Pinned {ago} by {}{reason}: these runbooks are kept as they were, and newer ones are not shown.",
                pin.by
            ));
        }
        if last.is_some_and(|l| l.outcome == Outcome::Failed) {
            notices.push(format!(
                "{of}Stale: the last update failed, and the source was reached {when}. Newer runbooks may exist."
            ));
        } else if since.is_some_and(|s| s > STALE_AFTER_S) {
            notices.push(format!(
                "{of}Stale: the source was last checked {when}. Newer runbooks may exist."
            ));
        }
        if repo.corpus.is_some() && repo.problem.is_some() {
            notices.push(format!("{of}The newest index cannot be opened; an older one answers."));
        }
    }
    html! {
        @for notice in &notices {
            p.notice role="note" { (notice) " " a href="/status" { "Status" } }
        }
    }
}

/// The form under every reply: one click, and what is known of the right answer where somebody has time.
fn report(asked: &Asked<'_>, question: &str) -> Markup {
    let reply = asked.reply;
    let named = reply.citations.iter().chain(&reply.related).map(|c| &c.path);
    let near = reply.refusal.iter().flat_map(|r| &r.nearest).map(|n| &n.path);
    let mut paths: Vec<&String> = named.chain(near).collect();
    paths.sort();
    paths.dedup();
    html! {
        @if asked.takes_reports {
            form.report action="/v1/feedback" method="post" aria-labelledby="ui:report" {
                input type="hidden" name="id" value=(reply.id);
                input type="hidden" name="question" value=(asked.question);
                @if let Some(scope) = asked.scope {
                    input type="hidden" name="scope" value=(scope);
                }
                span.ask-back id="ui:report" { (question) }
                button name="verdict" value="wrong" {
                    (if reply.refusal.is_some() { "Report it" } else { "Report as wrong" })
                }
                details {
                    summary { "Say more" }
                    label for="ui:note" { "What is wrong, or what you expected" }
                    textarea id="ui:note" name="note" rows="3" maxlength="2000" {}
                    label for="ui:page" { "The right page, if there is one" }
                    input id="ui:page" name="page" type="text" maxlength="500" list="ui:pages"
                        autocomplete="off" placeholder="path/of/runbook.md";
                    datalist id="ui:pages" { @for path in &paths { option value=(path) {} } }
                    p.muted { "Kept on this server for whoever maintains the runbooks, without your address or name." }
                }
            }
        }
    }
}

/// What a browser without JavaScript sees after a report.
#[must_use]
pub fn thanks(question: &str) -> Markup {
    let page = Page { title: "Reported", question, kind: "narrow", ..Page::default() };
    layout::render(
        &page,
        &html! {
            section.card {
                h1 { "Thank you" }
                p { "The report is kept, and becomes a test case once somebody has looked at it." }
                @if !question.is_empty() {
                    p { a href=(links::question(question)) { "Back to the answer" } }
                }
            }
        },
    )
}
