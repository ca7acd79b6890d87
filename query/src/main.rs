//! The `runbook-query` program.

use clap::Parser;
use std::process::ExitCode;

fn main() -> ExitCode {
    let code = runbook_query::cli::main(runbook_query::cli::Cli::parse());
    runbook_shared::onnx::leave_if_hanging(code);
    ExitCode::from(code)
}
