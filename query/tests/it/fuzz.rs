//! Targets of the fuzzer: questions, command lines of the shell, patterns of grep and find, query strings.

#[path = "../../../fuzz/engine.rs"]
#[expect(clippy::print_stderr, reason = "the figures of docs/measurements.md")]
mod engine;

use crate::support::{Fixture, request};
use engine::{Target, fuzz, hash};
use runbook_query::reply::Band;
use runbook_query::service::AskError;
use runbook_query::shell::{self, Request as ShellRequest};
use runbook_query::tree::limits::Limits;
use runbook_query::tree::router::{Options, Tree};
use runbook_shared::analyse::analyse;
use runbook_shared::limits::QUESTION_BYTES_MAX;
use std::sync::Arc;
use std::time::Duration;

const TREE: &str = "//- ports.md\n# Ports\n\n## Ports on app1\n\nThe unit harbor-web.service opens port 8080.\n\n| port | unit |\n|---|---|\n| 9090 | other.service |\n//- disk/full.md\n# Disk\n\n## Disk is full\n\n> **Warning:** back up first.\n\n1. Run `df -h`.\n2. Run `journalctl --vacuum-size=1G`.\n";

/// Inputs as texts; what is no UTF-8 reaches a target as a client's bytes do, replaced.
fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn seeds(texts: &[&str]) -> Vec<Vec<u8>> {
    texts.iter().map(|t| t.as_bytes().to_vec()).collect()
}

#[test]
fn questions() {
    let fixture = Fixture::lexical(TREE);
    let service = fixture.service();
    let words = [
        "how many runbooks mention ",
        "which ",
        "what about ",
        "and then?",
        "restart ",
        " for me",
        "password of ",
        "\"",
        "'",
        "`",
        "8080",
        "10.0.0.7",
        "v1.27.3",
        "--dry-run=client",
        "CrashLoopBackOff",
        "is it ",
        "not ",
        "or ",
        "and ",
        "in disk/ ",
        "?",
        "!",
        ":",
        "(^",
        "a:(^",
        "*",
        "~2",
        "[a TO b]",
        "\n",
        "@",
        "https://x/",
        "/etc/",
        ".",
        "list all ",
        "where is ",
        "customer ",
        "please ",
    ];
    let target = Target {
        name: "questions",
        seeds: seeds(&[
            "which unit opens 8080",
            "how do I free the disk",
            "how many runbooks mention disk",
            "restart nginx for me",
            "what is the root password",
            "panic: runtime error: index out of range [5]",
        ]),
        words: &words,
        bytes_max: QUESTION_BYTES_MAX + 100,
        timed_bytes: 0,
        within: Duration::from_secs(3),
    };
    fuzz(&target, |bytes| match service.ask(&request(&text(bytes))) {
        Err(AskError::Question(e)) => hash(e.to_string().as_bytes()),
        Err(e) => panic!("{e}"),
        Ok(reply) => {
            assert!(!reply.answer.is_empty());
            assert_eq!(reply.band == Band::Answer, reply.refusal.is_none(), "{reply:?}");
            assert!(reply.band != Band::Answer || !reply.citations.is_empty(), "{reply:?}");
            let reason = reply.refusal.as_ref().map(|r| format!("{:?}", r.reason));
            hash(format!("{:?} {reason:?} {:?}", reply.band, reply.route).as_bytes())
        }
    });
}

#[test]
fn terms_of_a_text() {
    let words = [
        "kube", "_", "-", ".", "/", ":", "Crash", "Loop", "8080", "v1.2", "--x", "=", "\u{e9}",
        "\u{130}", "'s", "@", "0x1f", "$X", "%s", "\\", "~", "+", "#", "<", "&", "1,000", " ",
    ];
    let target = Target {
        name: "terms",
        seeds: seeds(&[
            "kubectl -n default get pods --all-namespaces=false 10.0.0.7:8080 v1.27.3 CrashLoopBackOff",
        ]),
        words: &words,
        bytes_max: 1 << 15,
        timed_bytes: 1 << 18,
        within: Duration::from_secs(5),
    };
    fuzz(&target, |bytes| {
        let terms = analyse(&text(bytes)).len();
        u64::from(terms.checked_ilog2().unwrap_or(99))
    });
}

/// A view with little time for each command.
fn view(fixture: &Fixture) -> runbook_query::tree::router::View {
    let limits = Limits { wall_clock_s: 1.0, ..Limits::default() };
    let tree = Tree::new(Options { limits, ..Options::default() });
    fixture.service().with_tree(Arc::new(tree)).view(Some("fuzz")).unwrap()
}

/// Runs a command line: it ends in time, bounded, and shows nothing of this machine.
fn run(view: &runbook_query::tree::router::View, command: String) -> u64 {
    let envelope = shell::run(view, &ShellRequest { command, ..ShellRequest::default() });
    let json = serde_json::to_string(&envelope).unwrap();
    // What is longer than a reply goes to the overflow later; this is the bound of the command itself.
    assert!(json.len() < 20 * 1024 * 1024, "{} bytes", json.len());
    for word in ["root:x:0", "/bin/bash", "CARGO_MANIFEST_DIR"] {
        assert!(!envelope.content.contains(word), "{json}");
    }
    let value = serde_json::to_value(&envelope).unwrap();
    hash(format!("{} {}", value["exit_code"], value["error"]["code"]).as_bytes())
}

