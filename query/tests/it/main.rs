//! Tests of the query crate and program, in one binary.

mod agents;
mod ask;
mod caution;
mod cite;
mod corruption;
mod daemon;
mod differential;
mod feedback;
mod follow_up;
mod fs_http;
mod gate;
mod guard;
mod hostile;
mod jail;
mod mcp;
mod mcp_hostile;
mod page;
mod retrieval;
mod runbook_sh;
mod scan;
mod setup;
mod shell;
mod stores;
mod support;
mod tree;
