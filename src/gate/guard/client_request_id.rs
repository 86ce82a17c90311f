//! `X-Request-Id`: the id that a client or a proxy gives its request, to find it again in the log.

use std::sync::Arc;

use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use hyper::http::Extensions;

/// The header, in requests and in responses.
const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// The maximum length of an id: three times that of a UUID, and more than any proxy sends by itself.
const MAX_LENGTH: usize = 128;

/// The id that a client gave its request. A request without one has nothing: no allocation, no header, no field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientRequestId(Arc<String>);

impl ClientRequestId {
    /// Returns the client's id, if it is visible ASCII of a sane length. An id that is repeated is ambiguous, so it is
    /// ignored as well.
    pub fn read(headers: &HeaderMap) -> Option<Self> {
        let first = headers.get(&X_REQUEST_ID)?.as_bytes();
        let is_sane =
            (1..=MAX_LENGTH).contains(&first.len()) && first.iter().all(u8::is_ascii_graphic);
        if !is_sane || headers.get_all(&X_REQUEST_ID).iter().nth(1).is_some() {
            return None;
        }
        let id = str::from_utf8(first).ok()?;
        Some(Self(Arc::new(id.to_owned())))
    }

    /// The id that [`Self::read`] found and the front has put into the request.
    pub fn of(extensions: &Extensions) -> Option<Arc<String>> {
        extensions.get::<Self>().map(|id| id.0.clone())
    }

    /// The id.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Adds the id to the headers of the response.
    pub fn echo(&self, headers: &mut HeaderMap) {
        if let Ok(id) = HeaderValue::from_str(&self.0) {
            headers.insert(X_REQUEST_ID, id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(ids: &[&[u8]]) -> Option<String> {
        let mut headers = HeaderMap::new();
        for id in ids {
            headers.append(X_REQUEST_ID, HeaderValue::from_bytes(id).unwrap());
        }
        ClientRequestId::read(&headers).map(|id| id.as_str().to_owned())
    }

    #[test]
    fn a_visible_id_is_taken_and_any_other_is_ignored() {
        let longest = "a".repeat(MAX_LENGTH);
        let uuid = "5f0e3d0a-6a3a-4b57-8d0c-6b1d5f0e3d0a";
        for id in ["7", "a-B_c.9", "Root=1-67891233-abcdef", uuid, &longest] {
            assert_eq!(read(&[id.as_bytes()]).as_deref(), Some(id));
        }
        let too_long = "a".repeat(MAX_LENGTH + 1);
        let others: [&[u8]; 5] = [b"", b"a b", b"a\tb", "ä".as_bytes(), too_long.as_bytes()];
        for id in others {
            assert_eq!(read(&[id]), None, "{id:?}");
        }
        assert_eq!(read(&[]), None);
        assert_eq!(read(&[b"a", b"a"]), None, "a repeated one");
    }

    #[test]
    fn a_response_has_the_id_as_it_was_sent() {
        let mut headers = HeaderMap::new();
        headers.insert(X_REQUEST_ID, HeaderValue::from_static("Root=1;a,b"));
        let id = ClientRequestId::read(&headers).unwrap();
        let mut response = HeaderMap::new();
        id.echo(&mut response);
        assert_eq!(response, headers);
    }
}
