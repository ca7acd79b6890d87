//! The Model Context Protocol by raw messages: the handshake, its versions, errors, bounds and guards.

use crate::support::{Daemon, Fixture};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

const TREE: &str = "//- ports.md\n# Ports\n\n## Ports on app1\n\nThe unit harbor-web.service opens port 8080.\n//- net/dns.md\n# Name service\n\n## Flush\n\nresolvectl flush-caches\n";

/// `runbook-query mcp` with its pipes.
pub(crate) struct Pipes {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    /// Every line that was on stdout.
    lines: Vec<String>,
}

impl Pipes {
    fn start(data: &Path) -> Self {
        Self::start_with(data, &[])
    }

    pub(crate) fn start_with(data: &Path, args: &[&str]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_runbook-query"))
            .args(["mcp", "--embedder", "none", "--data"])
            .arg(data)
            .args(args)
            .env("RUNBOOK_CANARY", crate::hostile::CANARY)
            .env("RUNBOOK_LOG", "trace")
            .env("RUST_LOG", "debug")
            .env_remove("RUNBOOK_STATE")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let input = child.stdin.take().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        Self { child, input, output, lines: Vec::new() }
    }

    fn send(&mut self, message: &Value) {
        self.input.write_all(format!("{message}\n").as_bytes()).unwrap();
    }

    /// The next message that is no notification.
    fn receive(&mut self) -> Value {
        loop {
            let mut line = String::new();
            assert!(self.output.read_line(&mut line).unwrap() > 0, "the server ended");
            let message: Value =
                serde_json::from_str(&line).unwrap_or_else(|e| panic!("{e} on stdout: {line}"));
            assert_eq!(message["jsonrpc"], "2.0", "{line}");
            self.lines.push(line);
            // A message that could not be read is answered without an id.
            if message.get("method").is_none() && !message["id"].is_null() {
                return message;
            }
        }
    }

    pub(crate) fn call(&mut self, method: &str, params: Value) -> Value {
        let id = self.lines.len() + 100;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        let reply = self.receive();
        assert_eq!(reply["id"], id, "{reply}");
        reply
    }

