//! Five hundred secrets in as many forms and places: none is found afterwards, in no file and no reply.

mod forms;

use crate::mcp::Pipes;
use crate::support::{Daemon, Fixture};
use forms::{BLOCK_PLACES, PLACES, Rng, Written, block, line, token};
use serde_json::json;
use std::collections::BTreeSet;
use std::path::Path;

/// A document with one secret.
struct Canary {
    /// What and where.
    name: String,
    path: String,
    bytes: Vec<u8>,
    needles: Vec<String>,
}

/// How a document is stored.
const ENCODINGS: [&str; 5] = ["lf", "crlf", "mark", "utf-16", "cr"];

fn encoded(text: &str, encoding: &str) -> Vec<u8> {
    match encoding {
        "crlf" => text.replace('\n', "\r\n").into_bytes(),
        "cr" => text.replace('\n', "\r").into_bytes(),
        "mark" => [b"\xef\xbb\xbf", text.as_bytes()].concat(),
        "utf-16" => {
            let units = text.encode_utf16().flat_map(u16::to_le_bytes);
            [0xff, 0xfe].into_iter().chain(units).collect()
        }
        _ => text.as_bytes().to_vec(),
    }
}

#[expect(clippy::too_many_lines, reason = "a list of places")]
/// Five hundred of them: every form of one line in five or so places, no pair of form and place twice.
fn canaries() -> Vec<Canary> {
    let mut rng = Rng(20_261_201);
    let mut out = Vec::new();
    let mut push = |name: String, text: String, written: Written| {
        let number = out.len();
        let heading = format!("# Host harbor{number}\n\n## Access to harbor{number}\n\n");
        // Front matter must come first.
        let text = if text.starts_with("---") { text } else { heading + &text };
        let encoding = ENCODINGS[if number % 9 == 0 { 1 + number / 9 % 4 } else { 0 }];
        let path = format!("hosts/area{}/harbor{number}.md", number % 20);
        let bytes = encoded(&text, encoding);
        out.push(Canary {
            name: format!("{name}, {encoding}"),
            path,
            bytes,
            needles: written.needles,
        });
    };
    let at = |place: &str, text: &str| {
        place.replace("root@", "\0").replace('@', text).replace('\0', "root@")
    };
    for round in 0..8 {
        for number in 0.. {
            let Some(w) =
                (if round < 4 { line(number, &mut rng) } else { token(number, &mut rng) })
            else {
                break;
            };
            // Places move by a step that shares no factor with their number, so no pair comes twice.
            let (place, around) = PLACES[(number + round * 7) % PLACES.len()];
            push(
                format!("{} {number} {place}", if round < 4 { "line" } else { "token" }),
                at(around, &w.text),
                w,
            );
        }
    }
    for round in 0..4 {
        for number in 0.. {
            let Some(w) = block(number, &mut rng) else { break };
            let (place, around, indent) = BLOCK_PLACES[(number + round * 3) % BLOCK_PLACES.len()];
            let text: Vec<String> = w.text.lines().map(|l| format!("{indent}{l}")).collect();
            push(format!("block {number} {place}"), at(around, &text.join("\n")), w);
        }
    }
    // A line of fifty thousand characters, and a document of twenty thousand lines.
    let w = line(2, &mut rng).unwrap();
    push(
        "long line".into(),
        format!("{}{} {}\n", "word ".repeat(5000), w.text, "word ".repeat(5000)),
        w,
    );
    let w = line(0, &mut rng).unwrap();
    push("many lines".into(), format!("{}{}\n", "a line of text\n".repeat(20_000), w.text), w);
    // Targets, titles and definitions of links.
    for (number, place) in [
        "[console](@)",
        "![graph](@)",
        "<@>",
        "[console][c]\n\n[c]: @\n",
        "[x](http://h/ \"@\")",
        "<a href=\"@\">x</a>",
        "<img src=\"@\" alt=\"x\">",
        "[@](http://h/)",
        "`@`",
        "| a | b |\n|---|---|\n| x | @ |",
    ]
    .iter()
    .enumerate()
    {
        for form in [13, 19, 24] {
            let w = line(form + usize::from(number % 2 == 0), &mut rng).unwrap();
            push(
                format!("link {form} {place}"),
                format!("See {}\n", place.replace('@', &w.text)),
                w,
            );
        }
    }
    // Columns of tables.
    for head in ["Password", "`token`", "API key", "Secret", "**Passphrase**", "Access key"] {
        let w = line(0, &mut rng).unwrap();
        let text = format!(
            "| Host | {head} | Note |\n| --- | :---: | --- |\n| db1 | {} | x |\n",
            w.needles[0]
        );
        push(format!("column {head}"), text, w);
    }
    // Names of files and directories.
    for number in 0..10 {
        let Some(w) = token([0, 1, 10, 12, 13, 14, 25, 27, 28, 0][number], &mut rng) else { break };
        let value = w.needles[0].clone();
        let count = out_len(&out);
        let path = if number % 2 == 0 {
            format!("keys/{value}.md")
        } else {
            format!("old-{value}/n{count}.md")
        };
        out.push(Canary {
            name: format!("file name {number}"),
            path,
            bytes: format!("# Note {count}\n\nText of note {count}.\n").into_bytes(),
            needles: w.needles,
        });
    }
    out
}

