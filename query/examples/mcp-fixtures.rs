//! mcp-fixtures - the server of `/mcp` with the tools, resources and prompts that the official conformance
//! suite asks of a server, in place of this project's own.
//!
//! Everything below the protocol is the product's: the listening loop, the routes, the checks of Host, Origin
//! and Content-Type, bodies, sessions, streams, errors. `evals/mcp-checks` runs the suite against it; it is
//! never installed.
//!
//!     cargo run --release --workspace --example mcp-fixtures

#![expect(deprecated, reason = "the suite tests logging, sampling and subscriptions of 2025-11-25")]

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ClientResult, CompleteRequestParams,
    CompleteResult, CompletionInfo, CreateMessageRequest, ElicitRequest, GetPromptRequestParams,
    GetPromptResponse, GetPromptResult, ListPromptsResult, ListResourceTemplatesResult,
    ListResourcesResult, ListToolsResult, LoggingLevel, LoggingMessageNotificationParam,
    PaginatedRequestParams, ProgressNotificationParam, Prompt, ReadResourceRequestParams,
    ReadResourceResponse, ReadResourceResult, Resource, ResourceTemplate, ServerCapabilities,
    ServerConfig, ServerRequest, SetLevelRequestParams, SubscribeRequestParams, Tool,
    UnsubscribeRequestParams,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer, ServerHandler};
use runbook_query::http::App;
use runbook_query::service::{Options, Service};
use runbook_query::{config, server};
use runbook_shared::locate::Places;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

/// A picture of one pixel, and a sound without a sample.
const PIXEL: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==";
const SILENCE: &str = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA=";
/// Between two messages of one tool.
const PAUSE: Duration = Duration::from_millis(50);

/// Tools without parameters, and what those do that only return something.
const PLAIN: [&str; 11] = [
    "test_simple_text",
    "test_image_content",
    "test_audio_content",
    "test_embedded_resource",
    "test_multiple_content_types",
    "test_error_handling",
    "test_tool_with_logging",
    "test_tool_with_progress",
    "test_elicitation_sep1034_defaults",
    "test_elicitation_sep1330_enums",
    "test_reconnection",
];

#[derive(Clone)]
struct Fixtures;

fn failed(what: impl std::fmt::Display) -> ErrorData {
    ErrorData::internal_error(what.to_string(), None)
}

/// A value of the protocol from its JSON.
fn from<T: DeserializeOwned>(value: Value) -> Result<T, ErrorData> {
    serde_json::from_value(value).map_err(failed)
}

fn text(text: impl Into<String>) -> Result<CallToolResult, ErrorData> {
    from(json!({"content": [{"type": "text", "text": text.into()}]}))
}

fn tool(name: &'static str, schema: &Value) -> Tool {
    let schema = schema.as_object().cloned().unwrap_or_default();
    Tool::new(name, "A fixture of the conformance suite", Arc::new(schema))
}

fn with_text(parameter: &str) -> Value {
    json!({"type": "object", "properties": {parameter: {"type": "string"}}, "required": [parameter]})
}

/// What a tool without an effect returns.
fn content(name: &str) -> Option<Value> {
    let image = json!({"type": "image", "data": PIXEL, "mimeType": "image/png"});
    let resource = |uri: &str, kind: &str, text: &str| json!({"type": "resource", "resource": {"uri": uri, "mimeType": kind, "text": text}});
    let blocks = match name {
        "test_simple_text" => {
            json!([{"type": "text", "text": "This is a simple text response for testing."}])
        }
        "test_image_content" => json!([image]),
        "test_audio_content" => {
            json!([{"type": "audio", "data": SILENCE, "mimeType": "audio/wav"}])
        }
        "test_embedded_resource" => {
            let text = "This is an embedded resource content.";
            json!([resource("test://embedded-resource", "text/plain", text)])
        }
        "test_multiple_content_types" => {
            let data = "{\"test\":\"data\",\"value\":123}";
            json!([
                {"type": "text", "text": "Multiple content types test:"},
                image,
                resource("test://mixed-content-resource", "application/json", data),
            ])
        }
        "test_error_handling" => {
            let said = "This tool intentionally returns an error for testing";
            return Some(json!({"isError": true, "content": [{"type": "text", "text": said}]}));
        }
        "test_reconnection" => json!([{"type": "text", "text": "still here"}]),
        _ => return None,
    };
    Some(json!({"content": blocks}))
}

