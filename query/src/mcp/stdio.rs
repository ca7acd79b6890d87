//! The protocol on standard input and output. Nothing else is ever written to standard output; the log
//! goes to standard error.

use super::Handler;
use crate::http::App;
use rmcp::ServiceExt;
use rmcp::transport::async_rw::AsyncRwTransport;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};

/// The longest message of a client, in bytes.
const LINE_BYTES_MAX: usize = 4 * 1024 * 1024;
/// The version that an `initialize` without one is taken to ask for: too old to be one, so that it is
/// answered with our newest.
const NO_VERSION: &str = "0";

/// Serves one client until its input ends.
///
/// # Errors
/// When the client's first message is no handshake.
pub async fn serve(
    app: App,
    session: &str,
    input: impl AsyncRead + Unpin + Send + 'static,
    output: impl AsyncWrite + Unpin + Send + 'static,
) -> Result<(), String> {
    let (mut fed, read) = tokio::io::duplex(64 * 1024);
    let feed = tokio::spawn(async move {
        let mut lines = BufReader::new(input);
        let mut line = Vec::new();
        // Ends with the input, or when nobody reads on.
        while lines.read_until(b'\n', &mut line).await.is_ok_and(|n| n > 0) {
            if fed.write_all(&with_version(&line)).await.is_err() {
                break;
            }
            line.clear();
        }
    });
    let transport = AsyncRwTransport::new_server(read, output).with_max_line_length(LINE_BYTES_MAX);
    let served = Handler::of_session(app, session).serve(transport).await;
    let result = match served {
        Ok(running) => running.waiting().await.map(drop).map_err(|e| e.to_string()),
        // A client that goes before it has said anything is no failure.
        Err(rmcp::service::ServerInitializeError::ConnectionClosed(_)) => Ok(()),
        Err(e) => Err(e.to_string()),
    };
    feed.abort();
    result
}

/// A message, with a protocol version where an `initialize` names none.
#[must_use]
pub fn with_version(message: &[u8]) -> Vec<u8> {
    let needle = b"initialize";
    if !message.windows(needle.len()).any(|w| w == needle) {
        return message.to_vec();
    }
    let Ok(mut value) = serde_json::from_slice::<Value>(message) else { return message.to_vec() };
    if value.get("method").and_then(Value::as_str) != Some("initialize") {
        return message.to_vec();
    }
    let params = &mut value["params"];
    if params.is_null() {
        *params = serde_json::json!({});
    }
    let Some(params) = params.as_object_mut() else { return message.to_vec() };
    let named = params.get("protocolVersion").is_some_and(Value::is_string);
    if named && params.contains_key("capabilities") && params.contains_key("clientInfo") {
        return message.to_vec();
    }
    if !named {
        params.insert("protocolVersion".into(), NO_VERSION.into());
    }
    params.entry("capabilities").or_insert_with(|| serde_json::json!({}));
    params
        .entry("clientInfo")
        .or_insert_with(|| serde_json::json!({"name": "unknown", "version": "0"}));
    let mut bytes = value.to_string().into_bytes();
    bytes.push(b'\n');
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_initialize_without_version_is_changed() {
        let full = br#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}"#;
        assert_eq!(with_version(full), full);
        let bare = br#"{"jsonrpc":"2.0","id":1,"method":"initialize"}"#;
        let value: Value = serde_json::from_slice(&with_version(bare)).unwrap();
        assert_eq!(value["params"]["protocolVersion"], NO_VERSION);
        for other in [&b"not json initialize"[..], br#"{"method":"tools/list"}"#, b"\n"] {
            assert_eq!(with_version(other), other);
        }
    }
}
