//! One run, from the probe of the source to the published generation.

use crate::assemble::{self, AssembleError, VectorsOf, VectorsWritten};
use crate::config::{Config, ForgeChoice};
use crate::document::Document;
use crate::embedding::{self, Windows};
use crate::error::IngestError;
use crate::forge;
use crate::lock::{self, Lock, LockError};
use crate::model_stamp;
use crate::plan::{self, IndexState, Wanted};
use crate::progress::Progress;
use crate::read::Reader;
use crate::report::Report;
use crate::reuse::Before;
use crate::source::mirror::Mirror;
use crate::source::{CandidateKind, Source, State, git};
use crate::vector_cache::VectorCache;
use runbook_shared::chunk::Chunk;
use runbook_shared::embed::{
    EmbedError, Embedder, EmbedderId, ModelFiles, NO_EMBEDDER, OnnxEmbedder,
};
use runbook_shared::error::PathError;
use runbook_shared::generation::Generation;
use runbook_shared::generation::manifest::{
    CONTENT_VERSION, Counts, FORMAT_VERSION, Forge, Manifest,
};
use runbook_shared::generation::publish::Draft;
use runbook_shared::last_run::{self, LastRun, Outcome};
use runbook_shared::locate::DEFAULT_MODEL;
use runbook_shared::tokens::TokenCounter;
use std::collections::BTreeMap;
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
            sweep(&config.data);
            (Some(lock), unpanicked(|| locked(config, progress, &mut report, &mut checked_at)))
        }
        Err(e) => (None, Err(e.into())),
    };
    let outcome = match &result {
        Ok(()) if report.outcome == "up_to_date" => Outcome::UpToDate,
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
    let (current, _) = plan::current(data);
    if let Some((id, manifest)) = current {
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
    let mut clock = Clock::start(report);
    let (current, mut state) = plan::current(&config.data);
    check_source(config, current.as_ref().map(|c| &c.1))?;
    let embedder_id = embedder_id(config)?;
    let option_hash = option_hash(config);
    let probed = probe(config)?;
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
        return Ok(());
    }
    tracing::info!("building a generation: {state:?}");
    let model = read_model(config)?;
    let counter = match &model {
        Some(model) => model.token_counter()?,
        None => TokenCounter::default_model(),
    };
    clock.stage("model");
    std::thread::scope(|scope| {
        // The model is made ready while the source is read.
        let loading = model.map(|model| {
            let sessions = std::thread::available_parallelism().map_or(1, usize::from);
            scope.spawn(move || model.load(&config.places, sessions))
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
            progress,
        };
        let before = Before::of(&config.data, current.as_ref(), state, made.forge.as_ref());
        made.generation(&reader, before.as_ref(), Loading(loading), &mut clock)
    })
}

/// The model while a thread makes it ready; none without an embedder.
struct Loading<'scope>(Option<ScopedJoinHandle<'scope, Result<OnnxEmbedder, EmbedError>>>);

impl Loading<'_> {
    fn wait(self) -> Result<Option<OnnxEmbedder>, EmbedError> {
        let joined = self.0.map(|thread| thread.join().unwrap_or_else(|p| resume_unwind(p)));
        joined.transpose()
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

/// What a generation is made with.
struct Made<'a> {
    config: &'a Config,
    state: State,
    tree_hash: Option<String>,
    option_hash: String,
    counter: TokenCounter,
    /// What is put before a text that is embedded; none without an embedder.
    prefix: Option<String>,
    forge: Option<Forge>,
    progress: &'a Progress,
}

/// The vectors of a draft, with what is needed to tidy the cache once it is published.
struct Vectors {
    written: VectorsWritten,
    embedder: EmbedderId,
    cache: VectorCache,
    windows: Windows,
}

