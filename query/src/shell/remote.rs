//! A daemon seen from a client: its tree, loaded once and kept by its tag, its writable mounts over HTTP, and
//! the report of what was read.

mod fixed;

use crate::tree::envelope::{Envelope, Source};
use crate::tree::error::TreeError;
use crate::tree::router::{Mount, Options};
use crate::tree::store::{Content, Entry, Kind, Meta, Store, Version};
use fixed::Fixed;
use reqwest::StatusCode;
use reqwest::blocking::{RequestBuilder, Response};
use reqwest::header::{ACCEPT, ETAG, IF_NONE_MATCH};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// How long a request may take.
const WITHIN: Duration = Duration::from_secs(30);
/// Places in one report.
const REPORTED_MAX: usize = 500;

/// A daemon.
#[derive(Clone)]
pub struct Client {
    http: reqwest::blocking::Client,
    base: String,
    token: Option<String>,
    /// The session, once the daemon or the user has named one.
    session: Arc<Mutex<Option<String>>>,
    /// Whether a report failed; it is said once.
    mute: Arc<Mutex<bool>>,
}

/// What a daemon's tree is to its client.
pub enum Loaded {
    /// All of it.
    Tree(Box<Options>),
    /// It has too many bytes.
    TooLarge(u64),
}

/// What is kept between starts.
#[derive(Serialize, Deserialize)]
struct Kept {
    tag: String,
    body: Value,
}

impl Client {
    /// A client of an address.
    ///
    /// # Errors
    /// When it is no `http://` or `https://` address.
    pub fn new(url: &str, token: Option<&str>, session: Option<&str>) -> Result<Self, String> {
        if !url.starts_with("http://") && !url.starts_with("https://") {
            return Err(format!("`{url}` is not an http:// or https:// address"));
        }
        // TLS needs one cryptography provider for the program; a second call changes nothing.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let http = reqwest::blocking::Client::builder()
            .timeout(WITHIN)
            .user_agent(concat!("runbook-sh/", env!("CARGO_PKG_VERSION")))
            .build()
            .map_err(|e| e.to_string())?;
        Ok(Self {
            http,
            base: url.trim_end_matches('/').to_owned(),
            token: token.map(str::to_owned),
            session: Arc::new(Mutex::new(session.map(str::to_owned))),
            mute: Arc::default(),
        })
    }

    /// Sends a request, on a thread of its own: the shell's runtime must not be entered twice.
    fn send(&self, request: RequestBuilder) -> Result<Response, String> {
        let request = match &self.token {
            Some(token) => request.bearer_auth(token),
            None => request,
        };
        std::thread::scope(|scope| scope.spawn(|| request.send()).join())
            .map_err(|_| "the request failed".to_owned())?
            .map_err(|e| {
                // The innermost cause says what happened; the outer ones repeat the address.
                let mut cause: &dyn std::error::Error = &e;
                while let Some(inner) = cause.source() {
                    cause = inner;
                }
                cause.to_string()
            })
    }

    fn json(&self, response: Response) -> Result<Value, String> {
        let status = response.status();
        let session = response.headers().get("x-runbook-session").and_then(|v| v.to_str().ok());
        if let Some(session) = session.filter(|s| !s.is_empty()) {
            self.session
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .get_or_insert_with(|| session.to_owned());
        }
        let text = std::thread::scope(|s| s.spawn(|| response.text()).join())
            .map_err(|_| "the reply cannot be read".to_owned())?
            .map_err(|e| e.to_string())?;
        serde_json::from_str(&text)
            .map_err(|_| format!("HTTP {}: not a runbook daemon", status.as_u16()))
    }

