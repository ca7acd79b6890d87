//! A scripted OpenAI-compatible endpoint: a real HTTP server that says what a test wants it to say.

use crate::support::Fixture;
use runbook_query::llm::Llm;
use runbook_query::llm::settings::{Mode, Settings, TrustIn};
use runbook_query::service::Service;
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// What the endpoint does with one call.
#[derive(Clone, Debug)]
pub(crate) enum Say {
    /// The model says this.
    Text(String),
    /// A status with a body.
    Status(u16, &'static str),
    /// This body with status 200.
    Body(&'static str),
    /// Bytes without an end.
    Endless,
    /// A good reply, one byte at a time.
    Slowly(String),
    /// Half of a good reply, then the end of the connection.
    Half(String),
}

impl Say {
    pub(crate) fn json(value: &Value) -> Self {
        Self::Text(value.to_string())
    }

    /// A generation of mode `answer`.
    pub(crate) fn answer(answer: &str, citations: &[(&str, &str)]) -> Self {
        Self::json(&json!({"answer": answer, "citations": named(citations), "confidence": 0.9}))
    }

    pub(crate) fn tool(tool: &str, input: &str) -> Self {
        Self::json(&json!({"tool": tool, "input": input, "answer": "", "citations": []}))
    }

    /// The last step of an agent.
    pub(crate) fn done(answer: &str, citations: &[(&str, &str)]) -> Self {
        Self::json(
            &json!({"tool": "answer", "input": "", "answer": answer, "citations": named(citations)}),
        )
    }
}

fn named(citations: &[(&str, &str)]) -> Vec<Value> {
    citations.iter().map(|(path, heading)| json!({"path": path, "heading": heading})).collect()
}

type Script = dyn Fn(&Value, usize) -> Say + Send + Sync;

/// The server.
pub(crate) struct Endpoint {
    pub(crate) url: String,
    seen: Arc<Mutex<Vec<Value>>>,
    stop: Arc<AtomicBool>,
    address: String,
}

impl Endpoint {
    /// Serves a script, which gets each request and its number from 0.
    pub(crate) fn start(script: impl Fn(&Value, usize) -> Say + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let (seen, stop) = (Arc::<Mutex<Vec<Value>>>::default(), Arc::<AtomicBool>::default());
        let script: Arc<Script> = Arc::new(script);
        let (all, until) = (Arc::clone(&seen), Arc::clone(&stop));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if until.load(Ordering::Relaxed) {
                    return;
                }
                let (all, script, until) = (all.clone(), script.clone(), until.clone());
                std::thread::spawn(move || {
                    // A client that hangs up is part of some scripts.
                    let _ = serve(stream, &all, &*script, &until);
                });
            }
        });
        Self { url: format!("http://{address}/v1"), seen, stop, address }
    }

    /// Says the same every time.
    pub(crate) fn always(say: Say) -> Self {
        Self::start(move |_, _| say.clone())
    }

    /// Says these one after the other; the last again and again.
    pub(crate) fn turns(turns: Vec<Say>) -> Self {
        Self::start(move |_, n| turns[n.min(turns.len() - 1)].clone())
    }

    /// The requests so far.
    pub(crate) fn seen(&self) -> Vec<Value> {
        self.seen.lock().unwrap().clone()
    }

    pub(crate) fn settings(&self, mode: Mode) -> Settings {
        Settings {
            mode,
            base_url: self.url.clone(),
            model: "scripted".into(),
            timeout_s: 5.0,
            trust: TrustIn::Always,
            ..Settings::default()
        }
    }

    /// A service of a fixture with this endpoint behind it.
    pub(crate) fn service(&self, fixture: &Fixture, mode: Mode) -> Service {
        with(fixture, &self.settings(mode))
    }
}

pub(crate) fn with(fixture: &Fixture, settings: &Settings) -> Service {
    fixture.service().with_llm(Llm::new(settings).unwrap())
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let _ = TcpStream::connect(&self.address);
    }
}

