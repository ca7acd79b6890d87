//! Calls that fail: every call of a run that writes, syncs, renames or removes fails once, with an error
//! of the disk, a full disk, no descriptors left, a read-only file system, a permission that was lost. The
//! run says what failed and where, the generation from before is still whole and current, and the next run
//! succeeds. Also a clock that jumps.
//!
//! A small C library in front of the C library's own functions makes them fail.

use crate::support::{Random, World, how_many, names, skip};
use runbook_shared::generation::{Generation, current_id};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const SOURCE: &str = "source";

/// Fails the `FAIL_AT`th call that touches a path beneath `FAIL_IN`, and with `FAIL_STAY` all after it,
/// with `FAIL_WITH`; counts the calls in the file `FAIL_COUNT`. `CLOCK_ADD` seconds are added to the clock.
const LIBRARY: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

static atomic_int count;
static int fail_at, fail_with, stay;
static long long clock_add;
static const char *in, *count_file;

__attribute__((constructor)) static void start(void) {
    const char *at = getenv("FAIL_AT"), *with = getenv("FAIL_WITH"), *add = getenv("CLOCK_ADD");
    in = getenv("FAIL_IN");
    count_file = getenv("FAIL_COUNT");
    fail_at = at ? atoi(at) : 0;
    fail_with = with ? atoi(with) : 0;
    stay = getenv("FAIL_STAY") != 0;
    clock_add = add ? atoll(add) : 0;
}

__attribute__((destructor)) static void end(void) {
    if (!count_file) return;
    FILE *f = fopen(count_file, "w");
    if (f) { fprintf(f, "%d\n", atomic_load(&count)); fclose(f); }
}

static int hit(const char *path) {
    if (!in || !path || strncmp(path, in, strlen(in))) return 0;
    int n = atomic_fetch_add(&count, 1) + 1;
    if (!fail_at || (stay ? n < fail_at : n != fail_at)) return 0;
    errno = fail_with;
    return 1;
}

static int hit_fd(int fd) {
    char link[64], path[PATH_MAX];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = syscall(SYS_readlinkat, AT_FDCWD, link, path, sizeof path - 1);
    if (n < 0) return 0;
    path[n] = 0;
    return hit(path);
}

#define REAL(name) static __typeof__(&name) real; if (!real) real = dlsym(RTLD_NEXT, #name)

ssize_t write(int fd, const void *b, size_t n) { REAL(write); return hit_fd(fd) ? -1 : real(fd, b, n); }
ssize_t writev(int fd, const struct iovec *v, int n) { REAL(writev); return hit_fd(fd) ? -1 : real(fd, v, n); }
int fsync(int fd) { REAL(fsync); return hit_fd(fd) ? -1 : real(fd); }
int fdatasync(int fd) { REAL(fdatasync); return hit_fd(fd) ? -1 : real(fd); }
int rename(const char *a, const char *b) { REAL(rename); return hit(a) ? -1 : real(a, b); }
int symlink(const char *t, const char *p) { REAL(symlink); return hit(p) ? -1 : real(t, p); }
int mkdir(const char *p, mode_t m) { REAL(mkdir); return hit(p) ? -1 : real(p, m); }
int unlink(const char *p) { REAL(unlink); return hit(p) ? -1 : real(p); }
int ftruncate64(int fd, off64_t n) { REAL(ftruncate64); return hit_fd(fd) ? -1 : real(fd, n); }
ssize_t read(int fd, void *b, size_t n) { REAL(read); return hit_fd(fd) ? -1 : real(fd, b, n); }
int open64(const char *p, int flags, ...) {
    va_list rest; va_start(rest, flags); mode_t m = va_arg(rest, mode_t); va_end(rest);
    REAL(open64);
    return hit(p) ? -1 : real(p, flags, m);
}
int clock_gettime(clockid_t id, struct timespec *t) {
    REAL(clock_gettime);
    int e = real(id, t);
    if (!e && id == CLOCK_REALTIME) t->tv_sec += clock_add;
    return e;
}
"#;