/// The form that a tool asks its client to fill in, and the words before what came back.
fn form(name: &str, message: &str) -> Option<(Value, &'static str)> {
    let defaults = json!({
        "name": {"type": "string", "default": "John Doe"},
        "age": {"type": "integer", "default": 30},
        "score": {"type": "number", "default": 95.5},
        "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
        "verified": {"type": "boolean", "default": true},
    });
    let titled = |first: &str| {
        json!([
            {"const": "value1", "title": format!("First {first}")},
            {"const": "value2", "title": format!("Second {first}")},
            {"const": "value3", "title": format!("Third {first}")},
        ])
    };
    let options = json!(["option1", "option2", "option3"]);
    let enums = json!({
        "untitledSingle": {"type": "string", "enum": options},
        "titledSingle": {"type": "string", "oneOf": titled("Option")},
        "legacyEnum": {"type": "string", "enum": ["opt1", "opt2", "opt3"],
            "enumNames": ["Option One", "Option Two", "Option Three"]},
        "untitledMulti": {"type": "array", "items": {"type": "string", "enum": options}},
        "titledMulti": {"type": "array", "items": {"anyOf": titled("Choice")}},
    });
    let (message, properties, required, said) = match name {
        "test_elicitation" => {
            let properties = json!({
                "username": {"type": "string", "description": "User's response"},
                "email": {"type": "string", "description": "User's email address"},
            });
            (message, properties, json!(["username", "email"]), "User response")
        }
        "test_elicitation_sep1034_defaults" => {
            ("Please check these values", defaults, json!([]), "Elicitation completed")
        }
        "test_elicitation_sep1330_enums" => {
            ("Please choose", enums, json!([]), "Elicitation completed")
        }
        _ => return None,
    };
    let schema = json!({"type": "object", "properties": properties, "required": required});
    Some((json!({"mode": "form", "message": message, "requestedSchema": schema}), said))
}

type Context = RequestContext<RoleServer>;

async fn asked(context: &Context, params: Value, said: &str) -> Result<CallToolResult, ErrorData> {
    let request = ElicitRequest::new(from(params)?);
    match context.peer.send_request(ServerRequest::ElicitRequest(request)).await {
        Ok(ClientResult::ElicitResult(result)) => {
            let value = serde_json::to_value(&result).map_err(failed)?;
            let action = value["action"].as_str().unwrap_or_default();
            text(format!("{said}: action={action}, content={}", value["content"]))
        }
        Ok(_) => Err(failed("the client answered with something else")),
        Err(e) => Err(failed(e)),
    }
}

async fn sampled(context: &Context, prompt: &str) -> Result<CallToolResult, ErrorData> {
    let message = json!({"role": "user", "content": {"type": "text", "text": prompt}});
    let request =
        CreateMessageRequest::new(from(json!({"messages": [message], "maxTokens": 100}))?);
    match context.peer.send_request(ServerRequest::CreateMessageRequest(request)).await {
        Ok(ClientResult::CreateMessageResult(result)) => {
            let value = serde_json::to_value(&result).map_err(failed)?;
            let said = value["content"]["text"].as_str().unwrap_or_default();
            text(format!("LLM response: {said}"))
        }
        Ok(_) => Err(failed("the client answered with something else")),
        Err(e) => Err(failed(e)),
    }
}

