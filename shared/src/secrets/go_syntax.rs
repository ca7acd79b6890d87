//! Patterns of Go's `regexp` to patterns of the `regex` crate that mean the same.
//!
//! Both are RE2-like; they differ in few things that rule sets use: in Go `\w`, `\d`, `\s` and `\b` are
//! ASCII, a brace that begins no repetition is a literal, `[` within a class is a literal, and class
//! operators (`&&`, `--`, `~~`) do not exist.

/// The pattern for the `regex` crate.
#[must_use]
pub(super) fn translate(go: &str) -> String {
    let chars: Vec<char> = go.chars().collect();
    let mut out = String::with_capacity(go.len() * 2);
    // Where the class that is open has its first member, if one is open.
    let mut class: Option<usize> = None;
    let mut at = 0;
    while at < chars.len() {
        let c = chars[at];
        let next = chars.get(at + 1).copied();
        match (c, class) {
            ('\\', _) => {
                escape(next, class.is_some(), &mut out);
                at += 1;
            }
            ('[', None) => {
                out.push('[');
                if next == Some('^') {
                    out.push('^');
                    at += 1;
                }
                // A `]` that comes first is a literal.
                if chars.get(at + 1) == Some(&']') {
                    out.push_str("\\]");
                    at += 1;
                }
                class = Some(at + 1);
            }
            ('[', Some(_)) if next == Some(':') => {
                let end = (at..chars.len()).find(|i| chars[*i] == ']').unwrap_or(chars.len() - 1);
                out.extend(&chars[at..=end]);
                at = end;
            }
            ('[', Some(_)) => out.push_str("\\["),
            (']', Some(_)) => {
                out.push(']');
                class = None;
            }
            ('&' | '~', Some(_)) => {
                out.push('\\');
                out.push(c);
            }
            ('-', Some(first)) if at == first || next == Some(']') => out.push_str("\\-"),
            ('{', None) if !is_repetition(&chars[at..]) => out.push_str("\\{"),
            _ => out.push(c),
        }
        at += 1;
    }
    out
}

fn escape(escaped: Option<char>, in_class: bool, out: &mut String) {
    let (inner, negated) = match escaped {
        Some('w' | 'W') => ("0-9A-Za-z_", escaped == Some('W')),
        Some('d' | 'D') => ("0-9", escaped == Some('D')),
        Some('s' | 'S') => ("\\t\\n\\x0C\\r ", escaped == Some('S')),
        Some(b @ ('b' | 'B')) if !in_class => {
            // An ASCII `\B` could split a character; a match is then widened to its bounds.
            out.push_str(if b == 'b' { "(?-u:\\b)" } else { "\\B" });
            return;
        }
        Some('<' | '>') => {
            out.extend(escaped);
            return;
        }
        other => {
            out.push('\\');
            out.extend(other);
            return;
        }
    };
    match (negated, in_class) {
        (false, true) => out.push_str(inner),
        (false, false) => out.push_str(&format!("[{inner}]")),
        (true, _) => out.push_str(&format!("[^{inner}]")),
    }
}

/// True for `{n}`, `{n,}` and `{n,m}`.
fn is_repetition(chars: &[char]) -> bool {
    let Some(end) = chars.iter().position(|c| *c == '}') else { return false };
    let inner: String = chars[1..end].iter().collect();
    let is_number = |s: &str| !s.is_empty() && s.bytes().all(|b| b.is_ascii_digit());
    match inner.split_once(',') {
        Some((min, max)) => is_number(min) && (max.is_empty() || is_number(max)),
        None => is_number(&inner),
    }
}

#[cfg(test)]
mod tests {
    use super::translate;
    use regex::Regex;

    #[test]
    fn means_what_go_means() {
        let is = |go: &str, text: &str| Regex::new(&translate(go)).unwrap().is_match(text);
        assert!(is(r"^[\w.-]+$", "a_b.c-9") && !is(r"^\w$", "é") && !is(r"^\d$", "٣"));
        assert!(!is(r"^\s$", "\u{b}") && !is(r"^\s$", "\u{a0}") && is(r"^\S$", "\u{a0}"));
        assert!(is(r"^\${(?:[A-Z_]+)}$", "${HOME}") && is(r"^\{\d{0,2}}$", "{12}"));
        assert!(is(r"^import[ \t]+{[ \t\w,]+}", "import { a }"));
        assert!(is(r"^[[:alnum:]]{3}$", "aB3") && is(r"^[[a]$", "[") && is(r"^[]a]$", "]"));
        assert!(is(r"^[\s\S-]{3}$", "a\n-") && is(r"^[a&&b]$", "&") && is(r"^[-a]$", "-"));
        assert!(
            is(r"\bkey\b", "a key.") && is(r"é\bkey", "ékey"),
            "a letter beyond ASCII is no word"
        );
        assert!(is(r"a\<b", "a<b"));
    }
}
