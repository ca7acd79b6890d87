//! The tree: everything that can be read or written by path, whatever it is kept in.
//!
//! ```text
//! /runbooks        the generation's documents, read-only; the default working directory
//! /repo/<name>     each repository's own, where several are served
//! /artifacts       durable and versioned: every write is kept
//! /tmp             scratch, of one session, gone after a while; /tmp/overflow holds long results
//! ```
//!
//! [`router::Tree`] lives as long as the program; [`router::View`] is the tree as one session sees it
//! at one moment (one snapshot, its own `/tmp`). Shell, HTTP and MCP call the same operations of a view;
//! each gives an [`envelope::Envelope`]. What a store is, is known to [`store`] alone.

pub mod envelope;
pub mod error;
pub mod limits;
pub mod operations;
pub mod overflow;
pub mod path;
pub mod permits;
pub mod request;
pub mod router;
pub mod search;
pub mod setup;
pub mod store;
pub mod stores;
pub mod walk;
