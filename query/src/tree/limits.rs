//! Every bound of the tree and the shell, with its unit; `[tree]` in the configuration file sets them,
//! and `GET /v1/fs/capabilities` reports them.

use serde::{Deserialize, Serialize};

/// The bounds. All of them hold for one operation or command unless they say otherwise.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
#[schemars(rename = "TreeLimits")]
pub struct Limits {
    /// Seconds of wall clock.
    pub wall_clock_s: f64,
    /// Bytes that a command may print.
    pub output_bytes: usize,
    /// Characters of a result above which it goes to `/tmp/overflow`.
    pub overflow_characters: usize,
    /// Bytes of a pattern.
    pub pattern_bytes: usize,
    /// Bytes of memory that a compiled pattern may take.
    pub regex_bytes: usize,
    /// Files and directories that are visited.
    pub walk_entries: usize,
    /// Bytes of a command line.
    pub command_bytes: usize,
    /// Commands that a command line may run.
    pub commands: usize,
    /// Turns of all loops together.
    pub loops: usize,
    /// Shell commands and file operations at once, over all clients.
    pub concurrent: usize,
    /// Bytes of files that `load` gives in one reply.
    pub load_bytes: u64,
    /// Bytes of one file that is written.
    pub file_bytes: u64,
    /// Bytes in `/tmp` for each session.
    pub tmp_bytes: u64,
    /// Bytes in `/tmp` over all sessions, when it is kept in memory.
    pub tmp_bytes_all: u64,
    /// Seconds after which a file in `/tmp` is gone.
    pub tmp_ttl_s: u64,
    /// Bytes of documents that are kept in memory for each generation; more are read from disk.
    pub memory_bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            wall_clock_s: 10.0,
            output_bytes: 8 << 20,
            overflow_characters: 20_000,
            pattern_bytes: 1024,
            regex_bytes: 8 << 20,
            walk_entries: 200_000,
            command_bytes: 64 << 10,
            commands: 10_000,
            loops: 100_000,
            concurrent: 8,
            load_bytes: 16 << 20,
            file_bytes: 8 << 20,
            tmp_bytes: 32 << 20,
            tmp_bytes_all: 256 << 20,
            tmp_ttl_s: 3600,
            memory_bytes: 256 << 20,
        }
    }
}

impl Limits {
    /// The names of all bounds, as they stand in the file.
    #[must_use]
    pub fn names() -> Vec<String> {
        let value = serde_json::to_value(Self::default()).unwrap_or_default();
        value.as_object().map(|map| map.keys().cloned().collect()).unwrap_or_default()
    }

    /// Wall clock as a duration; at least a millisecond, at most an hour.
    #[must_use]
    pub fn wall_clock(&self) -> std::time::Duration {
        let seconds = if self.wall_clock_s.is_finite() { self.wall_clock_s } else { 10.0 };
        std::time::Duration::from_secs_f64(seconds.clamp(0.001, 3600.0))
    }
}
