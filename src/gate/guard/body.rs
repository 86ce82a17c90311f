//! Reads a request's body, with a size limit and a timeout.

use std::error::Error;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use hyper::StatusCode;
use hyper::body::Body as _;

use super::refusal::Refusal;
use crate::http::Upload;

/// Why a body cannot be read: it is too long, or its connection failed.
type BoxError = Box<dyn Error + Send + Sync>;

/// The limits of a body.
#[derive(Debug, Clone, Copy)]
pub struct BodyLimit {
    /// The maximum size in bytes; a larger body, declared or read, is refused with 413.
    pub bytes: usize,
    /// The timeout; a slower body is refused with 408.
    pub within: Duration,
}

impl BodyLimit {
    /// Refuses a body with a declared size that is too large, before any of it is read.
    pub fn check_declared(&self, body: &Upload) -> Result<(), Refusal> {
        if body.size_hint().lower() > self.bytes as u64 {
            Err(self.too_large())
        } else {
            Ok(())
        }
    }

    /// Reads the body.
    pub async fn read(&self, body: Upload) -> Result<Bytes, Refusal> {
        let whole = collect_body(Limited::new(body, self.bytes));
        match tokio::time::timeout(self.within, whole).await {
            Ok(Ok(whole)) => Ok(whole),
            Ok(Err(cause)) if cause.is::<LengthLimitError>() => Err(self.too_large()),
            Ok(Err(_)) => Err(Refusal::new(
                StatusCode::BAD_REQUEST,
                "broken_body",
                "the request body is incomplete",
            )),
            Err(_) => Err(Refusal::new(
                StatusCode::REQUEST_TIMEOUT,
                "slow_body",
                "timeout while reading the request body",
            )),
        }
    }

    fn too_large(&self) -> Refusal {
        let message = format!("a request body may have at most {} bytes", self.bytes);
        Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, "body_too_large", message)
    }
}

/// Reads the complete body. Most bodies arrive in one piece, and are then not copied.
async fn collect_body(mut body: Limited<Upload>) -> Result<Bytes, BoxError> {
    let Some(first) = body.frame().await else {
        return Ok(Bytes::new());
    };
    let first = first?.into_data().unwrap_or_default();
    if body.is_end_stream() {
        return Ok(first);
    }
    let mut all = Vec::from(first);
    while let Some(frame) = body.frame().await {
        all.extend_from_slice(&frame?.into_data().unwrap_or_default());
    }
    Ok(all.into())
}
