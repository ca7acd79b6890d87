//! Hostile paths and scripts, for every entry point: shell, HTTP, MCP. None may lead out of the tree, write
//! outside the writable mounts, or show anything of this machine.

/// What the machine has and the tree must never show: set in the environment of every program under test.
pub(crate) const CANARY: &str = "canary-5f2c91";

/// Words that stand in files of every machine, or name what lies outside the tree.
pub(crate) fn machine_words(data: &std::path::Path) -> Vec<String> {
    let mut words = vec![CANARY.to_owned(), "root:x:0".into(), "/bin/bash".into(), "/usr/sbin/nologin".into()];
    for place in [data.to_owned(), std::env::current_dir().unwrap_or_default()] {
        words.push(place.display().to_string());
    }
    if let Some(home) = std::env::var_os("HOME").filter(|h| h.len() > 4) {
        words.push(home.to_string_lossy().into_owned());
    }
    words
}

/// Paths that lie outside the tree, however they are written: more than three hundred.
pub(crate) fn paths() -> Vec<String> {
    let targets = [
        "etc/passwd", "etc/shadow", "etc/hostname", "etc", "proc/self/environ", "proc/1/cmdline", "proc",
        "sys/kernel", "root/.ssh/id_rsa", "root", "home", "var/log/syslog", "usr/bin/env", "bin/sh", "dev/sda",
        "dev/stdin/../../etc/passwd", "boot", "run/secrets", "work", "data/current/manifest.json",
        "current/manifest.json", "generations", "manifest.json", "chunks.jsonl", "lexical/meta.json",
    ];
    let mut paths = Vec::new();
    for target in targets {
        paths.extend([
            format!("/{target}"),
            format!("//{target}"),
            format!("/./{target}"),
            format!("/runbooks/../{target}"),
            format!("/runbooks/../../../../../{target}"),
            format!("../{target}"),
            format!("../../../../../../../../{target}"),
            format!("./.././../{target}"),
            format!("/tmp/../{target}"),
            format!("/runbooks/deploy/../../{target}"),
            format!("/runbooks/..//../{target}"),
            format!("deploy/../../../{target}"),
            format!("/runbooks/leak/../../{target}"),
        ]);
    }
    for odd in [
        "..", "../", "../..", "/..", "....//....//etc/passwd", "..\\..\\etc\\passwd", "%2e%2e/%2e%2e/etc/passwd",
        "..%2f..%2fetc%2fpasswd", "%252e%252e%252fetc%252fpasswd", "..;/etc/passwd", "/runbooks/%00/etc/passwd",
        "file:///etc/passwd", "http://127.0.0.1/", "~", "~/.bashrc", "~root/.bashrc", "$HOME/.bashrc", "${HOME}",
        "/proc/self/root/etc/passwd", "/proc/self/cwd", "/proc/self/fd/0", "/dev/fd/3", "/dev/tcp/127.0.0.1/80",
        "/runbooks_private/k.md", "/runbooksx", "/tmpx", "/tmp-secret/a", "/artifactsx/a", "/repo", "/repo/..",
        "/repo/other/x.md", "\u{2025}/etc/passwd", "\u{ff0e}\u{ff0e}/etc/passwd", "..\u{200b}/etc", "/\u{2215}etc",
        "leak.md", "up/", "up/..", "link_to_outside/newfile", "docs_private/k.md", "../docs_private/k.md", ".git/config",
        "/runbooks/.git/HEAD", "C:\\Windows\\win.ini", "\\\\host\\share", "/runbooks/\u{7f}", "con", "nul", "*", "/*",
        "[a-z]*", "/e?c/passwd", "{/etc/passwd,x}", "`id`", "$(id)", "|id", ";id", "&&id", "\nid", "-", "--", "-rf",
    ] {
        paths.push(odd.to_owned());
    }
    for depth in [1_usize, 2, 5, 20, 60, 200] {
        paths.push(format!("{}etc/passwd", "../".repeat(depth)));
        paths.push(format!("/{}etc/passwd", "a/../".repeat(depth)));
    }
    paths.push("a".repeat(5000));
    paths.push("a/".repeat(3000));
    paths.push(format!("/runbooks/{}", "x".repeat(300)));
    paths.push("a\0b".into());
    paths.push("/etc/passwd\0.md".into());
    assert!(paths.len() >= 300, "{}", paths.len());
    paths
}

