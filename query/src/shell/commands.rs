//! The commands there are, with the options that each takes: the table behind `help`, the capabilities, and
//! the check that an option is supported.

mod table;

pub use table::COMMANDS;

use super::options::{Options, Unknown};

/// Where a command's implementation is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// Here.
    Us,
    /// In the virtual bash, with options checked against this table first.
    Checked,
    /// In the virtual bash: the shell's own words, which read their options themselves.
    Shell,
}

/// A command.
#[derive(Clone, Copy, Debug)]
pub struct Command {
    /// Its name.
    pub name: &'static str,
    /// Where it is.
    pub by: By,
    /// What it takes.
    pub options: Options,
    /// One line that says what it does.
    pub about: &'static str,
}

const fn of(flags: &'static str, valued: &'static str, long: &'static [&'static str]) -> Options {
    Options { flags, valued, long, digits: false, ends: false }
}

const fn checked(name: &'static str, options: Options, about: &'static str) -> Command {
    Command { name, by: By::Checked, options, about }
}

const fn word(name: &'static str, about: &'static str) -> Command {
    Command { name, by: By::Shell, options: Options::NONE, about }
}

/// Options of grep.
pub const GREP: Options = Options {
    flags: "EFGPivnclLrRwxohHqsaIbTyZU",
    valued: "ABCefmd",
    long: &[
        "extended-regexp",
        "fixed-strings",
        "basic-regexp",
        "perl-regexp",
        "ignore-case",
        "no-ignore-case",
        "invert-match",
        "line-number",
        "count",
        "files-with-matches",
        "files-without-match",
        "recursive",
        "dereference-recursive",
        "word-regexp",
        "line-regexp",
        "only-matching",
        "no-filename",
        "with-filename",
        "quiet",
        "silent",
        "no-messages",
        "text",
        "binary-files=",
        "byte-offset",
        "null",
        "after-context=",
        "before-context=",
        "context=",
        "regexp=",
        "file=",
        "max-count=",
        "include=",
        "exclude=",
        "exclude-dir=",
        "color[",
        "colour[",
        "line-buffered",
        "label=",
        "no-group-separator",
        "directories=",
    ],
    digits: true,
    ends: false,
};

/// Options of rg.
pub const RG: Options = Options {
    flags: "FivnNclwxoHIqsSLau0.zh",
    valued: "ABCefmgtTdj",
    long: &[
        "fixed-strings",
        "ignore-case",
        "case-sensitive",
        "smart-case",
        "invert-match",
        "line-number",
        "no-line-number",
        "count",
        "count-matches",
        "files-with-matches",
        "files-without-match",
        "word-regexp",
        "line-regexp",
        "only-matching",
        "with-filename",
        "no-filename",
        "quiet",
        "no-messages",
        "text",
        "after-context=",
        "before-context=",
        "context=",
        "regexp=",
        "file=",
        "max-count=",
        "glob=",
        "iglob=",
        "type=",
        "type-not=",
        "max-depth=",
        "threads=",
        "hidden",
        "no-ignore",
        "unrestricted",
        "null",
        "files",
        "heading",
        "no-heading",
        "color=",
        "column",
        "sort=",
        "follow",
        "byte-offset",
        "include-zero",
        "no-config",
    ],
    digits: false,
    ends: false,
};

/// Options of ls.
pub const LS: Options = of(
    "1aACdFghGlmnNopqrRSstUvx",
    "Tw",
    &[
        "all",
        "almost-all",
        "classify[",
        "color[",
        "directory",
        "file-type",
        "group-directories-first",
        "human-readable",
        "no-group",
        "recursive",
        "reverse",
        "size",
        "sort=",
        "width=",
    ],
);

/// Options of wc.
pub const WC: Options = of("clLmw", "", &["bytes", "chars", "lines", "max-line-length", "words"]);

