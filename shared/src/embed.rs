//! The embedder: texts to unit vectors, one text per run, from sessions that are shared.
//!
//! The default model is quantised dynamically: the scale of its activations depends on everything
//! that shares a run, so a text is always embedded alone and its vector depends on nothing else
//! (PROVENANCE.md beside the model). The same run gives the vectors of spans within the text.

mod spans;

use crate::error::{Hint, IoContext, PathError};
use crate::limits::WINDOW_TOKENS_MAX;
use crate::locate::{DEFAULT_MODEL, Places};
use crate::onnx::{self, OnnxError};
use crate::tokens::{TokenCounter, TokenizerError};
use fastembed::{
    InitOptionsUserDefined, Pooling, QuantizationMode, TextEmbedding, TokenizerFiles,
    UserDefinedEmbeddingModel,
};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::fmt::Write as _;
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Condvar, Mutex, PoisonError};

/// The name that turns embedding off.
pub const NO_EMBEDDER: &str = "none";

/// What makes two vectors comparable: all of it must be equal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EmbedderId {
    /// Name of the model.
    pub id: String,
    /// Length of its vectors.
    pub dim: u32,
    /// How token vectors become one: `mean` or `cls`.
    pub pooling: String,
    /// What is put before a question.
    pub query_prefix: String,
    /// What is put before a passage.
    pub passage_prefix: String,
    /// sha256 of `model.onnx`, hex.
    pub model_sha256: String,
    /// sha256 of `tokenizer.json`, hex.
    pub tokenizer_sha256: String,
}

/// The vectors of a passage.
#[derive(Clone, Debug, PartialEq)]
pub struct Embedded {
    /// Of all of it.
    pub vector: Vec<f32>,
    /// Of its spans, one after the other, each as long as `vector`; empty where the model does not
    /// pool its tokens by their mean.
    pub spans: Vec<f32>,
}

/// Turns texts into vectors of length 1.
pub trait Embedder: Send + Sync {
    /// What the vectors may be compared with.
    fn id(&self) -> &EmbedderId;
    /// The vector of a passage, and those of the spans (bytes of `text`) within it.
    ///
    /// # Errors
    /// When the model fails.
    fn embed_passage(&self, text: &str, spans: &[Range<usize>]) -> Result<Embedded, EmbedError>;
    /// The vector of a question.
    ///
    /// # Errors
    /// When the model fails.
    fn embed_question(&self, text: &str) -> Result<Vec<f32>, EmbedError>;
}

/// Why there is no embedder, or no vector.
#[derive(Debug, thiserror::Error)]
pub enum EmbedError {
    /// The model's directory is in none of the places.
    #[error("the embedding model `{name}` was not found; searched: {}", list(.searched))]
    NoModel {
        /// The name that was asked for.
        name: String,
        /// The directories that were tried, in order.
        searched: Vec<PathBuf>,
    },
    /// One of the model's files is unreadable.
    #[error(transparent)]
    File(#[from] PathError),
    /// `runbook-model.toml` in the model's directory is not valid.
    #[error("`{}`: {message}", path.display())]
    Card {
        /// The file.
        path: PathBuf,
        /// What is wrong in it.
        message: String,
    },
    /// `tokenizer.json` is not usable.
    #[error("model `{name}`: {source}")]
    Tokenizer {
        /// The model.
        name: String,
        /// What is wrong.
        #[source]
        source: TokenizerError,
    },
    /// The ONNX Runtime library cannot be used.
    #[error(transparent)]
    Onnx(#[from] OnnxError),
    /// The model cannot be loaded or run.
    #[error("the embedding model `{name}` failed: {message}")]
    Model {
        /// The model.
        name: String,
        /// What the library said.
        message: String,
    },
}

impl Hint for EmbedError {
    fn hint(&self) -> Option<String> {
        match self {
            Self::Onnx(e) => e.hint(),
            Self::NoModel { .. } => Some(
                "run `deploy/setup`, or name the directory with --model-dir or RUNBOOK_MODEL_DIR, \
                 or use --embedder none"
                    .into(),
            ),
            _ => Some(
                "check the model's files against its PROVENANCE.md, or use --embedder none".into(),
            ),
        }
    }
}

fn list(paths: &[PathBuf]) -> String {
    paths.iter().map(|p| format!("`{}`", p.display())).collect::<Vec<_>>().join(", ")
}

/// `runbook-model.toml`: what a model of one's own needs said; all of it has a default.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct ModelCard {
    pooling: String,
    query_prefix: String,
    passage_prefix: String,
}

impl Default for ModelCard {
    fn default() -> Self {
        Self { pooling: "mean".into(), query_prefix: String::new(), passage_prefix: String::new() }
    }
}

/// The files of a model, read and identified, before any session is made.
pub struct ModelFiles {
    dir: PathBuf,
    card: ModelCard,
    model: Vec<u8>,
    tokenizer: Vec<u8>,
    id: EmbedderId,
}

impl ModelFiles {
    /// Finds and reads the model `name`.
    ///
    /// # Errors
    /// When a file is missing or not valid.
    pub fn read(places: &Places, name: &str) -> Result<Self, EmbedError> {
        let dir = places
            .model(name)
            .map_err(|searched| EmbedError::NoModel { name: name.to_owned(), searched })?;
        let card = read_card(&dir)?;
        let read = |file: &str| {
            let path = dir.join(file);
            fs::read(&path).at("read", &path)
        };
        let (model, tokenizer) = (read("model.onnx")?, read("tokenizer.json")?);
        let name =
            dir.file_name().map_or_else(|| name.to_owned(), |n| n.to_string_lossy().into_owned());
        let dim = read_dim(&dir)?;
        let id = EmbedderId {
            id: name,
            dim,
            pooling: card.pooling.clone(),
            query_prefix: card.query_prefix.clone(),
            passage_prefix: card.passage_prefix.clone(),
            model_sha256: sha256(&model),
            tokenizer_sha256: sha256(&tokenizer),
        };
        Ok(Self { dir, card, model, tokenizer, id })
    }

