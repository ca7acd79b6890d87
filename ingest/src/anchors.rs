//! Fragments under which a forge shows a heading, computed over all headings of the file.
//!
//! | forge | rule |
//! |---|---|
//! | GitHub | lower case; letters, digits, marks, `_` and `-` kept, spaces to hyphens, the rest removed; `-1`, `-2` for repeats |
//! | GitLab 17 and newer | as GitHub |
//! | GitLab before 17 | as GitHub, then runs of hyphens squeezed (the change: GitLab 17.0 release notes) |
//! | Gitea, Forgejo | as GitHub; the page's script adds the `user-content-` prefix |
//! | Bitbucket | `markdown-header-` and the slug of the ASCII letters; repeats get `_1`: unsure, so lines are linked |
//! | cgit | none: lines are linked |

use crate::outline::OutlineHeading;
use runbook_shared::generation::manifest::ForgeKind;
use rustc_hash::FxHashMap;

/// The anchors of all headings, in order; empty where the forge has none that is known for sure.
#[must_use]
pub fn anchors(headings: &[OutlineHeading], forge: Option<ForgeKind>) -> Vec<String> {
    let forge = forge.unwrap_or(ForgeKind::Github);
    let mut used: FxHashMap<String, u32> = FxHashMap::default();
    headings.iter().map(|h| unique(slug(&h.raw_text, forge), &mut used)).collect()
}

/// Numbers repeats as GitHub does: `a`, `a-1`, and a heading that is itself `a-1` becomes `a-1-1`.
fn unique(slug: String, used: &mut FxHashMap<String, u32>) -> String {
    if slug.is_empty() {
        return slug;
    }
    let mut anchor = slug.clone();
    while used.contains_key(&anchor) {
        let n = used.entry(slug.clone()).or_insert(0);
        *n += 1;
        anchor = format!("{slug}-{n}");
    }
    used.insert(anchor.clone(), 0);
    anchor
}

fn slug(text: &str, forge: ForgeKind) -> String {
    match forge {
        ForgeKind::Github | ForgeKind::Gitlab | ForgeKind::Gitea => github(text),
        ForgeKind::GitlabOld => squeeze(&github(text)),
        ForgeKind::Bitbucket | ForgeKind::Cgit => String::new(),
    }
}

fn github(text: &str) -> String {
    text.chars()
        .flat_map(char::to_lowercase)
        .filter_map(|c| match c {
            ' ' => Some('-'),
            '-' | '_' => Some(c),
            c if c.is_alphanumeric() || is_mark(c) => Some(c),
            _ => None,
        })
        .collect()
}

/// Combining marks, which belong to the letter before them.
fn is_mark(c: char) -> bool {
    matches!(c, '\u{300}'..='\u{36f}' | '\u{900}'..='\u{903}' | '\u{93a}'..='\u{94f}' | '\u{e31}' | '\u{e34}'..='\u{e3a}' | '\u{3099}'..='\u{309a}')
}

fn squeeze(slug: &str) -> String {
    let mut out = String::with_capacity(slug.len());
    for c in slug.chars() {
        if c != '-' || !out.ends_with('-') {
            out.push(c);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outline::Outline;

    fn of(markdown: &str, forge: ForgeKind) -> Vec<String> {
        anchors(&Outline::of(markdown).headings, Some(forge))
    }

    #[test]
    fn github_rules() {
        for (heading, anchor) in [
            ("Logs & metrics", "logs--metrics"),
            ("Step 1 — drain", "step-1--drain"),
            ("A + B", "a--b"),
            ("max_user_watches", "max_user_watches"),
            ("retry_", "retry_"),
            ("retry-", "retry-"),
            ("🚨 Alert", "-alert"),
            ("a🚨b", "ab"),
            ("§4 Scope", "4-scope"),
            ("Benötigte Rechte", "benötigte-rechte"),
            ("障害対応", "障害対応"),
            ("Set `fs.inotify` in [sysctl](x.md)", "set-fsinotify-in-sysctl"),
            ("2.3. Cache - Warm-Up", "23-cache---warm-up"),
            ("Rollback <!-- review me -->", "rollback"),
            ("Restore {#r}", "restore-r"),
        ] {
            assert_eq!(of(&format!("## {heading}\n"), ForgeKind::Github), [anchor], "{heading}");
        }
    }

    #[test]
    fn forges_differ() {
        let heading = "## 2.3. Cache - Warm-Up\n";
        assert_eq!(of(heading, ForgeKind::Gitlab), ["23-cache---warm-up"]);
        assert_eq!(of(heading, ForgeKind::GitlabOld), ["23-cache-warm-up"]);
        assert_eq!(of(heading, ForgeKind::Bitbucket), [""]);
    }

    #[test]
    fn repeats_are_numbered_over_the_whole_file() {
        assert_eq!(
            of("# A\n## A\n## A-1\n## A\n### B\n", ForgeKind::Github),
            ["a", "a-1", "a-1-1", "a-2", "b"]
        );
    }
}
