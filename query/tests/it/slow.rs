//! Clients that are slow, silent or ambiguous (JL-14): they are given up in time, and others do not wait.

use crate::support::{Daemon, Fixture};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

const TREE: &str =
    "//- ports.md\n# Ports\n\n## Ports on app1\n\nThe unit harbor-web.service opens port 8080.\n";

fn connect(daemon: &Daemon) -> TcpStream {
    let stream = TcpStream::connect(&daemon.address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(40))).unwrap();
    stream
}

/// Reads until the server closes; none when it does not.
fn closed(mut stream: TcpStream) -> Option<String> {
    let mut bytes = Vec::new();
    match stream.read_to_end(&mut bytes) {
        Ok(_) => Some(String::from_utf8_lossy(&bytes).into_owned()),
        Err(e) if e.kind() == std::io::ErrorKind::ConnectionReset => {
            Some(String::from_utf8_lossy(&bytes).into_owned())
        }
        Err(_) => None,
    }
}

#[test]
fn slow_and_silent_clients_are_given_up_and_others_do_not_wait() {
    let fixture = Fixture::lexical(TREE);
    let daemon = Daemon::start(&fixture.data(), &["--embedder", "none"]);
    let started = Instant::now();
    let silent: Vec<TcpStream> = (0..400).map(|_| connect(&daemon)).collect();
    let half: Vec<TcpStream> = (0..100)
        .map(|_| {
            let mut stream = connect(&daemon);
            stream.write_all(b"GET /livez HTTP/1.1\r\nHos").unwrap();
            stream
        })
        .collect();
    let bodies: Vec<TcpStream> = (0..100)
        .map(|_| {
            let mut stream = connect(&daemon);
            let head = format!(
                "POST /v1/ask HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\nContent-Length: 400\r\n\r\n{{",
                daemon.address
            );
            stream.write_all(head.as_bytes()).unwrap();
            stream
        })
        .collect();
    // A byte now and then does not help.
    let mut drips: Vec<TcpStream> =
        bodies.iter().take(10).map(|s| s.try_clone().unwrap()).collect();
    let dripping = std::thread::spawn(move || {
        for _ in 0..28 {
            std::thread::sleep(Duration::from_secs(1));
            drips.retain_mut(|stream| stream.write_all(b" ").is_ok());
        }
    });
    let mut slowest = Duration::ZERO;
    for _ in 0..50 {
        let asked = Instant::now();
        let (status, reply) = daemon.get("/v1/ask?q=which+unit+opens+8080");
        assert!(status == 200 && reply.contains("harbor-web"), "{status} {reply}");
        slowest = slowest.max(asked.elapsed());
    }
    assert!(slowest < Duration::from_secs(2), "{slowest:?}");
    for stream in silent.into_iter().chain(half) {
        assert!(closed(stream).is_some(), "a silent client is still connected");
    }
    for stream in bodies {
        let said = closed(stream).expect("a client that sends no body is still connected");
        assert!(said.is_empty() || said.starts_with("HTTP/1.1 4"), "{said}");
    }
    assert!(started.elapsed() < Duration::from_secs(60), "{:?}", started.elapsed());
    drop(dripping);
}

#[test]
fn what_is_too_large_or_ambiguous_is_refused_at_once() {
    let fixture = Fixture::lexical(TREE);
    let daemon = Daemon::start(&fixture.data(), &["--embedder", "none"]);
    let own = format!("Host: {}\r\nContent-Type: application/json\r\n", daemon.address);
    let body = r#"{"question":"x"}"#;
    let started = Instant::now();
    for path in ["/v1/ask", "/v1/shell", "/v1/fs/write", "/mcp", "/v1/feedback"] {
        let huge = format!("POST {path} HTTP/1.1\r\n{own}Content-Length: 10000000000\r\n\r\n");
        let said = daemon.raw(&huge);
        assert!(
            said.starts_with("HTTP/1.1 413") && said.contains("body_too_large"),
            "{path} {said}"
        );
    }
    for framing in [
        format!("Content-Length: {}\r\nTransfer-Encoding: chunked\r\n\r\n{body}", body.len()),
        format!("Content-Length: {}\r\nContent-Length: 4\r\n\r\n{body}", body.len()),
        format!("Content-Length: +{}\r\n\r\n{body}", body.len()),
        format!("Content-Length: 0x10\r\n\r\n{body}"),
        format!("Transfer-Encoding: chunked, identity\r\n\r\n{body}"),
        "Transfer-Encoding: chunked\r\n\r\nzz\r\n".to_owned(),
        "Content-Length: -1\r\n\r\n".to_owned(),
    ] {
        let said = daemon.raw(&format!("POST /v1/ask HTTP/1.1\r\n{own}{framing}"));
        assert!(said.is_empty() || said.starts_with("HTTP/1.1 4"), "{framing}: {said}");
    }
    let wide = format!("GET /livez HTTP/1.1\r\n{own}X: {}\r\n\r\n", "x".repeat(300_000));
    let said = daemon.raw(&wide);
    assert!(
        said.is_empty() || said.starts_with("HTTP/1.1 431") || said.starts_with("HTTP/1.1 400"),
        "{said}"
    );
    let many: String = (0..500).map(|n| format!("X-{n}: x\r\n")).collect();
    let said = daemon.raw(&format!("GET /livez HTTP/1.1\r\n{own}{many}\r\n"));
    assert!(said.is_empty() || said.starts_with("HTTP/1.1 4"), "{said}");
    // Several requests in one go are answered one after the other.
    let one = format!("GET /livez HTTP/1.1\r\n{own}\r\n");
    let last = format!("GET /readyz HTTP/1.1\r\n{own}Connection: close\r\n\r\n");
    let said = daemon.raw(&format!("{}{last}", one.repeat(20)));
    assert_eq!(said.matches("HTTP/1.1 200").count(), 21, "{said}");
    assert!(said.ends_with("ready\n"), "{said}");
    assert!(started.elapsed() < Duration::from_secs(20), "{:?}", started.elapsed());
}
