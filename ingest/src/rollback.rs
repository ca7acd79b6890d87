//! Going back to a generation that is kept, and staying there.
//!
//! The generation is opened and verified first, then pinned, then made current: killed between the last
//! two, the next run ends what was begun. All of it under the lock of ingest.

use crate::error::IngestError;
use crate::lock::Lock;
use runbook_shared::error::Hint;
use runbook_shared::generation::manifest::Manifest;
use runbook_shared::generation::pin::{Pin, REASON_BYTES_MAX};
use runbook_shared::generation::{self, Generation, OpenError, publish};
use serde::Serialize;
use std::path::Path;

/// Why no generation can be gone back to.
#[derive(Debug, thiserror::Error)]
pub enum RollbackError {
    /// `current` says of none that it is before another.
    #[error("it cannot be told which generation is current ({why}), so none is the previous one; {}", named_kept(.kept))]
    NoCurrent {
        /// What is wrong with `current`.
        why: String,
        /// What is kept, oldest first.
        kept: Vec<String>,
    },
    /// The current generation is the oldest.
    #[error("no generation before `{current}` is kept; {}", named_kept(.kept))]
    NoPrevious {
        /// The current generation.
        current: String,
        /// What is kept, oldest first.
        kept: Vec<String>,
    },
    /// The name is of none.
    #[error("no generation `{wanted}` is kept; {}", named_kept(.kept))]
    NotKept {
        /// What was asked for.
        wanted: String,
        /// What is kept, oldest first.
        kept: Vec<String>,
    },
    /// The name is of several.
    #[error("`{wanted}` begins the names of several generations: {}", .matches.join(", "))]
    Ambiguous {
        /// What was asked for.
        wanted: String,
        /// Those it could mean.
        matches: Vec<String>,
    },
    /// The generation is damaged, or of another format.
    #[error("`current` is left as it is: {why}; {}", named_kept(.kept))]
    Unusable {
        /// What is wrong with it.
        why: OpenError,
        /// What is kept, oldest first.
        kept: Vec<String>,
    },
    /// A reason that does not fit a reply.
    #[error("a reason is one line of at most {REASON_BYTES_MAX} bytes")]
    Reason,
}

fn named_kept(ids: &[String]) -> String {
    match ids {
        [] => "no generation is kept".to_owned(),
        ids => format!("kept are, oldest first: {}", ids.join(", ")),
    }
}

impl Hint for RollbackError {
    fn hint(&self) -> Option<String> {
        match self {
            Self::Reason => Some("name the ticket that tells the rest".into()),
            Self::NoPrevious { kept, .. } | Self::NoCurrent { kept, .. } if kept.is_empty() => {
                Some("run `runbook-ingest` to make one".into())
            }
            Self::NoPrevious { .. } => Some(
                "a generation is kept until two newer ones are there; `rollback --to GENERATION` pins one that is"
                    .into(),
            ),
            _ => Some("name one with --to; `runbook-ingest rollback --list` shows them".into()),
        }
    }
}

/// What a rollback did.
#[derive(Clone, Debug, Serialize)]
pub struct RolledBack {
    /// Current before; null where that could not be told.
    pub from: Option<String>,
    /// Current now, and pinned.
    pub generation: String,
    /// Its commit.
    pub commit: Option<String>,
    /// When it was written.
    pub indexed_at: String,
    /// The pin.
    pub pin: Pin,
}

impl RolledBack {
    /// For a person.
    #[must_use]
    pub fn text(&self) -> String {
        let at = self.commit.as_deref().map_or("no commit", |c| &c[..c.len().min(12)]);
        let (id, when) = (&self.generation, &self.indexed_at);
        let first = match self.from.as_deref() {
            Some(from) if from == id => format!("generation {id} stays current"),
            Some(from) => format!("rolled back from generation {from} to {id}"),
            None => format!("generation {id} is current now"),
        };
        format!(
            "{first} (indexed {when} at {at})\npinned {}; runs of ingest check the source and publish nothing until `runbook-ingest unpin`\n",
            self.pin.story()
        )
    }
}

