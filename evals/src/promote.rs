//! Reports of users become cases: each with its question, where it came from, and the section that
//! answers it or the refusal that is right.
//!
//! A report says that a reply was wrong, and not always what is right. What it names is looked up in what
//! was retrieved; what it does not name is asked of whoever runs this, one line each; what stays
//! unanswered is left for the next run. A question that is a case already is not promoted again. Cases
//! go to a file, or to a commit on a new [`branch`].

pub mod branch;

use anyhow::{Context, Result, anyhow};
use runbook_query::feedback::reports::FILE_NAME;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{BufRead, Write};
use std::path::{Path, PathBuf};

/// A report as the daemon keeps it; further keys are kept as they are.
#[derive(Clone, Debug, Deserialize)]
pub struct Report {
    /// Its id.
    pub report: String,
    /// When it was made.
    pub at: String,
    /// `wrong` or `right`.
    pub verdict: String,
    /// What the user says.
    #[serde(default)]
    pub note: String,
    /// The right page, as the user names it.
    #[serde(default)]
    pub page: String,
    /// The question, completed.
    pub question: String,
    /// The scope it was asked in.
    #[serde(default)]
    pub scope: Option<String>,
    /// The generation that answered.
    #[serde(default)]
    pub generation: Option<String>,
    /// Its commit.
    #[serde(default)]
    pub commit: Option<String>,
    /// The band of the reply.
    pub band: String,
    /// Why it was refused.
    #[serde(default)]
    pub reason: Option<String>,
    /// What was cited.
    #[serde(default)]
    pub citations: Vec<Place>,
    /// What retrieval finds for it.
    #[serde(default)]
    pub retrieved: Vec<Place>,
}

/// A section.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Place {
    /// Path of the document.
    pub path: String,
    /// The innermost heading.
    pub heading: String,
}

/// What is right for a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Truth {
    /// One of these sections answers it.
    Answer(Vec<Place>),
    /// Nothing does, for this reason.
    Refuse(String),
}

/// What became of the reports.
#[derive(Clone, Debug, Default)]
pub struct Promoted {
    /// New cases, one JSON object each.
    pub cases: Vec<Value>,
    /// Reports of the same question, or of one that is a case.
    pub duplicates: usize,
    /// Questions whose verdict is still missing.
    pub pending: Vec<String>,
    /// Lines that could not be read: cut by a crash, or foreign.
    pub unread: usize,
}

/// The reports of a feedback directory, and how many lines could not be read.
///
/// # Errors
/// When the file cannot be read.
pub fn read(dir: &Path) -> Result<(Vec<Report>, usize)> {
    let file = dir.join(FILE_NAME);
    let bytes = fs::read(&file).with_context(|| {
        format!("`{}`; it is in the directory feedback/ of the daemon's --state", file.display())
    })?;
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<&str> = text.lines().filter(|l| !l.trim().is_empty()).collect();
    let reports: Vec<Report> = lines.iter().filter_map(|l| serde_json::from_str(l).ok()).collect();
    let unread = lines.len() - reports.len();
    Ok((reports, unread))
}

/// The words of a question, for telling that two are the same.
fn key(question: &str) -> String {
    let lower = question.to_lowercase();
    let words: Vec<&str> =
        lower.split(|c: char| !c.is_alphanumeric()).filter(|w| !w.is_empty()).collect();
    words.join(" ")
}

/// Questions that are cases already.
#[derive(Clone, Debug, Default)]
pub struct Known(BTreeSet<String>);

impl Known {
    /// The questions of case files.
    ///
    /// # Errors
    /// When one cannot be read.
    pub fn of(files: &[PathBuf]) -> Result<Self> {
        let mut known = Self::default();
        for file in files {
            let name = file.display().to_string();
            let text = fs::read_to_string(file).with_context(|| format!("`{name}`"))?;
            known.add(&text, &name)?;
        }
        Ok(known)
    }

