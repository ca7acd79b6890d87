//! The OpenAPI description: checked in, valid, whole, and true of what the daemon says.

use crate::support::{Daemon, Fixture};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const TREE: &str = "//- net/ports.md\n# Ports\n\n## Ports on app1\n\nThe unit harbor-web.service opens port 8080:\n\n```sh\nss -ltn sport = :8080\n```\n//- db/dump.md\n# Dumps\n\n## Restore\n\nRun `pg_restore`.\n";

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The file as it is, or as it has become where `UPDATE=1` asks for that.
fn same_as(name: &str, now: &str) {
    let file = repository().join("docs").join(name);
    if std::env::var_os("UPDATE").is_some_and(|v| v == "1") {
        std::fs::write(&file, now).unwrap();
    }
    let kept = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(kept == now, "docs/{name} is not as the code has it; UPDATE=1 writes it anew");
}

#[test]
fn the_description_that_is_checked_in_is_that_of_the_code() {
    let now = serde_json::to_string_pretty(&runbook_query::http::openapi()).unwrap();
    same_as("openapi.json", &format!("{now}\n"));
}

#[test]
fn the_page_of_routes_is_that_of_the_description() {
    same_as("http-routes.md", &routes_page(&runbook_query::http::openapi()));
}

/// Every operation by its group, as a chapter of the book.
fn routes_page(document: &Value) -> String {
    let mut page = String::from(
        "# HTTP routes\n\nMade from [openapi.json](openapi.json), which is made from the code; a running daemon gives it at\n`/openapi.json`. [HTTP API](http-api.md) says what the replies mean. Each error has the shape described there.\n",
    );
    for tag in document["tags"].as_array().unwrap() {
        let (name, about) = (tag["name"].as_str().unwrap(), tag["description"].as_str().unwrap());
        let (title, about) = (capital(name), capital(about));
        page.push_str(&format!("\n## {title}\n\n{about}.\n"));
        for (path, methods) in document["paths"].as_object().unwrap() {
            for (method, operation) in methods.as_object().unwrap() {
                if operation["tags"][0] == name {
                    page.push_str(&operation_section(document, path, method, operation));
                }
            }
        }
    }
    page
}

fn capital(text: &str) -> String {
    let mut text = text.to_owned();
    text[..1].make_ascii_uppercase();
    text
}

fn operation_section(document: &Value, path: &str, method: &str, operation: &Value) -> String {
    let method = method.to_uppercase();
    let mut text =
        format!("\n### `{method} {path}`\n\n{}.\n", operation["summary"].as_str().unwrap());
    let mut keys: Vec<String> = Vec::new();
    for parameter in operation["parameters"].as_array().into_iter().flatten() {
        keys.push(key(
            parameter["name"].as_str().unwrap(),
            parameter["required"] == true,
            parameter["description"].as_str(),
        ));
    }
    let body = &operation["requestBody"]["content"]["application/json"]["schema"]["$ref"];
    if let Some(name) = body.as_str().and_then(|r| r.rsplit('/').next()) {
        let schema = &document["components"]["schemas"][name];
        let required: BTreeSet<&str> =
            schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        for (name, property) in schema["properties"].as_object().unwrap() {
            keys.push(key(
                name,
                required.contains(name.as_str()),
                property["description"].as_str(),
            ));
        }
    }
    if !keys.is_empty() {
        text.push_str(&format!("\n| Key | | Meaning |\n|---|---|---|\n{}\n", keys.join("\n")));
    }
    let responses = operation["responses"].as_object().unwrap();
    let rows: Vec<String> = responses
        .iter()
        .map(|(status, r)| {
            let kinds = r["content"].as_object();
            let kinds: Vec<&str> = kinds
                .into_iter()
                .flat_map(|c| c.keys())
                .map(|k| k.split(';').next().unwrap_or(k))
                .collect();
            format!("| {status} | {} | {} |", kinds.join(", "), r["description"].as_str().unwrap())
        })
        .collect();
    text.push_str(&format!("\n| Status | Kind | What |\n|---|---|---|\n{}\n", rows.join("\n")));
    text
}

fn key(name: &str, required: bool, about: Option<&str>) -> String {
    let about = about.unwrap_or("").trim_end_matches('.').replace('|', "\\|");
    format!("| `{name}` | {} | {about} |", if required { "required" } else { "" })
}

/// Every path that is written in the routes' own modules is in the description, and nothing else adds one.
#[test]
fn every_route_of_the_router_is_described() {
    let described: BTreeSet<String> =
        runbook_query::http::openapi()["paths"].as_object().unwrap().keys().cloned().collect();
    let mut written = BTreeSet::new();
    let mut files = vec![repository().join("query/src/http.rs")];
    files.extend(
        std::fs::read_dir(repository().join("query/src/http")).unwrap().map(|e| e.unwrap().path()),
    );
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        if !file.ends_with("routes.rs") {
            assert!(
                !text.contains("Router::new()"),
                "{}: routes go through Routes",
                file.display()
            );
        }
        for after in text.split(".route(").skip(1) {
            if let Some(path) = after.trim_start().strip_prefix('"') {
                written.insert(path.split('"').next().unwrap().replace("{*", "{"));
            }
        }
    }
    assert_eq!(written, described);
}

