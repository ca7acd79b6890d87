//! The state as a page: what is served, how old it is, what is wrong, what was skipped, what people
//! ask in vain, and how fast it is.

use super::chart::{self, Bar};
use super::layout::{self, Entry, Page};
use super::links;
use super::words;
use crate::metrics::BUCKETS;
use crate::reply::round4;
use crate::service::{Service, age};
use crate::snapshot::RepoState;
use maud::{Markup, html};
use runbook_shared::last_run::{LastRun, Outcome};
use runbook_shared::retrieval::model;
use runbook_shared::score::ScoreFloor;
use serde_json::Value;

/// Rows of a list that are shown; the rest is counted.
const ROWS_MAX: usize = 50;
/// Refused questions that are shown.
const REFUSED_MAX: usize = 20;

/// The page.
#[must_use]
pub fn page(service: &Service) -> Markup {
    let snapshot = service.snapshot();
    let (reloads, uptime) = service.uptime();
    let page =
        Page { title: "Status", open: Some(Entry::Status), kind: "narrow", ..Page::default() };
    layout::render(
        &page,
        &html! {
            h1 { "Status" }
            p {
                @if snapshot.is_ready() {
                    strong.good { "Serving." }
                } @else {
                    strong.bad { "Not ready: " } (snapshot.problem())
                }
                " Version " (env!("CARGO_PKG_VERSION")) ", up for " (words::duration(uptime))
                ", " (layout::counted(reloads, "reload")) "."
            }
            @for repo in &snapshot.repos { (repository(repo)) }
            (refused(service))
            (latency(service))
            (gate(service))
        },
    )
}

fn row(name: &str, value: &Markup) -> Markup {
    html! { div { dt { (name) } dd { (value) } } }
}

fn time(text: &str) -> Markup {
    let ago = words::seconds_since(text).map(words::ago);
    html! {
        @match ago {
            Some(ago) => { time datetime=(text) { (ago) } span.muted { " (" (text) ")" } }
            None => { (text) }
        }
    }
}

fn repository(state: &RepoState) -> Markup {
    let manifest = state.corpus.as_ref().map(|c| &c.generation.manifest);
    let last = state.last_run.as_ref();
    let name = if state.repo.name.is_empty() { "Runbooks" } else { &state.repo.name };
    html! {
        section.card aria-label=(name) {
            h2 { (name) }
            @if let Some(problem) = &state.problem {
                p.notice { "The newest index is not served: " (problem) }
            }
            dl.facts {
                @if let Some(m) = manifest {
                    (row("Source", &html! { (m.source) @if let Some(b) = &m.branch { ", branch " (b) } }))
                    @if let Some(commit) = &m.commit { (row("Commit", &html! { code { (commit) } })) }
                    @if let Some(corpus) = &state.corpus {
                        (row("Generation", &html! { code { (corpus.generation.id) } }))
                    }
                    @if let Some(pin) = &state.pin {
                        (row("Pinned", &html! {
                            "to " code { (pin.generation) } ", " (time(&pin.pinned_at)) ", by " (pin.by)
                            @if let Some(reason) = &pin.reason { ": " (reason) }
                            ". " code { "runbook-ingest unpin" } " lets newer runbooks in."
                        }))
                    }
                    (row("Indexed", &html! {
                        @if let Some(s) = age(m) { (words::ago(s)) }
                        span.muted { " (" (m.indexed_at) ")" }
                    }))
                    (row("Documents", &html! {
                        (m.counts.indexed) " of " (m.counts.documents) " indexed, "
                        (m.counts.failed) " failed, " (m.counts.skipped.values().sum::<u64>()) " skipped; "
                        (m.counts.sections) " sections, " (m.counts.chunks) " chunks, "
                        (m.counts.windows) " windows"
                    }))
                    (row("Embedder", &html! {
                        @match &m.embedder {
                            Some(e) => { (e.id) }
                            None => { "none: only words are searched" }
                        }
                    }))
                } @else {
                    (row("Generation", &html! { "none yet" }))
                }
                (checked(last))
            }
            (problems(last))
        }
    }
}

fn checked(last: Option<&LastRun>) -> Markup {
    html! {
        @match last {
            None => { (row("Last update", &html! { "none has ended yet" })) }
            Some(last) => {
                (row("Source checked", &match &last.source_checked_at {
                    Some(at) => time(at),
                    None => html! { "never" },
                }))
                (row("Last update", &html! {
                    @match last.outcome {
                        Outcome::Published => { strong.good { "published" } }
                        Outcome::UpToDate => { strong.good { "up to date" } }
                        Outcome::Pinned => { "checked the source, published nothing: pinned" }
                        Outcome::Busy => { "another was running" }
                        Outcome::Failed => { strong.bad { "failed" } }
                    }
                    ", " (time(&last.finished_at))
                    @if let Some(error) = &last.error { ": " (error) }
                }))
            }
        }
    }
}