async fn logged(context: &Context) -> Result<CallToolResult, ErrorData> {
    for (n, said) in ["Tool execution started", "Tool processing data", "Tool execution completed"]
        .into_iter()
        .enumerate()
    {
        if n > 0 {
            tokio::time::sleep(PAUSE).await;
        }
        let note = LoggingMessageNotificationParam::new(LoggingLevel::Info, json!(said));
        context.peer.notify_logging_message(note).await.map_err(failed)?;
    }
    text("Tool with logging executed")
}

async fn progressed(context: &Context) -> Result<CallToolResult, ErrorData> {
    for done in [0.0, 50.0, 100.0] {
        if done > 0.0 {
            tokio::time::sleep(PAUSE).await;
        }
        if let Some(token) = context.meta.get_progress_token() {
            let note = ProgressNotificationParam::new(token, done).with_total(100.0);
            context.peer.notify_progress(note).await.map_err(failed)?;
        }
    }
    text("Tool with progress executed")
}

fn prompt(name: &str, argument: &dyn Fn(&str) -> String) -> Option<Value> {
    let said = |text: String| json!({"role": "user", "content": {"type": "text", "text": text}});
    let messages = match name {
        "test_simple_prompt" => json!([said("This is a simple prompt for testing.".into())]),
        "test_prompt_with_arguments" => {
            let (one, two) = (argument("arg1"), argument("arg2"));
            json!([said(format!("Prompt with arguments: arg1='{one}', arg2='{two}'"))])
        }
        "test_prompt_with_embedded_resource" => {
            let resource = json!({"uri": argument("resourceUri"), "mimeType": "text/plain",
                "text": "Embedded resource content for testing."});
            let embedded = json!({"type": "resource", "resource": resource});
            json!([
                {"role": "user", "content": embedded},
                said("Please process the embedded resource above.".into()),
            ])
        }
        "test_prompt_with_image" => {
            let image = json!({"type": "image", "data": PIXEL, "mimeType": "image/png"});
            json!([
                {"role": "user", "content": image},
                said("Please analyze the image above.".into()),
            ])
        }
        _ => return None,
    };
    Some(json!({"messages": messages}))
}

fn resource(uri: &str) -> Option<Value> {
    let contents = match uri {
        "test://static-text" => json!({"uri": uri, "mimeType": "text/plain",
            "text": "This is the content of the static text resource."}),
        "test://static-binary" => json!({"uri": uri, "mimeType": "image/png", "blob": PIXEL}),
        _ => {
            let id = uri.strip_prefix("test://template/")?.strip_suffix("/data")?;
            let data =
                json!({"id": id, "templateTest": true, "data": format!("Data for ID: {id}")});
            json!({"uri": uri, "mimeType": "application/json", "text": data.to_string()})
        }
    };
    Some(json!({"contents": [contents]}))
}

