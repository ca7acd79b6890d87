//! Patterns of hosts in known_hosts, as OpenSSH reads them (ssh_config(5), PATTERNS; match.c).

/// True for a name that is stored as a hash.
pub(super) fn is_hashed(hosts: &str) -> bool {
    hosts.starts_with('|')
}

/// True when a list of patterns names a host: one of them matches, and none with `!` before it does.
/// Case does not count.
pub(super) fn matches(list: &str, name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let mut found = false;
    for pattern in list.to_ascii_lowercase().split(',') {
        match pattern.strip_prefix('!') {
            Some(pattern) if matches_one(pattern.as_bytes(), name.as_bytes()) => return false,
            Some(_) => {}
            None => found |= matches_one(pattern.as_bytes(), name.as_bytes()),
        }
    }
    found
}

/// `*` stands for any bytes, `?` for one; both stand for `[`, `]` and `:` as well. Time is at most the
/// product of the lengths: only the last `*` is ever tried again.
fn matches_one(pattern: &[u8], name: &[u8]) -> bool {
    let (mut p, mut n) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while n < name.len() {
        match pattern.get(p) {
            Some(b'*') => {
                star = Some((p, n));
                p += 1;
            }
            Some(c) if *c == b'?' || *c == name[n] => {
                p += 1;
                n += 1;
            }
            _ => {
                let Some((at, from)) = star else { return false };
                star = Some((at, from + 1));
                (p, n) = (at + 1, from + 1);
            }
        }
    }
    pattern[p..].iter().all(|c| *c == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_as_in_openssh() {
        for (list, name, wanted) in [
            ("h.example", "h.example", true),
            ("H.Example", "h.exaMPLE", true),
            ("h.example", "h.example.org", false),
            ("*", "anything", true),
            ("*.example", "a.b.example", true),
            ("*.example", "example", false),
            ("192.168.0.?", "192.168.0.7", true),
            ("192.168.0.?", "192.168.0.17", false),
            ("?", "", false),
            ("", "h", false),
            ("a*b*c", "a-b-b-c", true),
            ("a*b*c", "a-c-b", false),
            ("*,!bad.example", "good.example", true),
            ("*,!bad.example", "bad.example", false),
            ("!bad.example,*", "bad.example", false),
            ("!bad.example", "good.example", false),
            ("!*.example,h.example", "h.example", false),
            ("[h.example]:2222", "[h.example]:2222", true),
            ("[h.example]:2222", "h.example", false),
            ("h.example", "[h.example]:2222", false),
            ("[*.example]:*", "[h.example]:2222", true),
            ("*.example", "[h.example]:2222", false),
            ("[::1]:22", "[::1]:22", true),
        ] {
            assert_eq!(matches(list, name), wanted, "`{list}` and `{name}`");
        }
        let stars = "*a".repeat(40);
        assert!(!matches(&stars, &"a".repeat(39)));
        assert!(matches(&stars, &"ba".repeat(40)));
    }
}
