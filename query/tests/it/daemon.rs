//! The daemon over HTTP: contract, checks, reload, shutdown.

use crate::support::{Daemon, Fixture, ingest};
use serde_json::json;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

const TREE: &str =
    "//- ports.md\n# Ports\n\n## Ports on app1\n\nThe unit harbor-web.service opens port 8080.\n";

fn asked(daemon: &Daemon, question: &str) -> (u16, serde_json::Value) {
    let (status, body) = daemon.post("/v1/ask", &json!({ "question": question }).to_string());
    (status, serde_json::from_str(&body).unwrap_or_else(|e| panic!("{e}: {body}")))
}

#[test]
fn answers_over_http() {
    let fixture = Fixture::lexical(TREE);
    let daemon = Daemon::start(&fixture.data(), &["--embedder", "none"]);
    assert_eq!(daemon.get("/livez"), (200, "ok\n".into()));
    assert_eq!(daemon.get("/readyz"), (200, "ready\n".into()));
    let (status, reply) = asked(&daemon, "which unit opens 8080");
    assert_eq!((status, &reply["band"]), (200, &json!("answer")));
    assert_eq!(reply["citations"][0]["heading"], "Ports on app1");
    let by_get = daemon.json("/v1/ask?q=which%20unit%20opens%208080");
    assert_eq!(by_get["answer"], reply["answer"]);
    let found = daemon.json("/v1/search?q=8080&k=3");
    assert_eq!(found["results"][0]["path"], "ports.md");
    assert!(found["results"][0]["bm25"].as_f64().unwrap() > 0.0);
    let state = daemon.json("/v1/status");
    assert_eq!(state["counts"]["documents"], 1);
    assert!(state["gate"]["score_floor"].as_f64().unwrap() > 0.0);
    let (status, refused) = asked(&daemon, "what is the capital of Peru");
    assert_eq!((status, &refused["answer"]), (200, &json!("I do not know")));
    let text = daemon.raw(&format!(
        "GET /v1/ask?q=which+unit+opens+8080 HTTP/1.1\r\nHost: {}\r\nAccept: text/plain\r\nConnection: close\r\n\r\n",
        daemon.address
    ));
    assert!(
        text.contains("x-runbook-band: answer")
            && text.contains("opens port 8080")
            && text.contains("[1] ports.md"),
        "{text}"
    );
}

