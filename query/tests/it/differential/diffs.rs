//! `diff`, `stat` and `file` against the real ones.

use super::agree;
use super::pair::Pair;

/// Edits of a document that move, repeat, drop and change lines.
const EDITS: [&str; 14] = [
    "sed 3d",
    "sed '2,5d'",
    "sed 's/nginx/apache/'",
    "sed 's/a/b/;7,9d'",
    "sed '5{h;d};12{p;x}'",
    "sed 's/^$/--/'",
    "sed '/^$/d'",
    "sed -n 'p;p'",
    "tac",
    "sort",
    "sed '1~3s/e/E/'",
    "sed '4,8s/.*//'",
    "head -n -6",
    "sed 's/^#/##/;s/the/a/'",
];

#[test]
fn diff_prints_what_gnu_prints() {
    let pair = Pair::sample();
    let files = ["ports.md", "network/nginx.md", "README.md", "hosts.md", "database/failover.md"];
    let mut commands = Vec::new();
    for (n, file) in files.iter().filter(|f| pair.docs.join(f).exists()).enumerate() {
        // Every file with half of the edits.
        for edit in EDITS.iter().skip(n % 2).step_by(2) {
            for form in ["", "-u -L a -L b", "-U1 -L a -L b"] {
                commands.push(format!("diff {form} {file} <({edit} {file})"));
                commands.push(format!("diff {form} <({edit} {file}) {file}"));
            }
            commands.push(format!("diff -U0 -L a -L b {file} <({edit} {file})"));
            commands.push(format!("diff -c -L a -L b {file} <({edit} {file})"));
            commands.push(format!("diff -d {file} <({edit} {file})"));
            commands.push(format!("diff -bi {file} <({edit} {file} | tr a-z A-Z)"));
        }
        for other in files.iter().filter(|o| *o != file && pair.docs.join(o).exists()) {
            commands.push(format!("diff {file} {other}"));
            commands.push(format!("diff -u {file} {other} | sed 1,2d"));
            commands.push(format!("diff -d -u {file} {other} | sed 1,2d"));
        }
    }
    for command in [
        "diff ports.md ports.md",
        "diff -s ports.md ports.md",
        "diff -q ports.md hosts.md",
        "diff -qs ports.md ports.md",
        "diff ports.md no-such",
        "diff no-such ports.md",
        "diff network database",
        "diff -rq network database",
        "diff -r network database | grep -v '^[<>0-9-]'",
        "diff -rq . network | head -n 5",
        "diff ports.md network",
        "diff network ports.md",
        "diff -N ports.md no-such | head -n 4",
        "cat ports.md | diff - ports.md",
        "cat ports.md | sed 2d | diff ports.md -",
        "diff <(printf 'a\\nb') <(printf 'a\\nb\\n')",
        "diff -u -L a -L b <(printf 'a\\nb') <(printf 'a\\nc')",
        "diff -b <(printf 'a\\nb') <(printf 'a\\nb\\n')",
        "diff <(printf '') <(printf 'a\\n')",
        "diff -u -L a -L b <(printf '') <(printf 'a\\nb\\n')",
        "diff -u -L a -L b <(printf 'a\\nb\\n') <(printf '')",
        "diff -c -L a -L b <(printf 'a\\nb\\n') <(printf '')",
        "diff -w <(printf 'a  b\\n') <(printf 'ab\\n')",
        "diff -b <(printf 'a  b \\n') <(printf 'a b\\n')",
        "diff -Z <(printf 'a b \\n') <(printf 'a b\\n')",
        "diff -B <(printf 'a\\n\\nb\\n') <(printf 'a\\nb\\n')",
        "diff -B <(printf 'a\\n\\nb\\n') <(printf 'a\\nc\\n')",
        "diff -i <(printf 'ABC\\n') <(printf 'abc\\n')",
        "diff --strip-trailing-cr <(printf 'a\\r\\nb\\n') <(printf 'a\\nb\\n')",
        "diff <(printf 'a\\0b\\n') <(printf 'a\\0c\\n') | cut -c1-12",
        "diff -a <(printf 'a\\0b\\n') <(printf 'a\\0c\\n') | wc -l",
        "diff <(seq 1 2000) <(seq 1 3 2000)",
        "diff -u -L a -L b <(seq 1 300) <(seq 1 300 | sed '50d;53d;57s/5/x/;200,210d')",
        "diff <(for i in 1 2 3 4 5; do cat ports.md; done) <(for i in 1 2 3; do cat ports.md; done)",
    ] {
        commands.push(command.to_owned());
    }
    assert!(commands.len() > 250, "{}", commands.len());
    agree(&pair, &commands, false);
}

/// Device, inode, owner and times are the machine's own; all else of `stat` is the same.
#[test]
fn stat_prints_what_gnu_prints() {
    let pair = Pair::sample();
    let mut commands = Vec::new();
    for format in
        ["%s", "%n", "%N", "%F", "%s %n", "%%", "%10s|%-10s|%010s", "%.3n|", "%B %o", "%h", "x\\ny"]
    {
        commands.push(format!("stat -c '{format}' ports.md network/nginx.md"));
        commands.push(format!("stat --printf='{format}\\n\\t|\\101' ports.md"));
    }
    for command in [
        "stat -c '%F' network",
        "stat -c '%n' network/",
        "stat -c '%s' no-such",
        "stat -c %s ports.md no-such hosts.md",
        "stat ports.md | sed -n '1p;2s/Blocks.*IO/IO/p'",
        "stat ports.md | cut -d: -f1 | sed 's/^ *//'",
        "stat -t ports.md | cut -d' ' -f1-2",
        "stat -t ports.md | wc -w",
        "stat -c %Y ports.md | grep -c '^[0-9]*$'",
        "stat -c %y ports.md | grep -cE '^[0-9-]{10} [0-9:]{8}[.][0-9]{9} [+-][0-9]{4}$'",
        "stat -c '%a %A' ports.md | wc -w",
        "stat",
    ] {
        commands.push(command.to_owned());
    }
    agree(&pair, &commands, false);
}

#[test]
fn file_prints_what_file_prints() {
    let pair = Pair::sample();
    let mut commands = Vec::new();
    for options in ["", "-b", "-i", "--mime-type", "-b --mime-encoding", "-N", "-F ' ->'"] {
        commands.push(format!("file {options} ports.md"));
        commands.push(format!("file {options} network no-such hosts.md"));
    }
    for made in [
        "a\\n",
        "a\\r\\nb\\r\\n",
        "a\\r\\nb\\n",
        "a",
        "\\303\\251\\n",
        "\\357\\273\\277a\\n",
        "\\1\\2\\377\\n",
    ] {
        commands.push(format!("printf '{made}' | file -b -"));
        commands.push(format!("printf '{made}' | file -bi -"));
    }
    commands.push("for i in $(seq 400); do printf x; done | file -b -".into());
    commands.push("file -b /dev/null | head -c 0; printf '' | file -b -".into());
    agree(&pair, &commands, false);
}
