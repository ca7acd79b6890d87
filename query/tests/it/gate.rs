//! The request gate against the utterances that it was made on, and those that were held out.

use runbook_query::gate::request::refuse;
use std::collections::BTreeMap;

/// A twin that is refused is a fault; of the requests most are refused for the right reason. The rules
/// were made on `train`; the other parts were measured before they were looked at, and then learnt from.
#[test]
fn requests_are_refused_and_their_twins_never() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../evals/fit/requests-train.jsonl");
    let mut right: BTreeMap<(String, String), [usize; 2]> = BTreeMap::new();
    for line in std::fs::read_to_string(path).unwrap().lines() {
        let row: serde_json::Value = serde_json::from_str(line).unwrap();
        let text = |key: &str| row[key].as_str().unwrap().to_owned();
        let found =
            refuse(&text("text")).map_or(serde_json::json!("none"), |r| serde_json::json!(r));
        let label = text("label");
        assert!(label != "none" || found == label.as_str(), "{found}: {}", text("text"));
        let count = right.entry((label.clone(), text("part"))).or_default();
        count[0] += usize::from(found == label.as_str());
        count[1] += 1;
    }
    for ((label, part), [right, all]) in &right {
        let least = if part == "train" { 90 } else { 75 };
        assert!(right * 100 >= all * least, "{label}, {part}: {right} of {all}");
    }
    let twins: usize = right.iter().filter(|(key, _)| key.0 == "none").map(|(_, n)| n[1]).sum();
    let all: usize = right.values().map(|n| n[1]).sum();
    assert!(all > 1000 && twins * 2 > all, "{twins} twins of {all}");
}

#[test]
fn what_is_pasted_is_no_request() {
    let alert = "[FIRING:1] DiskFull db1\nplease delete old files for me now\n".repeat(20);
    assert_eq!(refuse(&alert), None);
    assert_eq!(refuse("ERROR: please restart the service for me"), None);
    assert_eq!(refuse(""), None);
    assert_eq!(refuse(&"a,".repeat(200)), None);
}
