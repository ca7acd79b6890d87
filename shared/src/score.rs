//! Scores of different kinds, which do not compare with each other.

use serde::Serialize;

/// A BM25 score of the lexical index: unbounded, comparable within one question.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd, Serialize)]
pub struct Bm25Score(pub f32);

/// The cosine of a question's and a window's vector, -1 to 1.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd, Serialize)]
pub struct CosineScore(pub f32);

/// A score after fusion, 0 to 1 within one question; it orders a list and means nothing else.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd, Serialize)]
pub struct FusedScore(pub f32);

/// The calibrated probability that the top passage answers, 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd, Serialize)]
pub struct Confidence(f32);

impl Confidence {
    /// A probability; what is not one (NaN, beyond the range) is clamped.
    #[must_use]
    pub fn new(p: f32) -> Self {
        Self(if p.is_nan() { 0.0 } else { p.clamp(0.0, 1.0) })
    }

    /// The number.
    #[must_use]
    pub fn get(self) -> f32 {
        self.0
    }
}

/// The Confidence at and above which a passage is shown as the answer.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd, Serialize)]
pub struct ScoreFloor(f32);

impl ScoreFloor {
    /// A floor between 0 and 1.
    ///
    /// # Errors
    /// When it is not between 0 and 1.
    pub fn new(floor: f32) -> Result<Self, String> {
        if (0.0..=1.0).contains(&floor) {
            Ok(Self(floor))
        } else {
            Err(format!("score_floor is a number from 0 to 1, not {floor}"))
        }
    }

    /// The number.
    #[must_use]
    pub fn get(self) -> f32 {
        self.0
    }
}
