//! `Mcp-Name` and `Mcp-Param-*` values (2026-07-28, value encoding): a value is accepted only if it equals the
//! body's.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use super::input::{parts, text};
use gatewren_wire::protocol::{decode_header_value, matches_argument};

/// First part: a header value as received; second part: an argument as JSON.
pub fn mean_their_arguments(data: &[u8]) {
    let [raw, argument] = parts(data);
    let Some(raw) = text(raw) else { return };
    let decoded = decode_header_value(raw).ok();
    assert_eq!(decoded.as_deref(), decoded_by_the_book(raw).as_deref());
    assert_eq!(
        decode_header_value(&encoded(raw)).as_deref(),
        Ok(raw),
        "a value survives encoding and decoding"
    );
    let Ok(argument) = serde_json::from_slice::<Value>(argument) else {
        return;
    };
    if let Some(decoded) = decoded {
        let same = says(&decoded, &argument);
        assert_eq!(
            matches_argument(&decoded, &argument),
            same,
            "{decoded:?} for {argument}"
        );
    }
    if let Some(written) = as_text(&argument) {
        assert!(matches_argument(&written, &argument), "{written:?}");
    }
}

/// Encodes a value for a header, as the specification requires of clients.
pub fn encoded(value: &str) -> Cow<'_, str> {
    let visible = value.bytes().all(|b| matches!(b, b' '..=b'~' | b'\t'));
    let padded = value.trim_matches([' ', '\t']) != value;
    let marked = value.starts_with("=?base64?") && value.ends_with("?=");
    if visible && !padded && !marked {
        return value.into();
    }
    format!("=?base64?{}?=", STANDARD.encode(value)).into()
}

/// The text that a client writes for an argument: strings unchanged, integers in decimal, `true` and `false`.
fn as_text(argument: &Value) -> Option<String> {
    match argument {
        Value::String(text) => Some(text.clone()),
        Value::Bool(flag) => Some(flag.to_string()),
        Value::Number(number) if !number.is_f64() => Some(number.to_string()),
        _ => None,
    }
}

/// Decodes a value, if it is valid.
pub fn decoded_by_the_book(raw: &str) -> Option<String> {
    let value = raw.trim_matches([' ', '\t']);
    let inner = value
        .strip_prefix("=?base64?")
        .and_then(|rest| rest.strip_suffix("?="));
    match inner {
        None => Some(value.to_owned()),
        Some(encoded) => String::from_utf8(base64_by_the_book(encoded)?).ok(),
    }
}

/// RFC 4648 section 4, padded, without the freedom of section 3.5.
fn base64_by_the_book(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let groups: Vec<&[u8]> = text.as_bytes().chunks(4).collect();
    for (index, group) in groups.iter().enumerate() {
        let data: Vec<u32> = group.iter().map_while(|b| sextet(*b)).collect();
        let padding = group.len() - data.len();
        let padded = group.iter().rev().take(padding).all(|b| *b == b'=');
        let last = index + 1 == groups.len();
        if group.len() != 4 || !padded || padding > 2 || (padding > 0 && !last) {
            return None;
        }
        let word = data.iter().fold(0, |word, six| (word << 6) | six) << (6 * padding);
        let [_, three @ ..] = word.to_be_bytes();
        let (kept, spare) = three.split_at(3 - padding);
        if spare.iter().any(|b| *b != 0) {
            return None;
        }
        bytes.extend_from_slice(kept);
    }
    Some(bytes)
}

fn sextet(byte: u8) -> Option<u32> {
    let value = match byte {
        b'A'..=b'Z' => byte - b'A',
        b'a'..=b'z' => byte - b'a' + 26,
        b'0'..=b'9' => byte - b'0' + 52,
        b'+' => 62,
        b'/' => 63,
        _ => return None,
    };
    Some(value.into())
}

/// Whether a decoded value equals an argument; integers are compared as numbers, exactly.
pub fn says(value: &str, argument: &Value) -> bool {
    match argument {
        Value::String(text) => value == text,
        Value::Bool(flag) => value == flag.to_string(),
        Value::Number(number) => {
            let own = number.to_string();
            digits(&own).is_some_and(|own| digits(value) == Some(own))
        }
        _ => false,
    }
}

/// A decimal integer, `42` or `-42.0`: its sign, and its digits without leading zeros.
fn digits(text: &str) -> Option<(bool, &str)> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let (negative, whole) = match whole.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, whole),
    };
    let decimal = !whole.is_empty() && whole.bytes().all(|b| b.is_ascii_digit());
    let none = !fraction.is_empty() && fraction.bytes().all(|b| b == b'0');
    let significant = whole.trim_start_matches('0');
    (decimal && none).then_some((negative && !significant.is_empty(), significant))
}
