//! Approved gold sections: a case holds only for the text it was written about, so a rewritten restore
//! command breaks its old case until somebody has read both.

use crate::golden;
use crate::outcome::CaseResult;
use anyhow::{Context, Result};
use std::collections::BTreeMap;
use std::path::Path;

/// Hashes by gold section, by case.
pub type Approved = BTreeMap<String, BTreeMap<String, String>>;

/// The hashes as they are now. A section that is not there cannot be approved.
#[must_use]
pub fn current(results: &[CaseResult]) -> Approved {
    let with_gold = results.iter().filter(|r| !r.gold.is_empty());
    with_gold
        .map(|r| {
            let found = r.gold.iter().filter(|g| !g.lines.is_empty());
            (r.case.id.clone(), found.map(|g| (g.key(), g.hash())).collect())
        })
        .collect()
}

/// Notes at every case what is not approved of its gold, and returns entries that belong to no case.
pub fn check(results: &mut [CaseResult], approved: &Approved) -> Vec<String> {
    let none = BTreeMap::new();
    for result in results.iter_mut() {
        let own = approved.get(&result.case.id).unwrap_or(&none);
        for gold in &result.gold {
            let key = gold.key();
            result.unapproved.extend(match own.get(&key) {
                _ if gold.lines.is_empty() => Some(format!("gold section is not there: {key}")),
                None => Some(format!("gold section was never approved, run with --approve: {key}")),
                Some(hash) if *hash != gold.hash() => {
                    Some(format!("gold section changed, run with --approve: {key}"))
                }
                Some(_) => None,
            });
        }
    }
    orphans(results, approved)
}

fn orphans(results: &[CaseResult], approved: &Approved) -> Vec<String> {
    let known: BTreeMap<&str, Vec<String>> = results
        .iter()
        .map(|r| (r.case.id.as_str(), r.gold.iter().map(|g| g.key()).collect()))
        .collect();
    let entries = approved.iter().flat_map(|(id, golds)| golds.keys().map(move |key| (id, key)));
    let mut orphans: Vec<String> = entries
        .filter(|(id, key)| known.get(id.as_str()).is_none_or(|golds| !golds.contains(key)))
        .map(|(id, key)| format!("{id}: approved, but no longer gold: {key}"))
        .collect();
    let empty =
        approved.iter().filter(|(id, golds)| golds.is_empty() && !known.contains_key(id.as_str()));
    orphans.extend(empty.map(|(id, _)| format!("{id}: approved, but no longer a case")));
    orphans
}

/// Reads a file of approvals; one that is not there approves nothing.
///
/// # Errors
/// When it cannot be read.
pub fn read(file: &Path) -> Result<Approved> {
    let Some(text) = golden::read(file)? else { return Ok(Approved::new()) };
    serde_json::from_str(&text).with_context(|| format!("`{}`", file.display()))
}

/// Writes a file of approvals.
///
/// # Errors
/// When it cannot be written.
pub fn write(file: &Path, approved: &Approved) -> Result<()> {
    golden::write(file, &format!("{}\n", serde_json::to_string_pretty(approved)?))
}