    fn session(&self) -> Option<String> {
        self.session.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn get(&self, path: &str, query: &[(&str, &str)]) -> RequestBuilder {
        let mut url = format!("{}{path}", self.base);
        for (n, (key, value)) in query.iter().enumerate() {
            url.push(if n == 0 { '?' } else { '&' });
            url.push_str(key);
            url.push('=');
            for byte in value.bytes() {
                match byte {
                    b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'/' | b'~' => {
                        url.push(char::from(byte));
                    }
                    _ => url.push_str(&format!("%{byte:02X}")),
                }
            }
        }
        self.http.get(url)
    }

    fn post(&self, path: &str, mut body: Value) -> Result<Value, String> {
        if let Some(session) = self.session() {
            body["session"] = json!(session);
        }
        let request = self
            .http
            .post(format!("{}{path}", self.base))
            .header("content-type", "application/json")
            .body(body.to_string());
        self.json(self.send(request)?)
    }

    /// Loads the tree: from what was kept, when the daemon says that it is still so.
    ///
    /// # Errors
    /// When the daemon cannot be reached, or does not answer as one.
    pub fn load(&self) -> Result<Loaded, String> {
        let file = self.kept_file();
        let kept: Option<Kept> = file
            .as_ref()
            .and_then(|f| std::fs::read(f).ok())
            .and_then(|bytes| serde_json::from_slice(&bytes).ok());
        let mut request = self.get("/v1/fs/load", &[]);
        if let Some(kept) = &kept {
            request = request.header(IF_NONE_MATCH, &kept.tag);
        }
        let response = self.send(request)?;
        let body = match (response.status(), kept) {
            (StatusCode::NOT_MODIFIED, Some(kept)) => kept.body,
            _ => {
                let tag = response.headers().get(ETAG).and_then(|v| v.to_str().ok());
                let tag = tag.map(str::to_owned);
                let body = self.json(response)?;
                if let (Some(tag), Some(file)) = (tag, &file) {
                    keep(file, &Kept { tag, body: body.clone() });
                }
                body
            }
        };
        if let Some(error) = body["error"]["message"].as_str() {
            return Err(error.to_owned());
        }
        self.loaded(&body["data"])
    }

    fn kept_file(&self) -> Option<PathBuf> {
        let set = |name: &str| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
        let cache = set("XDG_CACHE_HOME").or_else(|| Some(set("HOME")?.join(".cache")))?;
        let seed = format!("{}\n{}", self.base, self.token.as_deref().unwrap_or_default());
        let name = &blake3::hash(seed.as_bytes()).to_hex()[..24];
        Some(cache.join("runbook-ask").join("trees").join(format!("{name}.json")))
    }

    fn loaded(&self, data: &Value) -> Result<Loaded, String> {
        let wrong = || "the daemon's tree cannot be read; is it of another version?".to_owned();
        if data["complete"] != json!(true) {
            return Ok(Loaded::TooLarge(data["bytes"].as_u64().ok_or_else(wrong)?));
        }
        let mut files: BTreeMap<String, (Arc<Vec<u8>>, i64)> = BTreeMap::new();
        for file in data["files"].as_array().ok_or_else(wrong)? {
            let path = file["path"].as_str().ok_or_else(wrong)?;
            let text = file["content"].as_str().ok_or_else(wrong)?;
            let modified = file["modified"].as_i64().unwrap_or(0);
            files.insert(path.to_owned(), (Arc::new(text.as_bytes().to_vec()), modified));
        }
        let mut options = Options::default();
        for mount in data["mounts"].as_array().ok_or_else(wrong)? {
            let at = mount["path"].as_str().ok_or_else(wrong)?.to_owned();
            let about = mount["about"].as_str().unwrap_or_default().to_owned();
            let writable = mount["writable"] == json!(true);
            let store: Arc<dyn Store> = match (at.as_str(), writable) {
                ("/tmp", _) => continue, // In memory, here.
                (_, false) => {
                    let prefix = format!("{at}/");
                    let own = files.iter().filter_map(|(path, file)| {
                        Some((path.strip_prefix(&prefix)?.to_owned(), file.clone()))
                    });
                    Arc::new(Fixed::new(own.collect()))
                }
                (_, true) => Arc::new(Far {
                    client: self.clone(),
                    at: at.clone(),
                    versioned: mount["versioned"] == json!(true),
                }),
            };
            options.mounts.push(Mount { at, about, store });
        }
        Ok(Loaded::Tree(Box::new(options)))
    }

    /// Tells the daemon what was read, so that it counts as evidence of the session.
    pub fn report(&self, touched: &[Source]) {
        for places in touched.chunks(REPORTED_MAX) {
            let places: Vec<Value> =
                places.iter().map(|s| json!({"path": s.path, "lines": s.lines})).collect();
            if let Err(e) = self.post("/v1/fs/touched", json!({"places": places})) {
                let mut mute = self.mute.lock().unwrap_or_else(PoisonError::into_inner);
                if !*mute {
                    *mute = true;
                    super::program::say(&format!("what is read cannot be noted as evidence: {e}"));
                }
            }
        }
    }

    /// Runs a command in the daemon.
    #[must_use]
    pub fn shell(&self, command: &str, cwd: &str) -> Envelope {
        let failed = |message: String| Envelope {
            exit_code: Some(1),
            stderr: format!("{message}\n"),
            ..Envelope::default()
        };
        match self.post("/v1/shell", json!({"command": command, "cwd": cwd})) {
            Ok(value) => serde_json::from_value(value.clone()).unwrap_or_else(|_| {
                failed(value["error"]["message"].as_str().unwrap_or("no reply").to_owned())
            }),
            Err(e) => failed(e),
        }
    }
}

/// Keeps a tree for the next start; without a place to keep it, it is loaded again.
fn keep(file: &std::path::Path, kept: &Kept) {
    let Some(dir) = file.parent() else { return };
    let write = || -> std::io::Result<()> {
        std::fs::create_dir_all(dir)?;
        let temporary = dir.join(format!(".{}.tmp", std::process::id()));
        std::fs::write(&temporary, serde_json::to_vec(kept)?)?;
        std::fs::rename(&temporary, file)
    };
    if let Err(e) = write() {
        tracing::warn!("the tree cannot be kept: {e}");
    }
}

/// A writable mount of the daemon.
struct Far {
    client: Client,
    at: String,
    versioned: bool,
}

impl Far {
    fn full(&self, path: &str) -> String {
        crate::tree::path::join(&self.at, path)
    }

