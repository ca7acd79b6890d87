//! Tests of the query crate and program, in one binary.

mod agents;
mod ask;
mod caution;
mod cite;
mod daemon;
mod follow_up;
mod gate;
mod guard;
mod mcp;
mod scan;
mod setup;
mod support;