    /// Adds those of a text, one case a line; `name` is for errors.
    ///
    /// # Errors
    /// When a line is no JSON.
    pub fn add(&mut self, text: &str, name: &str) -> Result<()> {
        for (n, line) in (1..).zip(text.lines()).filter(|(_, l)| !l.trim().is_empty()) {
            let row: Value =
                serde_json::from_str(line).with_context(|| format!("`{name}` line {n}"))?;
            self.0.extend(row["question"].as_str().map(key));
        }
        Ok(())
    }
}

/// Turns reports into cases. `ask` is given a report whose verdict is missing and returns what a person
/// says, or nothing.
///
/// # Errors
/// When `ask` fails.
pub fn promote(
    reports: &[Report],
    known: &Known,
    ask: &mut dyn FnMut(&Report) -> Result<Option<Truth>>,
) -> Result<Promoted> {
    let mut promoted = Promoted::default();
    let mut by_question: BTreeMap<String, Vec<&Report>> = BTreeMap::new();
    let mut order: Vec<String> = Vec::new();
    for report in reports {
        let key = key(&report.question);
        if known.0.contains(&key) || key.is_empty() {
            promoted.duplicates += 1;
            continue;
        }
        let same = by_question.entry(key.clone()).or_default();
        if same.is_empty() {
            order.push(key);
        } else {
            promoted.duplicates += 1;
        }
        same.push(report);
    }
    for key in order {
        let same = &by_question[&key];
        let Some(last) = same.last() else { continue };
        // The last word counts: of those that say what is right, else of all.
        let told = same.iter().rev().find_map(|r| truth(r).map(|t| (*r, t)));
        let truth = match told {
            Some((report, truth)) => Some((report, truth)),
            None => ask(last)?.map(|t| (*last, t)),
        };
        match truth {
            Some((report, truth)) => promoted.cases.push(case(report, same, &truth)),
            None => promoted.pending.push(last.question.clone()),
        }
    }
    Ok(promoted)
}

/// What a report says is right; none where it does not.
#[must_use]
pub fn truth(report: &Report) -> Option<Truth> {
    if report.verdict == "right" {
        return if report.band == "answer" {
            report.citations.first().map(|c| Truth::Answer(vec![c.clone()]))
        } else {
            let reason = report.reason.as_deref().unwrap_or("no_evidence");
            Some(Truth::Refuse(case_reason(reason).to_owned()))
        };
    }
    section(report, &report.page).map(|place| Truth::Answer(vec![place]))
}

/// The section that `path#heading` names: its heading as text, as an anchor, or the best of what was
/// retrieved from that path.
fn section(report: &Report, page: &str) -> Option<Place> {
    let (path, heading) = page.trim().split_once('#').unwrap_or((page.trim(), ""));
    let (path, heading) = (path.trim().trim_start_matches('/'), heading.trim());
    if path.is_empty() {
        return None;
    }
    let known = || report.citations.iter().chain(&report.retrieved).filter(|p| p.path == path);
    let anchor = |text: &str| key(text).replace(' ', "-");
    if heading.is_empty() {
        // A reader who names a page where one of its sections was cited means another one.
        let mut others =
            report.retrieved.iter().filter(|p| p.path == path && !report.citations.contains(p));
        return others.next().cloned();
    }
    let same = known().find(|p| p.heading == heading || anchor(&p.heading) == anchor(heading));
    // A heading in words is taken as it stands; an anchor of an unknown heading names nothing.
    let in_words =
        heading.contains(' ').then(|| Place { path: path.to_owned(), heading: heading.to_owned() });
    same.cloned().or(in_words)
}

/// The reason of a refusal as cases name it.
fn case_reason(reason: &str) -> &str {
    match reason {
        "customer_data" => "customer",
        "action" | "secret" => reason,
        _ => "no_evidence",
    }
}