    /// The error of a reply, if it is one.
    fn check(&self, path: &str, value: &Value) -> Result<(), TreeError> {
        let Some(code) = value["error"]["code"].as_str() else { return Ok(()) };
        let message = value["error"]["message"].as_str().unwrap_or_default().to_owned();
        Err(match code {
            "not_found" => TreeError::NotFound(path.into()),
            "is_a_directory" => TreeError::IsDirectory(path.into()),
            "not_a_directory" => TreeError::NotDirectory(path.into()),
            "read_only" => TreeError::ReadOnly(path.into()),
            "unavailable" => TreeError::Unavailable { mount: self.at.clone(), why: message },
            _ => TreeError::BadRequest(message),
        })
    }

    fn unreachable(&self, why: String) -> TreeError {
        TreeError::Unavailable { mount: self.at.clone(), why }
    }

    fn get(&self, route: &str, path: &str) -> Result<Value, TreeError> {
        let request = self.client.get(route, &[("path", &self.full(path))]);
        let value = self
            .client
            .send(request)
            .and_then(|response| self.client.json(response))
            .map_err(|e| self.unreachable(e))?;
        self.check(path, &value)?;
        Ok(value)
    }

    fn post(&self, route: &str, path: &str, mut body: Value) -> Result<(), TreeError> {
        body["path"] = json!(self.full(path));
        let value = self.client.post(route, body).map_err(|e| self.unreachable(e))?;
        self.check(path, &value)
    }

