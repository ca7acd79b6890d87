//! The `runbook-manuals` program: writes what the package holds of man pages and shell completions.
//!
//! Made from the programs' own command lines, so that a new flag or subcommand is there by itself.
//! `runbook-ask` is a shell script; its page and its completions are written by hand (`deploy/`).

use anyhow::{Context, Result};
use clap::{Command, CommandFactory, Parser};
use clap_complete::Shell;
use clap_mangen::Man;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Write man pages and completions of the programs
#[derive(Parser, Debug)]
#[command(name = "runbook-manuals", version)]
struct Cli {
    /// Directory; gets man1/, bash/, zsh/ and fish/
    #[arg(value_name = "DIR")]
    out: PathBuf,
    /// Date of the pages, as they print it
    #[arg(long, default_value = "", value_name = "DATE")]
    date: String,
}

fn main() -> ExitCode {
    match write_all(&Cli::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            // When stderr is closed there is nobody to tell.
            let _ = writeln!(std::io::stderr(), "runbook-manuals: {e:#}");
            ExitCode::FAILURE
        }
    }
}

fn programs() -> [Command; 4] {
    [
        runbook_ingest::cli::Cli::command(),
        runbook_query::cli::Cli::command(),
        runbook_query::shell::program::Cli::command(),
        runbook_eval::cli::Cli::command(),
    ]
}

fn write_all(cli: &Cli) -> Result<()> {
    for name in ["man1", "bash", "zsh", "fish"] {
        let dir = cli.out.join(name);
        fs::create_dir_all(&dir).with_context(|| dir.display().to_string())?;
    }
    for command in programs() {
        let name = command.get_name().to_owned();
        for (shell, file) in [
            (Shell::Bash, format!("bash/{name}")),
            (Shell::Zsh, format!("zsh/_{name}")),
            (Shell::Fish, format!("fish/{name}.fish")),
        ] {
            let mut text = Vec::new();
            clap_complete::generate(shell, &mut command.clone(), &name, &mut text);
            write(&cli.out.join(file), &text)?;
        }
        let mut command = command.disable_help_subcommand(true);
        command.build();
        pages(&command, &name, cli)?;
    }
    Ok(())
}

/// The page of a command and those of its subcommands: `runbook-query-ask(1)`.
fn pages(command: &Command, title: &str, cli: &Cli) -> Result<()> {
    let version = env!("CARGO_PKG_VERSION");
    for sub in command.get_subcommands().filter(|c| !c.is_hide_set() && c.get_name() != "help") {
        pages(sub, &format!("{title}-{}", sub.get_name()), cli)?;
    }
    let mut text = Vec::new();
    Man::new(command.clone().version(version))
        .title(title.to_uppercase())
        .section("1")
        .date(cli.date.clone())
        .source(format!("runbook-ask {version}"))
        .manual("User Commands")
        .render(&mut text)
        .with_context(|| format!("the page of {title}"))?;
    text.extend_from_slice(configuration(title).as_bytes());
    text.extend_from_slice(see_also(title).as_bytes());
    write(&cli.out.join(format!("man1/{title}.1")), &text)
}

/// Where the variables and keys of the options are, which the programs resolve themselves.
fn configuration(title: &str) -> &'static str {
    if title == "runbook-eval" || title.starts_with("runbook-eval-") {
        return "";
    }
    ".SH CONFIGURATION\nThe variable and the key of every option, the exit codes and what is printed:\n\
     .IR /usr/share/doc/runbook\\-ask/docs/configuration.md .\n"
}

fn see_also(title: &str) -> String {
    const ALL: [(&str, u8); 6] = [
        ("runbook-ask", 1),
        ("runbook-eval", 1),
        ("runbook-ingest", 1),
        ("runbook-query", 1),
        ("runbook-sh", 1),
        ("runbook-query.service", 8),
    ];
    let others = ALL.iter().filter(|(name, _)| *name != title);
    let lines: Vec<String> = others
        .map(|(name, section)| format!(".BR {} ({section})", name.replace('-', "\\-")))
        .collect();
    format!(".SH \"SEE ALSO\"\n{}\n", lines.join(" ,\n"))
}

fn write(path: &Path, text: &[u8]) -> Result<()> {
    fs::write(path, text).with_context(|| path.display().to_string())
}
