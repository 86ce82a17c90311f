//! Splits the bytes of an input into the parts that a target reads. The format is text, so people can write inputs.

use std::str;

use hyper::header::{HeaderMap, HeaderName, HeaderValue};

/// Returns the first `N` parts of the bytes, divided by blank lines. Missing parts are empty; the last one has
/// the rest.
pub fn parts<const N: usize>(data: &[u8]) -> [&[u8]; N] {
    let mut rest = data;
    let mut parts = [data; N];
    for (index, part) in parts.iter_mut().enumerate() {
        let end = rest.windows(2).position(|pair| pair == b"\n\n");
        match end.filter(|_| index + 1 < N) {
            Some(end) => {
                let (before, after) = rest.split_at(end);
                (*part, rest) = (before, after.get(2..).unwrap_or_default());
            }
            None => *part = std::mem::take(&mut rest),
        }
    }
    parts
}

/// The bytes as text, if they are valid UTF-8.
pub fn text(data: &[u8]) -> Option<&str> {
    str::from_utf8(data).ok()
}

/// Parses lines `name: value` as headers; invalid lines are skipped, because hyper would have rejected them.
pub fn headers(data: &[u8]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for line in data.split(|b| *b == b'\n') {
        let Some(colon) = line.iter().position(|b| *b == b':') else {
            continue;
        };
        let (name, value) = line.split_at(colon);
        let value = value.get(1..).unwrap_or_default().trim_ascii();
        let name = HeaderName::from_bytes(name);
        if let (Ok(name), Ok(value)) = (name, HeaderValue::from_bytes(value)) {
            headers.append(name, value);
        }
    }
    headers
}