impl Made<'_> {
    fn generation(
        &self,
        reader: &Reader,
        before: Option<&Before<'_>>,
        loading: Loading<'_>,
        clock: &mut Clock<'_>,
    ) -> Result<(), IngestError> {
        let mut documents = self.documents(reader, before, clock.report)?;
        clock.stage("parse");
        // While the model is made ready.
        let windows = self.prefix.as_deref().map(|prefix| {
            embedding::list(documents.iter().flat_map(|d| &d.chunks), &self.counter, prefix)
        });
        clock.stage("windows");
        let embedder = loading.wait()?;
        clock.stage("model");
        let draft = Draft::begin(&self.config.data)?;
        assemble::write_text(&draft, &documents).map_err(IngestError::from)?;
        let chunks: Vec<_> = documents
            .iter_mut()
            .flat_map(|d: &mut Document| std::mem::take(&mut d.chunks))
            .collect();
        clock.report.chunks = chunks.len() as u64;
        clock.stage("text");
        let vectors = embedder.as_ref().zip(windows);
        let vectors = self.indexes(&draft, &chunks, before, vectors, clock)?;
        let at = jiff::Timestamp::now();
        let mut manifest = self.manifest(clock.report, vectors.as_ref(), at);
        let report = serde_json::json!({ "problems": clock.report.problems, "warnings": clock.report.warnings });
        draft.write(Path::new("report.json"), &serde_json::to_vec(&report).unwrap_or_default())?;
        manifest.files = draft.files()?;
        let sealed = draft.seal(&manifest, at)?;
        clock.stage("seal");
        if let Err(e) = Generation::open(&self.config.data, sealed.id()) {
            sealed.discard()?;
            return Err(IngestError::Verify(e));
        }
        clock.stage("verify");
        sealed.publish()?;
        clock.stage("publish");
        if let Some(Vectors { cache, windows, .. }) = vectors {
            // The generation is published: what is left over in the cache is no reason to fail.
            cache
                .prune(windows.keys.into_iter())
                .unwrap_or_else(|e| tracing::warn!("the cache of vectors is not pruned: {e}"));
        }
        clock.report.outcome = "published".into();
        Ok(())
    }

    fn documents(
        &self,
        reader: &Reader,
        before: Option<&Before<'_>>,
        report: &mut Report,
    ) -> Result<Vec<Document>, IngestError> {
        let kind = self.forge.as_ref().map(|f| f.kind);
        let known = before.map(Before::documents).unwrap_or_default();
        let candidates = reader.list(&self.config.selection, report)?;
        let documents = reader.documents(&candidates, kind, &self.counter, known, report);
        if documents.is_empty() {
            let note = "no document was indexed: check --subdir, --include and --exclude";
            report.notes.push(note.into());
        }
        Ok(documents)
    }

    /// Writes both indexes, the lexical one on a thread of its own.
    fn indexes(
        &self,
        draft: &Draft,
        chunks: &[Chunk],
        before: Option<&Before<'_>>,
        vectors: Option<(&OnnxEmbedder, Windows)>,
        clock: &mut Clock<'_>,
    ) -> Result<Option<Vectors>, IngestError> {
        let lexical = || {
            let since = Instant::now();
            assemble::write_lexical(draft, chunks).map(|sections| (sections, since.elapsed()))
        };
        let (vectors, lexical) = std::thread::scope(|scope| {
            let lexical = scope.spawn(lexical);
            let vectors = vectors
                .map(|(embedder, windows)| self.vectors(draft, windows, before, embedder))
                .transpose();
            (vectors, lexical.join().unwrap_or_else(|panic| resume_unwind(panic)))
        });
        let (vectors, (sections, lexical_took)) = (vectors?, lexical?);
        clock.report.sections = sections;
        if let Some(vectors) = &vectors {
            clock.report.windows = vectors.written.windows;
            clock.report.reused = vectors.written.reused;
            clock.stage("vectors");
        }
        clock.note("lexical", lexical_took);
        Ok(vectors)
    }

    fn vectors(
        &self,
        draft: &Draft,
        windows: Windows,
        before: Option<&Before<'_>>,
        embedder: &OnnxEmbedder,
    ) -> Result<Vectors, IngestError> {
        let mut cache = VectorCache::open(&self.config.data, embedder.id())?;
        let before = before.and_then(Before::vectors);
        let to = VectorsOf { windows: &windows, before: before.as_deref() };
        let written = assemble::write_vectors(draft, &to, &mut cache, embedder, self.progress)?;
        Ok(Vectors { written, embedder: embedder.id().clone(), cache, windows })
    }

    fn manifest(
        &self,
        report: &Report,
        vectors: Option<&Vectors>,
        at: jiff::Timestamp,
    ) -> Manifest {
        Manifest {
            format_version: FORMAT_VERSION,
            content_version: CONTENT_VERSION,
            written_by: written_by(),
            source: self.config.source.display(),
            branch: self.state.branch.clone(),
            commit: self.state.commit.clone(),
            tree_hash: self.tree_hash.clone(),
            indexed_at: at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
            embedder: vectors.map(|v| v.embedder.clone()),
            option_hash: self.option_hash.clone(),
            options: self.config.content_options.iter().cloned().collect::<BTreeMap<_, _>>(),
            forge: self.forge.clone(),
            counts: Counts {
                documents: report.documents,
                indexed: report.indexed,
                failed: report.failed,
                skipped: report.skipped.clone(),
                sections: report.sections,
                chunks: report.chunks,
                windows: report.windows,
            },
            graph: vectors.map(|v| v.written.graph),
            files: BTreeMap::new(),
        }
    }
}

impl From<embedding::EmbeddingError> for IngestError {
    fn from(e: embedding::EmbeddingError) -> Self {
        Self::Assemble(AssembleError::Embedding(e))
    }
}