/// Each method that is described is served, and no other.
#[test]
fn every_method_is_as_it_is_described() {
    let fixture = Fixture::lexical(TREE);
    let daemon = Daemon::start(&fixture.data(), &["--embedder", "none"]);
    for (path, methods) in runbook_query::http::openapi()["paths"].as_object().unwrap() {
        let at =
            path.split('{').next().unwrap().to_owned() + if path.contains('{') { "x" } else { "" };
        for method in ["get", "post", "put", "delete"] {
            let (status, body) = daemon.send(&format!(
                "{} {at} HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{{}}",
                method.to_uppercase(),
                daemon.address
            ));
            let refused = status == 405;
            if path == "/mcp" && method != "put" {
                continue; // the protocol says when a method is not allowed
            }
            assert_eq!(refused, methods.get(method).is_none(), "{method} {at}: {status} {body}");
            assert!(!body.contains("\"not_found\",\"message\":\"there is no such page"), "{at}");
        }
    }
}

/// A call, and what came back.
struct Calls<'a> {
    daemon: &'a Daemon,
    replies: Vec<Value>,
}

impl Calls<'_> {
    fn send(&mut self, method: &str, target: &str, head: &str, body: &str) -> Value {
        let host = if head.contains("Host:") {
            String::new()
        } else {
            format!("Host: {}\r\n", self.daemon.address)
        };
        let request = format!(
            "{} {target} HTTP/1.1\r\n{host}{head}Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
            method.to_uppercase(),
            body.len()
        );
        let response = self.daemon.raw(&request);
        let (top, body) = response.split_once("\r\n\r\n").unwrap();
        assert!(!top.contains("chunked"), "{top}");
        let status: u16 = top.split(' ').nth(1).unwrap().parse().unwrap();
        let kind = top
            .lines()
            .find_map(|l| l.to_ascii_lowercase().strip_prefix("content-type: ").map(str::to_owned))
            .unwrap_or_default();
        let path = target.split('?').next().unwrap();
        let path = if path.starts_with("/read/") { "/read/{path}" } else { path };
        self.replies.push(json!({
            "path": path, "method": method, "status": status,
            "kind": kind.split(';').next().unwrap_or(""), "body": body,
        }));
        serde_json::from_str(body).unwrap_or(Value::Null)
    }

    fn get(&mut self, target: &str) -> Value {
        self.send("get", target, "", "")
    }

    fn post(&mut self, path: &str, body: &Value) -> Value {
        self.send("post", path, "Content-Type: application/json\r\n", &body.to_string())
    }
}

/// The calls that a client makes, and those that go wrong.
fn conversation(calls: &mut Calls<'_>) {
    let asked = calls.get("/v1/ask?q=which+unit+opens+8080&explain=true");
    assert_eq!(asked["band"], "answer", "{asked}");
    let refused = calls.post("/v1/ask", &json!({"question": "who owns the toaster", "k": 3}));
    assert_eq!(refused["answer"], "I do not know", "{refused}");
    calls.get("/v1/ask?q=restart+nginx+for+me");
    calls.send("get", "/v1/ask?q=which+unit+opens+8080", "Accept: text/plain\r\n", "");
    let session = asked["session"].as_str().unwrap().to_owned();
    assert!(calls.get("/v1/search?q=port+8080&session=s1")["results"].is_array());
    calls.post(
        "/v1/cite",
        &json!({"session": session, "answer": "The unit opens port 8080 with --force."}),
    );
    calls.post("/v1/cite", &json!({"session": "nobody", "answer": "I do not know"}));
    let report = json!({"id": asked["id"], "verdict": "wrong", "note": "no", "page": "db/dump.md"});
    assert!(calls.post("/v1/feedback", &report)["report"].is_string());
    for path in ["/v1/status", "/v1/index", "/livez", "/readyz", "/metrics", "/openapi.json", "/"] {
        calls.get(path);
    }
    calls.get("/read/net/ports.md");
    for target in [
        "/v1/fs/ls?path=/",
        "/v1/fs/read?path=net/ports.md&lines=1-3",
        "/v1/fs/tree?depth=2",
        "/v1/fs/find?name=*.md",
        "/v1/fs/grep?pattern=8080&include=*.md&include=*.txt&ignore_case=true",
        "/v1/fs/load",
        "/v1/fs/capabilities",
    ] {
        calls.get(target);
    }
    let file = json!({"path": "/tmp/a.txt", "content": "one\n", "session": session});
    assert!(calls.post("/v1/fs/write", &file)["error"].is_null());
    calls.post(
        "/v1/fs/edit",
        &json!({"path": "/tmp/a.txt", "old": "one", "new": "two", "session": session}),
    );
    calls.post("/v1/fs/delete", &json!({"path": "/tmp/a.txt", "session": session}));
    calls.post("/v1/fs/touched", &json!({"places": [{"path": "net/ports.md", "lines": [1, 2]}]}));
    calls.post(
        "/v1/shell",
        &json!({"command": "grep -rn 8080 . | wc -l; nonsense", "session": session}),
    );
    mistakes(calls, &session);
}

