//! The `runbook-eval` program.

use clap::Parser;
use std::process::ExitCode;

fn main() -> ExitCode {
    runbook_shared::telemetry::init("warn");
    ExitCode::from(runbook_eval::cli::main(runbook_eval::cli::Cli::parse()))
}
