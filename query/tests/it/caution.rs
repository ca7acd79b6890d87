//! Warnings and prerequisites are always shown with the commands: in the same section, in one above it,
//! and beside it; and overviews come with what to do.

use crate::support::{Fixture, request};
use runbook_query::citation;
use runbook_query::compose::{self, Shown};
use runbook_query::reply::Band;
use runbook_query::service::Request;
use runbook_shared::retrieval::arms;
use runbook_shared::retrieval::corpus::Corpus;
use runbook_shared::retrieval::question::Question;

/// Each holds HEED, in another dress.
const FORMS: &[&str] = &[
    "> **Warning:** HEED first.",
    "> [!WARNING]\n> HEED first.",
    "> [!CAUTION]\n> HEED first.",
    "> [!IMPORTANT]\n>\n> HEED first.",
    "> Warning: HEED\n> over two lines.",
    "!!! warning\n    HEED first.",
    "!!! danger \"Mind the gap\"\n\n    HEED first.\n\n    And more.",
    "??? caution\n    HEED first.",
    ":::caution\nHEED first.\n:::",
    ":::danger Take care\n\nHEED first.\n\n:::",
    "::: warning\nHEED first.\n:::",
    "**Warning:** HEED first.",
    "**WARNING** HEED first.",
    "__Caution__: HEED first.",
    "Warning: HEED first.",
    "WARNING - HEED first.",
    "Important: HEED first.",
    "Note: do not go on without HEED.",
    "**NOTE:** never do this without HEED.",
    "Do not start before HEED is there.",
    "Never do this without HEED.",
    "Make sure that HEED is there.",
    "Before you start, get HEED.",
    "You will need HEED for this.",
    "**Prerequisites**\n\n- HEED\n- a second thing",
    "Prerequisites:\n\n1. HEED\n2. a second thing",
    "**Requirements:**\n\nHEED and a second thing.",
    "Before you begin:\n\n- HEED",
    "- a first point\n- **Warning:** HEED first.\n- a third point",
    "* ⚠️ HEED first.\n* another point",
    "| level | what |\n|---|---|\n| info | nothing |\n| Warning: | HEED first |",
    "| what | mind |\n|---|---|\n| a | ok |\n| b | ⚠ HEED |",
    "<div class=\"alert alert-warning\">\nHEED first.\n</div>",
    "<div class=\"warning\">\n\nHEED first.\n\n</div>",
    "<aside class=\"caution\">HEED first.</aside>",
    "<p><strong>Warning</strong>: HEED first.</p>",
    "<details><summary>Warning</summary>\n\nHEED first.\n\n</details>",
    "⚠️ HEED first.",
    "🚨 HEED first.",
    ":warning: HEED first.",
    "{{% alert title=\"Warning\" color=\"warning\" %}}\nHEED first.\n{{% /alert %}}",
    "{{< caution >}}\n\nHEED first.\n\n{{< /caution >}}",
    "{{< hint danger >}}\nHEED first.\n{{< /hint >}}",
    "WARNING: HEED first.\nIn the manner of AsciiDoc.",
    "[CAUTION]\nHEED first.",
    "_Heads up_: HEED first.",
    "NB: HEED first.",
    "**This cannot be undone:** HEED. This deletes it.",
    "This will delete everything but HEED.",
];
/// None of these has to be shown.
const SILENT: &[&str] = &[
    "The log shows a warning when HEED is near.",
    "Warnings about HEED go to the channel.",
    "Warning thresholds of HEED are at 80 percent.",
    "Note that HEED is cached for a day.",
    "Important figures of HEED stand on the dashboard.",
    "> A quote about HEED of somebody.",
    "!!! note\n    HEED is a colour.",
    ":::tip\nHEED is a colour.\n:::",
    "- HEED is one of the points\n- and this another",
];

const FILLER: &str = "The gondola of the northern slope hangs on two cables of forty metres, and its cabin holds twelve people with their skis and a dog. ";
const COMMAND: &str =
    "To calibrate the frobnicator, turn the crank:\n\n```sh\nfrobctl calibrate --crank\n```\n";

/// A page with the caution in the section of the command, which is too long to be shown whole.
fn beside(form: &str) -> String {
    let filler = format!("{}\n\n", FILLER.repeat(7)).repeat(2);
    format!("# Page\n\n## Calibrate the frobnicator\n\n{form}\n\n{filler}{COMMAND}")
}