/// Scripts that try to leave, write, run, read the environment or never end: more than two hundred.
pub(crate) fn scripts() -> Vec<String> {
    let mut scripts = Vec::new();
    for path in ["/etc/passwd", "../../../../etc/passwd", "/proc/self/environ", "/proc/1/environ", "/root/.bashrc"] {
        for reader in [
            "cat", "head", "tail", "grep -a ''", "rg ''", "sed p", "awk 1", "sort", "wc", "nl", "tac", "rev",
            "cut -c1-", "uniq", "diff /dev/null", "strings", "stat", "file", "ls -la", "find", "jq .", "tr a b <",
            "while read -r l; do echo $l; done <", "xargs -a", "mapfile -t a <", "paste", "comm - ", "join - ", "fold",
            "tee < ", ". ", "source", "bash", "sh", "exec", "od", "base64", "xxd", "cp -t /tmp", "tar cf -",
        ] {
            scripts.push(format!("{reader} {path}"));
        }
    }
    for script in [
        "env", "printenv", "export -p", "declare -p", "set", "echo $PATH $USER $SHELL $SSH_AUTH_SOCK $CANARY",
        "jq -n env", "jq -n '$ENV'", "awk 'BEGIN{for(k in ENVIRON) print k, ENVIRON[k]}'", "compgen -v", "compgen -e",
        "id", "whoami", "hostname", "uname -a", "ps aux", "df", "mount", "ifconfig", "ip a", "date -f /etc/passwd",
        "find . -exec id \\;", "find / -delete", "find . -fprint /tmp/../x", "find . -fls /x", "find . -ok id \\;",
        "find . -execdir id \\;", "find . -fprintf /x %p", "find . -fprint0 /x", "find /etc -name passwd",
        "awk 'BEGIN{system(\"id\")}'", "awk 'BEGIN{while((getline l < \"/etc/passwd\")>0) print l}'",
        "awk 'BEGIN{\"id\" | getline x; print x}'", "awk 'BEGIN{print \"x\" > \"/etc/x\"}'", "awk 'BEGIN{print \"x\" | \"sh\"}'",
        "awk -f /etc/passwd", "awk '@include \"/etc/passwd\"'", "awk '@load \"filefuncs\"'",
        "sed -n 'r /etc/passwd' ports.md", "sed 'w /etc/x' ports.md", "sed '1e id' ports.md", "sed 's/.*/id/e' ports.md",
        "sed -i s/a/b/ ports.md", "sed -f /etc/passwd ports.md", "sort -o /etc/x ports.md", "sort -T /etc ports.md",
        "sort --compress-program=sh ports.md", "sort --files0-from=/etc/passwd", "wc --files0-from=/etc/passwd",
        "echo x > ports.md", "echo x >> ports.md", "echo x > /runbooks/new.md", "echo x > /etc/x", "echo x > /x", "> ports.md",
        "echo x | tee ports.md", "cp ports.md hosts.md", "mv ports.md /tmp/", "rm ports.md", "rm -rf /", "rm -rf /runbooks",
        "mkdir /runbooks/x", "mkdir /x", "touch ports.md", "touch /runbooks/x", "ln -s /etc/passwd /tmp/l && cat /tmp/l",
        "ln /etc/passwd /tmp/l", "chmod 777 ports.md", "chown root ports.md", "truncate -s0 ports.md", "dd if=/etc/passwd",
        "dd of=/runbooks/x if=ports.md", "install ports.md /etc/", "patch ports.md", "split ports.md /runbooks/x",
        "cat ports.md; id", "cat $(id)", "cat ports.md | sh", "cat `id`", "cat <(id)", "cat ports.md\nid", "eval id",
        "eval 'cat /etc/passwd'", "command id", "builtin id", "exec id", "nohup id", "sudo id", "timeout 1 id", "nice id",
        "busybox id", "xargs id < /dev/null", "echo id | xargs sh -c", "echo /etc/passwd | xargs cat", "parallel id ::: 1",
        "python3 -c 'print(1)'", "perl -e 'print 1'", "ruby -e 1", "node -e 1", "lua", "vi ports.md", "less /etc/passwd",
        "curl http://127.0.0.1/", "wget http://127.0.0.1/", "nc 127.0.0.1 80", "ssh localhost", "git clone x", "ping -c1 127.0.0.1",
        "exec 3<>/dev/tcp/127.0.0.1/80; cat <&3", "cat < /dev/tcp/127.0.0.1/22", "cat /dev/mem", "cat /dev/sda", "cat /dev/random | head -c 5",
        "GREP_OPTIONS=-r grep x", "RIPGREP_CONFIG_PATH=/etc/passwd rg x", "TREE_COLORS=x tree", "LD_PRELOAD=/x cat ports.md",
        "BASH_ENV=/etc/passwd bash -c :", "IFS=/ ; cat ${IFS}etc${IFS}passwd", "cd /etc && ls", "cd / && cat etc/passwd",
        "cd ../.. && ls -R", "pushd /etc", "CDPATH=/etc cd .", "PATH=/bin:/usr/bin id", "hash -p /bin/sh sh; sh -c id",
        "alias x=id; x", "trap 'id' EXIT", "enable -f /x y", "ulimit -a", "umask 0", "kill -9 1", "kill -9 $$", "kill $PPID",
        "echo $$ $PPID $UID $EUID $HOSTNAME", "history", "fc -l", "bind -x", "complete -C id x", "help /etc/passwd",
        ":(){ :|:& };:", "f() { f; }; f", "while :; do :; done", "for ((;;)); do :; done", "until false; do :; done",
        "yes | head -n 1000000 | wc -l", "seq 1 1000000000", "cat /dev/zero", "printf '%1000000000s' x", "echo {1..1000000000}",
        "x=a; for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28; do x=$x$x; done; echo ${#x}",
        "sleep 1000000", "read x < /dev/stdin", "wait", "coproc cat", "cat & cat & cat & wait", "tail -f ports.md",
        "awk 'BEGIN{while(1);}'", "awk 'BEGIN{while(1) s = s \"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\"}'", "jq -n 'def f: f; f'", "jq -n '[range(1e9)]'",
        "jq -n 'repeat(1)'", "jq -n 'input_filename, $__loc__'", "jq -n 'include \"x\"; .'", "jq -L /etc -n .", "jq --slurpfile a /etc/passwd -n '$a'",
        "sed ':a;ba' ports.md", "sed -n ':a;s/^/aaaaaaaa/;ba' ports.md", "tr '\\0-\\377' x < ports.md | wc -c", "grep -P '(a+)+$' ports.md",
        "grep -E '((a{100}){100}){100}' ports.md", "grep '\\(a\\)\\1' ports.md", "rg '(?:\\w{1000}){1000}' .", "grep -f /etc/passwd ports.md",
        "grep -r root /", "grep -r . /proc", "rg . /", "find / -maxdepth 9", "ls -R /", "tree /", "du -a /", "cat /*", "cat /*/*", "echo /*", "echo /etc/*",
        "cat '\u{0}'", "cat $'\\x00'", "cat $'/etc/passwd\\x00.md'", "cat -- -rf", "cat /runbooks/../etc/passwd", "cat /tmp/../../etc/passwd",
        "echo 'unclosed", "((((((((((", "$(((((((", "{ { { {", "if", "case", "cat <<E", "\\", "|||", "&&", "> >", "<<<", "!!", "`", "$()",
        "echo ${x:?/etc}", "echo ${!PATH*}", "echo ${PATH@A}", "printf -v x '%q' /etc; cat $x/passwd", "mapfile -C id -c 1 a < ports.md",
        "getopts a: x -a /etc/passwd; cat $OPTARG", "exec 9< /etc/passwd; cat <&9", "cat 0</etc/passwd", "echo x 1>&2 2>/etc/x", "diff <(cat /etc/passwd) ports.md",
    ] {
        scripts.push(script.to_owned());
    }
    scripts.push(format!("{}echo x", "$(".repeat(500)));
    scripts.push("(".repeat(5000));
    scripts.push(format!("echo {}", "{a,b}".repeat(40)));
    scripts.push(format!("grep -E '{}' ports.md", "\\p{L}".repeat(40_000)));
    scripts.push(format!("grep -E '{}' ports.md", (0..10_000).map(|n| n.to_string()).collect::<Vec<_>>().join("|")));
    scripts.push(format!("echo {}", "x".repeat(1_000_000)));
    assert!(scripts.len() >= 200, "{}", scripts.len());
    scripts
}
