//! Which way a question goes: to the files first, or to retrieval.
//!
//! An agent that searches by meaning before it has looked at any file gets near misses where a listing
//! would have shown the page. Under [`FilesFirst`] such a search is not executed; the reply says what
//! to do instead. `ask` is exempt: it finds its own way, [`lookup`] among them, and names it in `route`.

pub mod lookup;

use serde::Deserialize;
use serde_json::json;

/// For whom a search has to wait until the session has looked at the files: `[agents] files_first`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FilesFirst {
    /// For sessions over MCP.
    #[default]
    Mcp,
    /// Over HTTP too.
    Always,
    /// For nobody.
    Never,
}

/// Where a request comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Via {
    /// The HTTP routes.
    Http,
    /// The Model Context Protocol, by either transport.
    Mcp,
    /// A program on this machine.
    Cli,
}

impl Via {
    /// The name in the usage log.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Mcp => "mcp",
            Self::Cli => "cli",
        }
    }
}

impl FilesFirst {
    /// Whether a search of a session that has, or has not, looked at files is steered there.
    #[must_use]
    pub fn steers(self, via: Via, has_looked_at_files: bool) -> bool {
        let holds = match self {
            Self::Always => via != Via::Cli,
            Self::Mcp => via == Via::Mcp,
            Self::Never => false,
        };
        holds && !has_looked_at_files
    }
}

/// What a steered search is told, and what to do next in the same session: a grep for the rarest word of
/// the search, where it has one, and a listing.
#[must_use]
pub fn steering_note(question: &str, via: Via, session: &str) -> (String, Vec<String>) {
    let word = lookup::rarest_word(question);
    let next = match via {
        Via::Mcp => {
            let grep = word.map(|w| {
                format!("grep {}", json!({"pattern": w, "path": "/runbooks", "session": session}))
            });
            let list = format!("list {}", json!({"path": "/runbooks", "session": session}));
            grep.into_iter().chain([list]).collect()
        }
        Via::Http | Via::Cli => {
            let of = format!("path=/runbooks&session={session}");
            let grep = word.map(|w| format!("GET /v1/fs/grep?pattern={w}&{of}"));
            grep.into_iter().chain([format!("GET /v1/fs/tree?{of}")]).collect()
        }
    };
    let note = "not searched: this session has not looked at the files yet. List or grep them first, which \
                is exact and says when nothing is there; then search by meaning if you still need to. A \
                question for an answer goes to `ask`, which needs no look before."
        .to_owned();
    (note, next)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_searches_before_a_look_are_steered() {
        use FilesFirst::{Always, Mcp, Never};
        for (policy, via, looked, steered) in [
            (Mcp, Via::Mcp, false, true),
            (Mcp, Via::Mcp, true, false),
            (Mcp, Via::Http, false, false),
            (Always, Via::Http, false, true),
            (Always, Via::Http, true, false),
            (Always, Via::Cli, false, false),
            (Never, Via::Mcp, false, false),
        ] {
            assert_eq!(policy.steers(via, looked), steered, "{policy:?} {via:?} {looked}");
        }
        let (note, next) = steering_note("how do I raise max_connections", Via::Mcp, "s1");
        assert!(
            note.starts_with("not searched") && next[0].contains("max_connections"),
            "{next:?}"
        );
        assert_eq!(steering_note("??", Via::Http, "s1").1.len(), 1);
    }
}
