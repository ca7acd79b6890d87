//! Whether citations hold: the document, the heading and the quote are in the generation that the
//! reply names, at the lines that it names.
//!
//! Nothing of the product is believed: the documents' bytes are read from the generation's directory
//! and parsed here ([`super::page`]).

use super::page::{Page, PageHeading, words};
use runbook_query::reply::{Citation, Nearest, Reply};
use std::collections::HashMap;
use std::fs;
use std::path::{Component, Path, PathBuf};

/// How many of a reply's citations hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CitationScore {
    /// How many citations, related ones among them, were checked.
    pub checked: usize,
    /// What is wrong with those that do not hold.
    pub faults: Vec<String>,
    /// How many nearest sections of a refusal were checked. They support no answer, so they are
    /// counted apart, and a case does not fail for them.
    pub nearest: usize,
    /// What is wrong with those whose path, heading or preview is not at their lines.
    pub nearest_faults: Vec<String>,
}

/// Reads documents of one generation and checks what replies say of them.
pub struct Checker {
    id: String,
    docs: PathBuf,
    pages: HashMap<String, Option<Page>>,
}

impl Checker {
    /// A checker over a generation's directory.
    #[must_use]
    pub fn new(id: &str, dir: &Path) -> Self {
        Self { id: id.to_owned(), docs: dir.join("docs"), pages: HashMap::new() }
    }

    /// Checks a reply.
    pub fn score(&mut self, reply: &Reply) -> CitationScore {
        let mut score = CitationScore::default();
        if reply.provenance.generation.as_deref() != Some(self.id.as_str()) {
            score.faults.push("the reply is from another generation".into());
        }
        let answers = reply.refusal.is_none();
        if answers == reply.citations.is_empty() {
            let what = if answers { "an answer without" } else { "a refusal with" };
            score.faults.push(format!("{what} a citation"));
        }
        for citation in reply.citations.iter().chain(&reply.related) {
            score.checked += 1;
            score.faults.extend(self.citation(citation).err());
        }
        for nearest in reply.refusal.iter().flat_map(|r| &r.nearest) {
            score.nearest += 1;
            score.nearest_faults.extend(self.nearest(nearest).err());
        }
        score
    }

    fn citation(&mut self, c: &Citation) -> Result<(), String> {
        let at = place(&c.path, c.lines);
        let page = self.page(&c.path).ok_or_else(|| format!("{at}: no such document"))?;
        let text = page.text(c.lines).ok_or_else(|| format!("{at}: no such lines"))?;
        check_heading(page, &c.path, &c.heading, c.lines).map_err(|e| format!("{at}: {e}"))?;
        if c.heading_path.last() != Some(&c.heading) {
            return Err(format!("{at}: the trail does not end with `{}`", c.heading));
        }
        let whole = c.quote.lines().count() == text.lines().count() && !c.quote.trim().is_empty();
        if whole && text.contains(&c.quote) {
            Ok(())
        } else {
            Err(format!("{at}: the lines do not hold the quote"))
        }
    }

    fn nearest(&mut self, n: &Nearest) -> Result<(), String> {
        let at = place(&n.path, n.lines);
        let page = self.page(&n.path).ok_or_else(|| format!("{at}: no such document"))?;
        let text = page.text(n.lines).ok_or_else(|| format!("{at}: no such lines"))?;
        check_heading(page, &n.path, &n.heading, n.lines).map_err(|e| format!("{at}: {e}"))?;
        let lines: Vec<&str> = text.lines().filter(|l| !l.trim().is_empty()).collect();
        if lines.join("\n").contains(&n.preview) {
            Ok(())
        } else {
            Err(format!("{at}: the lines do not hold the preview"))
        }
    }

    fn page(&mut self, path: &str) -> Option<&Page> {
        let docs = &self.docs;
        let read = |path: &str| {
            let relative = Path::new(path);
            let plain = relative.components().all(|c| matches!(c, Component::Normal(_)));
            plain.then(|| fs::read(docs.join(relative)).ok()).flatten().map(|b| Page::of(&b))
        };
        self.pages.entry(path.to_owned()).or_insert_with(|| read(path)).as_ref()
    }
}

fn place(path: &str, [from, to]: [u32; 2]) -> String {
    format!("{path}:{from}-{to}")
}

/// The heading is the innermost one above the first line, and all others within the lines lie deeper;
/// above all headings, it is a title.
fn check_heading(
    page: &Page,
    path: &str,
    heading: &str,
    [from, to]: [u32; 2],
) -> Result<(), String> {
    let wanted = words(heading);
    let within = |h: &&PageHeading| from < h.line && h.line <= to;
    let Some(above) = page.heading_at(from) else {
        let stem = path.rsplit('/').next().and_then(|name| name.split('.').next()).unwrap_or(path);
        let known = page.titles.contains(&wanted) || words(stem) == wanted;
        return if known { Ok(()) } else { Err(format!("`{heading}` is not the title")) };
    };
    if above.words != wanted {
        return Err(format!("the lines do not stand under `{heading}`"));
    }
    match page.headings.iter().filter(within).find(|h| h.level <= above.level) {
        Some(other) => Err(format!("the lines go on under another heading, line {}", other.line)),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn citation(heading: &str, lines: [u32; 2], quote: &str) -> Citation {
        Citation {
            path: "a.md".into(),
            heading: heading.into(),
            heading_path: vec![heading.into()],
            lines,
            quote: quote.into(),
            url: None,
            score: 1.0,
            repo: None,
        }
    }

    #[test]
    fn a_citation_holds_or_says_why_not() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("docs")).unwrap();
        fs::write(
            dir.path().join("docs/a.md"),
            "intro\n\n## One\n\nx <!-- -->\ny\n\n### Deep\n\nz\n\n## Two\n",
        )
        .unwrap();
        let mut checker = Checker::new("g", dir.path());
        for (c, fault) in [
            (citation("One", [5, 6], "x \ny"), None),
            (citation("One", [5, 10], "x \ny\n\n### Deep\n\nz"), None),
            (citation("a", [1, 1], "intro"), None),
            (citation("b", [1, 1], "intro"), Some("not the title")),
            (citation("One", [5, 6], "y"), Some("do not hold the quote")),
            (citation("One", [5, 5], ""), Some("do not hold the quote")),
            (citation("Deep", [5, 6], "x \ny"), Some("do not stand under")),
            (citation("One", [6, 12], "y\n\n### Deep\n\nz\n\n## Two"), Some("another heading")),
            (citation("Two", [12, 13], "## Two\n"), Some("no such lines")),
            (
                Citation { path: "../a.md".into(), ..citation("One", [5, 6], "x") },
                Some("no such document"),
            ),
        ] {
            let got = checker.citation(&c).err();
            assert_eq!(got.is_some(), fault.is_some(), "{got:?} {fault:?}");
            assert!(got.unwrap_or_default().contains(fault.unwrap_or_default()));
        }
    }
}
