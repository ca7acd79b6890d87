//! The endpoint: `POST BASE_URL/chat/completions` as OpenAI has it, and as Ollama, llama.cpp and vLLM do.
//!
//! One call has one deadline from connecting to the last byte, a bound on the bytes that are read, and no
//! redirects and no proxy: text goes where the configuration says, or nowhere. Where the server does not
//! take a JSON schema it is asked without one, since the reply is checked in any case.

use super::breaker::{Breaker, State};
use super::settings::{Settings, is_near};
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::redirect::Policy;
use serde_json::{Value, json};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Bytes of one reply of the endpoint that are read (1 MiB); what is longer is no reply.
const REPLY_BYTES_MAX: usize = 1024 * 1024;
/// How long a call waits for its turn.
const TURN_WITHIN: Duration = Duration::from_secs(5);
/// How often a waiting call looks whether it is its turn.
const TURN_EVERY: Duration = Duration::from_millis(20);
/// Characters of an endpoint's error that are told on.
const ERROR_CHARS_MAX: usize = 200;
/// The longest key file, in bytes.
const KEY_BYTES_MAX: u64 = 16 * 1024;

/// Why there is no reply of the model.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LlmError {
    /// No connection, or it broke.
    #[error("the language model cannot be reached: {0}")]
    Down(String),
    /// The deadline is over.
    #[error("the language model took too long")]
    Slow,
    /// A status that is not a success.
    #[error("the endpoint answers with status {0}: {1}")]
    Status(u16, String),
    /// More bytes than a reply may have.
    #[error("the endpoint sends more than {REPLY_BYTES_MAX} bytes")]
    Endless,
    /// Not a chat completion.
    #[error("the endpoint does not speak the chat completions protocol: {0}")]
    Protocol(String),
    /// The breaker is open.
    #[error("the language model failed before and is left alone for a while")]
    LeftAlone,
    /// Too many calls at once.
    #[error("the language model is busy")]
    Busy,
}

impl LlmError {
    /// The name in replies and metrics.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Down(_) => "down",
            Self::Slow => "slow",
            Self::Status(..) => "status",
            Self::Endless => "endless",
            Self::Protocol(_) => "protocol",
            Self::LeftAlone => "left_alone",
            Self::Busy => "busy",
        }
    }

    /// What to do about it.
    #[must_use]
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Down(_) => "start the server, or correct base_url in [llm]",
            Self::Slow => "use a smaller model, or raise timeout_s in [llm]",
            Self::Status(401 | 403, _) => "name the key's file with key_file in [llm]",
            Self::Status(404, _) => {
                "correct base_url or model in [llm]; `curl BASE_URL/models` lists the names"
            }
            Self::Status(..) => "see the log of the language model's server",
            Self::Endless | Self::Protocol(_) => {
                "base_url in [llm] must be an OpenAI-compatible endpoint, often ending in /v1"
            }
            Self::LeftAlone => "it is tried again by itself; see the log for the first failure",
            Self::Busy => "raise concurrency in [llm] where the machine can bear it",
        }
    }
}

/// A message of a conversation with a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// `system`, `user` or `assistant`.
    pub role: &'static str,
    /// Its text.
    pub text: String,
}

impl Message {
    /// What the model is.
    #[must_use]
    pub fn system(text: String) -> Self {
        Self { role: "system", text }
    }

    /// What it is asked, or shown.
    #[must_use]
    pub fn user(text: String) -> Self {
        Self { role: "user", text }
    }

    /// What it said.
    #[must_use]
    pub fn assistant(text: String) -> Self {
        Self { role: "assistant", text }
    }
}

/// One call.
pub struct Call<'a> {
    /// The conversation.
    pub messages: &'a [Message],
    /// The shape of the reply, as a JSON schema.
    pub schema: &'a Value,
    /// Its name.
    pub schema_name: &'a str,
    /// Tokens that the reply may have.
    pub tokens: u32,
    /// When it must be done, whatever the timeout of one call is.
    pub until: Instant,
}

/// What a model said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Completion {
    /// Its text.
    pub text: String,
    /// Tokens of prompt and reply; an estimate where the endpoint does not count.
    pub tokens: u64,
}

