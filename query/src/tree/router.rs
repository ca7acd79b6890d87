//! The router: from a path to a mount, by its longest prefix at a `/` boundary.

use super::envelope::{Envelope, Source};
use super::error::TreeError;
use super::limits::Limits;
use super::permits::{Permit, Permits};
use super::store::{Content, Entry, Kind, Meta, Store, Version};
use super::stores::broken::Broken;
use super::stores::generation::GenerationStore;
use super::stores::scratch::Scratch;
use super::{overflow, path};
use crate::snapshot::{RepoState, Snapshot};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

/// Where what was read or matched goes: the evidence of a session.
pub trait Evidence: Send + Sync {
    /// Notes the places that one operation or command touched. Called once for each that touched any, from
    /// every entry point.
    fn touched(&self, session: &str, places: &[Source]);
}

/// What the tree runs with.
#[derive(Clone, Default)]
pub struct Options {
    /// The store of `/tmp`; in memory where none is given.
    pub scratch: Option<Arc<dyn Store>>,
    /// The store of `/artifacts`; without one there is no such mount.
    pub artifacts: Option<Arc<dyn Store>>,
    /// Further mounts, path and store.
    pub mounts: Vec<Mount>,
    /// Where evidence goes.
    pub evidence: Option<Arc<dyn Evidence>>,
    /// The bounds.
    pub limits: Limits,
}

/// The tree for as long as the program runs.
pub struct Tree {
    scratch: Arc<dyn Store>,
    options: Options,
    generations: Mutex<Vec<Arc<GenerationStore>>>,
    permits: Arc<Permits>,
}

impl Tree {
    /// A tree with its writable stores.
    #[must_use]
    pub fn new(options: Options) -> Self {
        let scratch = options
            .scratch
            .clone()
            .unwrap_or_else(|| Arc::new(Scratch::new(&options.limits)) as Arc<dyn Store>);
        Self { scratch, options, generations: Mutex::default(), permits: Arc::default() }
    }

    /// The bounds.
    #[must_use]
    pub fn limits(&self) -> &Limits {
        &self.options.limits
    }

    /// The tree as one session sees it now; the wall clock of an operation starts here. A session's name is
    /// what [`crate::service::Service`] accepts.
    #[must_use]
    pub fn view(self: &Arc<Self>, snapshot: &Snapshot, session: &str) -> View {
        let mut mounts = self.repositories(snapshot);
        let mut mount = |at: &str, about: &str, store: &Arc<dyn Store>| {
            mounts.push(Mount { at: at.into(), about: about.into(), store: Arc::clone(store) });
        };
        if let Some(artifacts) = &self.options.artifacts {
            let kept = artifacts.keeps().unwrap_or_else(|| "not open".into());
            mount("/artifacts", &format!("durable files, {kept}"), artifacts);
        }
        mount("/tmp", "scratch of this session, gone after a while", &self.scratch);
        mounts.extend(self.options.mounts.iter().cloned());
        mounts.sort_by(|a, b| a.at.cmp(&b.at));
        View {
            tree: Arc::clone(self),
            mounts: mounts.into(),
            session: session.into(),
            until: Arc::new(Mutex::new(Instant::now() + self.limits().wall_clock())),
        }
    }

    fn repositories(&self, snapshot: &Snapshot) -> Vec<Mount> {
        let mut held = self.generations.lock().unwrap_or_else(PoisonError::into_inner);
        held.retain(|store| {
            snapshot.repos.iter().any(|r| r.corpus.as_ref().is_some_and(|c| store.is_of(c)))
        });
        let mut store = |state: &RepoState, at: &str| -> Arc<dyn Store> {
            let Some(corpus) = &state.corpus else {
                return Arc::new(Broken::new(at, "no generation is open yet"));
            };
            if let Some(store) = held.iter().find(|s| s.is_of(corpus)) {
                return Arc::<GenerationStore>::clone(store);
            }
            let store =
                Arc::new(GenerationStore::new(Arc::clone(corpus), self.limits().memory_bytes));
            held.push(Arc::clone(&store));
            store
        };
        let mut mounts: Vec<Mount> = Vec::new();
        for (n, state) in snapshot.repos.iter().enumerate() {
            let at = if n == 0 {
                path::HOME.to_owned()
            } else {
                path::resolve("/repo", &format!("./{}", state.repo.name.replace("..", "_")))
                    .unwrap_or_else(|_| format!("/repo/{n}"))
            };
            let about = match state.repo.name.as_str() {
                "" => "the runbooks, read-only".to_owned(),
                name => format!("the repository {name}, read-only"),
            };
            mounts.push(Mount { store: store(state, &at), at, about });
        }
        mounts
    }

