//! Searching the files beneath a path: which ones, and what each gave.

use super::engine::{Engine, Show};
use crate::tree::envelope::Source;
use crate::tree::error::TreeError;
use crate::tree::path::split;
use crate::tree::router::View;
use crate::tree::store::Kind;
use crate::tree::walk::{self, Next};
use globset::{GlobBuilder, GlobSet, GlobSetBuilder};

/// Which files are searched, by their names.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    include: Option<GlobSet>,
    exclude: GlobSet,
    exclude_dir: GlobSet,
}

impl Filter {
    /// By globs; without `include` every name is.
    ///
    /// # Errors
    /// When a glob is none.
    pub fn new(
        include: &[String],
        exclude: &[String],
        exclude_dir: &[String],
    ) -> Result<Self, TreeError> {
        Ok(Self {
            include: if include.is_empty() { None } else { Some(globs(include)?) },
            exclude: globs(exclude)?,
            exclude_dir: globs(exclude_dir)?,
        })
    }

    /// Whether a file of this name is searched.
    #[must_use]
    pub fn file(&self, name: &str) -> bool {
        self.include.as_ref().is_none_or(|i| i.is_match(name)) && !self.exclude.is_match(name)
    }

    /// Whether a directory of this name is.
    #[must_use]
    pub fn dir(&self, name: &str) -> bool {
        !self.exclude_dir.is_match(name)
    }
}

fn globs(patterns: &[String]) -> Result<GlobSet, TreeError> {
    let mut set = GlobSetBuilder::new();
    for pattern in patterns {
        set.add(glob(pattern, false)?);
    }
    set.build().map_err(|e| bad_glob(&patterns.join(" "), &e))
}

/// A glob in which `*` passes over `/`, as find's and grep's do.
///
/// # Errors
/// When it is none.
pub fn glob(pattern: &str, ignore_case: bool) -> Result<globset::Glob, TreeError> {
    if pattern.len() > 1024 {
        return Err(TreeError::BadRequest("a glob is 1024 bytes long at most".into()));
    }
    GlobBuilder::new(pattern)
        .literal_separator(false)
        .backslash_escape(true)
        .case_insensitive(ignore_case)
        .build()
        .map_err(|e| bad_glob(pattern, &e))
}

pub(crate) fn bad_glob(pattern: &str, e: &globset::Error) -> TreeError {
    TreeError::BadPattern { pattern: pattern.into(), why: e.kind().to_string() }
}

/// What a search over many files gave.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Files searched.
    pub searched: u64,
    /// Files that were selected.
    pub matched: u64,
    /// Lines that were selected.
    pub lines: u64,
}

/// A search in progress.
pub struct Search<'a> {
    /// The tree.
    pub view: &'a View,
    /// Which files.
    pub filter: &'a Filter,
    /// The engine.
    pub engine: Engine<'a>,
    /// What is printed.
    pub show: Show,
    /// What was printed.
    pub out: Vec<u8>,
    /// What was matched.
    pub touched: Vec<Source>,
    /// Sums.
    pub totals: Totals,
    /// What could not be searched.
    pub failed: Vec<TreeError>,
    /// Binary files that match, as their paths are printed.
    pub binary: Vec<String>,
    /// Whether the search ends at the first match.
    pub first_only: bool,
}

impl Search<'_> {
    /// Searches a text; the runs of lines that were selected, `[0, 0]` where they are not known.
    fn text(&mut self, shown: &str, content: &[u8]) -> Result<Vec<[u32; 2]>, TreeError> {
        self.totals.searched += 1;
        let found = self
            .engine
            .search(shown, content, &mut self.out)
            .map_err(|e| TreeError::Stopped(e.to_string()))?;
        if found.lines > 0 {
            self.totals.matched += 1;
            self.totals.lines += found.lines;
        }
        if found.binary {
            self.binary.push(shown.to_owned());
        }
        let most = self.view.limits().output_bytes;
        if self.out.len() > most {
            self.out.truncate(most);
            return Err(TreeError::Stopped(format!("more than {most} bytes of output")));
        }
        if found.lines == 0 {
            return Ok(Vec::new());
        }
        Ok(if found.spans.is_empty() { vec![[0, 0]] } else { found.spans })
    }

    /// Searches a text that stands nowhere in the tree.
    ///
    /// # Errors
    /// When a bound is reached.
    pub fn stdin(&mut self, shown: &str, content: &[u8]) -> Result<(), TreeError> {
        self.text(shown, content).map(|_| ())
    }

    /// Searches a file and notes what matched as sources.
    ///
    /// # Errors
    /// When a bound is reached.
    pub fn file(&mut self, path: &str, shown: &str) -> Result<(), TreeError> {
        let content = match self.view.read_bytes(path) {
            Ok(content) => content,
            Err(e) => {
                self.failed.push(e);
                return Ok(());
            }
        };
        let result = self.text(shown, &content);
        for span in result.as_deref().unwrap_or_default() {
            let lines = (span[0] > 0).then_some(*span);
            let source = self.view.source(path, lines);
            match self.touched.last_mut() {
                // Matches under one heading are one source.
                Some(last)
                    if last.path == source.path
                        && last.heading == source.heading
                        && last.lines.is_some() =>
                {
                    if let (Some(lines), Some(more)) = (&mut last.lines, source.lines) {
                        lines[1] = more[1];
                    }
                }
                _ => self.touched.push(source),
            }
        }
        result.map(|_| ())
    }

    /// Searches a path and all beneath it. `shown` says how a path is printed.
    ///
    /// # Errors
    /// When a bound is reached, or the path is not there.
    pub fn beneath(
        &mut self,
        start: &str,
        shown: &dyn Fn(&str) -> String,
    ) -> Result<(), TreeError> {
        let view = self.view;
        let mut unlisted = Vec::new();
        let result = walk::walk(
            view,
            start,
            &mut |stop| {
                let name = split(stop.path).1;
                match stop.meta.kind {
                    Kind::Dir if stop.depth > 0 && !self.filter.dir(name) => Ok(Next::Skip),
                    Kind::Dir => Ok(Next::Deeper),
                    Kind::File => {
                        if self.filter.file(name) && !(self.first_only && self.totals.matched > 0) {
                            self.file(stop.path, &shown(stop.path))?;
                        }
                        Ok(Next::Deeper)
                    }
                }
            },
            &mut |e| unlisted.push(e),
        );
        self.failed.append(&mut unlisted);
        result
    }
}
