//! The calls of a run that change files, from the output of strace(1).

use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// The calls that are recorded: all that change a file or a directory, or what a descriptor stands for.
pub(super) const CALLS: &str = "open,openat,creat,close,dup,dup2,dup3,fcntl,write,pwrite64,writev,\
    pwritev,pwritev2,lseek,truncate,ftruncate,fallocate,fsync,fdatasync,syncfs,sync,rename,renameat,\
    renameat2,link,linkat,symlink,symlinkat,unlink,unlinkat,mkdir,mkdirat,rmdir,sendfile,\
    copy_file_range,splice,mmap";

/// A change, by absolute path.
#[derive(Debug)]
pub(super) enum Change {
    /// A file is created where there is none; with `true` what it holds is cut off.
    Create(PathBuf, bool),
    /// Bytes are written at an offset of a file.
    Write(u64, usize, Vec<u8>),
    /// A file gets this length.
    SetLength(u64, usize),
    /// What a file holds, or the entries of a directory, are made durable.
    Sync(u64),
    Rename(PathBuf, PathBuf),
    Link(PathBuf, PathBuf),
    Symlink(Vec<u8>, PathBuf),
    Remove(PathBuf),
    MakeDir(PathBuf),
    /// A path gets a number by which later changes name what is there now.
    Open(u64, PathBuf),
}

/// An open file description.
#[derive(Clone)]
struct Open {
    number: u64,
    path: PathBuf,
    append: bool,
    at: usize,
}

/// Turns the lines into changes beneath `root`, in the order in which the calls returned.
pub(super) fn changes(text: &str, root: &Path) -> Vec<Change> {
    let mut state =
        State { root: root.to_owned(), fds: HashMap::new(), next: 0, changes: Vec::new() };
    let mut pending: HashMap<&str, String> = HashMap::new();
    for line in text.lines() {
        let Some((pid, rest)) = line.split_once(' ') else { continue };
        let rest = rest.trim_start();
        if let Some(start) = rest.strip_suffix(" <unfinished ...>") {
            // Its number may be another thread's before this call is seen to end.
            if start.starts_with("close(") {
                state.call(&format!("{start}) = 0"));
                continue;
            }
            pending.insert(pid, start.to_owned());
        } else if let Some(resumed) = rest.strip_prefix("<... ") {
            let end = resumed.split_once(" resumed>").map_or("", |(_, end)| end);
            if let Some(start) = pending.remove(pid) {
                state.call(&format!("{start}{end}"));
            }
        } else {
            state.call(rest);
        }
    }
    state.changes
}

struct State {
    root: PathBuf,
    fds: HashMap<i64, Open>,
    next: u64,
    changes: Vec<Change>,
}

impl State {
    fn call(&mut self, line: &str) {
        let Some((name, rest)) = line.split_once('(') else { return };
        let Some((args, result)) = rest.rsplit_once(" = ") else { return };
        let args = args.trim_end();
        let args = args.strip_suffix(')').unwrap_or(args);
        let result = result.split(' ').next().unwrap_or_default();
        let Ok(result) = result.parse::<i64>() else {
            // mmap returns an address; a map that is written to would not be seen.
            if name == "mmap" && args.contains("MAP_SHARED") && args.contains("PROT_WRITE") {
                let fd = arguments(args)[4].parse().unwrap_or(-1);
                assert!(!self.fds.contains_key(&fd), "a file is written through a map: {line}");
            }
            return;
        };
        if result >= 0 {
            self.done(name, &arguments(args), result);
        }
    }

    fn done(&mut self, name: &str, args: &[String], result: i64) {
        let fd = |n: usize| args[n].parse::<i64>().unwrap_or(-1);
        let number = |n: usize| args[n].parse::<usize>().unwrap_or(0);
        match name {
            "openat" => self.open(&args[0], &args[1], &args[2], result),
            "open" => self.open("AT_FDCWD", &args[0], &args[1], result),
            "creat" => self.open("AT_FDCWD", &args[0], "O_CREAT|O_TRUNC|O_WRONLY", result),
            "close" => drop(self.fds.remove(&fd(0))),
            "dup" | "dup2" | "dup3" => self.dup(fd(0), result),
            "fcntl" if args[1].starts_with("F_DUPFD") => self.dup(fd(0), result),
            "write" | "writev" => {
                if let Some(open) = self.fds.get_mut(&fd(0)) {
                    let bytes = written(&args[1], result);
                    let at = if open.append { usize::MAX } else { open.at };
                    open.at += bytes.len();
                    self.changes.push(Change::Write(open.number, at, bytes));
                }
            }
            "pwrite64" | "pwritev" | "pwritev2" => {
                if let Some(open) = self.fds.get(&fd(0)) {
                    let bytes = written(&args[1], result);
                    self.changes.push(Change::Write(open.number, number(3), bytes));
                }
            }
            "lseek" => {
                if let Some(open) = self.fds.get_mut(&fd(0)) {
                    open.at = usize::try_from(result).unwrap();
                }
            }
            "ftruncate" => {
                if let Some(open) = self.fds.get(&fd(0)) {
                    self.changes.push(Change::SetLength(open.number, number(1)));
                }
            }
            "fsync" | "fdatasync" => {
                if let Some(open) = self.fds.get(&fd(0)) {
                    self.changes.push(Change::Sync(open.number));
                }
            }
            "rename" => self.rename(&["AT_FDCWD", &args[0], "AT_FDCWD", &args[1]]),
            "renameat" | "renameat2" => self.rename(&[&args[0], &args[1], &args[2], &args[3]]),
            "symlink" => self.symlink(&args[0], "AT_FDCWD", &args[1]),
            "symlinkat" => self.symlink(&args[0], &args[1], &args[2]),
            "link" => self.link(&["AT_FDCWD", &args[0], "AT_FDCWD", &args[1]]),
            "linkat" => self.link(&[&args[0], &args[1], &args[2], &args[3]]),
            "unlink" | "rmdir" => self.single("AT_FDCWD", &args[0], Change::Remove),
            "unlinkat" => self.single(&args[0], &args[1], Change::Remove),
            "mkdir" => self.single("AT_FDCWD", &args[0], Change::MakeDir),
            "mkdirat" => self.single(&args[0], &args[1], Change::MakeDir),
            "fcntl" | "mmap" => {}
            _ => {
                let touches = args.iter().any(|a| {
                    a.parse().is_ok_and(|fd: i64| self.fds.contains_key(&fd)) || a.starts_with('"')
                });
                assert!(!touches, "{name} is not known to this test: {args:?}");
            }
        }
    }

