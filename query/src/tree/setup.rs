//! From settings to the tree's stores.

use super::limits::Limits;
use super::router::Options;
use super::store::Store;
use super::stores::artifacts::{Artifacts, Keep};
use super::stores::broken::Broken;
use super::stores::redis::RedisScratch;
use object_store::aws::AmazonS3Builder;
use object_store::local::LocalFileSystem;
use object_store::prefix::PrefixStore;
use object_store::{ObjectStore, RetryConfig};
use serde::Deserialize;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// The tables `[tree]`, `[tmp]` and `[artifacts]` of the configuration file.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Settings {
    /// The bounds.
    pub tree: Limits,
    /// Where `/tmp` is kept.
    pub tmp: TmpTable,
    /// Where `/artifacts` is kept.
    pub artifacts: ArtifactsTable,
}

/// `[tmp]`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct TmpTable {
    /// `redis://host:port/db`; in memory when left out.
    pub redis: Option<String>,
}

/// `[artifacts]`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct ArtifactsTable {
    /// `s3://bucket/prefix`; `artifacts` in the state directory when left out.
    pub url: Option<String>,
    /// The server, where it is not Amazon's: `http://127.0.0.1:9000`.
    pub endpoint: Option<String>,
    /// The region.
    pub region: Option<String>,
    /// The key's name; `AWS_ACCESS_KEY_ID` and the like where it is left out.
    pub access_key_id: Option<String>,
    /// A file that holds the key.
    pub secret_access_key_file: Option<PathBuf>,
    /// Versions of one file that are kept; 0 for all.
    pub keep_versions: u64,
    /// Bytes of all versions of all files, above which the oldest ones go; 0 for no limit.
    pub max_bytes: u64,
}

/// The keys of the tables, for the check of the file.
#[must_use]
pub fn keys() -> Vec<String> {
    let limits = Limits::names().into_iter().map(|name| format!("tree.{name}"));
    let others = [
        "tmp.redis",
        "artifacts.url",
        "artifacts.endpoint",
        "artifacts.region",
        "artifacts.access_key_id",
        "artifacts.secret_access_key_file",
        "artifacts.keep_versions",
        "artifacts.max_bytes",
    ];
    limits.chain(others.map(str::to_owned)).collect()
}

/// Opens the stores. Nothing is connected yet: a store that does not answer is an error of its mount alone.
///
/// # Errors
/// When a setting is not usable.
pub fn options(settings: &Settings, state: Option<&Path>) -> Result<Options, String> {
    let limits = settings.tree.clone();
    let scratch = match &settings.tmp.redis {
        None => None,
        Some(url) => {
            let store = RedisScratch::new(url, &limits).map_err(|e| format!("tmp.redis: {e}"))?;
            Some(Arc::new(store) as Arc<dyn Store>)
        }
    };
    let objects: Option<Arc<dyn ObjectStore>> = match (&settings.artifacts.url, state) {
        (Some(url), _) => Some(s3(url, &settings.artifacts)?),
        (None, Some(state)) => match directory(&state.join("artifacts")) {
            Ok(objects) => Some(objects),
            Err(e) => {
                // Questions are answered on a full disk, too.
                tracing::warn!("{e}");
                let why = "its directory cannot be used; see the server's log";
                let broken = Arc::new(Broken::new("/artifacts", why)) as Arc<dyn Store>;
                return Ok(Options {
                    scratch,
                    artifacts: Some(broken),
                    limits,
                    ..Options::default()
                });
            }
        },
        (None, None) => None,
    };
    let artifacts = match objects {
        None => None,
        Some(objects) => {
            let store = Artifacts::new(objects, limits.file_bytes)
                .map_err(|e| format!("artifacts: cannot start a thread: {e}"))?
                .keeping(Keep {
                    versions: settings.artifacts.keep_versions,
                    bytes: settings.artifacts.max_bytes,
                });
            Some(Arc::new(store) as Arc<dyn Store>)
        }
    };
    Ok(Options { scratch, artifacts, limits, ..Options::default() })
}

fn directory(dir: &Path) -> Result<Arc<dyn ObjectStore>, String> {
    let failed = |e: &dyn std::fmt::Display| format!("artifacts: `{}`: {e}", dir.display());
    std::fs::create_dir_all(dir).map_err(|e| failed(&e))?;
    let store = LocalFileSystem::new_with_prefix(dir).map_err(|e| failed(&e))?;
    Ok(Arc::new(store.with_automatic_cleanup(true)))
}

/// S3. Where the table names no key, it comes from the environment, as S3's tools have it.
fn s3(url: &str, table: &ArtifactsTable) -> Result<Arc<dyn ObjectStore>, String> {
    let rest =
        url.strip_prefix("s3://").ok_or("artifacts.url is of the form s3://bucket/prefix")?;
    let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
    // TLS needs one cryptography provider for the program; a second call changes nothing.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut builder = AmazonS3Builder::from_env().with_bucket_name(bucket);
    if let Some(endpoint) = &table.endpoint {
        builder = builder.with_endpoint(endpoint).with_allow_http(endpoint.starts_with("http://"));
    }
    if let Some(region) = &table.region {
        builder = builder.with_region(region);
    }
    if let Some(id) = &table.access_key_id {
        builder = builder.with_access_key_id(id);
    }
    if let Some(file) = &table.secret_access_key_file {
        let key = std::fs::read_to_string(file)
            .map_err(|e| format!("artifacts.secret_access_key_file: `{}`: {e}", file.display()))?;
        builder = builder.with_secret_access_key(key.trim());
    }
    let retry = RetryConfig {
        max_retries: 2,
        retry_timeout: Duration::from_secs(10),
        ..RetryConfig::default()
    };
    builder = builder.with_retry(retry);
    let store = builder.build().map_err(|e| format!("artifacts: {e}"))?;
    Ok(match prefix.trim_matches('/') {
        "" => Arc::new(store),
        prefix => Arc::new(PrefixStore::new(store, prefix)),
    })
}
