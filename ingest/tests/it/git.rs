//! Git sources.
