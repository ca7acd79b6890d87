//! Stores against real servers: Redis of Debian's packages, S3 as moto serves it.

use crate::support::Fixture;
use runbook_query::tree::limits::Limits;
use runbook_query::tree::request::{Delete, History, Ls, Read, Write};
use runbook_query::tree::router::{Tree, View};
use runbook_query::tree::setup::{self, ArtifactsTable, Settings, TmpTable};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

const TREE: &str = "//- ports.md\n# Ports\n\nnginx opens 8080.\n";

/// A server of this test, ended with it.
struct Server {
    child: Child,
    port: u16,
}

impl Server {
    fn start(command: &mut Command, port: u16) -> Self {
        let child =
            command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap_or_else(|e| {
                panic!("cannot start {command:?}: {e}; deploy/setup --with-tests installs it")
            });
        let mut server = Self { child, port };
        let started = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(started.elapsed() < Duration::from_secs(60), "the server does not listen");
            if let Ok(Some(status)) = server.child.try_wait() {
                panic!("the server ended: {status}");
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        server
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A port that was free a moment ago.
fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

fn redis() -> Server {
    let port = free_port();
    let mut command = Command::new("redis-server");
    command.args([
        "--port",
        &port.to_string(),
        "--bind",
        "127.0.0.1",
        "--save",
        "",
        "--appendonly",
        "no",
    ]);
    Server::start(&mut command, port)
}

/// moto from PyPI, where deploy/setup --with-tests has put it.
fn s3() -> Server {
    let port = free_port();
    let target = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).parent().unwrap().to_owned();
    let mut command = Command::new("python3");
    command
        .args(["-m", "moto.server", "-H", "127.0.0.1", "-p", &port.to_string()])
        .env("PYTHONPATH", target.join("test-python"));
    Server::start(&mut command, port)
}

fn view(fixture: &Fixture, settings: &Settings, session: &str) -> View {
    let options = setup::options(settings, None).unwrap();
    fixture.service().with_tree(Arc::new(Tree::new(options))).view(Some(session)).unwrap()
}

fn write(view: &View, path: &str, content: &str) -> String {
    let envelope = view.write(&Write { path: path.into(), content: content.into() });
    envelope.error.map_or(String::new(), |e| e.code)
}

fn read(view: &View, path: &str) -> Result<String, String> {
    let envelope = view.read(&Read { path: path.into(), lines: None, version: None });
    envelope.error.map_or(Ok(envelope.content), |e| Err(e.code))
}

fn ls(view: &View, path: &str) -> String {
    view.ls(&Ls { path: Some(path.into()) }).content
}

#[test]
fn tmp_in_redis_is_shared_by_daemons_and_ends() {
    let fixture = Fixture::lexical(TREE);
    let mut server = redis();
    let settings = |ttl| Settings {
        tree: Limits { tmp_ttl_s: ttl, tmp_bytes: 100, ..Limits::default() },
        tmp: TmpTable { redis: Some(format!("redis://127.0.0.1:{}/0", server.port)) },
        ..Settings::default()
    };
    let one = view(&fixture, &settings(60), "s1");
    let two = view(&fixture, &settings(60), "s1");
    let stranger = view(&fixture, &settings(60), "s2");
    assert_eq!(write(&one, "/tmp/notes/a.md", "hello"), "");
    assert_eq!(read(&two, "/tmp/notes/a.md").as_deref(), Ok("hello"), "the other daemon has it");
    assert_eq!(ls(&two, "/tmp"), "notes/\n");
    assert_eq!(read(&stranger, "/tmp/notes/a.md"), Err("not_found".into()), "each session its own");
    assert_eq!(write(&one, "/tmp/notes", "x"), "is_a_directory");
    assert_eq!(write(&one, "/tmp/notes/a.md/b", "x"), "not_a_directory");
    assert_eq!(write(&one, "/tmp/big", &"x".repeat(101)), "too_large");
    let delete = |path: &str, recursive| {
        two.delete(&Delete { path: path.into(), recursive }).error.map_or(String::new(), |e| e.code)
    };
    assert_eq!(delete("/tmp/notes", true), "");
    assert_eq!(read(&one, "/tmp/notes/a.md"), Err("not_found".into()));
    let brief = view(&fixture, &settings(1), "s3");
    assert_eq!(write(&brief, "/tmp/x", "soon gone"), "");
    assert_eq!(read(&brief, "/tmp/x").as_deref(), Ok("soon gone"));
    std::thread::sleep(Duration::from_millis(2100));
    assert_eq!(read(&brief, "/tmp/x"), Err("not_found".into()), "Redis let it go");
    assert_eq!(ls(&brief, "/tmp"), "");
    // A long result is kept there, too, and any daemon gives it.
    let shell = runbook_query::shell::run(
        &view(&fixture, &Settings { tree: Limits::default(), ..settings(60) }, "s4"),
        &runbook_query::shell::Request { command: "seq 1 9999".into(), ..Default::default() },
    );
    let path = shell.overflow.unwrap().path;
    let other = view(&fixture, &Settings { tree: Limits::default(), ..settings(60) }, "s4");
    let part = other.read(&Read { path, lines: Some("5000".into()), version: None });
    assert_eq!(part.content, "5000\n");
    // Without Redis /tmp is an error, and the rest goes on.
    let _ = server.child.kill();
    let _ = server.child.wait();
    assert_eq!(read(&one, "/tmp/x"), Err("unavailable".into()));
    assert!(read(&one, "/runbooks/ports.md").is_ok());
}

#[test]
fn artifacts_in_s3_keep_every_version() {
    let fixture = Fixture::lexical(TREE);
    let server = s3();
    let key = fixture.dir.path().join("s3-key");
    std::fs::write(&key, "any key does\n").unwrap();
    let _ = rustls::crypto::ring::default_provider().install_default();
    let bucket = reqwest::blocking::Client::new();
    let made = bucket.put(format!("http://127.0.0.1:{}/team", server.port)).send().unwrap();
    assert!(made.status().is_success(), "{made:?}");
    let settings = Settings {
        artifacts: ArtifactsTable {
            url: Some("s3://team/runbook-ask".into()),
            endpoint: Some(format!("http://127.0.0.1:{}", server.port)),
            region: Some("us-east-1".into()),
            access_key_id: Some("test".into()),
            secret_access_key_file: Some(key),
        },
        ..Settings::default()
    };
    let one = view(&fixture, &settings, "s1");
    let two = view(&fixture, &settings, "s2");
    let path = "/artifacts/reports/w\u{f6}chentlich 1.md";
    assert_eq!(write(&one, path, "one"), "");
    assert_eq!(write(&two, path, "two"), "");
    assert_eq!(read(&one, path).as_deref(), Ok("two"), "durable and shared");
    assert_eq!(ls(&one, "/artifacts"), "reports/\n");
    assert_eq!(ls(&one, "/artifacts/reports"), "w\u{f6}chentlich 1.md\n");
    let history = two.history(&History { path: path.into() });
    let versions = history.data["versions"].as_array().unwrap().clone();
    assert_eq!(versions.len(), 2, "{history:?}");
    let first = versions[1]["id"].as_str().unwrap().to_owned();
    let old = one.read(&Read { path: path.into(), lines: None, version: Some(first) });
    assert_eq!(old.content, "one");
    assert!(one.delete(&Delete { path: path.into(), recursive: false }).is_ok());
    assert_eq!(read(&two, path), Err("not_found".into()));
    assert_eq!(two.history(&History { path: path.into() }).data["versions"][0]["deleted"], true);
    assert_eq!(write(&one, "/artifacts/reports", "x"), "", "the directory went with its last file");
    drop(server);
    assert_eq!(read(&one, path), Err("unavailable".into()));
    assert!(read(&one, "/runbooks/ports.md").is_ok());
}
