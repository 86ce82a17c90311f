//! The `_meta` of a stateless request (2026-07-28, basic): version, capabilities, progress, log level.

use serde_json::{Map, Value};

use super::{capabilities::ClientCapabilities, error::RpcError, jsonrpc::Message, level::Level};

/// Keys of `_meta` that the specification reserves.
pub mod key {
    /// The request's protocol version.
    pub const PROTOCOL_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
    /// What the client can do, for this request.
    pub const CLIENT_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
    /// From which severity on the request's stream carries log messages.
    pub const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
    /// Which server answered.
    pub const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";
    /// Which `subscriptions/listen` a notification belongs to.
    pub const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";
}

/// A progress token goes back with each report; a longer one is refused.
const MAX_TOKEN_BYTES: usize = 1_024;

/// What a stateless request says of itself.
#[derive(Debug, Clone, PartialEq)]
pub struct RequestMeta {
    /// The version claimed, served or not.
    pub version: String,
    /// What the client can do.
    pub capabilities: ClientCapabilities,
    /// The severity asked for.
    pub log_level: Option<Level>,
    /// What reports of progress are to name; none are wanted without it.
    pub progress_token: Option<Value>,
}

/// Why a `_meta` cannot be used: -32602 with the keys named.
pub type MetaError = RpcError;

impl RequestMeta {
    /// The version that the parameters claim, if they claim one.
    pub fn claim(params: &Map<String, Value>) -> Option<&Value> {
        params.get("_meta")?.get(key::PROTOCOL_VERSION)
    }

    /// Whether a message's `_meta` claims a version.
    pub fn is_claimed_by(message: &Message) -> bool {
        match message {
            Message::Request(request) => Self::claim(&request.params).is_some(),
            Message::Notification(note) => Self::claim(&note.params).is_some(),
            Message::Response(_) => false,
        }
    }

    /// Reads the `_meta` of a stateless request's parameters.
    pub fn read(params: &Map<String, Value>) -> Result<Self, MetaError> {
        let Some(Value::Object(meta)) = params.get("_meta") else {
            return Err(missing(&[key::PROTOCOL_VERSION, key::CLIENT_CAPABILITIES]));
        };
        let absent: Vec<&str> = [key::PROTOCOL_VERSION, key::CLIENT_CAPABILITIES]
            .into_iter()
            .filter(|name| !meta.contains_key(*name))
            .collect();
        if !absent.is_empty() {
            return Err(missing(&absent));
        }
        let Some(Value::String(version)) = meta.get(key::PROTOCOL_VERSION) else {
            return Err(RpcError::invalid_params(format!(
                "_meta[\"{}\"] is a string",
                key::PROTOCOL_VERSION
            )));
        };
        let Some(Value::Object(declared)) = meta.get(key::CLIENT_CAPABILITIES) else {
            return Err(RpcError::invalid_params(format!(
                "_meta[\"{}\"] is an object",
                key::CLIENT_CAPABILITIES
            )));
        };
        Ok(Self {
            version: version.clone(),
            capabilities: ClientCapabilities::new(declared.clone()),
            log_level: log_level(meta)?,
            progress_token: progress_token(params)?,
        })
    }
}

/// The token that reports of progress are to name, in every revision: a text or an integer.
pub fn progress_token(params: &Map<String, Value>) -> Result<Option<Value>, MetaError> {
    let token = params.get("_meta").and_then(|m| m.get("progressToken"));
    let fits = |token: &&Value| match token {
        Value::String(text) => text.len() <= MAX_TOKEN_BYTES,
        Value::Number(number) => number.is_i64() || number.is_u64(),
        _ => false,
    };
    match token {
        None => Ok(None),
        Some(token) => Some(token).filter(fits).cloned().map(Some).ok_or_else(|| {
            RpcError::invalid_params(format!(
                "_meta.progressToken is an integer or a text of at most {MAX_TOKEN_BYTES} bytes"
            ))
        }),
    }
}

fn log_level(meta: &Map<String, Value>) -> Result<Option<Level>, MetaError> {
    let Some(asked) = meta.get(key::LOG_LEVEL) else {
        return Ok(None);
    };
    asked.as_str().and_then(Level::parse).map(Some).ok_or_else(|| {
        RpcError::invalid_params(format!(
            "_meta[\"{}\"] is one of debug, info, notice, warning, error, critical, alert, emergency",
            key::LOG_LEVEL
        ))
    })
}

fn missing(names: &[&str]) -> MetaError {
    RpcError::invalid_params(format!(
        "a request of 2026-07-28 needs params._meta with {}",
        names
            .iter()
            .map(|n| format!("\"{n}\""))
            .collect::<Vec<_>>()
            .join(" and ")
    ))
}
