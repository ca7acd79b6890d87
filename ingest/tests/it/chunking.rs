//! Cutting documents.
