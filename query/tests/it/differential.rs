//! The shell's commands against the real tools of this machine, over the same documents.

use crate::support::ingest;
use runbook_query::service::{Options, Service};
use runbook_query::shell::Shell;
use runbook_query::snapshot::Repo;
use runbook_query::tree::limits::Limits;
use runbook_query::tree::router::{Options as TreeOptions, Tree, View};
use runbook_shared::locate::Places;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use tempfile::TempDir;

/// A tree of documents, as files on disk and in a view.
struct Pair {
    _dir: Option<TempDir>,
    docs: PathBuf,
    view: View,
}

fn service(data: &Path) -> Service {
    let service = Service::new(Options {
        repos: vec![Repo { name: String::new(), data: data.to_owned() }],
        policy: runbook_query::engine::Policy::default(),
        embedder: Some("none".into()),
        places: Places::from_env(None, None),
    });
    service.open().unwrap();
    service
}

impl Pair {
    fn sample() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let data = dir.path().join("data");
        let sample = Path::new(env!("CARGO_MANIFEST_DIR")).join("../runbooks-sample");
        ingest(&sample.display().to_string(), &data, Some("none"));
        Self { _dir: Some(dir), ..Self::of(&data) }
    }

    fn of(data: &Path) -> Self {
        let docs = std::fs::canonicalize(data.join("current")).unwrap().join("docs");
        let limits = Limits { output_bytes: 512 << 20, wall_clock_s: 60.0, ..Limits::default() };
        let tree = Arc::new(Tree::new(TreeOptions { limits, ..TreeOptions::default() }));
        let view = service(data).with_tree(tree).view(None).unwrap();
        Self { _dir: None, docs, view }
    }

    /// Exit code and output of the real tools.
    fn real(&self, command: &str) -> (i32, String) {
        let output = Command::new("bash")
            .args(["-c", command])
            .current_dir(&self.docs)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("LC_ALL", "C.UTF-8")
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        (output.status.code().unwrap_or(-1), text)
    }

    fn ours(&self, command: &str) -> (i32, String, String) {
        let mut shell = Shell::new(&self.view, None).unwrap();
        let envelope = shell.run(command);
        (envelope.exit_code.unwrap_or(-1), envelope.content, envelope.stderr)
    }

    /// Compares commands; `sorted` where the order of files is the real tool's own.
    fn compare(&self, commands: &[String], sorted: bool) -> Vec<String> {
        let arrange = |text: &str| {
            let mut lines: Vec<&str> = text.split('\n').collect();
            if sorted {
                lines.sort_unstable();
            }
            lines.join("\n")
        };
        let mut differ = Vec::new();
        for command in commands {
            let (real_code, real) = self.real(command);
            let (code, ours, stderr) = self.ours(command);
            if arrange(&real) != arrange(&ours) || real_code != code {
                differ.push(format!(
                    "$ {command}\n  real {real_code}, ours {code} {stderr}\n{}",
                    first_difference(&arrange(&real), &arrange(&ours))
                ));
            }
        }
        differ
    }
}

fn first_difference(real: &str, ours: &str) -> String {
    let (mut a, mut b) = (real.split('\n'), ours.split('\n'));
    for n in 1.. {
        match (a.next(), b.next()) {
            (None, None) => break,
            (x, y) if x != y => return format!("  line {n}\n  real {x:?}\n  ours {y:?}\n"),
            _ => {}
        }
    }
    String::new()
}