    pub(crate) fn initialize(&mut self, version: &str) -> Value {
        let reply = self.call(
            "initialize",
            json!({"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}),
        );
        self.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        reply
    }

    pub(crate) fn tool(&mut self, name: &str, arguments: Value) -> Value {
        self.call("tools/call", json!({"name": name, "arguments": arguments}))["result"].clone()
    }
}

impl Drop for Pipes {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn text(result: &Value) -> String {
    let blocks = result["content"].as_array().unwrap_or_else(|| panic!("no content: {result}"));
    blocks.iter().filter_map(|b| b["text"].as_str()).collect::<Vec<_>>().join("\n")
}

/// MC-01: with all logging on, a good and a bad call and a message that is none, stdout is JSON-RPC.
#[test]
fn stdout_carries_nothing_but_messages() {
    let fixture = Fixture::lexical(TREE);
    let mut server = Pipes::start(&fixture.data());
    server.initialize("2025-11-25");
    server.input.write_all(b"this is no JSON\n\n{\"jsonrpc\":\"2.0\"}\n").unwrap();
    let answered = server.tool("ask", json!({"question": "which unit opens 8080"}));
    assert!(text(&answered).contains("harbor-web.service"), "{answered}");
    server.tool("ask", json!({"question": ""}));
    server.tool("shell", json!({"command": "cat /runbooks/ports.md | wc -l"}));
    server.call("nope/nope", json!({}));
    assert!(server.lines.len() >= 5);
    // The end of the input is the end of the program.
    drop(std::mem::replace(
        &mut server.input,
        Command::new("cat")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .unwrap()
            .stdin
            .take()
            .unwrap(),
    ));
    let started = Instant::now();
    while server.child.try_wait().unwrap().is_none() {
        assert!(started.elapsed() < Duration::from_secs(10), "it goes on without a client");
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(server.child.wait().unwrap().code(), Some(0));
    let mut rest = String::new();
    std::io::Read::read_to_string(&mut server.output, &mut rest).unwrap();
    assert!(rest.lines().all(|l| serde_json::from_str::<Value>(l).is_ok()), "{rest}");
}

/// MC-02 on stdio: a known version is echoed, everything else is answered with our newest.
#[test]
fn every_version_gets_a_handshake() {
    let fixture = Fixture::lexical(TREE);
    for (asked, given) in [
        (Some("2025-11-25"), "2025-11-25"),
        (Some("2025-06-18"), "2025-06-18"),
        (Some("2024-11-05"), "2024-11-05"),
        (Some("2099-01-01"), "2025-11-25"),
        (Some(""), "2025-11-25"),
        (None, "2025-11-25"),
    ] {
        let mut server = Pipes::start(&fixture.data());
        let mut params = json!({"capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
        if let Some(asked) = asked {
            params["protocolVersion"] = json!(asked);
        }
        let reply = server.call("initialize", params);
        assert_eq!(reply["result"]["protocolVersion"], given, "{asked:?}: {reply}");
        assert_eq!(reply["result"]["serverInfo"]["name"], "runbook-ask");
        let said = reply["result"]["instructions"].as_str().unwrap();
        for part in ["2 documents", "/runbooks (read-only)", "/tmp (writable)", "`cite`", "net (1)"]
        {
            assert!(said.contains(part), "{part}: {said}");
        }
    }
}

/// MC-04: names that are wrong are named, with the right ones.
#[test]
fn what_is_misspelt_is_told() {
    let fixture = Fixture::lexical(TREE);
    let mut server = Pipes::start(&fixture.data());
    server.initialize("2025-11-25");
    let listed = server.call("tools/list", json!({}))["result"]["tools"].clone();
    let tools = listed.as_array().unwrap();
    assert_eq!(tools.len(), 12);
    for tool in tools {
        let name = tool["name"].as_str().unwrap();
        assert_eq!(tool["inputSchema"]["additionalProperties"], false, "{name}");
        // By the schema: everything that is required is enough, and anything else is refused.
        let wrong = server.tool(name, json!({"qurey": "x"}));
        assert_eq!(wrong["isError"], true, "{name}");
        for property in tool["inputSchema"]["properties"].as_object().unwrap().keys() {
            assert!(text(&wrong).contains(property), "{name} does not name {property}");
        }
        let required = tool["inputSchema"]["required"].as_array().unwrap();
        let empty = server.tool(name, json!({}));
        assert_eq!(empty["isError"] == true, !required.is_empty(), "{name}: {empty}");
        if let Some(first) = required.first().and_then(Value::as_str) {
            assert!(text(&empty).contains(&format!("`{first}`")), "{name}: {empty}");
        }
    }
    let wrong = server.tool("ask", json!({"questoin": "x"}));
    assert!(text(&wrong).contains("did you mean `question`"), "{wrong}");
    let unknown = server.call("tools/call", json!({"name": "aks", "arguments": {}}));
    assert!(unknown["error"]["message"].as_str().unwrap().contains("ask"), "{unknown}");
}

/// MC-05: a file of 2 MB is shown in part, with where the rest is, and the session lives on.
#[test]
fn long_results_are_bounded() {
    let line = "0123456789 all work and no play makes a long runbook, this is one line of it\n";
    let tree =
        format!("//- big.md\n# Big\n\n{}//- ports.md\n# Ports\n\ntext\n", line.repeat(27_000));
    let fixture = Fixture::lexical(&tree);
    let mut server = Pipes::start(&fixture.data());
    server.initialize("2025-11-25");
    for (tool, arguments) in [
        ("shell", json!({"command": "cat /runbooks/big.md"})),
        ("read", json!({"path": "/runbooks/big.md"})),
        ("grep", json!({"pattern": "work", "path": "/runbooks"})),
    ] {
        let result = server.tool(tool, arguments);
        let size = text(&result).len() + result["structuredContent"].to_string().len();
        assert!(size < 60_000, "{tool}: {size} bytes are more than 20,000 tokens");
        let structured = &result["structuredContent"];
        assert_eq!(structured["truncated"], true, "{tool}: {structured}");
        let rest = structured["overflow"]["path"].as_str().unwrap();
        assert!(text(&result).contains(rest), "{tool}");
        let more = server.tool("read", json!({"path": rest, "lines": "20000-20002"}));
        assert!(text(&more).contains("all work"), "{tool}: {more}");
    }
    let resource = server.call("resources/read", json!({"uri": "runbook:///runbooks/big.md"}));
    let read = resource["result"]["contents"][0]["text"].as_str().unwrap();
    assert!(read.len() < 60_000 && read.contains("?lines="), "{}", read.len());
}

/// Routes and evidence on one connection: files first, then a search, then a citation.
#[test]
fn a_session_reads_before_it_searches_and_cites_what_it_saw() {
    let fixture = Fixture::lexical(TREE);
    let mut server = Pipes::start(&fixture.data());
    server.initialize("2025-11-25");
    let answer = json!({"answer": "harbor-web.service opens port 8080."});
    let nothing = server.tool("cite", answer.clone());
    assert_eq!(nothing["structuredContent"]["verdict"], "no_evidence");
    let steered = server.tool("search", json!({"question": "flush the name service"}));
    assert_eq!(steered["structuredContent"]["steered"], true);
    let empty = server.tool("grep", json!({"pattern": "nowhere-at-all"}));
    assert!(text(&empty).contains('2'), "an honest zero says how many files: {empty}");
    let found = server.tool("search", json!({"question": "flush the name service"}));
    assert_eq!(found["structuredContent"]["results"][0]["path"], "net/dns.md", "{found}");
    let unseen = server.tool("cite", answer.clone());
    assert_ne!(unseen["structuredContent"]["verdict"], "no_sources");
    server.tool("grep", json!({"pattern": "harbor-web"}));
    let cited = server.tool("cite", answer);
    assert_eq!(cited["structuredContent"]["verdict"], "supported", "{cited}");
    assert_eq!(cited["structuredContent"]["citations"][0]["path"], "ports.md");
    // What an agent has written itself supports nothing.
    server.tool("write", json!({"path": "/tmp/x.md", "content": "Use `harborctl --wipe`."}));
    server.tool("read", json!({"path": "/tmp/x.md"}));
    let invented = server.tool("cite", json!({"answer": "Use `harborctl --wipe`."}));
    assert_eq!(invented["structuredContent"]["verdict"], "unsupported", "{invented}");
    assert_eq!(invented["structuredContent"]["citations"], json!([]));
}

/// A call that is cancelled gets no result, and the connection goes on.
#[test]
fn a_cancelled_call_leaves_the_connection_alive() {
    let fixture = Fixture::lexical(TREE);
    let mut server = Pipes::start(&fixture.data());
    server.initialize("2025-11-25");
    let loops = "i=0; while [ $i -lt 100000000 ]; do i=$((i+1)); done";
    server.send(&json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "shell", "arguments": {"command": loops}}}));
    server.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7, "reason": "enough"}}));
    let started = Instant::now();
    let pong = server.call("ping", json!({}));
    assert_eq!(pong["result"], json!({}), "{pong}");
    assert!(started.elapsed() < Duration::from_secs(5));
}