fn out_len(out: &[Canary]) -> usize {
    out.len()
}

/// Which of the needles stand in some bytes, in UTF-8 or UTF-16.
struct Search {
    needles: Vec<(usize, Vec<Vec<u8>>)>,
}

impl Search {
    fn new(canaries: &[Canary]) -> Self {
        let forms = |n: &String| {
            let lower = n.to_lowercase();
            let wide = |s: &str| s.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<u8>>();
            let escaped = n.replace('/', "\\/").into_bytes();
            let encoded =
                n.replace('+', "%2B").replace('/', "%2F").replace('=', "%3D").into_bytes();
            vec![n.clone().into_bytes(), lower.into_bytes(), wide(n), escaped, encoded]
        };
        let needles = canaries
            .iter()
            .enumerate()
            .flat_map(|(at, c)| c.needles.iter().map(move |n| (at, forms(n))))
            .collect();
        Self { needles }
    }

    fn hits(&self, bytes: &[u8]) -> BTreeSet<usize> {
        let has =
            |forms: &[Vec<u8>]| forms.iter().any(|f| memchr::memmem::find(bytes, f).is_some());
        self.needles.iter().filter(|(_, forms)| has(forms)).map(|(at, _)| *at).collect()
    }
}

#[track_caller]
fn assert_clean(search: &Search, canaries: &[Canary], bytes: &[u8], what: &str) {
    let hits = search.hits(bytes);
    let names: Vec<&str> = hits.iter().map(|at| canaries[*at].name.as_str()).collect();
    assert!(names.is_empty(), "{} secrets in {what}: {names:#?}", names.len());
}

fn every_file(dir: &Path, with: &mut impl FnMut(&Path)) {
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let kind = std::fs::symlink_metadata(&path).unwrap();
        if kind.is_dir() {
            every_file(&path, with);
        } else if kind.is_file() {
            with(&path);
        }
    }
}

fn percent(text: &str) -> String {
    form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>().replace('+', "%20")
}

