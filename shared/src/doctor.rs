//! What `doctor` of both programs finds: one line a check, and for each that is not ok what to do.
//!
//! A check is a function from what it looks at to [`Finding`]s; each program has a list of its own, to
//! which another (the endpoint of a language model, say) is added as one more function. [`parts`] are
//! the checks of what both programs use, [`directory`] those of what they read and write, [`machine`] those
//! of the machine.

pub mod directory;
pub mod machine;
pub mod parts;

use serde::Serialize;
use serde_json::json;
use std::fmt::Write as _;

/// How a check ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Grade {
    /// As it should be.
    Ok,
    /// It works, and somebody should look at it.
    Warn,
    /// It does not work.
    Fail,
}

impl Grade {
    fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warn => "warn",
            Self::Fail => "fail",
        }
    }
}

/// What a check found. The JSON keys are a contract.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// What was checked: a name that stays the same.
    pub check: String,
    /// How it ended.
    pub grade: Grade,
    /// What was found, in one line.
    pub message: String,
    /// What to do; null where nothing is to be done.
    pub fix: Option<String>,
}

impl Finding {
    /// All is well.
    #[must_use]
    pub fn ok(check: &str, message: impl Into<String>) -> Self {
        Self::new(check, Grade::Ok, message.into(), None)
    }

    /// It works, but.
    #[must_use]
    pub fn warn(check: &str, message: impl Into<String>, fix: impl Into<String>) -> Self {
        Self::new(check, Grade::Warn, message.into(), Some(fix.into()))
    }

    /// It does not work.
    #[must_use]
    pub fn fail(check: &str, message: impl Into<String>, fix: impl Into<String>) -> Self {
        Self::new(check, Grade::Fail, message.into(), Some(fix.into()))
    }

    fn new(check: &str, grade: Grade, message: String, fix: Option<String>) -> Self {
        // Messages of libraries and compilers have several lines.
        let one_line = |text: String| text.split_whitespace().collect::<Vec<_>>().join(" ");
        let fix = fix.map(one_line).map(|fix| match fix.is_empty() {
            true => "see docs/operating.md".to_owned(),
            false => fix,
        });
        Self { check: check.to_owned(), grade, message: one_line(message), fix }
    }

    /// The same as a check of one of several: `generation (network)`.
    #[must_use]
    pub fn of(mut self, name: &str) -> Self {
        if !name.is_empty() {
            self.check = format!("{} ({name})", self.check);
        }
        self
    }
}

/// True when nothing failed; warnings are no failure.
#[must_use]
pub fn passes(findings: &[Finding]) -> bool {
    findings.iter().all(|f| f.grade != Grade::Fail)
}

/// For a person: a line for each check, the fix beneath it, and the sum.
#[must_use]
pub fn text(findings: &[Finding]) -> String {
    let width = findings.iter().map(|f| f.check.chars().count()).max().unwrap_or(0);
    let mut out = String::new();
    for finding in findings {
        let _ = writeln!(
            out,
            "{:<4}  {:<width$}  {}",
            finding.grade.name(),
            finding.check,
            finding.message
        );
        if let Some(fix) = &finding.fix {
            let _ = writeln!(out, "      {:<width$}  do: {fix}", "");
        }
    }
    let count = |grade| findings.iter().filter(|f| f.grade == grade).count();
    let (warned, failed) = (count(Grade::Warn), count(Grade::Fail));
    let _ = writeln!(
        out,
        "{} checks: {} ok, {warned} to look at, {failed} failed",
        findings.len(),
        count(Grade::Ok)
    );
    out
}

/// The same as JSON.
#[must_use]
pub fn json(findings: &[Finding]) -> String {
    let value = json!({ "ok": passes(findings), "checks": findings });
    format!("{}\n", serde_json::to_string_pretty(&value).unwrap_or_default())
}

/// A number of bytes for a person.
#[must_use]
pub fn size(bytes: u64) -> String {
    const UNITS: [(&str, u64); 3] = [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];
    match UNITS.iter().find(|(_, unit)| bytes >= *unit) {
        #[expect(clippy::cast_precision_loss, reason = "one decimal is shown")]
        Some((name, unit)) => format!("{:.1} {name}", bytes as f64 / *unit as f64),
        None => format!("{bytes} bytes"),
    }
}

/// Seconds for a person.
#[must_use]
pub fn span(seconds: u64) -> String {
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7200 => format!("{} minutes", seconds / 60),
        7200..172_800 => format!("{} hours", seconds / 3600),
        _ => format!("{} days", seconds / 86400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_one_line_and_a_fix_stands_beneath() {
        let findings = [
            Finding::ok("clock", "right"),
            Finding::warn("disk", "1.0 GiB\nfree", "tidy up").of("net"),
            Finding::fail("model", "gone", "run\n  deploy/setup"),
        ];
        assert_eq!(
            text(&findings),
            "ok    clock       right\n\
             warn  disk (net)  1.0 GiB free\n                  do: tidy up\n\
             fail  model       gone\n                  do: run deploy/setup\n\
             3 checks: 1 ok, 1 to look at, 1 failed\n"
        );
        assert!(!passes(&findings) && passes(&findings[..2]));
        let value: serde_json::Value = serde_json::from_str(&json(&findings)).unwrap();
        assert_eq!((&value["ok"], &value["checks"][1]["grade"]), (&false.into(), &"warn".into()));
        assert!(value["checks"][0]["fix"].is_null());
    }

    #[test]
    fn numbers_are_for_people() {
        assert_eq!([size(12), size(2048), size(3 << 29)], ["12 bytes", "2.0 KiB", "1.5 GiB"]);
        assert_eq!(
            [span(90), span(600), span(9000), span(200_000)],
            ["90 s", "10 minutes", "2 hours", "2 days"]
        );
    }
}
