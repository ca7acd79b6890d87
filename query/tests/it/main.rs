//! Tests of the query crate and program, in one binary.

mod ask;
mod caution;
mod daemon;
mod feedback;
mod follow_up;
mod gate;
mod guard;
mod page;
mod scan;
mod support;
