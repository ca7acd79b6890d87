//! Command lines of grep, egrep and fgrep.

/// Combinations of flags and patterns for grep: well over a hundred.
#[expect(clippy::too_many_lines, reason = "a table")]
pub(crate) fn greps() -> Vec<String> {
    let mut commands = Vec::new();
    let patterns = [
        "nginx",
        "restart",
        "^#",
        "^## ",
        "8080",
        "[0-9]\\+\\.[0-9]",
        "postgres\\|redis",
        "the$",
        "sudo",
        "\\.example",
        "^$",
        "a.*b",
        "\\bdb\\b",
        "[[:upper:]][[:lower:]]*[[:space:]]",
        "x\\{3,\\}",
        "é",
        "--",
        "no such text anywhere",
    ];
    let flags = [
        "", "-i", "-v", "-c", "-n", "-l", "-L", "-w", "-x", "-o", "-h", "-in", "-vc", "-A2",
        "-B1 -n", "-C2 -n", "-m2 -n", "-on", "-io", "-1",
    ];
    for (n, pattern) in patterns.iter().enumerate() {
        for (m, flag) in flags.iter().enumerate() {
            // Every pattern with a third of the flags, every flag with a third of the patterns.
            if (n + m) % 3 == 0 {
                commands.push(format!("grep -r {flag} -e '{pattern}' ."));
            }
        }
    }
    for extended in [
        "(nginx|redis)",
        "^#+ ",
        "[0-9]{1,3}(\\.[0-9]{1,3}){3}",
        "a+?b",
        "(re)?start",
        "colou?r",
        "port|ports",
        "ledger|ledger-main",
        "\\<(up|down)\\>",
        "^(a|the|if) ",
        "a{,2}p",
        "\\$[A-Z_]+",
        "[]]",
        "[^a-z ]{6,}",
        "e|es|est",
    ] {
        for flag in ["", "-i", "-o", "-c", "-on"] {
            commands.push(format!("grep -rE {flag} '{extended}' ."));
        }
    }
    for fixed in ["a.b", "[x]", "$", "*", "restic -r"] {
        commands.push(format!("grep -rF -- '{fixed}' ."));
        commands.push(format!("grep -rFio -- '{fixed}' ."));
    }
    for more in [
        "grep -rn --include='*.md' nginx .",
        "grep -rn --exclude='a*' nginx .",
        "grep -rl --include=*.{md,mdx} restart",
        "grep -rn --exclude-dir=network nginx .",
        "grep -r nginx network/",
        "grep -r nginx network ports.md",
        "grep nginx ports.md",
        "grep -c nginx ports.md network/nginx.md",
        "grep -H nginx ports.md",
        "grep -rh nginx . ",
        "grep -e nginx -e redis ports.md hosts.md",
        "grep -q nginx ports.md",
        "grep -q zzzz ports.md",
        "grep nginx no-such-file",
        "grep nginx no-such-file ports.md",
        "grep -s nginx no-such-file",
        "grep -nb nginx ports.md",
        "grep -rZl nginx . | tr '\\0' '\\n'",
        "grep -rLi nginx .",
        "cat ports.md | grep -n nginx",
        "grep -n nginx - < ports.md",
        "grep nginx network",
        "grep -x '' ports.md",
        "grep -rc '' . ",
        "grep -w -o 'app1' -r .",
        "egrep 'a|b' ports.md",
        "fgrep '|' ports.md",
        "grep -m1 -A3 -n '|' ports.md",
        "grep -A1 -B1 -rn 'nginx' network",
        "grep -n --no-group-separator -A1 'nginx' ports.md",
        "grep --color=always -c nginx ports.md",
        "grep -rn nginx -- . | wc -l",
        "grep -ri --count NGINX . | sort -t: -k2 -n | tail -n 3",
        "grep -f /dev/null ports.md",
        "grep '' /dev/null",
        "grep -nx '# .*' ports.md",
        "grep -vn '|' ports.md",
        "grep -y NGINX ports.md",
        "grep -Eo '[a-z]+@[a-z.]+' -r . | sort | uniq -c | sort -rn",
        "printf 'a\\0b\\nmarker\\n' | grep marker",
        "printf 'a\\0b\\nmarker\\n' | grep -c marker",
        "printf 'a\\0b\\nmarker\\n' | grep -a marker",
        "printf 'no newline' | grep -n no",
        "printf 'a\\r\\nb\\r\\n' | grep -c 'a$'",
    ] {
        commands.push(more.to_owned());
    }
    commands
}
