//! `[server]`: the token, the limit and whose word counts for it, the Unix socket.

use crate::intruders::{request, routes};
use crate::support::{Daemon, Fixture};
use std::io::{Read, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::path::Path;

const TREE: &str =
    "//- ports.md\n# Ports\n\n## Ports on app1\n\nThe unit harbor-web.service opens port 8080.\n";

fn config(fixture: &Fixture, server: &str) -> std::path::PathBuf {
    let path = fixture.dir.path().join("query.toml");
    std::fs::write(&path, format!("[server]\n{server}")).unwrap();
    path
}

fn with_config(fixture: &Fixture, server: &str) -> Daemon {
    let config = config(fixture, server);
    Daemon::start(&fixture.data(), &["--embedder", "none", "--config", config.to_str().unwrap()])
}

#[test]
fn with_a_token_nothing_is_told_without_it() {
    let fixture = Fixture::lexical(TREE);
    let file = fixture.dir.path().join("token");
    std::fs::write(&file, "correct-horse-battery\n").unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o640)).unwrap();
    let daemon = with_config(&fixture, &format!("token_file = {file:?}\n"));
    let own = format!("Host: {}\r\nContent-Type: application/json\r\n", daemon.address);
    for (method, path) in routes() {
        let is_open = ["/livez", "/readyz"].contains(&path.as_str());
        for authorization in [
            "",
            "Authorization: Bearer\r\n",
            "Authorization: Bearer \r\n",
            "Authorization: Bearer correct-horse-batterz\r\n",
            "Authorization: Bearer correct-horse-battery2\r\n",
            "Authorization: Basic correct-horse-battery\r\n",
            "Authorization: correct-horse-battery\r\n",
            "Authorization: Bearer correct-horse-battery\r\nAuthorization: Bearer x\r\n",
        ] {
            let response = daemon.raw(&request(method, &path, &format!("{own}{authorization}")));
            let status: u16 = response.split(' ').nth(1).unwrap().parse().unwrap();
            if is_open {
                assert_eq!(status, 200, "{path}");
                continue;
            }
            assert_eq!(status, 401, "{method} {path} {authorization}");
            assert!(
                response.to_ascii_lowercase().contains("www-authenticate: bearer"),
                "{response}"
            );
            assert!(
                !response.contains("harbor-web") && response.contains("no_token"),
                "{response}"
            );
        }
    }
    let given = format!("{own}Authorization: bearer correct-horse-battery\r\n");
    let (status, body) = daemon.send(&request("GET", "/v1/ask?q=which+unit+opens+8080", &given));
    assert!(status == 200 && body.contains("harbor-web.service"), "{body}");
}

#[test]
fn settings_of_the_server_that_are_wrong_are_refused() {
    let fixture = Fixture::lexical(TREE);
    let short = fixture.dir.path().join("short");
    std::fs::write(&short, "short\n").unwrap();
    for (server, says) in [
        (format!("token_file = {short:?}\n"), "server.token_file"),
        ("token_file = \"/nowhere/token\"\n".to_owned(), "server.token_file"),
        ("rate_limit = 0\n".to_owned(), "server.rate_limit"),
        (
            "trusted_proxies = [\"proxy.example\"]\nrate_limit = 1\n".to_owned(),
            "server.trusted_proxies",
        ),
        ("tokenfile = \"x\"\n".to_owned(), "did you mean `server.token_file`"),
        ("sandbox = \"maybe\"\n".to_owned(), "sandbox"),
    ] {
        let config = config(&fixture, &server);
        let output = std::process::Command::new(env!("CARGO_BIN_EXE_runbook-query"))
            .args(["serve", "--listen", "127.0.0.1:0", "--embedder", "none", "--config"])
            .arg(config)
            .arg("--data")
            .arg(fixture.data())
            .output()
            .unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{server}{stderr}");
        assert!(stderr.contains(says), "{server}{stderr}");
    }
}