    /// What the vectors of this model may be compared with.
    #[must_use]
    pub fn id(&self) -> &EmbedderId {
        &self.id
    }

    /// The counter of this model's tokens.
    ///
    /// # Errors
    /// When `tokenizer.json` is not usable.
    pub fn token_counter(&self) -> Result<TokenCounter, EmbedError> {
        TokenCounter::from_json(&self.tokenizer)
            .map_err(|source| EmbedError::Tokenizer { name: self.id.id.clone(), source })
    }

    /// Loads ONNX Runtime and makes the first of at most `sessions` sessions.
    ///
    /// # Errors
    /// When the library or the model cannot be used; the first vector is computed as a check.
    pub fn load(self, places: &Places, sessions: usize) -> Result<OnnxEmbedder, EmbedError> {
        let environment = onnx::start(&places.onnxruntime()?)?;
        let embedder = OnnxEmbedder {
            files: self,
            environment,
            pool: Mutex::new(Pool { idle: Vec::new(), made: 0 }),
            returned: Condvar::new(),
            sessions: sessions.max(1),
        };
        let dim = embedder.run("ready", &[])?.vector.len();
        if dim != embedder.files.id.dim as usize {
            return Err(embedder.failed(&format!(
                "its vectors have {dim} numbers, its config.json says {}",
                embedder.files.id.dim
            )));
        }
        Ok(embedder)
    }
}

/// The embedder `name`, or `None` for [`NO_EMBEDDER`].
///
/// # Errors
/// When the model or the library cannot be used.
pub fn open(
    places: &Places,
    name: Option<&str>,
    sessions: usize,
) -> Result<Option<OnnxEmbedder>, EmbedError> {
    let name = name.unwrap_or(DEFAULT_MODEL);
    if name == NO_EMBEDDER {
        return Ok(None);
    }
    ModelFiles::read(places, name)?.load(places, sessions).map(Some)
}

fn read_card(dir: &Path) -> Result<ModelCard, EmbedError> {
    let path = dir.join("runbook-model.toml");
    let text = match fs::read_to_string(&path).at("read", &path) {
        Ok(text) => text,
        Err(e) if e.is_not_found() => return Ok(ModelCard::default()),
        Err(e) => return Err(e.into()),
    };
    let card: ModelCard = toml::from_str(&text)
        .map_err(|e| EmbedError::Card { path: path.clone(), message: e.to_string() })?;
    if !matches!(card.pooling.as_str(), "mean" | "cls") {
        let message = format!("pooling is `mean` or `cls`, not `{}`", card.pooling);
        return Err(EmbedError::Card { path, message });
    }
    Ok(card)
}

fn read_dim(dir: &Path) -> Result<u32, EmbedError> {
    let path = dir.join("config.json");
    let bytes = fs::read(&path).at("read", &path)?;
    let value: serde_json::Value = serde_json::from_slice(&bytes)
        .map_err(|e| EmbedError::Card { path: path.clone(), message: e.to_string() })?;
    value["hidden_size"]
        .as_u64()
        .and_then(|d| u32::try_from(d).ok())
        .ok_or(EmbedError::Card { path, message: "it has no number `hidden_size`".into() })
}

fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().fold(String::with_capacity(64), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

struct Pool {
    idle: Vec<TextEmbedding>,
    made: usize,
}

/// A model in ONNX Runtime, with at most one session a core, made when first needed.
pub struct OnnxEmbedder {
    files: ModelFiles,
    environment: ort::environment::Environment,
    pool: Mutex<Pool>,
    returned: Condvar,
    sessions: usize,
}

impl OnnxEmbedder {
    /// The counter of this model's tokens.
    ///
    /// # Errors
    /// When `tokenizer.json` is not usable.
    pub fn token_counter(&self) -> Result<TokenCounter, EmbedError> {
        self.files.token_counter()
    }

    fn failed(&self, message: &str) -> EmbedError {
        EmbedError::Model { name: self.files.id.id.clone(), message: message.to_owned() }
    }

    fn run(&self, text: &str, spans: &[Range<usize>]) -> Result<Embedded, EmbedError> {
        let spans = if self.pooling() == Pooling::Mean { spans } else { &[] };
        let mut session = self.take()?;
        let result = spans::run(&mut session, self.pooling(), text, spans);
        self.give_back(session);
        let embedded = result.map_err(|e| self.failed(&e.to_string()))?;
        if embedded.vector.iter().chain(&embedded.spans).all(|v| v.is_finite()) {
            Ok(embedded)
        } else {
            Err(self.failed("it returned a vector that is not finite"))
        }
    }

    fn pooling(&self) -> Pooling {
        if self.files.card.pooling == "cls" { Pooling::Cls } else { Pooling::Mean }
    }

    fn take(&self) -> Result<TextEmbedding, EmbedError> {
        let mut pool = self.pool.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some(session) = pool.idle.pop() {
                return Ok(session);
            }
            if pool.made < self.sessions {
                pool.made += 1;
                drop(pool);
                return self.make().inspect_err(|_| {
                    self.pool.lock().unwrap_or_else(PoisonError::into_inner).made -= 1;
                });
            }
            pool = self.returned.wait(pool).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn give_back(&self, session: TextEmbedding) {
        self.pool.lock().unwrap_or_else(PoisonError::into_inner).idle.push(session);
        self.returned.notify_one();
    }

    fn make(&self) -> Result<TextEmbedding, EmbedError> {
        let optional = |file: &str, default: &str| {
            fs::read(self.files.dir.join(file)).unwrap_or_else(|_| default.as_bytes().to_vec())
        };
        let tokenizer_files = TokenizerFiles {
            tokenizer_file: self.files.tokenizer.clone(),
            config_file: optional("config.json", "{}"),
            special_tokens_map_file: optional("special_tokens_map.json", "{}"),
            tokenizer_config_file: optional(
                "tokenizer_config.json",
                r#"{"model_max_length": 512, "pad_token": "[PAD]"}"#,
            ),
        };
        let model = UserDefinedEmbeddingModel::new(self.files.model.clone(), tokenizer_files)
            .with_pooling(self.pooling())
            .with_quantization(QuantizationMode::Dynamic);
        let mut options = InitOptionsUserDefined::new()
            .with_max_length(WINDOW_TOKENS_MAX)
            .with_intra_threads(1)
            .with_session_config("session.intra_op.allow_spinning", "0")
            .with_session_config("session.inter_op.allow_spinning", "0");
        options.environment = Some(self.environment.clone());
        TextEmbedding::try_new_from_user_defined(model, options)
            .map_err(|e| self.failed(&e.to_string()))
    }
}

impl Embedder for OnnxEmbedder {
    fn id(&self) -> &EmbedderId {
        &self.files.id
    }

    fn embed_passage(&self, text: &str, spans: &[Range<usize>]) -> Result<Embedded, EmbedError> {
        let prefix = &self.files.id.passage_prefix;
        let spans: Vec<_> =
            spans.iter().map(|s| s.start + prefix.len()..s.end + prefix.len()).collect();
        self.run(&format!("{prefix}{text}"), &spans)
    }

    fn embed_question(&self, text: &str) -> Result<Vec<f32>, EmbedError> {
        Ok(self.run(&format!("{}{text}", self.files.id.query_prefix), &[])?.vector)
    }
}
