//! The shell's commands against the real tools of this machine, over the same documents.

mod diffs;
mod flags;
mod greps;
mod pair;
mod texts;
mod trees;

use greps::greps;
use pair::Pair;

/// All commands print what the real tools print; `sorted` where the order of files is the real tool's own.
fn agree(pair: &Pair, commands: &[String], sorted: bool) {
    let differ = pair.compare(commands, sorted);
    assert!(
        differ.is_empty(),
        "{} of {} differ\n{}",
        differ.len(),
        commands.len(),
        differ.join("\n")
    );
}

#[test]
fn grep_prints_what_gnu_grep_prints() {
    let pair = Pair::sample();
    let commands = greps();
    assert!(commands.len() > 150, "{}", commands.len());
    agree(&pair, &commands, true);
}

#[test]
fn find_and_ls_print_what_gnu_prints() {
    let pair = Pair::sample();
    let mut commands: Vec<String> = [
        "find .",
        "find . -type f",
        "find . -type d",
        "find . -name '*.md'",
        "find . -iname 'README*'",
        "find network -name '*.md' -type f",
        "find . -maxdepth 1",
        "find . -mindepth 2 -maxdepth 2",
        "find . -path '*data*'",
        "find . -not -name '*.md'",
        "find . ! -name '*.md' -type f",
        "find . -name 'a*' -o -name 'b*'",
        "find . \\( -name 'a*' -o -name 'r*' \\) -type f",
        "find . -regex '.*/[a-d][^/]*\\.md'",
        "find . -size +4k",
        "find . -size -2k -type f",
        "find . -size +3000c -type f",
        "find . -name '*.md' -print0 | tr '\\0' '\\n'",
        "find . -empty",
        "find network database -type f",
        "find no-such-dir",
        "find . -name 'x y'",
        "find ports.md",
        "find . -type f | wc -l",
        "find . -name '*.md' | xargs grep -l nginx",
        "find . -name '*.md' -print0 | xargs -0 wc -l | tail -n 1",
        "find . -prune",
        "find . -name network -prune -o -type f -print",
        "find . -true -maxdepth 0",
    ]
    .map(str::to_owned)
    .to_vec();
    for directory in [
        "",
        "network",
        "network database",
        "ports.md",
        "no-such",
        "incidents/postmortems",
        "*.md",
        "-d *",
    ] {
        for flag in ["", "-1", "-a", "-p", "-F", "-R", "-r"] {
            commands.push(format!("LC_ALL=C ls {flag} {directory} | cat"));
        }
    }
    agree(&pair, &commands, true);
}

#[test]
fn tree_prints_what_tree_prints() {
    let pair = Pair::sample();
    let commands = [
        "tree",
        "tree network",
        "tree -L 1",
        "tree -d",
        "tree -d -L 2",
        "tree -fi network",
        "tree -F",
        "tree -P '*.mdx' --prune",
        "tree -I 'network|database'",
        "tree --noreport -L 1",
        "tree network database",
        "tree -a --dirsfirst",
        "tree no-such",
        "tree incidents/",
        "tree -f deploy",
    ]
    .map(str::to_owned);
    agree(&pair, &commands, false);
}

#[test]
fn rg_prints_what_ripgrep_prints() {
    let pair = Pair::sample();
    let commands = [
        "rg nginx",
        "rg -n nginx",
        "rg -i NGINX network",
        "rg -l nginx",
        "rg -c nginx",
        "rg --files-without-match nginx",
        "rg -w db",
        "rg -o '[0-9]+\\.[0-9]+'",
        "rg -F 'a.b'",
        "rg -v . ports.md",
        "rg -x '# Ports'",
        "rg nginx ports.md",
        "rg -n nginx ports.md hosts.md",
        "rg -A1 -B1 -n nginx network",
        "rg -C1 nginx ports.md",
        "rg -g '*.mdx' .",
        "rg -g '!*.md' -l .",
        "rg -t md -l nginx",
        "rg -e nginx -e redis -l",
        "rg -S nginx -c",
        "rg -S Nginx -c",
        "rg -m1 nginx",
        "rg --files",
        "rg --files network",
        "rg zzzz",
        "rg -q nginx",
        "rg -I nginx network",
        "rg -H nginx ports.md",
        "rg '\\bapp\\d\\b' -o",
        "rg --no-heading -N nginx network/",
        "rg -l nginx ./network",
        "rg --column nginx ports.md",
        "cat ports.md | rg nginx",
        "rg -uu -l nginx",
        "rg -l --sort path nginx",
        "rg nginx no-such-file",
    ]
    .map(str::to_owned);
    agree(&pair, &commands, true);
}