/// Makes a kept generation current and pins it: the one that `to` names or begins the name of, else the
/// one before the current one.
///
/// # Errors
/// When there is none, or it cannot be trusted; `current` and the pin are then as before.
pub fn roll_back(
    data: &Path,
    to: Option<&str>,
    reason: Option<&str>,
    wait: bool,
) -> Result<RolledBack, IngestError> {
    let reason = checked(reason)?;
    let _lock = Lock::take(data, wait)?;
    let kept = publish::kept(data)?;
    let current = generation::current_id(data);
    let id = match to {
        Some(wanted) => named(wanted, &kept)?,
        None => previous(current.as_ref(), &kept)?,
    };
    let manifest =
        verified(data, &id).map_err(|why| RollbackError::Unusable { why, kept: kept.clone() })?;
    let pin = Pin {
        generation: id.clone(),
        pinned_at: jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
        by: user(),
        reason,
    };
    pin.write(data)?;
    let from = current.ok();
    if from.as_ref() != Some(&id) {
        publish::point_to(data, &id)?;
    }
    Ok(RolledBack {
        from,
        generation: id,
        commit: manifest.commit,
        indexed_at: manifest.indexed_at,
        pin,
    })
}

/// Takes the pin away; what was pinned, where it could be read.
///
/// # Errors
/// When it cannot be removed.
pub fn unpin(data: &Path, wait: bool) -> Result<Unpinned, IngestError> {
    let _lock = Lock::take(data, wait)?;
    let pin = Pin::read(data).ok().flatten();
    let removed = Pin::remove(data)?;
    Ok(Unpinned { removed, pin })
}

/// What `unpin` found.
#[derive(Clone, Debug, Serialize)]
pub struct Unpinned {
    /// False where nothing was pinned.
    pub removed: bool,
    /// The pin; null where there was none, or it could not be read.
    pub pin: Option<Pin>,
}

impl Unpinned {
    /// For a person.
    #[must_use]
    pub fn text(&self) -> String {
        match (&self.pin, self.removed) {
            (_, false) => "nothing is pinned\n".to_owned(),
            (Some(pin), true) => format!(
                "generation {} is not pinned any more (it was {}); the next run of ingest publishes the newest state of the source\n",
                pin.generation,
                pin.story()
            ),
            (None, true) => {
                "the pin, which could not be read, is gone; the next run of ingest publishes the newest state of the source\n".to_owned()
            }
        }
    }
}

/// A generation that is kept.
#[derive(Clone, Debug, Serialize)]
pub struct Kept {
    /// Its id.
    pub generation: String,
    /// When it was written; null where the manifest cannot be read.
    pub indexed_at: Option<String>,
    /// Its commit.
    pub commit: Option<String>,
    /// Documents in it.
    pub documents: Option<u64>,
    /// True for the one that serves.
    pub current: bool,
    /// True for the one that is pinned.
    pub pinned: bool,
    /// What is wrong with its manifest; its other files are read when it is gone back to.
    pub problem: Option<String>,
}

/// What is kept, newest first.
///
/// # Errors
/// When the directory cannot be listed, or the pin cannot be read.
pub fn list(data: &Path) -> Result<Vec<Kept>, IngestError> {
    let current = generation::current_id(data).ok();
    let pinned = Pin::read(data)?.map(|pin| pin.generation);
    let ids = publish::kept(data)?;
    let entry = |id: String| {
        let (manifest, problem) = match generation::read_manifest(data, &id) {
            Ok(manifest) => (Some(manifest), None),
            Err(e) => (None, Some(e.to_string())),
        };
        Kept {
            current: current.as_ref() == Some(&id),
            pinned: pinned.as_ref() == Some(&id),
            indexed_at: manifest.as_ref().map(|m| m.indexed_at.clone()),
            documents: manifest.as_ref().map(|m| m.counts.indexed),
            commit: manifest.and_then(|m| m.commit),
            generation: id,
            problem,
        }
    };
    Ok(ids.into_iter().rev().map(entry).collect())
}

impl Kept {
    /// One line for a person.
    #[must_use]
    pub fn line(&self) -> String {
        let marks = match (self.current, self.pinned) {
            (true, true) => "current, pinned",
            (true, false) => "current",
            (false, true) => "pinned",
            (false, false) => "kept",
        };
        let commit = self.commit.as_deref().map_or("no commit", |c| &c[..c.len().min(12)]);
        let rest = self.problem.clone().unwrap_or_else(|| {
            format!(
                "indexed {} at {commit}, {} documents",
                self.indexed_at.as_deref().unwrap_or("?"),
                self.documents.unwrap_or(0)
            )
        });
        format!("{}  {marks:<15}  {rest}\n", self.generation)
    }
}

