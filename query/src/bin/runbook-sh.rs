//! The `runbook-sh` program.

use clap::Parser;
use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(
        runbook_query::shell::program::main(&runbook_query::shell::program::Cli::parse()),
    )
}
