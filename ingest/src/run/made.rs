//! A generation from its documents to the moment at which it is current.

use super::{Clock, Loading, written_by};
use crate::assemble::{self, VectorsOf, VectorsWritten};
use crate::config::Config;
use crate::document::Document;
use crate::embedding::{self, Windows};
use crate::error::IngestError;
use crate::probe::{self, Probe, ProbeError};
use crate::progress::Progress;
use crate::read::Reader;
use crate::report::Report;
use crate::reuse::Before;
use crate::source::State;
use crate::vector_cache::VectorCache;
use runbook_shared::chunk::Chunk;
use runbook_shared::embed::{Embedder, EmbedderId};
use runbook_shared::failpoint::reach;
use runbook_shared::generation::manifest::{
    CONTENT_VERSION, Counts, FORMAT_VERSION, Forge, Manifest,
};
use runbook_shared::generation::publish::Draft;
use runbook_shared::retrieval::corpus::Corpus;
use runbook_shared::retrieval::model;
use runbook_shared::tokens::TokenCounter;
use std::collections::BTreeMap;
use std::panic::resume_unwind;
use std::path::Path;
use std::time::Instant;

/// What a generation is made with.
pub(super) struct Made<'a> {
    pub(super) config: &'a Config,
    pub(super) state: State,
    pub(super) tree_hash: Option<String>,
    pub(super) option_hash: String,
    pub(super) counter: TokenCounter,
    /// What is put before a text that is embedded; none without an embedder.
    pub(super) prefix: Option<String>,
    pub(super) forge: Option<Forge>,
    /// Documents that the current generation has indexed, 0 without one.
    pub(super) indexed_before: u64,
    pub(super) progress: &'a Progress,
}

/// The vectors of a draft, with what is needed to tidy the cache once it is published.
struct Vectors {
    written: VectorsWritten,
    embedder: EmbedderId,
    cache: VectorCache,
    windows: Windows,
    /// Of the probes, in their order.
    probes: Vec<Vec<f32>>,
}

