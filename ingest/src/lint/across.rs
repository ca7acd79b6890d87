//! Rules over all documents: titles that are there twice.

use super::allow::Allowed;
use super::rule::Rule;
use super::{Findings, Page};
use std::collections::BTreeMap;

/// Other documents that a finding names.
const NAMED_MAX: usize = 3;

/// A citation shows title and headings; where two documents share a title, and with it often their
/// headings, a reader cannot tell the two apart, and neither can search.
pub(super) fn check(pages: &[Page<'_>], allowed: &[Allowed], findings: &mut Findings<'_>) {
    let mut titles: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for (n, page) in pages.iter().enumerate() {
        titles.entry(page.title().to_lowercase()).or_default().push(n);
    }
    for places in titles.values().filter(|places| places.len() > 1) {
        for n in places {
            let page = &pages[*n];
            let others: Vec<String> = places
                .iter()
                .filter(|other| *other != n)
                .take(NAMED_MAX)
                .map(|other| format!("`{}`", pages[*other].path()))
                .collect();
            let rest = places.len() - 1 - others.len();
            let more = if rest == 0 { String::new() } else { format!(" and {rest} more") };
            let message = format!(
                "`{}` is also the title of {}{more}: citations of them look the same; say of what it is",
                page.title(),
                others.join(", ")
            );
            let h1 = page.outline.headings.iter().find(|h| h.level == 1);
            let line = match (&page.outline.front_title, h1) {
                (None, Some(h1)) => h1.line,
                _ => 1,
            };
            findings.push(&allowed[*n], page.path(), line, Rule::AmbiguousTitle, message);
        }
    }
}
