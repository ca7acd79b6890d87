//! The service: the live snapshot, the embedder, and the one way in which a question is answered.

mod asking;
mod citing;
mod modelled;

use crate::citation;
use crate::engine::{self, Ask, Policy, Verdict};
use crate::evidence;
use crate::journal::Journal;
use crate::llm::Llm;
use crate::metrics::Stage;
use crate::reply::{Citation, Provenance, RefusalReason, Reply};
use crate::session::Sessions;
use crate::snapshot::{self, Repo, RepoState, Snapshot};
use crate::tree::router::{Options as TreeOptions, Tree, View};
use arc_swap::{ArcSwap, ArcSwapOption};
use asking::Asking;
pub use modelled::Draft;
use runbook_shared::embed::{EmbedError, Embedder, ModelFiles, NO_EMBEDDER};
use runbook_shared::generation::manifest::Manifest;
use runbook_shared::lexical::LexicalError;
use runbook_shared::limits::{K_DEFAULT, K_MAX};
use runbook_shared::locate::{DEFAULT_MODEL, Places};
use runbook_shared::retrieval::arms;
use runbook_shared::retrieval::corpus::Corpus;
use runbook_shared::retrieval::question::{Question, QuestionError};
use rustc_hash::FxHashMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

/// Texts of at most this many bytes are embedded as they are; of longer ones, their best terms.
const EMBEDDED_BYTES_MAX: usize = 1200;
/// Vectors of questions that are remembered.
const VECTORS_KEPT: usize = 512;

/// The longest name of a session.
const SESSION_CHARS_MAX: usize = 128;

/// What a client asks.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// The question.
    pub question: String,
    /// How many sections to name.
    pub k: Option<usize>,
    /// Path prefix, or `repo:NAME`.
    pub scope: Option<String>,
    /// The conversation.
    pub session: Option<String>,
    /// Whether to explain.
    pub explain: bool,
}

/// A section that was found, with its raw BM25 and cosine.
pub type SearchResult = (Citation, f32, Option<f32>);

