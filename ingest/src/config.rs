//! Flags, environment and file, resolved to one configuration: a flag wins over an environment
//! variable, that over the file, that over the default. docs/configuration.md lists the keys.

use crate::redaction;
use crate::select::{GlobError, Selection};
use crate::source::{GitAccess, Source, SourceError};
use clap::Args;
use runbook_shared::config_file::{self, ConfigFileError};
use runbook_shared::error::Hint;
use runbook_shared::generation::manifest::ForgeKind;
use runbook_shared::locate::Places;
use runbook_shared::secrets::{Allowed, Policy};
use serde::Deserialize;
use std::path::PathBuf;
use std::time::Duration;

/// What can be set, from any of the three places.
#[derive(Args, Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Settings {
    /// Git URL, or directory
    #[arg(long, env = "RUNBOOK_SOURCE", hide_env_values = true, value_name = "URL|DIR")]
    pub source: Option<String>,
    /// Data directory; it holds one source
    #[arg(long, env = "RUNBOOK_DATA", value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// Branch; without it, the remote's default branch is followed
    #[arg(long, env = "RUNBOOK_BRANCH", value_name = "NAME")]
    pub branch: Option<String>,
    /// Read only what lies beneath this directory of the source
    #[arg(long, env = "RUNBOOK_SUBDIR", value_name = "PATH")]
    pub subdir: Option<String>,
    /// Read files that match instead of *.md, *.markdown, *.mdx and *.md.erb; may be repeated
    #[arg(long, value_name = "GLOB")]
    pub include: Vec<String>,
    /// Leave out files that match; may be repeated
    #[arg(long, value_name = "GLOB")]
    pub exclude: Vec<String>,
    /// Embedding model: a name, a directory (with a `/`), or `none` for lexical search alone
    #[arg(long, env = "RUNBOOK_EMBEDDER", value_name = "NAME|none")]
    pub embedder: Option<String>,
    /// Directory of the model, or of models
    #[arg(long, value_name = "DIR")]
    pub model_dir: Option<PathBuf>,
    /// The ONNX Runtime library
    #[arg(long, value_name = "FILE")]
    pub onnxruntime: Option<PathBuf>,
    /// Private key for ssh (the deploy key)
    #[arg(long, env = "RUNBOOK_SSH_KEY", value_name = "FILE")]
    pub ssh_key: Option<PathBuf>,
    /// Host keys for ssh
    #[arg(long, env = "RUNBOOK_KNOWN_HOSTS", value_name = "FILE")]
    pub known_hosts: Option<PathBuf>,
    /// File with an access token for https
    #[arg(long, env = "RUNBOOK_TOKEN_FILE", value_name = "FILE")]
    pub token_file: Option<PathBuf>,
    /// Seconds that a git server may be silent [default: 60]
    #[arg(long, env = "RUNBOOK_TIMEOUT_S", value_name = "SECONDS")]
    pub timeout_s: Option<u64>,
    /// Forge for links: auto, github, gitlab, gitlab-old, gitea, forgejo, bitbucket, cgit, none
    /// [default: auto, by URL]
    #[arg(long, env = "RUNBOOK_FORGE", value_name = "KIND")]
    pub forge: Option<String>,
    /// Web address of the repository, where the URL does not give it
    #[arg(long, env = "RUNBOOK_FORGE_URL", value_name = "URL")]
    pub forge_url: Option<String>,
    /// Leave at once when another run is at work, instead of waiting for it
    #[arg(long)]
    #[serde(default)]
    pub no_wait: bool,
    /// `model_dir` of the file, which a variable beats.
    #[arg(skip)]
    #[serde(skip)]
    pub file_model_dir: Option<PathBuf>,
    /// `onnxruntime` of the file, which a variable beats.
    #[arg(skip)]
    #[serde(skip)]
    pub file_onnxruntime: Option<PathBuf>,
    /// The `[lint]` table of the file.
    #[arg(skip)]
    pub lint: LintTable,
    /// Let this data directory change to another source
    #[arg(long)]
    #[serde(default)]
    pub change_source: bool,
    /// Fail, list what was found, and publish nothing where a document holds a secret
    #[arg(long)]
    #[serde(default)]
    pub fail_on_secret: bool,
    /// How secrets are looked for; in the file alone.
    #[arg(skip)]
    pub secrets: Policy,
    /// Print the report as JSON
    #[arg(long)]
    #[serde(default)]
    pub json: bool,
}