    /// A place among what may run at once; waits a moment for one.
    ///
    /// # Errors
    /// [`TreeError::Busy`] when there is none.
    pub fn enter(&self) -> Result<Permit, TreeError> {
        Permits::enter(&self.permits, self.limits().concurrent)
    }
}

/// One mount of a view.
#[derive(Clone)]
pub struct Mount {
    /// Where: `/runbooks`.
    pub at: String,
    /// One line that says what it is.
    pub about: String,
    /// Its store.
    pub store: Arc<dyn Store>,
}

/// The tree as one session sees it at one moment. Cheap to make and to clone; every operation blocks.
#[derive(Clone)]
pub struct View {
    tree: Arc<Tree>,
    mounts: Arc<[Mount]>,
    session: String,
    until: Arc<Mutex<Instant>>,
}

/// What a path leads to.
enum Place<'a> {
    /// A path in a mount.
    In(&'a Mount, String),
    /// A directory above mounts.
    Above,
}

impl View {
    /// The mounts, by path.
    #[must_use]
    pub fn mounts(&self) -> &[Mount] {
        &self.mounts
    }

    /// The session.
    #[must_use]
    pub fn session(&self) -> &str {
        &self.session
    }

    /// The bounds.
    #[must_use]
    pub fn limits(&self) -> &Limits {
        self.tree.limits()
    }

    /// A place among what may run at once.
    ///
    /// # Errors
    /// [`TreeError::Busy`] when there is none.
    pub fn enter(&self) -> Result<Permit, TreeError> {
        self.tree.enter()
    }

    /// The same view with nothing that can be written but its scratch: for work on somebody's behalf.
    #[must_use]
    pub fn with_scratch_alone(&self) -> Self {
        let keep = |m: &&Mount| !m.store.writable() || m.at == "/tmp";
        Self { mounts: self.mounts.iter().filter(keep).cloned().collect(), ..self.clone() }
    }

    /// The same view with a wall clock of its own, which starts now.
    #[must_use]
    pub fn renewed(&self) -> Self {
        let until = Instant::now() + self.limits().wall_clock();
        Self { until: Arc::new(Mutex::new(until)), ..self.clone() }
    }

    /// Starts the wall clock anew, for all clones of this view.
    pub fn restart(&self) {
        let until = Instant::now() + self.limits().wall_clock();
        *self.until.lock().unwrap_or_else(PoisonError::into_inner) = until;
    }

    /// Whether there is time left.
    ///
    /// # Errors
    /// [`TreeError::Stopped`] when there is none.
    pub fn check_time(&self) -> Result<(), TreeError> {
        if Instant::now() < *self.until.lock().unwrap_or_else(PoisonError::into_inner) {
            return Ok(());
        }
        let most = self.limits().wall_clock_s;
        Err(TreeError::Stopped(format!("it took longer than {most} seconds")))
    }

    /// A word that changes with everything that is mounted read-only.
    #[must_use]
    pub fn stamp(&self) -> String {
        let mut hasher = blake3::Hasher::new();
        for mount in self.mounts.iter() {
            hasher.update(mount.at.as_bytes());
            hasher.update(mount.store.stamp().unwrap_or_default().as_bytes());
            hasher.update(b"\n");
        }
        hasher.finalize().to_hex()[..32].to_owned()
    }

