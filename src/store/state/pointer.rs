//! JSON pointers (RFC 6901): places in the document.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The longest pointer as text, in bytes; a longer one is rejected.
const MAX_POINTER_BYTES: usize = 4096;

/// The greatest depth of the document; deeper values are rejected. The JSON readers of most programs, including
/// ours, stop at 128.
pub const MAX_DEPTH: usize = 100;

/// A place in the document, which need not exist.
#[derive(
    Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize, JsonSchema,
)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String", description = "", extend("pattern" = "^(/([^/~]|~[01])*)*$"))]
pub struct Pointer {
    tokens: Vec<String>,
}

/// Why a text is not a valid pointer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InvalidPointer {
    /// It is not empty and does not begin with `/`.
    NoSlash,
    /// A `~` is not followed by `0` or `1`.
    Escape,
    /// A `%` is not followed by two hexadecimal digits.
    Percent,
    /// Its percent-decoded bytes are not UTF-8.
    NotUtf8,
    /// Longer than 4,096 bytes.
    TooLong,
    /// More than [`MAX_DEPTH`] parts.
    TooDeep,
}

impl Pointer {
    /// The whole document.
    pub fn root() -> Self {
        Self::default()
    }

    /// Reads a pointer in its text form, such as `/public/a~1b`; the empty text is the whole document.
    pub fn parse(text: &str) -> Result<Self, InvalidPointer> {
        if text.is_empty() {
            return Ok(Self::root());
        }
        if text.len() > MAX_POINTER_BYTES {
            return Err(InvalidPointer::TooLong);
        }
        let parts = text.strip_prefix('/').ok_or(InvalidPointer::NoSlash)?;
        let tokens = parts
            .split('/')
            .map(unescape)
            .collect::<Result<Vec<_>, _>>()?;
        if tokens.len() > MAX_DEPTH {
            return Err(InvalidPointer::TooDeep);
        }
        Ok(Self { tokens })
    }

    /// Reads a pointer from the path of a URI: percent-decoded first, then as a pointer (RFC 6901,
    /// section 6).
    pub fn from_uri_path(path: &str) -> Result<Self, InvalidPointer> {
        Self::parse(&percent_decode(path)?)
    }

    /// Returns the place `token` below this one; `token` is a key, not escaped.
    #[must_use]
    pub fn child(&self, token: impl Into<String>) -> Self {
        let mut tokens = self.tokens.clone();
        tokens.push(token.into());
        Self { tokens }
    }

    /// Returns the place that the relative pointer `way` leads to from this one.
    #[must_use]
    pub fn join(&self, way: &Self) -> Self {
        let tokens = [self.tokens.as_slice(), way.tokens.as_slice()].concat();
        Self { tokens }
    }

    /// Returns the parent and the last key; `None` for the whole document.
    pub fn split_last(&self) -> Option<(Self, &str)> {
        let (last, above) = self.tokens.split_last()?;
        let tokens = above.to_vec();
        Some((Self { tokens }, last))
    }

    /// The keys from the top down, not escaped.
    pub fn tokens(&self) -> &[String] {
        &self.tokens
    }

    /// Returns whether `other` is this place or below it; `/publicX` is not below `/public`.
    pub fn covers(&self, other: &Self) -> bool {
        other.tokens.starts_with(&self.tokens)
    }

    /// Returns the relative pointer from this place down to `other`; `None` if `other` is not covered.
    pub fn way_to(&self, other: &Self) -> Option<Self> {
        let tokens = other.tokens.strip_prefix(self.tokens.as_slice())?.to_vec();
        Some(Self { tokens })
    }

    /// Returns the value at this place. A `null` is a value; an absent key is `None`.
    pub fn get<'v>(&self, document: &'v Value) -> Option<&'v Value> {
        self.tokens
            .iter()
            .try_fold(document, |value, token| match value {
                Value::Object(map) => map.get(token),
                Value::Array(list) => list.get(array_index(token)?),
                _ => None,
            })
    }
}

/// Reads a key as an index: digits without a leading zero (RFC 6901, section 4).
pub fn array_index(token: &str) -> Option<usize> {
    let canonical = token == "0" || !token.starts_with('0');
    let digits = token.bytes().all(|b| b.is_ascii_digit());
    (canonical && digits).then(|| token.parse().ok()).flatten()
}

fn unescape(part: &str) -> Result<String, InvalidPointer> {
    let mut pieces = part.split('~');
    let mut token = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let (sign, rest) = match piece.as_bytes().first() {
            Some(b'0') => ('~', piece.get(1..)),
            Some(b'1') => ('/', piece.get(1..)),
            _ => return Err(InvalidPointer::Escape),
        };
        token.push(sign);
        token.push_str(rest.unwrap_or_default());
    }
    Ok(token)
}

fn percent_decode(path: &str) -> Result<String, InvalidPointer> {
    let mut pieces = path.split('%');
    let mut bytes = pieces.next().unwrap_or_default().as_bytes().to_vec();
    for piece in pieces {
        let code = piece.get(..2).ok_or(InvalidPointer::Percent)?;
        let hexadecimal = code.bytes().all(|b| b.is_ascii_hexdigit());
        match u8::from_str_radix(code, 16) {
            Ok(byte) if hexadecimal => bytes.push(byte),
            _ => return Err(InvalidPointer::Percent),
        }
        bytes.extend(piece.bytes().skip(2));
    }
    String::from_utf8(bytes).map_err(|_| InvalidPointer::NotUtf8)
}

