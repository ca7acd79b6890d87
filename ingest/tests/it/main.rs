//! Tests of the ingest crate and program, in one binary.
#![expect(clippy::print_stderr, reason = "tests")]

mod chunking;
mod crash;
mod faults;
mod fuzz;
mod git;
mod runs;
mod support;