    /// The mount with the longest prefix, and the path in it.
    fn mount(&self, path: &str) -> Option<(&Mount, String)> {
        self.mounts
            .iter()
            .filter_map(|m| path::beneath(path, &m.at).map(|rest| (m, rest)))
            .max_by_key(|(m, _)| m.at.len())
            .map(|(m, rest)| (m, rest.to_owned()))
    }

    fn place(&self, path: &str) -> Result<Place<'_>, TreeError> {
        if let Some((mount, rest)) = self.mount(path) {
            return Ok(Place::In(mount, rest));
        }
        let above = self.mounts.iter().any(|m| path::beneath(&m.at, path).is_some());
        if above { Ok(Place::Above) } else { Err(TreeError::NotFound(path.into())) }
    }

    /// What a path leads to, for a change.
    fn to_change(&self, path: &str) -> Result<(&Mount, String), TreeError> {
        match self.place(path) {
            Ok(Place::In(mount, rest)) if !rest.is_empty() && mount.store.writable() => {
                Ok((mount, rest))
            }
            Ok(Place::In(mount, rest)) if !rest.is_empty() => {
                // A mount that does not work says so; all others are read-only.
                match mount.store.stat(&self.session, "") {
                    Err(e @ TreeError::Unavailable { .. }) => Err(e.at(&mount.at)),
                    _ => Err(TreeError::ReadOnly(path.into())),
                }
            }
            _ => Err(TreeError::ReadOnly(path.into())),
        }
    }

    /// Whether a path can be changed at all, without changing it.
    ///
    /// # Errors
    /// [`TreeError::ReadOnly`], or its store does not work.
    pub fn write_check(&self, path: &str) -> Result<(), TreeError> {
        self.to_change(path).map(|_| ())
    }

    /// What is at a path.
    ///
    /// # Errors
    /// When nothing is, or its store does not work.
    pub fn stat(&self, path: &str) -> Result<Meta, TreeError> {
        match self.place(path)? {
            Place::In(mount, rest) => {
                mount.store.stat(&self.session, &rest).map_err(|e| e.at(&mount.at))
            }
            Place::Above => Ok(Meta { kind: Kind::Dir, size: 0, modified: 0 }),
        }
    }

    /// The names in a directory, in byte order.
    ///
    /// # Errors
    /// When there is no such directory, or its store does not work.
    pub fn list(&self, path: &str) -> Result<Vec<Entry>, TreeError> {
        let mut entries = match self.place(path)? {
            Place::In(mount, rest) => {
                mount.store.list(&self.session, &rest).map_err(|e| e.at(&mount.at))?
            }
            Place::Above => Vec::new(),
        };
        // Mounts beneath stand in the listing of what is above them.
        for mount in self.mounts.iter() {
            let Some(rest) = path::beneath(&mount.at, path).filter(|r| !r.is_empty()) else {
                continue;
            };
            let name = rest.split('/').next().unwrap_or(rest);
            if !entries.iter().any(|e| e.name == name) {
                let meta = Meta { kind: Kind::Dir, size: 0, modified: 0 };
                entries.push(Entry { name: name.into(), meta });
            }
        }
        entries.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(entries)
    }

    /// A file's bytes.
    ///
    /// # Errors
    /// When there is no such file, or its store does not work.
    pub fn read_bytes(&self, path: &str) -> Result<Content, TreeError> {
        match self.place(path)? {
            Place::In(mount, rest) => {
                mount.store.read(&self.session, &rest).map_err(|e| e.at(&mount.at))
            }
            Place::Above => Err(TreeError::IsDirectory(path.into())),
        }
    }

    /// A version of a file.
    ///
    /// # Errors
    /// When there is none.
    pub fn read_version(&self, path: &str, version: &str) -> Result<Content, TreeError> {
        match self.place(path)? {
            Place::In(mount, rest) => {
                mount.store.read_version(&self.session, &rest, version).map_err(|e| e.at(&mount.at))
            }
            Place::Above => Err(TreeError::IsDirectory(path.into())),
        }
    }

    /// The versions of a file, oldest first.
    ///
    /// # Errors
    /// When none are kept, or there is no such file.
    pub fn versions(&self, path: &str) -> Result<Vec<Version>, TreeError> {
        match self.place(path)? {
            Place::In(mount, rest) => {
                mount.store.history(&self.session, &rest).map_err(|e| e.at(&mount.at))
            }
            Place::Above => Err(TreeError::IsDirectory(path.into())),
        }
    }

    /// Writes a file as a whole.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write_bytes(&self, path: &str, content: &[u8]) -> Result<(), TreeError> {
        let (mount, rest) = self.to_change(path)?;
        mount.store.write(&self.session, &rest, content).map_err(|e| e.at(&mount.at))
    }

    /// Makes a directory.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn make_dir(&self, path: &str) -> Result<(), TreeError> {
        if self.stat(path).is_ok_and(|m| m.kind == Kind::Dir) {
            return Ok(());
        }
        let (mount, rest) = self.to_change(path)?;
        mount.store.make_dir(&self.session, &rest).map_err(|e| e.at(&mount.at))
    }

    /// Deletes a file or an empty directory.
    ///
    /// # Errors
    /// When it cannot be deleted.
    pub fn remove(&self, path: &str) -> Result<(), TreeError> {
        let (mount, rest) = self.to_change(path)?;
        mount.store.delete(&self.session, &rest).map_err(|e| e.at(&mount.at))
    }

    /// Deletes a directory with all that is in it.
    ///
    /// # Errors
    /// When something cannot be deleted; what was deleted before stays deleted.
    pub fn remove_all(&self, path: &str) -> Result<(), TreeError> {
        let (mount, rest) = self.to_change(path)?;
        let at = |e: TreeError| e.at(&mount.at);
        let mut open = vec![rest.clone()];
        let mut dirs = Vec::new();
        while let Some(dir) = open.pop() {
            self.check_time()?;
            for entry in mount.store.list(&self.session, &dir).map_err(at)? {
                let inner = path::join(&dir, &entry.name);
                match entry.meta.kind {
                    Kind::Dir => open.push(inner),
                    Kind::File => mount.store.delete(&self.session, &inner).map_err(at)?,
                }
            }
            dirs.push(dir);
        }
        for dir in dirs.iter().rev() {
            match mount.store.delete(&self.session, dir) {
                // Where directories are only what lies above files, it is gone with its last file.
                Ok(()) | Err(TreeError::NotFound(_)) => {}
                Err(e) => return Err(at(e)),
            }
        }
        Ok(())
    }

    /// A place in the tree as a source.
    #[must_use]
    pub fn source(&self, path: &str, lines: Option<[u32; 2]>) -> Source {
        let mut source = Source {
            path: path.into(),
            repo: None,
            document: None,
            heading: None,
            lines,
            generation: None,
        };
        let Some((mount, rest)) = self.mount(path) else { return source };
        if let Some(document) = mount.store.document(&rest) {
            let record = document.record;
            let line = lines.map_or(1, |l| l[0]);
            let above = record.headings.iter().take_while(|h| h.line <= line).last();
            source.heading = Some(above.map_or(&record.title, |h| &h.text).clone());
            source.repo = Some(document.repo.to_owned());
            source.generation = Some(document.generation.to_owned());
            source.document = Some(rest);
        }
        source
    }

    /// Ends an operation: bounds the result and notes its evidence. `kept` is the path at which all of the
    /// content is already, if it is.
    #[must_use]
    pub fn finish(&self, mut envelope: Envelope, kept: Option<&str>) -> Envelope {
        overflow::bound(self, &mut envelope, kept);
        if let Some(evidence) = &self.tree.options.evidence
            && !envelope.touched.is_empty()
        {
            evidence.touched(&self.session, &envelope.touched);
        }
        envelope
    }
}
