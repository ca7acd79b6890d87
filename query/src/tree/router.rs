//! The router: from a path to a mount by its longest prefix at a `/` boundary, and the operations.

use super::envelope::{Envelope, Source};
use super::request::{Delete, Draw, Edit, Find, Grep, History, Load, Ls, Read, Write};
use super::store::Store;
use crate::snapshot::Snapshot;
use std::sync::Arc;

/// Where what was read or matched goes: the evidence of a session.
pub trait Evidence: Send + Sync {
    /// Notes the places that one operation or command touched. Called once for each that touched any, from
    /// every entry point.
    fn touched(&self, session: &str, places: &[Source]);
}

/// What the tree runs with.
#[derive(Clone, Default)]
pub struct Options {
    /// The daemon's own directory; without one there is no `/artifacts`.
    pub state: Option<std::path::PathBuf>,
    /// Where evidence goes.
    pub evidence: Option<Arc<dyn Evidence>>,
}

/// The tree for as long as the program runs.
pub struct Tree {
    options: Options,
}

impl Tree {
    /// A tree with its writable stores.
    #[must_use]
    pub fn new(options: Options) -> Self {
        Self { options }
    }

    /// The tree as one session sees it now. A session's name is what [`crate::service::Service`] accepts.
    #[must_use]
    pub fn view(self: &Arc<Self>, _snapshot: &Snapshot, session: &str) -> View {
        View { tree: Arc::clone(self), mounts: Vec::new(), session: session.into() }
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
    mounts: Vec<Mount>,
    session: String,
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

    fn todo(&self) -> Envelope {
        let _ = &self.tree.options;
        Envelope::default()
    }

    /// Lists a directory.
    #[must_use]
    pub fn ls(&self, _request: &Ls) -> Envelope {
        self.todo()
    }

    /// Reads a file, or lines of it.
    #[must_use]
    pub fn read(&self, _request: &Read) -> Envelope {
        self.todo()
    }

    /// Draws a directory.
    #[must_use]
    pub fn draw(&self, _request: &Draw) -> Envelope {
        self.todo()
    }

    /// Finds files and directories.
    #[must_use]
    pub fn find(&self, _request: &Find) -> Envelope {
        self.todo()
    }

    /// Searches lines.
    #[must_use]
    pub fn grep(&self, _request: &Grep) -> Envelope {
        self.todo()
    }

    /// All files at once; above the limit only their names.
    #[must_use]
    pub fn load(&self, _request: &Load) -> Envelope {
        self.todo()
    }

    /// Writes a file.
    #[must_use]
    pub fn write(&self, _request: &Write) -> Envelope {
        self.todo()
    }

    /// Replaces text in a file.
    #[must_use]
    pub fn edit(&self, _request: &Edit) -> Envelope {
        self.todo()
    }

    /// Deletes.
    #[must_use]
    pub fn delete(&self, _request: &Delete) -> Envelope {
        self.todo()
    }

    /// Lists versions.
    #[must_use]
    pub fn history(&self, _request: &History) -> Envelope {
        self.todo()
    }
}