#[test]
fn bad_requests_are_told_apart() {
    let fixture = Fixture::lexical(TREE);
    let daemon = Daemon::start(&fixture.data(), &["--embedder", "none"]);
    let host = &daemon.address;
    let post = |headers: &str, body: &str| {
        daemon.send(&format!("POST /v1/ask HTTP/1.1\r\n{headers}Content-Length: {}\r\nConnection: close\r\n\r\n{body}", body.len()))
    };
    let ok_headers = format!("Host: {host}\r\nContent-Type: application/json\r\n");
    for (headers, body, status, code) in [
        (ok_headers.clone(), r#"{"question":" "}"#.to_owned(), 400, "question_empty"),
        (ok_headers.clone(), r#"{"qurey":"x"}"#.into(), 400, "bad_json"),
        (ok_headers.clone(), r#"{"question":"x","k":99}"#.into(), 400, "k_out_of_range"),
        (ok_headers.clone(), "{".into(), 400, "bad_json"),
        (
            ok_headers.clone(),
            json!({"question": "x".repeat(70_000)}).to_string(),
            413,
            "question_too_long",
        ),
        (format!("Host: {host}\r\nContent-Type: text/plain\r\n"), "{}".into(), 415, "not_json"),
        (format!("Host: {host}\r\n"), "{}".into(), 415, "not_json"),
        (
            "Host: evil.example\r\nContent-Type: application/json\r\n".into(),
            "{}".into(),
            403,
            "host_not_allowed",
        ),
        (
            format!("Host: {host}.evil.example\r\nContent-Type: application/json\r\n"),
            "{}".into(),
            403,
            "host_not_allowed",
        ),
        (
            format!("{ok_headers}Origin: https://evil.example\r\n"),
            "{}".into(),
            403,
            "origin_not_allowed",
        ),
        (format!("{ok_headers}Origin: null\r\n"), "{}".into(), 403, "origin_not_allowed"),
        (
            format!("Host: {host}\r\nHost: {host}\r\nContent-Type: application/json\r\n"),
            "{}".into(),
            400,
            "bad_host",
        ),
    ] {
        let (got, text) = post(&headers, &body);
        assert_eq!(got, status, "{headers}{text}");
        let error: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(error["error"]["code"], code, "{text}");
        assert!(error["error"]["hint"].is_string() && error["request_id"].is_string());
    }
    assert_eq!(daemon.get("/nowhere").0, 404);
    assert_eq!(daemon.get("/v1/ask?question=x").0, 400);
    assert_eq!(
        daemon
            .send(&format!("PUT /v1/ask HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"))
            .0,
        405
    );
    let (own, _) =
        post(&format!("{ok_headers}Origin: http://{host}\r\n"), r#"{"question":"8080"}"#);
    assert_eq!(own, 200);
}

#[test]
fn starts_empty_and_picks_the_first_generation_up() {
    let fixture = Fixture::lexical(TREE);
    let empty = fixture.dir.path().join("later");
    let daemon = Daemon::start(&empty, &["--embedder", "none"]);
    assert_eq!(daemon.get("/livez").0, 200);
    assert_eq!(daemon.get("/readyz").0, 503);
    let (status, reply) = asked(&daemon, "which unit opens 8080");
    assert_eq!((status, &reply["error"]["code"]), (503, &json!("not_ready")));
    ingest(&fixture.source().display().to_string(), &empty, Some("none"));
    daemon.wait("/v1/status", |s| s["ready"] == true);
    assert_eq!(asked(&daemon, "which unit opens 8080").1["band"], "answer");
    // The directory is removed and made again: the old generation serves until the new one is there.
    std::fs::remove_dir_all(&empty).unwrap();
    assert_eq!(asked(&daemon, "which unit opens 8080").0, 200);
    fixture.write(
        "//- ports.md\n# Ports\n\n## Ports on app1\n\nThe unit other.service opens port 8080.\n",
    );
    ingest(&fixture.source().display().to_string(), &empty, Some("none"));
    daemon.wait("/v1/ask?q=which+unit+opens+8080", |r| {
        r["answer"].as_str().is_some_and(|a| a.contains("other.service"))
    });
}

#[test]
fn a_writer_sees_the_change_and_no_request_fails() {
    let git = |dir: &std::path::Path, args: &[&str]| {
        let done = Command::new("git")
            .args([
                "-c",
                "user.name=t",
                "-c",
                "user.email=t@example.org",
                "-c",
                "init.defaultBranch=main",
            ])
            .args(args)
            .current_dir(dir)
            .output()
            .unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        String::from_utf8(done.stdout).unwrap().trim().to_owned()
    };
    let fixture = Fixture::lexical(TREE);
    let work = fixture.source();
    git(&work, &["init", "-q"]);
    git(&work, &["add", "."]);
    git(&work, &["commit", "-qm", "one"]);
    let data = fixture.dir.path().join("git-data");
    let url = format!("file://{}", work.display());
    ingest(&url, &data, Some("none"));
    let daemon = Daemon::start(&data, &["--embedder", "none"]);
    let (stop, asked_count) = (AtomicBool::new(false), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    let (status, reply) = asked(&daemon, "which unit opens 8080");
                    assert_eq!(status, 200, "{reply}");
                    assert_eq!(reply["band"], "answer", "{reply}");
                    asked_count.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        for round in 0..8 {
            let text = format!(
                "# Ports\n\n## Ports on app1\n\nThe unit round-{round}.service opens port 8080.\n"
            );
            std::fs::write(work.join("ports.md"), text).unwrap();
            git(&work, &["commit", "-qam", "more"]);
            let commit = git(&work, &["rev-parse", "HEAD"]);
            ingest(&url, &data, Some("none"));
            let reply =
                daemon.wait("/v1/ask?q=which+unit+opens+8080", |r| r["commit"] == commit.as_str());
            assert!(
                reply["answer"].as_str().unwrap().contains(&format!("round-{round}.service")),
                "{reply}"
            );
        }
        stop.store(true, Ordering::Relaxed);
    });
    assert!(asked_count.load(Ordering::Relaxed) > 8);
}

#[test]
fn a_damaged_generation_never_replaces_a_good_one() {
    let fixture = Fixture::lexical(TREE);
    let daemon = Daemon::start(&fixture.data(), &["--embedder", "none"]);
    let good = daemon.json("/v1/status")["generation"].clone();
    fixture.write("//- more.md\n# More\n\n## Section\n\ntext\n");
    // The new generation is damaged before the daemon can open it: it is built beside and swapped in.
    let beside = fixture.dir.path().join("beside");
    ingest(&fixture.source().display().to_string(), &beside, Some("none"));
    let id = std::fs::read_link(beside.join("current")).unwrap();
    std::fs::write(beside.join(&id).join("chunks.jsonl"), "{\"half\": ").unwrap();
    std::fs::rename(beside.join(&id), fixture.data().join(&id)).unwrap();
    let link = fixture.data().join("link");
    std::os::unix::fs::symlink(&id, &link).unwrap();
    std::fs::rename(&link, fixture.data().join("current")).unwrap();
    let state = daemon.wait("/v1/status", |s| s["problem"].is_string());
    assert_eq!(state["generation"], good);
    assert!(state["problem"].as_str().unwrap().contains("chunks.jsonl"), "{state}");
    assert_eq!(asked(&daemon, "which unit opens 8080").1["band"], "answer");
    fixture.ingest();
    daemon.wait("/v1/status", |s| s["problem"].is_null() && s["generation"] != good);
}

#[test]
fn a_question_in_flight_finishes_on_sigterm() {
    let fixture = Fixture::lexical(TREE);
    let mut daemon = Daemon::start(&fixture.data(), &["--embedder", "none"]);
    let mut stream = TcpStream::connect(&daemon.address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let body = r#"{"question":"which unit opens 8080"}"#;
    let head = format!(
        "POST /v1/ask HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
        daemon.address,
        body.len()
    );
    stream.write_all(head.as_bytes()).unwrap();
    stream.write_all(&body.as_bytes()[..10]).unwrap();
    // The request is being read once the server has answered another one after it.
    daemon.get("/livez");
    daemon.signal("-TERM");
    let refused = |address: &str| TcpStream::connect(address).is_err();
    for _ in 0..500 {
        if refused(&daemon.address) {
            break;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    assert!(refused(&daemon.address), "new connections are refused");
    stream.write_all(&body.as_bytes()[10..]).unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).unwrap();
    assert!(
        response.starts_with("HTTP/1.1 200") && response.contains("harbor-web.service"),
        "{response}"
    );
    assert_eq!(daemon.exit_code(), Some(0));
}

#[test]
fn several_repositories_are_told_apart() {
    let one = Fixture::lexical(TREE);
    let two = Fixture::lexical(
        "//- ports.md\n# Ports\n\n## Ports on app1\n\nThe unit second.service opens port 9090.\n",
    );
    let config = one.dir.path().join("query.toml");
    let text = format!(
        "embedder = \"none\"\n[gate]\nscore_floor = 0.4\n[[repo]]\nname = \"one\"\ndata = {:?}\n[[repo]]\nname = \"two\"\ndata = {:?}\n",
        one.data(),
        two.data()
    );
    std::fs::write(&config, &text).unwrap();
    let run = |args: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_runbook-query"));
        command
            .args(["ask", "--json", "--config"])
            .arg(&config)
            .args(args)
            .env_remove("RUNBOOK_DATA");
        let out = command.output().unwrap();
        (
            out.status.code(),
            serde_json::from_slice::<serde_json::Value>(&out.stdout).unwrap_or_default(),
        )
    };
    let (code, reply) = run(&["which unit opens 9090"]);
    assert_eq!(code, Some(0), "{reply}");
    assert_eq!(reply["citations"][0]["repo"], "two");
    let (_, reply) = run(&["--scope", "repo:one", "which unit opens port"]);
    assert!(!reply.to_string().contains("second.service"), "{reply}");
    assert_eq!(run(&["--scope", "repo:three", "x"]).0, Some(2));
    // A repository that is not open was not searched.
    let (code, reply) = run(&["zebra"]);
    assert_eq!((code, &reply["degraded"]), (Some(4), &json!(true)), "{reply}");
    std::fs::write(&config, text.replace(two.data().to_str().unwrap(), "/nowhere")).unwrap();
    let (code, reply) = run(&["zebra"]);
    assert_eq!((code, &reply["degraded"]), (Some(4), &json!(true)), "{reply}");
    assert_eq!(reply["refusal"]["reason"], "degraded");
    assert!(reply["refusal"]["message"].as_str().unwrap().contains("two"), "{reply}");
}

#[test]
fn one_shot_exit_codes_and_remote_addresses() {
    let fixture = Fixture::lexical(TREE);
    let run = |args: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_runbook-query"));
        command.args(args).env_remove("RUNBOOK_DATA");
        let out = command.output().unwrap();
        (
            out.status.code().unwrap(),
            String::from_utf8_lossy(&out.stdout).into_owned(),
            String::from_utf8_lossy(&out.stderr).into_owned(),
        )
    };
    let data = fixture.data().display().to_string();
    let ask = |question: &str| run(&["ask", "--embedder", "none", "--data", &data, question]);
    let (code, out, _) = ask("which unit opens 8080");
    assert_eq!(code, 0);
    assert!(
        out.contains("harbor-web.service") && out.lines().all(|l| l.chars().count() <= 80),
        "{out}"
    );
    assert_eq!(ask("restart nginx for me").0, 4);
    assert_eq!(ask(" ").0, 2);
    assert_eq!(run(&["ask", "--data", "/nowhere/at/all", "x"]).0, 1);
    assert_eq!(run(&["ask", "--nonsense"]).0, 2);
    let (code, _, err) =
        run(&["serve", "--data", &data, "--embedder", "none", "--listen", "0.0.0.0:0"]);
    assert_eq!(code, 2);
    assert!(err.contains("hint: ") && err.contains("--allow-remote"), "{err}");
    let before: Vec<_> =
        std::fs::read_dir(fixture.data()).unwrap().map(|e| e.unwrap().file_name()).collect();
    ask("which unit opens 8080");
    let after: Vec<_> =
        std::fs::read_dir(fixture.data()).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(before, after, "nothing but ingest writes there");
}

#[test]
fn a_conversation_goes_on_by_its_session() {
    let tree = "//- a.md\n# Services\n\n## Restart nginx\n\nRun `systemctl restart nginx`.\n\n## Restart redis\n\nRun `systemctl restart redis`.\n";
    let fixture = Fixture::lexical(tree);
    let daemon = Daemon::start(&fixture.data(), &["--embedder", "none"]);
    let ask = |body: serde_json::Value| {
        let (status, reply) = daemon.post("/v1/ask", &body.to_string());
        assert_eq!(status, 200, "{reply}");
        serde_json::from_str::<serde_json::Value>(&reply).unwrap()
    };
    let first = ask(json!({"question": "how do I restart nginx"}));
    let session = first["session"].as_str().unwrap();
    let next = ask(json!({"question": "what about redis?", "session": session, "explain": true}));
    assert_eq!(next["citations"][0]["heading"], "Restart redis", "{next}");
    assert_eq!(next["session"], session);
    assert_eq!(next["explain"]["follow_up"]["completed"], "how do i restart redis");
    let alone = ask(json!({"question": "what about redis?"}));
    assert!(!alone["route"].as_array().unwrap().contains(&json!("follow_up")));
    let counted = ask(json!({"question": "how many runbooks mention redis", "session": session}));
    assert_eq!(counted["route"], json!(["request_gate", "scan"]));
    assert!(counted["answer"].as_str().unwrap().starts_with("1 document mentions \"redis\""));
}

#[test]
fn a_service_manager_hands_a_socket_over_and_is_told() {
    use std::os::unix::net::UnixDatagram;
    let fixture = Fixture::lexical(TREE);
    let socket = fixture.dir.path().join("notify");
    let notified = UnixDatagram::bind(&socket).unwrap();
    notified.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    // As systemd does: the socket is descriptor 3, and the variables name the process.
    let script = "import os, socket, sys\n\
        s = socket.create_server(('127.0.0.1', 0)); print(s.getsockname()[1], flush=True)\n\
        os.dup2(s.fileno(), 3); os.set_inheritable(3, True)\n\
        os.environ.update(LISTEN_FDS='1', LISTEN_PID=str(os.getpid()), WATCHDOG_USEC='400000', WATCHDOG_PID=str(os.getpid()))\n\
        os.execv(sys.argv[1], sys.argv[1:])\n";
    let mut child = Command::new("python3")
        .args(["-c", script, env!("CARGO_BIN_EXE_runbook-query"), "serve", "--embedder", "none"])
        .arg("--data")
        .arg(fixture.data())
        .env_remove("RUNBOOK_DATA")
        .env("NOTIFY_SOCKET", &socket)
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let mut port = String::new();
    std::io::BufRead::read_line(
        &mut std::io::BufReader::new(child.stdout.take().unwrap()),
        &mut port,
    )
    .unwrap();
    let port = port.trim();
    let told = || {
        let mut bytes = [0u8; 1024];
        let n = notified.recv(&mut bytes).unwrap();
        String::from_utf8_lossy(&bytes[..n]).into_owned()
    };
    let mut first = told();
    while first.contains("WATCHDOG=1") {
        first = told();
    }
    assert!(first.contains("READY=1") && first.contains("serving 1 documents"), "{first}");
    let mut stream = TcpStream::connect(format!("127.0.0.1:{port}")).unwrap();
    write!(stream, "GET /livez HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n\r\n")
        .unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).unwrap();
    assert!(response.starts_with("HTTP/1.1 200"), "{response}");
    assert!((0..3).all(|_| told().contains("WATCHDOG=1")), "signs of life go on");
    let killed = Command::new("kill").arg(child.id().to_string()).status().unwrap();
    assert!(killed.success());
    let mut last = told();
    while last.contains("WATCHDOG=1") {
        last = told();
    }
    assert!(last.contains("STOPPING=1"), "{last}");
    assert_eq!(child.wait().unwrap().code(), Some(0));
}
