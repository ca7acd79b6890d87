//! `rollback` and `unpin`: flags and what is printed.

use super::{DataArgs, print};
use crate::error::IngestError;
use crate::rollback;
use clap::Args;
use serde::Serialize;

/// Flags of `rollback`.
#[derive(Args, Debug)]
pub(super) struct RollbackArgs {
    #[command(flatten)]
    data: DataArgs,
    /// Go to this kept generation instead of the previous one; the beginning of its name is enough. The
    /// current one is pinned as it is
    #[arg(long, value_name = "GENERATION", conflicts_with_all = ["list", "unpin"])]
    to: Option<String>,
    /// Why, in one line; it stands in every reply until `unpin`
    #[arg(long, value_name = "TEXT", conflicts_with_all = ["list", "unpin"])]
    reason: Option<String>,
    /// List the generations that are kept, newest first, and change nothing
    #[arg(long, conflicts_with = "unpin")]
    list: bool,
    /// Let ingest publish again (the same as `runbook-ingest unpin`)
    #[arg(long)]
    unpin: bool,
    /// Leave at once when a run is at work, instead of waiting for it
    #[arg(long)]
    no_wait: bool,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

/// Flags of `unpin`.
#[derive(Args, Debug)]
pub(super) struct UnpinArgs {
    #[command(flatten)]
    data: DataArgs,
    /// Leave at once when a run is at work, instead of waiting for it
    #[arg(long)]
    no_wait: bool,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn rollback(args: &RollbackArgs) -> Result<u8, IngestError> {
    let data = args.data.dir()?;
    if args.unpin {
        return taken_away(&rollback::unpin(&data, !args.no_wait)?, args.json);
    }
    if args.list {
        let kept = rollback::list(&data)?;
        if args.json {
            return Ok(print_json(&kept));
        }
        if kept.is_empty() {
            return Ok(print(&format!("`{}` holds no generation\n", data.display())));
        }
        return Ok(print(&kept.iter().map(rollback::Kept::line).collect::<String>()));
    }
    let (to, reason) = (args.to.as_deref(), args.reason.as_deref());
    let done = rollback::roll_back(&data, to, reason, !args.no_wait)?;
    Ok(if args.json { print_json(&done) } else { print(&done.text()) })
}

pub(super) fn unpin(args: &UnpinArgs) -> Result<u8, IngestError> {
    taken_away(&rollback::unpin(&args.data.dir()?, !args.no_wait)?, args.json)
}

fn taken_away(found: &rollback::Unpinned, json: bool) -> Result<u8, IngestError> {
    Ok(if json { print_json(found) } else { print(&found.text()) })
}

fn print_json<T: Serialize + ?Sized>(value: &T) -> u8 {
    print(&format!("{}\n", serde_json::to_string_pretty(value).unwrap_or_default()))
}
