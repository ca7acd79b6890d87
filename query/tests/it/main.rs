//! Tests of the query crate and program, in one binary.

mod ask;
mod daemon;
mod guard;
mod support;
