//! The place at which secrets are looked for: whoever can tell them plugs in here.

/// What looks like a secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecretFound {
    /// 1-based line.
    pub line: u32,
    /// What it looks like, with its article: "a private key". Never the secret itself.
    pub what: String,
}

/// Tells secrets in the text of a document.
pub trait SecretFinder {
    /// All that look like one, in order of their lines.
    fn find(&self, text: &str) -> Vec<SecretFound>;
}

/// Finds none.
pub struct NoSecrets;

impl SecretFinder for NoSecrets {
    fn find(&self, _text: &str) -> Vec<SecretFound> {
        Vec::new()
    }
}

/// The finder of this program.
#[must_use]
pub fn finder() -> Box<dyn SecretFinder> {
    Box::new(NoSecrets)
}
