//! One run, from the probe of the source to the published generation.

mod made;
mod pinned;

use crate::assemble::AssembleError;
use crate::config::{Config, ForgeChoice};
use crate::embedding;
use crate::error::IngestError;
use crate::forge;
use crate::lock::{self, Lock, LockError};
use crate::model_stamp;
use crate::plan::{self, IndexState, Wanted};
use crate::progress::Progress;
use crate::read::Reader;
use crate::redaction::{self, Secret};
use crate::report::{Problem, Report};
use crate::reuse::Before;
use crate::source::mirror::Mirror;
use crate::source::{CandidateKind, Source, State, git};
use made::Made;
use runbook_shared::embed::{EmbedError, EmbedderId, ModelFiles, NO_EMBEDDER, OnnxEmbedder};
use runbook_shared::error::PathError;
use runbook_shared::failpoint::reach;
use runbook_shared::generation::manifest::{Forge, Manifest};
use runbook_shared::generation::pin::Pin;
use runbook_shared::generation::{self, GENERATIONS};
use runbook_shared::last_run::{self, LastRun, Outcome};
use runbook_shared::locate::DEFAULT_MODEL;
use runbook_shared::tokens::TokenCounter;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::Path;
use std::thread::ScopedJoinHandle;
use std::time::{Duration, Instant};

/// Runs ingest once and writes last-run.json, however the run ends.
///
/// # Errors
/// When the run fails; the previous generation is then untouched.
pub fn run(config: &Config, progress: &Progress) -> Result<Report, IngestError> {
    let mut report = Report::default();
    let mut checked_at = None;
    // The lock is held until last-run.json is written: the next run starts from what it says.
    let (lock, result) = match Lock::take(&config.data, config.wait) {
        Ok(lock) => {
            reach("run.locked");
            sweep(&config.data);
            reach("run.swept");
            let before = generation::current_id(&config.data).ok();
            let result = unpanicked(|| locked(config, progress, &mut report, &mut checked_at));
            if result.is_ok() {
                forget_others(config, before.as_deref());
            }
            (Some(lock), result)
        }
        Err(e) => (None, Err(e.into())),
    };
    let outcome = match &result {
        Ok(()) if report.outcome == "up_to_date" => Outcome::UpToDate,
        Ok(()) if report.outcome == "pinned" => Outcome::Pinned,
        Ok(()) => Outcome::Published,
        Err(IngestError::Lock(LockError::Busy(_))) => Outcome::Busy,
        Err(_) => Outcome::Failed,
    };
    if result.is_err() {
        let name = serde_json::to_value(outcome).ok();
        report.outcome = name.and_then(|v| v.as_str().map(str::to_owned)).unwrap_or_default();
    }
    let ended = Ended {
        source: config.source.display(),
        outcome,
        error: result.as_ref().err(),
        checked_at,
    };
    let written = ended.write(&config.data, &mut report);
    drop(lock);
    result?;
    written?;
    Ok(report)
}

/// Notes a run that could not begin, for instance because its source is gone, in the last-run.json
/// of a data directory that has one: a dead timer must not look like a quiet repository.
pub fn note_refused(data: &Path, source: &str, error: &IngestError) {
    if !data.join(last_run::FILE_NAME).is_file() {
        return;
    }
    // A run that is at work will say how things are.
    let Ok(_lock) = Lock::take(data, false) else { return };
    let outcome = Outcome::Failed;
    let ended = Ended { source: source.to_owned(), outcome, error: Some(error), checked_at: None };
    let mut report = Report { outcome: "failed".into(), ..Report::default() };
    if let Err(e) = ended.write(data, &mut report) {
        tracing::warn!("{e}");
    }
}

