//! From a source to a generation.
//!
//! ```text
//! source (git mirror, repository, directory) at one state
//!   -> select: which files are documents
//!   -> decode -> outline -> chunker: documents, headings, chunks
//!   -> embedding (cache by content), lexical and vector index
//!   -> draft -> verify -> publish
//! ```
//!
//! Nothing here answers a question or opens a listening socket, and nothing but this crate writes
//! under the data directory.

pub mod anchors;
pub mod assemble;
pub mod chunker;
pub mod cli;
pub mod config;
pub mod decode;
pub mod doctor;
pub mod document;
pub mod embedding;
pub mod error;
pub mod forge;
pub mod lint;
pub mod lock;
pub mod model_stamp;
pub mod outline;
pub mod plan;
pub mod probe;
pub mod progress;
pub mod read;
pub mod redaction;
pub mod report;
pub mod reuse;
pub mod rollback;
pub mod run;
pub mod scratch;
pub mod select;
pub mod source;
pub mod vector_cache;
pub mod windows;
