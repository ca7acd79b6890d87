//! The suites: which cases, over which trees.

use crate::case::Case;
use anyhow::{Result, anyhow};
use clap::{Args, ValueEnum};
use std::path::{Path, PathBuf};

/// Which suite to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Choice {
    /// Cases over runbooks-sample
    Sample,
    /// Cases over three public trees
    Trees,
    /// Near misses and answerables over three further trees
    NearMiss,
    /// Requests that no document can answer, and their how-to twins; the request gate alone
    Requests,
    /// Which way questions of every kind take, over runbooks-sample
    Routes,
    /// Questions about the product over its own docs
    Docs,
    /// All of them
    All,
}

/// One suite.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Suite {
    /// Over runbooks-sample.
    Sample,
    /// Over public trees.
    Trees,
    /// Over further public trees.
    NearMiss,
    /// The request gate alone.
    Requests,
    /// The ways that questions take.
    Routes,
    /// The project's own docs.
    Docs,
}

impl Choice {
    /// The suites that are meant.
    #[must_use]
    pub fn suites(self) -> &'static [Suite] {
        match self {
            Self::Sample => &[Suite::Sample],
            Self::Trees => &[Suite::Trees],
            Self::NearMiss => &[Suite::NearMiss],
            Self::Requests => &[Suite::Requests],
            Self::Routes => &[Suite::Routes],
            Self::Docs => &[Suite::Docs],
            Self::All => &Suite::ALL,
        }
    }
}

impl Suite {
    /// All of them, in the order of a report.
    pub const ALL: [Self; 6] =
        [Self::Sample, Self::Docs, Self::Requests, Self::Routes, Self::Trees, Self::NearMiss];

    /// The name of its files.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Sample => "sample",
            Self::Trees => "trees",
            Self::NearMiss => "near-miss",
            Self::Requests => "requests",
            Self::Routes => "routes",
            Self::Docs => "docs",
        }
    }

    /// Whether a gold section that was rewritten breaks its cases until somebody has read both. The docs
    /// are rewritten with nearly every change; what their cases must contain holds all the same.
    #[must_use]
    pub fn needs_approval(self) -> bool {
        self != Self::Docs
    }

    /// Whether it is asked over trees that are not part of the project.
    #[must_use]
    pub fn needs_corpora(self) -> bool {
        matches!(self, Self::Trees | Self::NearMiss)
    }
}

/// Where cases, goldens and trees are.
#[derive(Args, Clone, Debug)]
pub struct Dirs {
    /// Directory of the case files
    #[arg(long, value_name = "DIR", default_value = "evals/cases")]
    pub cases: PathBuf,
    /// Directory of approvals, rankings and baselines
    #[arg(long, value_name = "DIR", default_value = "evals/golden")]
    pub golden: PathBuf,
    /// The tree that the suite `sample` is about
    #[arg(long, value_name = "DIR", default_value = "runbooks-sample")]
    pub sample: PathBuf,
    /// The tree that the suite `docs` is about
    #[arg(long, value_name = "DIR", default_value = "docs")]
    pub docs: PathBuf,
    /// Directory of the trees that the suites `trees` and `near-miss` are about [default:
    /// target/corpora, where it is there]
    #[arg(long, value_name = "DIR")]
    pub corpora: Option<PathBuf>,
}

impl Dirs {
    /// The directory of the trees: the given one, else the usual one where it is there.
    #[must_use]
    pub fn corpora(&self) -> Option<PathBuf> {
        let usual = || Some(PathBuf::from("target/corpora")).filter(|dir| dir.is_dir());
        self.corpora.clone().or_else(usual)
    }

    /// The tree of a case.
    ///
    /// # Errors
    /// When it is not there.
    pub fn tree(&self, suite: Suite, case: &Case) -> Result<PathBuf> {
        match suite {
            Suite::Docs => return Ok(self.docs.clone()),
            _ if !suite.needs_corpora() => return Ok(self.sample.clone()),
            _ => {}
        }
        let name = case
            .corpus
            .as_deref()
            .ok_or_else(|| anyhow!("case `{}` names no `corpus`", case.id))?;
        let corpora = self.corpora().ok_or_else(no_corpora)?;
        let tree = corpora.join(name);
        let plain = Path::new(name).components().count() == 1 && !name.starts_with('.');
        if plain && tree.is_dir() {
            Ok(tree)
        } else {
            Err(anyhow!("no tree `{}`\nhint: unpack {name}.tar.zst there", tree.display()))
        }
    }
}

/// The error for trees that are nowhere.
#[must_use]
pub fn no_corpora() -> anyhow::Error {
    anyhow!(
        "no directory of trees\nhint: unpack them into target/corpora, or name one by --corpora"
    )
}