/// Removes files that a killed run was about to put in the place of others. What cannot be removed
/// stands in nobody's way.
fn sweep(data: &Path) {
    // A run that leaves at once replaces last-run.json as well, but only with this held.
    let Ok(_dir) = lock::for_last_run(data) else { return };
    for entry in std::fs::read_dir(data).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let process = name.to_str().and_then(|n| Some(n.rsplit_once(".tmp-")?.1));
        let is_left =
            process.is_some_and(|p| !p.is_empty() && p.bytes().all(|b| b.is_ascii_digit()));
        if is_left && entry.file_type().is_ok_and(|kind| kind.is_file()) {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

/// Removes generations with values that are redacted now. The one that was current when the run began
/// may still be about to be opened, and goes with the next run.
fn forget_others(config: &Config, before: Option<&str>) {
    let Ok(current) = generation::current_id(&config.data) else { return };
    let kept = [Some(current.as_str()), before].into_iter().flatten().collect::<Vec<_>>();
    redaction::forget_others(&config.data, &kept, &config.secrets.stamp())
        .unwrap_or_else(|e| tracing::warn!("{e}"));
}

/// Turns a panic into an error: it is a bug, but last-run.json must tell of it.
fn unpanicked(run: impl FnOnce() -> Result<(), IngestError>) -> Result<(), IngestError> {
    catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|panic| {
        let message = panic.downcast_ref::<String>().map(String::as_str);
        let message = message.or_else(|| panic.downcast_ref::<&str>().copied());
        Err(IngestError::Panic(message.unwrap_or("unknown").to_owned()))
    })
}

/// How a run ended.
struct Ended<'a> {
    source: String,
    outcome: Outcome,
    error: Option<&'a IngestError>,
    /// When this run reached the source; what last-run.json says stays where it did not.
    checked_at: Option<String>,
}

impl Ended<'_> {
    fn write(self, data: &Path, report: &mut Report) -> Result<(), PathError> {
        let _dir = lock::for_last_run(data)?;
        let before = LastRun::read(data).unwrap_or_else(|e| {
            tracing::warn!("{e}");
            None
        });
        note_current(data, report);
        let last = LastRun {
            finished_at: now(),
            outcome: self.outcome,
            error: self.error.map(ToString::to_string),
            source_checked_at: self.checked_at.or_else(|| before?.source_checked_at),
            source: self.source,
            generation: report.generation.clone(),
            commit: report.commit.clone(),
            report: serde_json::to_value(&*report).ok(),
        };
        last.write(data)
    }
}
fn now() -> String {
    jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

fn note_current(data: &Path, report: &mut Report) {
    if let Ok((id, manifest)) = plan::examine(data) {
        report.commit = manifest.commit;
        report.generation = Some(id);
    }
}

/// Milliseconds of each stage.
struct Clock<'a> {
    report: &'a mut Report,
    since: Instant,
}

impl<'a> Clock<'a> {
    fn start(report: &'a mut Report) -> Self {
        Self { report, since: Instant::now() }
    }

    fn stage(&mut self, name: &str) {
        self.note(name, self.since.elapsed());
        self.since = Instant::now();
    }

    /// A stage that another thread was at.
    fn note(&mut self, name: &str, took: Duration) {
        let ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
        *self.report.took_ms.entry(name.to_owned()).or_insert(0) += ms;
    }
}

