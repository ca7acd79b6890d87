//! What a run of a suite does.

use crate::support::Fixture;
use serde_json::Value;

#[test]
fn nothing_is_approved_until_it_is() {
    let fixture = Fixture::new();
    fixture.run(&[]).expect(1).says("gold section was never approved").says("no baseline");
    fixture.run(&["--approve"]).expect(1).stays_silent_on("approved").says("no baseline");
    fixture.run(&["--update-baseline"]).expect(0);
    fixture.run(&[]).expect(0).stays_silent_on("never approved").stays_silent_on("baseline (");
}

#[test]
fn a_changed_gold_section_fails_its_case_until_it_is_approved() {
    let fixture = Fixture::approved();
    fixture.replace("tree/restore.md", "about 20 minutes", "about 30 minutes");
    fixture
        .run(&[])
        .expect(1)
        .says("gold section changed, run with --approve: restore.md#Restore the nightly dump");
    fixture.run(&["--approve"]).expect(0).stays_silent_on("gold section changed");
    fixture.run(&[]).expect(0);
}

#[test]
fn a_change_elsewhere_and_blank_lines_break_nothing() {
    let fixture = Fixture::approved();
    fixture.replace("tree/other.md", "of note", "at all");
    fixture.replace("tree/restore.md", "\nIt takes", "\n\nIt takes");
    fixture.run(&[]).expect(0).stays_silent_on("gold section");
}

#[test]
fn approvals_are_neither_missing_nor_left_over() {
    let fixture = Fixture::approved();
    let file = "golden/sample.approved.json";
    let mut approved: Value = serde_json::from_str(&fixture.read(file)).unwrap();
    assert_eq!(approved["a1"]["restore.md#Restore the nightly dump"].as_str().unwrap().len(), 16);
    approved["gone"] = serde_json::json!({"restore.md#Restore": "0"});
    let with_orphan = approved.to_string();
    approved.as_object_mut().unwrap().remove("gone");
    approved.as_object_mut().unwrap().remove("a2");
    fixture.write(file, &with_orphan);
    fixture.run(&[]).expect(1).says("gone: approved, but no longer gold: restore.md#Restore");
    fixture.write(file, &approved.to_string());
    fixture
        .run(&[])
        .expect(1)
        .says("never approved, run with --approve: restore.md#Check the dump");
    fixture.replace("tree/restore.md", "## Check the dump", "## Look at the dump");
    fixture
        .run(&["--approve"])
        .expect(1)
        .says("gold section is not there: restore.md#Check the dump");
}

#[test]
fn a_total_below_the_baseline_exits_with_1() {
    let fixture = Fixture::approved();
    let file = "golden/sample.baseline.json";
    let mut baseline: Value = serde_json::from_str(&fixture.read(file)).unwrap();
    assert_eq!(baseline["none"]["passed"][1], 5);
    assert!(baseline["none"]["passed"][0].as_u64().unwrap() < 5, "one case cannot pass");
    baseline["none"]["passed"] = serde_json::json!([5, 5]);
    fixture.write(file, &baseline.to_string());
    fixture.run(&[]).expect(1).says("below the baseline (1)").says("was 5/5");
    fixture.run(&["--update-baseline"]).expect(0);
    fixture.run(&[]).expect(0);
}

#[test]
fn a_ranking_is_shown_as_a_diff() {
    let fixture = Fixture::approved();
    let file = "golden/sample.ranking.txt";
    let kept = fixture.read(file);
    assert!(kept.contains("a1\t1\trestore.md#Restore the nightly dump"), "{kept}");
    fixture.replace(file, "a1\t1\t", "a1\t7\t");
    fixture.run(&[]).expect(0).says("-a1\t7\trestore.md").says("+a1\t1\trestore.md");
    fixture.run(&["--strict"]).expect(1);
    fixture.run_with(&["--strict"], &[("UPDATE", "1")]).expect(0);
    assert_eq!(fixture.read(file), kept);
}

#[test]
fn the_scorers_are_reported_apart() {
    let fixture = Fixture::approved();
    let ran = fixture.run(&["--json"]).expect(0);
    let report: Value = serde_json::from_str(&ran.stdout).unwrap();
    let suite = &report["suites"][0];
    let figures = suite["figures"].as_object().unwrap();
    assert_eq!(figures["citations_valid"]["part"], figures["citations_valid"]["of"]);
    assert_eq!(figures["route"], serde_json::json!({"part": 1, "of": 1}));
    assert_eq!(figures["reason_right"], serde_json::json!({"part": 1, "of": 1}));
    assert_eq!(figures["gold_first"]["of"], 3);
    let case = |id: &str| {
        suite["cases"].as_array().unwrap().iter().find(|c| c["id"] == id).unwrap().clone()
    };
    assert_eq!(case("a1")["gold"]["rank"], 1);
    assert_eq!(case("r1")["outcome"], "refused");
    assert_eq!(case("a3")["passed"], false);
}

#[test]
fn junit_and_html_hold_any_question() {
    let fixture = Fixture::approved();
    let (xml, html) = (fixture.path("out.xml"), fixture.path("out.html"));
    fixture.run(&["--junit", xml.to_str().unwrap(), "--html", html.to_str().unwrap()]).expect(0);
    let text = fixture.read("out.xml");
    let document = roxmltree::Document::parse(&text).unwrap();
    let tests = document.descendants().filter(|n| n.has_tag_name("testcase"));
    let named: Vec<&str> = tests.filter_map(|n| n.attribute("name")).collect();
    assert_eq!(named.len(), 6, "five cases and the gates");
    assert!(named.iter().any(|n| n.contains("zymurgy <b>&")), "{named:?}");
    let suite = document.descendants().find(|n| n.has_tag_name("testsuite")).unwrap();
    let failed = document.descendants().filter(|n| n.has_tag_name("failure")).count();
    assert_eq!(suite.attribute("failures"), Some(failed.to_string().as_str()));
    let page = fixture.read("out.html");
    for foreign in
        ["http:", "https:", "src=", "href=", "url(", "@import", "<script", "<link", "<b>"]
    {
        assert!(!page.contains(foreign), "{foreign}");
    }
    assert!(page.contains("<svg") && page.contains("zymurgy &lt;b&gt;&amp;"));
}

#[test]
fn what_cannot_be_run_says_so() {
    let fixture = Fixture::new();
    fixture.write("cases/sample.jsonl", "{\"id\":\"a\"}\n");
    let ran = fixture.run(&[]).expect(1);
    assert!(ran.stderr.contains("sample.jsonl` line 1"), "{}", ran.stderr);
    fixture.run(&["--no-such-flag"]).expect(2);
}