fn case(report: &Report, same: &[&Report], truth: &Truth) -> Value {
    let (expect, reason, gold) = match truth {
        Truth::Answer(gold) => ("answer", None, gold.as_slice()),
        Truth::Refuse(reason) => ("refuse", Some(reason), &[][..]),
    };
    let rows = |places: &[Place]| -> Vec<Value> {
        places.iter().map(|p| json!({"path": p.path, "heading": p.heading})).collect()
    };
    let notes: BTreeSet<&str> =
        same.iter().map(|r| r.note.trim()).filter(|n| !n.is_empty()).collect();
    json!({
        "id": format!("feedback-{}", report.report.trim_start_matches('f')),
        "class": "feedback",
        "question": report.question,
        "expect": expect,
        "reason": reason,
        "gold": rows(gold),
        "scope": report.scope,
        "note": notes.into_iter().collect::<Vec<_>>().join(" / "),
        "from": {
            "report": report.report, "at": report.at, "reports": same.len(), "verdict": report.verdict,
            "band": report.band, "generation": report.generation, "commit": report.commit,
            "cited": rows(&report.citations), "retrieved": rows(&report.retrieved),
        },
    })
}

/// Asks a person on a terminal: shows the report, reads one line. Nothing more to read is no answer.
///
/// # Errors
/// When neither can be done.
pub fn ask(
    report: &Report,
    input: &mut dyn BufRead,
    output: &mut dyn Write,
) -> Result<Option<Truth>> {
    writeln!(output, "\nquestion: {}", report.question.replace('\n', " "))?;
    writeln!(
        output,
        "reply:    {}",
        match report.citations.first() {
            Some(c) => format!("{}#{}", c.path, c.heading),
            None => format!("refused, {}", report.reason.as_deref().unwrap_or("no_evidence")),
        }
    )?;
    for (what, text) in [("note", &report.note), ("page", &report.page)] {
        if !text.is_empty() {
            writeln!(output, "{what}:     {}", text.replace('\n', " "))?;
        }
    }
    for (n, place) in (1..).zip(&report.retrieved) {
        writeln!(output, "{n:>4}  {}#{}", place.path, place.heading)?;
    }
    loop {
        write!(output, "right is: a number, path#heading, `refuse`, or nothing to leave it > ")?;
        output.flush()?;
        let mut line = String::new();
        if input.read_line(&mut line)? == 0 || line.trim().is_empty() {
            return Ok(None);
        }
        if let Some(truth) = said(report, line.trim()) {
            return Ok(Some(truth));
        }
        writeln!(output, "`{}` names no section", line.trim())?;
    }
}

fn said(report: &Report, text: &str) -> Option<Truth> {
    if let Some(reason) = text.strip_prefix("refuse") {
        let reason = reason.trim();
        return Some(Truth::Refuse(
            case_reason(if reason.is_empty() { "no_evidence" } else { reason }).to_owned(),
        ));
    }
    if let Ok(n) = text.parse::<usize>() {
        return report.retrieved.get(n.checked_sub(1)?).map(|p| Truth::Answer(vec![p.clone()]));
    }
    let (path, heading) = text.split_once('#')?;
    let place = section(report, text).or_else(|| {
        let heading = heading.trim();
        (!heading.is_empty())
            .then(|| Place { path: path.trim().to_owned(), heading: heading.to_owned() })
    });
    place.map(|p| Truth::Answer(vec![p]))
}

/// Appends cases to a file, which is created where it is not there.
///
/// # Errors
/// When it cannot be written.
pub fn append(file: &Path, cases: &[Value]) -> Result<()> {
    let text = match fs::read_to_string(file) {
        Ok(text) => text,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => String::new(),
        Err(e) => return Err(anyhow!(e)).with_context(|| format!("`{}`", file.display())),
    };
    let beside = file.with_extension("jsonl.new");
    fs::write(&beside, with_appended(text, cases))
        .with_context(|| format!("`{}`", beside.display()))?;
    fs::rename(&beside, file).with_context(|| format!("`{}`", file.display()))
}

