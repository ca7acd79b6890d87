//! The report as JUnit XML: a suite each, a test a case.

use super::SuiteReport;
use crate::outcome::CaseResult;
use std::fmt::Write as _;

/// The report of all suites.
#[must_use]
pub fn suites(reports: &[SuiteReport], strict: bool) -> String {
    let mut out = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n".to_owned();
    for report in reports {
        suite(report, strict, &mut out);
    }
    out.push_str("</testsuites>\n");
    out
}

fn suite(report: &SuiteReport, strict: bool, out: &mut String) {
    let name = report.run.suite.name();
    let results = &report.run.results;
    let failed = results.iter().filter(|r| !r.passes()).count();
    let gates = gates(report, strict);
    let (tests, failures) = (results.len() + 1, failed + usize::from(!gates.is_empty()));
    let _ =
        writeln!(out, "  <testsuite name=\"{name}\" tests=\"{tests}\" failures=\"{failures}\">");
    for result in results {
        case(name, result, out);
    }
    let _ = write!(out, "    <testcase classname=\"{name}\" name=\"gates\"");
    failure(&gates, out);
    out.push_str("  </testsuite>\n");
}

/// What the suite as a whole fails for.
fn gates(report: &SuiteReport, strict: bool) -> Vec<String> {
    let ranking = if strict { &report.ranking_diff[..] } else { &[] };
    report.regressions.iter().chain(&report.orphans).chain(ranking).cloned().collect()
}

fn case(suite: &str, r: &CaseResult, out: &mut String) {
    let class = xml(&format!("{suite}.{}", r.case.class));
    let name = xml(&format!("{} {}", r.case.id, super::short(&r.case.question, 80)));
    let seconds = r.reply.as_ref().map_or(0.0, |reply| reply.took_ms / 1e3);
    let _ =
        write!(out, "    <testcase classname=\"{class}\" name=\"{name}\" time=\"{seconds:.6}\"");
    let faults = if r.passes() { Vec::new() } else { r.faults() };
    failure(&faults, out);
}

fn failure(faults: &[String], out: &mut String) {
    let Some(first) = faults.first() else {
        out.push_str("/>\n");
        return;
    };
    let _ = writeln!(
        out,
        ">\n      <failure message=\"{}\">{}</failure>\n    </testcase>",
        xml(&super::short(first, 200)),
        xml(&faults.join("\n"))
    );
}

/// Text as XML 1.0 can hold it: markup escaped, what is no character of XML replaced.
fn xml(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\n' | '\t' => out.push(c),
            c if c.is_control() || matches!(c, '\u{FFFE}' | '\u{FFFF}') => out.push('\u{FFFD}'),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    #[test]
    fn no_text_breaks_the_markup() {
        assert_eq!(
            super::xml("<a b=\"c\">&\u{1b}[0m\n"),
            "&lt;a b=&quot;c&quot;&gt;&amp;\u{FFFD}[0m\n"
        );
    }
}