/// A page with it above the section of the command.
fn above(form: &str) -> String {
    format!(
        "# Page\n\n## Frobnicators\n\n{form}\n\n### Colours\n\nThey are green.\n\n### Calibrate the frobnicator\n\n{COMMAND}"
    )
}

fn shown(corpus: &Corpus, path: &str, heading: &str, question: &str) -> Shown {
    let section = corpus
        .generation
        .scope(path)
        .rfind(|n| {
            corpus.generation.section(*n).1.heading_path.last().is_some_and(|h| h == heading)
        })
        .unwrap_or_else(|| panic!("{path} has no {heading}"));
    let asked = Question::parse(question).unwrap();
    let shown = compose::compose(corpus, section, question, &arms::look_up(&asked, corpus));
    for (number, passage) in shown.warnings.iter().chain([&shown.main]).chain(&shown.following) {
        let cited = citation::cite(corpus, *number, passage, 1.0, false);
        citation::check(corpus, &cited).unwrap_or_else(|e| panic!("{path}: {e}"));
    }
    shown
}

fn warned(shown: &Shown) -> bool {
    shown.warnings.iter().any(|(_, p)| p.text.contains("HEED"))
        || shown
            .main
            .1
            .text
            .find("HEED")
            .is_some_and(|at| Some(at) < shown.main.1.text.find("frobctl"))
}

#[test]
fn a_caution_in_the_section_or_above_it_is_always_shown() {
    let mut tree = String::new();
    for (n, form) in FORMS.iter().chain(SILENT).enumerate() {
        tree.push_str(&format!("//- a{n}.md\n{}\n//- b{n}.md\n{}\n", beside(form), above(form)));
    }
    let fixture = Fixture::lexical(&tree);
    let corpora = fixture.service().snapshot().corpora();
    let mut faults = Vec::new();
    for (n, form) in FORMS.iter().chain(SILENT).enumerate() {
        for place in ["a", "b"] {
            let shown = shown(
                &corpora[0],
                &format!("{place}{n}.md"),
                "Calibrate the frobnicator",
                "how do I calibrate the frobnicator",
            );
            assert!(shown.main.1.text.contains("frobctl calibrate"), "{form}");
            if warned(&shown) != (n < FORMS.len()) {
                faults.push(format!("{place}: {form}"));
            }
        }
    }
    assert!(
        faults.is_empty(),
        "{} of {}:\n{}",
        faults.len(),
        2 * (FORMS.len() + SILENT.len()),
        faults.join("\n--\n")
    );
}

#[test]
fn sections_of_prerequisites_before_it_are_shown() {
    let mut tree = String::new();
    let headings = [
        "Prerequisites",
        "Before you begin",
        "⚠ Warning",
        "Requirements",
        "Safety",
        "**Important**",
        "What you need",
        "Pre-requisites",
    ];
    for (n, heading) in headings.iter().enumerate() {
        tree.push_str(&format!(
            "//- c{n}.md\n# Page\n\n## {heading}\n\nHEED and a lamp.\n\n## Calibrate the frobnicator\n\n{COMMAND}\n//- d{n}.md\n# Page\n\n## Work\n\n### {heading}\n\n- HEED\n\n### Steps\n\n#### Calibrate the frobnicator\n\n{COMMAND}\n"
        ));
    }
    tree.push_str(&format!("//- e0.md\n# Page\n\n## Other work\n\n### Prerequisites\n\nHEED\n\n## Work\n\n### Calibrate the frobnicator\n\n{COMMAND}"));
    tree.push_str(&format!("//- e1.md\n# Page\n\n## Calibrate the frobnicator\n\n{COMMAND}\n## Warning signs of wear\n\nHEED\n"));
    let fixture = Fixture::lexical(&tree);
    let corpora = fixture.service().snapshot().corpora();
    for (n, heading) in headings.iter().enumerate() {
        for place in ["c", "d"] {
            let shown = shown(
                &corpora[0],
                &format!("{place}{n}.md"),
                "Calibrate the frobnicator",
                "calibrate the frobnicator",
            );
            assert!(warned(&shown), "{place}: {heading}");
        }
    }
    for page in ["e0.md", "e1.md"] {
        assert!(
            !warned(&shown(
                &corpora[0],
                page,
                "Calibrate the frobnicator",
                "calibrate the frobnicator"
            )),
            "{page}"
        );
    }
}

