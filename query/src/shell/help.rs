//! `help`: what there is, and the options of each.

use super::commands::{self, By, COMMANDS};
use async_trait::async_trait;
use bashkit::{Builtin, BuiltinContext, ExecResult};
use serde_json::{Value, json};
use std::fmt::Write;

/// The command.
pub struct Help;

/// The options of one command.
#[must_use]
pub fn one(name: &str) -> String {
    let Some(command) = commands::find(name) else {
        return format!("there is no command `{name}`; `help` lists them\n");
    };
    let options = options(command);
    let mut text = format!("{name} - {}\n", command.about);
    if !options.is_empty() {
        let _ = writeln!(text, "options: {}", options.join(", "));
    }
    text
}

fn options(command: &commands::Command) -> Vec<String> {
    match command.name {
        "find" => commands::find_tests(),
        _ => command.options.describe(),
    }
}

fn all() -> String {
    let mut text = String::from(
        "The runbooks as files, read-only. /tmp and /artifacts can be written; `ls /` lists the mounts.\n\n",
    );
    for command in COMMANDS.iter().filter(|c| c.by != By::Shell) {
        let _ = writeln!(text, "  {:<10} {}", command.name, command.about);
    }
    let words: Vec<&str> = COMMANDS.iter().filter(|c| c.by == By::Shell).map(|c| c.name).collect();
    let _ = writeln!(text, "\nof the shell itself: {}", words.join(" "));
    text.push_str("pipes, quotes, globs, && || ; $? $(...) for if while case, here-strings; `help NAME` shows options\n");
    text
}

/// Commands with their options, for programs.
#[must_use]
pub fn as_data() -> Value {
    COMMANDS
        .iter()
        .map(|c| json!({"name": c.name, "about": c.about, "options": options(c), "checked": c.by != By::Shell}))
        .collect()
}

#[async_trait]
impl Builtin for Help {
    async fn execute(&self, ctx: BuiltinContext<'_>) -> bashkit::Result<ExecResult> {
        let names: Vec<&String> = ctx.args.iter().filter(|a| !a.starts_with('-')).collect();
        if names.is_empty() {
            return Ok(ExecResult::ok(all()));
        }
        let code = i32::from(names.iter().any(|n| commands::find(n).is_none()));
        let text: String = names.iter().map(|n| one(n)).collect();
        Ok(ExecResult { exit_code: code, ..ExecResult::ok(text) })
    }
}
