//! What kind of thing a word names, by its form alone: a flag, a path, a host, a number, or mere prose.

use regex::Regex;
use std::sync::LazyLock;

/// What an exact word of an answer names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// An option of a command: `-x`, `--dry-run`.
    Flag,
    /// A command line, or a word of one.
    Command,
    /// A port.
    Port,
    /// A path.
    Path,
    /// A host, an address, a URL.
    Host,
    /// A unit of systemd.
    Unit,
    /// A version.
    Version,
    /// A number, with or without a unit of measure.
    Number,
    /// Any other name that is not a word of prose: `CrashLoopBackOff`, `max_connections`, `db-01`.
    Identifier,
}

impl Kind {
    /// The name in replies.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Flag => "flag",
            Self::Command => "command",
            Self::Port => "port",
            Self::Path => "path",
            Self::Host => "host",
            Self::Unit => "unit",
            Self::Version => "version",
            Self::Number => "number",
            Self::Identifier => "identifier",
        }
    }

    /// Whether upper and lower case are the same in it.
    #[must_use]
    pub fn ignores_case(self) -> bool {
        matches!(self, Self::Host | Self::Version | Self::Number | Self::Port | Self::Unit)
    }
}

fn regex(pattern: &str) -> Regex {
    Regex::new(pattern).expect("a test compiles it")
}

static NUMBER: LazyLock<Regex> = LazyLock::new(|| regex(r"^[-+~<>≤≥]?\d+(?:\.\d+)?$"));
static MEASURE: LazyLock<Regex> =
    LazyLock::new(|| regex(r"^[-+~<>≤≥]?(\d+(?:\.\d+)?)-?(%|[A-Za-zµ]+(?:/s)?)$"));
static VERSION: LazyLock<Regex> =
    LazyLock::new(|| regex(r"^[vV]?\d+(?:\.\d+)+(?:[-+~.][0-9A-Za-z.+~-]+)?$"));
static ADDRESS: LazyLock<Regex> = LazyLock::new(|| {
    regex(
        r"^\d{1,3}(?:\.\d{1,3}){3}(?::\d+|/\d+)?$|^\[?[0-9a-fA-F]*:[0-9a-fA-F:]*:[0-9a-fA-F:.]*\]?(?::\d+|/\d+)?$",
    )
});
static DOTTED: LazyLock<Regex> =
    LazyLock::new(|| regex(r"^[\w*-]+(?:\.[\w*-]+)+(?::\d+)?(?:/\S*)?$"));
static UNIT: LazyLock<Regex> = LazyLock::new(|| {
    regex(
        r"^[\w@:.\\-]+\.(?:service|timer|socket|target|mount|automount|path|slice|scope|swap|device)$",
    )
});
static ORDINAL: LazyLock<Regex> = LazyLock::new(|| regex(r"^\d+(?:st|nd|rd|th)$"));
static CLOCK: LazyLock<Regex> = LazyLock::new(|| regex(r"^\d{1,2}:\d{2}(?::\d{2})?$"));

/// The kind of a word, without the marks around it; none for a word of prose.
#[must_use]
pub fn of(word: &str) -> Option<Kind> {
    if word.is_empty() || !word.chars().any(char::is_alphanumeric) {
        return None;
    }
    if is_flag(word) {
        return Some(Kind::Flag);
    }
    if word.contains("://") || ADDRESS.is_match(word) {
        return Some(Kind::Host);
    }
    if UNIT.is_match(word) {
        return Some(Kind::Unit);
    }
    if NUMBER.is_match(word) || CLOCK.is_match(word) {
        return Some(Kind::Number);
    }
    if VERSION.is_match(word) {
        return Some(Kind::Version);
    }
    if ORDINAL.is_match(word) {
        return None;
    }
    if measure(word).is_some() {
        return Some(Kind::Number);
    }
    if is_path(word) {
        return Some(Kind::Path);
    }
    if matches!(word.to_ascii_lowercase().as_str(), "e.g" | "i.e" | "a.k.a" | "vs" | "etc") {
        return None;
    }
    if DOTTED.is_match(word) {
        return Some(Kind::Host);
    }
    is_identifier(word).then_some(Kind::Identifier)
}

/// `-x`, `--long`, `--long=value`, not `-` nor `-5`.
#[must_use]
pub fn is_flag(word: &str) -> bool {
    let rest = word.trim_start_matches('-');
    let dashes = word.len() - rest.len();
    (1..=2).contains(&dashes) && rest.starts_with(|c: char| c.is_ascii_alphabetic())
}

fn is_path(word: &str) -> bool {
    let rooted = word.starts_with(['/', '~']) || word.starts_with("./") || word.starts_with("../");
    if !word.contains('/') {
        return false;
    }
    let last = word.rsplit('/').next().unwrap_or("");
    let extension = last
        .rsplit_once('.')
        .is_some_and(|(stem, ext)| !stem.is_empty() && !ext.is_empty() && ext.len() <= 10);
    (rooted && word.len() > 1) || word.matches('/').count() > 1 || extension
}

fn is_identifier(word: &str) -> bool {
    let chars: Vec<char> = word.chars().collect();
    let letters = chars.iter().any(|c| c.is_alphabetic());
    let digits = chars.iter().any(char::is_ascii_digit);
    let inner = |c: char| {
        chars.len() > 2 && chars[1..chars.len() - 1].contains(&c) && chars[0].is_alphanumeric()
    };
    let camel = chars
        .windows(2)
        .any(|w| w[0].is_lowercase() && w[1].is_uppercase() && chars.iter().all(|c| *c != '/'));
    (letters && digits)
        || inner('_')
        || inner('=')
        || inner(':')
        || inner('@')
        || camel
        || word.starts_with(['$', '%', '@']) && letters
}

