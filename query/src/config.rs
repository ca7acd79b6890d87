//! Flags, environment and file, resolved to one configuration; docs/configuration.md lists the keys.

use crate::access;
use crate::engine::Policy;
use crate::journal::QuestionText;
use crate::llm::settings as llm;
use crate::route::FilesFirst;
use crate::service::vectors;
use crate::snapshot::Repo;
use crate::tree::setup;
use crate::usage;
use clap::Args;
use runbook_shared::config_file::{self, ConfigFileError};
use runbook_shared::locate::Places;
use runbook_shared::score::ScoreFloor;
use serde::Deserialize;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

/// What can be set for every command.
#[derive(Args, Clone, Debug, Default)]
pub struct Common {
    /// Data directory that runbook-ingest writes
    #[arg(long, env = "RUNBOOK_DATA", value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// Embedding model: a name, a directory, or `none` [default: the one the generation was made with]
    #[arg(long, env = "RUNBOOK_EMBEDDER", value_name = "NAME|none")]
    pub embedder: Option<String>,
    /// Directory of the model, or of models
    #[arg(long, value_name = "DIR")]
    pub model_dir: Option<PathBuf>,
    /// The ONNX Runtime library
    #[arg(long, value_name = "FILE")]
    pub onnxruntime: Option<PathBuf>,
    /// Confidence from which a passage is shown as the answer, 0 to 1 [default: fitted]
    #[arg(long, env = "RUNBOOK_SCORE_FLOOR", value_name = "P")]
    pub score_floor: Option<f32>,
    /// Configuration file (TOML)
    #[arg(long, env = "RUNBOOK_QUERY_CONFIG", value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Let runbook text go to a language model that is neither on this machine nor in a private network
    #[arg(long)]
    pub allow_remote_llm: bool,
}

