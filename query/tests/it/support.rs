//! Corpora from fixture strings, one-shot questions, and a daemon on a free port.

use runbook_ingest::config::Settings;
use runbook_ingest::progress::Progress;
use runbook_query::engine::Policy;
use runbook_query::reply::Reply;
use runbook_query::service::{Options, Request, Service};
use runbook_query::snapshot::Repo;
use runbook_shared::locate::Places;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// A source directory with a data directory beside it.
pub(crate) struct Fixture {
    pub(crate) dir: TempDir,
    pub(crate) embedder: Option<String>,
}

impl Fixture {
    /// Files from a text in which `//- path` starts each; lexical search alone.
    pub(crate) fn lexical(text: &str) -> Self {
        let fixture = Self { dir: tempfile::tempdir().unwrap(), embedder: Some("none".into()) };
        fixture.write(text);
        fixture.ingest();
        fixture
    }

    /// The same with the default embedder.
    pub(crate) fn hybrid(text: &str) -> Self {
        let fixture = Self { dir: tempfile::tempdir().unwrap(), embedder: None };
        fixture.write(text);
        fixture.ingest();
        fixture
    }

    pub(crate) fn source(&self) -> PathBuf {
        self.dir.path().join("source")
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.dir.path().join("data")
    }

    pub(crate) fn write(&self, text: &str) {
        std::fs::create_dir_all(self.source()).unwrap();
        for file in text.split("//- ").skip(1) {
            let (path, content) = file.split_once('\n').unwrap();
            let path = self.source().join(path.trim());
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, content).unwrap();
        }
    }

    pub(crate) fn ingest(&self) {
        ingest(&self.source().display().to_string(), &self.data(), self.embedder.as_deref());
    }

    pub(crate) fn service(&self) -> Service {
        let service = Service::new(Options {
            repos: vec![Repo { name: String::new(), data: self.data() }],
            policy: Policy::default(),
            embedder: self.embedder.clone(),
            places: Places::from_env(None, None),
        });
        service.open().unwrap();
        service
    }

    pub(crate) fn ask(&self, question: &str) -> Reply {
        self.service().ask(&request(question)).unwrap()
    }
}

pub(crate) fn request(question: &str) -> Request {
    Request { question: question.into(), ..Request::default() }
}

pub(crate) fn ingest(source: &str, data: &Path, embedder: Option<&str>) {
    let settings = Settings {
        source: Some(source.into()),
        data: Some(data.to_owned()),
        embedder: embedder.map(str::to_owned),
        ..Settings::default()
    };
    runbook_ingest::run::run(&settings.resolve().unwrap(), &Progress::new(true)).unwrap();
}

/// `runbook-query` as a process.
pub(crate) struct Daemon {
    child: Child,
    pub(crate) address: String,
    log: Option<std::thread::JoinHandle<String>>,
}

impl Daemon {
    pub(crate) fn start(data: &Path, args: &[&str]) -> Self {
        let mut all = vec!["--data", data.to_str().unwrap()];
        all.extend(args);
        Self::start_with(&all)
    }

    /// The same with nothing but these arguments.
    pub(crate) fn start_with(args: &[&str]) -> Self {
        Self::start_env(args, &[])
    }

