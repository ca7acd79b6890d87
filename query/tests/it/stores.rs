//! Stores and caches against real servers: Redis of Debian's packages, S3 as moto serves it.

use crate::support::{Daemon, Fixture};
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
            ..ArtifactsTable::default()
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

/// Artifacts in a directory, with these limits on the past.
fn limited(fixture: &Fixture, keep_versions: u64, max_bytes: u64) -> View {
    let artifacts = ArtifactsTable { keep_versions, max_bytes, ..ArtifactsTable::default() };
    let settings = Settings { artifacts, ..Settings::default() };
    let state = fixture.dir.path().join("state");
    let options = setup::options(&settings, Some(&state)).unwrap();
    fixture.service().with_tree(Arc::new(Tree::new(options))).view(Some("s")).unwrap()
}

fn versions(view: &View, path: &str) -> Vec<(String, u64)> {
    let history = view.history(&History { path: path.into() });
    let all = history.data["versions"].as_array().cloned().unwrap_or_default();
    let of = |v: &serde_json::Value| {
        (v["id"].as_str().unwrap().to_owned(), v["bytes"].as_u64().unwrap())
    };
    all.iter().map(of).collect()
}

#[test]
fn old_versions_go_where_a_setting_says_so() {
    let fixture = Fixture::lexical(TREE);
    let all = limited(&fixture, 0, 0);
    for n in 1..=5 {
        assert_eq!(write(&all, "/artifacts/a.md", &"x".repeat(n)), "");
    }
    assert_eq!(versions(&all, "/artifacts/a.md").len(), 5, "all, where nothing is said");
    assert!(ls(&all, "/").contains("every version is kept"), "{}", ls(&all, "/"));

    let three = limited(&fixture, 3, 0);
    assert!(ls(&three, "/").contains("the last 3 versions"), "{}", ls(&three, "/"));
    assert_eq!(write(&three, "/artifacts/a.md", "xxxxxx"), "");
    let left: Vec<u64> = versions(&three, "/artifacts/a.md").iter().map(|v| v.1).collect();
    assert_eq!(left, [6, 5, 4], "newest first");
    assert_eq!(read(&three, "/artifacts/a.md").as_deref(), Ok("xxxxxx"));
    assert_eq!(write(&three, "/artifacts/b.md", "b"), "");
    assert_eq!(versions(&three, "/artifacts/a.md").len(), 3, "each file has its own");

    // 6 + 5 + 4 + 1 bytes are there.
    let small = limited(&fixture, 0, 12);
    assert_eq!(write(&small, "/artifacts/c.md", "ccc"), "");
    let left: Vec<u64> = versions(&small, "/artifacts/a.md").iter().map(|v| v.1).collect();
    assert_eq!(left, [6], "what was replaced went, the oldest first, until all fits");
    assert_eq!(
        write(&small, "/artifacts/d.md", "ddd"),
        "too_large",
        "the latest are never removed"
    );
    assert_eq!(read(&small, "/artifacts/d.md"), Err("not_found".into()));
    assert_eq!(write(&small, "/artifacts/c.md", "cc"), "", "what it replaces goes");
    let delete = Delete { path: "/artifacts/a.md".into(), recursive: false };
    assert!(small.delete(&delete).is_ok());
    assert_eq!(write(&small, "/artifacts/d.md", "ddddddd"), "", "a deleted file makes room");
    assert_eq!(read(&small, "/artifacts/b.md").as_deref(), Ok("b"));
}

/// How often a daemon computed the vector of a question.
fn embedded(daemon: &Daemon) -> u64 {
    let (_, metrics) = daemon.get("/metrics");
    let line = metrics.lines().find(|l| l.contains("stage_seconds_count") && l.contains("embed"));
    line.and_then(|l| l.rsplit(' ').next()?.parse().ok()).unwrap_or(0)
}

#[test]
fn vectors_of_questions_are_shared_through_redis() {
    let fixture = Fixture::hybrid(TREE);
    let mut server = redis();
    let config = fixture.dir.path().join("cache.toml");
    let url = format!("redis://127.0.0.1:{}/0", server.port);
    std::fs::write(&config, format!("[cache]\nredis = \"{url}\"\nttl_s = 60\n")).unwrap();
    let args = ["--config", config.to_str().unwrap()];
    let one = Daemon::start(&fixture.data(), &args);
    let mut two = Daemon::start(&fixture.data(), &args);
    let ask = |daemon: &Daemon, q: &str| daemon.json(&format!("/v1/ask?q={q}"));
    let first = ask(&one, "which+port+does+nginx+open");
    assert_eq!((first["degraded"].as_bool(), embedded(&one)), (Some(false), 1));
    let second = ask(&two, "which+port+does+nginx+open");
    assert_eq!(embedded(&two), 0, "the other daemon has it from Redis");
    assert_eq!(first["confidence"], second["confidence"]);
    // What Redis holds: hashes, numbers, an end.
    let mut redis = redis::Client::open(url).unwrap().get_connection().unwrap();
    let keys: Vec<String> = redis::cmd("KEYS").arg("*").query(&mut redis).unwrap();
    assert!(keys.len() == 1 && keys[0].starts_with("runbook:vector:"), "{keys:?}");
    let ttl: i64 = redis::cmd("TTL").arg(&keys[0]).query(&mut redis).unwrap();
    assert!((1..=60).contains(&ttl), "{ttl}");
    // Something else under that key is not taken for a vector.
    redis::cmd("FLUSHALL").query::<()>(&mut redis).unwrap();
    ask(&one, "what+is+on+8080");
    let keys: Vec<String> = redis::cmd("KEYS").arg("*").query(&mut redis).unwrap();
    redis::cmd("SET").arg(&keys[0]).arg("nonsense").query::<()>(&mut redis).unwrap();
    assert_eq!(ask(&two, "what+is+on+8080")["degraded"], false);
    assert_eq!(embedded(&two), 1);
    // Without Redis both go on, and say it once.
    let _ = server.child.kill();
    let _ = server.child.wait();
    for n in 0..4 {
        let asked = Instant::now();
        assert_eq!(ask(&two, &format!("where+is+nginx+{n}"))["degraded"], false);
        assert!(asked.elapsed() < Duration::from_secs(3), "{:?}", asked.elapsed());
    }
    assert_eq!(embedded(&two), 5);
    two.signal("-TERM");
    assert_eq!(two.exit_code(), Some(0));
    assert_eq!(two.log().matches("Redis does not answer").count(), 1);
}
