//! What is measured, and how: retrieval by arm, questions with gold sections, the gate, and the
//! project's own suites of cases.
//!
//! Everything runs through the product's own code: a corpus is ingested as a user's would be, a
//! question goes through the same service as in the daemon. Outcome (answer, citation, gold section,
//! refusal) and trajectory (the route) are scored apart. Nothing depends on this crate.

pub mod ablation;
pub mod candidates;
pub mod case;
pub mod cli;
pub mod corpus;
pub mod curves;
pub mod figures;
pub mod gaps;
pub mod gate;
pub mod gold;
pub mod golden;
pub mod metrics;
pub mod modes;
pub mod outcome;
pub mod promote;
pub mod questions;
pub mod report;
pub mod retrieval;
pub mod run;
pub mod runner;
pub mod scorer;
pub mod secrets;
pub mod suite;
