//! Which forge a repository lives in, told by its URL, for links in citations.

use runbook_shared::generation::manifest::{Forge, ForgeKind};

/// The forge of a git URL; none when the host is not known.
#[must_use]
pub fn detect(url: &str) -> Option<Forge> {
    let (host, path) = host_and_path(url)?;
    let kind = kind_of_host(&host)?;
    Some(Forge { kind, base_url: format!("https://{host}/{path}") })
}

/// The forge as configured: a kind, and the web address where the URL does not give it.
#[must_use]
pub fn configured(kind: ForgeKind, web_address: Option<&str>, url: &str) -> Option<Forge> {
    let base_url = match web_address {
        Some(address) => address.trim_end_matches('/').to_owned(),
        None => host_and_path(url).map(|(host, path)| format!("https://{host}/{path}"))?,
    };
    Some(Forge { kind, base_url })
}

fn kind_of_host(host: &str) -> Option<ForgeKind> {
    let label = |name: &str| host.split('.').any(|l| l == name);
    if label("github") {
        Some(ForgeKind::Github)
    } else if label("gitlab") {
        Some(ForgeKind::Gitlab)
    } else if label("gitea") || label("forgejo") || label("codeberg") {
        Some(ForgeKind::Gitea)
    } else if label("bitbucket") {
        Some(ForgeKind::Bitbucket)
    } else if label("cgit") {
        Some(ForgeKind::Cgit)
    } else {
        None
    }
}

/// Host and repository path of a URL or `user@host:path`, without credentials, port and `.git`.
fn host_and_path(url: &str) -> Option<(String, String)> {
    let (authority, path) = if let Some((scheme, rest)) = url.split_once("://") {
        if scheme == "file" {
            return None;
        }
        rest.split_once('/')?
    } else {
        url.split_once(':')?
    };
    let host = authority.rsplit('@').next()?.split(':').next()?.to_ascii_lowercase();
    let path = path.trim_matches('/');
    let path = path.strip_suffix(".git").unwrap_or(path);
    (!host.is_empty() && !path.is_empty()).then(|| (host, path.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_of_all_kinds() {
        for (url, kind, base) in [
            (
                "git@github.com:team/runbooks.git",
                ForgeKind::Github,
                "https://github.com/team/runbooks",
            ),
            (
                "ssh://git@gitlab.example.org:2222/a/b/c.git",
                ForgeKind::Gitlab,
                "https://gitlab.example.org/a/b/c",
            ),
            ("https://tok@codeberg.org/x/y", ForgeKind::Gitea, "https://codeberg.org/x/y"),
            ("https://bitbucket.org/x/y.git", ForgeKind::Bitbucket, "https://bitbucket.org/x/y"),
        ] {
            assert_eq!(detect(url), Some(Forge { kind, base_url: base.into() }), "{url}");
        }
        assert_eq!(detect("file:///srv/github/x.git"), None);
        assert_eq!(detect("https://git.example.org/x.git"), None);
    }
}
