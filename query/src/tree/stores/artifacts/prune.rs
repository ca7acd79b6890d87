//! How much of the past is kept: which versions go after a write, and what may not be written at all.

use super::All;
use crate::tree::store::Version;

/// What `[artifacts]` says of the past; nothing is ever removed where neither is set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Keep {
    /// Versions of one file, the latest among them; 0 for all.
    pub versions: u64,
    /// Bytes of all versions of all files; 0 for no limit.
    pub bytes: u64,
}

impl Keep {
    /// In words, for listings.
    #[must_use]
    pub fn describe(&self) -> String {
        let versions = match self.versions {
            0 => "every version is kept".to_owned(),
            1 => "only the latest version of each is kept".to_owned(),
            n => format!("the last {n} versions of each are kept"),
        };
        match self.bytes {
            0 => versions,
            bytes => format!("{versions}, old ones go when all are over {bytes} bytes"),
        }
    }

    /// The versions of a file, oldest first, that are over the number.
    pub(super) fn over(self, versions: &[Version]) -> &[Version] {
        let most = usize::try_from(self.versions).unwrap_or(usize::MAX);
        if most == 0 { &[] } else { &versions[..versions.len().saturating_sub(most)] }
    }

    /// Which old versions go so that all fits, oldest first: path and name. The latest version of a file
    /// stays unless it is a deletion.
    ///
    /// # Errors
    /// When all would not fit although no old version were left.
    pub(super) fn too_many(self, all: &All) -> Result<Vec<(String, String)>, ()> {
        let versions = || all.iter().flat_map(|(path, vs)| vs.iter().map(move |v| (path, v)));
        let total: u64 = versions().map(|(_, v)| v.size).sum();
        if self.bytes == 0 || total <= self.bytes {
            return Ok(Vec::new());
        }
        let mut excess = total - self.bytes;
        let lives = |path: &String, v: &Version| {
            all.get(path).and_then(|vs| vs.last()).is_some_and(|last| last.id == v.id)
        };
        let mut old: Vec<(&String, &Version)> =
            versions().filter(|(path, v)| !lives(path, v) && v.size > 0).collect();
        old.sort_by(|a, b| a.1.id.cmp(&b.1.id));
        let mut gone = Vec::new();
        for (path, version) in old {
            if excess == 0 {
                break;
            }
            excess = excess.saturating_sub(version.size);
            gone.push((path.clone(), version.id.clone()));
        }
        if excess == 0 { Ok(gone) } else { Err(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(id: &str, size: u64) -> Version {
        Version { id: id.into(), modified: 0, size, deleted: id.ends_with(".gone") }
    }

    #[test]
    fn the_oldest_go_first_and_the_latest_stay() {
        let mut all = All::new();
        all.insert("a".into(), vec![version("1", 10), version("4", 10)]);
        all.insert("b".into(), vec![version("2", 10), version("3.gone", 0)]);
        all.insert("d/".into(), Vec::new());
        let gone = |bytes| {
            let keep = Keep { versions: 0, bytes };
            keep.too_many(&all).map(|g| g.into_iter().map(|(_, id)| id).collect::<Vec<_>>())
        };
        assert_eq!(gone(0), Ok(vec![]));
        assert_eq!(gone(30), Ok(vec![]));
        assert_eq!(gone(29), Ok(vec!["1".to_owned()]));
        assert_eq!(gone(10), Ok(vec!["1".to_owned(), "2".to_owned()]));
        assert_eq!(gone(9), Err(()), "the latest version of a file is never removed");
        let keep = Keep { versions: 1, bytes: 0 };
        assert_eq!(keep.over(&all["a"]).len(), 1);
        assert_eq!(Keep::default().over(&all["a"]).len(), 0);
    }
}
