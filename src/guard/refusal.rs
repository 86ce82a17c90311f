//! Why a request does not come in, as a status and a sentence.

use hyper::header::{ALLOW, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE};
use hyper::{Response, StatusCode};
use serde_json::json;

use crate::http::{Body, json as json_response};

/// A refusal; the words are for the caller and name nothing inside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The status.
    pub status: StatusCode,
    /// A name for programs.
    pub error: &'static str,
    /// What was wrong and what to do.
    pub message: String,
    /// Seconds until trying again makes sense.
    pub retry_after_s: Option<u64>,
    /// What a 401 asks for, where it is not an agent's token.
    challenge: Option<String>,
    /// The methods that are taken instead.
    allow: Option<&'static str>,
}

impl Refusal {
    /// A refusal with a status.
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

    /// 405 with the methods that are taken instead.
    pub fn not_allowed(methods: &'static str) -> Self {
        let message = format!("this method is not taken here; use one of: {methods}");
        Self {
            allow: Some(methods),
            ..Self::new(
                StatusCode::METHOD_NOT_ALLOWED,
                "method_not_allowed",
                message,
            )
        }
    }

    /// 429 or 503 with a time to come back.
    pub fn later(status: StatusCode, error: &'static str, message: &str, after_s: u64) -> Self {
        Self {
            retry_after_s: Some(after_s),
            ..Self::new(status, error, message)
        }
    }

    /// The same 401, which asks for this.
    pub fn with_challenge(self, challenge: String) -> Self {
        let challenge = Some(challenge);
        Self { challenge, ..self }
    }

    /// The response. No OAuth metadata is named unless the door asks for it: clients with a configured token would drop it.
    pub fn to_response(&self) -> Response<Body> {
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
