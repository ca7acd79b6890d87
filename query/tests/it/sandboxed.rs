//! The sandbox, tried from inside: a library that is loaded into the daemon itself opens, writes,
//! executes and connects on a signal, and notes what the kernel said.

use crate::support::{Daemon, Fixture};
use std::collections::BTreeMap;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;

const TREE: &str =
    "//- ports.md\n# Ports\n\n## Ports on app1\n\nThe unit harbor-web.service opens port 8080.\n";

/// Tries each line of a file on SIGUSR2, `WHAT PATH`, and writes a line with the error's number.
const PROBE: &str = r#"
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char tries[65536];
static char out[4096];

static int tcp(const char *port, int listening) {
    struct sockaddr_in a = {0};
    a.sin_family = AF_INET;
    a.sin_port = htons(atoi(port));
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int s = socket(AF_INET, SOCK_STREAM, 0);
    if (s < 0) return errno;
    int bad = listening ? bind(s, (void *)&a, sizeof a) : connect(s, (void *)&a, sizeof a);
    int e = bad ? errno : 0;
    close(s);
    return e;
}

static int run(const char *path) {
    pid_t p = fork();
    if (p == 0) {
        execl(path, path, (char *)0);
        _exit(errno);
    }
    int status = 0;
    waitpid(p, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 255;
}

static int done(int fd) {
    if (fd < 0) return errno;
    close(fd);
    return 0;
}

static int attempt(const char *what, const char *path) {
    if (!strcmp(what, "read")) return done(open(path, O_RDONLY));
    if (!strcmp(what, "list")) { DIR *d = opendir(path); if (!d) return errno; closedir(d); return 0; }
    if (!strcmp(what, "write")) return done(open(path, O_WRONLY | O_APPEND));
    if (!strcmp(what, "create")) return done(open(path, O_WRONLY | O_CREAT | O_EXCL, 0600));
    if (!strcmp(what, "remove")) return unlink(path) ? errno : 0;
    if (!strcmp(what, "mkdir")) return mkdir(path, 0700) ? errno : 0;
    if (!strcmp(what, "truncate")) return truncate(path, 0) ? errno : 0;
    if (!strcmp(what, "link")) return symlink("/etc/passwd", path) ? errno : 0;
    if (!strcmp(what, "run")) return run(path);
    if (!strcmp(what, "connect")) return tcp(path, 0);
    if (!strcmp(what, "bind")) return tcp(path, 1);
    if (!strcmp(what, "signal")) return kill(atoi(path), 0) ? errno : 0;
    return 254;
}

static void probe(int number) {
    (void)number;
    char all[65536], *save = 0;
    strcpy(all, tries);
    char tmp[4200];
    snprintf(tmp, sizeof tmp, "%s.new", out);
    FILE *f = fopen(tmp, "w");
    if (!f) return;
    for (char *line = strtok_r(all, "\n", &save); line; line = strtok_r(0, "\n", &save)) {
        char *path = strchr(line, ' ');
        if (!path) continue;
        *path++ = 0;
        fprintf(f, "%d %s %s\n", attempt(line, path), line, path);
    }
    fclose(f);
    rename(tmp, out);
}

__attribute__((constructor)) static void start(void) {
    const char *t = getenv("PROBE_TRIES"), *o = getenv("PROBE_OUT");
    if (!t || !o || strlen(t) >= sizeof tries || strlen(o) >= sizeof out) return;
    strcpy(tries, t);
    strcpy(out, o);
    signal(SIGUSR2, probe);
}
"#;

/// The probe as a library; none without a C compiler.
#[expect(clippy::print_stderr, reason = "a test that is skipped says so")]
fn built(dir: &Path) -> Option<PathBuf> {
    let (source, library) = (dir.join("probe.c"), dir.join("probe.so"));
    std::fs::write(&source, PROBE).unwrap();
    let cc = Command::new("cc")
        .args(["-shared", "-fPIC", "-O1", "-o"])
        .arg(&library)
        .arg(&source)
        .output();
    match cc {
        Ok(output) if output.status.success() => Some(library),
        other => {
            eprintln!("skipped: no C compiler: {other:?}");
            None
        }
    }
}

/// Where the daemon's things are, and what is none of its business.
struct Places<'a> {
    data: &'a Path,
    state: &'a Path,
    elsewhere: &'a Path,
    /// Where somebody listens.
    port: u16,
}

