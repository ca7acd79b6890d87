//! The gate: decides whether a passage may be shown as the answer.

mod action;
mod customer;
mod imperative;
mod lexicon;
pub mod request;
mod secret;
mod words;

pub(crate) use lexicon::is_deed;
