//! A disk that may lose everything that was not made durable.
//!
//! What a file holds is durable as it was at its last fsync, the entries of a directory as they were at
//! its own. When power fails, what came since is lost, kept, or kept in part.

use super::trace::Change;
use crate::support::Random;
use std::collections::{BTreeMap, HashMap};
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

/// What the power failure leaves of what was not made durable.
#[derive(Clone, Copy, Debug)]
pub(super) enum Loss {
    /// Nothing.
    All,
    /// Names, but not what the files hold.
    Data,
    /// What the files hold, but no names.
    Names,
    /// Everything: the program was killed, the machine runs on.
    Nothing,
    /// Any part of it, in any order.
    Some,
}

#[derive(Clone)]
enum Node {
    File { now: Vec<u8>, durable: Vec<u8> },
    Dir { now: Entries, durable: Entries, since: Vec<Step> },
    Link(PathBuf),
}

type Entries = BTreeMap<OsString, usize>;
/// Entries that change at once.
type Step = Vec<(OsString, Option<usize>)>;

pub(super) struct Disk {
    root: PathBuf,
    nodes: Vec<Node>,
    /// What the numbers of changes stand for.
    open: HashMap<u64, usize>,
}

impl Disk {
    /// A disk on which all that lies in `root` is durable.
    pub(super) fn of(root: &Path) -> Self {
        let mut disk = Self { root: root.to_owned(), nodes: Vec::new(), open: HashMap::new() };
        disk.load(root);
        disk
    }

    fn load(&mut self, path: &Path) -> usize {
        let kind = fs::symlink_metadata(path).unwrap().file_type();
        let at = self.nodes.len();
        if kind.is_symlink() {
            self.nodes.push(Node::Link(fs::read_link(path).unwrap()));
        } else if kind.is_file() {
            let bytes = fs::read(path).unwrap();
            self.nodes.push(Node::File { now: bytes.clone(), durable: bytes });
        } else {
            self.nodes.push(directory(Entries::new()));
            let entries: Entries = fs::read_dir(path)
                .unwrap()
                .map(|e| e.unwrap())
                .map(|e| (e.file_name(), self.load(&e.path())))
                .collect();
            self.nodes[at] = directory(entries);
        }
        at
    }

    fn find(&self, path: &Path) -> Option<usize> {
        let mut at = 0;
        for part in path.strip_prefix(&self.root).unwrap() {
            let Node::Dir { now, .. } = &self.nodes[at] else { return None };
            at = *now.get(part)?;
        }
        Some(at)
    }

    /// Changes entries of the directory that holds `path`.
    fn step(&mut self, path: &Path, changes: Step) {
        let parent =
            self.find(path.parent().unwrap()).unwrap_or_else(|| panic!("{}", path.display()));
        let Node::Dir { now, since, .. } = &mut self.nodes[parent] else { panic!("no directory") };
        apply(now, &changes);
        since.push(changes);
    }

    fn add(&mut self, path: &Path, node: Node) {
        self.nodes.push(node);
        let at = self.nodes.len() - 1;
        self.step(path, vec![(name(path), Some(at))]);
    }

    fn file(&mut self, number: u64) -> Option<&mut Vec<u8>> {
        match &mut self.nodes[*self.open.get(&number)?] {
            Node::File { now, .. } => Some(now),
            _ => None,
        }
    }

