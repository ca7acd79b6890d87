//! `runbook-sh`: the shell at a terminal, or for one command; over a data directory or a daemon.

use super::Shell;
use super::prompt;
use super::remote::{Client, Loaded};
use crate::service::{Options, Service};
use crate::snapshot::Repo;
use crate::tree::envelope::Envelope;
use crate::tree::path::HOME;
use crate::tree::router::{Tree, View};
use clap::Parser;
use runbook_shared::embed::NO_EMBEDDER;
use runbook_shared::error::Hint;
use runbook_shared::locate::Places;
use std::io::{IsTerminal, Read, Write};
use std::path::PathBuf;
use std::sync::Arc;

/// The shell failed, not the command.
const EXIT_FAILED: u8 = 1;
/// Wrong usage.
const EXIT_USAGE: u8 = 2;

/// What the long help and the man page say beyond the options.
const MORE: &str = "\
At a terminal:
  Tab completes commands and paths, the arrow keys go through the history, Ctrl-R looks a line up in it,
  Ctrl-C drops the line, Ctrl-D or `exit` ends. A line that begins with a blank is not kept.

What there is:
  `help` lists the commands, `help NAME` the options of one. /runbooks holds the documents and is read-only,
  /repo further repositories, /artifacts durable files of a daemon, /tmp scratch. Nothing else is there: no
  file and no program of this machine, no network. What a command does not support it says, with exit code 2
  for an option and 127 for a command.

Files:
  $XDG_STATE_HOME/runbook-ask/sh-history    the history (~/.local/state where the variable is not set)
  $XDG_CACHE_HOME/runbook-ask/trees         trees of daemons, kept by their tag (~/.cache likewise)

Examples:
  runbook-sh --data /var/lib/runbook-ask -c 'grep -rn CrashLoop | head'
  runbook-sh --url http://127.0.0.1:8080
  echo 'find . -name \"*.md\" | wc -l' | runbook-sh --url http://127.0.0.1:8080";

/// Read runbooks as files: grep, cat, find and so on, without a process and without leaving the tree
///
/// Exit code: that of the command; 127 for a command and 2 for an option that is not there, 1 when the
/// tree cannot be opened.
#[derive(Parser, Debug)]
#[command(name = "runbook-sh", version, after_long_help = MORE)]
pub struct Cli {
    /// Data directory that runbook-ingest writes; nothing is ever written there
    #[arg(long, env = "RUNBOOK_DATA", value_name = "DIR", conflicts_with = "url")]
    data: Option<PathBuf>,
    /// Address of a daemon; its tree is loaded once and kept for the next start
    #[arg(long, env = "RUNBOOK_URL", value_name = "URL")]
    url: Option<String>,
    /// Bearer token for the daemon
    #[arg(long, env = "RUNBOOK_TOKEN", value_name = "TOKEN", hide_env_values = true)]
    token: Option<String>,
    /// The session in which reads are noted
    #[arg(long, value_name = "NAME")]
    session: Option<String>,
    /// Run one command and end with its exit code
    #[arg(short = 'c', value_name = "COMMAND")]
    command: Option<String>,
    /// Where to start
    #[arg(long, value_name = "PATH", default_value = HOME)]
    cwd: String,
}

/// Runs the program and returns its exit code.
#[must_use]
pub fn main(cli: &Cli) -> u8 {
    runbook_shared::telemetry::init("error");
    let mut runner = match Runner::open(cli) {
        Ok(runner) => runner,
        Err((code, message)) => {
            say(&message);
            return code;
        }
    };
    match &cli.command {
        Some(command) => runner.print(command),
        None if std::io::stdin().is_terminal() => prompt::talk(&mut runner),
        None => {
            let mut script = String::new();
            match std::io::stdin().read_to_string(&mut script) {
                Ok(_) => runner.print(&script),
                Err(e) => {
                    say(&format!("cannot read commands: {e}"));
                    EXIT_FAILED
                }
            }
        }
    }
}

pub(super) fn say(message: &str) {
    // When stderr is closed there is nobody to tell.
    let _ = std::io::stderr().write_all(format!("runbook-sh: {message}\n").as_bytes());
}

/// Runs commands here, or in a daemon when its tree is too large to be loaded.
pub struct Runner {
    here: Option<(Shell, View)>,
    daemon: Option<Client>,
    cwd: String,
}

