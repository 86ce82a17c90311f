//! Values in MCP's request headers (2026-07-28, streamable HTTP): decoding, and comparing with the body.

use std::borrow::Cow;
use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

/// A value marked as base64 that cannot be decoded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeaderValueError;

impl fmt::Display for HeaderValueError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value between =?base64? and ?= must be padded base64 of UTF-8")
    }
}

impl std::error::Error for HeaderValueError {}

/// Decodes a header value: `=?base64?...?=` is base64, anything else is literal.
pub fn decode_header_value(raw: &str) -> Result<Cow<'_, str>, HeaderValueError> {
    let raw = raw.trim_matches([' ', '\t']);
    match raw
        .strip_prefix("=?base64?")
        .and_then(|rest| rest.strip_suffix("?="))
    {
        None => Ok(Cow::Borrowed(raw)),
        Some(encoded) => {
            let bytes = STANDARD.decode(encoded).map_err(|_| HeaderValueError)?;
            String::from_utf8(bytes)
                .map(Cow::Owned)
                .map_err(|_| HeaderValueError)
        }
    }
}

/// Returns whether a decoded `Mcp-Param-*` value equals the argument: text literally, integers as numbers.
pub fn matches_argument(header: &str, argument: &Value) -> bool {
    match argument {
        Value::String(text) => header == text,
        Value::Bool(flag) => header == if *flag { "true" } else { "false" },
        Value::Number(number) => {
            integer(&number.to_string()).is_some_and(|own| integer(header) == Some(own))
        }
        _ => false,
    }
}

/// Parses the integer that a number's text denotes exactly: `42`, `-7`, `42.0`.
fn integer(text: &str) -> Option<i128> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    let sound = digits(whole.strip_prefix('-').unwrap_or(whole)) && digits(fraction);
    let even = fraction.bytes().all(|b| b == b'0');
    (sound && even).then(|| whole.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn base64_is_decoded_strictly_and_half_a_marker_is_literal() {
        assert_eq!(decode_header_value("=?base64?SGVsbG8=?=").unwrap(), "Hello");
        assert_eq!(decode_header_value("  name\t").unwrap(), "name");
        for literal in ["=?base64?SGVsbG8=", "SGVsbG8=?=", "=?BASE64?SGVsbG8=?="] {
            assert_eq!(decode_header_value(literal).unwrap(), literal);
        }
        for bad in [
            "=?base64?SGVsbG8?=",
            "=?base64?SGVs*G8=?=",
            "=?base64?//8=?=",
        ] {
            assert!(decode_header_value(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn m9_integers_compare_as_numbers_and_exactly() {
        for same in ["42", "42.0", "42.000", "042"] {
            assert!(matches_argument(same, &json!(42)), "{same}");
        }
        assert!(matches_argument("42", &json!(42.0)));
        assert!(matches_argument("-7", &json!(-7)) && matches_argument("-0", &json!(0)));
        for other in [
            "42x", "+42", "42.", ".0", "-", "", "4.2e1", "42.1", "43", "nan", "0x2a",
        ] {
            assert!(!matches_argument(other, &json!(42)), "{other}");
        }
        // These two integers are the same number in floating point.
        let large = json!(9_007_199_254_740_993_i64);
        assert!(matches_argument("9007199254740993", &large));
        assert!(!matches_argument("9007199254740992", &large));
        assert!(matches_argument("18446744073709551615", &json!(u64::MAX)));
        assert!(!matches_argument("1", &json!(1.5)) && !matches_argument("1.5", &json!(1.5)));
        for other in ["inf", "NaN"] {
            assert!(!matches_argument(other, &json!(1e308)), "{other}");
        }
        assert!(matches_argument("true", &json!(true)));
        assert!(!matches_argument("True", &json!(true)));
    }
}
