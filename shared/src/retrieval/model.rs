//! From signals to a calibrated Confidence: a logistic model whose weights are data.
//!
//! `gate_model.json` is written by `evals/fit/fit.py` and bound to an embedder: with another one, or
//! without vectors, the model without cosine signals decides.

use super::evidence::{NAMES, Signals};
use crate::score::Confidence;
use serde::{Deserialize, Serialize};
use std::sync::LazyLock;

/// A fitted model.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Model {
    /// The model's sha256 of the embedder it was fitted with; null for the one without vectors.
    pub embedder_sha256: Option<String>,
    /// What it was fitted on.
    pub fitted_on: String,
    /// The constant.
    pub bias: f32,
    /// Weight of each signal, in the order of [`NAMES`]; by name in the file.
    #[serde(with = "by_name")]
    pub weights: [f32; NAMES.len()],
    /// The floor between `answer` and `closest`.
    pub score_floor: f32,
    /// The floor between `closest` and `nothing`.
    pub closest_floor: f32,
}

/// Weights as an object of names: a signal that the file does not name, or names twice, is an error.
mod by_name {
    use super::NAMES;
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};
    use std::collections::BTreeMap;

    pub(super) fn serialize<S: Serializer>(
        w: &[f32; NAMES.len()],
        to: S,
    ) -> Result<S::Ok, S::Error> {
        NAMES.iter().zip(w).collect::<BTreeMap<_, _>>().serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<[f32; NAMES.len()], D::Error> {
        let mut named = BTreeMap::<String, f32>::deserialize(from)?;
        let mut weights = [0.0; NAMES.len()];
        for (weight, name) in weights.iter_mut().zip(NAMES) {
            *weight = named.remove(name).ok_or_else(|| D::Error::missing_field(name))?;
        }
        match named.pop_first() {
            Some((name, _)) => Err(D::Error::custom(format!("`{name}` is no signal"))),
            None => Ok(weights),
        }
    }
}

static MODELS: LazyLock<Vec<Model>> = LazyLock::new(|| {
    serde_json::from_str(include_str!("gate_model.json"))
        .expect("a test reads the models that are part of the program")
});

/// The model for vectors of this embedder; none means that there are no vectors.
#[must_use]
pub fn for_embedder(model_sha256: Option<&str>) -> &'static Model {
    let own = model_sha256
        .and_then(|sha| MODELS.iter().find(|m| m.embedder_sha256.as_deref() == Some(sha)));
    own.or_else(|| MODELS.iter().find(|m| m.embedder_sha256.is_none()))
        .expect("a test finds the model without vectors")
}

impl Model {
    /// The probability that the section answers.
    #[must_use]
    pub fn confidence(&self, signals: &Signals) -> Confidence {
        let z: f32 = self.bias + self.weights.iter().zip(signals).map(|(w, s)| w * s).sum::<f32>();
        Confidence::new(1.0 / (1.0 + (-z).exp()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_models_are_there() {
        assert!(for_embedder(None).embedder_sha256.is_none());
        let with =
            MODELS.iter().find_map(|m| m.embedder_sha256.clone()).expect("a model with vectors");
        assert_eq!(for_embedder(Some(&with)).embedder_sha256.as_deref(), Some(with.as_str()));
        assert!(for_embedder(Some("another")).embedder_sha256.is_none());
        for model in MODELS.iter() {
            assert!(model.closest_floor < model.score_floor && model.score_floor < 1.0);
        }
    }
}
