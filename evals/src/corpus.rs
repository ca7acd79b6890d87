//! Corpora for measuring: ingested by the product's own ingest into a data directory that is kept, so
//! that a second run embeds nothing.

use anyhow::{Context, Result, anyhow};
use clap::Args;
use runbook_ingest::config::Settings;
use runbook_ingest::progress::Progress;
use runbook_query::engine::Policy;
use runbook_query::service::{Options, Service};
use runbook_query::snapshot::Repo;
use runbook_shared::locate::Places;
use std::path::{Path, PathBuf};

/// Where generations are kept and what they are made with.
#[derive(Args, Clone, Debug)]
pub struct Build {
    /// Embedding model, or `none`
    #[arg(long, value_name = "NAME|none")]
    pub embedder: Option<String>,
    /// Where generations are kept between runs [default: target/evals]
    #[arg(long, value_name = "DIR", default_value = "target/evals")]
    pub cache: PathBuf,
}

/// Ingests a source and opens it as a service.
///
/// # Errors
/// When it cannot be ingested or opened.
pub fn open(source: &Path, build: &Build, policy: Policy) -> Result<Service> {
    let source =
        std::fs::canonicalize(source).with_context(|| format!("`{}`", source.display()))?;
    let name = source.file_name().map_or_else(String::new, |n| n.to_string_lossy().into_owned());
    let hash = blake3::hash(source.as_os_str().as_encoded_bytes()).to_hex();
    let data = build.cache.join(format!("{name}-{}", &hash[..8]));
    let settings = Settings {
        source: Some(source.display().to_string()),
        data: Some(data.clone()),
        embedder: build.embedder.clone(),
        ..Settings::default()
    };
    let config = settings.resolve()?;
    runbook_ingest::run::run(&config, &Progress::new(false))
        .with_context(|| format!("ingest of `{}`", source.display()))?;
    let service = Service::new(Options {
        repos: vec![Repo { name: String::new(), data }],
        policy,
        embedder: build.embedder.clone(),
        places: Places::from_env(None, None),
    });
    service.open()?;
    if service.snapshot().is_ready() {
        Ok(service)
    } else {
        Err(anyhow!(service.snapshot().problem()))
    }
}
