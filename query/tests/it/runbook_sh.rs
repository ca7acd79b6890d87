//! `runbook-sh` as a program: over a data directory and over a daemon.

use crate::support::{Daemon, Fixture};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Output, Stdio};
use std::sync::{Arc, Mutex};

const TREE: &str = "//- deploy/staging.md\n# Staging\n\n## Reset\n\nRun `harborctl reset`.\n//- ports.md\n# Ports\n\nnginx opens 8080.\n";

fn sh(fixture: &Fixture, args: &[&str]) -> Output {
    let home = fixture.dir.path().join("home");
    std::fs::create_dir_all(&home).unwrap();
    Command::new(env!("CARGO_BIN_EXE_runbook-sh"))
        .args(args)
        .env("HOME", &home)
        .env("RUNBOOK_CANARY", crate::hostile::CANARY)
        .env_remove("XDG_CACHE_HOME")
        .env_remove("XDG_STATE_HOME")
        .env_remove("RUNBOOK_DATA")
        .env_remove("RUNBOOK_URL")
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Passes connections on to a daemon and keeps the first line and the status of each request.
fn proxy(to: &str) -> (String, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let (log, to) = (Arc::clone(&seen), to.to_owned());
    std::thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let (log, to) = (Arc::clone(&log), to.clone());
            std::thread::spawn(move || pass(client, &to, &log));
        }
    });
    (address, seen)
}

/// One request of one connection, with the daemon's own name in place of the proxy's.
fn pass(mut client: TcpStream, to: &str, log: &Mutex<Vec<String>>) {
    let mut request = Vec::new();
    let mut buffer = [0; 4096];
    let head_end = loop {
        let n = client.read(&mut buffer).unwrap_or(0);
        if n == 0 {
            return;
        }
        request.extend_from_slice(&buffer[..n]);
        if let Some(at) = request.windows(4).position(|w| w == b"\r\n\r\n") {
            break at + 4;
        }
    };
    let head = text(&request[..head_end]);
    let length: usize = head
        .lines()
        .find_map(|l| l.to_ascii_lowercase().strip_prefix("content-length: ").map(str::to_owned))
        .and_then(|l| l.trim().parse().ok())
        .unwrap_or(0);
    while request.len() < head_end + length {
        let n = client.read(&mut buffer).unwrap_or(0);
        request.extend_from_slice(&buffer[..n]);
    }
    let lines: Vec<String> = head
        .lines()
        .filter(|l| !l.is_empty())
        .map(|l| match l.to_ascii_lowercase() {
            l if l.starts_with("host:") => format!("Host: {to}"),
            _ => l.to_owned(),
        })
        .collect();
    let mut server = TcpStream::connect(to).unwrap();
    let head = format!("{}\r\nConnection: close\r\n\r\n", lines.join("\r\n"));
    server.write_all(head.as_bytes()).unwrap();
    server.write_all(&request[head_end..]).unwrap();
    let mut response = Vec::new();
    let _ = server.read_to_end(&mut response);
    let status = text(&response[9..12]);
    log.lock().unwrap().push(format!("{} {status}", lines[0].trim_end_matches(" HTTP/1.1")));
    let _ = client.write_all(&response);
}