/// Rules of lint, by name.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct LintTable {
    /// Rules that are left out.
    pub allow: Vec<String>,
    /// Rules whose findings are errors.
    pub deny: Vec<String>,
}

/// All keys of the file.
pub const KEYS: [&str; 25] = [
    "source",
    "data",
    "branch",
    "subdir",
    "include",
    "exclude",
    "embedder",
    "model_dir",
    "onnxruntime",
    "ssh_key",
    "known_hosts",
    "token_file",
    "timeout_s",
    "forge",
    "forge_url",
    "no_wait",
    "change_source",
    "fail_on_secret",
    "secrets.enabled",
    "secrets.allow.rule",
    "secrets.allow.path",
    "secrets.allow.line",
    "json",
    "lint.allow",
    "lint.deny",
];

/// The configuration of a run.
pub struct Config {
    /// The source.
    pub source: Source,
    /// The source as named.
    pub source_text: String,
    /// The data directory.
    pub data: PathBuf,
    /// How the remote is reached.
    pub access: GitAccess,
    /// Which files are documents.
    pub selection: Selection,
    /// The options that change content, for the option hash.
    pub content_options: Vec<(String, String)>,
    /// The name of the embedder; the default where none is named.
    pub embedder: Option<String>,
    /// Where to look for it.
    pub places: Places,
    /// The forge as configured.
    pub forge: ForgeChoice,
    /// Wait for another run.
    pub wait: bool,
    /// Accept another source than the generation's.
    pub change_source: bool,
    /// Whether a secret fails the run.
    pub fail_on_secret: bool,
    /// How secrets are looked for.
    pub secrets: Policy,
    /// Whether the report is printed as JSON.
    pub json: bool,
}

/// How the forge is chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ForgeChoice {
    /// By the URL.
    Detect,
    /// No links.
    Off,
    /// This kind, with the web address if given.
    Kind(ForgeKind, Option<String>),
}

