//! What a command line did beside printing: what it read, and what must be said even behind `2>/dev/null`.

use crate::tree::envelope::{Failure, Source};
use rustc_hash::FxHashSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Complaints that are kept of one command line.
const FAILURES_MAX: usize = 20;

/// Notes of one command line, shared by its parts.
#[derive(Default)]
pub struct Notes {
    held: Mutex<Held>,
}

/// What is noted.
#[derive(Default)]
pub struct Held {
    /// What was read or matched, in order, each place once.
    pub touched: Vec<Source>,
    /// The same, for looking up.
    known: FxHashSet<Source>,
    /// What must be said.
    pub failures: Vec<Failure>,
    /// The command whose options are not supported, until it has ended.
    pub refused: Option<String>,
}

impl Notes {
    /// All notes.
    pub fn lock(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes a page or lines that were read.
    pub fn touch(&self, source: Source) {
        let mut held = self.lock();
        if held.known.insert(source.clone()) {
            held.touched.push(source);
        }
    }

    /// Notes what must be said.
    pub fn fail(&self, code: &str, message: String, hint: String) {
        let mut held = self.lock();
        let failure = Failure { code: code.into(), message, hint };
        if held.failures.len() < FAILURES_MAX && !held.failures.contains(&failure) {
            held.failures.push(failure);
        }
    }

    /// Takes all notes.
    pub fn take(&self) -> Held {
        std::mem::take(&mut *self.lock())
    }
}
