//! Places for containers in the owner's settings.

use std::fmt;
use std::str::FromStr;

/// The longest path of a place, in bytes.
const PATH_BYTES: usize = 512;

/// The longest name of a place, in bytes.
const NAME_BYTES: usize = 32;

/// The name of LXC's own directory, which no entry can have.
pub const DEFAULT_STORE: &str = "default";

/// A directory where containers may be moved, under a name that the owner chose.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContainerStore {
    name: String,
    path: String,
}

impl ContainerStore {
    /// Returns the name that clients use.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the absolute path of its directory.
    pub fn path(&self) -> &str {
        &self.path
    }
}

/// The error for a text that is not a place for containers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvalidContainerStore;

impl FromStr for ContainerStore {
    type Err = InvalidContainerStore;

    /// Parses `NAME: /DIRECTORY`.
    fn from_str(text: &str) -> Result<Self, InvalidContainerStore> {
        let (name, path) = text.split_once(':').ok_or(InvalidContainerStore)?;
        let (name, path) = (name.trim(), path.trim().trim_end_matches('/'));
        let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b"_-".contains(&b);
        let begins = name.starts_with(|c: char| c.is_ascii_alphanumeric());
        let is_name = begins && name.len() <= NAME_BYTES && name.bytes().all(plain);
        // Rejects characters with a special meaning in a definition of LXC or in the quotes of the file.
        let is_plain = |c: char| c.is_ascii_graphic() && !"\"'\\$`:,".contains(c);
        let mut parts = path.split('/').skip(1);
        let is_path = path.starts_with('/')
            && path.len() <= PATH_BYTES
            && path.chars().all(is_plain)
            && parts.all(|part| !matches!(part, "" | "." | ".."));
        let store = Self {
            name: name.to_owned(),
            path: path.to_owned(),
        };
        (is_name && is_path && name != DEFAULT_STORE)
            .then_some(store)
            .ok_or(InvalidContainerStore)
    }
}

impl fmt::Display for ContainerStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.name, self.path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_a_name_and_an_absolute_path() {
        let store: ContainerStore = "big: /srv/containers/".parse().unwrap();
        assert_eq!((store.name(), store.path()), ("big", "/srv/containers"));
        assert_eq!(store.to_string().parse(), Ok(store));
        for bad in [
            "",
            "big",
            "big:",
            "big: srv",
            "big: /",
            "big: /srv/../etc",
            "big: /srv//x",
            "big: /a b",
            "Big: /srv",
            "default: /srv",
            "-a: /srv",
            "a: /srv:/x",
        ] {
            assert!(bad.parse::<ContainerStore>().is_err(), "{bad:?}");
        }
    }
}