#[test]
fn command_lines() {
    let fixture = Fixture::lexical(TREE);
    let view = view(&fixture);
    let words = [
        "cat ",
        "ls ",
        "grep ",
        "find . ",
        "head -n ",
        "sed ",
        "awk ",
        "jq ",
        "echo ",
        "|",
        "&&",
        "||",
        ";",
        "$(",
        ")",
        "`",
        "\"",
        "'",
        "{",
        "}",
        "[[ ",
        " ]]",
        "((",
        "))",
        "<<EOF\n",
        "EOF\n",
        "<",
        ">",
        ">>",
        "2>&1",
        "&",
        "$",
        "${",
        "${x:-",
        "while true; do ",
        "for x in ",
        "do ",
        "done",
        "if ",
        "then ",
        "fi",
        "f() { ",
        "*",
        "?",
        "[a-z]",
        "~",
        "\\",
        "\n",
        "#",
        "!",
        "ports.md",
        "/tmp/a",
        "-exec ",
        "--",
        "=",
        "{1..9}",
        "printf %s ",
        "eval ",
        "set -e\n",
    ];
    let target = Target {
        name: "command-lines",
        seeds: seeds(&[
            "cat ports.md | grep -n 8080 | head -3",
            "find . -name '*.md' -type f | sort | wc -l",
            "for f in *.md; do echo \"$f\"; done",
            "grep -rl nginx . || echo none > /tmp/a; cat /tmp/a",
            "x=$(cat ports.md); echo ${#x}",
            "awk '{print $1}' ports.md | sort -u",
        ]),
        words: &words,
        bytes_max: 2000,
        timed_bytes: 0,
        within: Duration::from_secs(10),
    };
    fuzz(&target, |bytes| run(&view, text(bytes)));
}

/// A word that the shell passes on as it is.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''").replace('\0', ""))
}

#[test]
fn globs_and_patterns() {
    let fixture = Fixture::lexical(TREE);
    let view = view(&fixture);
    let words = [
        "*",
        "**",
        "?",
        "[",
        "]",
        "[^a]",
        "[[:alpha:]]",
        "{a,b}",
        "{",
        "}",
        "(",
        ")",
        "|",
        "+",
        "\\",
        "\\b",
        "\\w",
        "\\d",
        ".",
        ".*",
        "^",
        "$",
        "a{1000}",
        "(a{100}){100}",
        "\\p{L}",
        "(?i)",
        "(?:",
        "\\x00",
        "/",
        "..",
        "-",
        "--",
        "!",
        "\\(",
        "\\)",
        "\\1",
        "[a-",
        "[]",
        "port",
    ];
    let target = Target {
        name: "patterns",
        seeds: seeds(&[
            "p[ao]rt*",
            "opens? port [0-9]+",
            "\\(a\\|b\\)*",
            "**/*.md",
            "(unit|port).*80{2}",
        ]),
        words: &words,
        bytes_max: 1500,
        timed_bytes: 0,
        within: Duration::from_secs(10),
    };
    fuzz(&target, |bytes| {
        let (how, pattern) = bytes.split_first().unwrap_or((&0, b""));
        let pattern = quoted(&text(pattern));
        let command = match how % 5 {
            0 => format!("grep -rn -e {pattern} ."),
            1 => format!("grep -rE -e {pattern} ."),
            2 => format!("rg -e {pattern}"),
            3 => format!("find . -name {pattern}"),
            _ => format!("find . -path {pattern}"),
        };
        u64::from(how % 5) << 60 ^ run(&view, command)
    });
}

const ROUTES: [&str; 14] = [
    "/v1/ask",
    "/v1/search",
    "/v1/fs/ls",
    "/v1/fs/read",
    "/v1/fs/tree",
    "/v1/fs/find",
    "/v1/fs/grep",
    "/v1/fs/load",
    "/v1/fs/history",
    "/",
    "/read/ports.md",
    "/browse/disk",
    "/reported",
    "/v1/index",
];

#[test]
fn query_strings() {
    use axum::body::Body;
    use axum::http::{Request, StatusCode};
    use hyper::service::Service as _;
    use hyper_util::service::TowerToHyperService;
    use runbook_query::http::App;
    let fixture = Fixture::lexical(TREE);
    let app = App::new(Arc::new(fixture.service()), vec!["localhost".into()]);
    let router = TowerToHyperService::new(app.router());
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let words = [
        "?",
        "&",
        "=",
        "%",
        "%00",
        "%2e%2e%2f",
        "%ff",
        "%C3%A9",
        "+",
        ";",
        "#",
        "q=",
        "path=",
        "k=",
        "scope=",
        "lines=",
        "view=source",
        "repo=",
        "session=",
        "explain=true",
        "pattern=",
        "glob=",
        "name=",
        "depth=",
        "max=",
        "-1",
        "0",
        "1e9",
        "99999999999999999999",
        "true",
        "[]",
        "a[b]=",
        "disk/",
        "../",
        "null",
        "1-2",
        "L1-L5",
    ];
    let target = Target {
        name: "query-strings",
        seeds: seeds(&[
            "q=which+unit+opens+8080&k=3",
            "q=port&scope=disk/",
            "path=ports.md&lines=1-3",
            "pattern=port&glob=*.md",
            "repo=&lines=L1-L5&view=source",
            "q=disk&session=abc&explain=true",
        ]),
        words: &words,
        bytes_max: 4000,
        timed_bytes: 0,
        within: Duration::from_secs(5),
    };
    fuzz(&target, |bytes| {
        let (route, query) = bytes.split_first().unwrap_or((&0, b""));
        let route = ROUTES[usize::from(*route) % ROUTES.len()];
        let uri = format!("{route}?{}", text(query));
        // What is no URI does not get past hyper.
        let Ok(request) = Request::get(uri).header("host", "localhost").body(Body::empty()) else {
            return 0;
        };
        let response = runtime.block_on(router.call(request)).unwrap();
        let status = response.status();
        assert!(!status.is_server_error() || status == StatusCode::SERVICE_UNAVAILABLE, "{status}");
        hash(format!("{route} {status}").as_bytes())
    });
}
