//! The shell: a virtual bash over the tree. No process is ever spawned, and nothing but the tree is there.

use crate::tree::envelope::Envelope;
use crate::tree::router::View;
use serde::Deserialize;

/// One command line.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    /// What is run.
    pub command: String,
    /// Where; `/runbooks` when left out.
    #[serde(default)]
    pub cwd: Option<String>,
    /// On whose behalf; a new one when left out.
    #[serde(default)]
    pub session: Option<String>,
}

/// Runs one command line to its end or to a limit. Blocks: call it from a blocking thread.
///
/// `content` is what the command printed, `stderr` what it complained about, `exit_code` its own;
/// `error` is set for an unsupported command or flag and for a limit, even behind `2>/dev/null`.
#[must_use]
pub fn run(_view: &View, _request: &Request) -> Envelope {
    Envelope::default()
}
