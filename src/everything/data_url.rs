//! `data:` URLs (RFC 2397), the only ones that a fixture opens: fixtures send no requests to the network.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// The maximum length of a URL; a longer one is rejected.
pub const MAX_BYTES: usize = 1 << 20;

/// Why a URL was not opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DataUrlError {
    /// It has another scheme.
    Scheme,
    /// It is too long.
    Length,
    /// It has no comma, or its base64 is invalid.
    Form,
}

impl fmt::Display for DataUrlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Scheme => f.write_str(
                "only data: URLs are opened, such as data:text/plain,Hello; this server fetches nothing from the network",
            ),
            Self::Length => write!(f, "the URL is longer than {MAX_BYTES} bytes"),
            Self::Form => f.write_str("the URL is not data:[type][;base64],data"),
        }
    }
}

/// Returns the bytes in a URL.
pub fn bytes(url: &str) -> Result<Vec<u8>, DataUrlError> {
    let (scheme, rest) = url.split_once(':').ok_or(DataUrlError::Scheme)?;
    if !scheme.eq_ignore_ascii_case("data") {
        return Err(DataUrlError::Scheme);
    }
    if url.len() > MAX_BYTES {
        return Err(DataUrlError::Length);
    }
    let (head, data) = rest.split_once(',').ok_or(DataUrlError::Form)?;
    let data = unescaped(data);
    if head.to_ascii_lowercase().ends_with(";base64") {
        STANDARD.decode(data).map_err(|_| DataUrlError::Form)
    } else {
        Ok(data)
    }
}

/// Decodes percent escapes: `%41` is `A`; a percent sign without two hex digits is kept.
fn unescaped(text: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((byte, after)) = next_byte(rest) {
        bytes.push(byte);
        rest = after;
    }
    bytes
}

fn next_byte(text: &[u8]) -> Option<(u8, &[u8])> {
    if let [b'%', high, low, after @ ..] = text {
        let digit = |byte: &u8| char::from(*byte).to_digit(16);
        if let (Some(high), Some(low)) = (digit(high), digit(low)) {
            return Some((u8::try_from(high * 16 + low).ok()?, after));
        }
    }
    text.split_first().map(|(byte, after)| (*byte, after))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_are_read() {
        for (url, expected) in [
            ("data:,", ""),
            ("data:text/plain,Hello%2C%20you", "Hello, you"),
            ("DATA:text/plain;charset=utf-8;base64,SGVsbG8=", "Hello"),
            ("data:;base64,SGVsbG8%3D", "Hello"),
            ("data:,100%", "100%"),
            ("data:,%4", "%4"),
        ] {
            assert_eq!(bytes(url).unwrap(), expected.as_bytes(), "{url}");
        }
    }

    #[test]
    fn nothing_else_is() {
        let long = format!("data:,{}", "x".repeat(MAX_BYTES));
        for (url, why) in [
            ("https://example.org/", DataUrlError::Scheme),
            ("file:///etc/passwd", DataUrlError::Scheme),
            ("data", DataUrlError::Scheme),
            ("data:text/plain", DataUrlError::Form),
            ("data:;base64,???", DataUrlError::Form),
            (long.as_str(), DataUrlError::Length),
        ] {
            assert_eq!(bytes(url), Err(why));
        }
    }
}