/// A configuration that is not usable.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file.
    #[error(transparent)]
    File(#[from] ConfigFileError),
    /// A key that must be set is not.
    #[error("no {0} is set")]
    Unset(&'static str),
    /// A value that is not one of those there are.
    #[error("`{value}` is no {key}; it is one of {}", .allowed.join(", "))]
    Value {
        /// The key.
        key: &'static str,
        /// The value.
        value: String,
        /// The values there are.
        allowed: Vec<&'static str>,
    },
    /// A subdirectory that is not beneath the root.
    #[error("`{0}` leads out of the source: --subdir is a directory beneath its root")]
    Subdir(String),
    /// An exception for secrets that is one for all of them.
    #[error(
        "an entry of `secrets.allow` names no rule, path or line: it would let every secret stand"
    )]
    AllowsAll,
    /// A glob.
    #[error(transparent)]
    Glob(#[from] GlobError),
    /// The source.
    #[error(transparent)]
    Source(#[from] SourceError),
}

impl Hint for ConfigError {
    fn hint(&self) -> Option<String> {
        match self {
            Self::Unset(key) => Some(format!(
                "name it with --{key}, RUNBOOK_{} or in the file of --config",
                key.to_uppercase()
            )),
            Self::Source(e) => e.hint(),
            Self::AllowsAll => {
                Some("name `rule`, `path` or `line`; `enabled = false` turns redaction off".into())
            }
            _ => None,
        }
    }
}

impl Settings {
    /// Fills what is unset here from `file`.
    #[must_use]
    pub fn or(mut self, file: Self) -> Self {
        macro_rules! fill { ($($key:ident),*) => { $( self.$key = self.$key.or(file.$key); )* } }
        self.file_model_dir = file.model_dir;
        self.file_onnxruntime = file.onnxruntime;
        fill!(
            source,
            data,
            branch,
            subdir,
            embedder,
            ssh_key,
            known_hosts,
            token_file,
            timeout_s,
            forge,
            forge_url
        );
        if self.include.is_empty() {
            self.include = file.include;
        }
        if self.exclude.is_empty() {
            self.exclude = file.exclude;
        }
        self.lint = file.lint;
        self.no_wait |= file.no_wait;
        self.change_source |= file.change_source;
        self.fail_on_secret |= file.fail_on_secret;
        self.secrets = file.secrets;
        self.json |= file.json;
        self
    }

    /// Reads the file, if one is named, beneath these settings.
    ///
    /// # Errors
    /// When the file cannot be used.
    pub fn with_file(self, path: Option<&PathBuf>) -> Result<Self, ConfigFileError> {
        Ok(match path {
            Some(path) => self.or(config_file::read(path, &KEYS)?),
            None => self,
        })
    }

    /// Checks the settings.
    ///
    /// # Errors
    /// The first that is missing or not usable.
    pub fn resolve(self) -> Result<Config, ConfigError> {
        let source_text = self.source.clone().ok_or(ConfigError::Unset("source"))?;
        let data = self.data.clone().ok_or(ConfigError::Unset("data"))?;
        let subdir = self.subdir_beneath_root()?;
        let selection = Selection::new(Some(&subdir), &self.include, &self.exclude)?;
        let forge = self.forge_choice()?;
        if self.secrets.allow.iter().any(Allowed::is_empty) {
            return Err(ConfigError::AllowsAll);
        }
        let joined = |values: &[String]| values.join("\n");
        let content_options = vec![
            ("subdir".to_owned(), subdir),
            ("include".to_owned(), joined(&self.include)),
            ("exclude".to_owned(), joined(&self.exclude)),
            ("forge".to_owned(), format!("{forge:?}")),
            (redaction::OPTION.to_owned(), self.secrets.stamp()),
        ];
        Ok(Config {
            source: Source::parse(&source_text)?,
            source_text,
            data,
            access: GitAccess {
                branch: self.branch.clone(),
                ssh_key: self.ssh_key.clone(),
                known_hosts: self.known_hosts.clone(),
                token_file: self.token_file.clone(),
                timeout: Duration::from_secs(self.timeout_s.unwrap_or(60)),
            },
            selection,
            content_options,
            embedder: self.embedder.clone(),
            places: Places::from_env(self.model_dir.clone(), self.onnxruntime.clone())
                .or_file(self.file_model_dir.clone(), self.file_onnxruntime.clone()),
            forge,
            wait: !self.no_wait,
            change_source: self.change_source,
            fail_on_secret: self.fail_on_secret,
            secrets: self.secrets,
            json: self.json,
        })
    }

    /// The subdirectory without `.` and doubled or outer slashes; empty for the root.
    fn subdir_beneath_root(&self) -> Result<String, ConfigError> {
        let given = self.subdir.as_deref().unwrap_or("");
        let parts: Vec<&str> = given.split('/').filter(|p| !matches!(*p, "" | ".")).collect();
        if parts.contains(&"..") {
            return Err(ConfigError::Subdir(given.to_owned()));
        }
        Ok(parts.join("/"))
    }

    fn forge_choice(&self) -> Result<ForgeChoice, ConfigError> {
        const KINDS: [(&str, ForgeKind); 7] = [
            ("github", ForgeKind::Github),
            ("gitlab", ForgeKind::Gitlab),
            ("gitlab-old", ForgeKind::GitlabOld),
            ("gitea", ForgeKind::Gitea),
            ("forgejo", ForgeKind::Gitea),
            ("bitbucket", ForgeKind::Bitbucket),
            ("cgit", ForgeKind::Cgit),
        ];
        match self.forge.as_deref() {
            None | Some("auto") => Ok(ForgeChoice::Detect),
            Some("none") => Ok(ForgeChoice::Off),
            Some(name) => {
                let kind = KINDS
                    .iter()
                    .find(|(n, _)| *n == name)
                    .map(|(_, kind)| *kind)
                    .ok_or_else(|| ConfigError::Value {
                        key: "forge",
                        value: name.to_owned(),
                        allowed: KINDS.iter().map(|(n, _)| *n).chain(["auto", "none"]).collect(),
                    })?;
                Ok(ForgeChoice::Kind(kind, self.forge_url.clone()))
            }
        }
    }
}