/// Combinations of flags and patterns for grep: well over a hundred.
#[expect(clippy::too_many_lines, reason = "a table")]
fn greps() -> Vec<String> {
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

#[test]
fn grep_prints_what_gnu_grep_prints() {
    let pair = Pair::sample();
    let commands = greps();
    assert!(commands.len() > 150, "{}", commands.len());
    let differ = pair.compare(&commands, true);
    assert!(
        differ.is_empty(),
        "{} of {} differ\n{}",
        differ.len(),
        commands.len(),
        differ.join("\n")
    );
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
    let differ = pair.compare(&commands, true);
    assert!(
        differ.is_empty(),
        "{} of {} differ\n{}",
        differ.len(),
        commands.len(),
        differ.join("\n")
    );
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table")]
fn text_tools_print_what_gnu_prints() {
    let pair = Pair::sample();
    let mut commands = Vec::new();
    for file in ["ports.md", "README.md", "network/nginx.md", "'misc/new laptop checklist.md'"] {
        for command in [
            "cat",
            "cat -n",
            "cat -A",
            "cat -b",
            "cat -s",
            "head",
            "head -n 3",
            "head -5",
            "head -c 100",
            "head -n -3",
            "tail",
            "tail -n 3",
            "tail -n +3",
            "tail -c 50",
            "tail -5",
            "wc",
            "wc -l",
            "wc -w",
            "wc -c",
            "wc -m",
            "wc -L",
            "wc -lw",
            "sort",
            "sort -r",
            "sort -u",
            "sort -f",
            "sort -n",
            "sort -t'|' -k2",
            "sort -k2,2 -k1,1r",
            "uniq",
            "uniq -c",
            "uniq -d",
            "uniq -u",
            "cut -c1-10",
            "cut -d'|' -f2",
            "cut -d' ' -f1,3-",
            "cut -d' ' -f2 -s",
            "cut -b 3-5",
            "nl",
            "nl -ba",
            "nl -w3 -s': '",
            "tac",
            "rev",
            "sed -n 3p",
            "sed -n '3,5p'",
            "sed -n '/nginx/p'",
            "sed 's/a/b/'",
            "sed 's/a/b/g'",
            "sed -E 's/([a-z]+) ([a-z]+)/\\2 \\1/'",
            "sed '1,3d'",
            "sed -n '$p'",
            "sed '/^$/d'",
            "sed 's/nginx/&&/2'",
            "sed -n '/##/,/^$/p'",
            "sed 's/[aeiou]//gI'",
            "sed -e 1d -e 's/x/y/'",
            "awk '{print $1}'",
            "awk -F'|' '{print $2}'",
            "awk 'NR==3'",
            "awk 'NR>2 && NR<6 {print NR, NF}'",
            "awk '/nginx/ {n++} END {print n+0}'",
            "awk '{s += NF} END {print s}'",
            "awk 'BEGIN {print \"x\"} END {print NR}'",
            "awk '{c[$1]++} END {for (k in c) print c[k], k}' ",
            "awk '{printf \"%s-%d\\n\", $1, NR}'",
            "awk 'length($0) > 60'",
            "awk '{print toupper($1)}'",
            "awk -v n=2 'NR==n {print; exit}'",
            "awk '{gsub(/a/, \"b\"); print}'",
            "awk '!seen[$1]++'",
            "basename",
            "dirname",
            "paste -s",
        ] {
            commands.push(format!(
                "{command} {file}{}",
                if command.contains("for (k") { " | sort" } else { "" }
            ));
        }
        for pipe in [
            "tr a-z A-Z",
            "tr -d aeiou",
            "tr -s ' '",
            "tr '[:upper:]' '[:lower:]'",
            "tr ' ' '\\n' | sort | uniq -c | sort -rn | head -n 5",
            "sort | uniq -c | sort -k1,1nr -k2 | head -n 4",
            "wc",
            "cut -f1",
            "head -n1",
            "tail -n1",
            "tee /dev/null | wc -l",
            "xargs -n 3 echo",
            "xargs echo | wc -w",
            "while read -r a b; do echo \"$b:$a\"; done",
            "cat - | nl",
            "grep -c . && echo yes || echo no",
        ] {
            commands.push(format!("cat {file} | {pipe}"));
        }
    }
    for command in [
        "echo a b  c",
        "echo -n x",
        "echo -e 'a\\tb'",
        "printf '%s-%03d\\n' a 7 b 8",
        "printf '%5.2f|%-5s|\\n' 3.14159 ab",
        "basename /a/b/c.md .md",
        "basename -a /a/b /c/d",
        "dirname /a/b/c.md a",
        "pwd | wc -l",
        "true && echo y",
        "false || echo n",
        "false; echo $?",
        "x='a b'; echo \"$x\" $x",
        "echo *.md",
        "echo network/*.md",
        "for f in *.md; do wc -l < \"$f\"; done",
        "cd network && ls | cat && cd .. && ls -d *",
        "cat <<< 'here'",
        "cat <<'E'\na $x\nE",
        "echo $((3 * (4 + 5)))",
        "seq 3",
        "seq 1 2 9",
        "seq -s, 5",
        "[ -f ports.md ] && echo f",
        "[ -d network ] && echo d",
        "test -e nothing || echo none",
        "[[ abc == a* ]] && echo m",
        "diff ports.md ports.md",
        "diff <(printf 'a\\nb\\nc\\n') <(printf 'a\\nx\\nc\\n')",
        "diff -q ports.md hosts.md",
        "wc -l *.md",
        "wc network/*.md | tail -n 1",
        "head -n 2 ports.md hosts.md",
        "tail -q -n 1 ports.md hosts.md",
        "cat ports.md hosts.md | wc",
        "cat no-such-file",
        "head no-such-file",
        "wc no-such-file ports.md",
        "sort no-such",
        "printf 'b\\na\\n' | sort -c",
        "printf '10\\n9\\n' | sort -n",
        "printf '1K\\n2M\\n3\\n' | sort -h",
        "printf 'v1.10\\nv1.9\\n' | sort -V",
        "printf 'a b\\nc d\\n' | paste -d, - -",
        "echo '{\"a\": [1, 2]}' | jq -c .a",
        "echo '{\"a\": {\"b\": \"x\"}}' | jq -r .a.b",
        "echo '[3,1,2]' | jq 'sort | length'",
        "echo '[{\"n\":1},{\"n\":2}]' | jq -c 'map(select(.n > 1))'",
        "echo '{}' | jq -e .a",
        "printf 'a\\nb\\n' | xargs -I{} echo '<{}>'",
        "echo 'a:b:c' | cut -d: -f2-",
        "echo abc | tr abc xyz",
        "echo hello | sed 's/l*/L/'",
        "echo 'a,b' | awk -F, '{print $2 \",\" $1}'",
        "printf '3\\n1\\n2\\n' | awk '{a[NR]=$1} END {print a[3], NR}'",
        "f() { echo \"in $1\"; }; f x",
        "case abc in a*) echo yes;; *) echo no;; esac",
        "x=5; while [ $x -gt 3 ]; do echo $x; x=$((x-1)); done",
        "comm -12 <(sort ports.md) <(sort hosts.md) | head -n 3",
        "v=abcdef; echo ${v:1:3} ${#v} ${v/b/X} ${v%f}",
    ] {
        commands.push(command.to_owned());
    }
    let differ = pair.compare(&commands, false);
    assert!(
        differ.is_empty(),
        "{} of {} differ\n{}",
        differ.len(),
        commands.len(),
        differ.join("\n")
    );
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
    let differ = pair.compare(&commands, false);
    assert!(differ.is_empty(), "{}", differ.join("\n"));
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
    let differ = pair.compare(&commands, true);
    assert!(
        differ.is_empty(),
        "{} of {} differ\n{}",
        differ.len(),
        commands.len(),
        differ.join("\n")
    );
}

/// Trees beside the checkout, where evals/shared-checks has made generations of them: RUNBOOK_TREES names
/// data directories, separated by `:`.
#[test]
#[expect(clippy::print_stdout, reason = "the figure that shared-checks shows")]
fn trees_beside_the_checkout() {
    let Some(trees) = std::env::var_os("RUNBOOK_TREES") else { return };
    for data in std::env::split_paths(&trees) {
        let pair = Pair::of(&data);
        let mut commands = greps();
        commands.retain(|c| c.starts_with("grep -r"));
        let differ = pair.compare(&commands, true);
        println!("{}: {} of {} differ", data.display(), differ.len(), commands.len());
        assert!(differ.is_empty(), "{}\n{}", data.display(), differ.join("\n"));
    }
}
