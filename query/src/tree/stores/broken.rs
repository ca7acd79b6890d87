//! A mount that does not work now: every operation says so, and the other mounts go on.

use crate::tree::error::TreeError;
use crate::tree::store::{Content, Entry, Meta, Store};

/// The store of a mount that cannot be opened.
pub struct Broken {
    mount: String,
    why: String,
}

impl Broken {
    /// With the reason, which must not hold a path of the machine.
    #[must_use]
    pub fn new(mount: &str, why: &str) -> Self {
        Self { mount: mount.into(), why: why.into() }
    }

    fn error<T>(&self) -> Result<T, TreeError> {
        Err(TreeError::Unavailable { mount: self.mount.clone(), why: self.why.clone() })
    }
}

impl Store for Broken {
    fn writable(&self) -> bool {
        false
    }

    fn stat(&self, _: &str, _: &str) -> Result<Meta, TreeError> {
        self.error()
    }

    fn list(&self, _: &str, _: &str) -> Result<Vec<Entry>, TreeError> {
        self.error()
    }

    fn read(&self, _: &str, _: &str) -> Result<Content, TreeError> {
        self.error()
    }

    fn write(&self, _: &str, _: &str, _: &[u8]) -> Result<(), TreeError> {
        self.error()
    }

    fn make_dir(&self, _: &str, _: &str) -> Result<(), TreeError> {
        self.error()
    }

    fn delete(&self, _: &str, _: &str) -> Result<(), TreeError> {
        self.error()
    }
}