/// The endpoint with its limits.
pub struct Client {
    http: reqwest::Client,
    url: String,
    model: String,
    key: Option<String>,
    timeout: Duration,
    breaker: Breaker,
    /// Calls that are under way.
    running: AtomicUsize,
    most: usize,
    takes_schema: AtomicBool,
}

/// A place among the calls at once.
struct Turn<'a>(&'a AtomicUsize);

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Client {
    /// The endpoint of checked settings.
    ///
    /// # Errors
    /// When the key cannot be read, or the system gives no TLS.
    pub fn new(settings: &Settings) -> Result<Self, String> {
        // Installed once for all of the program; a second time changes nothing.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let key = settings.key_file.as_deref().map(read_key).transpose()?;
        let mut builder = reqwest::Client::builder()
            .no_proxy()
            .redirect(Policy::none())
            .pool_max_idle_per_host(0)
            .connect_timeout(settings.timeout().min(Duration::from_secs(10)))
            .user_agent(concat!("runbook-query/", env!("CARGO_PKG_VERSION")));
        if !settings.allow_remote {
            builder = builder.dns_resolver(Arc::new(NearOnly));
        }
        let http = builder.build().map_err(|e| format!("[llm] no client: {}", root(&e)))?;
        Ok(Self {
            http,
            url: format!("{}/chat/completions", settings.base_url),
            model: settings.model.clone(),
            key,
            timeout: settings.timeout(),
            breaker: Breaker::new(
                settings.breaker_failures,
                Duration::from_secs_f64(settings.breaker_s),
            ),
            running: AtomicUsize::new(0),
            most: settings.concurrency,
            takes_schema: AtomicBool::new(true),
        })
    }

    /// The state of the breaker.
    #[must_use]
    pub fn state(&self) -> State {
        self.breaker.state(Instant::now())
    }

    /// Calls that are under way.
    #[must_use]
    pub fn running(&self) -> usize {
        self.running.load(Ordering::Acquire)
    }

    /// Asks the model. Blocks: call it from a thread that may.
    ///
    /// # Errors
    /// Why there is no reply.
    pub fn complete(&self, call: &Call<'_>) -> Result<Completion, LlmError> {
        let _turn = self.turn(call.until)?;
        if !self.breaker.admits(Instant::now()) {
            return Err(LlmError::LeftAlone);
        }
        let result = self.within(call);
        self.breaker.done(result.is_ok(), Instant::now());
        if let Err(e) = &result {
            tracing::warn!(reason = e.name(), "{e}");
        }
        result
    }

    fn turn(&self, until: Instant) -> Result<Turn<'_>, LlmError> {
        let last = until.min(Instant::now() + TURN_WITHIN);
        loop {
            let took = self.running.fetch_update(Ordering::AcqRel, Ordering::Acquire, |n| {
                (n < self.most).then_some(n + 1)
            });
            if took.is_ok() {
                return Ok(Turn(&self.running));
            }
            if Instant::now() >= last {
                return Err(LlmError::Busy);
            }
            std::thread::sleep(TURN_EVERY);
        }
    }

    fn within(&self, call: &Call<'_>) -> Result<Completion, LlmError> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|e| LlmError::Down(e.to_string()))?;
        let left = call.until.saturating_duration_since(Instant::now()).min(self.timeout);
        let asked = async {
            let with_schema = self.takes_schema.load(Ordering::Relaxed);
            match self.post(call, with_schema).await {
                Err(LlmError::Status(400 | 404 | 415 | 422 | 500 | 501, said)) if with_schema => {
                    let plain = self.post(call, false).await.map_err(|e| match e {
                        // The first complaint may name the schema; the second is the real one.
                        LlmError::Status(status, text) if text.is_empty() => {
                            LlmError::Status(status, said)
                        }
                        e => e,
                    })?;
                    self.takes_schema.store(false, Ordering::Relaxed);
                    tracing::info!("the endpoint takes no JSON schema; it is asked without one");
                    Ok(plain)
                }
                result => result,
            }
        };
        let result = runtime.block_on(async {
            tokio::time::timeout(left, asked).await.unwrap_or(Err(LlmError::Slow))
        });
        // A name that is still being looked up is not waited for.
        runtime.shutdown_background();
        result
    }

    async fn post(&self, call: &Call<'_>, with_schema: bool) -> Result<Completion, LlmError> {
        let messages: Vec<Value> =
            call.messages.iter().map(|m| json!({"role": m.role, "content": m.text})).collect();
        let mut body = json!({
            "model": self.model,
            "messages": messages,
            "temperature": 0,
            "max_tokens": call.tokens,
            "stream": false,
        });
        if with_schema {
            body["response_format"] = json!({
                "type": "json_schema",
                "json_schema": {"name": call.schema_name, "strict": true, "schema": call.schema},
            });
        }
        let mut request = self
            .http
            .post(&self.url)
            .header("content-type", "application/json")
            .header("accept", "application/json")
            .body(body.to_string());
        if let Some(key) = &self.key {
            request = request.bearer_auth(key);
        }
        let broken = |e: &reqwest::Error| {
            if e.is_timeout() { LlmError::Slow } else { LlmError::Down(root(e)) }
        };
        let mut response = request.send().await.map_err(|e| broken(&e))?;
        let status = response.status();
        let mut bytes = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(|e| broken(&e))? {
            bytes.extend_from_slice(&chunk);
            if bytes.len() > REPLY_BYTES_MAX {
                return Err(LlmError::Endless);
            }
        }
        if !status.is_success() {
            let text = String::from_utf8_lossy(&bytes);
            return Err(LlmError::Status(status.as_u16(), one_line(&text)));
        }
        completion(&bytes, call)
    }
}

