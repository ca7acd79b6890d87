//! Results of tools: text for reading and the same as structured content, both bounded.
//!
//! A client may show a model either part or both, and cuts or refuses what is too long, so both
//! together stay far below the 25,000 tokens at which clients do that.

use rmcp::model::{CallToolResult, ContentBlock};
use serde_json::{Value, json};

/// The longest text of a result, in characters.
pub const TEXT_CHARS_MAX: usize = 24_000;
/// The largest structured content, in bytes of JSON.
pub const STRUCTURED_BYTES_MAX: usize = 48_000;

/// A result; `text` for reading.
#[must_use]
pub fn done(text: String, structured: Value) -> CallToolResult {
    let mut result = CallToolResult::success(vec![ContentBlock::text(bounded(text))]);
    result.structured_content = Some(trimmed(structured));
    result
}

/// A tool's error, as a result that the agent reads.
#[must_use]
pub fn failed(code: &str, message: &str, hint: &str, structured: Option<Value>) -> CallToolResult {
    let hint_line = if hint.is_empty() { String::new() } else { format!("\nhint: {hint}") };
    let text = format!("error: {message}{hint_line}");
    let mut result = CallToolResult::error(vec![ContentBlock::text(bounded(text))]);
    let mut value = structured.unwrap_or_else(|| json!({}));
    value["error"] = json!({"code": code, "message": message, "hint": hint});
    result.structured_content = Some(trimmed(value));
    result
}

/// Text up to the limit, with a last line that says what is missing.
fn bounded(text: String) -> String {
    match text.char_indices().nth(TEXT_CHARS_MAX) {
        None => text,
        Some((at, _)) => {
            let cut = text[..at].rfind('\n').unwrap_or(at);
            let missing = text[cut..].chars().count();
            format!("{}\n[{missing} more characters are not shown]", &text[..cut])
        }
    }
}

/// Structured content up to the limit: lists lose their last entries, then long texts their ends, and
/// `truncated` says so.
fn trimmed(mut value: Value) -> Value {
    let size = |v: &Value| v.to_string().len();
    if size(&value) <= STRUCTURED_BYTES_MAX {
        return value;
    }
    for key in ["related", "sources", "results", "citations", "data"] {
        while size(&value) > STRUCTURED_BYTES_MAX {
            let Some(list) = value.get_mut(key).and_then(Value::as_array_mut) else { break };
            if list.len() <= 1 {
                break;
            }
            list.truncate(list.len() / 2);
        }
    }
    let mut most = STRUCTURED_BYTES_MAX / 4;
    while size(&value) > STRUCTURED_BYTES_MAX && most > 200 {
        shorten(&mut value, most);
        most /= 2;
    }
    if value.is_object() {
        value["truncated"] = json!(true);
    }
    value
}

fn shorten(value: &mut Value, most: usize) {
    match value {
        Value::String(text) if text.len() > most => {
            let mut end = most;
            while !text.is_char_boundary(end) {
                end -= 1;
            }
            text.truncate(end);
            text.push_str(" [...]");
        }
        Value::Array(all) => all.iter_mut().for_each(|v| shorten(v, most)),
        Value::Object(all) => all.values_mut().for_each(|v| shorten(v, most)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_parts_are_bounded() {
        let structured = json!({
            "answer": "x".repeat(300_000),
            "citations": (0..400).map(|n| json!({"quote": "y".repeat(900), "n": n})).collect::<Vec<_>>(),
        });
        let result = done("line\n".repeat(50_000), structured);
        let text = result.content[0].as_text().unwrap().text.clone();
        assert!(text.chars().count() <= TEXT_CHARS_MAX + 60 && text.contains("more characters"));
        let structured = result.structured_content.unwrap();
        assert!(structured.to_string().len() <= STRUCTURED_BYTES_MAX + 100);
        assert_eq!(structured["truncated"], true);
        assert!(structured["citations"].as_array().is_some_and(|c| !c.is_empty()));
        let small = done("a".into(), json!({"a": 1}));
        assert_eq!(small.structured_content, Some(json!({"a": 1})));
        let error = failed("bad", "no such thing", "list what is there", None);
        assert_eq!(error.is_error, Some(true));
    }
}