    fn bytes(&self, path: &str, version: Option<&str>) -> Result<Content, TreeError> {
        let full = self.full(path);
        let mut query = vec![("path", full.as_str())];
        query.extend(version.map(|v| ("version", v)));
        let request =
            self.client.get("/v1/fs/read", &query).header(ACCEPT, "application/octet-stream");
        let response = self.client.send(request).map_err(|e| self.unreachable(e))?;
        if response.status() == StatusCode::OK {
            let bytes = std::thread::scope(|s| s.spawn(|| response.bytes()).join())
                .map_err(|_| self.unreachable("the reply cannot be read".into()))?
                .map_err(|e| self.unreachable(e.to_string()))?;
            return Ok(Content::owned(bytes.to_vec()));
        }
        let value = self.client.json(response).map_err(|e| self.unreachable(e))?;
        self.check(path, &value)?;
        Err(TreeError::NotFound(path.into()))
    }
}

fn entry(value: &Value) -> Option<Entry> {
    let kind = if value["kind"] == json!("dir") { Kind::Dir } else { Kind::File };
    let meta = Meta {
        kind,
        size: value["size"].as_u64().unwrap_or(0),
        modified: value["modified"].as_i64().unwrap_or(0),
    };
    Some(Entry { name: value["name"].as_str()?.to_owned(), meta })
}

impl Store for Far {
    fn writable(&self) -> bool {
        true
    }

    fn versioned(&self) -> bool {
        self.versioned
    }

    fn stat(&self, session: &str, path: &str) -> Result<Meta, TreeError> {
        if path.is_empty() {
            return Ok(Meta { kind: Kind::Dir, size: 0, modified: 0 });
        }
        let (dir, name) = path.rsplit_once('/').unwrap_or(("", path));
        let missing = || TreeError::NotFound(path.into());
        let entries = self.list(session, dir).map_err(|e| match e {
            TreeError::NotFound(_) => missing(),
            other => other,
        })?;
        entries.into_iter().find(|e| e.name == name).map(|e| e.meta).ok_or_else(missing)
    }

    fn list(&self, _: &str, path: &str) -> Result<Vec<Entry>, TreeError> {
        let value = self.get("/v1/fs/ls", path)?;
        if value["data"]["kind"] == json!("file") {
            return Err(TreeError::NotDirectory(path.into()));
        }
        let entries = value["data"]["entries"].as_array().into_iter().flatten();
        Ok(entries.filter_map(entry).collect())
    }

    fn read(&self, _: &str, path: &str) -> Result<Content, TreeError> {
        self.bytes(path, None)
    }

    fn write(&self, _: &str, path: &str, content: &[u8]) -> Result<(), TreeError> {
        let text = std::str::from_utf8(content)
            .map_err(|_| TreeError::BadRequest(format!("`{path}` would not be UTF-8")))?;
        self.post("/v1/fs/write", path, json!({"content": text}))
    }

    fn make_dir(&self, _: &str, _: &str) -> Result<(), TreeError> {
        Ok(()) // Directories come into being with their files.
    }

    fn delete(&self, _: &str, path: &str) -> Result<(), TreeError> {
        self.post("/v1/fs/delete", path, json!({}))
    }

    fn history(&self, _: &str, path: &str) -> Result<Vec<Version>, TreeError> {
        let value = self.get("/v1/fs/history", path)?;
        let versions = value["data"]["versions"].as_array().into_iter().flatten().rev();
        Ok(versions
            .filter_map(|v| {
                Some(Version {
                    id: v["id"].as_str()?.to_owned(),
                    modified: v["modified"].as_i64()?,
                    size: v["bytes"].as_u64()?,
                    deleted: v["deleted"] == json!(true),
                })
            })
            .collect())
    }

    fn read_version(&self, _: &str, path: &str, version: &str) -> Result<Content, TreeError> {
        self.bytes(path, Some(version))
    }
}
