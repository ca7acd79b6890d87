//! The Model Context Protocol: the same service for agents, on stdio and as Streamable HTTP at `/mcp`.
//!
//! ```text
//! tool call -> checked arguments -> service or tree -> bounded result (text and structured)
//!                                        `-> the session's evidence, the usage log
//! ```
//!
//! A session is the process on stdio, the `Mcp-Session-Id` of a client that has one, and otherwise the
//! `session` that a call names: the protocol of 2026-07-28 has no sessions of its own, so every result
//! says which session it belongs to.

pub mod args;
mod call;
mod files;
mod handler;
mod prompt;
mod resources;
pub mod result;
pub mod stdio;
pub mod tools;

pub(crate) use files::outcome;
pub use handler::Handler;