/// What can be set for the daemon.
#[derive(Args, Clone, Debug, Default)]
pub struct ServeArgs {
    /// Address to listen on [default: 127.0.0.1:8080]
    #[arg(long, env = "RUNBOOK_LISTEN", value_name = "ADDR:PORT")]
    pub listen: Option<SocketAddr>,
    /// Directory for the daemon's own files; nothing else is ever written
    #[arg(long, env = "RUNBOOK_STATE", value_name = "DIR")]
    pub state: Option<PathBuf>,
    /// Listen on an address that other machines can reach
    #[arg(long)]
    pub allow_remote: bool,
    /// A further name under which a proxy may address this server, with its port where it is not the
    /// default one; may be repeated
    #[arg(long = "allowed-host", value_name = "HOST[:PORT]")]
    pub allowed_hosts: Vec<String>,
    /// Seconds between looks for a new generation, beside file events [default: 5]
    #[arg(long, env = "RUNBOOK_POLL_S", value_name = "SECONDS")]
    pub poll_s: Option<f64>,
    /// How questions appear in the log; with `hash`, refused ones are not recorded either [default: text]
    #[arg(long, env = "RUNBOOK_LOG_QUESTIONS", value_name = "text|hash")]
    pub log_questions: Option<QuestionText>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct File {
    data: Option<PathBuf>,
    embedder: Option<String>,
    model_dir: Option<PathBuf>,
    onnxruntime: Option<PathBuf>,
    listen: Option<SocketAddr>,
    state: Option<PathBuf>,
    allow_remote: bool,
    allowed_hosts: Vec<String>,
    poll_s: Option<f64>,
    log_questions: Option<QuestionText>,
    gate: GateTable,
    agents: AgentsTable,
    usage: usage::Settings,
    cache: vectors::Settings,
    server: access::Settings,
    repo: Vec<RepoTable>,
    llm: llm::Settings,
    #[serde(flatten)]
    tree: setup::Settings,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct GateTable {
    score_floor: Option<f32>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct AgentsTable {
    files_first: FilesFirst,
}

#[derive(Clone, Debug, Deserialize)]
struct RepoTable {
    name: String,
    data: PathBuf,
}

/// All keys of the file.
const KEYS: [&str; 16] = [
    "data",
    "embedder",
    "model_dir",
    "onnxruntime",
    "listen",
    "state",
    "allow_remote",
    "allowed_hosts",
    "poll_s",
    "log_questions",
    "gate.score_floor",
    "agents.files_first",
    "usage.log",
    "usage.searches",
    "repo.name",
    "repo.data",
];

/// The configuration.
pub struct Config {
    /// What is served.
    pub repos: Vec<Repo>,
    /// The embedder's name, or `none`.
    pub embedder: Option<String>,
    /// Where to look for it.
    pub places: Places,
    /// How questions are answered.
    pub policy: Policy,
    /// Where to listen.
    pub listen: SocketAddr,
    /// Whether that was asked for; a Unix socket alone will do where it was not.
    pub listen_is_set: bool,
    /// Who may use the server, and the sandbox.
    pub server: access::Settings,
    /// The daemon's own directory.
    pub state: Option<PathBuf>,
    /// Stores and bounds of the tree.
    pub tree: setup::Settings,
    /// Names beside the address and localhost.
    pub allowed_hosts: Vec<String>,
    /// Seconds between looks for a new generation.
    pub poll: Duration,
    /// For whom searches wait until files were looked at.
    pub files_first: FilesFirst,
    /// Whether there is a usage log, and what is in it.
    pub usage: usage::Settings,
    /// Where vectors of questions are kept beside memory.
    pub cache: vectors::Settings,
    /// How questions appear in the log.
    pub log_questions: QuestionText,
    /// The language model; its mode is `off` where none is configured.
    pub llm: llm::Settings,
}

/// A configuration that is not usable.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file.
    #[error(transparent)]
    File(#[from] ConfigFileError),
    /// No data directory.
    #[error("no data directory is set")]
    NoData,
    /// Both `data` and `[[repo]]`, or a name twice.
    #[error("{0}")]
    Repos(String),
    /// The floor is not a probability.
    #[error("{0}")]
    Floor(String),
    /// The language model's settings.
    #[error("{0}")]
    Llm(String),
    /// The poll period is not one.
    #[error("poll_s is a number of seconds above 0, not {0}")]
    Poll(f64),
    /// An address that others can reach, without consent.
    #[error("`{0}` can be reached from other machines")]
    Remote(IpAddr),
}

impl runbook_shared::error::Hint for ConfigError {
    fn hint(&self) -> Option<String> {
        match self {
            Self::NoData => Some("name it with --data, RUNBOOK_DATA or in the file of --config".into()),
            Self::Remote(_) => Some("put a proxy with an access list before a loopback address (deploy/), or add --allow-remote".into()),
            _ => None,
        }
    }
}

/// Resolves the configuration; without `serve`, that of a command that does not listen.
///
/// # Errors
/// The first setting that is missing or not usable.
pub fn resolve(common: Common, serve: Option<ServeArgs>) -> Result<Config, ConfigError> {
    let listens = serve.is_some();
    let serve = serve.unwrap_or_default();
    let file: File = match &common.config {
        Some(path) => {
            let more = setup::keys();
            let more = more.iter().map(String::as_str);
            let own = KEYS.into_iter().chain(vectors::KEYS).chain(access::KEYS).chain(llm::KEYS);
            let keys: Vec<&str> = own.chain(more).collect();
            config_file::read(path, &keys)?
        }
        None => File::default(),
    };
    let repos = repos(common.data.clone(), &file)?;
    let floor = common.score_floor.or(file.gate.score_floor);
    let score_floor = floor.map(ScoreFloor::new).transpose().map_err(ConfigError::Floor)?;
    let listen =
        serve.listen.or(file.listen).unwrap_or_else(|| SocketAddr::from(([127, 0, 0, 1], 8080)));
    if listens && !listen.ip().is_loopback() && !(serve.allow_remote || file.allow_remote) {
        return Err(ConfigError::Remote(listen.ip()));
    }
    let poll_s = serve.poll_s.or(file.poll_s).unwrap_or(5.0);
    let poll = Duration::try_from_secs_f64(poll_s)
        .ok()
        .filter(|p| !p.is_zero())
        .ok_or(ConfigError::Poll(poll_s))?;
    let mut llm = file.llm.clone();
    llm.allow_remote |= common.allow_remote_llm;
    if llm.mode != llm::Mode::Off {
        llm = llm.checked().map_err(ConfigError::Llm)?;
    }
    Ok(Config {
        llm,
        repos,
        embedder: common.embedder.or(file.embedder),
        places: Places::from_env(common.model_dir, common.onnxruntime)
            .or_file(file.model_dir, file.onnxruntime),
        policy: Policy { score_floor, ..Policy::default() },
        listen,
        listen_is_set: serve.listen.or(file.listen).is_some(),
        server: file.server,
        state: serve.state.or(file.state),
        tree: file.tree,
        allowed_hosts: [serve.allowed_hosts, file.allowed_hosts].concat(),
        poll,
        files_first: file.agents.files_first,
        usage: file.usage,
        cache: file.cache,
        log_questions: serve.log_questions.or(file.log_questions).unwrap_or_default(),
    })
}

fn repos(data: Option<PathBuf>, file: &File) -> Result<Vec<Repo>, ConfigError> {
    if let Some(data) = data {
        return Ok(vec![Repo { name: String::new(), data }]);
    }
    match (&file.data, file.repo.as_slice()) {
        (Some(_), [_, ..]) => {
            Err(ConfigError::Repos("set either data or [[repo]], not both".into()))
        }
        (Some(data), []) => Ok(vec![Repo { name: String::new(), data: data.clone() }]),
        (None, []) => Err(ConfigError::NoData),
        (None, tables) => {
            let mut repos: Vec<Repo> = Vec::new();
            for table in tables {
                if table.name.is_empty() || repos.iter().any(|r| r.name == table.name) {
                    return Err(ConfigError::Repos(format!(
                        "[[repo]] name `{}` is empty or there twice",
                        table.name
                    )));
                }
                repos.push(Repo { name: table.name.clone(), data: table.data.clone() });
            }
            Ok(repos)
        }
    }
}

/// The names under which a server at this address may be addressed.
#[must_use]
pub fn hosts(listen: SocketAddr, more: &[String]) -> Vec<String> {
    let port = listen.port();
    let mut hosts = vec![
        listen.to_string(),
        format!("localhost:{port}"),
        format!("127.0.0.1:{port}"),
        format!("[::1]:{port}"),
    ];
    if port == 80 {
        hosts.extend([
            "localhost".into(),
            "127.0.0.1".into(),
            "[::1]".into(),
            listen.ip().to_string(),
        ]);
    }
    hosts.extend(more.iter().cloned());
    hosts
}
