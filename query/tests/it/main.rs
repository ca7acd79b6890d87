//! Tests of the query crate and program, in one binary.

mod ask;
mod caution;
mod daemon;
mod differential;
mod follow_up;
mod fs_http;
mod gate;
mod guard;
mod hostile;
mod jail;
mod runbook_sh;
mod scan;
mod shell;
mod stores;
mod support;
mod tree;
