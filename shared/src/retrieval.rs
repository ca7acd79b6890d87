//! From a question to sections with signals and a Confidence: what a daemon answers with, and what
//! ingest probes a new generation with. Whether to answer, and what to show, is the daemon's.

pub mod arms;
pub mod corpus;
pub mod evidence;
pub mod expand;
pub mod model;
pub mod question;
pub mod search;
