//! Other words for a question's words: derived forms that the corpus holds, and the abbreviations
//! that people on call type.
//!
//! An expansion counts as the same term at a lower weight, so that it adds reach without adding
//! terms: a section with the word itself always scores higher.

use super::corpus::Corpus;
use crate::stem::stem as stem_of;
use std::sync::LazyLock;

/// The weight of a derived form (`migrate`, `migration`).
const DERIVED: f32 = 0.6;
/// The weight of an abbreviation or its long form.
const ABBREVIATED: f32 = 0.7;

/// Endings, as the light stemmer leaves them, that turn a word into one of the same family. `-ity` is
/// not among them: it would join `universe` and `university`.
const ENDINGS: [&str; 17] = [
    "", "ion", "ation", "ition", "ment", "er", "or", "abl", "al", "anc", "enc", "ur", "i", "iv",
    "ly", "ful", "less",
];
/// The shortest word that derived forms are looked for.
const BASE_MIN: usize = 4;

/// Stems that stand in the corpus and mean the same, with their weights.
#[must_use]
pub fn expansions(stem: &str, corpus: &Corpus) -> Vec<(String, f32)> {
    let mut found: Vec<(String, f32)> = Vec::new();
    let mut push = |word: String, weight: f32| {
        if word != stem && corpus.stem_df(&word) > 0 && !found.iter().any(|(w, _)| *w == word) {
            found.push((word, weight));
        }
    };
    if stem.bytes().all(|b| b.is_ascii_lowercase()) {
        for ending in ENDINGS {
            let Some(base) = stem.strip_suffix(ending).filter(|b| b.len() >= BASE_MIN) else {
                continue;
            };
            for other in ENDINGS {
                push(format!("{base}{other}"), DERIVED);
            }
        }
    }
    for (short, long) in STEMMED.iter() {
        if stem == short {
            for word in long {
                push(word.clone(), ABBREVIATED);
            }
        } else if matches!(&long[..], [only] if only == stem) {
            push(short.clone(), ABBREVIATED);
        }
    }
    found
}

/// Short forms and their long ones; a long form of several words is looked up by each.
const ABBREVIATIONS: &[(&str, &str)] = &[
    ("db", "database"),
    ("repo", "repository"),
    ("config", "configuration"),
    ("conf", "configuration"),
    ("auth", "authentication"),
    ("authn", "authentication"),
    ("authz", "authorization"),
    ("env", "environment"),
    ("prod", "production"),
    ("perms", "permission"),
    ("creds", "credential"),
    ("cert", "certificate"),
    ("pw", "password"),
    ("pwd", "password"),
    ("sts", "statefulset"),
    ("deploy", "deployment"),
    ("k8s", "kubernetes"),
    ("pg", "postgres"),
    ("postgres", "postgresql"),
    ("lb", "loadbalancer balancer"),
    ("ns", "namespace"),
    ("pv", "persistent volume"),
    ("pvc", "persistent volume claim"),
    ("sg", "security group"),
    ("vm", "virtual machine"),
    ("mem", "memory"),
    ("msg", "message"),
    ("oom", "memory killed"),
    ("2fa", "factor authentication"),
    ("mfa", "factor authentication"),
    ("admin", "administrator"),
    ("app", "application"),
    ("fs", "filesystem"),
    ("info", "information"),
    ("param", "parameter"),
    ("req", "request"),
    ("svc", "service"),
    ("temp", "temporary"),
    ("tmp", "temporary"),
    ("vol", "volume"),
    ("pkg", "package"),
    ("dir", "directory"),
    ("doc", "documentation"),
    ("max", "maximum"),
    ("min", "minimum"),
    ("num", "number"),
    ("img", "image"),
    ("sync", "synchronize"),
    ("async", "asynchronous"),
    ("dupe", "duplicate"),
    ("acl", "access control"),
    ("ip", "address"),
    ("mail", "email"),
    ("box", "server"),
    ("reboot", "restart"),
    ("bounce", "restart"),
    ("nuke", "delete"),
    ("kill", "terminate"),
    ("broken", "fail"),
    ("wipe", "delete"),
    ("delete", "remove"),
    ("create", "add"),
    ("bucket", "storage"),
    ("phone", "call"),
    ("pager", "pagerduty"),
    ("roll", "rollback"),
    ("undo", "revert"),
    ("blob", "object"),
];

/// The same as stems.
static STEMMED: LazyLock<Vec<(String, Vec<String>)>> = LazyLock::new(|| {
    let stems = |words: &str| words.split(' ').map(stem_of).collect();
    ABBREVIATIONS.iter().map(|(short, long)| (stem_of(short), stems(long))).collect()
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_form_stands_for_itself() {
        for (short, long) in STEMMED.iter() {
            assert!(!long.contains(short), "{short}");
        }
    }
}
