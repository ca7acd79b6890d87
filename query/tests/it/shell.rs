//! The shell: exit codes, loud errors, honest zeros, sources, limits.

use crate::support::Fixture;
use runbook_query::shell::{self, Request, Shell};
use runbook_query::tree::envelope::Envelope;
use runbook_query::tree::limits::Limits;
use runbook_query::tree::router::{Options, Tree, View};
use std::sync::Arc;

const TREE: &str = "//- deploy/staging.md\n# Staging\n\nIntro line.\n\n## Reset\n\nRun `harborctl reset`.\n//- ports.md\n# Ports\n\nnginx opens 8080.\n//- users/caf\u{e9}.md\n# Caf\u{e9}\n\nnginx\n";

fn view(fixture: &Fixture) -> View {
    fixture.service().view(Some("shell")).unwrap()
}

fn run(view: &View, command: &str) -> Envelope {
    shell::run(view, &Request { command: command.into(), ..Request::default() })
}

#[test]
fn unsupported_commands_and_options_are_loud() {
    let fixture = Fixture::lexical(TREE);
    let view = view(&fixture);
    for (command, exit, code, word) in [
        ("kubectl get pods", 127, "unsupported_command", "kubectl"),
        ("kubectl get pods 2>/dev/null", 127, "unsupported_command", "kubectl"),
        ("python3 -c 1 2>/dev/null || true", 0, "unsupported_command", "python3"),
        ("/bin/ls 2>/dev/null", 127, "unsupported_command", "/bin/ls"),
        ("sort -Q ports.md", 2, "unsupported_option", "-Q"),
        ("sort --frob ports.md 2>/dev/null", 2, "unsupported_option", "--frob"),
        ("grep -Q x ports.md 2>/dev/null", 2, "unsupported_option", "-Q"),
        ("rg -Q x 2>/dev/null", 2, "unsupported_option", "-Q"),
        ("find . -delete 2>/dev/null", 2, "unsupported_option", "-delete"),
        ("find . -exec cat {} ';'", 2, "unsupported_option", "-exec"),
        ("ls --frob | cat", 0, "unsupported_option", "--frob"),
        ("bash -c ls 2>/dev/null", 127, "unsupported_command", "bash"),
        ("awk 'BEGIN { system(\"id\") }'", 2, "unsupported_option", "system()"),
        ("tail -f ports.md", 2, "unsupported_option", "-f"),
        ("grep '\\(a\\)\\1' ports.md 2>/dev/null", 2, "bad_pattern", "back-references"),
        ("grep -E '(' ports.md", 2, "bad_pattern", "Unmatched"),
    ] {
        let envelope = run(&view, command);
        assert_eq!(envelope.exit_code, Some(exit), "{command}: {envelope:?}");
        let error = envelope.error.clone().unwrap_or_else(|| panic!("{command}: {envelope:?}"));
        assert_eq!(error.code, code, "{command}");
        assert!(error.message.contains(word), "{command}: {error:?}");
        assert!(!error.hint.is_empty(), "{command}");
        assert!(envelope.stderr.contains(word), "{command}: {envelope:?}");
        assert!(!envelope.stderr.contains("cancelled"), "{command}: {envelope:?}");
    }
}

#[test]
fn an_empty_grep_says_how_much_it_searched() {
    let fixture = Fixture::lexical(TREE);
    let view = view(&fixture);
    for (command, said) in [
        ("grep -r zzz .", "grep: no match in 3 files searched\n"),
        ("grep zzz ports.md", "grep: no match in 1 files searched\n"),
        ("rg zzz", "rg: no match in 3 files searched\n"),
        ("grep -rl --include='*.txt' nginx", "grep: no match in 0 files searched\n"),
    ] {
        let envelope = run(&view, command);
        assert_eq!(
            (envelope.exit_code, envelope.content.as_str(), envelope.stderr.as_str()),
            (Some(1), "", said),
            "{command}"
        );
        assert_eq!(envelope.error, None);
    }
}

#[test]
fn binary_content_is_said() {
    // JL-10: NUL bytes must not make text look empty.
    let fixture = Fixture::lexical(TREE);
    let view = view(&fixture);
    let command = "printf 'alpha\\0beta\\nmarker here\\n' > /tmp/b; grep marker /tmp/b 2>/dev/null";
    let envelope = run(&view, command);
    assert_eq!((envelope.exit_code, envelope.content.as_str()), (Some(0), ""));
    assert!(envelope.stderr.contains("/tmp/b: binary file matches"), "{envelope:?}");
    assert_eq!(envelope.error.unwrap().code, "binary_file");
    assert_eq!(run(&view, "grep -a marker /tmp/b").content, "marker here\n");
    assert!(run(&view, "rg marker /tmp/b").content.contains("binary file matches"));
    let read = view
        .read(&runbook_query::tree::request::Read { path: "/tmp/b".into(), ..Default::default() });
    assert!(
        read.content.contains("alpha\u{2400}beta") && read.stderr.contains("binary"),
        "{read:?}"
    );
}