fn locked(
    config: &Config,
    progress: &Progress,
    report: &mut Report,
    checked_at: &mut Option<String>,
) -> Result<(), IngestError> {
    if let Some(pin) = Pin::read(&config.data)? {
        return pinned::run(config, &pin, report, checked_at);
    }
    let mut clock = Clock::start(report);
    let (current, mut state) = plan::current(&config.data);
    check_source(config, current.as_ref().map(|c| &c.1))?;
    let embedder_id = embedder_id(config)?;
    let option_hash = option_hash(config);
    reach("run.planned");
    let probed = probe(config)?;
    reach("fetch.probed");
    clock.stage("probe");
    if let (State { commit: None, .. }, true) =
        (&probed, matches!(config.source, Source::Remote(_) | Source::Repository(_)))
    {
        if current.as_ref().is_some_and(|(_, m)| m.counts.documents > 0) {
            return Err(IngestError::Emptied(config.source.display()));
        }
        clock.report.notes.push("the repository has no commit: there is nothing to index".into());
    }
    let tree_hash = tree_hash(config)?;
    if let Some((_, manifest)) = &current {
        let wanted = Wanted {
            source: &config.source.display(),
            commit: probed.commit.as_deref(),
            tree_hash: tree_hash.as_deref(),
            option_hash: &option_hash,
            embedder: embedder_id.as_ref(),
        };
        state = plan::compare(manifest, &wanted);
    }
    clock.report.state = format!("{state:?}");
    if let (IndexState::UpToDate, Some((_, manifest))) = (state, &current) {
        *checked_at = Some(now());
        up_to_date(clock.report, manifest);
        let kept = kept_report(&config.data);
        (clock.report.problems, clock.report.secrets) = (kept.problems, kept.secrets);
        if config.fail_on_secret && !clock.report.secrets.is_empty() {
            return Err(IngestError::Secrets(clock.report.secrets.clone()));
        }
        return Ok(());
    }
    tracing::info!("building a generation: {state:?}");
    let model = read_model(config)?;
    let counter = match &model {
        Some(model) => model.token_counter()?,
        None => TokenCounter::default_model(),
    };
    reach("model.read");
    clock.stage("model");
    std::thread::scope(|scope| {
        // The model is made ready while the source is read.
        let loading = model.map_or(Loading::Ready(None), |model| {
            let sessions = std::thread::available_parallelism().map_or(1, usize::from);
            Loading::Thread(scope.spawn(move || model.load(&config.places, sessions)))
        });
        let (reader, source) = open(config, &probed, progress)?;
        *checked_at = Some(now()); // A source that was seen, but not fetched, was not reached.
        clock.stage("fetch");
        let made = Made {
            config,
            state: source,
            tree_hash,
            option_hash,
            counter,
            prefix: embedder_id.map(|id| id.passage_prefix),
            forge: forge(config, &reader),
            indexed_before: current.as_ref().map_or(0, |c| c.1.counts.indexed),
            progress,
        };
        let before = Before::of(&config.data, current.as_ref(), state, made.forge.as_ref());
        made.generation(&reader, before.as_ref(), loading, &mut clock)
    })
}

/// The model while a thread makes it ready, and then; none without an embedder.
enum Loading<'scope> {
    Thread(ScopedJoinHandle<'scope, Result<OnnxEmbedder, EmbedError>>),
    Ready(Option<Box<OnnxEmbedder>>),
}

impl Loading<'_> {
    fn wait(self) -> Result<Option<Box<OnnxEmbedder>>, EmbedError> {
        match self {
            Self::Thread(thread) => {
                let joined = thread.join().unwrap_or_else(|panic| resume_unwind(panic));
                joined.map(|embedder| Some(Box::new(embedder)))
            }
            Self::Ready(embedder) => Ok(embedder),
        }
    }
}

fn check_source(config: &Config, manifest: Option<&Manifest>) -> Result<(), IngestError> {
    let wanted = config.source.display();
    match manifest {
        Some(m) if m.source != wanted && !config.change_source => Err(IngestError::OtherSource {
            data: config.data.display().to_string(),
            found: m.source.clone(),
            wanted,
        }),
        _ => Ok(()),
    }
}

fn up_to_date(report: &mut Report, manifest: &Manifest) {
    let counts = &manifest.counts;
    report.outcome = "up_to_date".into();
    report.documents = counts.documents;
    report.indexed = counts.indexed;
    report.failed = counts.failed;
    report.skipped.clone_from(&counts.skipped);
    report.sections = counts.sections;
    report.chunks = counts.chunks;
    report.windows = counts.windows;
    report.reused = counts.windows;
}

/// What is kept of the report of the current generation's run.
#[derive(Default, serde::Deserialize)]
struct Kept {
    /// What failed then is still not indexed.
    problems: Vec<Problem>,
    #[serde(default)]
    secrets: Vec<Secret>,
}

fn kept_report(data: &Path) -> Kept {
    let Ok(id) = generation::current_id(data) else { return Kept::default() };
    let path = data.join(GENERATIONS).join(id).join("report.json");
    let kept = std::fs::read(&path).map_err(|e| e.to_string());
    let kept =
        kept.and_then(|bytes| serde_json::from_slice::<Kept>(&bytes).map_err(|e| e.to_string()));
    kept.unwrap_or_else(|e| {
        tracing::warn!("`{}`: {e}", path.display());
        Kept::default()
    })
}

fn uses_embedder(config: &Config) -> bool {
    config.embedder.as_deref() != Some(NO_EMBEDDER)
}

fn embedder_id(config: &Config) -> Result<Option<EmbedderId>, IngestError> {
    if !uses_embedder(config) {
        return Ok(None);
    }
    Ok(Some(model_stamp::identify(&config.data, &config.places, config.embedder.as_deref())?))
}

