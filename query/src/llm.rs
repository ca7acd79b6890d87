//! A language model, for those who bring one: it may read, judge, phrase and browse, and never says what
//! the tree does not.
//!
//! Off by default. Whatever the mode, the extractive verdict comes first and stands when the model is
//! down, slow, wrong or caught inventing. [`settings`] is the `[llm]` table, [`client`] the endpoint with
//! its [`breaker`], [`trust`] whether its verdicts count, [`prompt`] what it is told and between which marks
//! documents stand, [`given`] the sections that it is given. [`judge`], [`answer`] and [`agent`] are the
//! modes, [`review`] the post-processor that every text of a model passes, [`note`] what a reply says of it
//! all. The decision is taken in `service/modelled`.

pub mod agent;
pub mod answer;
pub mod breaker;
pub mod client;
pub mod counters;
pub mod given;
pub mod history;
pub mod judge;
pub mod note;
pub mod prompt;
pub mod review;
pub mod settings;
pub mod trust;

use crate::config::Config;
use client::{Client, LlmError};
use settings::{Mode, Settings};
use std::sync::Arc;
use std::time::{Duration, Instant};
use trust::Trust;

/// A configured model: settings, endpoint, and what is known of it.
pub struct Llm {
    /// The settings.
    pub settings: Settings,
    /// The endpoint.
    pub client: Client,
    /// Whether its verdicts count.
    pub trust: Trust,
    /// What agents have listed, by session.
    pub history: history::History,
}

impl Llm {
    /// A model by its settings; none where the mode is `off`.
    ///
    /// # Errors
    /// When the settings cannot be used: the text says which key, and what to do.
    pub fn new(settings: &Settings) -> Result<Option<Arc<Self>>, String> {
        if settings.mode == Mode::Off {
            return Ok(None);
        }
        let settings = settings.clone().checked()?;
        let client = Client::new(&settings)?;
        Ok(Some(Arc::new(Self {
            client,
            trust: Trust::default(),
            history: history::History::default(),
            settings,
        })))
    }

    /// When a question must be done with the model: `calls` times the timeout of one.
    #[must_use]
    pub fn until(&self, calls: u32) -> Instant {
        Instant::now() + self.settings.timeout().saturating_mul(calls)
    }

    /// The longest that one question may take with the model.
    #[must_use]
    pub fn longest(&self) -> Duration {
        let answer = self.settings.timeout().saturating_mul(2);
        let agent = Duration::from_secs(self.settings.agent_seconds);
        let own = if self.settings.mode == Mode::Agent { agent } else { answer };
        own + self.settings.timeout()
    }
}

/// Whether the configured model answers at all, for `runbook-query doctor`: what was found, in words.
///
/// # Errors
/// Why it cannot be used, with what to do about it.
pub fn check(config: &Config) -> Result<String, String> {
    check_settings(&config.llm)
}

/// The same for settings alone.
///
/// # Errors
/// As [`check`].
pub fn check_settings(settings: &Settings) -> Result<String, String> {
    let Some(llm) = Llm::new(settings)? else {
        return Ok("no language model is configured ([llm] mode is off)".into());
    };
    let started = Instant::now();
    let schema = prompt::judge_schema();
    let messages = [client::Message::user(
        "Reply with this JSON and nothing else: {\"answers\": false, \"section\": 0, \"from\": 0, \"to\": 0}".into(),
    )];
    let call = client::Call {
        messages: &messages,
        schema: &schema,
        schema_name: "verdict",
        tokens: 64,
        until: llm.until(1),
    };
    let done = llm
        .client
        .complete(&call)
        .map_err(|e: LlmError| format!("{}: {e}; hint: {}", llm.settings.base_url, e.hint()))?;
    let form = if serde_json::from_str::<serde_json::Value>(done.text.trim()).is_ok() {
        "replies in JSON"
    } else {
        "replies, though not in JSON: expect many rejected generations"
    };
    Ok(format!(
        "{} at {} {form} after {:.1} s (mode {})",
        llm.settings.model,
        llm.settings.base_url,
        started.elapsed().as_secs_f64(),
        llm.settings.mode.name(),
    ))
}
