//! The shell: a virtual bash over the tree. No process is ever spawned, and nothing but the tree is there:
//! no `/etc`, no environment of the program, no network.
//!
//! [`commands`] is the table of what there is, [`files`] the tree as a file system; [`grep`], [`rg`], [`ls`],
//! [`tree`](mod@tree), [`wc`], [`diff`], [`stat`],
//! [`file`](mod@file) and [`help`] are commands of ours, all others are bashkit's behind a check
//! of their options.

pub mod commands;
pub mod diff;
pub mod file;
pub mod files;
pub mod grep;
pub mod help;
pub mod jq;
pub mod ls;
pub mod notes;
pub mod options;
pub mod program;
pub mod prompt;
pub mod remote;
pub mod rg;
pub mod stat;
pub mod tree;
pub mod wc;

use crate::tree::envelope::{Envelope, Failure};
use crate::tree::error::TreeError;
use crate::tree::path::{self, HOME};
use crate::tree::router::View;
use crate::tree::store::Kind;
use bashkit::hooks::{HookAction, ToolEvent, ToolResult};
use bashkit::{
    Bash, Builtin, BuiltinContext, CommandResolver, ExecResult, ExecutionLimits, MemoryLimits,
    SessionLimits, ShellFeatures, async_trait,
};
use commands::By;
use notes::Notes;
use serde::Deserialize;
use std::path::PathBuf;
use std::sync::Arc;

/// Stack for each command that may run inside another, in bytes.
const STACK_OF_A_COMMAND: usize = 32 << 10;
/// Stack for each byte of a command line: a word that nests has three bytes or more.
const STACK_OF_A_BYTE: usize = 4 << 10;
/// Stack for all else: arguments of find and test nest too, a hundred thousand at most.
const STACK_LEAST: usize = 256 << 20;
/// Addresses are not endless either.
const STACK_MOST: usize = 4 << 30;

/// One command line.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "CommandLine")]
pub struct Request {
    /// What is run.
    pub command: String,
    /// Where; `/runbooks` when left out.
    #[serde(default)]
    pub cwd: Option<String>,
    /// On whose behalf; a new one when left out.
    #[serde(default)]
    pub session: Option<String>,
}

/// Runs one command line to its end or to a limit. Blocks: call it from a blocking thread.
///
/// `content` is what the command printed, `stderr` what it complained about, `exit_code` its own;
/// `error` is set for an unsupported command or option and for a limit, even behind `2>/dev/null`.
#[must_use]
pub fn run(view: &View, request: &Request) -> Envelope {
    let view = view.renewed();
    let ran = view.enter().and_then(|_permit| {
        let mut shell = Shell::new(&view, request.cwd.as_deref())?;
        Ok(shell.run(&request.command))
    });
    match ran {
        Ok(envelope) => view.finish(envelope, None),
        Err(e) => Envelope { exit_code: Some(2), ..Envelope::failed(&e) },
    }
}

/// A shell that keeps its directory and variables from one command line to the next.
pub struct Shell {
    bash: Bash,
    view: View,
    notes: Arc<Notes>,
    runtime: tokio::runtime::Runtime,
}

impl Shell {
    /// A shell in a directory; `/runbooks` when none is named.
    ///
    /// # Errors
    /// When there is no such directory.
    pub fn new(view: &View, cwd: Option<&str>) -> Result<Self, TreeError> {
        let cwd = path::resolve(HOME, cwd.unwrap_or(HOME))?;
        match view.stat(&cwd) {
            Ok(meta) if meta.kind == Kind::Dir => {}
            Ok(_) => return Err(TreeError::NotDirectory(cwd)),
            // A home whose generation is not open yet must not keep the other mounts away.
            Err(TreeError::Unavailable { .. }) => {}
            Err(e) => return Err(e),
        }
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .thread_stack_size(stack_bytes(view))
            .build()
            .map_err(|_| TreeError::Stopped("no thread can be had now".into()))?;
        let notes = Arc::new(Notes::default());
        Ok(Self { bash: bash(view, &notes, &cwd), view: view.clone(), notes, runtime })
    }

    /// The working directory.
    #[must_use]
    pub fn cwd(&self) -> String {
        self.bash.shell_state_view().cwd.to_string_lossy().into_owned()
    }

