//! Why a request is refused, as an HTTP status and a message.

use hyper::header::{ALLOW, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE};
use hyper::{Response, StatusCode};
use serde_json::json;

use crate::http::{ResponseBody, json as json_response};

/// A refusal; its message is for the caller and reveals nothing internal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The status.
    pub status: StatusCode,
    /// An error name for programs.
    pub error: &'static str,
    /// The problem, and how to fix it.
    pub message: String,
    /// The number of seconds until a retry makes sense.
    pub retry_after_s: Option<u64>,
    /// The challenge of a 401, if it is not for an agent's token.
    challenge: Option<String>,
    /// The allowed methods of a 405.
    allow: Option<&'static str>,
}

impl Refusal {
    /// Creates a refusal with a status.
    pub fn new(status: StatusCode, error: &'static str, message: impl Into<String>) -> Self {
        Self {
            status,
            error,
            message: message.into(),
            retry_after_s: None,
            challenge: None,
            allow: None,
        }
    }

    /// A 405 with the allowed methods.
    pub fn not_allowed(methods: &'static str) -> Self {
        let message = format!("this method is not allowed here; use one of: {methods}");
        Self {
            allow: Some(methods),
            ..Self::new(
                StatusCode::METHOD_NOT_ALLOWED,
                "method_not_allowed",
                message,
            )
        }
    }

    /// A 429 or 503 with a retry time.
    pub fn later(status: StatusCode, error: &'static str, message: &str, after_s: u64) -> Self {
        Self {
            retry_after_s: Some(after_s),
            ..Self::new(status, error, message)
        }
    }

    /// Sets the challenge of a 401.
    #[must_use]
    pub fn with_challenge(self, challenge: String) -> Self {
        let challenge = Some(challenge);
        Self { challenge, ..self }
    }

    /// The response. It names no OAuth metadata unless the path asks for it, because clients would then drop their
    /// configured token.
    pub fn to_response(&self) -> Response<ResponseBody> {
        let body = json!({ "error": self.error, "message": self.message });
        let mut response = json_response(self.status, body.to_string().into_bytes());
        let headers = response.headers_mut();
        if self.status == StatusCode::UNAUTHORIZED {
            let plain = HeaderValue::from_static("Bearer realm=\"gatewren\"");
            let asked = self.challenge.as_deref().map(HeaderValue::from_str);
            let asked = asked.and_then(Result::ok).unwrap_or(plain);
            headers.insert(WWW_AUTHENTICATE, asked);
        }
        if let Some(after) = self.retry_after_s {
            headers.insert(RETRY_AFTER, HeaderValue::from(after));
        }
        if let Some(methods) = self.allow {
            headers.insert(ALLOW, HeaderValue::from_static(methods));
        }
        response
    }
}
