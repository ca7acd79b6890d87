//! The docs as a book: the summary names every chapter, and every link and anchor leads somewhere.

use pulldown_cmark::{Event, Options, Parser, Tag};
use runbook_ingest::anchors::anchors;
use runbook_ingest::outline::Outline;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize().unwrap()
}

fn text(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// Where the links of a document lead, without those to other sites.
fn links(path: &Path) -> Vec<String> {
    Parser::new_ext(&text(path), Options::ENABLE_TABLES)
        .filter_map(|event| match event {
            Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                Some(dest_url.into_string())
            }
            _ => None,
        })
        .filter(|to| !to.contains("://") && !to.starts_with("mailto:"))
        .collect()
}

fn chapters() -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = std::fs::read_dir(root().join("docs"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|e| e == "md"))
        .collect();
    found.sort();
    found
}

#[test]
fn the_summary_names_every_chapter_once() {
    let summary = root().join("docs/SUMMARY.md");
    let named = links(&summary);
    let once: BTreeSet<&str> = named.iter().map(String::as_str).collect();
    assert_eq!(once.len(), named.len(), "{named:?}");
    let there: BTreeSet<String> = chapters()
        .into_iter()
        .filter(|path| *path != summary)
        .map(|path| path.file_name().unwrap().to_string_lossy().into_owned())
        .collect();
    assert_eq!(once, there.iter().map(String::as_str).collect(), "docs/SUMMARY.md against docs/");
}

/// Links of the chapters stay within the book, where mdBook renders them; links of the other documents lead
/// to files of the repository. Anchors are those of GitHub, which mdBook's are for these headings.
#[test]
fn every_link_and_anchor_leads_somewhere() {
    let mut faults = Vec::new();
    let book = root().join("docs");
    let others = ["README.md", "ARCHITECTURE.md", "CHANGELOG.md", "deploy/README.md"];
    let documents = chapters().into_iter().chain(others.map(|name| root().join(name)));
    let mut checked = 0;
    for from in documents {
        for link in links(&from) {
            checked += 1;
            let (path, anchor) = link.split_once('#').unwrap_or((&link, ""));
            let to = match path {
                "" => from.clone(),
                path => from.parent().unwrap().join(path),
            };
            let Ok(to) = to.canonicalize() else {
                faults.push(format!("{}: `{link}` is not there", from.display()));
                continue;
            };
            if from.starts_with(&book) && !to.starts_with(&book) {
                faults.push(format!("{}: `{link}` leads out of the book", from.display()));
            }
            if !anchor.is_empty() {
                let headings = Outline::of(&text(&to)).headings;
                if !anchors(&headings, None).iter().any(|a| a == anchor) {
                    faults.push(format!("{}: `{link}`: no such heading", from.display()));
                }
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    assert!(checked > 40, "{checked} links");
}

/// The page's own links, without those to other sites: page and fragment.
fn hrefs(html: &str) -> Vec<(String, String)> {
    let main = html.split_once("<main>").map_or(html, |(_, main)| main);
    let main = main.split_once("</main>").map_or(main, |(main, _)| main);
    let values = main.split("href=\"").skip(1).filter_map(|after| after.split('"').next());
    values
        .filter(|to| !to.contains("://"))
        .map(|to| to.split_once('#').unwrap_or((to, "")))
        .map(|(page, fragment)| (page.to_owned(), fragment.to_owned()))
        .collect()
}

/// mdBook of PyPI, where deploy/setup --with-tests has put it, renders every chapter; in what it renders every
/// link leads to a page, and every fragment to an id of mdBook's own making.
#[test]
fn the_book_is_rendered_and_its_links_hold() {
    let target = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).parent().unwrap().to_owned();
    let out = tempfile::tempdir().unwrap();
    let ran = Command::new(target.join("test-python/bin/mdbook"))
        .arg("build")
        .arg(root().join("docs"))
        .arg("--dest-dir")
        .arg(out.path())
        .output()
        .unwrap_or_else(|e| panic!("mdbook: {e}; deploy/setup --with-tests installs it"));
    let said = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success() && !said.contains("WARN"), "{said}");
    let mut checked = 0;
    for chapter in chapters() {
        let name = chapter.file_stem().unwrap().to_string_lossy().into_owned();
        if name == "SUMMARY" {
            continue;
        }
        let page =
            out.path().join(if name == "README" { "index" } else { &name }).with_extension("html");
        let html = text(&page);
        for (to, fragment) in hrefs(&html) {
            let leads = if to.is_empty() { page.clone() } else { out.path().join(&to) };
            assert!(leads.is_file(), "{}: {to}", page.display());
            let id = format!("id=\"{fragment}\"");
            let there = fragment.is_empty() || text(&leads).contains(&id);
            assert!(there, "{}: {to}#{fragment}", page.display());
            checked += 1;
        }
    }
    assert!(checked > 100, "{checked} links");
}

/// At least 25 questions that the docs answer, and eight that they do not.
#[test]
fn the_suite_over_the_docs_is_large_enough() {
    let cases = runbook_eval::case::read(&root().join("evals/cases/docs.jsonl")).unwrap();
    let answers = cases.iter().filter(|c| c.expect == runbook_eval::case::Expect::Answer).count();
    assert!(answers >= 25 && cases.len() - answers >= 8, "{answers} of {}", cases.len());
}
