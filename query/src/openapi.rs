//! The OpenAPI 3.1 description of the HTTP API, made from the types that requests are read into and
//! replies are written from. Each route describes its operations where it is added
//! ([`crate::http::openapi`] collects them), so the description cannot miss one.

use runbook_shared::limits::BODY_BYTES_MAX;
use schemars::generate::{Contract, SchemaSettings};
use schemars::transform::{Transform, transform_subschemas};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// What makes the schema of a type.
type SchemaOf = fn(&mut SchemaGenerator) -> Schema;

/// Statuses with the code of the error that each tells.
pub(crate) type Errors = &'static [(u16, &'static str)];

/// The checks that every request passes.
const OF_EVERY_REQUEST: Errors = &[
    (400, "bad_host"),
    (401, "no_token"),
    (403, "host_not_allowed"),
    (403, "origin_not_allowed"),
    (429, "too_many_requests"),
];
/// The same of a POST.
const OF_EVERY_POST: Errors = &[(413, "body_too_large"), (415, "not_json")];

/// The media type of everything but text and pages.
const JSON: &str = "application/json";

/// One method of one route: what it takes and what it gives.
#[derive(Clone)]
pub(crate) struct Operation {
    method: &'static str,
    tag: &'static str,
    name: &'static str,
    about: &'static str,
    path: Option<&'static str>,
    query: Option<SchemaOf>,
    session: bool,
    body: Vec<(&'static str, SchemaOf)>,
    replies: Vec<Given>,
    errors: Vec<(u16, &'static str)>,
    error: SchemaOf,
}

/// One form of a reply.
#[derive(Clone)]
struct Given {
    status: u16,
    kind: &'static str,
    about: &'static str,
    schema: Option<SchemaOf>,
}

fn registered<T: JsonSchema>(schemas: &mut SchemaGenerator) -> Schema {
    schemas.subschema_for::<T>()
}

fn text(_: &mut SchemaGenerator) -> Schema {
    schemars::json_schema!({"type": "string"})
}

impl Operation {
    fn new(method: &'static str, name: &'static str, about: &'static str) -> Self {
        Self {
            method,
            tag: "",
            name,
            about,
            path: None,
            query: None,
            session: false,
            body: Vec::new(),
            replies: Vec::new(),
            errors: OF_EVERY_REQUEST.to_vec(),
            error: registered::<ErrorReply>,
        }
    }

    /// A GET; `name` is unique among all operations.
    pub(crate) fn get(name: &'static str, about: &'static str) -> Self {
        Self::new("get", name, about)
    }

    /// A POST.
    pub(crate) fn post(name: &'static str, about: &'static str) -> Self {
        Self::new("post", name, about).errors(OF_EVERY_POST)
    }

    /// A DELETE.
    pub(crate) fn delete(name: &'static str, about: &'static str) -> Self {
        Self::new("delete", name, about)
    }

    /// The group that it stands in.
    pub(crate) fn tagged(mut self, tag: &'static str) -> Self {
        self.tag = tag;
        self
    }

    /// What the part of the path in braces is.
    pub(crate) fn path(mut self, about: &'static str) -> Self {
        self.path = Some(about);
        self
    }

    /// A query string with the keys of a type.
    pub(crate) fn query<T: JsonSchema>(mut self) -> Self {
        // Its keys become parameters, so the type itself is none of the components.
        self.query = Some(T::json_schema);
        self
    }

    /// The key `session` beside those of the query string or the body.
    pub(crate) fn session(mut self) -> Self {
        self.session = true;
        self
    }

    /// A JSON body.
    pub(crate) fn body<T: JsonSchema>(mut self) -> Self {
        self.body.push((JSON, registered::<T>));
        self
    }

    /// The same body as a form.
    pub(crate) fn form<T: JsonSchema>(mut self) -> Self {
        self.body.push(("application/x-www-form-urlencoded", registered::<T>));
        self
    }

    /// A reply in JSON.
    pub(crate) fn json<T: JsonSchema>(mut self, status: u16, about: &'static str) -> Self {
        let schema: Option<SchemaOf> = Some(registered::<T>);
        self.replies.push(Given { status, kind: JSON, about, schema });
        self
    }

    /// A reply of another kind.
    pub(crate) fn other(mut self, status: u16, kind: &'static str, about: &'static str) -> Self {
        let schema = kind.starts_with("text/").then_some(text as SchemaOf);
        self.replies.push(Given { status, kind, about, schema });
        self
    }

    /// A reply without a body.
    pub(crate) fn bare(mut self, status: u16, about: &'static str) -> Self {
        self.replies.push(Given { status, kind: "", about, schema: None });
        self
    }

    /// Errors that it can end with.
    pub(crate) fn errors(mut self, errors: Errors) -> Self {
        self.errors.extend(errors);
        self
    }

    /// Errors come in the shape of this type, too.
    pub(crate) fn errors_as<T: JsonSchema>(mut self) -> Self {
        fn either<T: JsonSchema>(schemas: &mut SchemaGenerator) -> Schema {
            let kinds = [schemas.subschema_for::<ErrorReply>(), schemas.subschema_for::<T>()];
            schemars::json_schema!({"anyOf": kinds})
        }
        self.error = either::<T>;
        self
    }

    fn described(&self, schemas: &mut Schemas, path: &str) -> Value {
        let mut operation = Map::new();
        operation.insert("operationId".into(), json!(self.name));
        operation.insert("summary".into(), json!(self.about));
        operation.insert("tags".into(), json!([self.tag]));
        let parameters = self.parameters(schemas, path);
        if !parameters.is_empty() {
            operation.insert("parameters".into(), json!(parameters));
        }
        if !self.body.is_empty() {
            let content: Map<String, Value> = self
                .body
                .iter()
                .map(|(kind, schema)| {
                    let schema = schema(&mut schemas.taken);
                    if self.session {
                        schemas.add_session(&schema);
                    }
                    ((*kind).to_owned(), json!({"schema": schema}))
                })
                .collect();
            operation.insert("requestBody".into(), json!({"required": true, "content": content}));
        }
        operation.insert("responses".into(), self.responses(schemas));
        Value::Object(operation)
    }

    fn parameters(&self, schemas: &mut Schemas, path: &str) -> Vec<Value> {
        let mut parameters = Vec::new();
        if let (Some(about), Some(name)) = (self.path, braced(path)) {
            let schema = json!({"type": "string"});
            parameters.push(json!({"name": name, "in": "path", "required": true, "description": about, "schema": schema}));
        }
        let Some(query) = self.query else { return parameters };
        let schema = query(&mut schemas.taken);
        let required =
            schema.get("required").and_then(Value::as_array).cloned().unwrap_or_default();
        let properties = schema.get("properties").and_then(Value::as_object).cloned();
        for (name, mut schema) in properties.unwrap_or_default() {
            let about = schema.as_object_mut().and_then(|s| s.remove("description"));
            let required = required.iter().any(|r| *r == name.as_str());
            parameters.push(json!({"name": name, "in": "query", "required": required, "description": about.unwrap_or_default(), "schema": schema}));
        }
        if self.session {
            parameters.push(json!({"name": "session", "in": "query", "required": false, "description": SESSION, "schema": {"type": "string"}}));
        }
        parameters
    }

    fn responses(&self, schemas: &mut Schemas) -> Value {
        let mut responses: BTreeMap<u16, Value> = BTreeMap::new();
        for given in &self.replies {
            let response = responses
                .entry(given.status)
                .or_insert_with(|| json!({"description": given.about}));
            if !given.kind.is_empty() {
                let schema = given.schema.map(|s| s(&mut schemas.given));
                let media = schema.map_or_else(|| json!({}), |s| json!({"schema": s}));
                response["content"][given.kind] = media;
            }
        }
        let mut errors: BTreeMap<u16, Vec<&str>> = BTreeMap::new();
        for (status, code) in &self.errors {
            let codes = errors.entry(*status).or_default();
            if !codes.contains(code) {
                codes.push(code);
            }
        }
        for (status, codes) in errors {
            let schema = (self.error)(&mut schemas.given);
            let codes: Vec<String> = codes.iter().map(|c| format!("`{c}`")).collect();
            // A page tells an error as a page, and what never reached it tells it as every route does.
            let response = responses.entry(status).or_insert_with(|| json!({"description": ""}));
            let about = response["description"].as_str().filter(|a| !a.is_empty());
            let about = about.map_or_else(String::new, |a| format!("{a}; "));
            response["description"] = json!(format!("{about}{}", codes.join(", ")));
            response["content"][JSON] = json!({"schema": schema});
        }
        let named = responses.into_iter().map(|(status, r)| (status.to_string(), r));
        Value::Object(named.collect())
    }
}

/// What a session is, where it is a key beside others.
const SESSION: &str = "on whose behalf; a new one when left out";

/// The body of every error.
#[derive(serde::Serialize, JsonSchema)]
pub(crate) struct ErrorReply {
    /// What went wrong.
    pub(crate) error: ErrorTold,
    /// Names the line in the server's log.
    pub(crate) request_id: String,
}

/// An error as a client sees it.
#[derive(serde::Serialize, JsonSchema)]
pub(crate) struct ErrorTold {
    /// A stable word.
    pub(crate) code: &'static str,
    /// What went wrong.
    pub(crate) message: String,
    /// What to do about it.
    pub(crate) hint: String,
}

/// Schemas of what is sent and of what comes back: a key with a default may be left out of the first,
/// and is always there in the second.
struct Schemas {
    taken: SchemaGenerator,
    given: SchemaGenerator,
}

impl Schemas {
    fn new() -> Self {
        let generator = |contract: Contract| {
            SchemaSettings::draft2020_12()
                .with(|s| {
                    s.definitions_path = "/components/schemas".into();
                    s.meta_schema = None;
                    s.contract = contract;
                })
                .with_transform(Plain)
                .into_generator()
        };
        Self { taken: generator(Contract::Deserialize), given: generator(Contract::Serialize) }
    }

    /// Adds the key that every request of the tree may have to the component that a schema names.
    fn add_session(&mut self, schema: &Schema) {
        let name = schema.get("$ref").and_then(Value::as_str).and_then(|r| r.rsplit('/').next());
        let component = name.and_then(|n| self.taken.definitions_mut().get_mut(n));
        if let Some(component) = component {
            let session = json!({"type": ["string", "null"], "description": SESSION});
            component["properties"]["session"] = session;
        }
    }

    /// All components, by name. A type that is both sent and given has one form of its own for each
    /// unless the two are equal.
    fn components(mut self) -> BTreeMap<String, Value> {
        let mut all: BTreeMap<String, Value> =
            self.given.take_definitions(true).into_iter().collect();
        for (name, schema) in self.taken.take_definitions(true) {
            let earlier = all.insert(name.clone(), schema.clone());
            debug_assert!(earlier.is_none_or(|e| e == schema), "two forms of {name}");
        }
        all
    }
}

/// Doc comments as they are read outside of Rust: names in brackets lose these.
#[derive(Clone)]
struct Plain;

impl Transform for Plain {
    fn transform(&mut self, schema: &mut Schema) {
        if let Some(Value::String(about)) = schema.get_mut("description") {
            *about = about.replace("[`", "`").replace("`]", "`").replace('\n', " ");
        }
        transform_subschemas(self, schema);
    }
}

/// The name in braces of a path.
fn braced(path: &str) -> Option<&str> {
    Some(path.split_once('{')?.1.split_once('}')?.0.trim_start_matches('*'))
}

/// The whole description, of paths with their operations.
pub(crate) fn document(operations: &[(&'static str, Operation)]) -> Value {
    let mut schemas = Schemas::new();
    let mut paths = Map::new();
    for (path, operation) in operations {
        let described = operation.described(&mut schemas, path);
        paths.entry(path.replace("{*", "{")).or_insert_with(|| json!({}))[operation.method] =
            described;
    }
    let tags: Vec<Value> =
        TAGS.iter().map(|(name, about)| json!({"name": name, "description": about})).collect();
    let about = format!(
        "Questions to runbooks over HTTP, answered with citations or refused. A GET may be a HEAD. \
         Another method gives 405 `method_not_allowed`, another path 404 `not_found`, a body over \
         {BODY_BYTES_MAX} bytes 413. Unknown keys are errors."
    );
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Runbook Ask",
            "version": "1",
            "description": about,
            "license": {"name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0"},
        },
        "servers": [{"url": "/", "description": "the daemon, 127.0.0.1:8080 unless told otherwise"}],
        "tags": tags,
        "paths": paths,
        "components": {"schemas": schemas.components()},
    })
}

/// The groups of operations.
const TAGS: &[(&str, &str)] = &[
    ("questions", "answers, sections, and what a user says of them"),
    ("agents", "what coding agents use besides"),
    ("tree", "documents, scratch and artifacts as files, and a shell over them"),
    ("daemon", "what is served, and how the daemon does"),
    ("page", "the page for a browser"),
];