/// Documents that are not indexed, with the reason; and what writers should look at.
fn problems(last: Option<&LastRun>) -> Markup {
    let report = last.and_then(|l| l.report.as_ref());
    let list = |key: &str| -> &[Value] {
        report.and_then(|r| r[key].as_array()).map_or(&[], Vec::as_slice)
    };
    let text = |row: &Value, key: &str| row[key].as_str().unwrap_or("").to_owned();
    let (problems, warnings) = (list("problems"), list("warnings"));
    let secrets = list("secrets");
    html! {
        @if !problems.is_empty() {
            h3 { (layout::counted(problems.len() as u64, "document")) " not indexed" }
            div.scroll tabindex="0" role="region" aria-label="Documents that are not indexed" {
                table {
                    thead { tr { th scope="col" { "Path" } th scope="col" { "Reason" } th scope="col" { "What to do" } } }
                    tbody {
                        @for row in problems.iter().take(ROWS_MAX) {
                            tr {
                                td { code { (text(row, "path")) } }
                                td { (text(row, "reason").replace('_', " ")) }
                                td { (text(row, "message")) }
                            }
                        }
                    }
                }
            }
            @if problems.len() > ROWS_MAX { p.muted { "and " (problems.len() - ROWS_MAX) " more, in last-run.json" } }
        }
        @if !secrets.is_empty() {
            details {
                summary { (layout::counted(secrets.len() as u64, "secret")) " redacted" }
                ul {
                    @for row in secrets.iter().take(ROWS_MAX) {
                        li { code { (text(row, "path")) ":" (row["line"].as_u64().unwrap_or(0)) } " " (text(row, "rule")) }
                    }
                }
                @if secrets.len() > ROWS_MAX { p.muted { "and " (secrets.len() - ROWS_MAX) " more, in last-run.json" } }
            }
        }
        @if !warnings.is_empty() {
            details {
                summary { (layout::counted(warnings.len() as u64, "remark")) " for writers" }
                ul {
                    @for row in warnings.iter().take(ROWS_MAX) {
                        li { code { (text(row, "path")) ":" (row["line"].as_u64().unwrap_or(0)) } " " (text(row, "message")) }
                    }
                }
            }
        }
    }
}

fn refused(service: &Service) -> Markup {
    let record = &service.journal().refused;
    let top = record.top(REFUSED_MAX);
    html! {
        section.card aria-labelledby="ui:refused" {
            h2 id="ui:refused" { "Asked in vain" }
            @if !record.is_kept() {
                p.muted { "Not recorded: the server has no state directory (--state), or keeps hashes alone." }
            } @else if top.is_empty() {
                p.muted { "Nothing yet." }
            } @else {
                p.muted { "What to write next: the questions that found no answer, most frequent first." }
                table {
                    thead { tr { th scope="col" { "Question" } th scope="col" { "Times" } th scope="col" { "Last" } } }
                    tbody {
                        @for often in &top {
                            tr {
                                td { a href=(links::question(&often.question)) { (often.question) } }
                                td { (often.times) }
                                td { (words::seconds_since(&often.last).map_or_else(|| often.last.clone(), words::ago)) }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn latency(service: &Service) -> Markup {
    let counts = service.journal().metrics.latencies();
    let total: u64 = counts.iter().sum();
    let label = |seconds: f64| {
        if seconds < 1.0 { format!("{:.0} ms", seconds * 1e3) } else { format!("{seconds:.0} s") }
    };
    let labels = BUCKETS.iter().map(|b| label(*b)).chain(["more".to_owned()]);
    let bars: Vec<Bar> = labels.zip(counts).map(|(label, count)| Bar { label, count }).collect();
    html! {
        section.card aria-labelledby="ui:latency" {
            h2 id="ui:latency" { "Speed" }
            @if total == 0 {
                p.muted { "No question since the start." }
            } @else {
                (chart::histogram(&format!("{} since the start, by time to reply", layout::counted(total, "question")), &bars))
            }
        }
    }
}

fn gate(service: &Service) -> Markup {
    let embedder = service.embedder();
    let sha = embedder.as_ref().map(|e| e.id().model_sha256.clone());
    let model = model::for_embedder(sha.as_deref());
    let floor = service.policy().score_floor.map_or(model.score_floor, ScoreFloor::get);
    html! {
        section.card aria-labelledby="ui:gate" {
            h2 id="ui:gate" { "Calibration" }
            dl.facts {
                (row("Answers from", &html! { "a confidence of " (words::percent(floor)) span.muted { " (" (round4(floor)) ")" } }))
                (row("Shows nearest from", &html! { (words::percent(model.closest_floor)) }))
                (row("Fitted on", &html! { (model.fitted_on) }))
                (row("For", &html! {
                    @match &model.embedder_sha256 {
                        Some(sha) => { "the embedder " code { (words::short(sha)) } }
                        None => { "words alone" }
                    }
                }))
            }
        }
    }
}
