//! The `[llm]` table: which model, where, how much it may take, and whether text may leave the machine.

use reqwest::Url;
use serde::Deserialize;
use std::net::{IpAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::time::Duration;

/// What a model does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Nothing; no connection is opened.
    #[default]
    Off,
    /// Says whether a passage answers; the answer stays the passage.
    Judge,
    /// Phrases the answer from the passages.
    Answer,
    /// Looks for itself, with the product's own tools.
    Agent,
}

impl Mode {
    /// The name in configuration, replies and metrics.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Judge => "judge",
            Self::Answer => "answer",
            Self::Agent => "agent",
        }
    }
}

/// Whether a model's verdict counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TrustIn {
    /// As far as it tells sections that answer from those that do not, measured on the served tree.
    #[default]
    Measured,
    /// Always.
    Always,
    /// Never: it is noted and changes nothing.
    Never,
}

/// The keys of `[llm]`.
#[derive(Clone, Debug, Deserialize)]
#[serde(default)]
pub struct Settings {
    /// What the model does.
    pub mode: Mode,
    /// What stands before `/chat/completions`: `http://127.0.0.1:11434/v1`.
    pub base_url: String,
    /// The model's name at the endpoint.
    pub model: String,
    /// File that holds the endpoint's key.
    pub key_file: Option<PathBuf>,
    /// Seconds that one call may take, from connecting to the last byte.
    pub timeout_s: f64,
    /// Tokens that one reply of the model may have.
    pub max_tokens: u32,
    /// Tokens of passages and tool results that one call may carry, counted at four bytes a token.
    pub context_tokens: usize,
    /// Calls at once; more wait for a moment, and then the extractive answer is given.
    pub concurrency: usize,
    /// Failures in a row after which the endpoint is left alone.
    pub breaker_failures: u32,
    /// Seconds for which it is left alone.
    pub breaker_s: f64,
    /// Whether the model's verdicts count.
    pub trust: TrustIn,
    /// Calls of the model that one question may cost in mode `agent`.
    pub agent_calls: u32,
    /// Tokens that one question may cost in mode `agent`, as the endpoint counts them.
    pub agent_tokens: u64,
    /// Seconds that one question may take in mode `agent`.
    pub agent_seconds: u64,
    /// Whether runbook text may go to an endpoint that is neither this machine nor a private network.
    pub allow_remote: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            mode: Mode::Off,
            base_url: String::new(),
            model: String::new(),
            key_file: None,
            timeout_s: 60.0,
            max_tokens: 700,
            context_tokens: 3000,
            concurrency: 1,
            breaker_failures: 3,
            breaker_s: 30.0,
            trust: TrustIn::Measured,
            agent_calls: 8,
            agent_tokens: 32_000,
            agent_seconds: 180,
            allow_remote: false,
        }
    }
}

/// The keys, for the check of a configuration file.
pub const KEYS: [&str; 15] = [
    "llm.mode",
    "llm.base_url",
    "llm.model",
    "llm.key_file",
    "llm.timeout_s",
    "llm.max_tokens",
    "llm.context_tokens",
    "llm.concurrency",
    "llm.breaker_failures",
    "llm.breaker_s",
    "llm.trust",
    "llm.agent_calls",
    "llm.agent_tokens",
    "llm.agent_seconds",
    "llm.allow_remote",
];

const WHERE: &str =
    "hint: name what stands before /chat/completions, such as http://127.0.0.1:11434/v1";

impl Settings {
    /// Settings that can be used, with the address in one form.
    ///
    /// # Errors
    /// The first key that cannot be used, and what to do.
    pub fn checked(mut self) -> Result<Self, String> {
        if self.base_url.trim().is_empty() {
            return Err(format!(
                "[llm] mode is `{}` and base_url is not set; {WHERE}",
                self.mode.name()
            ));
        }
        if self.model.trim().is_empty() {
            return Err(
                "[llm] model is not set; hint: `curl BASE_URL/models` lists the names".into()
            );
        }
        let bad = |key: &str, range: &str| Err(format!("[llm] {key} is {range}"));
        if !(self.timeout_s.is_finite() && (0.05..=3600.0).contains(&self.timeout_s)) {
            return bad("timeout_s", "a number of seconds from 0.05 to 3600");
        }
        if !(self.breaker_s.is_finite() && (0.05..=3600.0).contains(&self.breaker_s)) {
            return bad("breaker_s", "a number of seconds from 0.05 to 3600");
        }
        if !(16..=32_000).contains(&self.max_tokens) {
            return bad("max_tokens", "a number from 16 to 32000");
        }
        if !(200..=200_000).contains(&self.context_tokens) {
            return bad("context_tokens", "a number from 200 to 200000");
        }
        if !(1..=64).contains(&self.concurrency) {
            return bad("concurrency", "a number from 1 to 64");
        }
        if !(1..=100).contains(&self.breaker_failures) {
            return bad("breaker_failures", "a number from 1 to 100");
        }
        if !(2..=50).contains(&self.agent_calls) {
            return bad("agent_calls", "a number from 2 to 50");
        }
        if !(1000..=10_000_000).contains(&self.agent_tokens) {
            return bad("agent_tokens", "a number from 1000 to 10000000");
        }
        if !(1..=3600).contains(&self.agent_seconds) {
            return bad("agent_seconds", "a number from 1 to 3600");
        }
        let mut url = self.url()?;
        if matches!(url.path(), "" | "/") {
            url.set_path("/v1");
        }
        self.base_url = url.as_str().trim_end_matches('/').to_owned();
        self.check_place(&url)?;
        Ok(self)
    }

