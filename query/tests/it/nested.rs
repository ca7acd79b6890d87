//! What nests deep: a stack that is full ends the process, so each of these must end in an envelope.

use crate::support::Fixture;
use runbook_query::shell::{self, Request};
use runbook_query::tree::envelope::Envelope;
use runbook_query::tree::limits::Limits;
use runbook_query::tree::router::{Options, Tree};
use std::sync::Arc;

/// Runs a command line on a thread whose stack is as small as those of a server's.
fn run(command: &str) -> Envelope {
    let fixture = Fixture::lexical("//- ports.md\n# Ports\n\nnginx opens 8080.\n");
    let limits = Limits { wall_clock_s: 1.0, ..Limits::default() };
    let tree = Tree::new(Options { limits, ..Options::default() });
    let view = fixture.service().with_tree(Arc::new(tree)).view(Some("deep")).unwrap();
    let request = Request { command: command.into(), ..Request::default() };
    let thread = std::thread::Builder::new().stack_size(1 << 20);
    thread.spawn(move || shell::run(&view, &request)).unwrap().join().unwrap()
}

#[test]
fn commands_that_run_commands_end_at_a_limit() {
    for word in ["eval ", "command ", "builtin ", "xargs ", "! ", "time "] {
        let longest = word.repeat(65_000 / word.len() - 1);
        let envelope = run(&format!("{longest}echo deep"));
        assert!(envelope.exit_code.is_some(), "{word}");
    }
    let again = run("x='eval \"$x\"'; eval \"$x\"");
    assert_eq!(again.error.map(|e| e.code).as_deref(), Some("limit"));
    let all = "a=(command); for i in {1..16}; do a+=(\"${a[@]}\"); done; \"${a[@]}\" echo deep";
    assert!(run(all).exit_code.is_some());
}

#[test]
fn expressions_of_any_depth_are_read_or_refused() {
    for (word, command) in [
        ("(", "find . \"${a[@]}\" -name x"),
        ("!", "find . \"${a[@]}\" -name x"),
        ("-name x -o", "find . \"${a[@]}\" -name x"),
        ("(", "test \"${a[@]}\" x"),
        ("x -o", "test \"${a[@]}\" x"),
        ("1 +", "expr \"${a[@]}\" 1"),
    ] {
        let quoted = word.split(' ').map(|w| format!("'{w}'")).collect::<Vec<_>>().join(" ");
        let line =
            format!("a=({quoted}); for i in {{1..20}}; do a+=(\"${{a[@]}}\"); done; {command}");
        assert!(run(&line).exit_code.is_some(), "{line}");
    }
    for word in ["[", "(", "-", ".|", "{a:", "if true then ", "try "] {
        let envelope = run(&format!("jq -n '{}1'", word.repeat(16_000 / word.len())));
        assert!(envelope.exit_code.is_some_and(|code| code != 0) || word == ".|", "{word}");
    }
}

#[test]
fn jq_builds_no_value_of_any_depth() {
    for filter in ["reduce range(1000000) as $i (1; [.])", "[recurse([.])]", "\"[[[\"|fromjson"] {
        let envelope = run(&format!("jq -n '{filter}' 2>/dev/null"));
        assert_eq!(envelope.exit_code, Some(2), "{envelope:?}");
        let error = envelope.error.unwrap();
        assert_eq!(error.code, "unsupported_option");
        assert!(
            error.message.contains("is not supported") && error.hint.contains("add"),
            "{error:?}"
        );
    }
    let sum = run("echo '{\"a\": [1, {\"b\": 2}]}' | jq -c '[.. | numbers] | add'");
    assert_eq!((sum.content.as_str(), sum.exit_code), ("3\n", Some(0)));
}