/// What is tried, and on what.
type Tries = Vec<(&'static str, String)>;

fn at(path: &Path) -> String {
    path.display().to_string()
}

impl Places<'_> {
    fn allowed(&self) -> Tries {
        let (data, state) = (self.data, self.state);
        let chunks = data.join("current/chunks.jsonl");
        vec![
            ("read", at(&chunks)),
            ("list", at(data)),
            ("read", at(&data.join("last-run.json"))),
            ("create", at(&state.join("new"))),
            ("write", at(&state.join("new"))),
            ("remove", at(&state.join("new"))),
            ("mkdir", at(&state.join("dir"))),
        ]
    }

    fn refused(&self) -> Tries {
        let (data, state, port) = (self.data, self.state, self.port);
        let chunks = data.join("current/chunks.jsonl");
        let (outside, escape) = (self.elsewhere.join("canary.txt"), self.elsewhere.join("escape"));
        let here = std::process::id().to_string();
        vec![
            ("read", "/etc/passwd".to_owned()),
            ("read", "/etc/shadow".into()),
            ("read", "/etc/hostname".into()),
            ("read", at(&outside)),
            ("read", "/proc/self/environ".into()),
            ("read", "/proc/1/environ".into()),
            ("read", format!("/proc/{here}/environ")),
            ("list", "/".into()),
            ("list", "/root".into()),
            ("list", "/home".into()),
            ("list", "/tmp".into()),
            ("list", "/var/lib".into()),
            ("write", at(&outside)),
            ("truncate", at(&outside)),
            ("remove", at(&outside)),
            ("create", at(&escape)),
            ("mkdir", at(&escape)),
            ("link", at(&escape)),
            ("write", at(&chunks)),
            ("truncate", at(&chunks)),
            ("remove", at(&chunks)),
            ("create", at(&data.join("new"))),
            ("mkdir", at(&data.join("generations/new"))),
            ("link", at(&data.join("link"))),
            ("remove", at(&data.join("current"))),
            ("run", "/bin/sh".into()),
            ("run", "/usr/bin/env".into()),
            ("run", at(&state.join("probe.out"))),
            ("connect", port.to_string()),
            ("connect", "80".into()),
            ("bind", "0".into()),
            ("bind", "8099".into()),
            ("signal", here),
        ]
    }
}

#[test]
#[expect(clippy::print_stderr, reason = "a test that is skipped says so")]
fn the_daemon_reads_its_generations_writes_its_state_and_can_do_nothing_else() {
    let fixture = Fixture::hybrid(TREE);
    let dir = fixture.dir.path();
    let elsewhere = tempfile::tempdir_in("/var/tmp").unwrap();
    let outside = elsewhere.path().join("canary.txt");
    std::fs::write(&outside, "canary-5f2c91\n").unwrap();
    let Some(library) = built(dir) else { return };
    let state = elsewhere.path().join("state");
    std::fs::create_dir(&state).unwrap();
    let out = state.join("probe.out");
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let data = fixture.data();
    let escape = elsewhere.path().join("escape");
    let places = Places { data: &data, state: &state, elsewhere: elsewhere.path(), port };
    let (allowed, refused) = (places.allowed(), places.refused());
    let tries: String =
        allowed.iter().chain(&refused).map(|(what, path)| format!("{what} {path}\n")).collect();
    let mut daemon = Daemon::start_env(
        &["--data", data.to_str().unwrap(), "--state", state.to_str().unwrap()],
        &[
            ("LD_PRELOAD", library.to_str().unwrap()),
            ("PROBE_TRIES", &tries),
            ("PROBE_OUT", out.to_str().unwrap()),
        ],
    );
    // It works as ever: the model is loaded, questions are answered, a new generation is picked up.
    let reply = daemon.json("/v1/ask?q=which+unit+opens+8080");
    assert!(reply["answer"].as_str().unwrap().contains("harbor-web.service"), "{reply}");
    assert_eq!(reply["degraded"], false, "{reply}");
    fixture.write("//- more.md\n# More\n\n## Section\n\ntext\n");
    fixture.ingest();
    daemon.wait("/v1/fs/ls", |reply| reply.to_string().contains("more.md"));
    assert_eq!(daemon.get("/read/more.md").0, 200);
    daemon.signal("-USR2");
    for _ in 0..500 {
        if out.exists() {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    let said = std::fs::read_to_string(&out).unwrap();
    daemon.signal("-TERM");
    daemon.exit_code();
    let log = daemon.log();
    if log.contains("the kernel") {
        eprintln!("skipped: {log}");
        return;
    }
    assert!(log.contains("locked in: reads"), "{log}");
    let mut numbers: BTreeMap<(String, String), i32> = BTreeMap::new();
    for line in said.lines() {
        let mut words = line.splitn(3, ' ');
        let number = words.next().unwrap().parse().unwrap();
        let (what, path) = (words.next().unwrap(), words.next().unwrap());
        numbers.insert((what.into(), path.into()), number);
    }
    assert_eq!(numbers.len(), allowed.len() + refused.len(), "{said}");
    let number = |what: &str, path: &str| numbers[&(what.to_owned(), path.to_owned())];
    for (what, path) in &allowed {
        assert_eq!(number(what, path), 0, "{what} {path}: it must be allowed\n{said}");
    }
    for (what, path) in &refused {
        // Not there is as good: /root and /home are not on every machine. 13 is EACCES, 1 is EPERM.
        let number = number(what, path);
        assert!([1, 2, 13].contains(&number), "{what} {path}: {number}\n{said}");
    }
    assert_eq!(std::fs::read_to_string(&outside).unwrap(), "canary-5f2c91\n");
    assert!(!escape.exists());
}

#[test]
fn the_sandbox_can_be_off_and_says_so() {
    let fixture = Fixture::lexical(TREE);
    let config = fixture.dir.path().join("query.toml");
    std::fs::write(&config, "[server]\nsandbox = \"off\"\n").unwrap();
    let mut daemon = Daemon::start(
        &fixture.data(),
        &["--embedder", "none", "--config", config.to_str().unwrap()],
    );
    assert_eq!(daemon.get("/livez").0, 200);
    daemon.signal("-TERM");
    daemon.exit_code();
    assert!(daemon.log().contains("the sandbox is off"));
}
