//! Which filters of jq are run: those whose values nest no deeper than their own text and their input do.
//!
//! A value that nests a hundred thousand levels deep ends the process when it is printed or dropped: jaq
//! walks it by recursion, and nothing can be done about a stack that is full. Only loops around a
//! constructor build such values, so loops and definitions are refused, and so is what makes a value
//! from a path or a text.

use jaq_core::load::Lexer;
use jaq_core::load::lex::{StrPart, Tok, Token};

/// The longest argument that is looked at, in bytes; a longer one is refused.
const FILTER_BYTES_MAX: usize = 16 << 10;

/// Words that loop, define, or make a value of any depth.
const WORDS: [&str; 13] = [
    "reduce",
    "foreach",
    "def",
    "while",
    "until",
    "repeat",
    "walk",
    "fromjson",
    "setpath",
    "getpath",
    "pick",
    "fromstream",
    "combinations",
];

/// Updates: with every value below on their left, they wrap what they have wrapped.
const UPDATES: [&str; 8] = ["=", "|=", "+=", "-=", "*=", "/=", "%=", "//="];

/// What there is instead.
pub const HINT: &str =
    "sum with `add`, count with `length`, group with `group_by`, or pipe the lines to awk";

/// Why jq is not run with these arguments; none where it is.
#[must_use]
pub fn refused(args: &[String]) -> Option<String> {
    let mut rest = args.iter();
    while let Some(arg) = rest.next() {
        match arg.as_str() {
            // Their values are data.
            "--arg" | "--argjson" | "--slurpfile" | "--rawfile" => {
                rest.nth(1);
            }
            _ if arg.len() > FILTER_BYTES_MAX => {
                return Some(format!("a filter is {FILTER_BYTES_MAX} bytes long at most"));
            }
            // Files' names are looked at too, which costs nothing. What is no filter is for jq to say.
            _ => {
                let Ok(tokens) = Lexer::new(arg.as_str()).lex() else { continue };
                let mut seen = Seen::default();
                seen.look(&tokens);
                if let Some(what) = seen.refused() {
                    return Some(format!("`{what}` is not supported"));
                }
            }
        }
    }
    None
}

#[derive(Default)]
struct Seen<'a> {
    word: Option<&'a str>,
    all_below: Option<&'a str>,
    update: bool,
}

impl<'a> Seen<'a> {
    fn look(&mut self, tokens: &[Token<&'a str>]) {
        for (at, Token(text, token)) in tokens.iter().enumerate() {
            let next = tokens.get(at + 1);
            match token {
                Tok::Word if next.is_some_and(|n| n.0 == ":") => {} // A key.
                Tok::Word if WORDS.contains(text) => self.word = Some(text),
                Tok::Word if *text == "recurse" => {
                    self.all_below = Some(text);
                    if next.is_some_and(|n| n.0.starts_with('(')) {
                        self.word = Some("recurse(f)");
                    }
                }
                Tok::Sym if *text == ".." => self.all_below = Some(text),
                Tok::Sym if UPDATES.contains(text) => self.update = true,
                Tok::Block(inner) => self.look(inner),
                Tok::Str(parts) => {
                    for part in parts {
                        if let StrPart::Term(inner) = part {
                            self.look(std::slice::from_ref(inner));
                        }
                    }
                }
                _ => {}
            }
        }
    }

    fn refused(&self) -> Option<String> {
        let update = || self.all_below.filter(|_| self.update).map(|all| format!("{all} |= .."));
        self.word.map(ToOwned::to_owned).or_else(update)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(args: &[&str]) -> Option<String> {
        refused(&args.iter().map(|a| (*a).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn loops_are_refused_wherever_they_stand() {
        for filter in [
            "reduce range(1000000) as $i (1; [.])",
            "def f(x): f(x+1); f(1)",
            "[recurse([.])]",
            "[recurse ([.])]",
            "\"a\\([1]|walk([.]))\"",
            "{a: [until(. > 9; . + 1)]}",
            ".. |= [.]",
            "(.a | recurse) += 1",
            "map(\"[[[\" | fromjson)",
            "if . then 1 else (null | setpath([0]; 1)) end",
        ] {
            assert!(of(&["-n", filter]).is_some(), "{filter}");
            assert!(of(&[filter, "a.json"]).is_some(), "{filter}");
        }
        assert!(of(&[&".".repeat(FILTER_BYTES_MAX + 1)]).is_some());
    }

    #[test]
    fn what_reads_json_is_run() {
        for filter in [
            ".a.b[] | select(.c == 1) | {name, def: .x, reduce: 2}",
            "[.. | numbers] | add",
            ".walk, .pick[0], $reduce, \"walk while def\"",
            "to_entries | group_by(.value) | map({(.[0].key): length})",
            ".a |= map(. + 1) | recurse",
            "sort_by(.n)[-3:][] | \"\\(.n) \\(.v | tostring)\"",
        ] {
            let found = of(&["-r", "--arg", "x", "def", "--argjson", "y", "[1]", filter, "x.json"]);
            let expected =
                filter.contains("|= map").then(|| "`recurse |= ..` is not supported".into());
            assert_eq!(found, expected, "{filter}");
        }
    }
}
