//! Where a link of a document leads: into the reader, to the forge at the indexed commit, elsewhere on
//! the web, or nowhere.

use crate::forge_link;
use runbook_shared::doc_path::DocPath;
use runbook_shared::retrieval::corpus::Corpus;
use std::sync::Arc;

/// The document that links stand in.
#[derive(Clone, Copy)]
pub struct Place<'a> {
    /// Its repository.
    pub corpus: &'a Corpus,
    /// Its path.
    pub path: &'a str,
    /// Whether several repositories are served, so that links name theirs.
    pub several: bool,
}

/// The repository of a citation; the first that has the document where none is named.
#[must_use]
pub fn corpus_of<'a>(
    corpora: &'a [Arc<Corpus>],
    repo: Option<&str>,
    path: &str,
) -> Option<&'a Corpus> {
    corpora
        .iter()
        .map(|c| &**c)
        .filter(|c| repo.is_none_or(|r| c.repo == r))
        .find(|c| c.generation.document(path).is_some())
}

/// Percent-encodes a path for a URL.
#[must_use]
pub fn encode_path(path: &str) -> String {
    forge_link::encode(path, true)
}

/// Percent-encodes a value for a query string or a fragment.
#[must_use]
pub fn encode_value(value: &str) -> String {
    forge_link::encode(value, false)
}

/// The reader's address of a document.
#[must_use]
pub fn reader(repo: Option<&str>, path: &str) -> String {
    let repo = repo.filter(|r| !r.is_empty());
    let query = repo.map_or_else(String::new, |r| format!("?repo={}", encode_value(r)));
    format!("/read/{}{query}", encode_path(path))
}

/// The reader's address of lines of a document, which are marked there.
#[must_use]
pub fn reader_lines(repo: Option<&str>, path: &str, lines: [u32; 2]) -> String {
    let base = reader(repo, path);
    let join = if base.contains('?') { '&' } else { '?' };
    format!("{base}{join}lines={}-{}#cited-lines", lines[0], lines[1])
}

/// A page that asks a question.
#[must_use]
pub fn question(question: &str) -> String {
    let q: String = form_urlencoded::byte_serialize(question.as_bytes()).collect();
    format!("/?q={q}")
}

/// Where a link of a document leads; none where it may lead nowhere.
#[must_use]
pub fn target(place: Option<Place<'_>>, link: &str) -> Option<String> {
    let link = link.trim();
    if let Some(fragment) = link.strip_prefix('#') {
        return Some(format!("#{}", encode_fragment(fragment)));
    }
    if let Some((scheme, _)) = link.split_once(':')
        && !scheme.contains(['/', '?', '#'])
    {
        let known = ["http", "https", "mailto"].iter().any(|s| scheme.eq_ignore_ascii_case(s));
        return known.then(|| link.to_owned());
    }
    if link.starts_with("//") {
        return Some(format!("https:{link}"));
    }
    let place = place?;
    let (path, fragment) = link.split_once('#').map_or((link, None), |(p, f)| (p, Some(f)));
    let path = path.split('?').next().unwrap_or("");
    let path = resolve(place.path, &decode(path))?;
    let generation = &place.corpus.generation;
    let repo = place.several.then_some(place.corpus.repo.as_str());
    let found = [path.clone(), format!("{path}.md"), format!("{path}/README.md")]
        .into_iter()
        .find(|p| generation.document(p).is_some());
    let fragment = fragment.map_or_else(String::new, |f| format!("#{}", encode_fragment(f)));
    if let Some(path) = found {
        return Some(format!("{}{fragment}", reader(repo, &path)));
    }
    // Not indexed: a script or a picture, say. The forge has it.
    let manifest = &generation.manifest;
    let (forge, commit) = manifest.forge.as_ref().zip(manifest.commit.as_ref())?;
    let url = forge_link::link(forge, commit, &path, false, "", [1, 1]);
    Some(url.split('#').next().unwrap_or(&url).to_owned())
}

/// A fragment as it stands in a link: encoded once, also where the document encodes it already.
fn encode_fragment(fragment: &str) -> String {
    encode_value(&decode(fragment))
}

/// A path in a link from a document, as a path from the root of its repository.
fn resolve(from: &str, link: &str) -> Option<String> {
    let mut parts: Vec<&str> = if link.starts_with('/') {
        Vec::new()
    } else {
        let mut parts: Vec<&str> = from.split('/').collect();
        parts.pop();
        parts
    };
    for part in link.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            part => parts.push(part),
        }
    }
    let path = parts.join("/");
    DocPath::parse(&path).ok().map(|p| p.as_str().to_owned())
}

fn decode(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let hex = bytes
            .get(at + 1..at + 3)
            .filter(|_| bytes[at] == b'%')
            .and_then(|h| std::str::from_utf8(h).ok())
            .and_then(|h| u8::from_str_radix(h, 16).ok());
        if let Some(byte) = hex {
            out.push(byte);
            at += 3;
        } else {
            out.push(bytes[at]);
            at += 1;
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_scheme_that_runs_anything() {
        for link in [
            "javascript:alert(1)",
            " JaVaScRiPt:alert(1)",
            "java\tscript:alert(1)",
            "data:text/html,x",
            "vbscript:x",
            "file:///etc/passwd",
        ] {
            assert_eq!(target(None, link), None, "{link}");
        }
        assert_eq!(target(None, "https://x.example/a"), Some("https://x.example/a".into()));
        assert_eq!(target(None, "#a-b"), Some("#a-b".into()));
        assert_eq!(target(None, "other.md"), None);
    }

    #[test]
    fn paths_stay_in_the_repository() {
        assert_eq!(resolve("a/b.md", "../c.md").as_deref(), Some("c.md"));
        assert_eq!(resolve("a/b.md", "./c d.md").as_deref(), Some("a/c d.md"));
        assert_eq!(resolve("a/b.md", "/x/y.md").as_deref(), Some("x/y.md"));
        assert_eq!(resolve("a/b.md", "../../c.md"), None);
        assert_eq!(resolve("b.md", ".git/config"), None);
    }

    #[test]
    fn addresses_are_encoded() {
        assert_eq!(reader(Some("ops"), "a b/c#.md"), "/read/a%20b/c%23.md?repo=ops");
        assert_eq!(reader_lines(None, "a.md", [3, 9]), "/read/a.md?lines=3-9#cited-lines");
        assert_eq!(question("a b&c"), "/?q=a+b%26c");
    }
}