impl fmt::Display for Pointer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for token in &self.tokens {
            write!(f, "/{}", token.replace('~', "~0").replace('/', "~1"))?;
        }
        Ok(())
    }
}

impl From<Pointer> for String {
    fn from(pointer: Pointer) -> Self {
        pointer.to_string()
    }
}

impl TryFrom<String> for Pointer {
    type Error = InvalidPointer;

    fn try_from(text: String) -> Result<Self, InvalidPointer> {
        Self::parse(&text)
    }
}

impl std::str::FromStr for Pointer {
    type Err = InvalidPointer;

    fn from_str(text: &str) -> Result<Self, InvalidPointer> {
        Self::parse(text)
    }
}

impl fmt::Display for InvalidPointer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoSlash => "a pointer begins with '/', or is empty for the whole document",
            Self::Escape => "in a pointer '~' is followed by 0 (for '~') or 1 (for '/')",
            Self::Percent => "in a URI '%' is followed by two hexadecimal digits",
            Self::NotUtf8 => "the pointer is not UTF-8 once percent-decoded",
            Self::TooLong => "a pointer has at most 4096 bytes",
            Self::TooDeep => "a pointer has at most 100 parts",
        })
    }
}

impl std::error::Error for InvalidPointer {}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_examples_of_the_rfc() {
        let document = json!({
            "foo": ["bar", "baz"], "": 0, "a/b": 1, "c%d": 2, "e^f": 3, "g|h": 4,
            "i\\j": 5, "k\"l": 6, " ": 7, "m~n": 8
        });
        for (text, value) in [
            ("", document.clone()),
            ("/foo", json!(["bar", "baz"])),
            ("/foo/0", json!("bar")),
            ("/", json!(0)),
            ("/a~1b", json!(1)),
            ("/c%d", json!(2)),
            ("/e^f", json!(3)),
            ("/g|h", json!(4)),
            ("/i\\j", json!(5)),
            ("/k\"l", json!(6)),
            ("/ ", json!(7)),
            ("/m~0n", json!(8)),
        ] {
            let pointer = Pointer::parse(text).unwrap();
            assert_eq!(pointer.get(&document), Some(&value), "{text}");
            assert_eq!(pointer.to_string(), text);
        }
    }

    #[test]
    fn the_uri_examples_of_the_rfc() {
        for (path, text) in [
            ("", ""),
            ("/a~1b", "/a~1b"),
            ("/c%25d", "/c%d"),
            ("/e%5Ef", "/e^f"),
            ("/%20", "/ "),
            ("/m~0n", "/m~0n"),
            ("/m%7E0n", "/m~0n"),
            ("/public/caf%C3%A9", "/public/café"),
        ] {
            assert_eq!(Pointer::from_uri_path(path), Pointer::parse(text), "{path}");
        }
    }

    #[test]
    fn a_text_that_is_no_pointer_says_why() {
        use InvalidPointer::{Escape, NoSlash, NotUtf8, Percent, TooDeep, TooLong};
        for (text, why) in [
            ("public", NoSlash),
            ("/a~", Escape),
            ("/a~2", Escape),
            ("/~~0", Escape),
            (&"/x".repeat(101), TooDeep),
            (&format!("/{}", "x".repeat(4096)), TooLong),
        ] {
            assert_eq!(Pointer::parse(text), Err(why), "{text}");
        }
        for (path, why) in [
            ("/%", Percent),
            ("/%2", Percent),
            ("/%+1", Percent),
            ("/%é", Percent),
            ("/%ff", NotUtf8),
        ] {
            assert_eq!(Pointer::from_uri_path(path), Err(why), "{path}");
        }
    }

    #[test]
    fn a_name_that_only_begins_alike_is_not_below() {
        let public = Pointer::parse("/public").unwrap();
        for (other, covered) in [
            ("/public", true),
            ("/public/a", true),
            ("/public/", true),
            ("/publicX", false),
            ("/publi", false),
            ("", false),
        ] {
            assert_eq!(
                public.covers(&Pointer::parse(other).unwrap()),
                covered,
                "{other}"
            );
        }
        assert!(Pointer::root().covers(&public));
    }

    #[test]
    fn indexes_are_canonical() {
        let list = json!([1, 2]);
        for (text, found) in [("/0", true), ("/1", true), ("/2", false), ("/00", false)] {
            assert_eq!(Pointer::parse(text).unwrap().get(&list).is_some(), found);
        }
        for text in ["/-", "/+1", "/01", "/1.0", "/", "/99999999999999999999999"] {
            assert_eq!(Pointer::parse(text).unwrap().get(&list), None, "{text}");
        }
    }

    #[test]
    fn null_is_something() {
        let document = json!({ "a": null });
        assert_eq!(
            Pointer::parse("/a").unwrap().get(&document),
            Some(&Value::Null)
        );
        assert_eq!(Pointer::parse("/b").unwrap().get(&document), None);
    }
}
