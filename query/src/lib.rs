//! From a question to a reply.
//!
//! ```text
//! question -> request gate -> lexical and dense retrieval -> fusion -> evidence gate -> passage
//!          -> citations, checked against the generation -> reply
//! ```
//!
//! A reply comes from one snapshot. Nothing here writes under a data directory or, once the
//! ONNX Runtime library has been tried in a child process at start, spawns a process; nothing
//! speaks to anything but its own clients, the stores and the language model that the configuration
//! names, of which it has none by itself; no answer
//! leaves without a citation that holds.

pub mod access;
pub mod agents;
pub mod caution;
pub mod citation;
pub mod cli;
pub mod compose;
pub mod config;
pub mod doctor;
pub mod engine;
pub mod evidence;
pub mod feedback;
pub mod follow_up;
pub mod forge_link;
pub mod gate;
pub mod http;
pub mod journal;
pub mod llm;
pub mod mcp;
pub mod metrics;
mod openapi;
pub mod page;
pub mod passage;
pub mod reply;
pub mod route;
pub mod sandbox;
pub mod scan;
pub mod server;
pub mod service;
pub mod session;
pub mod shell;
pub mod snapshot;
pub mod status;
pub mod supervisor;
pub mod text;
pub mod tree;
pub mod usage;
pub mod watch;
