//! Searching lines: patterns as POSIX, fixed text or the regex crate write them; output as GNU grep's.
//!
//! [`pattern`] translates and compiles, [`engine`] searches one text and prints its lines.

pub mod engine;
pub mod files;
pub mod pattern;
pub mod posix;
