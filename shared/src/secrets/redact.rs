//! Replaces what was found.

use super::Finding;

/// The text with every finding replaced by `[REDACTED:rule]`.
///
/// The lines of a value that has several stay lines: the first holds the name of the rule, the others
/// what quotes and indents them, so that the list item, quote or fence that they are in goes on.
#[must_use]
pub fn redact(text: &str, findings: &[Finding]) -> String {
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    for finding in findings {
        out.push_str(&text[at..finding.span.start]);
        out.push_str("[REDACTED:");
        out.push_str(&finding.rule);
        out.push(']');
        for line in text[finding.span.clone()].split('\n').skip(1) {
            out.push('\n');
            let content = line.trim_start_matches([' ', '\t', '>']);
            out.push_str(line[..line.len() - content.len()].trim_end());
        }
        at = finding.span.end;
    }
    out.push_str(&text[at..]);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_stay_and_so_do_quotes() {
        let text = "a\n> k: ONE\n> TWO\n> THREE end\nb\n";
        let span = text.find("ONE").unwrap()..text.find(" end").unwrap();
        let finding = Finding { rule: "r".into(), line: 2, span };
        assert_eq!(redact(text, &[finding]), "a\n> k: [REDACTED:r]\n>\n> end\nb\n");
        assert_eq!(redact("x", &[]), "x");
    }
}