    /// Runs one command line. The result is neither bounded nor noted as evidence: [`View::finish`] does that.
    #[must_use]
    pub fn run(&mut self, command: &str) -> Envelope {
        let limits = self.view.limits();
        if command.len() > limits.command_bytes {
            let most = limits.command_bytes;
            let e = TreeError::BadRequest(format!("a command line is {most} bytes long at most"));
            return Envelope { exit_code: Some(2), ..Envelope::failed(&e) };
        }
        self.view.restart();
        let within = limits.wall_clock() + std::time::Duration::from_secs(1);
        let stack = stack_bytes(&self.view);
        // A thread of its own, for its stack.
        let ran = std::thread::scope(|scope| {
            let run = || {
                self.note_paths(command);
                let (bash, runtime) = (&mut self.bash, &self.runtime);
                runtime.block_on(async { tokio::time::timeout(within, bash.exec(command)).await })
            };
            let thread = std::thread::Builder::new().name("shell".into()).stack_size(stack);
            thread.spawn_scoped(scope, run).map(|thread| {
                thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            })
        });
        let result = match ran {
            Ok(result) => result,
            Err(e) => {
                let e = TreeError::Stopped(format!("no thread can be had now: {e}"));
                return Envelope { exit_code: Some(2), ..Envelope::failed(&e) };
            }
        };
        let held = self.notes.take();
        let (mut envelope, own) = match result {
            Ok(Ok(result)) => (printed(&result), truncated(&result)),
            Ok(Err(e)) => failed(&e),
            Err(_) => failed(&bashkit::Error::Cancelled),
        };
        envelope.cwd = Some(self.cwd());
        envelope.touch(held.touched);
        let mut failures = held.failures;
        failures.extend(own);
        for failure in &failures {
            // What a command hid is said all the same.
            if !envelope.stderr.contains(&failure.message) {
                envelope.stderr.push_str(&format!("{}\n", failure.message));
                if !failure.hint.is_empty() {
                    envelope.stderr.push_str(&format!("hint: {}\n", failure.hint));
                }
            }
        }
        envelope.error = failures.into_iter().next();
        envelope
    }
}

/// The stack of a command line, in bytes.
///
/// Commands that run commands nest, and so do words that the parser reads one inside the other. Both are
/// bounded, by the commands and the bytes of a line, and take up to 20 KB a level (`eval eval ..`) and
/// 8 KB a word (`time time ..`), so the stack is as large as that takes. Only what is used of it is memory.
fn stack_bytes(view: &View) -> usize {
    let limits = view.limits();
    let nested = limits.commands.saturating_mul(STACK_OF_A_COMMAND);
    let words = limits.command_bytes.saturating_mul(STACK_OF_A_BYTE);
    nested.max(words).saturating_add(STACK_LEAST).min(STACK_MOST)
}

impl Shell {
    /// A command that is named by its path is not there: said even behind `2>/dev/null`.
    fn note_paths(&self, command: &str) {
        let Ok(analysis) = self.bash.analyze(command) else { return };
        for name in analysis.command_names() {
            if name.contains('/') && !analysis.functions.iter().any(|f| f == name) {
                self.notes.fail(
                    "unsupported_command",
                    format!("{}: command not found", path::shown(name)),
                    "commands have no path here; `help` lists them".into(),
                );
            }
        }
    }
}

fn printed(result: &ExecResult) -> Envelope {
    Envelope {
        content: result.stdout.text_lossy().into_owned(),
        stderr: result.stderr.text_lossy().into_owned(),
        exit_code: Some(result.exit_code),
        ..Envelope::default()
    }
}

fn truncated(result: &ExecResult) -> Option<Failure> {
    (result.stdout_truncated || result.stderr_truncated).then(|| Failure {
        code: "output_limit".into(),
        message: "the output is over the limit and was cut".into(),
        hint: "narrow the command; `GET /v1/fs/capabilities` names the limits".into(),
    })
}

/// A command line that was given up, or could not be read.
fn failed(e: &bashkit::Error) -> (Envelope, Option<Failure>) {
    let (code, exit, hint) = match e {
        bashkit::Error::Parse { .. } => ("syntax", 2, "check quotes and brackets"),
        bashkit::Error::ResourceLimit(_) | bashkit::Error::Cancelled => {
            ("limit", 124, "narrow the command; `help` and the capabilities name the limits")
        }
        _ => ("failed", 1, ""),
    };
    let message = match e {
        bashkit::Error::Cancelled => "the command took too long".to_owned(),
        other => other.to_string(),
    };
    let failure = Failure { code: code.into(), message, hint: hint.into() };
    (Envelope { exit_code: Some(exit), ..Envelope::default() }, Some(failure))
}

