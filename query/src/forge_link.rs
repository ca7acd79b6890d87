//! Links into a forge, pinned to the indexed commit.
//!
//! | forge | document | heading | lines |
//! |---|---|---|---|
//! | GitHub | `/blob/<commit>/<path>` | `#<anchor>` | `?plain=1#L1-L9` |
//! | GitLab | `/-/blob/<commit>/<path>` | `#<anchor>` | `?plain=1#L1-9` |
//! | Gitea, Forgejo | `/src/commit/<commit>/<path>` | `#<anchor>` | `?display=source#L1-L9` |
//! | Bitbucket | `/src/<commit>/<path>` | | `#lines-1:9` |
//! | cgit | `/tree/<path>?id=<commit>` | | `#n1` |

use runbook_shared::generation::manifest::{Forge, ForgeKind};

/// The link to a place of a document; by lines where the heading has no anchor that is sure.
///
/// `path` is plain text, or percent-encoded already when `encoded`.
#[must_use]
pub fn link(
    forge: &Forge,
    commit: &str,
    path: &str,
    encoded: bool,
    anchor: &str,
    lines: [u32; 2],
) -> String {
    let base = &forge.base_url;
    let path = if encoded { path.to_owned() } else { encode(path, true) };
    let [from, to] = lines;
    let fragment = encode(anchor, false);
    match forge.kind {
        ForgeKind::Github if anchor.is_empty() => {
            format!("{base}/blob/{commit}/{path}?plain=1#L{from}-L{to}")
        }
        ForgeKind::Github => format!("{base}/blob/{commit}/{path}#{fragment}"),
        ForgeKind::Gitlab | ForgeKind::GitlabOld if anchor.is_empty() => {
            format!("{base}/-/blob/{commit}/{path}?plain=1#L{from}-{to}")
        }
        ForgeKind::Gitlab | ForgeKind::GitlabOld => {
            format!("{base}/-/blob/{commit}/{path}#{fragment}")
        }
        ForgeKind::Gitea if anchor.is_empty() => {
            format!("{base}/src/commit/{commit}/{path}?display=source#L{from}-L{to}")
        }
        ForgeKind::Gitea => format!("{base}/src/commit/{commit}/{path}#{fragment}"),
        ForgeKind::Bitbucket => format!("{base}/src/{commit}/{path}#lines-{from}:{to}"),
        ForgeKind::Cgit => format!("{base}/tree/{path}?id={commit}#n{from}"),
    }
}

/// Percent-encodes all but unreserved characters (RFC 3986, 2.3), and `/` in a path.
pub(crate) fn encode(text: &str, keep_slash: bool) -> String {
    let mut out = String::with_capacity(text.len());
    for b in text.bytes() {
        if b.is_ascii_alphanumeric() || b"-._~".contains(&b) || (keep_slash && b == b'/') {
            out.push(char::from(b));
        } else {
            out.push_str(&format!("%{b:02X}"));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn forge(kind: ForgeKind) -> Forge {
        Forge { kind, base_url: "https://h.example/t/r".into() }
    }

    #[test]
    fn every_forge_has_its_form() {
        let path = "on call/50% #1 [db].md";
        let encoded = "on%20call/50%25%20%231%20%5Bdb%5D.md";
        for (kind, anchor, expected) in [
            (ForgeKind::Github, "a-b", format!("/blob/abc/{encoded}#a-b")),
            (ForgeKind::Github, "", format!("/blob/abc/{encoded}?plain=1#L3-L9")),
            (ForgeKind::Github, "benötigt", format!("/blob/abc/{encoded}#ben%C3%B6tigt")),
            (ForgeKind::Gitlab, "a-b", format!("/-/blob/abc/{encoded}#a-b")),
            (ForgeKind::Gitea, "a-b", format!("/src/commit/abc/{encoded}#a-b")),
            (ForgeKind::Bitbucket, "", format!("/src/abc/{encoded}#lines-3:9")),
            (ForgeKind::Cgit, "", format!("/tree/{encoded}?id=abc#n3")),
        ] {
            assert_eq!(
                link(&forge(kind), "abc", path, false, anchor, [3, 9]),
                format!("https://h.example/t/r{expected}")
            );
        }
    }
}
