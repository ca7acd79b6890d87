//! Remotes over http: tokens and certificates.

use super::*;

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::process::Stdio;

/// Answers every request with 401, and notes the credentials that came with it.
fn refuse(connection: TcpStream, seen: &Mutex<Vec<String>>) {
    let mut lines = BufReader::new(connection.try_clone().unwrap()).lines();
    let mut credentials = String::new();
    while let Some(Ok(line)) = lines.next() {
        if line.is_empty() {
            break;
        }
        if let Some((_, value)) = line.split_once("Authorization: Basic ") {
            credentials = value.to_owned();
        }
    }
    seen.lock().unwrap().push(credentials);
    let answer = "HTTP/1.1 401 No\r\nWWW-Authenticate: Basic realm=\"r\"\r\n\
                      Content-Length: 0\r\nConnection: close\r\n\r\n";
    let _ = { &connection }.write_all(answer.as_bytes());
}

#[test]
fn a_token_is_shown_to_the_server_alone_and_a_refusal_named() {
    let world = World::new();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&seen);
    let server = Server::start(move |connection, _| refuse(connection, &noted));
    let url = format!("http://{}/remote.git", server.address);
    let run = world.ingest(&url, &[]).expect(1, "failed");
    run.says(&["asks for credentials", "hint: ", "--token-file"]);
    assert!(seen.lock().unwrap().iter().all(String::is_empty));
    fs::write(world.path("token"), "s3cret-token\n").unwrap();
    let run = world.ingest(&url, &["--token-file", "token"]).expect(1, "failed");
    let run = run.says(&["refused the token in `token`", "hint: "]);
    assert!(!format!("{run}").contains("s3cret"), "{run}");
    // base64 of `x-access-token:s3cret-token`
    let wanted = "eC1hY2Nlc3MtdG9rZW46czNjcmV0LXRva2Vu";
    let seen = seen.lock().unwrap().clone();
    assert!(seen.iter().any(|c| c == wanted) && seen.len() < 12, "{seen:?}");
    let run = world.ingest(&url, &["--token-file", "nowhere"]).expect(1, "failed");
    run.says(&["cannot read `nowhere`", "hint: "]);
}

#[test]
fn a_certificate_that_nobody_vouches_for_is_refused() {
    let world = World::new();
    let made = world
        .hermetic("openssl")
        .args(["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"])
        .args(["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"])
        .args(["-keyout", "key.pem", "-out", "cert.pem"])
        .output();
    if !made.is_ok_and(|output| output.status.success()) {
        return skip("openssl is not installed");
    }
    let mut server = world
        .hermetic("openssl")
        .args(["s_server", "-accept", "127.0.0.1:0", "-www"])
        .args(["-key", "key.pem", "-cert", "cert.pem"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(server.stdout.take().unwrap()).lines().map_while(Result::ok);
    let port = lines.find_map(|l| Some(l.strip_prefix("ACCEPT ")?.rsplit_once(':')?.1.to_owned()));
    let url = format!("https://localhost:{}/remote.git", port.unwrap());
    let run = world.ingest(&url, &[]).expect(1, "failed");
    run.says(&["cannot fetch from", "certificate"]);
    let mut command = world.command(&url, &[]);
    command.env("SSL_CERT_FILE", world.path("cert.pem"));
    let run = world.finish(command.output().unwrap()).expect(1, "failed");
    assert!(!run.stderr.contains("certificate"), "{run}");
    server.kill().unwrap();
    server.wait().unwrap();
}
