//! Where the files of a container are, where they could be moved, and the result of a move.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::text_type::text_type;

text_type!(
    /// The name of a place for containers: `default` for LXC's own directory, or a name of `container_stores` in
    /// `helper.toml`.
    StoreName,
    { "pattern": "^[a-z0-9][a-z0-9_-]{0,31}$" },
    |text| {
        let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b"_-".contains(&b);
        let begins = text.starts_with(|c: char| c.is_ascii_alphanumeric());
        begins && text.len() <= 32 && text.bytes().all(plain)
    },
    "a place for containers is named by 1 to 32 lowercase letters, digits, '_' and '-'"
);

/// Where the files of a container of LXC are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ContainerStorage {
    /// The kind of storage: `directory`, `btrfs`, `lvm`, `zfs`, `overlay`, `loop` or another one of LXC. Only
    /// directories and btrfs can be moved.
    pub kind: String,
    /// The directory of its root file system.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The type of the file system that it is on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filesystem: Option<String>,
    /// The size of its files in bytes; absent if they could not be counted in time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// What is free there for an unprivileged program, in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub available_bytes: Option<u64>,
    /// The copy that the last move left behind; `container_move` with `remove_old` deletes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub old_copy: Option<String>,
    /// Where it can be moved.
    pub stores: Vec<StoreFacts>,
}

/// A place for containers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StoreFacts {
    /// Its name.
    pub name: StoreName,
    /// Its directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The type of its file system.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filesystem: Option<String>,
    /// What is free there for an unprivileged program, in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub available_bytes: Option<u64>,
    /// Whether the container can be moved there.
    pub fits: bool,
    /// Why not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub obstacle: Option<String>,
}

/// The result of a move.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MovedContainer {
    /// The directory of its root file system now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The copied bytes.
    pub bytes: u64,
    /// Whether it was started again and ran for five seconds; false if it was stopped before.
    pub runs: bool,
    /// The old directory, which is still there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub old_copy: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_is_named_by_a_plain_word() {
        for good in ["default", "big", "hdd-2"] {
            assert!(good.parse::<StoreName>().is_ok(), "{good}");
        }
        for bad in ["", "-a", "a/b", "..", "Big", "a b", &"x".repeat(33)] {
            assert!(bad.parse::<StoreName>().is_err(), "{bad:?}");
        }
    }
}
