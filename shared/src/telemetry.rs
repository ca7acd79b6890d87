//! Logs: to stderr, quiet by default, by `RUNBOOK_LOG` (as tracing's `EnvFilter` reads it).

use tracing_subscriber::EnvFilter;

/// The environment variable that sets the level, for example `info` or `runbook_query=debug`.
pub const LOG_VARIABLE: &str = "RUNBOOK_LOG";

/// Starts logging to stderr; a second call does nothing.
pub fn init(default: &str) {
    let filter = std::env::var(LOG_VARIABLE)
        .ok()
        .and_then(|directives| EnvFilter::try_new(directives).ok())
        .unwrap_or_else(|| EnvFilter::new(format!("{default},tantivy=warn,hnsw_rs=warn,ort=warn")));
    // An error means that a subscriber is set already, as in tests.
    let _ = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::IsTerminal::is_terminal(&std::io::stderr()))
        .with_target(false)
        .try_init();
}