fn library(world: &World) -> Option<PathBuf> {
    let (source, library) = (world.path("faults.c"), world.path("faults.so"));
    fs::write(&source, LIBRARY).unwrap();
    let mut cc = world.hermetic("cc");
    cc.args(["-shared", "-fPIC", "-O1", "-o"]).arg(&library).arg(&source).arg("-ldl");
    match cc.output() {
        Ok(output) if output.status.success() => Some(library),
        other => {
            skip(&format!("no C compiler: {other:?}"));
            None
        }
    }
}

fn write(world: &World, text: &str) {
    fs::create_dir_all(world.path(SOURCE)).unwrap();
    fs::write(world.path(SOURCE).join("guide.md"), text).unwrap();
    fs::write(world.path(SOURCE).join("disk.md"), "# Disk\n\nRun `df -h`.\n").unwrap();
}

/// A run on this data directory with the library in front.
fn run(world: &World, library: &Path, data: &Path, variables: &[(&str, String)]) -> Output {
    let mut command: Command = world.program();
    command.args(["--embedder", "none", "--json", "--source", SOURCE, "--data"]).arg(data);
    command.env("LD_PRELOAD", library).env("FAIL_IN", data);
    command.envs(variables.iter().map(|(k, v)| (*k, v.as_str())));
    command.output().unwrap()
}

const ERRORS: [(i32, &str); 6] = [
    (5, "Input/output error"),
    (28, "No space left"),
    (24, "Too many open files"),
    (30, "Read-only file system"),
    (13, "Permission denied"),
    (122, "quota"),
];