const ALERT: &str = "\
//- alerts/FrobStuck.md
# FrobStuck

The frobnicator does not turn.

## Meaning

It has not turned for 5 minutes.

## Impact

Nothing is frobbed.

## Diagnosis

Look at the log of the crank.

## Mitigation

> **Warning:** hands off the crank.

```sh
frobctl unstick --force
```

### If that fails

```sh
frobctl replace
```
//- many.md
# Alerts: cranks

## CrankSlow

Below 10 turns a minute.

### Meaning

It is slow.

### Mitigation

```sh
frobctl oil
```

## CrankGone

Nobody sees it.
//- other.md
# Green

Colours of things.
";

#[test]
fn an_overview_comes_with_what_to_do() {
    let fixture = Fixture::lexical(ALERT);
    let service = fixture.service();
    let corpora = service.snapshot().corpora();
    for (heading, question) in [
        ("FrobStuck", "FrobStuck"),
        ("Meaning", "FrobStuck fired, what now"),
        ("Impact", "help with FrobStuck"),
    ] {
        let shown = shown(&corpora[0], "alerts/FrobStuck.md", heading, question);
        let texts: Vec<&str> = shown.following.iter().map(|(_, p)| p.text.as_str()).collect();
        assert_eq!(texts.len(), 2, "{heading}: {texts:?}");
        assert!(
            texts[0].starts_with("## Mitigation")
                && texts[0].contains("hands off")
                && texts[0].contains("unstick")
        );
        assert!(texts[1].contains("frobctl replace"));
    }
    for (heading, count) in [("CrankSlow", 1), ("CrankGone", 0)] {
        let shown = shown(&corpora[0], "many.md", heading, heading);
        assert_eq!(shown.following.len(), count, "{heading}");
        assert!(shown.following.iter().all(|(_, p)| p.text.contains("frobctl oil")));
    }
    let by_words = shown(&corpora[0], "alerts/FrobStuck.md", "FrobStuck", "FrobStuck diagnosis");
    assert!(
        by_words.following[0].1.text.starts_with("## Diagnosis"),
        "the question's own words come first"
    );
    for question in ["what is FrobStuck", "how long until FrobStuck"] {
        assert!(
            shown(&corpora[0], "alerts/FrobStuck.md", "FrobStuck", question).following.is_empty(),
            "{question}"
        );
    }
    assert!(
        shown(&corpora[0], "alerts/FrobStuck.md", "Mitigation", "FrobStuck").following.is_empty()
    );
    assert!(shown(&corpora[0], "other.md", "Green", "green").following.is_empty());
    let reply = service.ask(&request("FrobStuck")).unwrap();
    if reply.band == Band::Answer {
        assert!(reply.answer.contains("frobctl unstick --force"), "{}", reply.answer);
        assert!(reply.citations.iter().any(|c| c.heading == "Mitigation"), "{:?}", reply.citations);
    }
}

#[test]
fn a_preview_shows_lines_that_say_something() {
    let rows: String = (0..120)
        .map(|n| format!("| host-{n} | {} | a zebra of the plains |\n", 9000 + n))
        .collect();
    let tree = format!(
        "//- t.md\n# Zebra\n\n## Zebra hosts\n\n| host | port | purpose |\n|:---|---|---|\n{rows}\n## Zebra commands\n\n```sh\nzebra --stripes\nzebra --black\n```\n\n## Zebra mind\n\n:::caution\nA zebra kicks.\nIt bites, too.\n:::\n"
    );
    let fixture = Fixture::lexical(&tree);
    let service = fixture.service();
    let reply = service
        .ask(&Request { k: Some(20), ..request("what is the wombat of the zebra") })
        .unwrap();
    let nearest = reply.refusal.expect("nothing of a wombat").nearest;
    assert!(nearest.len() >= 3, "{nearest:?}");
    for near in nearest {
        for line in near.preview.lines() {
            let marks = ["```", ":::", "|:-", "|--", "| ---"];
            assert!(
                !marks.iter().any(|m| line.starts_with(m)),
                "{}: {}",
                near.heading,
                near.preview
            );
        }
        let lines = if near.heading == "Zebra" { 0 } else { 2 };
        assert!(near.preview.lines().count() >= lines, "{}: {}", near.heading, near.preview);
    }
}
