//! The request gate against the utterances that it was made on, and those that were held out.

use runbook_query::gate::request::refuse;
use std::collections::BTreeMap;

/// A twin that is refused is a fault; of the requests most are refused for the right reason.
#[test]
fn requests_are_refused_and_their_twins_never() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../evals/fit/requests-train.jsonl");
    let mut right: BTreeMap<String, [usize; 2]> = BTreeMap::new();
    for line in std::fs::read_to_string(path).unwrap().lines() {
        let row: serde_json::Value = serde_json::from_str(line).unwrap();
        let (text, label) = (row["text"].as_str().unwrap(), row["label"].as_str().unwrap());
        let found = refuse(text).map_or(serde_json::json!("none"), |r| serde_json::json!(r));
        assert!(label != "none" || found == label, "{found}: {text}");
        let count = right.entry(label.to_owned()).or_default();
        count[0] += usize::from(found == label);
        count[1] += 1;
    }
    assert_eq!(right.len(), 4);
    for (label, [right, all]) in right {
        assert!(all > 100 && right * 100 >= all * 90, "{label}: {right} of {all}");
    }
}

#[test]
fn what_is_pasted_is_no_request() {
    let alert = "[FIRING:1] DiskFull db1\nplease delete old files for me now\n".repeat(20);
    assert_eq!(refuse(&alert), None);
    assert_eq!(refuse("ERROR: please restart the service for me"), None);
    assert_eq!(refuse(""), None);
    assert_eq!(refuse(&"a,".repeat(200)), None);
}
