//! The `runbook-ingest` program.

use clap::Parser;
use std::process::ExitCode;

fn main() -> ExitCode {
    runbook_shared::telemetry::init("warn");
    let code = runbook_ingest::cli::main(runbook_ingest::cli::Cli::parse());
    runbook_shared::onnx::leave_if_hanging(code);
    ExitCode::from(code)
}