fn read_model(config: &Config) -> Result<Option<ModelFiles>, IngestError> {
    if !uses_embedder(config) {
        return Ok(None);
    }
    let name = config.embedder.as_deref().unwrap_or(DEFAULT_MODEL);
    // Without the library nothing is fetched.
    config.places.onnxruntime().map_err(EmbedError::from)?;
    Ok(Some(ModelFiles::read(&config.places, name)?))
}

fn option_hash(config: &Config) -> String {
    let bytes = serde_json::to_vec(&config.content_options).unwrap_or_default();
    blake3::hash(&bytes).to_hex()[..32].to_owned()
}

fn probe(config: &Config) -> Result<State, IngestError> {
    Ok(match &config.source {
        Source::Remote(url) => Mirror::new(url, &config.access, &config.data).probe()?,
        Source::Repository(path) => {
            git::local_state(&git::open(path)?, path, config.access.branch.as_deref())?
        }
        Source::Directory(_) => State { commit: None, branch: None },
    })
}

/// Hash over paths and contents of a plain directory.
fn tree_hash(config: &Config) -> Result<Option<String>, IngestError> {
    let Source::Directory(root) = &config.source else { return Ok(None) };
    let reader = Reader::Dir(root.clone());
    let candidates = reader.list(&config.selection, &mut Report::default())?;
    let mut hasher = blake3::Hasher::new();
    for candidate in &candidates {
        hasher.update(&(candidate.path.len() as u64).to_le_bytes());
        hasher.update(&candidate.path);
        let read = match candidate.kind {
            CandidateKind::Skipped(reason) => Ok(Err(reason)),
            _ => crate::source::dir::read(root, &candidate.path),
        };
        match read {
            Ok(Ok(bytes)) => {
                hasher.update(&(bytes.len() as u64).to_le_bytes());
                hasher.update(&bytes);
            }
            Ok(Err(reason)) => {
                hasher.update(reason.name().as_bytes());
            }
            Err(e) => {
                hasher.update(e.to_string().as_bytes());
            }
        }
    }
    Ok(Some(hasher.finalize().to_hex().to_string()))
}

fn open(
    config: &Config,
    probed: &State,
    progress: &Progress,
) -> Result<(Reader, State), IngestError> {
    let commit = probed.commit.as_deref().and_then(|c| git2::Oid::from_str(c).ok());
    match (&config.source, commit) {
        (Source::Directory(root), _) => Ok((Reader::Dir(root.clone()), probed.clone())),
        (Source::Repository(path), Some(commit)) => {
            Ok((Reader::Git(Box::new(git::open(path)?), commit), probed.clone()))
        }
        (Source::Remote(url), Some(_)) => {
            let bar = progress.bar("fetch", 0);
            let mirror = Mirror::new(url, &config.access, &config.data);
            let branch = probed.branch.as_deref();
            let (repository, commit) = mirror.fetch(branch, &config.selection, &|done, of| {
                bar.set_length(of as u64);
                bar.set_position(done as u64);
            })?;
            bar.finish_and_clear();
            let state = State { commit: Some(commit.to_string()), branch: probed.branch.clone() };
            Ok((Reader::Git(Box::new(repository), commit), state))
        }
        _ => Ok((Reader::Empty, probed.clone())),
    }
}

fn forge(config: &Config, reader: &Reader) -> Option<Forge> {
    let url = match (&config.source, reader) {
        (Source::Remote(url), _) => url.clone(),
        (Source::Repository(_), Reader::Git(repository, _)) => repository
            .find_remote("origin")
            .ok()
            .and_then(|r| r.url().ok().map(str::to_owned))
            .unwrap_or_default(),
        _ => return None,
    };
    match &config.forge {
        ForgeChoice::Detect => forge::detect(&url),
        ForgeChoice::Off => None,
        ForgeChoice::Kind(kind, address) => forge::configured(*kind, address.as_deref(), &url),
    }
}

/// The program and its version, as manifests name it.
pub(crate) fn written_by() -> String {
    format!("runbook-ingest {}", env!("CARGO_PKG_VERSION"))
}

impl From<embedding::EmbeddingError> for IngestError {
    fn from(e: embedding::EmbeddingError) -> Self {
        Self::Assemble(AssembleError::Embedding(e))
    }
}
