//! The `runbook-ingest` program.

use clap::Parser;
use std::process::ExitCode;

fn main() -> ExitCode {
    runbook_shared::telemetry::init("warn");
    ExitCode::from(runbook_ingest::cli::main(runbook_ingest::cli::Cli::parse()))
}
