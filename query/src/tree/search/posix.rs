//! POSIX basic and extended expressions with GNU's additions, written as the regex crate reads them.

use std::fmt::Write;

/// Why an expression is not accepted.
pub type Refused = String;

/// White space as the C library has it: no space that keeps words together is one.
const SPACE: &str =
    "\\t-\\r \\x{1680}\\x{2000}-\\x{2006}\\x{2008}-\\x{200a}\\x{2028}\\x{2029}\\x{205f}\\x{3000}";

/// Translates an expression; `extended` as in `grep -E`.
///
/// # Errors
/// When it is not one, or needs what a linear-time engine cannot do (back-references).
pub fn translate(pattern: &str, extended: bool) -> Result<String, Refused> {
    let mut translator = Translator {
        chars: pattern.chars().collect(),
        at: 0,
        extended,
        out: String::new(),
        atom: None,
        quantified: false,
        groups: Vec::new(),
    };
    translator.run()?;
    Ok(translator.out)
}

struct Translator {
    chars: Vec<char>,
    at: usize,
    extended: bool,
    out: String,
    /// Where the last atom starts in `out`; none where a repetition has nothing to repeat.
    atom: Option<usize>,
    /// Whether the last atom is repeated already.
    quantified: bool,
    /// Where each open group starts.
    groups: Vec<usize>,
}

impl Translator {
    fn peek(&self, ahead: usize) -> Option<char> {
        self.chars.get(self.at + ahead).copied()
    }

    fn run(&mut self) -> Result<(), Refused> {
        while let Some(c) = self.peek(0) {
            self.at += 1;
            match c {
                '\\' => self.escape()?,
                '[' => self.bracket()?,
                '.' => self.push_atom("."),
                '*' => self.star(),
                '^' => self.caret(),
                '$' => self.dollar(),
                '(' if self.extended => self.open(),
                ')' if self.extended && !self.groups.is_empty() => self.close(),
                '|' if self.extended => self.alternative(),
                '+' | '?' if self.extended => match self.atom {
                    Some(_) => self.repeat(&c.to_string()),
                    None => self.literal(c),
                },
                '{' if self.extended => self.brace()?,
                c => self.literal(c),
            }
        }
        if self.groups.is_empty() { Ok(()) } else { Err("Unmatched ( or \\(".into()) }
    }

    fn push_atom(&mut self, text: &str) {
        self.atom = Some(self.out.len());
        self.quantified = false;
        self.out.push_str(text);
    }

    fn literal(&mut self, c: char) {
        let mut buffer = [0; 4];
        let text = regex::escape(c.encode_utf8(&mut buffer));
        self.push_atom(&text);
    }

    /// What has no width and cannot be repeated.
    fn assertion(&mut self, text: &str) {
        self.out.push_str(text);
        self.atom = None;
    }

    fn repeat(&mut self, operator: &str) {
        let Some(start) = self.atom else { return };
        if self.quantified {
            // `a+?` repeats `a+`; the regex crate would read it as a lazy `a+`.
            self.out.insert_str(start, "(?:");
            self.out.push(')');
        }
        self.out.push_str(operator);
        self.quantified = true;
    }

    fn star(&mut self) {
        match self.atom {
            Some(_) => self.repeat("*"),
            None if self.extended => {} // GNU takes `*` with nothing before it for an empty match.
            None => self.literal('*'),
        }
    }

    /// Whether what stands before `at` starts an expression, a group or an alternative.
    fn starts(&self) -> bool {
        let before: String = self.chars[..self.at - 1].iter().rev().take(2).collect();
        before.is_empty()
            || before.starts_with("(\\")
            || before.starts_with("|\\")
            || (before.starts_with('\n'))
    }

    fn caret(&mut self) {
        if self.extended || self.starts() {
            self.assertion("^");
        } else {
            self.literal('^');
        }
    }

    fn dollar(&mut self) {
        let ends = match (self.peek(0), self.peek(1)) {
            (None, _) => true,
            (Some('\\'), Some(')' | '|')) => true,
            _ => self.extended,
        };
        if ends {
            self.assertion("$");
        } else {
            self.literal('$');
        }
    }

