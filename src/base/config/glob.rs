//! Patterns for names: `*` matches any characters, `?` matches one.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A pattern for names, such as `arr-*`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Glob(String);

/// The maximum length of a pattern, which is more than the longest reference has. A longer one is rejected.
const MAX_BYTES: usize = 256;

impl Glob {
    /// Returns whether the whole name matches.
    pub fn matches(&self, name: &str) -> bool {
        fits(&self.0, name)
    }

    /// Returns whether a reference to a container matches: `web` or `docker:web`. A pattern without a runtime is about
    /// the names in all runtimes; `lxc:web` is about LXC alone.
    ///
    /// `docker:web@media` belongs to the container `media` of LXC: it matches what `media` matches, and patterns that
    /// have a place. `podman:web@alice`, of a user, matches the latter alone, and `*`: a user who names containers there
    /// could take the name of another.
    pub fn matches_container(&self, reference: &str) -> bool {
        let Some((outer, place)) = reference.split_once('@') else {
            return !self.0.contains('@') && fits_reference(&self.0, reference);
        };
        match self.0.split_once('@') {
            Some((of_outer, of_place)) => fits(of_place, place) && fits_reference(of_outer, outer),
            None if outer.starts_with("docker:") => fits_reference(&self.0, place),
            None => self.0 == "*",
        }
    }
}

/// Returns whether a reference without a place matches a pattern without one.
fn fits_reference(pattern: &str, reference: &str) -> bool {
    let (runtime, name) = reference.split_once(':').unwrap_or(("lxc", reference));
    match pattern.split_once(':') {
        Some((of_runtime, of_name)) => fits(of_runtime, runtime) && fits(of_name, name),
        None => fits(pattern, name),
    }
}

/// Returns whether the whole name matches the pattern. Both may contain any characters.
pub fn fits(pattern: &str, name: &str) -> bool {
    let (pattern, name) = (pattern.as_bytes(), name.as_bytes());
    let (mut at, mut from) = (0, 0);
    // The position of the last `*`, and the end of the part of the name that it matches.
    let mut star: Option<(usize, usize)> = None;
    while from < name.len() {
        match (pattern.get(at), star) {
            (Some(b'*'), _) => {
                star = Some((at, from));
                at += 1;
            }
            (Some(p), _) if *p == b'?' || name.get(from) == Some(p) => {
                at += 1;
                from += 1;
            }
            (_, Some((star_at, swallowed))) => {
                star = Some((star_at, swallowed + 1));
                at = star_at + 1;
                from = swallowed + 1;
            }
            (_, None) => return false,
        }
    }
    pattern.iter().skip(at).all(|p| *p == b'*')
}

/// The error for a text that is not a pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvalidGlob;

impl fmt::Display for InvalidGlob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "a pattern has 1 to {MAX_BYTES} letters, digits, '.', '_', '-', '@', ':', '\\', '*' and '?'"
        )
    }
}

impl std::error::Error for InvalidGlob {}

impl FromStr for Glob {
    type Err = InvalidGlob;

    fn from_str(pattern: &str) -> Result<Self, InvalidGlob> {
        let well_made = pattern
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || br"._-@:\*?".contains(&b));
        if well_made && (1..=MAX_BYTES).contains(&pattern.len()) {
            Ok(Self(pattern.to_owned()))
        } else {
            Err(InvalidGlob)
        }
    }
}

impl TryFrom<String> for Glob {
    type Error = InvalidGlob;

    fn try_from(pattern: String) -> Result<Self, InvalidGlob> {
        pattern.parse()
    }
}

impl From<Glob> for String {
    fn from(Glob(pattern): Glob) -> Self {
        pattern
    }
}

impl fmt::Display for Glob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_holds_for_the_whole_name() {
        #[rustfmt::skip]
        let table = [
            ("*", "", true), ("*", "anything", true), ("web", "web", true), ("web", "webs", false),
            ("web", "we", false), ("arr-*", "arr-sonarr", true), ("arr-*", "arr-", true),
            ("arr-*", "xarr-y", false), ("*-db", "a-b-db", true), ("*-db", "a-db-b", false),
            ("a*b*c", "a-b-b-c", true), ("a*b*c", "acb", false), ("w?b", "web", true),
            ("w?b", "wb", false), ("**", "x", true), ("?", "", false),
        ];
        for (pattern, name, expected) in table {
            let glob: Glob = pattern.parse().unwrap();
            assert_eq!(glob.matches(name), expected, "{pattern} on {name:?}");
        }
    }

    #[test]
    fn a_pattern_covers_containers_in_other_places_only_by_the_place() {
        #[rustfmt::skip]
        let table = [
            ("*", "docker:web@media", true), ("*", "podman:web@alice", true), ("media", "docker:web@media", true),
            ("lxc:media", "docker:web@media", true), ("me*", "docker:web@media", true),
            ("web", "docker:web@media", false), ("docker:web", "docker:web@media", false),
            ("docker:*", "docker:web@media", false), ("docker:*@media", "docker:web@media", true),
            ("web@media", "docker:web@media", true), ("podman:*@media", "docker:web@media", false),
            ("docker:web@*", "docker:web@media", true), ("docker:web@media", "docker:web", false),
            ("*@*", "web", false), ("alice", "podman:web@alice", false), ("web", "podman:web@alice", false),
            ("podman:*", "podman:web@alice", false), ("podman:*@alice", "podman:web@alice", true),
            ("docker:media", "docker:web@media", false),
        ];
        for (pattern, reference, expected) in table {
            let glob: Glob = pattern.parse().unwrap();
            assert_eq!(
                glob.matches_container(reference),
                expected,
                "{pattern} on {reference}"
            );
        }
    }

    #[test]
    fn many_stars_do_not_take_for_ever() {
        let glob: Glob = "a*".repeat(60).parse().unwrap();
        assert!(!glob.matches(&"a".repeat(4096).replace('b', "")[..59]));
        assert!(!glob.matches(&format!("b{}", "a".repeat(4096))));
    }

    #[test]
    fn what_is_no_name_is_no_pattern() {
        for bad in ["", "a/b", "[ab]", "a b", &"x".repeat(257)] {
            assert_eq!(bad.parse::<Glob>(), Err(InvalidGlob), "{bad:?}");
        }
    }
}
