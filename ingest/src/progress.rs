//! Progress bars on a terminal, nothing elsewhere: stderr of a timer stays quiet.

use indicatif::{ProgressBar, ProgressStyle};
use std::io::IsTerminal;

/// Makes progress bars, or hidden ones.
pub struct Progress {
    visible: bool,
}

impl Progress {
    /// Visible when stderr is a terminal and `quiet` is not set.
    #[must_use]
    pub fn new(quiet: bool) -> Self {
        Self { visible: !quiet && std::io::stderr().is_terminal() }
    }

    /// A bar of `length` steps.
    #[must_use]
    pub fn bar(&self, stage: &'static str, length: usize) -> ProgressBar {
        if !self.visible {
            return ProgressBar::hidden();
        }
        let style = ProgressStyle::with_template("{prefix:>8} [{bar:40}] {pos}/{len} {eta}")
            .unwrap_or_else(|_| ProgressStyle::default_bar());
        ProgressBar::new(length as u64).with_style(style).with_prefix(stage)
    }
}