    fn open(&mut self) {
        self.groups.push(self.out.len());
        self.out.push_str("(?:");
        self.atom = None;
    }

    fn close(&mut self) {
        let Some(start) = self.groups.pop() else { return };
        self.out.push(')');
        self.atom = Some(start);
        self.quantified = false;
    }

    fn alternative(&mut self) {
        self.out.push('|');
        self.atom = None;
    }

    fn brace(&mut self) -> Result<(), Refused> {
        let close: &[char] = if self.extended { &['}'] } else { &['\\', '}'] };
        let rest = &self.chars[self.at..];
        let end = rest.windows(close.len()).position(|w| w == close);
        let bounds = end.map(|end| rest[..end].iter().collect::<String>());
        let valid = bounds.as_deref().is_some_and(is_interval);
        match (bounds, valid, self.atom) {
            (Some(bounds), true, Some(_)) => {
                self.at += bounds.len() + close.len();
                let bounds = match bounds.strip_prefix(',') {
                    Some("") => "0,".to_owned(),
                    Some(most) => format!("0,{most}"),
                    None => bounds,
                };
                self.repeat(&format!("{{{bounds}}}"));
                Ok(())
            }
            (_, true, None) if !self.extended => Err("Invalid preceding regular expression".into()),
            (_, _, _) if self.extended => {
                self.literal('{');
                Ok(())
            }
            (None, ..) => Err("Unmatched \\{".into()),
            _ => Err("Invalid content of \\{\\}".into()),
        }
    }

    fn escape(&mut self) -> Result<(), Refused> {
        let Some(c) = self.peek(0) else { return Err("Trailing backslash".into()) };
        self.at += 1;
        match c {
            '1'..='9' => {
                return Err(format!(
                    "back-references (\\{c}) are not supported; write the text out"
                ));
            }
            '(' if !self.extended => self.open(),
            ')' if !self.extended => {
                if self.groups.is_empty() {
                    return Err("Unmatched ) or \\)".into());
                }
                self.close();
            }
            '|' if !self.extended => self.alternative(),
            '+' | '?' if !self.extended => match self.atom {
                Some(_) => self.repeat(&c.to_string()),
                None => self.literal(c),
            },
            '{' if !self.extended => return self.brace(),
            'w' => self.push_atom("\\w"),
            'W' => self.push_atom("\\W"),
            's' => self.push_atom(&format!("[{SPACE}]")),
            'S' => self.push_atom(&format!("[^{SPACE}]")),
            'b' => self.assertion("\\b"),
            'B' => self.assertion("\\B"),
            '<' => self.assertion("\\b{start}"),
            '>' => self.assertion("\\b{end}"),
            '`' => self.assertion("^"),
            '\'' => self.assertion("$"),
            c if c.is_alphanumeric() => {
                return Err(format!(
                    "\\{c} means nothing in this kind of pattern; \\d is [0-9], and rg reads Rust's syntax"
                ));
            }
            c => self.literal(c),
        }
        Ok(())
    }

    fn bracket(&mut self) -> Result<(), Refused> {
        let unmatched = || "Unmatched [, [^, [:, [., or [=".to_owned();
        let mut class = String::from("[");
        if self.peek(0) == Some('^') {
            class.push('^');
            self.at += 1;
        }
        let first = self.at;
        loop {
            let c = self.peek(0).ok_or_else(unmatched)?;
            self.at += 1;
            match c {
                ']' if self.at - 1 > first => break,
                '[' if matches!(self.peek(0), Some(':' | '.' | '=')) => self.named(&mut class)?,
                _ => {
                    if self.peek(0) == Some('-') && self.peek(1).is_some_and(|e| e != ']') {
                        let end = self.peek(1).unwrap_or(c);
                        self.at += 2;
                        if end < c {
                            return Err("Invalid range end".into());
                        }
                        push_class(&mut class, c);
                        class.push('-');
                        push_class(&mut class, end);
                    } else {
                        push_class(&mut class, c);
                    }
                }
            }
        }
        class.push(']');
        self.push_atom(&class);
        Ok(())
    }

