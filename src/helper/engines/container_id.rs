//! Ids and names of containers and images, checked before they become part of a request's path.

use std::fmt;

use super::error::EngineError;
use gatewren_base::sys::{sanitize, shorten};

/// The most bytes of a container's name; a longer one is rejected.
const MAX_NAME_BYTES: usize = 255;
/// The length of a full id.
const ID_DIGITS: usize = 64;
/// The number of digits of a short id, which the engines' own clients show.
const SHORT_ID_DIGITS: usize = 12;

/// The full id of a container: 64 of `0-9a-f`.
///
/// All requests use it, because the engines also accept a prefix of an id: a name could be such a prefix.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EngineContainerId(String);

/// The id of an image: `sha256:` and 64 of `0-9a-f`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ImageId(String);

/// A container's name or full id, which is safe in a path.
#[derive(Debug, Clone, Copy)]
pub(super) struct SafeReference<'t>(&'t str);

impl EngineContainerId {
    /// Parses a full id; `None` for anything else.
    pub fn parse(text: &str) -> Option<Self> {
        is_full_id(text).then(|| Self(text.to_owned()))
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Its first 12 digits.
    pub fn short(&self) -> &str {
        self.0.get(..SHORT_ID_DIGITS).unwrap_or(&self.0)
    }
}

impl ImageId {
    /// Parses an id with or without `sha256:`; `None` for anything else.
    pub fn parse(text: &str) -> Option<Self> {
        let digits = text.strip_prefix("sha256:").unwrap_or(text);
        is_full_id(digits).then(|| Self(format!("sha256:{digits}")))
    }

    /// The id as text, with `sha256:`.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl<'t> SafeReference<'t> {
    /// Checks a name or full id of a caller.
    pub(super) fn parse(text: &'t str) -> Result<Self, EngineError> {
        if is_name(text) {
            return Ok(Self(text));
        }
        let shown = sanitize(&shorten(text, 80));
        Err(EngineError::Invalid(format!(
            "'{shown}' is not a name of a container: a name has letters, digits, '.', '_' and '-', and begins with a \
             letter or a digit"
        )))
    }

    /// The reference as text.
    pub(super) fn as_str(self) -> &'t str {
        self.0
    }
}

impl fmt::Display for EngineContainerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for ImageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Parses the id of a container in an answer.
pub(super) fn answered_id(text: Option<&str>) -> Result<EngineContainerId, EngineError> {
    text.and_then(EngineContainerId::parse).ok_or_else(|| {
        EngineError::Unreadable(
            "the engine's answer has a container without an id of 64 hexadecimal digits".to_owned(),
        )
    })
}

/// Returns a container's own name among those in an answer, which begin with `/`. Other names are those by which
/// linked containers know it, such as `/web/db`. A container that is being removed has no name; its short id is
/// used then.
pub(super) fn own_name<'t>(
    names: impl IntoIterator<Item = &'t str>,
    id: &EngineContainerId,
) -> String {
    let names = names.into_iter();
    let mut names = names.map(|name| name.strip_prefix('/').unwrap_or(name));
    let name = names.find(|name| is_name(name));
    name.unwrap_or_else(|| id.short()).to_owned()
}

/// Whether a text is a name by the engines' own rule, `[a-zA-Z0-9][a-zA-Z0-9_.-]*`. A full id is one too.
pub(super) fn is_name(text: &str) -> bool {
    let mut bytes = text.bytes();
    let begins_well = bytes.next().is_some_and(|b| b.is_ascii_alphanumeric());
    let rest_is_good = bytes.all(|b| b.is_ascii_alphanumeric() || b"_.-".contains(&b));
    begins_well && rest_is_good && text.len() <= MAX_NAME_BYTES
}

fn is_full_id(text: &str) -> bool {
    text.len() == ID_DIGITS && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_full_ids_of_lower_case_digits_are_ids() {
        let id = "0123456789abcdef".repeat(4);
        assert_eq!(EngineContainerId::parse(&id).unwrap().as_str(), id);
        assert_eq!(
            EngineContainerId::parse(&id).unwrap().short(),
            "0123456789ab"
        );
        let upper = id.to_uppercase();
        let long = format!("{id}0");
        let path = format!("../{}", &id[3..]);
        for bad in ["", &id[1..], &upper, &long, &path] {
            assert_eq!(EngineContainerId::parse(bad), None, "{bad}");
            assert_eq!(ImageId::parse(bad), None, "{bad}");
        }
        let image = format!("sha256:{id}");
        assert_eq!(ImageId::parse(&id), ImageId::parse(&image));
        assert_eq!(ImageId::parse(&id).unwrap().as_str(), image);
    }

    #[test]
    fn a_reference_cannot_leave_its_place_in_a_path() {
        let long = "a".repeat(256);
        for bad in [
            "", "../x", "a/b", "a?x=1", "a#b", "%2e%2e", ".a", "-a", "a b", "ä", "a\r\nb", &long,
        ] {
            let refused = SafeReference::parse(bad).err().unwrap();
            assert!(matches!(refused, EngineError::Invalid(_)), "{bad}");
            assert!(!refused.message().contains(['\r', '\n']), "{refused}");
        }
        for good in ["a", "web_1", "arr-sonarr.2", "0"] {
            assert_eq!(SafeReference::parse(good).unwrap().as_str(), good);
        }
    }

    #[test]
    fn a_container_has_its_own_name_and_not_that_of_a_link() {
        let id = EngineContainerId::parse(&"ab".repeat(32)).unwrap();
        assert_eq!(own_name(["/web/db", "/db"], &id), "db");
        assert_eq!(own_name(["/a\u{1b}[2J"], &id), "abababababab");
        assert_eq!(own_name([], &id), "abababababab");
    }
}