/// Options of diff.
pub const DIFF: Options = Options {
    flags: "uqsrNadBiwbZc",
    valued: "UCLx",
    long: &[
        "unified[",
        "context[",
        "normal",
        "brief",
        "report-identical-files",
        "recursive",
        "new-file",
        "text",
        "minimal",
        "ignore-blank-lines",
        "ignore-case",
        "ignore-all-space",
        "ignore-space-change",
        "ignore-trailing-space",
        "strip-trailing-cr",
        "label=",
        "exclude=",
        "color[",
    ],
    digits: true,
    ends: false,
};

/// Options of file.
pub const FILE: Options = of(
    "bikLN",
    "Ff",
    &["brief", "mime", "mime-type", "mime-encoding", "no-pad", "separator=", "files-from="],
);

/// Options of stat.
pub const STAT: Options = of("Lt", "c", &["format=", "printf=", "terse", "dereference"]);

/// Options of tree.
pub const TREE: Options = of("adfiFn", "LPI", &["noreport", "dirsfirst", "prune"]);

/// The command of a name.
#[must_use]
pub fn find(name: &str) -> Option<&'static Command> {
    COMMANDS.binary_search_by(|c| c.name.cmp(name)).ok().map(|at| &COMMANDS[at])
}

/// Tests and actions of find, with the number of their values.
const FIND: &[(&str, usize)] = &[
    ("-a", 0),
    ("-amin", 1),
    ("-and", 0),
    ("-atime", 1),
    ("-cmin", 1),
    ("-ctime", 1),
    ("-daystart", 0),
    ("-depth", 0),
    ("-empty", 0),
    ("-false", 0),
    ("-follow", 0),
    ("-H", 0),
    ("-ilname", 1),
    ("-iname", 1),
    ("-ipath", 1),
    ("-iregex", 1),
    ("-iwholename", 1),
    ("-L", 0),
    ("-lname", 1),
    ("-maxdepth", 1),
    ("-mindepth", 1),
    ("-mmin", 1),
    ("-mount", 0),
    ("-mtime", 1),
    ("-name", 1),
    ("-newer", 1),
    ("-newermt", 1),
    ("-not", 0),
    ("-o", 0),
    ("-or", 0),
    ("-P", 0),
    ("-path", 1),
    ("-print", 0),
    ("-print0", 0),
    ("-printf", 1),
    ("-prune", 0),
    ("-quit", 0),
    ("-readable", 0),
    ("-regex", 1),
    ("-regextype", 1),
    ("-size", 1),
    ("-true", 0),
    ("-type", 1),
    ("-wholename", 1),
    ("-xdev", 0),
];

/// The tests of find, for help and capabilities.
#[must_use]
pub fn find_tests() -> Vec<String> {
    let show = |(name, values): &(&str, usize)| {
        if *values == 0 { (*name).to_owned() } else { format!("{name} VALUE") }
    };
    FIND.iter().map(show).collect()
}

