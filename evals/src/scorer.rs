//! The four scorers, kept apart: is the answer right, do the citations hold, is the gold section
//! cited, was the way there the expected one. None looks at what another found.

pub mod answer;
pub mod citation;
pub mod gold;
pub mod model;
pub mod negation;
pub mod page;
pub mod trajectory;

use citation::CitationScore;
use gold::GoldScore;
use trajectory::Trajectory;

/// What a scorer says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// What is wrong; nothing when it passes.
    pub faults: Vec<String>,
}

impl Verdict {
    /// Whether nothing is wrong.
    #[must_use]
    pub fn passes(&self) -> bool {
        self.faults.is_empty()
    }
}

/// What the scorers say of one reply; none where a scorer has nothing to judge.
#[derive(Clone, Debug, Default)]
pub struct Scores {
    /// Answers only.
    pub answer: Option<Verdict>,
    /// Every reply.
    pub citations: Option<CitationScore>,
    /// Cases with gold.
    pub gold: Option<GoldScore>,
    /// Every reply.
    pub trajectory: Option<Trajectory>,
}
