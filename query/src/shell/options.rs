//! Command line options as getopt_long reads them: bundled letters, values, abbreviated long names.

/// What a command takes.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Letters without a value.
    pub flags: &'static str,
    /// Letters with a value.
    pub valued: &'static str,
    /// Long names; `=` after one that takes a value, `[` after one that may take one.
    pub long: &'static [&'static str],
    /// `-5` and the like mean something.
    pub digits: bool,
    /// Options end at the first operand.
    pub ends: bool,
}

/// One option as it was given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Given {
    /// `-x` or the long name without dashes, in full.
    pub name: String,
    /// Its value.
    pub value: Option<String>,
}

/// What is wrong with a command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unknown {
    /// The option as it was written: `-Q`, `--frob`.
    pub option: String,
    /// What is wrong: it is not supported, or it lacks a value.
    pub why: &'static str,
}

/// Options and operands.
pub type Parsed = (Vec<Given>, Vec<String>);

impl Options {
    /// No options at all.
    pub const NONE: Self = Self { flags: "", valued: "", long: &[], digits: false, ends: false };

    /// Reads arguments.
    ///
    /// # Errors
    /// The first option that is not one, or lacks its value.
    pub fn parse(&self, args: &[String]) -> Result<Parsed, Unknown> {
        let (mut given, mut operands) = (Vec::new(), Vec::new());
        let mut rest = args.iter();
        while let Some(arg) = rest.next() {
            if arg == "--" {
                operands.extend(rest.cloned());
                break;
            }
            if let Some(long) = arg.strip_prefix("--") {
                given.push(self.long(long, &mut rest)?);
            } else if arg.len() > 1 && arg.starts_with('-') {
                self.letters(&arg[1..], &mut rest, &mut given)?;
            } else {
                operands.push(arg.clone());
                if self.ends {
                    operands.extend(rest.cloned());
                    break;
                }
            }
        }
        Ok((given, operands))
    }

    fn letters<'a>(
        &self,
        letters: &str,
        rest: &mut impl Iterator<Item = &'a String>,
        given: &mut Vec<Given>,
    ) -> Result<(), Unknown> {
        if self.digits && letters.starts_with(|c: char| c.is_ascii_digit()) {
            let digits: String = letters.chars().take_while(char::is_ascii_digit).collect();
            let after = &letters[digits.len()..];
            given.push(Given { name: "-NUM".into(), value: Some(digits) });
            return self.letters(after, rest, given);
        }
        for (at, letter) in letters.char_indices() {
            let name = format!("-{letter}");
            if self.flags.contains(letter) {
                given.push(Given { name, value: None });
            } else if self.valued.contains(letter) {
                let attached = &letters[at + letter.len_utf8()..];
                let value = if attached.is_empty() {
                    let missing = Unknown { option: name.clone(), why: "needs a value" };
                    rest.next().cloned().ok_or(missing)?
                } else {
                    attached.to_owned()
                };
                given.push(Given { name, value: Some(value) });
                return Ok(());
            } else {
                return Err(Unknown { option: name, why: "is not supported" });
            }
        }
        Ok(())
    }

    fn long<'a>(
        &self,
        text: &str,
        rest: &mut impl Iterator<Item = &'a String>,
    ) -> Result<Given, Unknown> {
        let (name, value) = match text.split_once('=') {
            Some((name, value)) => (name, Some(value.to_owned())),
            None => (text, None),
        };
        let unknown = |why| Unknown { option: format!("--{name}"), why };
        let plain = |l: &'static str| l.trim_end_matches(['=', '[']);
        let mut fits = self.long.iter().filter(|l| plain(l).starts_with(name));
        let found = match self.long.iter().find(|l| plain(l) == name) {
            Some(exact) => exact,
            None => match (fits.next(), fits.next()) {
                (Some(only), None) if !name.is_empty() => only,
                (Some(_), Some(_)) => return Err(unknown("is ambiguous")),
                _ => return Err(unknown("is not supported")),
            },
        };
        let value = if found.ends_with('=') {
            Some(match value {
                Some(value) => value,
                None => rest.next().cloned().ok_or_else(|| unknown("needs a value"))?,
            })
        } else if found.ends_with('[') {
            value
        } else if value.is_some() {
            return Err(unknown("takes no value"));
        } else {
            None
        };
        Ok(Given { name: plain(found).to_owned(), value })
    }

    /// The options in one line, for help and capabilities.
    #[must_use]
    pub fn describe(&self) -> Vec<String> {
        let letters = self.flags.chars().map(|c| format!("-{c}"));
        let valued = self.valued.chars().map(|c| format!("-{c} VALUE"));
        let long = self.long.iter().map(|l| match l.strip_suffix('=') {
            Some(name) => format!("--{name}=VALUE"),
            None => format!("--{}", l.trim_end_matches('[')),
        });
        letters.chain(valued).chain(long).chain(self.digits.then(|| "-NUM".to_owned())).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GREP: Options = Options {
        flags: "rin",
        valued: "eA",
        long: &["include=", "exclude=", "exclude-dir=", "ignore-case", "color["],
        digits: true,
        ends: false,
    };

    fn parse(line: &str) -> Result<(Vec<String>, Vec<String>), Unknown> {
        let args: Vec<String> = line.split(' ').map(str::to_owned).collect();
        GREP.parse(&args).map(|(given, operands)| {
            let show = |g: Given| g.name + &g.value.map_or(String::new(), |v| format!("={v}"));
            (given.into_iter().map(show).collect(), operands)
        })
    }

    #[test]
    fn options_are_read_as_getopt_does() {
        let list = |items: &[&str]| items.iter().map(|s| (*s).to_owned()).collect::<Vec<_>>();
        for (line, given, operands) in [
            ("-rin x y", &["-r", "-i", "-n"][..], &["x", "y"][..]),
            ("x -r y", &["-r"], &["x", "y"]),
            ("-rex y", &["-r", "-e=x"], &["y"]),
            ("-A 3 -e -x", &["-A=3", "-e=-x"], &[]),
            ("-3i x", &["-NUM=3", "-i"], &["x"]),
            ("--inc=*.md --ignore x", &["include=*.md", "ignore-case"], &["x"]),
            ("--exclude a -- -r", &["exclude=a"], &["-r"]),
            ("--color x -", &["color"], &["x", "-"]),
        ] {
            assert_eq!(parse(line), Ok((list(given), list(operands))), "{line}");
        }
        for (line, option) in
            [("-Q", "-Q"), ("--frob", "--frob"), ("--excl a", "--excl"), ("-e", "-e")]
        {
            assert_eq!(parse(line).unwrap_err().option, option);
        }
    }
}
