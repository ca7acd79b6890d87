//! Logs: to stderr, quiet by default, by `RUNBOOK_LOG` (as tracing's `EnvFilter` reads it).

use tracing_subscriber::EnvFilter;

/// The environment variable that sets the level, for example `info` or `runbook_query=debug`.
pub const LOG_VARIABLE: &str = "RUNBOOK_LOG";

/// The environment variable that makes every line a JSON object, when it is `json`.
pub const FORMAT_VARIABLE: &str = "RUNBOOK_LOG_FORMAT";

/// Starts logging to stderr; a second call does nothing.
pub fn init(default: &str) {
    let filter = std::env::var(LOG_VARIABLE)
        .ok()
        .and_then(|directives| EnvFilter::try_new(directives).ok())
        .unwrap_or_else(|| EnvFilter::new(format!("{default},tantivy=warn,hnsw_rs=warn,ort=warn")));
    let lines = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::IsTerminal::is_terminal(&std::io::stderr()))
        .with_target(false);
    // An error means that a subscriber is set already, as in tests.
    let _ = if std::env::var(FORMAT_VARIABLE).is_ok_and(|f| f == "json") {
        lines.json().flatten_event(true).try_init()
    } else {
        lines.try_init()
    };
}