struct Reply {
    status: u16,
    session: Option<String>,
    message: Value,
}

/// Posts a message to `/mcp` and reads the JSON of its reply, plain or in an event stream.
fn post(daemon: &Daemon, headers: &str, message: &Value) -> Reply {
    let body = message.to_string();
    let host = if headers.to_lowercase().contains("host:") {
        String::new()
    } else {
        format!("Host: {}\r\n", daemon.address)
    };
    let response = daemon.raw(&format!(
        "POST /mcp HTTP/1.1\r\n{host}Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\nContent-Length: {}\r\nConnection: close\r\n{headers}\r\n{body}",
        body.len()
    ));
    let status = response.split(' ').nth(1).and_then(|s| s.parse().ok()).unwrap_or(0);
    let (head, body) = response.split_once("\r\n\r\n").unwrap_or((&response, ""));
    let session = head.lines().find_map(|l| {
        let (name, value) = l.split_once(':')?;
        name.eq_ignore_ascii_case("mcp-session-id").then(|| value.trim().to_owned())
    });
    let parsed = body
        .lines()
        .map(|l| l.strip_prefix("data:").unwrap_or(l).trim())
        .filter(|l| l.starts_with('{'))
        .filter_map(|l| serde_json::from_str::<Value>(l).ok())
        .find(|v| v.get("method").is_none());
    Reply { status, session, message: parsed.unwrap_or(Value::Null) }
}