fn mistakes(calls: &mut Calls<'_>, session: &str) {
    for target in [
        "/v1/ask?q=",
        "/v1/ask?q=x&k=99",
        "/v1/ask?nonsense=1",
        "/v1/ask?q=x&scope=nowhere",
        "/v1/search?q=x&session=a/b",
        "/v1/fs/read?path=nowhere.md",
        "/v1/fs/read?path=net",
        "/v1/fs/grep?pattern=(",
        "/v1/fs/grep?nonsense=1",
        "/v1/fs/history?path=net/ports.md&session=a/b",
        "/read/nowhere.md",
    ] {
        calls.get(target);
    }
    calls.post("/v1/ask", &json!({"question": "x", "nonsense": 1}));
    calls.post("/v1/ask", &json!({"question": "x ".repeat(40_000)}));
    calls.post("/v1/feedback", &json!({"id": "r0", "verdict": "wrong"}));
    calls.post(
        "/v1/fs/write",
        &json!({"path": "/runbooks/a.md", "content": "", "session": session}),
    );
    calls.post(
        "/v1/fs/edit",
        &json!({"path": "/tmp/b", "old": "x", "new": "y", "session": session}),
    );
    calls.send("post", "/v1/ask", "Content-Type: text/plain\r\n", "x");
    calls.send("get", "/v1/status", "Host: evil.example\r\n", "");
    calls.send("get", "/v1/status", "Origin: http://evil.example\r\n", "");
}

#[test]
fn replies_are_as_they_are_described() {
    let fixture = Fixture::lexical(TREE);
    let state = fixture.dir.path().join("state");
    let daemon =
        Daemon::start(&fixture.data(), &["--embedder", "none", "--state", state.to_str().unwrap()]);
    let mut calls = Calls { daemon: &daemon, replies: Vec::new() };
    conversation(&mut calls);
    let document = calls.get("/openapi.json");
    assert_eq!(document, runbook_query::http::openapi());
    let statuses: BTreeSet<u64> =
        calls.replies.iter().map(|r| r["status"].as_u64().unwrap()).collect();
    for status in [200, 201, 400, 403, 404, 413, 415] {
        assert!(statuses.contains(&status), "{status} was never seen: {statuses:?}");
    }
    busy(&fixture, &mut calls.replies);
    validate(&json!({"document": document, "replies": calls.replies}));
}

/// A daemon with room for one operation of the tree, so that one of many gets 429, and whose searches wait.
fn busy(fixture: &Fixture, replies: &mut Vec<Value>) {
    let config = fixture.dir.path().join("busy.toml");
    std::fs::write(&config, "[tree]\nconcurrent = 1\n[agents]\nfiles_first = \"always\"\n")
        .unwrap();
    let args = ["--embedder", "none", "--config", config.to_str().unwrap()];
    let daemon = Daemon::start(&fixture.data(), &args);
    let (status, steered) = daemon.get("/v1/search?q=port");
    assert!(steered.contains("\"steered\":true"), "{steered}");
    replies.push(json!({"path": "/v1/search", "method": "get", "status": status, "kind": "application/json", "body": steered}));
    let body = json!({"command": "for i in 1 2 3 4 5 6 7 8; do for j in 1 2 3 4 5 6 7 8; do for k in $(seq 1 400); do true; done; done; done"});
    let seen: Vec<(u16, String)> = std::thread::scope(|scope| {
        let asking: Vec<_> =
            (0..60).map(|_| scope.spawn(|| daemon.post("/v1/shell", &body.to_string()))).collect();
        asking.into_iter().map(|a| a.join().unwrap()).collect()
    });
    let refused = seen.into_iter().find(|(status, _)| *status == 429);
    let (status, body) =
        refused.expect("60 commands at once where one may run, and none was refused");
    replies.push(json!({"path": "/v1/shell", "method": "post", "status": status, "kind": "application/json", "body": body}));
}

/// openapi-spec-validator and jsonschema from PyPI, where deploy/setup --with-tests has put them.
fn validate(input: &Value) {
    let target = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).parent().unwrap().to_owned();
    let mut child = Command::new("python3")
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/openapi_check.py"))
        .env("PYTHONPATH", target.join("test-python"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap_or_else(|e| {
            panic!("cannot run python3: {e}; deploy/setup --with-tests installs it")
        });
    child.stdin.take().unwrap().write_all(input.to_string().as_bytes()).unwrap();
    let out = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&out.stdout);
    assert!(
        out.status.success(),
        "{said}{}\nthe modules come with deploy/setup --with-tests",
        String::from_utf8_lossy(&out.stderr)
    );
}
