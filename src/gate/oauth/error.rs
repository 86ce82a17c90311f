//! JSON answers to programs: errors (RFC 6749, 5), and results that must not be cached.

use hyper::header::{CACHE_CONTROL, HeaderValue};
use hyper::{Response, StatusCode};
use serde_json::{Value, json};

use crate::auth::LinkError;
use crate::http::{ResponseBody, json as json_response};
use gatewren_store::vault::VaultError;

/// An error for a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OAuthError {
    status: StatusCode,
    code: &'static str,
    words: String,
}

impl OAuthError {
    /// A 400 with a code of the specification and our own description.
    pub fn new(code: &'static str, words: impl Into<String>) -> Self {
        Self {
            status: StatusCode::BAD_REQUEST,
            code,
            words: words.into(),
        }
    }

    /// A 400 for a request with a missing or repeated parameter.
    pub fn request(words: impl Into<String>) -> Self {
        Self::new("invalid_request", words)
    }

    /// The response.
    pub fn to_response(&self) -> Response<ResponseBody> {
        let body = json!({ "error": self.code, "error_description": self.words });
        uncached_json(self.status, &body)
    }
}

impl From<LinkError> for OAuthError {
    fn from(error: LinkError) -> Self {
        let words = error.to_string();
        match error {
            LinkError::Refused => Self::new("invalid_grant", words),
            LinkError::OtherResource => Self::new("invalid_target", words),
            LinkError::Unavailable => Self {
                status: StatusCode::SERVICE_UNAVAILABLE,
                ..Self::new("temporarily_unavailable", words)
            },
        }
    }
}

impl From<VaultError> for OAuthError {
    fn from(cause: VaultError) -> Self {
        LinkError::from(cause).into()
    }
}

/// A JSON response that must not be cached.
pub fn uncached_json(status: StatusCode, body: &Value) -> Response<ResponseBody> {
    let mut response = json_response(status, body.to_string().into_bytes());
    let no_store = HeaderValue::from_static("no-store");
    response.headers_mut().insert(CACHE_CONTROL, no_store);
    response
}
