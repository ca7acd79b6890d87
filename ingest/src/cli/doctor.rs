//! `doctor`: flags and what is printed.

use super::{RunArgs, print};
use crate::doctor::findings;
use crate::error::{EXIT_FAILED, EXIT_OK, IngestError};
use clap::Args;
use runbook_shared::doctor;

/// Flags of `doctor`: those of a run; `--json` prints the findings.
#[derive(Args, Debug)]
pub(super) struct DoctorArgs {
    #[command(flatten)]
    run: RunArgs,
}

pub(super) fn doctor(args: &DoctorArgs) -> Result<u8, IngestError> {
    let settings = &args.run.settings;
    let found = findings(settings, args.run.config.as_ref());
    let text = if settings.json { doctor::json(&found) } else { doctor::text(&found) };
    let code = print(&text);
    Ok(if code == EXIT_OK && !doctor::passes(&found) { EXIT_FAILED } else { code })
}
