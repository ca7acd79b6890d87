//! The page: server-rendered HTML that works without JavaScript, on a phone, and at night.
//!
//! Nothing comes from elsewhere and nothing inline is executed: style and script are two files of this
//! program under hashed paths, and [`SECURITY_POLICY`] forbids everything else. Text of documents
//! reaches HTML through [`markdown`] alone, which sanitises it, or through `maud`, which escapes it.

pub mod answer;
pub mod assets;
pub mod browse;
pub mod chart;
pub mod command;
pub mod layout;
pub mod links;
pub mod markdown;
pub mod reader;
pub mod status;
pub mod words;

/// The Content-Security-Policy of every page.
pub const SECURITY_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";