    /// The same with variables.
    pub(crate) fn start_env(args: &[&str], variables: &[(&str, &str)]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_runbook-query"))
            .args(["serve", "--listen", "127.0.0.1:0", "--poll-s", "0.5"])
            .args(args)
            .env_remove("RUNBOOK_DATA")
            .envs(variables.iter().copied())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap());
        let mut log = String::new();
        let address = loop {
            let mut line = String::new();
            assert!(lines.read_line(&mut line).unwrap() > 0, "the daemon ended: {log}");
            log.push_str(&line);
            if let Some((_, address)) = line.split_once("listening on http://") {
                break address.split(['"', '\n']).next().unwrap().to_owned();
            }
        };
        // The log goes on; a full pipe would stop the daemon.
        let rest = std::thread::spawn(move || {
            let mut bytes = Vec::new();
            let _ = lines.read_to_end(&mut bytes);
            log + &String::from_utf8_lossy(&bytes)
        });
        Self { child, address, log: Some(rest) }
    }

    /// What it has logged; it must have ended.
    pub(crate) fn log(&mut self) -> String {
        self.log.take().unwrap().join().unwrap()
    }

    /// Sends raw bytes and returns the whole response.
    pub(crate) fn raw(&self, request: &str) -> String {
        let stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        (&stream).write_all(request.as_bytes()).unwrap();
        Self::read(stream)
    }

    /// The same to a server that may be gone: then nothing comes back.
    pub(crate) fn send_to(address: &str, request: &str) -> String {
        let Ok(mut stream) = TcpStream::connect(address) else { return String::new() };
        let _ = stream.set_read_timeout(Some(Duration::from_secs(20)));
        if stream.write_all(request.as_bytes()).is_err() {
            return String::new();
        }
        Self::read(stream)
    }

    fn read(mut stream: TcpStream) -> String {
        let mut response = Vec::new();
        let _ = stream.read_to_end(&mut response);
        String::from_utf8_lossy(&response).into_owned()
    }

    /// Status and body of a GET.
    pub(crate) fn get(&self, path: &str) -> (u16, String) {
        self.send(&format!(
            "GET {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n",
            self.address
        ))
    }

    /// Status and body of a POST of JSON.
    pub(crate) fn post(&self, path: &str, body: &str) -> (u16, String) {
        self.send(&format!(
            "POST {path} HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
            self.address,
            body.len()
        ))
    }

    pub(crate) fn send(&self, request: &str) -> (u16, String) {
        let response = self.raw(request);
        let status = response.split(' ').nth(1).and_then(|s| s.parse().ok()).unwrap_or(0);
        let (head, body) = response.split_once("\r\n\r\n").unwrap_or((&response, ""));
        let body = if head.to_ascii_lowercase().contains("transfer-encoding: chunked") {
            unchunk(body)
        } else {
            body.to_owned()
        };
        (status, body)
    }

    pub(crate) fn json(&self, path: &str) -> serde_json::Value {
        let (_, body) = self.get(path);
        serde_json::from_str(&body).unwrap_or_else(|e| panic!("{e}: {body}"))
    }

    /// Asks until the answer fulfils a condition; fails after ten seconds.
    pub(crate) fn wait(
        &self,
        path: &str,
        until: impl Fn(&serde_json::Value) -> bool,
    ) -> serde_json::Value {
        let started = Instant::now();
        loop {
            let value = self.json(path);
            if until(&value) {
                return value;
            }
            assert!(started.elapsed() < Duration::from_secs(10), "still {value}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    pub(crate) fn signal(&self, name: &str) {
        let sent =
            Command::new("kill").args([name, &self.child.id().to_string()]).status().unwrap();
        assert!(sent.success());
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn exit_code(&mut self) -> Option<i32> {
        self.child.wait().unwrap().code()
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn unchunk(body: &str) -> String {
    let mut out = String::new();
    let mut rest = body;
    while let Some((size, after)) = rest.split_once("\r\n") {
        let size = usize::from_str_radix(size.trim(), 16).unwrap_or(0);
        if size == 0 || after.len() < size {
            break;
        }
        out.push_str(&after[..size]);
        rest = after[size..].trim_start_matches("\r\n");
    }
    out
}

/// Numbers that look random and come again with the same RUNBOOK_TEST_SEED; the seed is printed.
#[expect(clippy::print_stderr, reason = "tests")]
pub(crate) fn random(test: &str) -> impl FnMut() -> u64 {
    let seed = std::env::var("RUNBOOK_TEST_SEED").ok().and_then(|s| s.parse().ok());
    let clock = || jiff::Timestamp::now().as_microsecond().unsigned_abs();
    let seed: u64 = seed.unwrap_or_else(clock);
    eprintln!("{test}: RUNBOOK_TEST_SEED={seed}");
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    move || {
        state ^= state << 13; // xorshift64
        state ^= state >> 7;
        state ^= state << 17;
        state
    }
}

/// How often a test tries: this variable, else `usual`.
pub(crate) fn how_many(variable: &str, usual: usize) -> usize {
    match std::env::var(variable) {
        Ok(text) => text.parse().unwrap_or_else(|_| panic!("{variable}={text} is no number")),
        Err(_) => usual,
    }
}