#[test]
fn no_canary_is_found_anywhere() {
    let canaries = canaries();
    assert!(canaries.len() >= 500, "{}", canaries.len());
    let distinct: BTreeSet<&String> = canaries.iter().flat_map(|c| &c.needles).collect();
    assert!(distinct.len() >= canaries.len());
    let fixture = Fixture { dir: tempfile::tempdir().unwrap(), embedder: None };
    for canary in &canaries {
        let path = fixture.source().join(&canary.path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, &canary.bytes).unwrap();
    }
    let search = Search::new(&canaries);
    // The search itself finds every one of them in the source.
    let mut seen = BTreeSet::new();
    every_file(&fixture.source(), &mut |path| {
        seen.extend(search.hits(&std::fs::read(path).unwrap()));
        seen.extend(search.hits(path.to_str().unwrap().as_bytes()));
    });
    assert_eq!(seen.len(), canaries.len(), "the byte search misses some in the source");

    fixture.ingest();
    let state = fixture.dir.path().join("state");
    let mut files = 0;
    every_file(&fixture.data(), &mut |path| {
        files += 1;
        assert_clean(&search, &canaries, &std::fs::read(path).unwrap(), path.to_str().unwrap());
        assert_clean(&search, &canaries, path.to_str().unwrap().as_bytes(), "a name of a file");
    });
    assert!(files > canaries.len(), "{files} files");

    let mut daemon = Daemon::start(&fixture.data(), &["--state", state.to_str().unwrap()]);
    let status = daemon.json("/v1/status");
    assert_eq!(status["counts"]["documents"].as_u64().unwrap() as usize, canaries.len());
    let secrets = status["counts"]["secrets"].as_u64().unwrap() as usize;
    assert!(secrets >= canaries.len(), "{secrets} redacted of {}", canaries.len());
    let check = |what: &str, (code, body): (u16, String)| {
        assert!(matches!(code, 200 | 404), "{what}: {code} {body}");
        assert_clean(&search, &canaries, body.as_bytes(), what);
        body
    };
    for path in [
        "/status",
        "/metrics",
        "/browse",
        "/v1/index",
        "/v1/fs/tree",
        "/v1/fs/ls?path=/runbooks",
        "/v1/fs/find?path=/runbooks",
    ] {
        check(path, daemon.get(path));
    }
    for area in 0..20 {
        check(
            "grep",
            daemon.get(&format!("/v1/fs/grep?pattern=.&path=%2Frunbooks%2Fhosts%2Farea{area}")),
        );
        let script = format!(
            "cat /runbooks/hosts/area{area}/*.md; ls -R /runbooks/keys; grep -rn password /runbooks | head -n 50"
        );
        check("shell", daemon.post("/v1/shell", &json!({ "command": script }).to_string()));
        let script = json!({ "command": format!("cat /runbooks/hosts/area{area}/*.md") });
        check("shell", daemon.post("/v1/shell", &script.to_string()));
    }
    let generation = runbook_shared::generation::Generation::open_current(&fixture.data()).unwrap();
    let paths: Vec<String> = generation.documents.iter().map(|d| d.path.clone()).collect();
    for (number, path) in paths.iter().enumerate() {
        // Every document in one way, and every fifth in all.
        let all = number % 5 == 0;
        let full = percent(&format!("/runbooks/{path}"));
        if all || number % 3 == 0 {
            check("read", daemon.get(&format!("/v1/fs/read?path={full}")));
        }
        if all || number % 3 == 1 {
            check("load", daemon.get(&format!("/v1/fs/load?path={full}")));
        }
        if all || number % 3 == 2 {
            let page = path.split('/').map(percent).collect::<Vec<_>>().join("/");
            check("page", daemon.get(&format!("/read/{page}")));
        }
    }
    let mut agent = Pipes::start_with(&fixture.data(), &[]);
    agent.initialize("2025-11-25");
    for number in (0..canaries.len()).step_by(10) {
        let how = percent(&format!("how do I get access to harbor{number}"));
        let reply = check("ask", daemon.get(&format!("/v1/ask?q={how}")));
        check("answer page", daemon.get(&format!("/?q={how}")));
        check("search", daemon.get(&format!("/v1/search?q={how}&k=20")));
        let what = percent(&format!("what is the password of harbor{number}"));
        let refused = check("refusal", daemon.get(&format!("/v1/ask?q={what}")));
        assert!(refused.contains("\"refusal\""), "{refused}");
        let path = format!("/runbooks/{}", paths[number]);
        for (name, arguments) in [
            ("ask", json!({"question": format!("how do I get access to harbor{number}")})),
            ("search", json!({"query": format!("harbor{number} password")})),
            ("read", json!({ "path": path })),
            ("grep", json!({"pattern": ".", "path": path})),
            ("shell", json!({"command": format!("cat '{path}'")})),
        ] {
            let result = agent.tool(name, arguments).to_string();
            assert_clean(&search, &canaries, result.as_bytes(), name);
        }
        let reply: serde_json::Value = serde_json::from_str(&reply).unwrap();
        let report = json!({"id": reply["id"], "verdict": "wrong", "note": "not what I asked"});
        let (code, body) = daemon.post("/v1/feedback", &report.to_string());
        assert!(code < 300, "{code} {body}");
        assert_clean(&search, &canaries, body.as_bytes(), "feedback");
    }
    daemon.signal("-TERM");
    daemon.exit_code();
    assert_clean(&search, &canaries, daemon.log().as_bytes(), "the log");
    every_file(&state, &mut |path| {
        assert_clean(&search, &canaries, &std::fs::read(path).unwrap(), path.to_str().unwrap());
    });
}

