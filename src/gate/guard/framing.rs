//! Refuses requests with ambiguous framing, which programs on the way could parse differently.

use hyper::header::TRANSFER_ENCODING;
use hyper::http::request::Parts;
use hyper::{StatusCode, Version};

use super::refusal::Refusal;

/// Refuses a `Transfer-Encoding` other than one `chunked` (RFC 9112, 6.1): a proxy that determines another end from
/// the same head would treat the rest of the body as another client's request. The HTTP layer has already refused
/// the other cases: lengths that differ or are not numbers, and HTTP/2 with either header.
pub fn check_framing(head: &Parts) -> Result<(), Refusal> {
    let mut encodings = head.headers.get_all(TRANSFER_ENCODING).iter();
    let (first, more) = (encodings.next(), encodings.next());
    let Some(first) = first else { return Ok(()) };
    let is_chunked = first.as_bytes().eq_ignore_ascii_case(b"chunked");
    if is_chunked && more.is_none() && head.version == Version::HTTP_11 {
        return Ok(());
    }
    Err(Refusal::new(
        StatusCode::BAD_REQUEST,
        "bad_framing",
        "send the body with one Content-Length, or with one Transfer-Encoding: chunked",
    ))
}
