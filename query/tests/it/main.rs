//! Tests of the query crate and program, in one binary.

mod agents;
mod ask;
mod caution;
mod cite;
mod daemon;
mod feedback;
mod follow_up;
mod gate;
mod guard;
mod mcp;
mod page;
mod scan;
mod setup;
mod support;