#[test]
fn over_a_data_directory() {
    let fixture = Fixture::lexical(TREE);
    let data = fixture.data();
    let data = data.to_str().unwrap();
    let run = |command: &str| {
        let output = sh(&fixture, &["--data", data, "-c", command]);
        (output.status.code().unwrap(), text(&output.stdout), text(&output.stderr))
    };
    assert_eq!(run("grep -rn nginx"), (0, "ports.md:3:nginx opens 8080.\n".into(), String::new()));
    assert_eq!(run("grep -q zzz ports.md").0, 1);
    assert_eq!(run("exit 7").0, 7);
    let (code, _, err) = run("kubectl get pods 2>/dev/null");
    assert!(code == 127 && err.contains("kubectl"), "{code} {err}");
    assert_eq!(run("sort -Q ports.md").0, 2);
    assert_eq!(run("echo x > /tmp/a; cat /tmp/a").1, "x\n");
    let (code, out, _) =
        run("env; printenv; export -p; cat /etc/passwd; echo $HOME $RUNBOOK_CANARY");
    assert!(!out.contains(crate::hostile::CANARY) && !out.contains("root:"), "{code} {out}");
    // The whole of a long output is printed.
    assert_eq!(run("for i in $(seq 1 3000); do echo line $i; done").1.lines().count(), 3000);
    let missing = sh(&fixture, &["--data", "/nonexistent", "-c", "ls"]);
    assert_eq!(missing.status.code(), Some(1));
    assert!(text(&missing.stderr).contains("hint:"));
    assert_eq!(sh(&fixture, &["-c", "ls"]).status.code(), Some(2));
}

#[test]
fn over_a_daemon_the_tree_is_kept_and_reads_are_reported() {
    let fixture = Fixture::lexical(TREE);
    let state = fixture.dir.path().join("state");
    let daemon =
        Daemon::start(&fixture.data(), &["--embedder", "none", "--state", state.to_str().unwrap()]);
    let (address, seen) = proxy(&daemon.address);
    let url = format!("http://{address}");
    let run = |command: &str| {
        let output = sh(&fixture, &["--url", &url, "--session", "sh1", "-c", command]);
        (output.status.code().unwrap(), text(&output.stdout), text(&output.stderr))
    };
    let took = || std::mem::take(&mut *seen.lock().unwrap());
    assert_eq!(
        run("grep -rl nginx; ls /"),
        (0, "ports.md\nartifacts\nrunbooks\ntmp\n".into(), String::new())
    );
    assert_eq!(took(), ["GET /v1/fs/load 200", "POST /v1/fs/touched 200"]);
    assert_eq!(run("pwd").1, "/runbooks\n");
    assert_eq!(took(), ["GET /v1/fs/load 304"], "a repeat start is one conditional request");
    assert_eq!(
        run("echo note > /artifacts/n.md && cat /artifacts/n.md && ls /artifacts").1,
        "note\nn.md\n"
    );
    assert_eq!(daemon.json("/v1/fs/read?path=/artifacts/n.md")["content"], "note\n");
    assert_eq!(run("cat /artifacts/none.md").0, 1);
    assert_ne!(run("echo x > ports.md").0, 0);
    fixture.write("//- new.md\n# New\n");
    crate::support::ingest(&fixture.source().display().to_string(), &fixture.data(), Some("none"));
    daemon.wait("/v1/fs/find?name=new.md", |v| v["data"]["found"] == 1);
    took();
    assert_eq!(run("cat new.md").1, "# New\n");
    assert_eq!(took()[0], "GET /v1/fs/load 200");
    let gone = sh(&fixture, &["--url", "http://127.0.0.1:1", "-c", "ls"]);
    assert_eq!(gone.status.code(), Some(1));
    assert!(text(&gone.stderr).contains("refused"), "{}", text(&gone.stderr));
}

#[test]
fn a_tree_that_is_too_large_is_read_in_the_daemon() {
    let fixture = Fixture::lexical(TREE);
    let config = fixture.dir.path().join("query.toml");
    std::fs::write(&config, "[tree]\nload_bytes = 10\n").unwrap();
    let daemon = Daemon::start(
        &fixture.data(),
        &["--embedder", "none", "--config", config.to_str().unwrap()],
    );
    let url = format!("http://{}", daemon.address);
    let output = sh(&fixture, &["--url", &url, "-c", "cd deploy; grep -c . staging.md"]);
    assert_eq!((output.status.code(), text(&output.stdout)), (Some(0), "3\n".into()));
    assert!(text(&output.stderr).contains("too large to be loaded"));
}
