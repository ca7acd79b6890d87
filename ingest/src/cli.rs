//! The command line: flags, subcommands, output and exit codes.

mod doctor;
mod lint;
mod rollback;

use crate::config::{Config, ConfigError, Settings};
use crate::document;
use crate::error::{EXIT_FAILED, EXIT_OK, EXIT_PARTIAL, IngestError};
use crate::lock::Lock;
use crate::progress::Progress;
use crate::read::Reader;
use crate::report::Report;
use crate::reuse::Documents;
use crate::scratch::Scratch;
use crate::source::mirror::Mirror;
use crate::source::{Source, State, git, without_credentials};
use clap::{Args, Parser, Subcommand};
use runbook_shared::chunk::Chunk;
use runbook_shared::error::{Hint, PathError};
use runbook_shared::generation::{self, Generation};
use runbook_shared::tokens::TokenCounter;
use std::io::Write;
use std::path::PathBuf;

/// Turn a git repository of Markdown runbooks into a generation that runbook-query serves
///
/// Exit codes: 0 published or up to date, 1 failed (the previous generation is untouched), 2 usage or
/// configuration, 3 published, but some documents failed.
#[derive(Parser, Debug)]
#[command(name = "runbook-ingest", version, args_conflicts_with_subcommands = true)]
pub struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    run: RunArgs,
}

#[derive(Args, Debug)]
struct RunArgs {
    #[command(flatten)]
    settings: Settings,
    /// Configuration file (TOML); its keys are these flags with `_` for `-`
    #[arg(long, env = "RUNBOOK_INGEST_CONFIG", value_name = "FILE")]
    config: Option<PathBuf>,
}

#[derive(Subcommand, Debug)]
enum Command {
    /// Print the chunks of a source, for a writer to look at; nothing is stored
    Chunks {
        #[command(flatten)]
        run: Box<RunArgs>,
        /// Only the document at this path
        #[arg(long, value_name = "PATH")]
        path: Option<String>,
    },
    /// Check every hash and count of the current generation
    Verify {
        /// Data directory
        #[arg(long, env = "RUNBOOK_DATA", value_name = "DIR")]
        data: PathBuf,
        /// Print the result as JSON
        #[arg(long)]
        json: bool,
    },
    /// Look at everything that a run needs, and say what to do
    Doctor(Box<doctor::DoctorArgs>),
    /// Tell writers what keeps their runbooks from being found, cited or trusted
    Lint(Box<lint::LintArgs>),
    /// Make the generation before the current one current, and pin it until `unpin`
    Rollback(rollback::RollbackArgs),
    /// Let ingest publish again after a rollback
    Unpin(rollback::UnpinArgs),
}

/// The data directory of a command that needs nothing else of the configuration.
#[derive(Args, Debug)]
struct DataArgs {
    /// Data directory
    #[arg(long, env = "RUNBOOK_DATA", value_name = "DIR")]
    data: Option<PathBuf>,
    /// Configuration file (TOML) that names it
    #[arg(long, env = "RUNBOOK_INGEST_CONFIG", value_name = "FILE")]
    config: Option<PathBuf>,
}

impl DataArgs {
    fn dir(&self) -> Result<PathBuf, ConfigError> {
        let named = Settings { data: self.data.clone(), ..Settings::default() };
        named.with_file(self.config.as_ref())?.data.ok_or(ConfigError::Unset("data"))
    }
}

/// Runs the command and returns the exit code; errors go to stderr with their hint.
#[must_use]
pub fn main(cli: Cli) -> u8 {
    let result = match cli.command {
        None => run(cli.run),
        Some(Command::Chunks { run, path }) => chunks(*run, path.as_deref()),
        Some(Command::Verify { data, json }) => verify(&data, json),
        Some(Command::Doctor(args)) => doctor::doctor(&args),
        Some(Command::Lint(args)) => lint::lint(*args),
        Some(Command::Rollback(args)) => rollback::rollback(&args),
        Some(Command::Unpin(args)) => rollback::unpin(&args),
    };
    result.unwrap_or_else(|e| {
        complain(&e);
        e.exit_code()
    })
}

fn complain(error: &IngestError) {
    let mut text = format!("runbook-ingest: {error}\n");
    if let Some(hint) = error.hint() {
        text.push_str(&format!("hint: {hint}\n"));
    }
    // When stderr is closed there is nobody to tell.
    let _ = std::io::stderr().write_all(text.as_bytes());
}

fn print(text: &str) -> u8 {
    match std::io::stdout().write_all(text.as_bytes()) {
        Err(e) if e.kind() != std::io::ErrorKind::BrokenPipe => EXIT_FAILED,
        _ => EXIT_OK,
    }
}

fn run(args: RunArgs) -> Result<u8, IngestError> {
    let config = configure(&args)?;
    let report = crate::run::run(&config, &Progress::new(config.json)).inspect_err(|_| {
        if let Ok(id) = generation::current_id(&config.data) {
            tracing::warn!("generation {id} keeps serving");
        }
    })?;
    let code = if config.json {
        print(&format!("{}\n", serde_json::to_string_pretty(&report).unwrap_or_default()))
    } else {
        print(&report.text())
    };
    Ok(if code == EXIT_OK && report.outcome == "published" && report.has_failures() {
        EXIT_PARTIAL
    } else {
        code
    })
}

