//! The command line: `serve` and `ask`, output and exit codes.

use crate::access::Access;
use crate::config::{self, Common, Config, ServeArgs};
use crate::http::App;
use crate::journal::Journal;
use crate::llm::{self, Llm};
use crate::reply::Reply;
use crate::sandbox::{self, Allowed, Mode};
use crate::server::Listeners;
use crate::service::vectors::Vectors;
use crate::service::{AskError, Options, Request, Service};
use crate::tree::router::Tree;
use crate::tree::setup;
use crate::{doctor, mcp, server, supervisor, text, usage, watch};
use clap::{Args, Parser, Subcommand};
use runbook_shared::doctor as report;
use runbook_shared::error::Hint;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::sync::Arc;

/// Answered, or stopped cleanly.
const EXIT_OK: u8 = 0;
/// Failed.
const EXIT_FAILED: u8 = 1;
/// Wrong usage or configuration.
const EXIT_USAGE: u8 = 2;
/// Refused.
const EXIT_REFUSED: u8 = 4;

/// Answer questions from a runbook generation with citations, or say that the answer is not known
///
/// Exit codes: serve 0 clean stop, 1 failed, 2 usage; ask 0 answered, 4 refused, 1 failed, 2 usage.
#[derive(Parser, Debug)]
#[command(name = "runbook-query", version)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    /// Serve questions over HTTP
    Serve {
        #[command(flatten)]
        common: Common,
        #[command(flatten)]
        serve: ServeArgs,
    },
    /// Serve one agent by the Model Context Protocol on standard input and output
    Mcp {
        #[command(flatten)]
        common: Common,
        /// Directory for the program's own files; nothing else is ever written
        #[arg(long, env = "RUNBOOK_STATE", value_name = "DIR")]
        state: Option<PathBuf>,
    },
    /// Look at everything that the daemon needs, and say what to do
    Doctor {
        #[command(flatten)]
        common: Common,
        #[command(flatten)]
        serve: ServeArgs,
        /// Print the findings as JSON
        #[arg(long)]
        json: bool,
    },
    /// Summarise the usage log of a state directory
    Usage {
        #[command(flatten)]
        usage: UsageArgs,
    },
    /// Answer one question without a daemon
    Ask {
        #[command(flatten)]
        common: Common,
        #[command(flatten)]
        ask: AskArgs,
    },
}