impl Runner {
    fn open(cli: &Cli) -> Result<Self, (u8, String)> {
        match (&cli.data, &cli.url) {
            (Some(data), _) => Self::over_data(data, &cli.cwd),
            (None, Some(url)) => {
                // Of several addresses the first that answers is taken.
                let mut last = (EXIT_USAGE, "--url names no address".to_owned());
                for url in url.split([',', ' ']).filter(|u| !u.is_empty()) {
                    match Self::over_url(url, cli) {
                        Ok(runner) => return Ok(runner),
                        Err(e) => last = e,
                    }
                }
                Err(last)
            }
            (None, None) => Err((
                EXIT_USAGE,
                "no tree is named\nhint: --data DIR or --url URL (RUNBOOK_DATA, RUNBOOK_URL)"
                    .into(),
            )),
        }
    }

    fn over_data(data: &std::path::Path, cwd: &str) -> Result<Self, (u8, String)> {
        let service = Service::new(Options {
            repos: vec![Repo { name: String::new(), data: data.to_owned() }],
            policy: crate::engine::Policy::default(),
            embedder: Some(NO_EMBEDDER.into()),
            places: Places::from_env(None, None),
        });
        let opened = service
            .open()
            .map_err(|e| (EXIT_FAILED, format!("{e}\nhint: {}", e.hint().unwrap_or_default())));
        opened?;
        let snapshot = service.snapshot();
        if !snapshot.is_ready() {
            return Err((EXIT_FAILED, format!("{}\nhint: run runbook-ingest", snapshot.problem())));
        }
        let view = service.view(None).map_err(|e| (EXIT_FAILED, e.to_string()))?;
        Self::here(view, cwd, None)
    }

    fn over_url(url: &str, cli: &Cli) -> Result<Self, (u8, String)> {
        let client = Client::new(url, cli.token.as_deref(), cli.session.as_deref())
            .map_err(|e| (EXIT_USAGE, e))?;
        match client.load().map_err(|e| (EXIT_FAILED, format!("{url}: {e}")))? {
            Loaded::Tree(options) => {
                let tree = Arc::new(Tree::new(*options));
                let view = tree.view(&crate::snapshot::Snapshot::default(), "here");
                Self::here(view, &cli.cwd, Some(client))
            }
            Loaded::TooLarge(bytes) => {
                say(&format!(
                    "the tree is {bytes} bytes, too large to be loaded: commands run in the daemon"
                ));
                Ok(Self { here: None, daemon: Some(client), cwd: cli.cwd.clone() })
            }
        }
    }

    fn here(view: View, cwd: &str, daemon: Option<Client>) -> Result<Self, (u8, String)> {
        let shell = Shell::new(&view, Some(cwd)).map_err(|e| (EXIT_FAILED, e.to_string()))?;
        let cwd = shell.cwd();
        Ok(Self { here: Some((shell, view)), daemon, cwd })
    }

    /// The working directory.
    #[must_use]
    pub fn cwd(&self) -> &str {
        &self.cwd
    }

    /// The names in a directory, those of directories with a `/`; for completion.
    #[must_use]
    pub fn names(&self, dir: &str) -> Vec<String> {
        let Some((_, view)) = &self.here else { return Vec::new() };
        let entries = view.list(dir).unwrap_or_default();
        let slash = |e: crate::tree::store::Entry| match e.meta.kind {
            crate::tree::store::Kind::Dir => format!("{}/", e.name),
            crate::tree::store::Kind::File => e.name,
        };
        entries.into_iter().map(slash).collect()
    }

    fn run(&mut self, command: &str) -> Envelope {
        let envelope = match (&mut self.here, &self.daemon) {
            (Some((shell, _)), _) => shell.run(command),
            (None, Some(client)) => client.shell(command, &self.cwd),
            (None, None) => Envelope::default(),
        };
        if let Some(cwd) = &envelope.cwd {
            self.cwd.clone_from(cwd);
        }
        if self.here.is_some()
            && let Some(client) = &self.daemon
        {
            client.report(&envelope.touched);
        }
        envelope
    }

    /// Runs a command, prints what it printed, and returns its exit code.
    pub fn print(&mut self, command: &str) -> u8 {
        let envelope = self.run(command);
        let mut err = envelope.stderr.clone();
        if let Some(e) = &envelope.error
            && !err.contains(&e.message)
        {
            err.push_str(&format!("{}\n", e.message));
        }
        let _ = std::io::stderr().write_all(err.as_bytes());
        let mut out = std::io::stdout();
        let written = out.write_all(envelope.content.as_bytes()).and_then(|()| out.flush());
        match (written, envelope.exit_code) {
            (Err(e), _) if e.kind() != std::io::ErrorKind::BrokenPipe => EXIT_FAILED,
            (_, Some(code)) => u8::try_from(code.rem_euclid(256)).unwrap_or(EXIT_FAILED),
            (_, None) => u8::from(envelope.error.is_some()),
        }
    }
}
