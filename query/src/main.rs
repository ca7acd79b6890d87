//! The `runbook-query` program.

use clap::Parser;
use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(runbook_query::cli::main(runbook_query::cli::Cli::parse()))
}