    /// The absolute path of an argument, where it lies beneath the root.
    fn path(&self, dir: &str, text: &str) -> Option<PathBuf> {
        use std::os::unix::ffi::OsStringExt;
        let path = PathBuf::from(std::ffi::OsString::from_vec(quoted(text)));
        let path = if path.is_absolute() {
            path
        } else if dir == "AT_FDCWD" {
            return None; // The program is given absolute paths.
        } else {
            self.fds.get(&dir.parse::<i64>().ok()?)?.path.join(path)
        };
        path.starts_with(&self.root).then_some(path)
    }

    fn open(&mut self, dir: &str, path: &str, flags: &str, fd: i64) {
        self.fds.remove(&fd);
        let Some(path) = self.path(dir, path) else { return };
        if flags.contains("O_CREAT") || flags.contains("O_TRUNC") {
            self.changes.push(Change::Create(path.clone(), flags.contains("O_TRUNC")));
        }
        self.next += 1;
        self.changes.push(Change::Open(self.next, path.clone()));
        let append = flags.contains("O_APPEND");
        self.fds.insert(fd, Open { number: self.next, path, append, at: 0 });
    }

    fn dup(&mut self, from: i64, to: i64) {
        match self.fds.get(&from).cloned() {
            Some(open) => drop(self.fds.insert(to, open)),
            None => drop(self.fds.remove(&to)),
        }
    }

    fn rename(&mut self, args: &[&str; 4]) {
        match (self.path(args[0], args[1]), self.path(args[2], args[3])) {
            (Some(from), Some(to)) => self.changes.push(Change::Rename(from, to)),
            (None, None) => {}
            _ => panic!("a rename across the root: {args:?}"),
        }
    }

    fn link(&mut self, args: &[&str; 4]) {
        if let (Some(from), Some(to)) = (self.path(args[0], args[1]), self.path(args[2], args[3])) {
            self.changes.push(Change::Link(from, to));
        }
    }

    fn symlink(&mut self, target: &str, dir: &str, path: &str) {
        if let Some(path) = self.path(dir, path) {
            self.changes.push(Change::Symlink(quoted(target), path));
        }
    }

    fn single(&mut self, dir: &str, path: &str, change: fn(PathBuf) -> Change) {
        if let Some(path) = self.path(dir, path) {
            self.changes.push(change(path));
        }
    }
}

/// The arguments, split at commas that stand in no string and no bracket.
fn arguments(text: &str) -> Vec<String> {
    let (mut args, mut depth, mut in_string) = (vec![String::new()], 0, false);
    for c in text.chars() {
        match c {
            '"' => in_string = !in_string, // With -xx no string holds a quote.
            '[' | '{' | '(' if !in_string => depth += 1,
            ']' | '}' | ')' if !in_string => depth -= 1,
            ',' if !in_string && depth == 0 => {
                args.push(String::new());
                continue;
            }
            _ => {}
        }
        args.last_mut().unwrap().push(c);
    }
    args.into_iter().map(|a| a.trim().to_owned()).collect()
}

/// The bytes of all strings of an argument, as many as were written.
fn written(text: &str, result: i64) -> Vec<u8> {
    let mut bytes = quoted(text);
    assert!(!text.contains("\"..."), "strace has cut a string");
    bytes.truncate(usize::try_from(result).unwrap());
    assert_eq!(bytes.len() as i64, result);
    bytes
}

/// The bytes of `"\x61\x62"`, one string after the other.
fn quoted(text: &str) -> Vec<u8> {
    let strings = text.split('"').skip(1).step_by(2);
    strings
        .flat_map(|s| s.split("\\x").skip(1))
        .map(|hex| u8::from_str_radix(hex, 16).unwrap_or_else(|e| panic!("{hex:?}: {e}")))
        .collect()
}
