//! Repositories that are written object by object.

use git2::{ObjectType, Oid, Repository, RepositoryInitOptions, Signature, Time};
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A mode and an object of a tree.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    pub(crate) mode: &'static str,
    pub(crate) id: Oid,
}

/// A repository that is written object by object, so that it may hold what git would refuse.
pub(crate) struct Remote {
    pub(crate) dir: PathBuf,
    pub(crate) repository: Repository,
    clock: AtomicUsize,
}

impl Remote {
    pub(super) fn bare(dir: PathBuf, branch: &str) -> Self {
        let mut options = RepositoryInitOptions::new();
        options.bare(true).initial_head(branch).external_template(false);
        let repository = Repository::init_opts(&dir, &options).unwrap();
        Self { dir, repository, clock: AtomicUsize::new(0) }
    }

    pub(crate) fn url(&self) -> String {
        format!("file://{}", self.dir.display())
    }

    pub(crate) fn blob(&self, bytes: &[u8]) -> Entry {
        Entry { mode: "100644", id: self.repository.blob(bytes).unwrap() }
    }

    pub(crate) fn link(&self, target: &str) -> Entry {
        Entry { mode: "120000", ..self.blob(target.as_bytes()) }
    }

    /// A tree with exactly these entries in this order; nothing is checked.
    pub(crate) fn tree(&self, entries: &[(&[u8], Entry)]) -> Entry {
        let mut bytes = Vec::new();
        for (name, entry) in entries {
            bytes.extend_from_slice(entry.mode.as_bytes());
            bytes.push(b' ');
            bytes.extend_from_slice(name);
            bytes.push(0);
            bytes.extend_from_slice(entry.id.as_bytes());
        }
        let id = self.repository.odb().unwrap().write(ObjectType::Tree, &bytes).unwrap();
        Entry { mode: "40000", id }
    }

    /// A tree of paths, as git would write it.
    pub(crate) fn files(&self, files: &[(&str, &str)]) -> Entry {
        let mut here: BTreeMap<&str, Vec<(&str, &str)>> = BTreeMap::new();
        let mut entries: Vec<(Vec<u8>, Entry)> = Vec::new();
        for (path, text) in files {
            match path.split_once('/') {
                Some((dir, rest)) => here.entry(dir).or_default().push((rest, text)),
                None => entries.push((path.as_bytes().to_vec(), self.blob(text.as_bytes()))),
            }
        }
        for (dir, files) in here {
            entries.push((dir.as_bytes().to_vec(), self.files(&files)));
        }
        let key = |(name, entry): &(Vec<u8>, Entry)| {
            let mut key = name.clone();
            key.extend_from_slice(if entry.mode == "40000" { b"/" } else { b"" });
            key
        };
        entries.sort_by_key(key);
        let entries: Vec<_> = entries.iter().map(|(n, e)| (n.as_slice(), *e)).collect();
        self.tree(&entries)
    }

    /// A commit of this tree on a branch, after the branch's own newest.
    pub(crate) fn commit_tree(&self, branch: &str, tree: Entry) -> String {
        let name = format!("refs/heads/{branch}");
        let parent = self.repository.refname_to_id(&name).ok();
        self.commit_onto(&name, parent, tree)
    }

    /// A commit of these files on a branch.
    pub(crate) fn commit(&self, branch: &str, files: &[(&str, &str)]) -> String {
        self.commit_tree(branch, self.files(files))
    }

    /// Puts a branch on a new history that knows nothing of the old one.
    pub(crate) fn rewrite(&self, branch: &str, files: &[(&str, &str)]) -> String {
        self.commit_onto(&format!("refs/heads/{branch}"), None, self.files(files))
    }

    fn commit_onto(&self, name: &str, parent: Option<Oid>, tree: Entry) -> String {
        let tick = self.clock.fetch_add(1, Ordering::Relaxed) as i64;
        let time = Time::new(1_700_000_000 + tick, 0);
        let author = Signature::new("Writer", "writer@example.org", &time).unwrap();
        let header = format!(
            "tree {}\n{}author {author} {} +0000\ncommitter {author} {} +0000\n\nchange {tick}\n",
            tree.id,
            parent.map_or_else(String::new, |p| format!("parent {p}\n")),
            time.seconds(),
            time.seconds(),
        );
        let odb = self.repository.odb().unwrap();
        let id = odb.write(ObjectType::Commit, header.as_bytes()).unwrap();
        self.repository.reference(name, id, true, "test").unwrap();
        id.to_string()
    }

    pub(crate) fn head(&self, branch: &str) {
        fs::write(self.dir.join("HEAD"), format!("ref: refs/heads/{branch}\n")).unwrap();
    }

    pub(crate) fn delete_branch(&self, branch: &str) {
        let name = format!("refs/heads/{branch}");
        self.repository.find_reference(&name).unwrap().delete().unwrap();
    }
}

/// Text that does not compress, in lines.
pub(crate) fn noise(bytes: usize, seed: u64) -> String {
    let mut state = seed | 1;
    let mut text = String::with_capacity(bytes + 64);
    while text.len() < bytes {
        for _ in 0..4 {
            // xorshift64: no two tests need the same noise, none needs good noise.
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            text.push_str(&format!("{state:016x}"));
        }
        text.push('\n');
    }
    text
}