fn completion(bytes: &[u8], call: &Call<'_>) -> Result<Completion, LlmError> {
    let value: Value =
        serde_json::from_slice(bytes).map_err(|e| LlmError::Protocol(e.to_string()))?;
    let text = value["choices"][0]["message"]["content"]
        .as_str()
        .ok_or_else(|| LlmError::Protocol("no choices[0].message.content".into()))?
        .to_owned();
    let sent: usize = call.messages.iter().map(|m| m.text.len()).sum();
    let estimate = u64::try_from((sent + text.len()) / 4).unwrap_or(u64::MAX);
    let tokens = value["usage"]["total_tokens"].as_u64().unwrap_or(estimate);
    Ok(Completion { text, tokens })
}

fn read_key(path: &std::path::Path) -> Result<String, String> {
    let fail = |e: String| format!("[llm] key_file `{}`: {e}", path.display());
    let length = std::fs::metadata(path).map_err(|e| fail(e.to_string()))?.len();
    if length > KEY_BYTES_MAX {
        return Err(fail(format!("{length} bytes are no key")));
    }
    let key = std::fs::read_to_string(path).map_err(|e| fail(e.to_string()))?.trim().to_owned();
    if key.is_empty() || !key.bytes().all(|b| b.is_ascii_graphic()) {
        return Err(fail("it must hold the key and nothing else".into()));
    }
    Ok(key)
}

/// The innermost cause, which says more than the library's own words, and no address with a key.
fn root(e: &reqwest::Error) -> String {
    let mut cause: &dyn std::error::Error = e;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}

fn one_line(text: &str) -> String {
    let text: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    text.trim().chars().take(ERROR_CHARS_MAX).collect()
}

/// Names resolve to this machine and private networks, or to nothing: at every connection, so that a name
/// that moves takes no text with it.
struct NearOnly;

impl Resolve for NearOnly {
    fn resolve(&self, name: Name) -> Resolving {
        let host = name.as_str().to_owned();
        Box::pin(async move {
            let found: Vec<SocketAddr> =
                tokio::net::lookup_host((host.as_str(), 0)).await?.collect();
            let far: Option<IpAddr> = found.iter().map(SocketAddr::ip).find(|ip| !is_near(*ip));
            if let Some(ip) = far {
                let e =
                    format!("`{host}` is at {ip}, which is not private; see --allow-remote-llm");
                return Err(e.into());
            }
            Ok(Box::new(found.into_iter()) as Addrs)
        })
    }
}