fn initialize(version: Option<&str>) -> Value {
    let mut params = json!({"capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
    if let Some(version) = version {
        params["protocolVersion"] = json!(version);
    }
    json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params})
}

/// MC-02 over HTTP: 400 only for a bad version header after the handshake; JSON, and it says why.
#[test]
fn versions_over_http() {
    let fixture = Fixture::lexical(TREE);
    let daemon = Daemon::start(&fixture.data(), &["--embedder", "none"]);
    for (asked, given) in [
        (Some("2025-11-25"), "2025-11-25"),
        (Some("2099-01-01"), "2025-11-25"),
        (None, "2025-11-25"),
    ] {
        let reply = post(&daemon, "", &initialize(asked));
        assert_eq!(reply.status, 200, "{asked:?}: {}", reply.message);
        assert_eq!(reply.message["result"]["protocolVersion"], given, "{}", reply.message);
        let session = reply.session.unwrap();
        let ping = json!({"jsonrpc": "2.0", "id": 2, "method": "ping"});
        let named = format!("Mcp-Session-Id: {session}\r\nMCP-Protocol-Version: {given}\r\n");
        assert_eq!(post(&daemon, &named, &ping).message["result"], json!({}));
        let bad = format!("Mcp-Session-Id: {session}\r\nMCP-Protocol-Version: 1999-01-01\r\n");
        let reply = post(&daemon, &bad, &ping);
        assert_eq!(reply.status, 400, "{}", reply.message);
        assert!(reply.message["error"]["message"].is_string(), "{}", reply.message);
    }
    let gone = post(
        &daemon,
        "Mcp-Session-Id: 0000\r\n",
        &json!({"jsonrpc": "2.0", "id": 1, "method": "ping"}),
    );
    assert_eq!((gone.status, &gone.message["error"]["code"]), (404, &json!("no_such_session")));
}

/// A client of 2026-07-28 has no session: results name one, and it passes it on.
#[test]
fn without_a_session_of_its_own_a_client_passes_it_on() {
    let fixture = Fixture::lexical(TREE);
    let daemon = Daemon::start(&fixture.data(), &["--embedder", "none"]);
    let call = |tool: &str, arguments: Value| {
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
            "name": tool, "arguments": arguments, "_meta": {
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientInfo": {"name": "t", "version": "1"},
                "io.modelcontextprotocol/clientCapabilities": {}}}});
        let headers = format!(
            "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: {tool}\r\n"
        );
        let reply = post(&daemon, &headers, &message);
        assert_eq!(reply.status, 200, "{}", reply.message);
        assert!(reply.session.is_none());
        reply.message["result"]["structuredContent"].clone()
    };
    let read = call("read", json!({"path": "/runbooks/ports.md"}));
    let session = read["session"].as_str().unwrap_or_else(|| panic!("{read}")).to_owned();
    let answer = "harbor-web.service opens port 8080.";
    let other = call("cite", json!({"answer": answer}));
    assert_eq!(other["verdict"], "no_evidence");
    let cited = call("cite", json!({"answer": answer, "session": session}));
    assert_eq!(cited["verdict"], "supported", "{cited}");
    let bad = call("cite", json!({"answer": answer, "session": "../x"}));
    assert_eq!(bad["error"]["code"], "bad_arguments", "{bad}");
}

