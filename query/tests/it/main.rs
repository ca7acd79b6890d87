//! Tests of the query crate and program, in one binary.

mod ask;
mod caution;
mod daemon;
mod follow_up;
mod gate;
mod guard;
mod scan;
mod support;