    /// `[:alpha:]`, `[.x.]`, `[=x=]`.
    fn named(&mut self, class: &mut String) -> Result<(), Refused> {
        let kind = self.peek(0).unwrap_or(':');
        let rest = &self.chars[self.at + 1..];
        let end = rest
            .windows(2)
            .position(|w| w == [kind, ']'])
            .ok_or("Unmatched [, [^, [:, [., or [=")?;
        let name: String = rest[..end].iter().collect();
        self.at += end + 3;
        if kind != ':' {
            let mut chars = name.chars();
            return match (chars.next(), chars.next()) {
                (Some(c), None) => {
                    push_class(class, c);
                    Ok(())
                }
                _ => Err("Invalid collation character".into()),
            };
        }
        class.push_str(match name.as_str() {
            "alpha" => "\\p{Alphabetic}",
            "digit" => "0-9",
            "alnum" => "\\p{Alphabetic}\\p{N}",
            "upper" => "\\p{Uppercase}",
            "lower" => "\\p{Lowercase}",
            "space" => SPACE,
            "blank" => " \\t",
            "punct" => "\\p{P}\\p{S}",
            "cntrl" => "\\p{Cc}",
            "xdigit" => "0-9A-Fa-f",
            "print" => " \\p{L}\\p{M}\\p{N}\\p{P}\\p{S}\\p{Zs}",
            "graph" => "\\p{L}\\p{M}\\p{N}\\p{P}\\p{S}",
            _ => return Err(format!("Invalid character class name `{name}`")),
        });
        Ok(())
    }
}

fn push_class(class: &mut String, c: char) {
    // All that means something within a class of the regex crate.
    if matches!(c, '[' | ']' | '\\' | '^' | '-' | '&' | '~') {
        class.push('\\');
    }
    if c.is_control() {
        let _ = write!(class, "\\x{{{:x}}}", u32::from(c));
    } else {
        class.push(c);
    }
}

fn is_interval(text: &str) -> bool {
    let number = |t: &str| t.len() <= 5 && t.bytes().all(|b| b.is_ascii_digit());
    match text.split_once(',') {
        Some((from, to)) => number(from) && number(to),
        None => !text.is_empty() && number(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn basic_and_extended_become_the_crates_syntax() {
        for (pattern, extended, is) in [
            ("a+b", false, "a\\+b"),
            ("a\\+b", false, "a+b"),
            ("a\\|b", false, "a|b"),
            ("*a", false, "\\*a"),
            ("^*a", false, "^\\*a"),
            ("a^b$c", false, "a\\^b\\$c"),
            ("\\(^a\\|b$\\)", false, "(?:^a|b$)"),
            ("a\\{2,3\\}", false, "a{2,3}"),
            ("a{2}", false, "a\\{2\\}"),
            ("a{,3}", true, "a{0,3}"),
            ("a{x", true, "a\\{x"),
            ("a+?", true, "(?:a+)?"),
            ("(a|b)*", true, "(?:a|b)*"),
            ("a)", true, "a\\)"),
            ("[]a]", false, "[\\]a]"),
            ("[^]a-c]", false, "[^\\]a-c]"),
            ("[\\n]", false, "[\\\\n]"),
            ("[[:digit:]_-]", false, "[0-9_\\-]"),
            ("\\<x\\>", false, "\\b{start}x\\b{end}"),
            ("\\.", true, "\\."),
        ] {
            assert_eq!(translate(pattern, extended).as_deref(), Ok(is), "{pattern}");
        }
        for (pattern, extended) in [
            ("\\1", false),
            ("(a", true),
            ("\\(a", false),
            ("[a", false),
            ("a\\", true),
            ("\\d", true),
        ] {
            assert!(translate(pattern, extended).is_err(), "{pattern}");
        }
    }
}
