//! The gate: decides whether a passage may be shown as the answer.

pub mod request;
