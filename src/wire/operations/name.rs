//! A container's name, safe as an argument and as a path component.

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// The name of an LXC container.
///
/// One to 64 of `A-Z a-z 0-9 . _ -`, beginning with a letter or a digit. It is never parsed as an option, and it
/// cannot leave a directory.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ContainerName(String);

/// The name's shape as a pattern of JSON Schema (ECMA-262).
const PATTERN: &str = "^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$";

impl ContainerName {
    /// Returns a random name that no container has and that cannot be guessed.
    pub fn of_none() -> Self {
        Self(Uuid::new_v4().simple().to_string())
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A text that is no valid container name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvalidName;

impl fmt::Display for InvalidName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "a container name is 1 to 64 letters, digits, '.', '_' and '-', and begins with a letter or a digit",
        )
    }
}

impl std::error::Error for InvalidName {}

impl TryFrom<String> for ContainerName {
    type Error = InvalidName;

    fn try_from(name: String) -> Result<Self, InvalidName> {
        let mut bytes = name.bytes();
        let starts_well = bytes.next().is_some_and(|b| b.is_ascii_alphanumeric());
        let goes_on_well = bytes.all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b));
        if starts_well && goes_on_well && name.len() <= 64 {
            Ok(Self(name))
        } else {
            Err(InvalidName)
        }
    }
}

impl std::str::FromStr for ContainerName {
    type Err = InvalidName;

    fn from_str(name: &str) -> Result<Self, InvalidName> {
        name.to_owned().try_into()
    }
}

impl From<ContainerName> for String {
    fn from(name: ContainerName) -> Self {
        name.0
    }
}

impl fmt::Display for ContainerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl schemars::JsonSchema for ContainerName {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "ContainerName".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string", "pattern": PATTERN })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_could_be_an_option_or_a_path_are_refused() {
        for bad in [
            "",
            "-P",
            ".",
            "..",
            "a/b",
            "../x",
            "a b",
            "a\0b",
            "ä",
            &"x".repeat(65),
        ] {
            assert_eq!(bad.parse::<ContainerName>(), Err(InvalidName), "{bad:?}");
        }
        for good in ["alpha", "a", "0", "arr-sonarr_2.1", &"x".repeat(64)] {
            assert_eq!(good.parse::<ContainerName>().unwrap().as_str(), good);
        }
        let none = ContainerName::of_none();
        assert_eq!(none.as_str().parse(), Ok(none.clone()));
        assert_ne!(none, ContainerName::of_none());
    }
}