impl Made<'_> {
    /// Builds the generation and publishes it.
    pub(super) fn generation(
        &self,
        reader: &Reader,
        before: Option<&Before<'_>>,
        loading: Loading<'_>,
        clock: &mut Clock<'_>,
    ) -> Result<(), IngestError> {
        let mut documents = self.documents(reader, before, clock.report)?;
        reach("read.done");
        clock.stage("parse");
        // For a first generation nothing is begun with a model that cannot be used.
        let loading = if before.is_some() { loading } else { Loading::Ready(loading.wait()?) };
        clock.stage("model");
        let draft = Draft::begin(&self.config.data)?;
        assemble::write_text(&draft, &documents).map_err(IngestError::from)?;
        let chunks: Vec<_> = documents
            .iter_mut()
            .flat_map(|d: &mut Document| std::mem::take(&mut d.chunks))
            .collect();
        clock.report.chunks = chunks.len() as u64;
        reach("text.written");
        clock.stage("text");
        let probes = probe::probes(&chunks);
        let vectors = self.indexes(&draft, &chunks, &probes, before, loading, clock)?;
        reach("indexes.written");
        let at = jiff::Timestamp::now();
        let mut manifest = self.manifest(clock.report, vectors.as_ref(), at);
        // Opened as readers do, so that a draft that cannot be served is never sealed.
        let opened = draft.open(&manifest).map_err(IngestError::Verify)?;
        let corpus = Corpus::new(String::new(), opened).map_err(ProbeError::from)?;
        if !corpus.is_empty() {
            let asked = vectors.as_ref().map(|v| v.probes.as_slice()).unwrap_or_default();
            manifest.calibration = Some(probe::measure(corpus, &probes, asked)?);
        }
        self.warn_of_the_floor(&manifest, clock.report);
        reach("draft.probed");
        clock.stage("probes");
        let report = serde_json::json!({
            "problems": clock.report.problems, "warnings": clock.report.warnings, "secrets": clock.report.secrets,
        });
        draft.write(Path::new("report.json"), &serde_json::to_vec(&report).unwrap_or_default())?;
        reach("report.written");
        manifest.files = draft.files()?;
        reach("draft.hashed");
        let sealed = draft.seal(&manifest, at)?;
        clock.stage("seal");
        if let Err(e) = sealed.verify() {
            sealed.discard()?;
            return Err(IngestError::Verify(e));
        }
        reach("sealed.verified");
        clock.stage("verify");
        sealed.publish()?;
        clock.stage("publish");
        if let Some(Vectors { cache, windows, embedder, .. }) = vectors {
            let asked = probe::keys(&probes, &embedder);
            // The generation is published: what is left over in the cache is no reason to fail.
            cache
                .prune(windows.keys.iter().copied().chain(asked))
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
        let documents =
            reader.documents(&candidates, kind, &self.counter, &self.config.secrets, known, report);
        if !report.secrets.is_empty() {
            tracing::warn!("{} secrets are redacted; the report lists them", report.secrets.len());
            if self.config.fail_on_secret {
                return Err(IngestError::Secrets(report.secrets.clone()));
            }
        }
        // A mistyped option or a lost mount looks just like this. A whole commit without a document is
        // what its author wanted.
        let doubtful = self.config.selection.is_narrowed() || self.state.commit.is_none();
        if documents.is_empty() && self.indexed_before > 0 && doubtful {
            return Err(IngestError::Deserted {
                source_name: self.config.source.display(),
                before: self.indexed_before,
            });
        }
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
        probes: &[Probe],
        before: Option<&Before<'_>>,
        loading: Loading<'_>,
        clock: &mut Clock<'_>,
    ) -> Result<Option<Vectors>, IngestError> {
        let lexical = || {
            let since = Instant::now();
            assemble::write_lexical(draft, chunks).map(|sections| (sections, since.elapsed()))
        };
        let (vectors, lexical) = std::thread::scope(|scope| {
            let lexical = scope.spawn(lexical);
            let vectors = self.vectors(draft, (chunks, probes), before, loading, clock);
            (vectors, lexical.join().unwrap_or_else(|panic| resume_unwind(panic)))
        });
        let (vectors, (sections, lexical_took)) = (vectors?, lexical?);
        clock.report.sections = sections;
        if let Some(vectors) = &vectors {
            clock.report.windows = vectors.written.windows;
            clock.report.reused = vectors.written.reused;
        }
        clock.note("lexical", lexical_took);
        clock.since = Instant::now(); // What was waited for is the lexical index.
        Ok(vectors)
    }

    /// Writes the vectors, and waits for the model no sooner than it is needed.
    fn vectors(
        &self,
        draft: &Draft,
        (chunks, probes): (&[Chunk], &[Probe]),
        before: Option<&Before<'_>>,
        loading: Loading<'_>,
        clock: &mut Clock<'_>,
    ) -> Result<Option<Vectors>, IngestError> {
        let Some(prefix) = &self.prefix else { return Ok(None) };
        let windows = embedding::list(chunks, &self.counter, prefix);
        clock.stage("windows");
        let Some(embedder) = loading.wait()? else { return Ok(None) };
        clock.stage("model");
        let mut cache = VectorCache::open(&self.config.data, embedder.id())?;
        reach("cache.opened");
        let before = before.and_then(Before::vectors);
        let to = VectorsOf { windows: &windows, before: before.as_deref() };
        let written = assemble::write_vectors(draft, &to, &mut cache, &*embedder, self.progress)?;
        let probes = probe::embed(probes, &*embedder, &mut cache)?;
        clock.stage("vectors");
        Ok(Some(Vectors { written, embedder: embedder.id().clone(), cache, windows, probes }))
    }

    /// Says so where the floor lets every probe or none through.
    fn warn_of_the_floor(&self, manifest: &Manifest, report: &mut Report) {
        let sha = manifest.embedder.as_ref().map(|e| e.model_sha256.as_str());
        let floor = model::for_embedder(sha).score_floor;
        let rates = manifest.calibration.as_ref().map(|c| c.at(floor));
        if let Some(warning) = rates.and_then(|r| r.warning) {
            report.notes.push(format!("score floor {floor}: {warning}"));
        }
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
                secrets: report.secrets.len() as u64,
            },
            graph: vectors.map(|v| v.written.graph),
            calibration: None,
            files: BTreeMap::new(),
        }
    }
}
