//! What users say of replies, and what they asked in vain: kept beneath the state directory for
//! `runbook-eval promote` and `runbook-eval gaps`. No file holds an address or a name of a user.

pub mod recent;
pub mod refused;
pub mod reports;

/// The directory within the state directory.
pub const DIRECTORY: &str = "feedback";
