//! What ingest and query must agree on: the vocabulary, the generation on disk, the embedder, the
//! schema of both indexes, and how they are searched.
//!
//! | word | meaning |
//! |---|---|
//! | Document | one Markdown file at one commit |
//! | DocPath | its checked path, relative to the root of the repository |
//! | Section | what stands under one heading |
//! | Chunk | a retrievable piece of a document: a `##` section with its subsections, or a part of one |
//! | Window | what the embedder sees of a section at once |
//! | Generation | one immutable snapshot of text and indexes |
//!
//! Nothing here reads a git repository, opens a socket, or decides whether to answer.

pub mod analyse;
pub mod chunk;
pub mod config_file;
pub mod doc_path;
pub mod doctor;
pub mod embed;
pub mod error;
pub mod failpoint;
pub mod generation;
pub mod last_run;
pub mod lexical;
pub mod limits;
pub mod locate;
pub mod markdown;
pub mod onnx;
pub mod retrieval;
pub mod score;
pub mod secrets;
pub mod stem;
pub mod telemetry;
pub mod tokens;
pub mod vectors;
