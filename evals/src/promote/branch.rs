//! Promoted cases as a commit on a new branch of a repository: work tree, index and every branch that is
//! there already stay as they are, so that it can be done in any clone, also a bare one.

use super::with_appended;
use anyhow::{Context, Result, anyhow, bail};
use git2::build::TreeUpdateBuilder;
use git2::{Branch, BranchType, Commit, ErrorCode, FileMode, ObjectType, Repository};
use serde_json::Value;
use std::path::{Component, Path};

/// Where the cases go.
pub struct Target {
    repository: Repository,
    branch: String,
    /// Path of the file from the root of the repository, with `/`.
    file: String,
}

impl Target {
    /// A new branch of the repository at or above a directory, and a file in it.
    ///
    /// # Errors
    /// When there is no repository, the branch is there already or cannot be, or the path leads out.
    pub fn new(repository: &Path, branch: &str, file: &Path) -> Result<Self> {
        let opened = Repository::discover(repository).with_context(|| {
            format!("`{}` is in no git repository; --repository names one", repository.display())
        })?;
        if !Branch::name_is_valid(branch)? {
            bail!("`{branch}` cannot be the name of a branch\nhint: --branch feedback-cases");
        }
        if opened.find_branch(branch, BranchType::Local).is_ok() {
            bail!(
                "the branch `{branch}` is there already\nhint: name another one, or merge or delete that one first"
            );
        }
        let file = inside(&opened, file)?;
        Ok(Self { repository: opened, branch: branch.to_owned(), file })
    }

    /// The commit that the branch starts from; none in a repository without commits.
    fn base(&self) -> Result<Option<Commit<'_>>> {
        match self.repository.head() {
            Ok(head) => Ok(Some(head.peel_to_commit()?)),
            Err(e) if matches!(e.code(), ErrorCode::UnbornBranch | ErrorCode::NotFound) => Ok(None),
            Err(e) => Err(anyhow!(e)).context("the HEAD of the repository cannot be read"),
        }
    }

    /// The file as it is in the commit that HEAD names; empty where it is not there.
    ///
    /// # Errors
    /// When it cannot be read, or is no file of text.
    pub fn earlier(&self) -> Result<String> {
        let Some(base) = self.base()? else { return Ok(String::new()) };
        let entry = match base.tree()?.get_path(Path::new(&self.file)) {
            Ok(entry) => entry,
            Err(e) if e.code() == ErrorCode::NotFound => return Ok(String::new()),
            Err(e) => return Err(e).with_context(|| format!("`{}`", self.file)),
        };
        if entry.kind() != Some(ObjectType::Blob) {
            bail!("`{}` is no file in the repository\nhint: --out names a file", self.file);
        }
        let blob = self.repository.find_blob(entry.id())?;
        let text = std::str::from_utf8(blob.content());
        text.map(str::to_owned).with_context(|| format!("`{}` is not UTF-8", self.file))
    }

    /// Commits the file with these cases behind what is there. Returns the commit, in full.
    ///
    /// # Errors
    /// When git refuses, or does not know who commits.
    pub fn commit(&self, cases: &[Value]) -> Result<String> {
        let repository = &self.repository;
        let text = with_appended(self.earlier()?, cases);
        let blob = repository.blob(text.as_bytes())?;
        let base = self.base()?;
        let before = match &base {
            Some(base) => base.tree()?,
            None => repository.find_tree(repository.treebuilder(None)?.write()?)?,
        };
        let tree = TreeUpdateBuilder::new()
            .upsert(self.file.as_str(), blob, FileMode::Blob)
            .create_updated(repository, &before)
            .with_context(|| format!("`{}` cannot be put into the tree", self.file))?;
        let tree = repository.find_tree(tree)?;
        let author = repository.signature().map_err(|e| {
            anyhow!("git does not know who commits: {e}\nhint: git config user.name and user.email")
        })?;
        let parents: Vec<&Commit<'_>> = base.iter().collect();
        let id = repository.commit(None, &author, &author, &message(cases), &tree, &parents)?;
        // Only now, and only where nobody else has made it meanwhile.
        let commit = repository.find_commit(id)?;
        repository
            .branch(&self.branch, &commit, false)
            .with_context(|| format!("the branch `{}` cannot be made", self.branch))?;
        Ok(id.to_string())
    }

    /// The file, from the root of the repository.
    #[must_use]
    pub fn file(&self) -> &str {
        &self.file
    }
}

/// A path from the root of the repository: as it is given, or without the root where it is absolute.
fn inside(repository: &Repository, file: &Path) -> Result<String> {
    let outside = || {
        anyhow!(
            "`{}` is not in the repository\nhint: --out is a path from its root",
            file.display()
        )
    };
    let from_root = match repository.workdir() {
        Some(root) if file.is_absolute() => file.strip_prefix(root).map_err(|_| outside())?,
        _ => file,
    };
    let mut parts = Vec::new();
    for part in from_root.components() {
        match part {
            Component::Normal(name) => parts.push(name.to_str().ok_or_else(outside)?),
            Component::CurDir => {}
            _ => return Err(outside()),
        }
    }
    if parts.is_empty() || parts[0] == ".git" {
        return Err(outside());
    }
    Ok(parts.join("/"))
}

fn message(cases: &[Value]) -> String {
    let mut message = format!(
        "cases: {} from feedback\n\nPromoted by runbook-eval. Each is to be looked at: is the gold section right?\n\n",
        cases.len()
    );
    for case in cases {
        let question = case["question"].as_str().unwrap_or("");
        let line: String = question.split_whitespace().collect::<Vec<_>>().join(" ");
        let short: String = line.chars().take(100).collect();
        message.push_str(&format!("- {short}\n"));
    }
    message
}
