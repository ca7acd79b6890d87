//! `lint`: flags and what is printed.

use super::{RunArgs, open, print, scratch_unless_set};
use crate::config::ConfigError;
use crate::error::{EXIT_FAILED, EXIT_OK, IngestError};
use crate::lint::rule::Rule;
use crate::lint::{self, Choice};
use crate::lock::Lock;
use crate::read::Reader;
use crate::source::{Source, SourceError};
use clap::Args;
use rustc_hash::FxHashSet;
use serde_json::json;
use std::io::Write;
use std::path::PathBuf;

/// Flags of `lint`: those that say what is read, and which rules count.
#[derive(Args, Debug)]
pub(super) struct LintArgs {
    #[command(flatten)]
    run: RunArgs,
    /// Read the files of this directory as they are, committed or not, instead of a source
    /// [default: `.`, where no source is named]
    #[arg(long, value_name = "DIR")]
    repo: Option<PathBuf>,
    /// Tell only of the document at this path, or of those beneath this directory
    #[arg(long, value_name = "PATH")]
    path: Option<String>,
    /// Let findings of this rule fail, or of `all`; may be repeated
    #[arg(long, value_name = "RULE")]
    deny: Vec<String>,
    /// Leave this rule out; may be repeated
    #[arg(long, value_name = "RULE")]
    allow: Vec<String>,
}

pub(super) fn lint(args: LintArgs) -> Result<u8, IngestError> {
    let mut settings = args.run.settings.with_file(args.run.config.as_ref())?;
    let choice = Choice {
        allow: rules(&args.allow, &settings.lint.allow)?,
        deny: rules(&args.deny, &settings.lint.deny)?,
    };
    let as_it_is = args.repo.or_else(|| settings.source.is_none().then(|| PathBuf::from(".")));
    if let Some(dir) = &as_it_is {
        settings.source = Some(dir.display().to_string());
    }
    let _scratch = scratch_unless_set(&mut settings.data, "lint")?;
    let json = settings.json;
    let mut config = settings.resolve()?;
    if let Some(dir) = as_it_is {
        config.source = plain(dir)?;
    }
    // The mirror in a data directory is for one run at a time.
    let _lock = match &config.source {
        Source::Remote(_) => Some(Lock::take(&config.data, config.wait)?),
        _ => None,
    };
    let reader = open(&config)?;
    let mut linted = lint::lint(&reader, &config.selection, &choice, &config.secrets)?;
    if let Some(path) = &args.path {
        if !has(&reader, path) {
            return Err(IngestError::NoSuchDocument(path.clone()));
        }
        linted.keep_only(path);
    }
    let passes = linted.passes();
    let code = if json {
        let value =
            json!({"ok": passes, "documents": linted.documents, "findings": linted.findings});
        print(&format!("{}\n", serde_json::to_string_pretty(&value).unwrap_or_default()))
    } else {
        // When stderr is closed there is nobody to tell.
        let _ = std::io::stderr().write_all(linted.summary().as_bytes());
        print(&linted.text())
    };
    Ok(if code == EXIT_OK && !passes { EXIT_FAILED } else { code })
}

fn has(reader: &Reader, path: &str) -> bool {
    let path = path.trim_matches('/');
    !path.is_empty() && !path.split('/').any(|p| p == "..") && reader.exists(path)
}

/// A directory as it lies there, also where it is a repository.
fn plain(dir: PathBuf) -> Result<Source, IngestError> {
    match std::fs::canonicalize(&dir) {
        Ok(path) if path.is_dir() => Ok(Source::Directory(path)),
        _ => Err(SourceError::NoSuchDirectory(dir).into()),
    }
}

fn rules(flags: &[String], file: &[String]) -> Result<FxHashSet<Rule>, ConfigError> {
    let mut rules = FxHashSet::default();
    for name in flags.iter().chain(file) {
        if name == "all" {
            rules.extend(Rule::ALL);
        } else if let Some(rule) = Rule::named(name) {
            rules.insert(rule);
        } else {
            return Err(ConfigError::Value {
                key: "rule",
                value: name.clone(),
                allowed: Rule::ALL.iter().map(|r| r.name()).chain(["all"]).collect(),
            });
        }
    }
    Ok(rules)
}