#[test]
fn every_call_that_fails_is_told_and_costs_no_generation() {
    let world = World::new();
    let Some(library) = library(&world) else { return };
    write(&world, "# Guide\n\nOne.\n");
    let (kept, data) = (world.path("kept"), world.data());
    for text in ["# Guide\n\nOne.\n", "# Guide\n\nTwo.\n", "# Guide\n\nThree.\n"] {
        write(&world, text);
        assert!(run(&world, &library, &kept, &[]).status.success());
    }
    write(&world, "# Guide\n\nThe newest.\n");
    let fresh = || {
        let _ = fs::remove_dir_all(&data);
        assert!(Command::new("cp").arg("-a").arg(&kept).arg(&data).status().unwrap().success());
    };
    fresh();
    let count = world.path("count");
    let output = run(&world, &library, &data, &[("FAIL_COUNT", count.display().to_string())]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let calls: usize = fs::read_to_string(&count).unwrap().trim().parse().unwrap();
    assert!(calls > 60, "{calls}");
    let before = current_id(&kept).unwrap();
    let (mut tried, mut failed, mut published) = (0, 0, 0);
    // Some calls, each with one of the errors; by variable each call, and with every error.
    let each = how_many("RUNBOOK_TEST_ERRORS", 0);
    let step = if each == 0 { (calls / 60).max(1) } else { 1 };
    let each = each.max(1);
    let first = Random::new("faults").below(step);
    for at in (1..=calls).skip(first).step_by(step) {
        for turn in 0..each {
            let (number, name) = ERRORS[(at + turn) % ERRORS.len()];
            for stay in [false, true] {
                if stay && tried % 4 != 0 {
                    continue;
                }
                fresh();
                let mut variables =
                    vec![("FAIL_AT", at.to_string()), ("FAIL_WITH", number.to_string())];
                if stay {
                    variables.push(("FAIL_STAY", "1".into()));
                }
                let output = run(&world, &library, &data, &variables);
                let stderr = String::from_utf8_lossy(&output.stderr);
                let what = format!(
                    "call {at} of {calls}, {name}, stays {stay}: {:?}\n{stderr}",
                    output.status
                );
                tried += 1;
                assert!(matches!(output.status.code(), Some(0 | 1)), "{what}");
                assert!(
                    !stderr.contains("panicked") && !stderr.contains("this is a bug"),
                    "{what}"
                );
                let id = current_id(&data).unwrap_or_else(|e| panic!("{what}{e}"));
                let open = Generation::open(&data, &id).unwrap_or_else(|e| panic!("{what}{e}"));
                if output.status.success() {
                    published += 1;
                    assert!(id != before, "{what}");
                } else {
                    failed += 1;
                    // What failed, and on what.
                    assert!(stderr.contains("runbook-ingest: "), "{what}");
                    assert!(stderr.contains('`') || stderr.contains('\''), "{what}");
                    let says = stderr.to_lowercase().contains(&name.to_lowercase())
                        || stderr.contains(&format!("os error {number}"))
                        || stderr.contains("damaged");
                    assert!(says, "{what}");
                }
                assert_eq!(open.documents.len(), 2, "{what}");
                if tried % 5 == 0 {
                    let next = run(&world, &library, &data, &[]);
                    assert!(next.status.success(), "{what}\nnext: {next:?}");
                    assert!(world.stored("guide.md").contains("newest"), "{what}");
                    let left = names(&data.join("generations"));
                    assert!(left.iter().all(|n| !n.starts_with('.')), "{what} {left:?}");
                }
            }
        }
    }
    eprintln!(
        "{tried} failures of {calls} calls: {failed} runs failed, {published} published in spite of it"
    );
    assert!(failed > published, "{failed} {published}");
}

#[test]
fn a_clock_that_jumps_publishes_all_the_same() {
    let world = World::new();
    let Some(library) = library(&world) else { return };
    let data = world.data();
    let day = 86_400_i64;
    let mut before = String::new();
    // Forward, back before the first generation, to the beginning of time, and to now.
    for (n, jump) in
        [0, 400 * day, -400 * day, -1_700_000_000, 10 * 365 * day, 0, 0].into_iter().enumerate()
    {
        write(&world, &format!("# Guide\n\nText {n}.\n"));
        let output = run(&world, &library, &data, &[("CLOCK_ADD", jump.to_string())]);
        assert!(output.status.success(), "{jump}: {}", String::from_utf8_lossy(&output.stderr));
        let id = current_id(&data).unwrap();
        assert_ne!(id, before, "{jump}");
        assert!(world.stored("guide.md").contains(&format!("Text {n}.")), "{jump}");
        assert!(world.generations() <= runbook_shared::limits::GENERATIONS_KEPT, "{jump}");
        let output = run(&world, &library, &data, &[("CLOCK_ADD", jump.to_string())]);
        assert!(String::from_utf8_lossy(&output.stdout).contains("up_to_date"), "{jump}");
        before = id;
    }
}

/// Permission to write that is lost, without root's power to write all the same.
#[test]
fn a_data_directory_that_may_no_longer_be_written_keeps_its_generation() {
    let world = World::new();
    write(&world, "# Guide\n\nOne.\n");
    world.ingest(SOURCE, &[]).expect(0, "published");
    write(&world, "# Guide\n\nTwo.\n");
    let before = current_id(&world.data()).unwrap();
    let has = |program: &str| Command::new(program).arg("--version").output().is_ok();
    if !crate::support::is_root() || !has("setpriv") {
        skip("only root, with setpriv, can become another user");
        return;
    }
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(world.path(""), fs::Permissions::from_mode(0o755)).unwrap();
    let mut command = world.hermetic("setpriv");
    command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups"]);
    command.arg(env!("CARGO_BIN_EXE_runbook-ingest"));
    command.args(["--embedder", "none", "--source", SOURCE, "--data"]).arg(world.data());
    let output = command.output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    if stderr.contains("setpriv:") {
        skip(&format!("the program cannot be run as another user here: {stderr}"));
        return;
    }
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(
        stderr.contains("Permission denied") && stderr.contains(world.data().to_str().unwrap()),
        "{stderr}"
    );
    assert_eq!(current_id(&world.data()).unwrap(), before);
    world.ingest(SOURCE, &[]).expect(0, "published");
}
