//! `runbook-ask setup` and the examples for MCP clients: the snippet's own commands work.

use crate::support::{Daemon, Fixture};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const TREE: &str = "//- ports.md\n# Ports\n\n## Ports on app1\n\nTo restart: systemctl restart harbor-web.\n//- net/dns.md\n# Name service\n\n## Flush\n\nresolvectl flush-caches\n";

fn deploy(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy").join(file)
}

fn setup(daemon: &Daemon, at: &Path, args: &[&str]) -> Output {
    Command::new("sh")
        .arg(deploy("runbook-ask"))
        .arg("setup")
        .args(args)
        .env("RUNBOOK_URL", format!("http://{}", daemon.address))
        .env_remove("RUNBOOK_TOKEN")
        .current_dir(at)
        .output()
        .unwrap()
}

fn out(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout.clone()).unwrap()
}

#[test]
fn the_snippets_own_commands_work() {
    let fixture = Fixture::lexical(TREE);
    let daemon = Daemon::start(&fixture.data(), &["--embedder", "none"]);
    let snippet = out(&setup(&daemon, fixture.dir.path(), &[]));
    assert!(snippet.contains("dns.md - Name service"), "{snippet}");
    assert!(snippet.len() < 8 * 1024 + 3000);
    let block = snippet.split("```sh\n").nth(1).unwrap().split("```").next().unwrap();
    let commands: Vec<&str> = block.lines().filter(|l| !l.starts_with('#')).collect();
    assert_eq!(commands.len(), 5, "{block}");
    for (command, part) in
        commands.iter().zip(["systemctl restart", "ports.md", "# ", "2 documents", "refusal"])
    {
        let output = Command::new("sh").args(["-c", command]).output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && said.contains(part), "{command}\n{said}");
    }
}

#[test]
fn it_is_put_in_once_and_taken_out_again() {
    let fixture = Fixture::lexical(TREE);
    let daemon = Daemon::start(&fixture.data(), &["--embedder", "none"]);
    for (agent, file) in [
        ("claude", "CLAUDE.md"),
        ("cursor", ".cursor/rules/runbooks.mdc"),
        ("codex", "AGENTS.md"),
        ("copilot", ".github/copilot-instructions.md"),
        ("gemini", "GEMINI.md"),
        ("opencode", "AGENTS.md"),
    ] {
        let at = tempfile::tempdir().unwrap();
        let path = at.path().join(file);
        let printed = setup(&daemon, at.path(), &["--for", agent]);
        assert!(out(&printed).contains("## Runbooks"));
        assert!(String::from_utf8_lossy(&printed.stderr).contains("/mcp"), "{agent}");
        assert!(!path.exists(), "it only prints");
        let own = "# Ours\n\nBuild with make.\n";
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, own).unwrap();
        out(&setup(&daemon, at.path(), &["--for", agent, "--write"]));
        let once = std::fs::read_to_string(&path).unwrap();
        assert!(once.starts_with(own) && once.contains("## Runbooks"), "{once}");
        out(&setup(&daemon, at.path(), &["--for", agent, "--write"]));
        assert_eq!(std::fs::read_to_string(&path).unwrap(), once, "{agent}: twice is once");
        out(&setup(&daemon, at.path(), &["--for", agent, "--remove"]));
        assert_eq!(std::fs::read_to_string(&path).unwrap(), own, "{agent}");
        std::fs::remove_file(&path).unwrap();
        out(&setup(&daemon, at.path(), &["--for", agent, "--write"]));
        out(&setup(&daemon, at.path(), &["--for", agent, "--remove"]));
        if agent != "cursor" {
            assert!(!path.exists(), "{agent}: nothing is left of a file of its own");
        }
        out(&setup(&daemon, at.path(), &["--for", agent, "--remove"]));
    }
    let at = tempfile::tempdir().unwrap();
    std::fs::write(at.path().join("real.md"), "ours\n").unwrap();
    std::os::unix::fs::symlink("real.md", at.path().join("CLAUDE.md")).unwrap();
    out(&setup(&daemon, at.path(), &["--for", "claude", "--write"]));
    assert!(std::fs::read_to_string(at.path().join("real.md")).unwrap().contains("## Runbooks"));
    assert!(at.path().join("CLAUDE.md").is_symlink());
}

#[test]
fn wrong_usage_and_a_missing_daemon_are_told() {
    let fixture = Fixture::lexical(TREE);
    let daemon = Daemon::start(&fixture.data(), &["--embedder", "none"]);
    for args in [&["--for", "emacs"][..], &["--for"], &["--frob"]] {
        assert_eq!(setup(&daemon, fixture.dir.path(), args).status.code(), Some(2), "{args:?}");
    }
    drop(daemon);
    let at = tempfile::tempdir().unwrap();
    let output = Command::new("sh")
        .arg(deploy("runbook-ask"))
        .args(["setup", "--for", "claude"])
        .env("RUNBOOK_URL", "http://127.0.0.1:9")
        .current_dir(at.path())
        .output()
        .unwrap();
    assert!(out(&output).contains("## Runbooks") && !out(&output).contains("What there is"));
    assert!(String::from_utf8_lossy(&output.stderr).contains("index is left out"));
}

#[test]
fn the_examples_for_mcp_clients_are_what_the_program_takes() {
    let read = |file: &str| -> serde_json::Value {
        serde_json::from_str(&std::fs::read_to_string(deploy(file)).unwrap()).unwrap()
    };
    let http = read("mcp/http.mcp.json");
    assert!(http["mcpServers"]["runbooks"]["url"].as_str().unwrap().ends_with("/mcp"));
    let stdio = read("mcp/stdio.mcp.json");
    let server = &stdio["mcpServers"]["runbooks"];
    assert_eq!(server["command"], "runbook-query");
    let args: Vec<&str> =
        server["args"].as_array().unwrap().iter().map(|a| a.as_str().unwrap()).collect();
    let fixture = Fixture::lexical(TREE);
    let data = fixture.data();
    let args: Vec<&str> = args
        .iter()
        .map(|a| if a.starts_with('/') { data.to_str().unwrap() } else { a })
        .chain(["--embedder", "none"])
        .collect();
    // A client that says nothing and goes is no failure.
    let output = Command::new(env!("CARGO_BIN_EXE_runbook-query")).args(args).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(output.stdout.is_empty());
}