impl ServerHandler for Fixtures {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_completions()
            .enable_logging()
            .enable_prompts()
            .enable_resources()
            .enable_resources_subscribe()
            .enable_tools()
            .build();
        ServerConfig::new(capabilities)
    }

    async fn set_level(&self, _: SetLevelRequestParams, _: Context) -> Result<(), ErrorData> {
        Ok(())
    }

    async fn subscribe(&self, _: SubscribeRequestParams, _: Context) -> Result<(), ErrorData> {
        Ok(())
    }

    async fn unsubscribe(&self, _: UnsubscribeRequestParams, _: Context) -> Result<(), ErrorData> {
        Ok(())
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: Context,
    ) -> Result<ListToolsResult, ErrorData> {
        let draft = json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "$defs": {"address": {"type": "object", "properties":
                {"street": {"type": "string"}, "city": {"type": "string"}}}},
            "properties": {"name": {"type": "string"}, "address": {"$ref": "#/$defs/address"}},
            "additionalProperties": false,
        });
        let mut tools: Vec<Tool> =
            PLAIN.into_iter().map(|name| tool(name, &json!({"type": "object"}))).collect();
        tools.push(tool("test_sampling", &with_text("prompt")));
        tools.push(tool("test_elicitation", &with_text("message")));
        tools.push(tool("json_schema_2020_12_tool", &draft));
        Ok(ListToolsResult::with_all_items(tools))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: Context,
    ) -> Result<CallToolResponse, ErrorData> {
        let arguments = request.arguments.unwrap_or_default();
        let argument = |name: &str| arguments.get(name).and_then(Value::as_str).unwrap_or_default();
        let name = request.name.as_ref();
        if let Some(content) = content(name) {
            return Ok(from::<CallToolResult>(content)?.into());
        }
        if let Some((params, said)) = form(name, argument("message")) {
            return Ok(asked(&context, params, said).await?.into());
        }
        let result = match name {
            "test_tool_with_logging" => logged(&context).await?,
            "test_tool_with_progress" => progressed(&context).await?,
            "test_sampling" => sampled(&context, argument("prompt")).await?,
            "json_schema_2020_12_tool" => text("called")?,
            _ => return Err(ErrorData::invalid_params(format!("no tool `{name}`"), None)),
        };
        Ok(result.into())
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: Context,
    ) -> Result<ListResourcesResult, ErrorData> {
        let all = [("test://static-text", "text/plain"), ("test://static-binary", "image/png")];
        let all = all.map(|(uri, kind)| {
            Resource::new(uri, uri).with_description("A fixture").with_mime_type(kind)
        });
        Ok(ListResourcesResult::with_all_items(all.to_vec()))
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: Context,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let template = ResourceTemplate::new("test://template/{id}/data", "template");
        Ok(ListResourceTemplatesResult::with_all_items(vec![
            template.with_description("A fixture").with_mime_type("application/json"),
        ]))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _: Context,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let found = resource(&request.uri)
            .ok_or_else(|| ErrorData::resource_not_found(format!("no `{}`", request.uri), None))?;
        Ok(from::<ReadResourceResult>(found)?.into())
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: Context,
    ) -> Result<ListPromptsResult, ErrorData> {
        let prompts = [
            ("test_simple_prompt", &[][..]),
            ("test_prompt_with_arguments", &["arg1", "arg2"]),
            ("test_prompt_with_embedded_resource", &["resourceUri"]),
            ("test_prompt_with_image", &[]),
        ];
        let prompts: Result<Vec<Prompt>, ErrorData> = prompts
            .iter()
            .map(|(name, arguments)| {
                let arguments: Vec<Value> = arguments
                    .iter()
                    .map(|a| json!({"name": a, "description": "A fixture", "required": true}))
                    .collect();
                from(json!({"name": name, "description": "A fixture", "arguments": arguments}))
            })
            .collect();
        Ok(ListPromptsResult::with_all_items(prompts?))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        _: Context,
    ) -> Result<GetPromptResponse, ErrorData> {
        let arguments = request.arguments.unwrap_or_default();
        let argument =
            |name: &str| arguments.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        let found = prompt(&request.name, &argument).ok_or_else(|| {
            ErrorData::invalid_params(format!("no prompt `{}`", request.name), None)
        })?;
        Ok(from::<GetPromptResult>(found)?.into())
    }

    async fn complete(
        &self,
        _: CompleteRequestParams,
        _: Context,
    ) -> Result<CompleteResult, ErrorData> {
        let values = vec!["paris".into(), "park".into(), "party".into()];
        Ok(CompleteResult::new(CompletionInfo::new(values).map_err(failed)?))
    }
}

#[tokio::main]
#[expect(clippy::print_stdout, reason = "who starts it reads the address")]
async fn main() -> std::io::Result<()> {
    let service = Service::new(Options {
        repos: Vec::new(),
        policy: runbook_query::engine::Policy::default(),
        embedder: Some("none".into()),
        places: Places::from_env(None, None),
    });
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let app = App::new(Arc::new(service), config::hosts(address, &[])).with_protocol(|| Fixtures);
    println!("listening on http://{address}");
    let listeners = server::Listeners { tcp: Some(listener), unix: None };
    server::run(listeners, app.router(), std::future::pending()).await
}
