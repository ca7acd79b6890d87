//! What every page has: head, skip link, name, box, navigation.

use super::assets::assets;
use maud::{DOCTYPE, Markup, html};

/// One page.
#[derive(Default)]
pub struct Page<'a> {
    /// The title, before the product's name.
    pub title: &'a str,
    /// What stands in the box.
    pub question: &'a str,
    /// The scope that the box keeps.
    pub scope: Option<&'a str>,
    /// Whether the box has the focus.
    pub focus: bool,
    /// The entry of the navigation that is open.
    pub open: Option<Entry>,
    /// The layout of the main part.
    pub kind: &'static str,
}

/// An entry of the navigation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry {
    /// The tree.
    Browse,
    /// The state.
    Status,
}

/// The longest question that the box takes, in characters; more goes through the API.
const QUESTION_CHARS_MAX: usize = 12_000;

/// The page around its main part.
#[must_use]
pub fn render(page: &Page<'_>, main: &Markup) -> Markup {
    let assets = assets();
    let title = if page.title.is_empty() {
        "Runbook Ask".to_owned()
    } else {
        format!("{} · Runbook Ask", page.title)
    };
    let entry = |entry: Entry, href: &str, name: &str| {
        html! {
            a href=(href) aria-current=[(page.open == Some(entry)).then_some("page")] { (name) }
        }
    };
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="dark light";
                title { (title) }
                link rel="icon" type="image/svg+xml" href=(assets.icon.path);
                link rel="stylesheet" href=(assets.style.path);
                script src=(assets.script.path) defer {}
            }
            body {
                a.skip href="#ui:main" { "Skip to the content" }
                header.top {
                    a.brand href="/" { "Runbook Ask" }
                    nav aria-label="Pages" {
                        (entry(Entry::Browse, "/browse", "Browse"))
                        (entry(Entry::Status, "/status", "Status"))
                    }
                }
                form.ask action="/" method="get" role="search" {
                    label.quiet for="ui:q" { "Ask the runbooks" }
                    input id="ui:q" name="q" type="search" value=(page.question) required
                        maxlength=(QUESTION_CHARS_MAX) autocomplete="off" autocapitalize="off"
                        spellcheck="false" enterkeyhint="search" aria-keyshortcuts="/"
                        placeholder="restore last night's dump" autofocus[page.focus];
                    @if let Some(scope) = page.scope {
                        input type="hidden" name="scope" value=(scope);
                    }
                    button { "Ask" }
                }
                div.near id="ui:near" hidden {}
                p.quiet id="ui:live" role="status" {}
                main id="ui:main" class=(page.kind) tabindex="-1" { (main) }
            }
        }
    }
}

/// A page that says what went wrong, and what to do.
#[must_use]
pub fn error(title: &str, message: &str, hint: &str, question: &str) -> Markup {
    let page = Page { title, question, kind: "narrow", ..Page::default() };
    render(
        &page,
        &html! {
            section.card {
                h1 { (title) }
                p { (message) }
                @if !hint.is_empty() { p.muted { (hint) } }
                p { a href="/browse" { "Browse the runbooks" } " · " a href="/status" { "See the status" } }
            }
        },
    )
}

/// A count with its noun.
#[must_use]
pub fn counted(n: u64, noun: &str) -> String {
    format!("{n} {noun}{}", if n == 1 { "" } else { "s" })
}
