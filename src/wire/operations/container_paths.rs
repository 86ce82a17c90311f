//! Paths in a container's root file system, and the entries found there.

use serde::{Deserialize, Serialize};

use super::text_type::text_type;

/// The kernel's limit for a path, without its NUL.
const MOST_BYTES: usize = 4095;

text_type!(
    /// An absolute path as seen inside a container, such as `/etc/hosts`. It cannot contain `..`.
    InsidePath,
    { "pattern": "^/", "maxLength": MOST_BYTES },
    |path| {
        let goes_down = path.split('/').all(|part| part != "..");
        path.starts_with('/') && path.len() <= MOST_BYTES && !path.contains('\0') && goes_down
    },
    "a path must be absolute, such as /etc/hosts, without .., and have at most 4095 bytes and no NUL"
);

impl InsidePath {
    /// The path without its leading slash; `.` for the root.
    pub fn relative(&self) -> &str {
        match self.0.trim_start_matches('/') {
            "" => ".",
            path => path,
        }
    }

    /// The parent directory and the file name; `None` if the path cannot be a file.
    pub fn split(&self) -> Option<(&str, &str)> {
        let path = self.relative();
        let (directory, name) = path.rsplit_once('/').unwrap_or((".", path));
        let names_a_file = !matches!(name, "" | ".");
        names_a_file.then_some((directory, name))
    }
}

/// An entry of a directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct InsideEntry {
    /// Its name; bytes that are not UTF-8 are replaced.
    pub name: String,
    /// The kind of entry.
    pub kind: InsideKind,
    /// A file's size in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size_bytes: Option<u64>,
    /// Its permissions in octal, such as `0644`.
    pub mode: String,
    /// The owner's user id on the host.
    pub uid: u32,
    /// The group id on the host.
    pub gid: u32,
    /// The time of the last write, RFC 3339.
    pub modified: String,
}

/// The kind of a directory entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum InsideKind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link.
    Link,
    /// A device, a socket or a pipe.
    Other,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_names_a_place_below_the_root() {
        let path = |text: &str| text.parse::<InsidePath>().unwrap();
        assert_eq!(path("/").relative(), ".");
        assert_eq!(path("//etc/hosts").relative(), "etc/hosts");
        assert_eq!(path("/etc/hosts").split(), Some(("etc", "hosts")));
        assert_eq!(path("/motd").split(), Some((".", "motd")));
        for none in ["/", "/etc/", "/."] {
            assert_eq!(path(none).split(), None, "{none}");
        }
        for bad in [
            "",
            "etc",
            "../etc",
            "/etc/..",
            "/../etc",
            "-x",
            "/a\0b",
            &format!("/{}", "x".repeat(5000)),
        ] {
            assert!(bad.parse::<InsidePath>().is_err(), "{bad}");
        }
    }
}