/// The virtual bash.
fn bash(view: &View, notes: &Arc<Notes>, cwd: &str) -> Bash {
    let files = files::TreeFiles::new(view.clone(), Arc::clone(notes));
    let (before, after) = (Arc::clone(notes), Arc::clone(notes));
    let mut builder = Bash::builder()
        .fs(Arc::new(files))
        .rootfs(false)
        .follow_symlinks(false)
        .username("reader")
        .hostname("runbooks")
        .env("HOME", HOME)
        .env("PATH", "")
        .env("SHELL", "runbook-sh")
        .cwd(PathBuf::from(cwd))
        .shell_features(ShellFeatures::all().script_execution(false))
        .builtin_filter(|name| commands::find(name).is_some_and(|c| c.by != By::Us))
        .limits(limits(view))
        .session_limits(SessionLimits::unlimited())
        .memory_limits(MemoryLimits::default())
        .before_tool(Box::new(move |event| check_options(&before, event)))
        .after_tool(Box::new(move |event| refuse(&after, event)))
        .command_resolver(Arc::new(Missing { notes: Arc::clone(notes) }))
        .builtin("help", Box::new(help::Help))
        .builtin("diff", Box::new(diff::Diff { view: view.clone(), notes: Arc::clone(notes) }))
        .builtin("stat", Box::new(stat::Stat { view: view.clone(), notes: Arc::clone(notes) }))
        .builtin("file", Box::new(file::File { view: view.clone(), notes: Arc::clone(notes) }))
        .builtin("ls", Box::new(ls::Ls { view: view.clone(), notes: Arc::clone(notes) }))
        .builtin("tree", Box::new(tree::Tree { view: view.clone(), notes: Arc::clone(notes) }))
        .builtin("wc", Box::new(wc::Wc { view: view.clone(), notes: Arc::clone(notes) }))
        .builtin("rg", Box::new(rg::Rg { view: view.clone(), notes: Arc::clone(notes) }));
    for name in ["grep", "egrep", "fgrep"] {
        let grep = grep::Grep { name, view: view.clone(), notes: Arc::clone(notes) };
        builder = builder.command(name, grep);
    }
    builder.build()
}

fn limits(view: &View) -> ExecutionLimits {
    let limits = view.limits();
    let bytes = limits.output_bytes.saturating_mul(32) as u64;
    ExecutionLimits::new()
        .timeout(limits.wall_clock())
        .max_commands(limits.commands)
        .max_loop_iterations(limits.loops)
        .max_total_loop_iterations(limits.loops)
        .max_stdout_bytes(limits.output_bytes)
        .max_stderr_bytes(limits.output_bytes)
        .max_input_bytes(limits.command_bytes)
        .max_aggregate_input_bytes(bytes.max(512 << 20))
        .max_live_intermediate_bytes(bytes.max(128 << 20))
        .max_background_jobs(16)
}

/// Before a command of the virtual bash runs: an option, or a filter of jq, that is not supported is refused. The command then
/// runs as `--help`, whose output [`refuse`] drops, since a hook can set an exit code only afterwards.
fn check_options(notes: &Notes, mut event: ToolEvent) -> HookAction<ToolEvent> {
    if matches!(event.name.as_str(), "bash" | "sh" | "exec" | "source" | ".") {
        notes.fail(
            "unsupported_command",
            format!("{}: command not found", event.name),
            "commands are written here as they are; there are no scripts to run".into(),
        );
    }
    let Some(command) = commands::find(&event.name) else { return HookAction::Continue(event) };
    let refused = match commands::check(command, &event.args) {
        Err(unknown) => {
            let message = format!("{} {}", unknown.option, unknown.why);
            Some(("unsupported_option", message, commands::hint(&event.name)))
        }
        Ok(()) if event.name == "jq" => {
            jq::refused(&event.args).map(|why| ("unsupported_option", why, jq::HINT.to_owned()))
        }
        Ok(()) => None,
    };
    if let Some((code, message, hint)) = refused {
        notes.fail(code, format!("{}: {message}", event.name), hint);
        notes.lock().refused = Some(event.name.clone());
        event.args = vec!["--help".into()];
    }
    HookAction::Continue(event)
}

/// After a command ran: what was refused has printed nothing and ends with 2.
fn refuse(notes: &Notes, mut event: ToolResult) -> HookAction<ToolResult> {
    let mut held = notes.lock();
    if held.refused.as_deref() == Some(event.name.as_str()) {
        held.refused = None;
        event.stdout = String::new();
        event.exit_code = 2;
    }
    // xargs has one exit code for all that fails beneath it; 1 is its own.
    if event.name == "xargs" && (2..=125).contains(&event.exit_code) {
        event.exit_code = 123;
    }
    HookAction::Continue(event)
}

/// What runs for a name that is no command: it says so, even behind `2>/dev/null`.
struct Missing {
    notes: Arc<Notes>,
}

impl CommandResolver for Missing {
    fn resolve(&self, name: &str) -> Option<Arc<dyn Builtin>> {
        let name = path::shown(name);
        self.notes.fail(
            "unsupported_command",
            format!("{name}: command not found"),
            "`help` lists the commands; nothing else can be run here".into(),
        );
        Some(Arc::new(NotFound { name }))
    }
}

struct NotFound {
    name: String,
}

#[async_trait]
impl Builtin for NotFound {
    async fn execute(&self, _: BuiltinContext<'_>) -> bashkit::Result<ExecResult> {
        let message = format!(
            "{}: command not found\nhint: `help` lists the commands; nothing else can be run here\n",
            self.name
        );
        Ok(ExecResult::err(message, 127))
    }
}
