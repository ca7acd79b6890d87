//! The rules, by name.

use serde::{Serialize, Serializer};

/// Whether a finding makes lint fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Readers get something wrong.
    Error,
    /// Readers find less than there is.
    Warning,
}

/// What is looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Rule {
    /// A comment that allows a rule which does not exist.
    UnknownRule,
    /// A document that cannot be read.
    UnreadableDocument,
    /// A file with the name of a document that is not indexed.
    SkippedDocument,
    /// A fence without an end.
    UnclosedFence,
    /// A link to a file that is not there.
    DeadLink,
    /// A link to a heading that is not there.
    DeadAnchor,
    /// What looks like a secret.
    Secret,
    /// A heading that says nothing of what is beneath it.
    VagueHeading,
    /// Two headings of a document with one anchor.
    DuplicateAnchor,
    /// A section that is cut, since it is too long and has no headings within.
    LongSection,
    /// Two documents with one title.
    AmbiguousTitle,
}

impl Rule {
    /// All rules.
    pub const ALL: [Self; 11] = [
        Self::UnknownRule,
        Self::UnreadableDocument,
        Self::SkippedDocument,
        Self::UnclosedFence,
        Self::DeadLink,
        Self::DeadAnchor,
        Self::Secret,
        Self::VagueHeading,
        Self::DuplicateAnchor,
        Self::LongSection,
        Self::AmbiguousTitle,
    ];

    /// The name in output, comments and flags.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::UnknownRule => "unknown-rule",
            Self::UnreadableDocument => "unreadable-document",
            Self::SkippedDocument => "skipped-document",
            Self::UnclosedFence => "unclosed-fence",
            Self::DeadLink => "dead-link",
            Self::DeadAnchor => "dead-anchor",
            Self::Secret => "secret",
            Self::VagueHeading => "vague-heading",
            Self::DuplicateAnchor => "duplicate-anchor",
            Self::LongSection => "long-section",
            Self::AmbiguousTitle => "ambiguous-title",
        }
    }

    /// The rule with a name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|rule| rule.name() == name)
    }

    /// How it counts where nobody says otherwise.
    #[must_use]
    pub fn severity(self) -> Severity {
        match self {
            Self::UnreadableDocument | Self::UnclosedFence | Self::DeadLink | Self::Secret => {
                Severity::Error
            }
            _ => Severity::Warning,
        }
    }
}

impl Serialize for Rule {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}