/// All that a model is shown in a request.
pub(crate) fn shown(request: &Value) -> String {
    let all = request["messages"].as_array().unwrap();
    all.iter().map(|m| m["content"].as_str().unwrap()).collect::<Vec<_>>().join("\n")
}

/// The sections in a prompt: path, heading, first and last line.
pub(crate) fn sections(request: &Value) -> Vec<(String, String, [u32; 2])> {
    let mut found = Vec::new();
    let mut path = String::new();
    for line in shown(request).lines() {
        if let Some(p) = line.strip_prefix("path: ") {
            path = p.to_owned();
        } else if let Some(heading) = line.strip_prefix("heading: ") {
            found.push((std::mem::take(&mut path), heading.to_owned(), [0, 0]));
        } else if let Some((n, _)) =
            line.split_once(": ").or_else(|| line.strip_suffix(':').map(|n| (n, "")))
            && let (Ok(n), Some(last)) = (n.parse::<u32>(), found.last_mut())
        {
            if last.2[0] == 0 {
                last.2[0] = n;
            }
            last.2[1] = n;
        }
    }
    found
}

fn serve(
    mut stream: TcpStream,
    seen: &Mutex<Vec<Value>>,
    script: &Script,
    stop: &AtomicBool,
) -> std::io::Result<()> {
    let request = read(&mut stream)?;
    let n = {
        let mut seen = seen.lock().unwrap();
        seen.push(request.clone());
        seen.len() - 1
    };
    let full = |text: &str| {
        json!({"choices": [{"message": {"role": "assistant", "content": text}}],
               "usage": {"total_tokens": 100}})
        .to_string()
    };
    let send = |stream: &mut TcpStream, status: u16, body: &str| {
        let head = format!(
            "HTTP/1.1 {status} X\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
            body.len()
        );
        stream.write_all(head.as_bytes())?;
        stream.write_all(body.as_bytes())
    };
    match script(&request, n) {
        Say::Text(text) => send(&mut stream, 200, &full(&text)),
        Say::Status(status, body) => send(&mut stream, status, body),
        Say::Body(body) => send(&mut stream, 200, body),
        Say::Endless => {
            stream.write_all(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n")?;
            while !stop.load(Ordering::Relaxed) {
                stream.write_all(&[b' '; 8192])?;
            }
            Ok(())
        }
        Say::Slowly(text) => {
            let body = full(&text);
            let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len());
            stream.write_all(head.as_bytes())?;
            for byte in body.as_bytes() {
                if stop.load(Ordering::Relaxed) {
                    break;
                }
                stream.write_all(&[*byte])?;
                std::thread::sleep(Duration::from_millis(50));
            }
            Ok(())
        }
        Say::Half(text) => {
            let body = full(&text);
            let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len());
            stream.write_all(head.as_bytes())?;
            stream.write_all(&body.as_bytes()[..body.len() / 2])
        }
    }
}

fn read(stream: &mut TcpStream) -> std::io::Result<Value> {
    stream.set_read_timeout(Some(Duration::from_secs(10)))?;
    let mut bytes = Vec::new();
    let mut buffer = [0; 16 * 1024];
    loop {
        let read = stream.read(&mut buffer)?;
        if read == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        bytes.extend_from_slice(&buffer[..read]);
        let Some(end) = bytes.windows(4).position(|w| w == b"\r\n\r\n") else { continue };
        let head = String::from_utf8_lossy(&bytes[..end]).to_ascii_lowercase();
        let length = head
            .lines()
            .find_map(|l| l.strip_prefix("content-length:"))
            .and_then(|l| l.trim().parse::<usize>().ok())
            .unwrap_or(0);
        if bytes.len() >= end + 4 + length {
            let mut request: Value = serde_json::from_slice(&bytes[end + 4..]).unwrap_or_default();
            request["head"] = json!(head);
            return Ok(request);
        }
    }
}