    /// Applies a change as the kernel did.
    pub(super) fn apply(&mut self, change: &Change) {
        match change {
            Change::Create(path, cut) => match self.find(path) {
                None => self.add(path, Node::File { now: Vec::new(), durable: Vec::new() }),
                Some(at) => {
                    if let (true, Node::File { now, .. }) = (cut, &mut self.nodes[at]) {
                        now.clear();
                    }
                }
            },
            Change::Open(number, path) => {
                if let Some(at) = self.find(path) {
                    self.open.insert(*number, at);
                }
            }
            Change::Write(number, at, bytes) => {
                let file = self.file(*number).expect("an open file");
                let at = if *at == usize::MAX { file.len() } else { *at };
                if file.len() < at + bytes.len() {
                    file.resize(at + bytes.len(), 0);
                }
                file[at..at + bytes.len()].copy_from_slice(bytes);
            }
            Change::SetLength(number, length) => {
                self.file(*number).expect("an open file").resize(*length, 0);
            }
            Change::Sync(number) => match &mut self.nodes[self.open[number]] {
                Node::File { now, durable } => durable.clone_from(now),
                Node::Dir { now, durable, since } => {
                    durable.clone_from(now);
                    since.clear();
                }
                Node::Link(_) => {}
            },
            Change::Rename(from, to) => {
                let at = self.find(from).unwrap_or_else(|| panic!("{}", from.display()));
                assert_eq!(from.parent(), to.parent(), "a rename between directories");
                self.step(to, vec![(name(from), None), (name(to), Some(at))]);
            }
            Change::Link(from, to) => {
                let at = self.find(from).unwrap();
                self.step(to, vec![(name(to), Some(at))]);
            }
            Change::Symlink(target, path) => {
                use std::os::unix::ffi::OsStringExt;
                let target = PathBuf::from(OsString::from_vec(target.clone()));
                self.add(path, Node::Link(target));
            }
            Change::Remove(path) => self.step(path, vec![(name(path), None)]),
            Change::MakeDir(path) => self.add(path, directory(Entries::new())),
        }
    }

    /// Writes what is left after a power failure into `to`, which must not exist.
    pub(super) fn fail(&self, loss: Loss, random: &mut Random, to: &Path) {
        self.restore(0, loss, random, to);
    }

    fn restore(&self, at: usize, loss: Loss, random: &mut Random, to: &Path) {
        match &self.nodes[at] {
            Node::Link(target) => std::os::unix::fs::symlink(target, to).unwrap(),
            Node::File { now, durable } => {
                let bytes = match loss {
                    Loss::All | Loss::Data => durable.clone(),
                    Loss::Names | Loss::Nothing => now.clone(),
                    Loss::Some => partly(now, durable, random),
                };
                fs::write(to, bytes).unwrap();
            }
            Node::Dir { now, durable, since } => {
                let entries = match loss {
                    Loss::All | Loss::Names => durable.clone(),
                    Loss::Data | Loss::Nothing => now.clone(),
                    Loss::Some => {
                        let mut entries = durable.clone();
                        for step in since.iter().filter(|_| random.below(2) == 0) {
                            apply(&mut entries, step);
                        }
                        entries
                    }
                };
                fs::create_dir(to).unwrap();
                for (name, at) in entries {
                    self.restore(at, loss, random, &to.join(name));
                }
            }
        }
    }
}

fn directory(entries: Entries) -> Node {
    Node::Dir { now: entries.clone(), durable: entries, since: Vec::new() }
}

fn name(path: &Path) -> OsString {
    path.file_name().unwrap().to_owned()
}

fn apply(entries: &mut Entries, step: &[(OsString, Option<usize>)]) {
    for (name, at) in step {
        match at {
            Some(at) => drop(entries.insert(name.clone(), *at)),
            None => drop(entries.remove(name)),
        }
    }
}

/// The durable bytes, those of now, or of those a part; lost parts read as zeros.
fn partly(now: &[u8], durable: &[u8], random: &mut Random) -> Vec<u8> {
    if now == durable {
        return now.to_vec();
    }
    // What was made durable once stays, where it was only added to.
    let kept = if now.starts_with(durable) { durable.len() } else { 0 };
    let from = kept + random.below(now.len() + 1 - kept);
    match random.below(4) {
        0 => durable.to_vec(),
        1 => now.to_vec(),
        2 => now[..from].to_vec(),
        _ => {
            let mut bytes = now.to_vec();
            bytes[from..].fill(0);
            bytes
        }
    }
}