/// A number with its unit of measure, in one spelling: `5 minutes`, `5m` and `5min` are `5 min`.
///
/// A word alone gives it when the unit is written without a blank.
#[must_use]
pub fn measure(word: &str) -> Option<(String, &'static str)> {
    let found = MEASURE.captures(word)?;
    Some((found[1].to_owned(), unit_of(&found[2])?))
}

/// The one spelling of a unit of measure; none when the word is none.
#[must_use]
pub fn unit_of(word: &str) -> Option<&'static str> {
    Some(match word {
        "ms" | "msec" | "msecs" | "millisecond" | "milliseconds" => "ms",
        "us" | "µs" | "microsecond" | "microseconds" => "us",
        "s" | "sec" | "secs" | "second" | "seconds" => "s",
        "m" | "min" | "mins" | "minute" | "minutes" => "min",
        "h" | "hr" | "hrs" | "hour" | "hours" => "h",
        "d" | "day" | "days" => "day",
        "week" | "weeks" => "week",
        "month" | "months" => "month",
        "year" | "years" => "year",
        "%" | "percent" | "pct" => "%",
        "B" | "byte" | "bytes" => "B",
        "k" | "K" | "kB" | "KB" | "Ki" | "KiB" | "kilobyte" | "kilobytes" => "KB",
        "M" | "MB" | "Mi" | "MiB" | "megabyte" | "megabytes" => "MB",
        "G" | "GB" | "Gi" | "GiB" | "gigabyte" | "gigabytes" => "GB",
        "T" | "TB" | "Ti" | "TiB" | "terabyte" | "terabytes" => "TB",
        "Hz" | "kHz" | "MHz" | "GHz" => "Hz",
        "replica" | "replicas" => "replica",
        "core" | "cores" | "cpu" | "cpus" | "vcpu" | "vcpus" => "core",
        "req/s" | "qps" | "rps" => "req/s",
        "Mbit" | "Mbps" | "Mbit/s" => "Mbit/s",
        "Gbit" | "Gbps" | "Gbit/s" => "Gbit/s",
        _ => return None,
    })
}

/// Dashes as typewriters have them, no marks of width: `—force` is `--force`.
#[must_use]
pub fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut before = ' ';
    for c in text.chars() {
        match c {
            '\u{200b}'..='\u{200d}' | '\u{2060}' | '\u{feff}' | '\u{ad}' => {}
            '–' | '—' | '―' if before.is_whitespace() || before == '`' => out.push_str("--"),
            '‐' | '‑' | '‒' | '–' | '—' | '−' => out.push('-'),
            '‘' | '’' => out.push('\''),
            '“' | '”' => out.push('"'),
            '\u{a0}' | '\u{202f}' => out.push(' '),
            c => out.push(c),
        }
        before = c;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_by_form() {
        for (word, kind) in [
            ("--dry-run", Some(Kind::Flag)),
            ("--dry-run=client", Some(Kind::Flag)),
            ("-Fc", Some(Kind::Flag)),
            ("-5", Some(Kind::Number)),
            ("-", None),
            ("8080", Some(Kind::Number)),
            ("95%", Some(Kind::Number)),
            ("30s", Some(Kind::Number)),
            ("10GB", Some(Kind::Number)),
            ("10:30", Some(Kind::Number)),
            ("2nd", None),
            ("v1.27.3", Some(Kind::Version)),
            ("1.27.3-rc1", Some(Kind::Version)),
            ("10.0.0.7", Some(Kind::Host)),
            ("10.0.0.0/8", Some(Kind::Host)),
            ("10.0.0.7:8080", Some(Kind::Host)),
            ("fe80::1", Some(Kind::Host)),
            ("db.example.org", Some(Kind::Host)),
            ("https://a.example.org/x", Some(Kind::Host)),
            ("nginx.service", Some(Kind::Unit)),
            ("wg-quick@wg0.service", Some(Kind::Unit)),
            ("/etc/nginx/nginx.conf", Some(Kind::Path)),
            ("~/.ssh/config", Some(Kind::Path)),
            ("conf/app.yaml", Some(Kind::Path)),
            ("and/or", None),
            ("read/write", None),
            ("e.g", None),
            ("max_connections", Some(Kind::Identifier)),
            ("CrashLoopBackOff", Some(Kind::Identifier)),
            ("db-01", Some(Kind::Identifier)),
            ("sha256", Some(Kind::Identifier)),
            ("$HOME", Some(Kind::Identifier)),
            ("a=b", Some(Kind::Identifier)),
            ("on-call", None),
            ("restart", None),
            ("SRE", None),
            ("Nginx", None),
            ("it's", None),
            ("…", None),
        ] {
            assert_eq!(of(word), kind, "{word}");
        }
    }

    #[test]
    fn measures_have_one_spelling() {
        assert_eq!(measure("5m"), Some(("5".into(), "min")));
        assert_eq!(measure("2.5GiB"), Some(("2.5".into(), "GB")));
        assert_eq!(measure("5xyz"), None);
        assert_eq!(plain("run —force and –x, 3–5 a\u{200b}b"), "run --force and --x, 3-5 ab");
    }
}