/// A text of cases with more of them, one a line.
fn with_appended(mut text: String, cases: &[Value]) -> String {
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    for case in cases {
        text.push_str(&format!("{case}\n"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(id: &str, question: &str, more: Value) -> Report {
        let mut row = json!({
            "report": id, "at": "2026-01-01T00:00:00Z", "verdict": "wrong", "question": question, "band": "answer",
            "citations": [{"path": "a.md", "heading": "One"}],
            "retrieved": [{"path": "a.md", "heading": "One"}, {"path": "a.md", "heading": "Two things"}, {"path": "b.md", "heading": "Three"}],
        });
        let (Some(row), Value::Object(more)) = (row.as_object_mut(), more) else { panic!() };
        row.extend(more);
        serde_json::from_value(Value::Object(row.clone())).unwrap()
    }

    fn place(path: &str, heading: &str) -> Truth {
        Truth::Answer(vec![Place { path: path.into(), heading: heading.into() }])
    }

    #[test]
    fn what_a_report_says_is_right() {
        for (more, expected) in [
            (json!({}), None),
            (json!({"page": "b.md"}), Some(place("b.md", "Three"))),
            (json!({"page": "a.md"}), Some(place("a.md", "Two things"))),
            (json!({"page": "a.md#two-things"}), Some(place("a.md", "Two things"))),
            (json!({"page": "c.md#Some heading"}), Some(place("c.md", "Some heading"))),
            (json!({"page": "c.md#anchor"}), None),
            (json!({"page": "c.md"}), None),
            (json!({"verdict": "right"}), Some(place("a.md", "One"))),
            (
                json!({"verdict": "right", "band": "nothing", "reason": "customer_data", "citations": []}),
                Some(Truth::Refuse("customer".into())),
            ),
        ] {
            assert_eq!(truth(&report("f1", "q", more.clone())), expected, "{more}");
        }
    }

    #[test]
    fn duplicates_go_and_the_last_word_counts() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("cases.jsonl");
        fs::write(&file, "{\"question\": \"Known already?\"}\n").unwrap();
        let reports = [
            report("f1", "Where is it?", json!({"page": "b.md", "note": "no"})),
            report("f2", "where is it", json!({"note": "still no"})),
            report("f3", "known already", json!({})),
            report("f4", "nobody knows", json!({})),
        ];
        let promoted = promote(&reports, &Known::of(&[file]).unwrap(), &mut |_| Ok(None)).unwrap();
        assert_eq!((promoted.cases.len(), promoted.duplicates), (1, 2));
        assert_eq!(promoted.pending, ["nobody knows"]);
        let case = &promoted.cases[0];
        assert_eq!((&case["id"], &case["from"]["reports"]), (&json!("feedback-1"), &json!(2)));
        assert_eq!(case["note"], "no / still no");
        let out = dir.path().join("new.jsonl");
        append(&out, &promoted.cases).unwrap();
        assert_eq!(crate::case::read(&out).unwrap()[0].gold[0].heading, "Three");
    }

    #[test]
    fn a_person_is_asked_until_something_is_named() {
        let report = report("f1", "q", json!({}));
        for (typed, expected) in [
            ("2\n", Some(place("a.md", "Two things"))),
            ("9\nb.md#three\n", Some(place("b.md", "Three"))),
            ("refuse\n", Some(Truth::Refuse("no_evidence".into()))),
            ("\n", None),
            ("", None),
            ("nonsense\n\n", None),
        ] {
            let mut shown = Vec::new();
            let got = ask(&report, &mut typed.as_bytes(), &mut shown).unwrap();
            assert_eq!(got, expected, "{typed:?}");
            assert!(String::from_utf8(shown).unwrap().contains("   2  a.md#Two things"));
        }
    }
}
