//! Tests of the evals program: a tiny suite over a tree of its own, end to end.

mod docs;
mod gaps;
mod goldens;
mod suite;
mod support;
