//! Exceptions: `<!-- runbook-lint: allow RULE, RULE -->`.
//!
//! Above the first heading it covers the whole document; elsewhere the section that it stands in, and
//! where a heading follows it directly, that heading's section.

use super::rule::Rule;
use super::{Findings, Page};
use std::ops::RangeInclusive;

/// What a document's comments allow.
#[derive(Debug, Default)]
pub(super) struct Allowed {
    ranges: Vec<(Rule, RangeInclusive<u32>)>,
}

impl Allowed {
    /// Reads the comments; a name that is of no rule is a finding.
    pub(super) fn of(page: &Page<'_>, findings: &mut Findings<'_>) -> Self {
        let mut allowed = Self::default();
        for range in &page.outline.comments {
            let line = page.outline.line_of(range.start);
            let Some(names) = allowed_names(&page.text[range.clone()]) else { continue };
            let covered = covered(page, line, page.outline.line_of(range.end.saturating_sub(1)));
            for name in names {
                match Rule::named(name) {
                    Some(rule) => {
                        allowed.ranges.extend(covered.iter().map(|lines| (rule, lines.clone())));
                    }
                    None => {
                        let all: Vec<&str> = Rule::ALL.iter().map(|r| r.name()).collect();
                        let message = format!("`{name}` is no rule; there are {}", all.join(", "));
                        findings.push(
                            &Self::default(),
                            page.path(),
                            line,
                            Rule::UnknownRule,
                            message,
                        );
                    }
                }
            }
        }
        allowed
    }

    /// True when a finding of this rule at this line is not to be told.
    pub(super) fn covers(&self, rule: Rule, line: u32) -> bool {
        self.ranges.iter().any(|(r, lines)| *r == rule && lines.contains(&line))
    }
}

fn allowed_names(comment: &str) -> Option<Vec<&str>> {
    let inner = comment.strip_prefix("<!--")?.trim_end_matches("-->").trim();
    let rest = inner.strip_prefix("runbook-lint:")?.trim_start().strip_prefix("allow")?;
    Some(rest.split([',', ' ', '\n', '\t']).map(str::trim).filter(|n| !n.is_empty()).collect())
}

/// The lines for which a comment from `line` to `end` holds.
fn covered(page: &Page<'_>, line: u32, end: u32) -> Vec<RangeInclusive<u32>> {
    let headings = &page.outline.headings;
    // To the next heading of any level: what stands beneath a subheading is another section.
    let section = |at: usize| {
        let next = headings.get(at + 1).map_or(u32::MAX, |h| h.line - 1);
        headings[at].line..=next
    };
    let Some(above) = headings.iter().rposition(|h| h.line <= line) else {
        return vec![0..=u32::MAX];
    };
    let mut ranges = vec![section(above)];
    let follows = headings.get(above + 1).filter(|next| {
        let between = page.text.lines().skip(end as usize);
        between.take((next.line.saturating_sub(end + 1)) as usize).all(|l| l.trim().is_empty())
    });
    if follows.is_some() {
        ranges.push(section(above + 1));
    }
    ranges
}
