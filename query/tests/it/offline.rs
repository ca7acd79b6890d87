//! The daemon in a network namespace that has nothing but its own loopback device: everything works, and
//! a trace of its calls shows no connection to anywhere.

use crate::support::Fixture;
use serde_json::Value;
use std::process::Command;

const TREE: &str = "//- ports.md\n# Ports\n\n## Ports on app1\n\nThe unit harbor-web.service opens port 8080.\n\n- http://evil.example/x\n";

/// Runs in the namespace: starts the daemon (traced where that can be), asks everything, prints JSON.
const SCRIPT: &str = r#"
import fcntl, json, os, re, shutil, signal, socket, struct, subprocess, sys, time, urllib.request

program, data, state, trace = sys.argv[1:5]
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
request = struct.pack("16sh", b"lo", 0x1 | 0x40)
fcntl.ioctl(s, 0x8914, request)  # SIOCSIFFLAGS: up
links = [name for _, name in socket.if_nameindex()]
command = [program, "serve", "--listen", "127.0.0.1:0", "--data", data, "--state", state]
can_trace = bool(shutil.which("strace")) and subprocess.run(
    ["strace", "-o", os.devnull, "true"], stderr=subprocess.DEVNULL).returncode == 0
if can_trace:
    command = ["strace", "-f", "-qq", "-e", "trace=network", "-o", trace] + command
daemon = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
address = None
for line in daemon.stderr:
    found = re.search(r"listening on http://([0-9.:]+)", line)
    if found:
        address = found.group(1)
        break

def ask(path, body=None, headers={}):
    request = urllib.request.Request("http://" + address + path, method="POST" if body is not None else "GET")
    for name, value in headers.items():
        request.add_header(name, value)
    if body is not None:
        request.add_header("Content-Type", "application/json")
        body = json.dumps(body).encode()
    try:
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, body, 20) as reply:
            return [reply.status, reply.read().decode("utf-8", "replace")]
    except urllib.error.HTTPError as e:
        return [e.code, e.read().decode("utf-8", "replace")]

initialize = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-06-18",
    "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}}
out = {
    "links": links,
    "ask": ask("/v1/ask", {"question": "which unit opens 8080"}),
    "search": ask("/v1/search?q=port"),
    "page": ask("/?q=which+unit+opens+8080"),
    "read": ask("/read/ports.md"),
    "status": ask("/v1/status"),
    "metrics": ask("/metrics"),
    "tree": ask("/v1/fs/tree"),
    "shell": ask("/v1/shell", {"command": "grep -r 8080 ."}),
    "curl": ask("/v1/shell", {"command": "curl http://evil.example/"}),
    "mcp": ask("/mcp", initialize, {"Accept": "application/json, text/event-stream"}),
}
reply = json.loads(out["ask"][1])
out["feedback"] = ask("/v1/feedback", {"id": reply["id"], "verdict": "wrong", "note": "n"})
children = [daemon.pid]
if can_trace:
    children = [int(p) for p in open(f"/proc/{daemon.pid}/task/{daemon.pid}/children").read().split()]
for pid in children:
    os.kill(pid, signal.SIGTERM)
daemon.stderr.read()
out["exit"] = daemon.wait(30)
out["traced"] = can_trace
print(json.dumps(out))
"#;

#[test]
#[expect(clippy::print_stderr, reason = "a test that is skipped says so")]
fn without_a_network_everything_works_and_nothing_is_sent() {
    let fixture = Fixture::hybrid(TREE);
    let (script, trace) = (fixture.dir.path().join("offline.py"), fixture.dir.path().join("trace"));
    let state = fixture.dir.path().join("state");
    std::fs::write(&script, SCRIPT).unwrap();
    let run = |flags: &[&str]| {
        Command::new("unshare")
            .args(flags)
            .arg("python3")
            .arg(&script)
            .arg(env!("CARGO_BIN_EXE_runbook-query"))
            .args([fixture.data(), state.clone(), trace.clone()])
            .env_remove("RUNBOOK_DATA")
            .output()
    };
    let can = |flags: &[&str]| {
        Command::new("unshare").args(flags).arg("true").status().is_ok_and(|s| s.success())
    };
    let flags: &[&str] = match (can(&["-n"]), can(&["-rn"])) {
        (true, _) => &["-n"],
        (_, true) => &["-rn"],
        _ => {
            eprintln!("skipped: no network namespace can be made here");
            return;
        }
    };
    let output = run(flags).unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    let out: Value =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{e}: {stderr}"));
    assert_eq!(out["links"], serde_json::json!(["lo"]), "the namespace has other devices");
    for (name, part) in [
        ("ask", "harbor-web.service"),
        ("ask", "\"degraded\":false"),
        ("search", "ports.md"),
        ("page", "harbor-web.service"),
        ("read", "harbor-web.service"),
        ("status", "\"ready\":true"),
        ("metrics", "runbook_"),
        ("tree", "ports.md"),
        ("shell", "opens port 8080"),
        ("mcp", "protocolVersion"),
    ] {
        let (status, body) = (&out[name][0], out[name][1].as_str().unwrap());
        assert!(status == 200 && body.contains(part), "{name}: {status} {body}");
    }
    assert!(out["feedback"][0].as_u64().is_some_and(|s| s < 300), "{}", out["feedback"]);
    assert!(out["curl"][1].as_str().unwrap().contains("unsupported_command"), "{}", out["curl"]);
    assert_eq!(out["exit"], 0, "{out}");
    if out["traced"] != true {
        eprintln!("skipped: no process can be traced here; the namespace alone was tried");
        return;
    }
    let trace = std::fs::read_to_string(trace).unwrap();
    assert!(trace.contains("bind("), "{trace}");
    let sent: Vec<&str> = trace
        .lines()
        .filter(|l| l.contains(" connect(") || l.contains(" sendmsg(") || l.contains(" sendto("))
        // What goes to a client is sent on a connection that it made, without an address.
        .filter(|l| l.contains("sa_family"))
        .collect();
    assert_eq!(sent, Vec::<&str>::new());
}