    fn url(&self) -> Result<Url, String> {
        let url = Url::parse(self.base_url.trim()).map_err(|e| {
            format!("[llm] base_url `{}` is no address: {e}; {WHERE}", self.base_url)
        })?;
        if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
            return Err(format!(
                "[llm] base_url `{}` is not http or https; {WHERE}",
                self.base_url
            ));
        }
        if url.query().is_some() || url.fragment().is_some() || !url.username().is_empty() {
            return Err(format!(
                "[llm] base_url has a user, a query or a fragment; hint: a key goes into key_file, and {}",
                &WHERE[6..]
            ));
        }
        Ok(url)
    }

    /// A name that does not resolve now is let through: every connection is checked again.
    fn check_place(&self, url: &Url) -> Result<(), String> {
        if self.allow_remote {
            return Ok(());
        }
        let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
        let port = url.port_or_known_default().unwrap_or(80);
        let Ok(addresses) = (host, port).to_socket_addrs() else { return Ok(()) };
        match addresses.map(|a| a.ip()).find(|ip| !is_near(*ip)) {
            None => Ok(()),
            Some(ip) => Err(format!(
                "[llm] base_url is at {ip}, which is neither this machine nor a private network: runbook text would leave; hint: use a local endpoint, or consent with --allow-remote-llm (allow_remote = true in [llm])"
            )),
        }
    }

    /// The longest that one call may take.
    #[must_use]
    pub fn timeout(&self) -> Duration {
        Duration::from_secs_f64(self.timeout_s)
    }

    /// Bytes of passages or results that one call may carry.
    #[must_use]
    pub fn context_bytes(&self) -> usize {
        self.context_tokens * 4
    }

    /// The endpoint's port, for a sandbox that has to let it through; none where no model is used.
    #[must_use]
    pub fn port(&self) -> Option<u16> {
        if self.mode == Mode::Off {
            return None;
        }
        Url::parse(self.base_url.trim()).ok()?.port_or_known_default()
    }
}

/// Whether an address is this machine or in a private network.
#[must_use]
pub fn is_near(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(v4) => v4.is_loopback() || v4.is_private() || v4.is_link_local(),
        IpAddr::V6(v6) => match v6.to_ipv4_mapped() {
            Some(v4) => is_near(IpAddr::V4(v4)),
            None => v6.is_loopback() || v6.is_unique_local() || v6.is_unicast_link_local(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(base_url: &str) -> Settings {
        Settings {
            mode: Mode::Judge,
            base_url: base_url.into(),
            model: "m".into(),
            ..Settings::default()
        }
    }

    #[test]
    fn places_and_forms() {
        for (given, form) in [
            ("http://127.0.0.1:11434", "http://127.0.0.1:11434/v1"),
            ("http://127.0.0.1:11434/v1/", "http://127.0.0.1:11434/v1"),
            ("http://[::1]:8081/openai", "http://[::1]:8081/openai"),
            ("https://10.1.2.3/v1", "https://10.1.2.3/v1"),
        ] {
            assert_eq!(with(given).checked().unwrap().base_url, form, "{given}");
        }
        for (given, says) in [
            ("", "base_url is not set"),
            ("127.0.0.1:80", "base_url"),
            ("ftp://127.0.0.1/", "not http"),
            ("http://me:x@127.0.0.1/", "key_file"),
            ("http://8.8.8.8/v1", "--allow-remote-llm"),
            ("http://[2001:4860::8]/v1", "--allow-remote-llm"),
            ("http://[::ffff:8.8.8.8]/v1", "--allow-remote-llm"),
        ] {
            let e = with(given).checked().unwrap_err();
            assert!(e.contains(says), "{given}: {e}");
        }
        let remote = Settings { allow_remote: true, ..with("https://8.8.8.8/v1") };
        assert!(remote.checked().is_ok());
        let off = Settings { concurrency: 0, ..with("http://127.0.0.1") };
        assert!(off.checked().unwrap_err().contains("concurrency"));
    }
}