/// Checks the options of a command of the virtual bash.
///
/// # Errors
/// The first that is not supported.
pub fn check(command: &Command, args: &[String]) -> Result<(), Unknown> {
    match (command.by, command.name) {
        (By::Checked, "find") => check_find(args),
        (By::Checked, "awk") => {
            let system = |a: &&String| calls_system(a);
            match args.iter().find(system) {
                Some(_) => Err(Unknown { option: "system()".into(), why: "is not supported" }),
                None => command.options.parse(args).map(|_| ()),
            }
        }
        (By::Checked, "jq") => {
            // Names and values after --arg are no options, whatever they look like.
            let mut rest = Vec::new();
            let mut skip = 0;
            for arg in args {
                if skip > 0 {
                    skip -= 1;
                    continue;
                }
                match arg.as_str() {
                    "--arg" | "--argjson" | "--slurpfile" | "--rawfile" => skip = 2,
                    "--indent" => skip = 1,
                    "--help" | "--version" => {}
                    _ => rest.push(arg.clone()),
                }
            }
            command.options.parse(&rest).map(|_| ())
        }
        (By::Checked, "tr") if args.iter().any(|a| repeats(a)) => {
            Err(Unknown { option: "[x*]".into(), why: "is not supported" })
        }
        (By::Checked, "tr") => {
            // Sets may start with a dash after the first operand.
            Options { ends: true, ..command.options }.parse(args).map(|_| ())
        }
        (By::Checked, "seq") => {
            let number = |a: &&String| a.parse::<f64>().is_err();
            let rest: Vec<String> = args.iter().filter(number).cloned().collect();
            command.options.parse(&rest).map(|_| ())
        }
        (By::Checked, _) => {
            let known = |a: &&String| !matches!(a.as_str(), "--help" | "--version");
            let rest: Vec<String> = args.iter().filter(known).cloned().collect();
            let options = match command.name {
                // `+5` and `-5` of old.
                "head" | "tail" | "uniq" => command.options,
                _ => Options { digits: false, ..command.options },
            };
            options.parse(&rest).map(|_| ())
        }
        _ => Ok(()),
    }
}

fn check_find(args: &[String]) -> Result<(), Unknown> {
    let mut rest = args.iter();
    while let Some(arg) = rest.next() {
        if !arg.starts_with('-') || arg.len() == 1 {
            continue;
        }
        let Some((_, values)) = FIND.iter().find(|(name, _)| name == arg) else {
            return Err(Unknown { option: arg.clone(), why: "is not supported" });
        };
        for _ in 0..*values {
            rest.next();
        }
    }
    Ok(())
}

/// A set of tr that repeats a character: `[x*]`, `[x*5]`.
fn repeats(set: &str) -> bool {
    let after = |at: usize| set[at + 1..].chars().nth(1) == Some('*');
    set.match_indices('[').any(|(at, _)| after(at)) && set.contains(']')
}

fn calls_system(program: &str) -> bool {
    program.match_indices("system").any(|(at, word)| {
        let before = program[..at].chars().next_back();
        let after = program[at + word.len()..].trim_start();
        after.starts_with('(') && !before.is_some_and(|c| c.is_alphanumeric() || c == '_')
    })
}

/// What to do about an option that is not supported.
#[must_use]
pub fn hint(command: &str) -> String {
    format!("`help {command}` lists its options")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sorted_and_checks() {
        assert!(COMMANDS.is_sorted_by(|a, b| a.name < b.name));
        let check = |line: &str| {
            let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            super::check(find(&words[0]).unwrap(), &words[1..]).map_err(|e| e.option)
        };
        for line in [
            "find . -name *.md -type f -print0",
            "sort -k2,2n -t:",
            "head -5 x",
            "awk -F: {print}",
            "tr -d a-z",
            "sed -n 1,3p",
            "ls -la",
            "xargs -0 rm -zzz",
            "seq -1 3",
            "find . ! -name -x",
            "jq --arg a -zz .",
            "cut -d, -f1",
            "wc -l",
            "nl -ba",
            "tail -n +3",
        ] {
            assert_eq!(check(line), Ok(()), "{line}");
        }
        for (line, option) in [
            ("find . -exec id ;", "-exec"),
            ("find . -delete", "-delete"),
            ("find -fprint x", "-fprint"),
            ("find . -fls x", "-fls"),
            ("find . -ok id ;", "-ok"),
            ("sort -Q", "-Q"),
            ("sed -i s/a/b/", "-i"),
            ("awk BEGIN{system(\"id\")}", "system()"),
            ("cut --frob", "--frob"),
            ("tail -f x", "-f"),
            ("tail -z x", "-z"),
            ("tr a-c [x*]", "[x*]"),
            ("uniq --group x", "--group"),
            ("realpath --relative-to=a b", "--relative-to"),
        ] {
            assert_eq!(check(line), Err(option.to_owned()), "{line}");
        }
    }
}
