//! The report as one HTML page that loads nothing: styles and plots are within it.

use super::{SuiteReport, plot};
use crate::metrics::ratio;
use crate::outcome::{CaseResult, Outcome};
use std::fmt::Write as _;

const STYLE: &str = "
:root{color-scheme:light dark;--ink:light-dark(#1c1e21,#e4e6e9);--soft:light-dark(#6a7076,#9aa1a8);--line:light-dark(#d8dbdf,#3a3f45);--page:light-dark(#fff,#16181b)}
body{font:14px/1.45 system-ui,sans-serif;color:var(--ink);background:var(--page);max-width:1100px;margin:2rem auto;padding:0 1rem}
h1{font-size:1.4rem}h2{font-size:1.2rem;margin-top:2.5rem;border-bottom:1px solid var(--line)}h3{font-size:1rem}
table{border-collapse:collapse;margin:.5rem 0}td,th{padding:.2rem .7rem .2rem 0;text-align:left;vertical-align:top;border-bottom:1px solid var(--line)}
td.n,th.n{text-align:right;font-variant-numeric:tabular-nums}.plots{display:flex;flex-wrap:wrap;gap:2rem}
svg text{font-size:12px;fill:var(--ink)}.frame{fill:none;stroke:var(--line)}.curve{fill:none;stroke:#2a6fdb;stroke-width:2}
.diagonal{fill:none;stroke:var(--soft);stroke-dasharray:4 4}.dot{fill:#2a6fdb}.hover{fill:#2a6fdb;fill-opacity:.25}
rect.right{fill:#2e8b57}rect.refused{fill:#5aa77b}rect.near{fill:#e0b040}rect.otherwise{fill:#c9a26a}rect.lost{fill:#9aa1a8}
rect.wrong{fill:#d9663d}rect.false_answer{fill:#c0392b}rect.failed{fill:#7d3c98}
.key span{margin-right:1rem}.key svg{vertical-align:-2px;margin-right:.3rem}
pre{white-space:pre-wrap;overflow-wrap:anywhere;margin:.3rem 0;padding:.5rem;border:1px solid var(--line);max-height:20rem;overflow:auto}
.bad{color:light-dark(#b3261e,#ff8a80);font-weight:600}.good{color:light-dark(#20744a,#7fd6a4);font-weight:600}.soft{color:var(--soft)}
";

/// The page over all suites.
#[must_use]
pub fn page(reports: &[SuiteReport], strict: bool) -> String {
    let mut out = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n<title>runbook-eval</title>\n\
         <style>{STYLE}</style></head><body>\n<h1>runbook-eval</h1>\n"
    );
    for report in reports {
        suite(report, strict, &mut out);
    }
    out.push_str("</body></html>\n");
    out
}

/// Text that cannot be taken for markup, in elements and in quoted attributes.
#[must_use]
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c if c.is_control() && !matches!(c, '\n' | '\t') => out.push('\u{FFFD}'),
            c => out.push(c),
        }
    }
    out
}

fn suite(report: &SuiteReport, strict: bool, out: &mut String) {
    let run = &report.run;
    let verdict = if report.fails(strict) {
        "<span class=\"bad\">failed</span>"
    } else {
        "<span class=\"good\">within its gates</span>"
    };
    let _ = writeln!(
        out,
        "<h2>{}: {verdict}</h2>\n<p class=\"soft\">{} cases, embedder {}, judge {}</p>",
        run.suite.name(),
        run.results.len(),
        escape(&run.embedder),
        escape(&run.judge)
    );
    figures(report, out);
    let _ = writeln!(out, "<h3>Outcomes by class</h3>\n{}{}", key(), plot::bars(&report.classes));
    curves(report, out);
    problems("Below the baseline", &report.regressions, out);
    problems("Approvals without a case", &report.orphans, out);
    problems("Nearest sections that do not hold", &report.nearest_faults(), out);
    problems("Cases to look at", &run.doubts, out);
    problems("Ranking, other than it was", &report.ranking_diff, out);
    cases(report, out);
}

fn figures(report: &SuiteReport, out: &mut String) {
    out.push_str("<table><tr><th>scorer</th><th class=\"n\">cases</th><th class=\"n\">share</th><th></th></tr>\n");
    for f in &report.figures {
        let _ = writeln!(
            out,
            "<tr><td>{}</td><td class=\"n\">{}/{}</td><td class=\"n\">{:.3}</td><td class=\"soft\">{}</td></tr>",
            f.name,
            f.part,
            f.of,
            ratio(f.part, f.of),
            escape(f.meaning)
        );
    }
    out.push_str("</table>\n");
    for (reason, [cases, refused, right]) in report.reasons() {
        let _ = writeln!(
            out,
            "<div>refuse as {reason}: {refused} of {cases} refused, {right} for the right reason</div>"
        );
    }
    for (route, n) in report.routes() {
        let _ = writeln!(out, "<div class=\"soft\">{n} × {}</div>", escape(&route));
    }
}

fn key() -> String {
    let entry = |o: Outcome| {
        let name = o.name();
        format!(
            "<span><svg width=\"12\" height=\"12\"><rect class=\"{name}\" width=\"12\" height=\"12\"/></svg>{name}</span>"
        )
    };
    format!("<p class=\"key\">{}</p>\n", Outcome::ALL.map(entry).concat())
}

fn curves(report: &SuiteReport, out: &mut String) {
    let c = &report.curves;
    if c.reliability.is_empty() {
        return;
    }
    let _ = writeln!(
        out,
        "<div class=\"plots\"><figure><figcaption>Reliability, ECE {:.3}, Brier {:.3}</figcaption>{}</figure>",
        c.ece,
        c.brier,
        plot::reliability(&c.reliability)
    );
    if !c.near_miss.is_empty() {
        let _ = writeln!(
            out,
            "<figure><figcaption>Near-misses as the floor falls, AUC {:.3}</figcaption>{}</figure>",
            c.near_miss_auc,
            plot::near_miss(&c.near_miss)
        );
    }
    out.push_str("</div>\n");
}

fn problems(title: &str, rows: &[String], out: &mut String) {
    if !rows.is_empty() {
        let _ = writeln!(
            out,
            "<h3>{title} ({})</h3>\n<pre>{}</pre>",
            rows.len(),
            escape(&rows.join("\n"))
        );
    }
}

fn cases(report: &SuiteReport, out: &mut String) {
    let rest =
        report.run.results.iter().filter(|r| !r.passes() && r.outcome != Outcome::FalseAnswer);
    let failing: Vec<&CaseResult> = report.false_answers().into_iter().chain(rest).collect();
    let _ = writeln!(out, "<h3>Cases that fail ({})</h3>", failing.len());
    out.push_str("<table><tr><th>case</th><th>outcome</th><th class=\"n\">Confidence</th><th class=\"n\">rank</th><th>question and what is wrong</th></tr>\n");
    for result in failing {
        case(result, out);
    }
    out.push_str("</table>\n");
}

fn case(r: &CaseResult, out: &mut String) {
    let confidence = r.confidence().map_or("–".into(), |c| format!("{c:.2}"));
    let rank = r.scores.gold.and_then(|g| g.rank).map_or("–".into(), |n| n.to_string());
    let _ = write!(
        out,
        "<tr><td>{}<br><span class=\"soft\">{}</span></td><td>{}</td><td class=\"n\">{confidence}</td><td class=\"n\">{rank}</td><td>{}<br><span class=\"bad\">{}</span>",
        escape(&r.case.id),
        escape(&r.case.class),
        r.outcome.name(),
        escape(&super::short(&r.case.question, 300)),
        escape(&r.faults().join("; "))
    );
    let named = r
        .named
        .iter()
        .map(|n| format!("{}#{} lines {}-{}", n.path, n.heading, n.lines[0], n.lines[1]));
    let gold = r.gold.iter().map(|g| format!("gold {}", g.key()));
    let lists = named.chain(gold).collect::<Vec<_>>().join("\n");
    let answer = r.reply.as_ref().map_or("", |reply| reply.answer.as_str());
    if r.reply.is_some() {
        let _ = write!(
            out,
            "<details><summary>reply</summary><pre>{}</pre><pre>{}</pre></details>",
            escape(answer),
            escape(&lists)
        );
    }
    out.push_str("</td></tr>\n");
}

#[cfg(test)]
mod tests {
    #[test]
    fn no_text_is_markup() {
        assert_eq!(
            super::escape("<a href='x'>\"&\u{0}"),
            "&lt;a href=&#39;x&#39;&gt;&quot;&amp;\u{FFFD}"
        );
    }
}