/// MC-07: a proxy's public name is refused in JSON that names the setting, and taken once it is set.
#[test]
fn host_and_origin_are_checked_as_everywhere() {
    let fixture = Fixture::lexical(TREE);
    let args = ["--embedder", "none", "--allowed-host", "docs.example.org"];
    let daemon = Daemon::start(&fixture.data(), &args);
    let own = daemon.address.clone();
    for (headers, status, code) in [
        ("Host: docs.example.org\r\n".to_owned(), 200, ""),
        ("Host: docs.example.org\r\nOrigin: https://docs.example.org\r\n".into(), 200, ""),
        (format!("Host: {own}\r\nOrigin: http://{own}\r\n"), 200, ""),
        ("Host: evil.example\r\n".into(), 403, "host_not_allowed"),
        (format!("Host: {own}.evil.example\r\n"), 403, "host_not_allowed"),
        (format!("Host: {own}\r\nOrigin: https://evil.example\r\n"), 403, "origin_not_allowed"),
        (format!("Host: {own}\r\nOrigin: null\r\n"), 403, "origin_not_allowed"),
        (format!("Host: {own}\r\nHost: {own}\r\n"), 400, "bad_host"),
    ] {
        let reply = post(&daemon, &headers, &initialize(Some("2025-11-25")));
        assert_eq!(reply.status, status, "{headers}");
        if !code.is_empty() {
            assert_eq!(reply.message["error"]["code"], code, "{headers}");
        }
        if code == "host_not_allowed" {
            let hint = reply.message["error"]["hint"].as_str().unwrap();
            assert!(hint.contains("allowed_hosts"), "{hint}");
        }
    }
    let get = |accept: &str| {
        daemon.send(&format!(
            "GET /mcp HTTP/1.1\r\nHost: {own}\r\nAccept: {accept}\r\nConnection: close\r\n\r\n"
        ))
    };
    let (status, body) = get("text/html");
    assert!(status >= 400 && serde_json::from_str::<Value>(&body).is_ok(), "{status} {body}");
    let (status, body) = daemon.post("/mcp", "{}");
    assert_eq!(status, 406, "{body}");
    assert!(body.contains("text/event-stream"), "{body}");
}

/// An open event stream does not hold a stopping daemon up.
#[test]
fn a_listening_client_does_not_hold_the_end_up() {
    let fixture = Fixture::lexical(TREE);
    let mut daemon = Daemon::start(&fixture.data(), &["--embedder", "none"]);
    let session = post(&daemon, "", &initialize(Some("2025-11-25"))).session.unwrap();
    let mut stream = std::net::TcpStream::connect(&daemon.address).unwrap();
    let request = format!(
        "GET /mcp HTTP/1.1\r\nHost: {}\r\nAccept: text/event-stream\r\nMcp-Session-Id: {session}\r\n\r\n",
        daemon.address
    );
    stream.write_all(request.as_bytes()).unwrap();
    let mut first = [0; 12];
    std::io::Read::read_exact(&mut stream, &mut first).unwrap();
    assert_eq!(&first, b"HTTP/1.1 200");
    let started = Instant::now();
    daemon.signal("-TERM");
    assert_eq!(daemon.exit_code(), Some(0));
    assert!(started.elapsed() < Duration::from_secs(5), "{:?}", started.elapsed());
}