/// The configuration; where it is not usable, last-run.json says so to those who wait for runs.
fn configure(args: &RunArgs) -> Result<Config, IngestError> {
    let mut settings = args.settings.clone();
    let config = settings.clone().with_file(args.config.as_ref()).map_err(IngestError::from);
    let config = config.and_then(|with_file| {
        settings = with_file.clone();
        Ok(with_file.resolve()?)
    });
    config.inspect_err(|e| {
        if let Some(data) = &settings.data {
            let source = without_credentials(settings.source.as_deref().unwrap_or_default());
            crate::run::note_refused(data, &source, e);
        }
    })
}

fn chunks(args: RunArgs, path: Option<&str>) -> Result<u8, IngestError> {
    let mut settings = args.settings.with_file(args.config.as_ref())?;
    let _scratch = scratch_unless_set(&mut settings.data, "chunks")?;
    let config = settings.resolve()?;
    // The mirror in a data directory is for one run at a time.
    let _lock = match &config.source {
        Source::Remote(_) => Some(Lock::take(&config.data, config.wait)?),
        _ => None,
    };
    let reader = open(&config)?;
    let mut report = Report::default();
    let mut candidates = reader.list(&config.selection, &mut report)?;
    if let Some(path) = path {
        candidates.retain(|c| c.path == path.as_bytes());
        if candidates.is_empty() {
            return Err(IngestError::NoSuchDocument(path.to_owned()));
        }
    }
    let counter = TokenCounter::default_model();
    let documents = reader.documents(
        &candidates,
        None,
        &counter,
        &config.secrets,
        Documents::default(),
        &mut report,
    );
    let mut out = String::new();
    for document::Document { chunks, .. } in &documents {
        for chunk in chunks {
            out.push_str(&if config.json { json_line(chunk) } else { listing(chunk) });
        }
    }
    for problem in &report.problems {
        tracing::warn!("{}: {}: {}", problem.path, problem.reason, problem.message);
    }
    for warning in &report.warnings {
        tracing::warn!("{}:{}: {}", warning.path, warning.line, warning.message);
    }
    for secret in &report.secrets {
        tracing::warn!("{}:{}: redacted: {}", secret.path, secret.line, secret.rule);
    }
    Ok(print(&out))
}

/// What stores nothing mirrors a remote into a directory that is removed again.
fn scratch_unless_set(
    data: &mut Option<PathBuf>,
    purpose: &str,
) -> Result<Option<Scratch>, PathError> {
    if data.is_some() {
        return Ok(None);
    }
    let scratch = Scratch::new(purpose)?;
    *data = Some(scratch.path().to_owned());
    Ok(Some(scratch))
}

fn open(config: &Config) -> Result<Reader, IngestError> {
    let at = |state: &State| state.commit.as_deref().and_then(|c| git2::Oid::from_str(c).ok());
    Ok(match &config.source {
        Source::Directory(root) => Reader::Dir(root.clone()),
        Source::Repository(path) => {
            let repository = git::open(path)?;
            let state = git::local_state(&repository, path, config.access.branch.as_deref())?;
            at(&state).map_or(Reader::Empty, |commit| Reader::Git(Box::new(repository), commit))
        }
        Source::Remote(url) => {
            let mirror = Mirror::new(url, &config.access, &config.data);
            let state = mirror.probe()?;
            if state.commit.is_none() {
                return Ok(Reader::Empty);
            }
            let (repository, commit) =
                mirror.fetch(state.branch.as_deref(), &config.selection, &|_, _| {})?;
            Reader::Git(Box::new(repository), commit)
        }
    })
}

fn json_line(chunk: &Chunk) -> String {
    format!("{}\n", serde_json::to_string(chunk).unwrap_or_default())
}

fn listing(chunk: &Chunk) -> String {
    let part = chunk.part.map_or_else(String::new, |p| format!(" part {}/{}", p.index, p.of));
    let trail = if chunk.heading_path.is_empty() {
        chunk.title.clone()
    } else {
        chunk.heading_path.join(" > ")
    };
    let mut out = format!(
        "=== {}:{}-{} {trail}{part} ({} tokens, {})\n",
        chunk.path, chunk.lines[0], chunk.lines[1], chunk.tokens, chunk.id
    );
    for section in chunk.sections.iter().skip(1) {
        out.push_str(&format!(
            "--- {}-{} {}\n",
            section.lines[0],
            section.lines[1],
            section.heading_path.join(" > ")
        ));
    }
    for line in chunk.text.lines() {
        out.push_str(&format!("    {line}\n"));
    }
    out
}

fn verify(data: &std::path::Path, json: bool) -> Result<u8, IngestError> {
    let id = generation::current_id(data)?;
    let opened = Generation::open(data, &id)?;
    generation::check_strangers(data, &id, &opened.manifest)?;
    let counts = &opened.manifest.counts;
    if json {
        let value = serde_json::json!({
            "ok": true, "generation": id, "commit": opened.manifest.commit,
            "files": opened.manifest.files.len(), "counts": counts,
        });
        return Ok(print(&format!("{value}\n")));
    }
    Ok(print(&format!(
        "generation {id} is whole: {} files, {} documents, {} sections, {} chunks, {} windows\n",
        opened.manifest.files.len(),
        counts.indexed,
        counts.sections,
        counts.chunks,
        counts.windows
    )))
}