/// Why there is no reply.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// The question cannot be asked.
    #[error(transparent)]
    Question(#[from] QuestionError),
    /// `k` is out of range.
    #[error("k is a number from 1 to {K_MAX}, not {0}")]
    K(usize),
    /// A scope names a repository that is not served.
    #[error("no repository is called `{0}`")]
    NoRepo(String),
    /// A scope holds no document.
    #[error("no document is `{0}` or lies beneath it")]
    NoScope(String),
    /// A session's name is too long.
    #[error("a session is named by at most {SESSION_CHARS_MAX} letters, digits, `-` and `_`")]
    Session,
    /// An answer that is to be checked cannot be.
    #[error("{0}")]
    Answer(String),
    /// No generation is open.
    #[error("nothing can be answered yet: {0}")]
    NotReady(String),
    /// An index cannot be read.
    #[error(transparent)]
    Index(#[from] LexicalError),
}

/// What the service runs with.
pub struct Options {
    /// What is served.
    pub repos: Vec<Repo>,
    /// How questions are answered.
    pub policy: Policy,
    /// The embedder's name, or `none`; by the generation where none is named.
    pub embedder: Option<String>,
    /// Where to look for it.
    pub places: Places,
}

/// The live service.
pub struct Service {
    options: Options,
    snapshot: ArcSwap<Snapshot>,
    embedder: ArcSwapOption<Box<dyn Embedder>>,
    vectors: Mutex<FxHashMap<String, Arc<[f32]>>>,
    sessions: Sessions,
    evidence: Arc<evidence::Store>,
    journal: Journal,
    replies: AtomicU64,
    reloads: AtomicU64,
    started: Instant,
    salt: String,
    tree: Arc<Tree>,
    llm: Option<Arc<Llm>>,
}

impl Service {
    /// A service that has not looked for generations yet.
    #[must_use]
    pub fn new(options: Options) -> Self {
        let repos = options
            .repos
            .iter()
            .map(|repo| RepoState {
                repo: repo.clone(),
                corpus: None,
                problem: None,
                refused_id: None,
                last_run: None,
            })
            .collect();
        let salt = format!("{}-{}", jiff::Timestamp::now().as_nanosecond(), std::process::id());
        let evidence: Arc<evidence::Store> = Arc::default();
        let of_tree = TreeOptions { evidence: Some(evidence.clone()), ..TreeOptions::default() };
        Self {
            options,
            snapshot: ArcSwap::from_pointee(Snapshot { repos }),
            embedder: ArcSwapOption::empty(),
            vectors: Mutex::default(),
            sessions: Sessions::default(),
            evidence,
            journal: Journal::default(),
            replies: AtomicU64::new(0),
            reloads: AtomicU64::new(0),
            started: Instant::now(),
            salt,
            tree: Arc::new(Tree::new(of_tree)),
            llm: None,
        }
    }

    /// The same service over another tree, whose evidence should go to [`Service::evidence`].
    #[must_use]
    pub fn with_tree(self, tree: Arc<Tree>) -> Self {
        Self { tree, ..self }
    }

    /// The same with a language model behind the guard.
    #[must_use]
    pub fn with_llm(self, llm: Option<Arc<Llm>>) -> Self {
        Self { llm, ..self }
    }

    /// The language model, where one is configured.
    #[must_use]
    pub fn llm(&self) -> Option<&Llm> {
        self.llm.as_deref()
    }

    /// The tree.
    #[must_use]
    pub fn tree(&self) -> &Arc<Tree> {
        &self.tree
    }

    /// The tree as a session sees it now; the session's name, a new one where none is given.
    ///
    /// # Errors
    /// [`AskError::Session`] when it is no name.
    pub fn view(&self, session: Option<&str>) -> Result<View, AskError> {
        let session = self.session_name(session)?;
        Ok(self.tree.view(&self.snapshot(), &session))
    }

    /// The same, with a journal that is kept on disk.
    #[must_use]
    pub fn with_journal(self, journal: Journal) -> Self {
        Self { journal, ..self }
    }

    /// What is kept of every question.
    #[must_use]
    pub fn journal(&self) -> &Journal {
        &self.journal
    }

    /// The data directories.
    #[must_use]
    pub fn data_dirs(&self) -> Vec<PathBuf> {
        self.options.repos.iter().map(|r| r.data.clone()).collect()
    }

    /// What is served now.
    #[must_use]
    pub fn snapshot(&self) -> Arc<Snapshot> {
        self.snapshot.load_full()
    }

    /// How questions are answered.
    #[must_use]
    pub fn policy(&self) -> &Policy {
        &self.options.policy
    }

    /// What sessions have seen.
    #[must_use]
    pub fn evidence(&self) -> &Arc<evidence::Store> {
        &self.evidence
    }

    /// The embedder, once it is loaded.
    #[must_use]
    pub fn embedder(&self) -> Option<Arc<Box<dyn Embedder>>> {
        self.embedder.load_full()
    }

    /// How often a new snapshot was swapped in, and seconds since the start.
    #[must_use]
    pub fn uptime(&self) -> (u64, u64) {
        (self.reloads.load(Ordering::Relaxed), self.started.elapsed().as_secs())
    }

    /// Loads the embedder that the open generations need, if there is one to load.
    ///
    /// # Errors
    /// When the model or the library cannot be used.
    pub fn load_embedder(&self) -> Result<(), EmbedError> {
        if self.options.embedder.as_deref() == Some(NO_EMBEDDER) {
            return Ok(());
        }
        let corpora = self.snapshot().corpora();
        let needed: Vec<_> =
            corpora.iter().filter_map(|c| c.generation.manifest.embedder.clone()).collect();
        let loaded = self.embedder();
        let fits = loaded.as_ref().is_some_and(|l| needed.iter().any(|n| n == l.id()));
        let Some(first) = needed.first().filter(|_| !fits) else { return Ok(()) };
        let own = if first.id.is_empty() { DEFAULT_MODEL } else { &first.id };
        let name = self.options.embedder.as_deref().unwrap_or(own);
        let files = ModelFiles::read(&self.options.places, name)?;
        if loaded.as_ref().is_some_and(|l| l.id() == files.id()) {
            return Ok(()); // Reported when it was loaded.
        }
        if files.id() != first {
            tracing::error!(
                "the generation was made with another model than `{name}` is: only words are searched; run runbook-ingest again"
            );
        }
        let sessions = std::thread::available_parallelism().map_or(1, usize::from);
        let embedder = files.load(&self.options.places, sessions)?;
        self.embedder.store(Some(Arc::new(Box::new(embedder))));
        Ok(())
    }

    /// Opens what there is now. A generation that cannot be opened, or that does not exist yet, is no
    /// error here: [`Service::refresh`] goes on looking.
    ///
    /// # Errors
    /// When the generations need an embedder that cannot be loaded.
    pub fn open(&self) -> Result<(), EmbedError> {
        self.look();
        self.load_embedder()
    }

    /// Looks for newer generations and swaps them in.
    pub fn refresh(&self) {
        if self.look()
            && let Err(e) = self.load_embedder()
        {
            tracing::error!("{e}; only words are searched");
        }
    }

    fn look(&self) -> bool {
        let before = self.snapshot();
        let mut next = Snapshot::clone(&before);
        let mut changed = false;
        for state in &mut next.repos {
            if let Some(newer) = snapshot::refresh(state) {
                *state = newer;
                changed = true;
            }
        }
        if changed {
            self.snapshot.store(Arc::new(next));
            self.reloads.fetch_add(1, Ordering::Relaxed);
        }
        changed
    }

    /// Answers a question from one snapshot, and notes it in the journal.
    ///
    /// # Errors
    /// When it cannot be asked, or nothing is open to be asked.
    pub fn ask(&self, request: &Request) -> Result<Reply, AskError> {
        let reply = self.refine(self.draft(request)?, &|_| {});
        self.noted(request, &reply);
        Ok(reply)
    }

    /// Notes a reply in the journal.
    pub fn noted(&self, request: &Request, reply: &Reply) {
        let asked = request.question.trim();
        let follows = reply.route.iter().any(|step| step == asking::FOLLOW_UP);
        let turn = follows.then(|| self.sessions.last(&reply.session, Instant::now())).flatten();
        let completed = turn.map_or_else(|| asked.to_owned(), |t| t.question);
        self.journal.note(asked, &completed, request.scope.as_deref(), reply);
    }

    /// Answers a question without a note of it, and without a language model: for looking once more at one
    /// that was asked.
    ///
    /// # Errors
    /// As [`Service::ask`].
    pub fn answer(&self, request: &Request) -> Result<Reply, AskError> {
        Ok(self.draft(request)?.reply)
    }

    /// The engine's reply, before a language model has seen it; [`Service::refine`] goes on with it.
    ///
    /// # Errors
    /// As [`Service::ask`].
    pub fn draft(&self, request: &Request) -> Result<Draft, AskError> {
        let started = Instant::now();
        let question = Question::parse(&request.question)?;
        let k = checked_k(request.k)?;
        let session = self.session_name(request.session.as_deref())?;
        let snapshot = self.snapshot();
        let corpora = self.corpora(&snapshot, request.scope.as_deref())?;
        let asking = Asking { service: self, corpora: &corpora, request, k };
        let (mut verdict, question) = asking.verdict(&question, &session)?;
        self.journal.metrics.stage(Stage::Answer, started.elapsed());
        note_missing(&mut verdict, &snapshot, request.scope.as_deref());
        let named: Vec<&Citation> = verdict.citations.iter().chain(&verdict.related).collect();
        let nearest = verdict.refusal.as_ref().map_or(&[][..], |r| &r.nearest);
        self.show(&session, &corpora, &named, nearest);
        let provenance = provenance(&snapshot, corpora.get(verdict.corpus), verdict.degraded);
        let reply = Reply {
            id: self.new_id("r"),
            answer: verdict.answer,
            band: verdict.band,
            citations: verdict.citations,
            related: verdict.related,
            confidence: verdict.confidence.get(),
            refusal: verdict.refusal,
            provenance,
            route: verdict.route,
            session,
            took_ms: (started.elapsed().as_secs_f64() * 1e6).round() / 1e3,
            explain: verdict.explain,
            llm: None,
        };
        Ok(Draft { reply, question, request: request.clone(), snapshot, corpora, k })
    }

    /// All candidates for a question, best first.
    ///
    /// # Errors
    /// As [`Service::ask`].
    pub fn find(
        &self,
        request: &Request,
    ) -> Result<runbook_shared::retrieval::search::Found, AskError> {
        let question = Question::parse(&request.question)?;
        let snapshot = self.snapshot();
        let corpora = self.corpora(&snapshot, request.scope.as_deref())?;
        let vector = self.question_vector(&question, &corpora);
        let ask = Ask {
            question: &question,
            vector: vector.as_ref().map(|(v, sha)| (&**v, sha.as_str())),
            scope: request.scope.as_deref(),
            k: K_MAX,
            nearest: K_MAX,
            explain: false,
            exact: None,
        };
        Ok(engine::search(&corpora, &ask, self.policy())?)
    }

    /// Sections for a question, without a verdict; they become sources of the session that is named.
    ///
    /// # Errors
    /// As [`Service::ask`].
    pub fn search(&self, request: &Request) -> Result<(Vec<SearchResult>, Provenance), AskError> {
        let question = Question::parse(&request.question)?;
        let k = checked_k(request.k)?;
        let snapshot = self.snapshot();
        let corpora = self.corpora(&snapshot, request.scope.as_deref())?;
        let vector = self.question_vector(&question, &corpora);
        let ask = Ask {
            question: &question,
            vector: vector.as_ref().map(|(v, sha)| (&**v, sha.as_str())),
            scope: request.scope.as_deref(),
            k,
            nearest: k,
            explain: false,
            exact: None,
        };
        let found = engine::search(&corpora, &ask, self.policy())?;
        let session = request.session.as_deref().map(|s| self.session_name(Some(s))).transpose()?;
        let results: Vec<SearchResult> = found
            .hits
            .iter()
            .take(k)
            .map(|hit| {
                let corpus = &corpora[hit.corpus];
                let (chunk, section) = corpus.generation.section(hit.section);
                let passage = crate::passage::choose(chunk, section, &found.terms[hit.corpus]).0;
                let citation =
                    citation::cite(corpus, hit.section, &passage, hit.fused.0, corpora.len() > 1);
                (citation, hit.bm25.0, hit.cosine.map(|c| c.0))
            })
            .collect();
        if let Some(session) = session {
            let named: Vec<&Citation> = results.iter().map(|r| &r.0).collect();
            self.show(&session, &corpora, &named, &[]);
        }
        let first = found.hits.first().map_or(0, |h| h.corpus);
        Ok((results, provenance(&snapshot, corpora.get(first), vector.is_none())))
    }

    /// The open corpora that a scope can mean.
    fn corpora(
        &self,
        snapshot: &Snapshot,
        scope: Option<&str>,
    ) -> Result<Vec<Arc<Corpus>>, AskError> {
        let mut corpora = snapshot.corpora();
        if let Some(name) = scope.and_then(|s| s.strip_prefix("repo:")) {
            if !snapshot.repos.iter().any(|r| r.repo.name == name) {
                return Err(AskError::NoRepo(name.to_owned()));
            }
            corpora.retain(|c| c.repo == name);
        }
        if corpora.is_empty() {
            return Err(AskError::NotReady(snapshot.problem()));
        }
        if let Some(prefix) = scope.filter(|s| !s.starts_with("repo:")) {
            let indexed = corpora.iter().any(|c| !c.is_empty());
            if indexed && corpora.iter().all(|c| c.scope(Some(prefix)).is_empty()) {
                return Err(AskError::NoScope(prefix.to_owned()));
            }
        }
        Ok(corpora)
    }

    /// The name of a session: a new one where none is named.
    ///
    /// # Errors
    /// When the name is not one.
    pub fn session_name(&self, named: Option<&str>) -> Result<String, AskError> {
        let valid = |s: &str| {
            !s.is_empty()
                && s.len() <= SESSION_CHARS_MAX
                && s.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'))
        };
        match named {
            None => Ok(self.new_id("s")),
            Some(name) if valid(name) => Ok(name.to_owned()),
            Some(_) => Err(AskError::Session),
        }
    }

    /// The question's vector; none when the embedder is off, does not fit, or fails.
    fn question_vector(
        &self,
        question: &Question,
        corpora: &[Arc<Corpus>],
    ) -> Option<(Arc<[f32]>, String)> {
        let embedder = self.embedder()?;
        let id = embedder.id();
        let fits = |c: &&Arc<Corpus>| c.generation.manifest.embedder.as_ref() == Some(id);
        let corpus = corpora.iter().find(fits)?;
        let text = embedded_text(question, corpus);
        let lock = || self.vectors.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(vector) = lock().get(&text) {
            return Some((Arc::clone(vector), id.model_sha256.clone()));
        }
        let started = Instant::now();
        match embedder.embed_question(&text) {
            Ok(vector) => {
                self.journal.metrics.stage(Stage::Embed, started.elapsed());
                let vector: Arc<[f32]> = vector.into();
                let mut kept = lock();
                if kept.len() >= VECTORS_KEPT {
                    kept.clear();
                }
                kept.insert(text, Arc::clone(&vector));
                Some((vector, id.model_sha256.clone()))
            }
            Err(e) => {
                tracing::error!("{e}; this question is answered by words alone");
                None
            }
        }
    }

    fn new_id(&self, kind: &str) -> String {
        let n = self.replies.fetch_add(1, Ordering::Relaxed);
        format!("{kind}{}", &blake3::hash(format!("{}-{n}", self.salt).as_bytes()).to_hex()[..20])
    }
}

fn checked_k(k: Option<usize>) -> Result<usize, AskError> {
    match k.unwrap_or(K_DEFAULT) {
        k @ 1..=K_MAX => Ok(k),
        k => Err(AskError::K(k)),
    }
}

/// A long paste says little as a whole: its rarest terms that the corpus knows are embedded.
fn embedded_text(question: &Question, corpus: &Corpus) -> String {
    if question.text().len() <= EMBEDDED_BYTES_MAX {
        return question.text().to_owned();
    }
    let terms = arms::look_up(question, corpus);
    let words: Vec<&str> = terms
        .iter()
        .filter(|t| t.df > 0 && !t.term.within)
        .map(|t| t.term.surface.as_str())
        .collect();
    words.join(" ")
}

/// A repository that is not open was not searched: the reply says so, and never that it is not there.
fn note_missing(verdict: &mut Verdict, snapshot: &Snapshot, scope: Option<&str>) {
    if scope.is_some_and(|s| s.starts_with("repo:")) {
        return;
    }
    let closed = snapshot.repos.iter().filter(|r| r.corpus.is_none());
    let missing: Vec<&str> = closed.map(|r| r.repo.name.as_str()).collect();
    if missing.is_empty() {
        return;
    }
    verdict.degraded = true;
    if let Some(refusal) = &mut verdict.refusal
        && matches!(
            refusal.reason,
            RefusalReason::NoEvidence | RefusalReason::EmptyIndex | RefusalReason::Degraded
        )
    {
        refusal.reason = RefusalReason::Degraded;
        refusal.message = format!(
            "not every repository could be searched ({} has no generation), so this says nothing about what is not there; the nearest sections are listed",
            missing.join(", ")
        );
    }
}

fn provenance(snapshot: &Snapshot, corpus: Option<&Arc<Corpus>>, degraded: bool) -> Provenance {
    let Some(corpus) = corpus else { return Provenance { degraded, ..Provenance::default() } };
    let manifest = &corpus.generation.manifest;
    let last_run = snapshot
        .repos
        .iter()
        .find(|r| r.repo.name == corpus.repo)
        .and_then(|r| r.last_run.as_ref());
    Provenance {
        generation: Some(corpus.generation.id.clone()),
        commit: manifest.commit.clone(),
        indexed_at: Some(manifest.indexed_at.clone()),
        source_checked_at: last_run
            .and_then(|r| r.source_checked_at.clone())
            .or_else(|| Some(manifest.indexed_at.clone())),
        age_s: age(manifest),
        degraded,
    }
}

/// Seconds since a generation was written; 0 when the clock stands before that.
#[must_use]
pub fn age(manifest: &Manifest) -> Option<u64> {
    let at: jiff::Timestamp = manifest.indexed_at.parse().ok()?;
    Some(u64::try_from(jiff::Timestamp::now().as_second() - at.as_second()).unwrap_or(0))
}