#[test]
fn a_client_that_asks_too_much_waits_and_forged_addresses_do_not_help() {
    let fixture = Fixture::lexical(TREE);
    // DP-04: the address that a client claims to have counts for nothing.
    let daemon = with_config(&fixture, "rate_limit = 6\n");
    let own = format!("Host: {}\r\n", daemon.address);
    let ask = |n: usize| {
        let forged = format!(
            "{own}X-Forwarded-For: 192.0.2.{n}\r\nX-Real-IP: 192.0.2.{n}\r\nForwarded: for=192.0.2.{n}\r\n"
        );
        daemon.raw(&request("GET", "/v1/status", &forged))
    };
    for n in 0..6 {
        assert!(ask(n).starts_with("HTTP/1.1 200"), "{n}");
    }
    let response = ask(99);
    assert!(
        response.starts_with("HTTP/1.1 429") && response.contains("too_many_requests"),
        "{response}"
    );
    let seconds = response
        .to_ascii_lowercase()
        .split("retry-after: ")
        .nth(1)
        .and_then(|r| r.split('\r').next().unwrap().parse::<u64>().ok());
    assert!(seconds.is_some_and(|s| (1..=10).contains(&s)), "{response}");
    assert_eq!(daemon.get("/livez").0, 200, "whoever watches over it may go on");

    // Behind a proxy that is trusted, its clients are told apart.
    let daemon = with_config(&fixture, "rate_limit = 6\ntrusted_proxies = [\"127.0.0.0/8\"]\n");
    let own = format!("Host: {}\r\n", daemon.address);
    let ask = |told: &str| {
        daemon.send(&request("GET", "/v1/status", &format!("{own}X-Forwarded-For: {told}\r\n"))).0
    };
    for n in 0..10 {
        assert_eq!(ask(&format!("192.0.2.{n}")), 200);
    }
    // What the client itself wrote stands before what the proxy adds.
    for n in 0..5 {
        assert_eq!(ask(&format!("10.0.0.{n}, 192.0.2.1")), 200, "{n}");
    }
    assert_eq!(ask("10.0.0.99, 192.0.2.1"), 429);
    assert_eq!(ask("192.0.2.1, 192.0.2.50"), 200);
}

fn over(socket: &Path, request: &str) -> String {
    let mut stream = UnixStream::connect(socket).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut response = Vec::new();
    stream.read_to_end(&mut response).unwrap();
    String::from_utf8_lossy(&response).into_owned()
}

#[test]
fn a_unix_socket_serves_whom_its_mode_lets_in() {
    let fixture = Fixture::lexical(TREE);
    let socket = fixture.dir.path().join("query.sock");
    let settings = format!("unix_socket = {socket:?}\n");
    let mut daemon = with_config(&fixture, &settings);
    assert_eq!(std::fs::metadata(&socket).unwrap().mode() & 0o777, 0o660);
    let response =
        over(&socket, &request("GET", "/v1/ask?q=which+unit+opens+8080", "Host: localhost\r\n"));
    assert!(
        response.starts_with("HTTP/1.1 200") && response.contains("harbor-web.service"),
        "{response}"
    );
    for headers in ["Host: evil.example\r\n", "Host: localhost\r\nOrigin: https://evil.example\r\n"]
    {
        assert!(over(&socket, &request("GET", "/v1/status", headers)).starts_with("HTTP/1.1 403"));
    }
    // TCP goes on beside it, where it was asked for; there the short name is none.
    assert_eq!(daemon.get("/livez").0, 200);
    assert_eq!(daemon.send(&request("GET", "/livez", "Host: localhost\r\n")).0, 403);
    // A second daemon does not take it away; one that follows a killed one does.
    let config = config(&fixture, &settings);
    let second = std::process::Command::new(env!("CARGO_BIN_EXE_runbook-query"))
        .args(["serve", "--embedder", "none", "--config"])
        .arg(&config)
        .arg("--data")
        .arg(fixture.data())
        .output()
        .unwrap();
    assert_eq!(second.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&second.stderr).contains("query.sock"));
    daemon.signal("-KILL");
    daemon.exit_code();
    let _third = with_config(&fixture, &settings);
    assert!(
        over(&socket, &request("GET", "/livez", "Host: localhost\r\n")).starts_with("HTTP/1.1 200")
    );
}