#[test]
fn what_is_read_or_matched_is_a_source() {
    let fixture = Fixture::lexical(TREE);
    let view = view(&fixture);
    let sources = |command: &str| -> Vec<(String, Option<[u32; 2]>)> {
        run(&view, command).sources.into_iter().map(|s| (s.path, s.lines)).collect()
    };
    assert_eq!(sources("cat ports.md"), [("/runbooks/ports.md".to_owned(), None)]);
    assert_eq!(
        sources("grep -rn harborctl"),
        [("/runbooks/deploy/staging.md".to_owned(), Some([7, 7]))]
    );
    assert_eq!(sources("rg -l nginx").len(), 2);
    assert_eq!(sources("head -1 ports.md | wc -c; sed -n 1p deploy/staging.md").len(), 2);
    assert_eq!(sources("ls -R; find . ; echo ports.md"), []);
    let headed = run(&view, "grep -A1 Run deploy/staging.md");
    assert_eq!(headed.sources[0].heading.as_deref(), Some("Reset"));
}

#[test]
fn a_shell_keeps_its_directory_and_writes_to_tmp_alone() {
    let fixture = Fixture::lexical(TREE);
    let view = view(&fixture);
    let mut shell = Shell::new(&view, None).unwrap();
    assert_eq!(shell.run("cd deploy && x=5").exit_code, Some(0));
    assert_eq!(shell.cwd(), "/runbooks/deploy");
    assert_eq!(shell.run("pwd; echo $x").content, "/runbooks/deploy\n5\n");
    let written =
        shell.run("grep -rl nginx .. > /tmp/list && sort /tmp/list | tee /tmp/sorted | wc -l");
    assert_eq!(written.content, "2\n", "{written:?}");
    assert_eq!(shell.run("cat /tmp/sorted").content, "../ports.md\n../users/caf\u{e9}.md\n");
    for command in [
        "echo x > new.md",
        "echo x >> staging.md",
        "cp staging.md x",
        "rm staging.md",
        "mkdir d",
        "touch staging.md",
        "tee x < staging.md",
    ] {
        let refused = shell.run(command);
        assert_ne!(refused.exit_code, Some(0), "{command}");
        assert!(refused.stderr.to_lowercase().contains("read-only"), "{command}: {refused:?}");
    }
    assert_eq!(shell.run("cat staging.md | head -n 1").content, "# Staging\n");
    assert_eq!(run(&view, "cat /tmp/sorted | wc -l").content, "2\n", "the same session");
    assert!(Shell::new(&view, Some("/nowhere")).is_err());
}

#[test]
fn nothing_of_the_machine_is_there() {
    let fixture = Fixture::lexical(TREE);
    let view = view(&fixture);
    assert_eq!(run(&view, "ls /").content, "runbooks\ntmp\n");
    for command in
        ["ls /etc", "cat /etc/passwd", "ls /proc", "ls /bin", "ls /usr/bin", "cat /dev/zero"]
    {
        let envelope = run(&view, command);
        assert_ne!(envelope.exit_code, Some(0), "{command}: {envelope:?}");
        assert_eq!(envelope.content, "", "{command}");
    }
    let exported = run(&view, "export -p; declare -p; set").content;
    for word in ["CARGO", "/root", "/home/", "RUST"] {
        assert!(!exported.contains(word), "{word} in {exported}");
    }
    assert_eq!(run(&view, "cat /dev/null; grep -c x /dev/null").content, "0\n");
}

#[test]
fn limits_end_a_command_and_are_said() {
    let fixture = Fixture::lexical(TREE);
    let limits = Limits {
        wall_clock_s: 1.0,
        output_bytes: 50_000,
        loops: 500,
        commands: 2_000,
        command_bytes: 500,
        ..Limits::default()
    };
    let tree = Arc::new(Tree::new(Options { limits, ..Options::default() }));
    let service = fixture.service().with_tree(tree);
    let view = service.view(None).unwrap();
    for command in [
        "while :; do :; done",
        "for i in {1..1000}; do echo $i; done >/dev/null",
        "f() { f; }; f",
        "until false; do true; done",
    ] {
        let envelope = run(&view, command);
        assert!(envelope.error.is_some(), "{command}: {envelope:?}");
        assert_ne!(envelope.exit_code, Some(0), "{command}");
    }
    let long = run(&view, &format!("echo {}", "x".repeat(600)));
    assert_eq!(long.error.unwrap().code, "bad_request");
    let much = run(
        &view,
        "seq 1 400 | xargs -I{} echo 'a line of text that is long enough {}' | cat - /runbooks/ports.md | wc -l",
    );
    assert_eq!(much.content, "403\n", "{much:?}");
}

#[test]
fn the_whole_of_a_long_output_is_kept() {
    let text = (1..=3000).map(|n| format!("entry {n}\n")).collect::<String>();
    let fixture = Fixture::lexical(&format!("//- big.md\n# Big\n\n{text}"));
    let view = view(&fixture);
    let cat = run(&view, "cat big.md");
    assert!(cat.truncated && cat.exit_code == Some(0));
    let path = cat.overflow.unwrap().path;
    assert_eq!(
        run(&view, &format!("wc -l < {path}; sed -n 1500p {path}")).content,
        "3002\nentry 1498\n"
    );
    let listed = run(&view, "for i in 1 2 3 4 5 6 7 8; do cat big.md | head -n 400; done");
    assert!(listed.overflow.is_some());
}