fn checked(reason: Option<&str>) -> Result<Option<String>, RollbackError> {
    let Some(reason) = reason.map(str::trim).filter(|r| !r.is_empty()) else { return Ok(None) };
    if reason.len() > REASON_BYTES_MAX || reason.chars().any(char::is_control) {
        return Err(RollbackError::Reason);
    }
    Ok(Some(reason.to_owned()))
}

fn named(wanted: &str, kept: &[String]) -> Result<String, RollbackError> {
    let begun: Vec<&String> = kept.iter().filter(|id| id.starts_with(wanted)).collect();
    match begun.as_slice() {
        _ if wanted.is_empty() => {}
        [one] => return Ok((*one).clone()),
        [] => {}
        several => {
            let matches = several.iter().map(|id| (*id).clone()).collect();
            return Err(RollbackError::Ambiguous { wanted: wanted.to_owned(), matches });
        }
    }
    Err(RollbackError::NotKept { wanted: wanted.to_owned(), kept: kept.to_vec() })
}

fn previous(
    current: Result<&String, &OpenError>,
    kept: &[String],
) -> Result<String, RollbackError> {
    let current = match current {
        Ok(current) => current,
        Err(why) => {
            let why = why.to_string();
            return Err(RollbackError::NoCurrent { why, kept: kept.to_vec() });
        }
    };
    kept.iter()
        .rfind(|id| *id < current)
        .cloned()
        .ok_or_else(|| RollbackError::NoPrevious { current: current.clone(), kept: kept.to_vec() })
}

/// Opens it as a reader does, with every hash.
fn verified(data: &Path, id: &str) -> Result<Manifest, OpenError> {
    let manifest = Generation::open(data, id)?.manifest;
    generation::check_strangers(data, id, &manifest)?;
    Ok(manifest)
}

/// Who does this: behind sudo, the one who called it.
fn user() -> String {
    let valid =
        |name: &String| !name.is_empty() && name.len() <= 64 && !name.chars().any(char::is_control);
    if let Some(name) = std::env::var("SUDO_USER").ok().filter(valid) {
        return name;
    }
    let uid = rustix::process::getuid().as_raw();
    let users = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let entry = users.lines().find_map(|line| {
        let mut fields = line.split(':');
        let (name, _, id) = (fields.next()?, fields.next()?, fields.next()?);
        (id.parse() == Ok(uid)).then(|| name.to_owned())
    });
    entry.filter(valid).unwrap_or_else(|| format!("user {uid}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_previous_one_is_the_newest_before_the_current() {
        let kept: Vec<String> = ["a", "b", "d"].map(str::to_owned).to_vec();
        let of = |current: &str| previous(Ok(&current.to_owned()), &kept);
        assert_eq!(of("d").unwrap(), "b");
        assert_eq!(of("c").unwrap(), "b");
        let error = of("a").unwrap_err();
        assert!(error.to_string().ends_with("kept are, oldest first: a, b, d"), "{error}");
        assert!(error.hint().unwrap().contains("--to"));
        let missing = OpenError::Missing("data".into());
        let error = previous(Err(&missing), &[]).unwrap_err();
        assert!(error.to_string().contains("no generation is kept"), "{error}");
    }

    #[test]
    fn a_name_may_be_begun_and_leads_nowhere_else() {
        let kept: Vec<String> = ["2026a-1", "2026b-2"].map(str::to_owned).to_vec();
        assert_eq!(named("2026b", &kept).unwrap(), "2026b-2");
        assert!(matches!(named("2026", &kept), Err(RollbackError::Ambiguous { .. })));
        for wanted in ["", "..", "../2026a-1", "/etc", "2027"] {
            assert!(matches!(named(wanted, &kept), Err(RollbackError::NotKept { .. })), "{wanted}");
        }
    }

    #[test]
    fn a_reason_is_one_short_line() {
        assert_eq!(checked(Some("  wrong steps ")).unwrap().as_deref(), Some("wrong steps"));
        assert_eq!(checked(Some(" ")).unwrap(), None);
        assert!(checked(Some("a\nb")).is_err() && checked(Some(&"x".repeat(201))).is_err());
    }
}
