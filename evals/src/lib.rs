//! What is measured, and how: retrieval by arm, questions with gold sections, and the gate.
//!
//! Everything runs through the product's own code: a corpus is ingested as a user's would be, a
//! question goes through the same service as in the daemon. Outcome (answer, citation, gold section,
//! refusal) and trajectory (the route) are scored apart. Nothing depends on this crate.

pub mod metrics;
pub mod corpus;
pub mod retrieval;
pub mod questions;
pub mod gate;
pub mod cli;
