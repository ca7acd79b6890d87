//! A light stemmer for English: inflections only, so that `restarting` finds `restart` and
//! `universe` does not find `university`.
//!
//! Porter's algorithm also removes derivational suffixes, which conflates unrelated words. Here only
//! plural, past, progressive and a final `e` go, after the S-stemmer (Harman 1991) and the first
//! step of Porter (1980).

/// The stem of a lower-case word; anything but ASCII letters is returned as it is.
#[must_use]
pub fn stem(word: &str) -> String {
    if word.len() < 3 || !word.bytes().all(|b| b.is_ascii_lowercase()) {
        return word.to_owned();
    }
    let mut w = plural(word);
    if let Some(base) = strip_verbal(&w) {
        w = base;
    }
    if w.len() > 3 && w.ends_with('e') && !w.ends_with("ee") {
        w.pop();
    }
    if w.len() > 3 && w.ends_with('y') && !is_vowel(w.as_bytes()[w.len() - 2]) {
        w.pop();
        w.push('i');
    }
    w
}

fn is_vowel(b: u8) -> bool {
    matches!(b, b'a' | b'e' | b'i' | b'o' | b'u')
}

fn has_vowel(w: &str) -> bool {
    w.bytes().any(|b| is_vowel(b) || b == b'y')
}

fn plural(w: &str) -> String {
    if let Some(base) = w.strip_suffix("ies") {
        if base.len() > 1 {
            return format!("{base}y");
        }
    } else if ["sses", "xes", "ches", "shes", "zzes"].iter().any(|s| w.ends_with(s)) {
        return w[..w.len() - 2].to_owned();
    } else if w.ends_with('s') && w.len() > 3 && !["ss", "us", "is"].iter().any(|s| w.ends_with(s))
    {
        return w[..w.len() - 1].to_owned();
    }
    w.to_owned()
}

/// Removes `-ing`, `-ed` and `-ied` where a word remains.
fn strip_verbal(w: &str) -> Option<String> {
    if let Some(base) = w.strip_suffix("ied") {
        return (base.len() > 1).then(|| format!("{base}y"));
    }
    let base =
        w.strip_suffix("ing").or_else(|| w.strip_suffix("ed").filter(|_| !w.ends_with("eed")))?;
    if base.len() < 2 || !has_vowel(base) {
        return None;
    }
    if base.len() == 2 {
        return Some(format!("{base}e")); // `used` to `use`, `aging` to `age`.
    }
    let b = base.as_bytes();
    let last = b[b.len() - 1];
    // `stopped` to `stop`, but `called` stays `call`, `passed` stays `pass`.
    let doubled = b.len() > 3
        && last == b[b.len() - 2]
        && !is_vowel(last)
        && !matches!(last, b'l' | b's' | b'z');
    Some(if doubled { base[..base.len() - 1].to_owned() } else { base.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::stem;

    #[test]
    fn inflections_share_a_stem() {
        for family in [
            &["restart", "restarts", "restarted", "restarting"][..],
            &["database", "databases"],
            &["restore", "restores", "restored", "restoring"],
            &["query", "queries", "queried", "querying"],
            &["stop", "stops", "stopped", "stopping"],
            &["call", "calls", "called", "calling"],
            &["process", "processes", "processed", "processing"],
            &["copy", "copies", "copied", "copying"],
            &["switch", "switches", "switched"],
            &["cache", "caches", "cached", "caching"],
            &["use", "uses", "used", "using"],
        ] {
            let first = stem(family[0]);
            for word in family {
                assert_eq!(stem(word), first, "{word}");
            }
        }
    }

    #[test]
    fn other_words_keep_apart() {
        for (a, b) in [
            ("universe", "university"),
            ("policy", "police"),
            ("status", "stat"),
            ("redis", "redi"),
            ("dns", "dn"),
            ("string", "str"),
            ("need", "ne"),
            ("organ", "organization"),
        ] {
            assert_ne!(stem(a), stem(b), "{a} {b}");
        }
    }
}
