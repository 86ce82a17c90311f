//! JSON-RPC errors and their codes.

use std::borrow::Cow;
use std::fmt;

use serde::Serialize;
use serde_json::Value;

/// The codes that are sent (JSON-RPC 2.0 section 5.1; MCP 2026-07-28, basic).
pub mod code {
    /// The body is not JSON.
    pub const PARSE: i32 = -32700;
    /// The body is JSON but not one valid message.
    pub const INVALID_REQUEST: i32 = -32600;
    /// The method does not exist, or the feature is not offered.
    pub const METHOD_NOT_FOUND: i32 = -32601;
    /// The parameters are invalid.
    pub const INVALID_PARAMS: i32 = -32602;
    /// An error in the server.
    pub const INTERNAL: i32 = -32603;
    /// The user must visit a URL before this call (only 2025-11-25).
    pub const URL_ELICITATION_REQUIRED: i32 = -32042;
    /// The resource does not exist, in the stateful revisions.
    pub const RESOURCE_NOT_FOUND: i32 = -32002;
    /// A header and the body differ (2026-07-28).
    pub const HEADER_MISMATCH: i32 = -32020;
    /// The client did not declare a required capability (2026-07-28).
    pub const MISSING_CAPABILITY: i32 = -32021;
    /// The version is not supported (2026-07-28).
    pub const UNSUPPORTED_VERSION: i32 = -32022;
}

/// A JSON-RPC error object.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RpcError {
    /// One of [`code`].
    pub code: i32,
    /// A sentence that states the error and the remedy.
    pub message: Cow<'static, str>,
    /// Details, depending on the code.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<Box<Value>>,
}

impl RpcError {
    /// Returns an error without details.
    pub fn new(code: i32, message: impl Into<Cow<'static, str>>) -> Self {
        Self {
            code,
            message: message.into(),
            data: None,
        }
    }

    /// Returns the error with details.
    #[must_use]
    pub fn with_data(mut self, data: Value) -> Self {
        self.data = Some(Box::new(data));
        self
    }

    /// -32600.
    pub fn invalid_request(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(code::INVALID_REQUEST, message)
    }

    /// -32602.
    pub fn invalid_params(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(code::INVALID_PARAMS, message)
    }

    /// -32601.
    pub fn method_not_found(method: &str) -> Self {
        Self::new(
            code::METHOD_NOT_FOUND,
            format!("method not found: {}", echo(method)),
        )
    }

    /// -32020.
    pub fn header_mismatch(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(code::HEADER_MISMATCH, message)
    }

    /// -32021; `required` is the capabilities object that the client would have to declare.
    pub fn missing_capability(required: &Value) -> Self {
        Self::new(
            code::MISSING_CAPABILITY,
            "the client did not declare a required capability",
        )
        .with_data(serde_json::json!({ "requiredCapabilities": required }))
    }

    /// -32603 with a reference under which the log has the cause.
    pub fn internal(reference: &str) -> Self {
        Self::new(
            code::INTERNAL,
            format!("internal error, reference {reference}"),
        )
    }

    /// The modern form of "no such resource"; the stateful encoder changes the code.
    pub fn resource_not_found(uri: &str) -> Self {
        // The data has the whole address: a client finds its request by it, and has sent it.
        Self::invalid_params(format!("resource not found: {}", echo(uri)))
            .with_data(serde_json::json!({ "uri": uri }))
    }
}

impl fmt::Display for RpcError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.message, self.code)
    }
}

impl std::error::Error for RpcError {}

/// The most characters of a client's name or method that are echoed in an error; a longer one is cut and ends with `…`.
const MAX_ECHOED_CHARS: usize = 200;

fn echo(text: &str) -> String {
    match text.char_indices().nth(MAX_ECHOED_CHARS) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn e10_an_internal_error_says_a_reference_and_nothing_else() {
        let error = RpcError::internal("7f3a");
        assert_eq!(error.code, code::INTERNAL);
        assert_eq!(error.message, "internal error, reference 7f3a");
        assert_eq!(error.data, None);
    }
}
