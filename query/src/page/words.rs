//! Numbers and times in words.

/// A confidence in words.
#[must_use]
pub fn confidence(value: f32) -> &'static str {
    match value {
        v if v >= 0.9 => "Very likely right",
        v if v >= 0.7 => "Likely right",
        v if v >= 0.5 => "More likely right than not",
        v if v >= 0.2 => "Possibly right",
        _ => "Hardly right",
    }
}

/// A confidence as a whole percentage; never 100, since nothing here is certain.
#[must_use]
pub fn percent(value: f32) -> String {
    // From 0 to 1, so the cast keeps it.
    let whole = (f64::from(value) * 100.0).round().clamp(0.0, 99.0);
    format!("{whole:.0} %")
}

/// Seconds as "3 minutes", in the largest unit that fits.
#[must_use]
pub fn duration(seconds: u64) -> String {
    let (n, unit) = match seconds {
        0..60 => (seconds, "second"),
        60..3600 => (seconds / 60, "minute"),
        3600..86_400 => (seconds / 3600, "hour"),
        _ => (seconds / 86_400, "day"),
    };
    format!("{n} {unit}{}", if n == 1 { "" } else { "s" })
}

/// How long ago something was.
#[must_use]
pub fn ago(seconds: u64) -> String {
    if seconds < 10 { "just now".into() } else { format!("{} ago", duration(seconds)) }
}

/// Seconds since a time in RFC 3339; none when it is none, 0 when it lies ahead.
#[must_use]
pub fn seconds_since(time: &str) -> Option<u64> {
    let at: jiff::Timestamp = time.parse().ok()?;
    Some(u64::try_from(jiff::Timestamp::now().as_second() - at.as_second()).unwrap_or(0))
}

/// A commit's first ten digits.
#[must_use]
pub fn short(commit: &str) -> &str {
    commit.get(..10).unwrap_or(commit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_aloud() {
        for (seconds, words) in [
            (0, "just now"),
            (59, "59 seconds ago"),
            (60, "1 minute ago"),
            (3 * 60 + 59, "3 minutes ago"),
            (86_399, "23 hours ago"),
            (3 * 86_400, "3 days ago"),
        ] {
            assert_eq!(ago(seconds), words);
        }
    }

    #[test]
    fn nothing_is_certain() {
        assert_eq!((percent(1.0).as_str(), percent(0.926).as_str()), ("99 %", "93 %"));
        assert_eq!(confidence(0.93), "Very likely right");
    }
}
