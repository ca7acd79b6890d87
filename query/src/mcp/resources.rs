//! Documents as resources: `runbook:///runbooks/PATH`, listed in pages, read whole or by lines.

use super::handler::Handler;
use crate::agents;
use crate::service::Service;
use crate::tree::request::Read;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use rmcp::ErrorData;
use rmcp::model::{
    CompletionInfo, ListResourcesResult, ReadResourceResult, Resource, ResourceContents,
    ResourceTemplate,
};
use serde_json::json;
use std::time::Instant;

/// The start of every URI; the tree's path follows.
const SCHEME: &str = "runbook://";
/// Documents on one page of the list.
const PAGE: usize = 200;
/// What stands plain in the path of a URI (RFC 3986, 2.3), and `/`.
const PLAIN: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b'/');
const MARKDOWN: &str = "text/markdown";

/// The URI of a path in the tree.
pub(super) fn uri(path: &str) -> String {
    format!("{SCHEME}{}", utf8_percent_encode(path, PLAIN))
}

/// One page of the documents.
///
/// # Errors
/// When the cursor is not one of ours.
pub(super) fn list(
    service: &Service,
    cursor: Option<&str>,
) -> Result<ListResourcesResult, ErrorData> {
    let from: usize = match cursor {
        None => 0,
        Some(cursor) => cursor.parse().map_err(|_| {
            ErrorData::invalid_params("the cursor is not one that a list has given", None)
        })?,
    };
    let snapshot = service.snapshot();
    let corpora = snapshot.corpora();
    let all = corpora.iter().flat_map(|c| {
        let mount = agents::mount(&snapshot, &c.repo);
        c.generation.documents.iter().map(move |d| (format!("{mount}/{}", d.path), d))
    });
    let total: usize = corpora.iter().map(|c| c.generation.documents.len()).sum();
    let resources = all
        .skip(from)
        .take(PAGE)
        .map(|(path, document)| {
            Resource::new(uri(&path), document.path.clone())
                .with_title(document.title.clone())
                .with_description(format!("{} lines", document.lines))
                .with_mime_type(MARKDOWN)
                .with_size(document.bytes)
        })
        .collect();
    let mut result = ListResourcesResult::with_all_items(resources);
    result.next_cursor = (from + PAGE < total).then(|| (from + PAGE).to_string());
    Ok(result)
}

pub(super) fn templates() -> Vec<ResourceTemplate> {
    let about = "A file of the tree by its path, such as runbooks/database/failover.md; add ?lines=3-40 for some lines";
    vec![
        ResourceTemplate::new("runbook:///{+path}{?lines}", "file")
            .with_title("A file of the tree")
            .with_description(about)
            .with_mime_type(MARKDOWN),
    ]
}

/// Reads a resource; a long one up to the limit of results, with a last line that says how to go on.
///
/// # Errors
/// When there is no such resource.
pub(super) async fn read(
    handler: &Handler,
    asked: &str,
    session: String,
) -> Result<ReadResourceResult, ErrorData> {
    let missing =
        |message: String| ErrorData::resource_not_found(message, Some(json!({"uri": asked})));
    let rest = asked
        .strip_prefix(SCHEME)
        .ok_or_else(|| missing(format!("a resource's URI begins with {SCHEME}/")))?;
    let (path, query) = rest.split_once('?').map_or((rest, ""), |(p, q)| (p, q));
    let decode = |text: &str| {
        percent_decode_str(text)
            .decode_utf8()
            .map(std::borrow::Cow::into_owned)
            .map_err(|_| missing("the URI is not UTF-8".into()))
    };
    let path = decode(path)?;
    let lines = query.strip_prefix("lines=").map(decode).transpose()?;
    let request = Read { path, lines, ..Read::default() };
    let work = move |service: &Service| {
        service.evidence().looked_at_files(&session, Instant::now());
        Ok(service.view(Some(&session))?.read(&request))
    };
    let envelope = handler.app().work(work).await.map_err(|e| {
        ErrorData::internal_error(e.message, Some(json!({"code": e.code, "hint": e.hint})))
    })?;
    if let Some(error) = envelope.error {
        return Err(missing(error.message));
    }
    let mut text = envelope.content;
    if let Some(overflow) = envelope.overflow {
        text.push_str(&format!(
            "\n[{} lines in all; add ?lines=FROM-TO to read the rest]\n",
            overflow.lines
        ));
    }
    let contents = ResourceContents::text(text, asked).with_mime_type(MARKDOWN);
    Ok(ReadResourceResult::new(vec![contents]))
}

/// Paths that begin with, or hold, what was typed.
pub(super) fn complete(service: &Service, typed: &str) -> CompletionInfo {
    let snapshot = service.snapshot();
    let typed = typed.trim_start_matches('/');
    let mut begin = Vec::new();
    let mut hold = Vec::new();
    for corpus in snapshot.corpora() {
        let mount = agents::mount(&snapshot, &corpus.repo);
        for document in &corpus.generation.documents {
            let path = format!("{}/{}", mount.trim_start_matches('/'), document.path);
            if path.starts_with(typed) || document.path.starts_with(typed) {
                begin.push(path);
            } else if path.contains(typed) {
                hold.push(path);
            }
        }
    }
    begin.extend(hold);
    completion(begin)
}

/// Top directories that begin with what was typed.
pub(super) fn complete_area(service: &Service, typed: &str) -> CompletionInfo {
    let corpora = service.snapshot().corpora();
    let mut areas: Vec<String> = corpora
        .iter()
        .flat_map(|c| &c.generation.documents)
        .filter_map(|d| d.path.split_once('/').map(|(top, _)| top.to_owned()))
        .filter(|top| top.starts_with(typed))
        .collect();
    areas.sort_unstable();
    areas.dedup();
    completion(areas)
}

fn completion(mut values: Vec<String>) -> CompletionInfo {
    let total = values.len();
    values.truncate(CompletionInfo::MAX_VALUES);
    let more = total > values.len();
    let mut info = CompletionInfo::new(values).unwrap_or_default();
    info.total = u32::try_from(total).ok();
    info.has_more = Some(more);
    info
}
