//! manifest.json: what a generation is made of and what it was made with.

use crate::embed::EmbedderId;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The manifest's file name.
pub const FILE_NAME: &str = "manifest.json";

/// Version of the files' layout. A reader refuses what is newer or older than it knows.
///
/// - 1: before the first release.
/// - 2: spans within windows, calibration.
pub const FORMAT_VERSION: u32 = 2;
/// The oldest layout this program reads.
pub const FORMAT_VERSION_MIN: u32 = 2;
/// Version of the rules that make content: chunking, analysis, windows. Another one is a rebuild.
///
/// - 1: before the first release.
/// - 2: first.
/// - 3: secrets are redacted.
pub const CONTENT_VERSION: u32 = 3;

/// The two versions alone, readable whatever else the manifest holds.
#[derive(Clone, Copy, Debug, Deserialize)]
pub struct Versions {
    /// Version of the layout.
    pub format_version: u32,
    /// Version of the rules.
    pub content_version: u32,
}

/// What a generation is made of.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// Version of the layout.
    pub format_version: u32,
    /// Version of the rules.
    pub content_version: u32,
    /// The program that wrote it.
    pub written_by: String,
    /// The git URL without credentials, or the directory.
    pub source: String,
    /// The branch that was read; null for a directory that is not git.
    pub branch: Option<String>,
    /// The commit that was read; null for a directory that is not git, or an empty repository.
    pub commit: Option<String>,
    /// blake3 over paths and contents, for a source without commits.
    pub tree_hash: Option<String>,
    /// When it was written, RFC 3339, UTC.
    pub indexed_at: String,
    /// What the vectors were made with; null without vectors.
    pub embedder: Option<EmbedderId>,
    /// Hash of every option that changes content.
    pub option_hash: String,
    /// Those options, for a reader.
    pub options: BTreeMap<String, String>,
    /// How links into the forge are made; null when there is none.
    pub forge: Option<Forge>,
    /// How much there is.
    pub counts: Counts,
    /// How the graph does against the exact scan; null without vectors.
    pub graph: Option<GraphReport>,
    /// How the gate does on probes; null where there was nothing to make them from.
    pub calibration: Option<Calibration>,
    /// Size and hash of every other file, by path within the generation.
    pub files: BTreeMap<String, FileEntry>,
}

/// Size and hash of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileEntry {
    /// Size in bytes.
    pub bytes: u64,
    /// blake3, 64 hex digits.
    pub blake3: String,
}

/// Counts of a generation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Counts {
    /// Files that the filters let through: indexed + failed + all skipped.
    pub documents: u64,
    /// Documents in the generation.
    pub indexed: u64,
    /// Documents that could not be read.
    pub failed: u64,
    /// Documents left out by a rule, by reason.
    pub skipped: BTreeMap<String, u64>,
    /// Sections.
    pub sections: u64,
    /// Chunks.
    pub chunks: u64,
    /// Windows: vectors.
    pub windows: u64,
    /// Secrets that were redacted; report.json lists them.
    #[serde(default)]
    pub secrets: u64,
}

/// What the HNSW graph reaches, measured at ingest with the corpus's own vectors as questions.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct GraphReport {
    /// Candidates kept while searching.
    pub ef: u32,
    /// Share of the exact ten nearest that the graph finds, 0 to 1.
    pub recall_at_10: f64,
    /// True when the graph serves; the scan does otherwise.
    pub serves: bool,
}

/// The Confidence that the gate has in the best section for probes of this generation, ascending: what
/// a floor will let through. The model is the one of the program that wrote the generation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Calibration {
    /// For questions made from sections of the corpus.
    pub own: Vec<f32>,
    /// For the same questions with their sections left out of the search.
    pub left_out: Vec<f32>,
    /// For questions about other things.
    pub foreign: Vec<f32>,
    /// How many own questions found their own section first.
    pub own_found: u32,
}

/// What a floor does to the probes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ExpectedRates {
    /// The floor.
    pub score_floor: f32,
    /// Share of own questions that are refused.
    pub false_refusals: f32,
    /// Share of own questions that are answered although their section is left out.
    pub false_answers: f32,
    /// Share of foreign questions that are answered.
    pub foreign_answers: f32,
    /// What is wrong with the floor for this corpus; null when nothing is.
    pub warning: Option<&'static str>,
}

impl Calibration {
    /// What this floor lets through.
    #[must_use]
    pub fn at(&self, floor: f32) -> ExpectedRates {
        let answered = |list: &[f32]| {
            let n = list.iter().filter(|c| **c >= floor).count();
            #[expect(clippy::cast_precision_loss, reason = "a few dozen probes")]
            let share = n as f32 / list.len().max(1) as f32;
            (share * 1e4).round() / 1e4
        };
        let (own, left_out, foreign) =
            (answered(&self.own), answered(&self.left_out), answered(&self.foreign));
        let warning = if self.own.is_empty() {
            None
        } else if own == 0.0 {
            Some("no probe is answered: the floor is too high for this corpus")
        } else if left_out.min(foreign) == 1.0 {
            Some("every probe is answered: the floor is too low for this corpus")
        } else {
            None
        };
        ExpectedRates {
            score_floor: floor,
            false_refusals: if self.own.is_empty() { 0.0 } else { 1.0 - own },
            false_answers: left_out,
            foreign_answers: foreign,
            warning,
        }
    }
}

/// A forge's kind and the web address of the repository.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Forge {
    /// The kind, which decides the form of links and anchors.
    pub kind: ForgeKind,
    /// Web address of the repository, without a slash at the end.
    pub base_url: String,
}

/// The forges whose links are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ForgeKind {
    /// github.com and GitHub Enterprise.
    Github,
    /// GitLab 17 and newer.
    Gitlab,
    /// GitLab before 17, which squeezed hyphens in anchors.
    GitlabOld,
    /// Gitea and Forgejo.
    Gitea,
    /// Bitbucket Cloud.
    Bitbucket,
    /// cgit.
    Cgit,
}

impl Manifest {
    /// True when the graph is to be loaded and walked.
    #[must_use]
    pub fn vectors_use_graph(&self) -> bool {
        self.graph.is_some_and(|g| g.serves)
    }
}

/// The id of the generation with these manifest bytes, made at this moment.
#[must_use]
pub fn id_of(indexed_at: jiff::Timestamp, manifest: &[u8]) -> String {
    format!("{}-{}", indexed_at.strftime("%Y%m%dT%H%M%SZ"), short_hash(manifest))
}

/// True when the id names these manifest bytes.
#[must_use]
pub fn id_matches(id: &str, manifest: &[u8]) -> bool {
    id.rsplit_once('-').is_some_and(|(_, hash)| hash == short_hash(manifest))
}

fn short_hash(bytes: &[u8]) -> String {
    blake3::hash(bytes).to_hex()[..16].to_owned()
}