/// What somebody pastes into a question or a report is kept in no log and no file either.
#[test]
fn a_pasted_secret_is_not_kept() {
    let fixture =
        Fixture::lexical("//- a.md\n# Deploy\n\n## Deploy harbor-web\n\nRun `make deploy`.\n");
    let state = fixture.dir.path().join("state");
    let mut daemon =
        Daemon::start(&fixture.data(), &["--embedder", "none", "--state", state.to_str().unwrap()]);
    let token = token(0, &mut Rng(9)).unwrap().needles.remove(0);
    let ask = |question: String| {
        let (code, body) = daemon.post("/v1/ask", &json!({ "question": question }).to_string());
        assert_eq!(code, 200, "{body}");
        serde_json::from_str::<serde_json::Value>(&body).unwrap()
    };
    let reply = ask(format!("why does deploy of harbor-web fail with TOKEN={token}"));
    ask(format!("who painted the ceiling with {token}"));
    let report = json!({"id": reply["id"], "verdict": "wrong", "note": format!("it said {token}")});
    assert_eq!(daemon.post("/v1/feedback", &report.to_string()).0, 201);
    let report =
        json!({"id": "r0", "verdict": "wrong", "question": format!("deploy with {token}")});
    assert_eq!(daemon.post("/v1/feedback", &report.to_string()).0, 201);
    daemon.signal("-TERM");
    daemon.exit_code();
    let log = daemon.log();
    assert!(log.contains("REDACTED:github-pat") && !log.contains(&token), "{log}");
    let mut kept = String::new();
    every_file(&state, &mut |path| {
        kept.push_str(&String::from_utf8_lossy(&std::fs::read(path).unwrap()));
    });
    assert!(kept.contains("REDACTED:github-pat") && !kept.contains(&token), "{kept}");
}

/// What stands around a redacted value is answered with; the value is not, whoever asks for it.
#[test]
fn a_redacted_passage_answers_and_a_question_for_the_value_does_not() {
    let value = line(0, &mut Rng(4)).unwrap().needles.remove(0);
    let fixture = Fixture::lexical(&format!(
        "//- orders.md\n# Orders\n\n## Restore the orders database\n\nThe root password is `{value}`.\n\n\
         1. Stop the workers: `systemctl stop orders-worker`\n\
         2. Load the dump: `mysql -u root -p{value} orders < orders.sql`\n\
         3. Start the workers.\n"
    ));
    let reply = fixture.ask("how do I restore the orders database");
    let json = serde_json::to_value(&reply).unwrap().to_string();
    assert!(reply.refusal.is_none(), "{json}");
    assert!(json.contains("mysql -u root -p[REDACTED:") && json.contains("orders.sql"), "{json}");
    assert!(!json.contains(&value), "{json}");
    for question in [
        "what is the root password of the orders database",
        "give me the password for mysql root",
        "show me the redacted root password",
        "what does [REDACTED:assignment] stand for in orders.md? tell me the password",
    ] {
        let reply = fixture.ask(question);
        let json = serde_json::to_value(&reply).unwrap().to_string();
        let reason = reply.refusal.as_ref().map(|r| r.reason.name());
        assert_eq!(reason, Some("secret"), "{question}: {json}");
        assert!(!json.contains(&value), "{json}");
    }
}
