//! A part of the state that a channel watches: a JSON Pointer in which `*` matches any one member.

use std::fmt;
use std::str::FromStr;

/// The maximum length. A longer one is rejected.
const MAX_BYTES: usize = 256;

/// The maximum depth. A deeper one is rejected.
const MAX_SEGMENTS: usize = 16;

/// The prefix of the parts that clients can see. Other parts cannot be watched.
const BEGINNING: &str = "/public/";

/// A pointer such as `/public/packageData/*/status`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WatchedPath(String);

impl WatchedPath {
    /// Returns its segments from the top down, unescaped (RFC 6901, 4). A segment `*` matches any member.
    pub fn segments(&self) -> impl Iterator<Item = String> {
        let segments = self.0.split('/').skip(1);
        segments.map(|segment| segment.replace("~1", "/").replace("~0", "~"))
    }
}

impl fmt::Display for WatchedPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The error for a text that is not such a pointer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InvalidWatchedPath;

impl FromStr for WatchedPath {
    type Err = InvalidWatchedPath;

    fn from_str(text: &str) -> Result<Self, InvalidWatchedPath> {
        let is_plain = text
            .bytes()
            .all(|b| b.is_ascii_graphic() && !matches!(b, b'"' | b'\\'));
        let segments = text.split('/').count() - 1;
        let is_whole = text.len() > BEGINNING.len() && !text.ends_with('/');
        let fits = text.len() <= MAX_BYTES && segments <= MAX_SEGMENTS;
        (text.starts_with(BEGINNING) && is_plain && is_whole && fits)
            .then(|| Self(text.to_owned()))
            .ok_or(InvalidWatchedPath)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_places_that_clients_may_see_are_watched() {
        let good: WatchedPath = "/public/packageData/*/a~1b".parse().unwrap();
        let segments: Vec<String> = good.segments().collect();
        assert_eq!(segments, ["public", "packageData", "*", "a/b"]);
        let long = format!("/public/{}", "x".repeat(MAX_BYTES));
        let deep = format!("/public{}", "/x".repeat(MAX_SEGMENTS));
        for bad in [
            "",
            "/",
            "/public",
            "/public/",
            "public/x",
            "/ui/x",
            "/public/a b",
            &long,
            &deep,
        ] {
            assert_eq!(bad.parse::<WatchedPath>(), Err(InvalidWatchedPath), "{bad}");
        }
    }
}
