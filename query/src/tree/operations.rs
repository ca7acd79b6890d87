//! What can be done in the tree; the same for shell, HTTP and MCP.

mod changes;
mod finding;
mod reading;

pub use reading::mounts_json;

use super::envelope::Envelope;
use super::error::TreeError;
use super::path::{self, HOME};
use super::router::View;

impl View {
    /// Runs an operation when there is room for one more, and ends it.
    fn operate(&self, work: impl FnOnce(&Self) -> Result<Done, TreeError>) -> Envelope {
        let view = self.renewed();
        let done = view.enter().and_then(|_permit| work(&view));
        match done {
            Ok(done) => view.finish(done.envelope, done.kept.as_deref()),
            Err(e) => Envelope::failed(&e),
        }
    }
}

/// The result of an operation before it is bounded.
struct Done {
    envelope: Envelope,
    /// Where all of the content is already.
    kept: Option<String>,
}

impl From<Envelope> for Done {
    fn from(envelope: Envelope) -> Self {
        Self { envelope, kept: None }
    }
}

/// The path of a request; the home directory where none is named.
fn place(given: Option<&str>) -> Result<String, TreeError> {
    path::resolve(HOME, given.filter(|p| !p.is_empty()).unwrap_or(HOME))
}