#[derive(Args, Debug)]
struct UsageArgs {
    /// State directory of the daemon
    #[arg(long, env = "RUNBOOK_STATE", value_name = "DIR")]
    state: PathBuf,
    /// Only the last days
    #[arg(long, value_name = "N")]
    days: Option<u32>,
    /// Print the figures as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Args, Debug)]
struct AskArgs {
    /// Print the reply as JSON
    #[arg(long)]
    json: bool,
    /// How many sections to name
    #[arg(short, value_name = "N")]
    k: Option<usize>,
    /// Only documents beneath this path, or `repo:NAME`
    #[arg(long, value_name = "PREFIX")]
    scope: Option<String>,
    /// Show every signal, its weight and the verdict (with --json)
    #[arg(long)]
    explain: bool,
    /// Print only the command of the answer
    #[arg(long, conflicts_with = "json")]
    cmd: bool,
    /// The question; `-` or nothing reads it from standard input
    #[arg(value_name = "QUESTION")]
    question: Vec<String>,
}

/// Runs the command and returns the exit code; errors go to stderr with their hint.
#[must_use]
pub fn main(cli: Cli) -> u8 {
    match cli.command {
        Command::Serve { common, serve } => {
            runbook_shared::telemetry::init("info,rmcp=error");
            serve_command(common, serve)
        }
        Command::Mcp { common, state } => {
            runbook_shared::telemetry::init("warn,rmcp=error");
            mcp_command(common, ServeArgs { state, ..ServeArgs::default() })
        }
        Command::Doctor { common, serve, json } => {
            runbook_shared::telemetry::init("error");
            doctor_command(&common, &serve, json)
        }
        Command::Usage { usage } => usage_command(&usage),
        Command::Ask { common, ask } => {
            runbook_shared::telemetry::init("error");
            ask_command(common, ask)
        }
    }
}

fn complain(message: &str, hint: Option<String>) {
    let hint = hint.map_or_else(String::new, |h| format!("hint: {h}\n"));
    // When stderr is closed there is nobody to tell.
    let _ = std::io::stderr().write_all(format!("runbook-query: {message}\n{hint}").as_bytes());
}

fn configured(common: Common, serve: Option<ServeArgs>) -> Result<Config, u8> {
    config::resolve(common, serve).map_err(|e| {
        complain(&e.to_string(), e.hint());
        EXIT_USAGE
    })
}

fn service(config: &Config, journal: Journal) -> Result<Arc<Service>, u8> {
    let mut tree = setup::options(&config.tree, config.state.as_deref()).map_err(|e| {
        complain(&e, Some("see docs/configuration.md".into()));
        EXIT_USAGE
    })?;
    let vectors = Vectors::new(&config.cache).map_err(|e| {
        complain(&e, Some("see docs/configuration.md".into()));
        EXIT_USAGE
    })?;
    let llm = Llm::new(&config.llm).map_err(|e| {
        complain(&e, None);
        EXIT_USAGE
    })?;
    let service = Service::new(Options {
        repos: config.repos.clone(),
        policy: config.policy.clone(),
        embedder: config.embedder.clone(),
        places: config.places.clone(),
    })
    .with_journal(journal)
    .with_vectors(vectors)
    .with_llm(llm);
    // What is read through the tree can be cited.
    tree.evidence = Some(service.evidence().clone());
    let service = Arc::new(service.with_tree(Arc::new(Tree::new(tree))));
    service.open().map_err(|e| {
        complain(&e.to_string(), e.hint());
        EXIT_FAILED
    })?;
    Ok(service)
}

fn serve_command(common: Common, serve: ServeArgs) -> u8 {
    let config = match configured(common, Some(serve)) {
        Ok(config) => config,
        Err(code) => return code,
    };
    let access = match Access::new(&config.server) {
        Ok(access) => access,
        Err(e) => {
            complain(&e, Some("see docs/configuration.md".into()));
            return EXIT_USAGE;
        }
    };
    let result = sockets(&config).and_then(|sockets| {
        lock_in(&config)?;
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
        let runtime = runtime.map_err(|e| e.to_string())?;
        runtime.block_on(serve_until_stopped(&config, sockets, access))
    });
    match result {
        Ok(code) => code,
        Err(e) => {
            complain(&e, None);
            EXIT_FAILED
        }
    }
}

/// The sockets to listen on: bound before the indexes are opened, since a taken port is told at once,
/// and before the sandbox, in which none can be bound.
fn sockets(config: &Config) -> Result<(Option<TcpListener>, Option<UnixListener>), String> {
    let unix = config.server.unix_socket.as_deref().map(supervisor::unix_listener).transpose()?;
    let needs_tcp = unix.is_none() || config.listen_is_set || supervisor::hands_over();
    let tcp = needs_tcp.then(|| supervisor::listener(config.listen)).transpose()?;
    Ok((tcp, unix))
}

/// Before any thread is started: they are locked in with the one that starts them.
fn lock_in(config: &Config) -> Result<(), String> {
    if let (Some(state), true) = (&config.state, config.server.sandbox != Mode::Off) {
        // It can be allowed only once it is there; where it cannot be made, the journal says so.
        let _ = std::fs::create_dir_all(state);
    }
    sandbox::enter(&Allowed::by(config), config.server.sandbox)
}

async fn serve_until_stopped(
    config: &Config,
    (tcp, unix): (Option<TcpListener>, Option<UnixListener>),
    access: Access,
) -> Result<u8, String> {
    let tcp = tcp.map(tokio::net::TcpListener::from_std).transpose().map_err(|e| e.to_string())?;
    let unix =
        unix.map(tokio::net::UnixListener::from_std).transpose().map_err(|e| e.to_string())?;
    // Nothing depends on the state directory: questions are answered on a full disk, too.
    let journal = Journal::open(config.state.as_deref(), config.log_questions);
    let service = match service(config, journal) {
        Ok(service) => service,
        Err(code) => return Ok(code),
    };
    let address = match &tcp {
        Some(listener) => listener.local_addr().map_err(|e| e.to_string())?,
        None => config.listen,
    };
    let watch = watch::start(Arc::clone(&service), config.poll).map_err(|e| e.to_string())?;
    supervisor::watch(Arc::clone(&service));
    supervisor::ready(&service);
    llm::trust::measure_in_background(&service);
    let app = App::new(service, config::hosts(address, &config.allowed_hosts))
        .with_agents(config.files_first, usage_log(config))
        .with_access(access);
    let (stop_streams, router) = (app.stopper(), app.router());
    if let Some(socket) = &config.server.unix_socket {
        tracing::info!("listening on `{}`", socket.display());
    }
    if tcp.is_some() {
        tracing::info!("listening on http://{address}");
    }
    let stop = async {
        stop_signal().await;
        stop_streams();
    };
    let stopped =
        server::run(Listeners { tcp, unix }, router, stop).await.map_err(|e| e.to_string());
    drop(watch);
    stopped.map(|()| EXIT_OK)
}

fn usage_log(config: &Config) -> usage::Log {
    usage::Log::new(config.state.as_deref(), config.usage)
}

fn mcp_command(common: Common, serve: ServeArgs) -> u8 {
    let config = match configured(common, Some(serve)) {
        Ok(config) => config,
        Err(code) => return code,
    };
    if let Err(e) = lock_in(&config) {
        complain(&e, None);
        return EXIT_FAILED;
    }
    let journal = Journal::open(config.state.as_deref(), config.log_questions);
    let service = match service(&config, journal) {
        Ok(service) => service,
        Err(code) => return code,
    };
    let served = watch::start(Arc::clone(&service), config.poll)
        .and_then(|watch| {
            let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
            Ok((watch, runtime))
        })
        .map_err(|e| e.to_string())
        .and_then(|(watch, runtime)| {
            let session = service.session_name(None).map_err(|e| e.to_string())?;
            let app =
                App::new(service, Vec::new()).with_agents(config.files_first, usage_log(&config));
            let (input, output) = (tokio::io::stdin(), tokio::io::stdout());
            let served = runtime.block_on(async {
                tokio::select! {
                    served = mcp::stdio::serve(app, &session, input, output) => served,
                    () = stop_signal() => Ok(()),
                }
            });
            drop(watch);
            // A read of standard input that is under way cannot be ended.
            runtime.shutdown_background();
            served
        });
    match served {
        Ok(()) => EXIT_OK,
        Err(e) => {
            complain(&e, Some("start it from an MCP client; see deploy/README.md".into()));
            EXIT_FAILED
        }
    }
}

fn doctor_command(common: &Common, serve: &ServeArgs, json: bool) -> u8 {
    let found = doctor::findings(common, serve);
    let text = if json { report::json(&found) } else { report::text(&found) };
    match std::io::stdout().write_all(text.as_bytes()) {
        Err(e) if e.kind() != std::io::ErrorKind::BrokenPipe => EXIT_FAILED,
        _ if !report::passes(&found) => EXIT_FAILED,
        _ => EXIT_OK,
    }
}

fn usage_command(args: &UsageArgs) -> u8 {
    let since = args.days.map(|days| {
        let span = jiff::SignedDuration::from_hours(i64::from(days) * 24);
        (jiff::Timestamp::now() - span).to_string()
    });
    match usage::summary::read(&args.state, since.as_deref()) {
        Ok(summary) => {
            let text = if args.json {
                format!("{}\n", serde_json::to_string_pretty(&summary).unwrap_or_default())
            } else {
                summary.render()
            };
            match std::io::stdout().write_all(text.as_bytes()) {
                Err(e) if e.kind() != std::io::ErrorKind::BrokenPipe => EXIT_FAILED,
                _ => EXIT_OK,
            }
        }
        Err(e) => {
            let message =
                format!("cannot read the usage log under `{}`: {e}", args.state.display());
            complain(&message, None);
            EXIT_FAILED
        }
    }
}

async fn stop_signal() {
    use tokio::signal::unix::{SignalKind, signal};
    let (Ok(mut term), Ok(mut int)) =
        (signal(SignalKind::terminate()), signal(SignalKind::interrupt()))
    else {
        return std::future::pending().await;
    };
    tokio::select! {
        _ = term.recv() => tracing::info!("stopping on SIGTERM"),
        _ = int.recv() => tracing::info!("stopping on SIGINT"),
    }
    supervisor::stopping();
}

fn ask_command(common: Common, args: AskArgs) -> u8 {
    let config = match configured(common, None) {
        Ok(config) => config,
        Err(code) => return code,
    };
    let question = match read_question(&args.question) {
        Ok(question) => question,
        Err(e) => {
            complain(&format!("cannot read the question: {e}"), None);
            return EXIT_FAILED;
        }
    };
    let service = match service(&config, Journal::default()) {
        Ok(service) => service,
        Err(code) => return code,
    };
    let request = Request {
        question,
        k: args.k,
        scope: args.scope.clone(),
        session: None,
        explain: args.explain,
    };
    match service.ask(&request) {
        Ok(reply) => print_reply(&reply, &args),
        Err(
            e @ (AskError::Question(_)
            | AskError::K(_)
            | AskError::NoRepo(_)
            | AskError::NoScope(_)),
        ) => {
            complain(&e.to_string(), None);
            EXIT_USAGE
        }
        Err(e) => {
            complain(&e.to_string(), Some("run `runbook-ingest` first".into()));
            EXIT_FAILED
        }
    }
}

fn read_question(words: &[String]) -> std::io::Result<String> {
    if words.is_empty() || words == ["-"] {
        let mut text = Vec::new();
        std::io::stdin().read_to_end(&mut text)?;
        return Ok(String::from_utf8_lossy(&text).into_owned());
    }
    Ok(words.join(" "))
}

fn print_reply(reply: &Reply, args: &AskArgs) -> u8 {
    let text = if args.json {
        format!("{}\n", serde_json::to_string_pretty(reply).unwrap_or_default())
    } else if args.cmd {
        text::command_only(reply).unwrap_or_default()
    } else {
        text::render(reply)
    };
    match std::io::stdout().write_all(text.as_bytes()) {
        Err(e) if e.kind() != std::io::ErrorKind::BrokenPipe => EXIT_FAILED,
        _ if reply.refusal.is_some() => EXIT_REFUSED,
        _ => EXIT_OK,
    }
}
