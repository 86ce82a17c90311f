//! The `_meta` of a stateless request (2026-07-28, basic): version, capabilities, progress, log level.

use serde_json::Value;

use super::{
    capabilities::ClientCapabilities, error::RpcError, json::Params, jsonrpc::RpcMessage, key,
    level::LogSeverity,
};

/// The longest progress token, which is returned with each progress notification; a longer one is rejected.
const MAX_TOKEN_BYTES: usize = 1_024;

/// The metadata of a stateless request.
#[derive(Debug, Clone, PartialEq)]
pub struct RequestMeta {
    /// The client's capabilities.
    pub capabilities: ClientCapabilities,
    /// The requested severity.
    pub log_level: Option<LogSeverity>,
    /// The token for progress notifications; without it none are sent.
    pub progress_token: Option<Value>,
}

/// Why a `_meta` is invalid: -32602 with the names of the keys.
pub type MetaError = RpcError;

impl RequestMeta {
    /// Returns the version that the parameters claim, if any.
    pub fn claim(params: &Params) -> Option<&Value> {
        params.meta(key::PROTOCOL_VERSION)
    }

    /// Returns whether a message's `_meta` claims a version.
    pub fn is_claimed_by(message: &RpcMessage) -> bool {
        match message {
            RpcMessage::Request(request) => Self::claim(&request.params).is_some(),
            RpcMessage::Notification(note) => Self::claim(&note.params).is_some(),
            RpcMessage::Response(_) => false,
        }
    }

    /// Reads the `_meta` of a stateless request's parameters, and the claimed version, supported or not.
    pub fn read(params: &Params) -> Result<(&str, Self), MetaError> {
        let claims = [key::PROTOCOL_VERSION, key::CLIENT_CAPABILITIES];
        let [Some(version), Some(declared)] = claims.map(|key| params.meta(key)) else {
            let absent = claims.into_iter().filter(|key| params.meta(key).is_none());
            return Err(missing(&absent.collect::<Vec<_>>()));
        };
        let Value::String(version) = version else {
            return Err(RpcError::invalid_params(format!(
                "_meta[\"{}\"] must be a string",
                key::PROTOCOL_VERSION
            )));
        };
        let Value::Object(declared) = declared else {
            return Err(RpcError::invalid_params(format!(
                "_meta[\"{}\"] must be an object",
                key::CLIENT_CAPABILITIES
            )));
        };
        let meta = Self {
            capabilities: ClientCapabilities::new(declared.clone()),
            log_level: log_level(params)?,
            progress_token: progress_token(params)?,
        };
        Ok((version, meta))
    }
}

/// Returns the token for progress notifications, in every revision: a text or an integer.
pub fn progress_token(params: &Params) -> Result<Option<Value>, MetaError> {
    let token = params.meta(key::PROGRESS_TOKEN);
    let fits = |token: &&Value| match token {
        Value::String(text) => text.len() <= MAX_TOKEN_BYTES,
        Value::Number(number) => number.is_i64() || number.is_u64(),
        _ => false,
    };
    match token {
        None => Ok(None),
        Some(token) => Some(token).filter(fits).cloned().map(Some).ok_or_else(|| {
            RpcError::invalid_params(format!(
                "_meta.progressToken must be an integer or a string of at most {MAX_TOKEN_BYTES} bytes"
            ))
        }),
    }
}

fn log_level(params: &Params) -> Result<Option<LogSeverity>, MetaError> {
    let Some(asked) = params.meta(key::LOG_LEVEL) else {
        return Ok(None);
    };
    asked.as_str().and_then(LogSeverity::parse).map(Some).ok_or_else(|| {
        RpcError::invalid_params(format!(
            "_meta[\"{}\"] must be one of debug, info, notice, warning, error, critical, alert, emergency",
            key::LOG_LEVEL
        ))
    })
}

fn missing(names: &[&str]) -> MetaError {
    RpcError::invalid_params(format!(
        "a request of 2026-07-28 requires params._meta with {}",
        names
            .iter()
            .map(|n| format!("\"{n}\""))
            .collect::<Vec<_>>()
            .join(" and ")
    ))
}
