//! Parameters of a tool: one table gives both the schema that clients see and the check of what they
//! send, so that the two cannot differ.

use serde_json::{Map, Value, json};

/// What a parameter holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    /// Text.
    Text,
    /// A whole number within these bounds.
    Count(u64, u64),
    /// True or false.
    Switch,
    /// A list of texts.
    Texts,
    /// One of these words.
    Word(&'static [&'static str]),
}

/// A parameter.
#[derive(Clone, Copy, Debug)]
pub struct Param {
    /// Its name.
    pub name: &'static str,
    /// What it holds.
    pub kind: Type,
    /// Whether it must be there.
    pub required: bool,
    /// What it means.
    pub about: &'static str,
}

/// Arguments that have passed the check.
#[derive(Clone, Debug, Default)]
pub struct Args(Map<String, Value>);

/// The JSON Schema of parameters: an object of plain types, closed.
#[must_use]
pub fn schema(params: &[Param]) -> Map<String, Value> {
    let properties: Map<String, Value> = params
        .iter()
        .map(|p| {
            let mut property = match p.kind {
                Type::Text => json!({"type": "string"}),
                Type::Count(least, most) => {
                    json!({"type": "integer", "minimum": least, "maximum": most})
                }
                Type::Switch => json!({"type": "boolean"}),
                Type::Texts => json!({"type": "array", "items": {"type": "string"}}),
                Type::Word(words) => json!({"type": "string", "enum": words}),
            };
            property["description"] = json!(p.about);
            (p.name.to_owned(), property)
        })
        .collect();
    let required: Vec<&str> = params.iter().filter(|p| p.required).map(|p| p.name).collect();
    let mut schema = Map::new();
    schema.insert("type".into(), json!("object"));
    schema.insert("properties".into(), Value::Object(properties));
    schema.insert("required".into(), json!(required));
    schema.insert("additionalProperties".into(), json!(false));
    schema
}

impl Args {
    /// Checks what was sent against a tool's parameters.
    ///
    /// # Errors
    /// A message that names what is wrong and the right names.
    pub fn check(
        tool: &str,
        params: &[Param],
        sent: Option<Map<String, Value>>,
    ) -> Result<Self, String> {
        let mut sent = sent.unwrap_or_default();
        let names = || {
            let named = params.iter().map(|p| {
                if p.required { format!("{} (required)", p.name) } else { p.name.to_owned() }
            });
            let named: Vec<String> = named.collect();
            if named.is_empty() { "none".to_owned() } else { named.join(", ") }
        };
        if let Some(unknown) = sent.keys().find(|k| !params.iter().any(|p| p.name == *k)) {
            let meant = params
                .iter()
                .map(|p| (strsim::damerau_levenshtein(unknown, p.name), p.name))
                .min()
                .filter(|(edits, name)| *edits <= 2.max(name.len() / 3))
                .map_or(String::new(), |(_, name)| format!("; did you mean `{name}`?"));
            return Err(format!(
                "`{tool}` has no parameter `{unknown}`{meant} Its parameters: {}",
                names()
            ));
        }
        // A client that fills every parameter sends null for one that it has nothing for.
        sent.retain(|_, value| !value.is_null());
        for param in params {
            match sent.get(param.name) {
                None if param.required => {
                    return Err(format!(
                        "`{tool}` needs `{}`. Its parameters: {}",
                        param.name,
                        names()
                    ));
                }
                Some(value) if !fits(param.kind, value) => {
                    let shown = value.to_string();
                    let shown: String = shown.chars().take(60).collect();
                    return Err(format!(
                        "`{}` of `{tool}` is {}, not {shown}",
                        param.name,
                        expected(param.kind)
                    ));
                }
                _ => {}
            }
        }
        Ok(Self(sent))
    }

    /// A text; empty when it was left out.
    #[must_use]
    pub fn text(&self, name: &str) -> String {
        self.some_text(name).unwrap_or_default()
    }

    /// A text that may be left out.
    #[must_use]
    pub fn some_text(&self, name: &str) -> Option<String> {
        self.0.get(name).and_then(Value::as_str).map(str::to_owned)
    }

    /// A number that may be left out.
    #[must_use]
    pub fn count(&self, name: &str) -> Option<usize> {
        self.0.get(name).and_then(whole).and_then(|n| usize::try_from(n).ok())
    }

    /// The arguments without some names, as a JSON object.
    #[must_use]
    pub fn without(mut self, names: &[&str]) -> Value {
        self.0.retain(|key, _| !names.contains(&key.as_str()));
        Value::Object(self.0)
    }
}

/// A whole number; `5.0` is one.
fn whole(value: &Value) -> Option<u64> {
    let float = |f: f64| {
        let exact = f.fract() == 0.0 && (0.0..9e15).contains(&f);
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "in range")]
        exact.then_some(f as u64)
    };
    value.as_u64().or_else(|| value.as_f64().and_then(float))
}

fn fits(kind: Type, value: &Value) -> bool {
    match kind {
        Type::Text => value.is_string(),
        Type::Count(least, most) => whole(value).is_some_and(|n| (least..=most).contains(&n)),
        Type::Switch => value.is_boolean(),
        Type::Texts => value.as_array().is_some_and(|a| a.iter().all(Value::is_string)),
        Type::Word(words) => value.as_str().is_some_and(|w| words.contains(&w)),
    }
}

fn expected(kind: Type) -> String {
    match kind {
        Type::Text => "a text".into(),
        Type::Count(least, most) => format!("a whole number from {least} to {most}"),
        Type::Switch => "true or false".into(),
        Type::Texts => "a list of texts".into(),
        Type::Word(words) => format!("one of {}", words.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARAMS: [Param; 3] = [
        Param { name: "question", kind: Type::Text, required: true, about: "" },
        Param { name: "k", kind: Type::Count(1, 50), required: false, about: "" },
        Param { name: "explain", kind: Type::Switch, required: false, about: "" },
    ];

    fn check(sent: &Value) -> Result<Args, String> {
        Args::check("ask", &PARAMS, sent.as_object().cloned())
    }

    #[test]
    fn wrong_names_and_types_are_named() {
        for (sent, part) in [
            (json!({"qurey": "x"}), "no parameter `qurey`"),
            (json!({"qurey": "x"}), "question (required), k, explain"),
            (json!({"questoin": "x"}), "did you mean `question`?"),
            (json!({}), "needs `question`"),
            (json!({"question": null}), "needs `question`"),
            (json!({"question": 5}), "is a text, not 5"),
            (json!({"question": "x", "k": 0}), "a whole number from 1 to 50, not 0"),
            (json!({"question": "x", "k": "5"}), "a whole number"),
            (json!({"question": "x", "explain": "yes"}), "true or false"),
        ] {
            let error = check(&sent).unwrap_err();
            assert!(error.contains(part), "{sent}: {error}");
        }
        let args = check(&json!({"question": "x", "k": 5.0, "explain": null})).unwrap();
        assert_eq!((args.text("question"), args.count("k")), ("x".into(), Some(5)));
    }

    #[test]
    fn the_schema_is_plain_and_closed() {
        let schema = Value::Object(schema(&PARAMS));
        assert_eq!(schema["additionalProperties"], false);
        assert_eq!(schema["required"], json!(["question"]));
        assert_eq!(schema["properties"]["k"]["maximum"], 50);
    }
}
