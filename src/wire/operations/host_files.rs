//! Requests about the host's files, and their results.

use std::fs::Metadata;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A request for the entries of a directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostFileList {
    /// Its absolute path; when absent, the readable root directories are listed.
    #[serde(default)]
    pub path: Option<String>,
    /// How many entries to skip.
    pub offset: u32,
    /// The maximum number of entries.
    pub limit: u32,
}

/// A search for files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostFileSearch {
    /// The directory to search, an absolute path.
    pub path: String,
    /// A pattern for the name; `*` matches any run of characters and `?` one byte.
    #[serde(default)]
    pub name: Option<String>,
    /// A text that the file contains.
    #[serde(default)]
    pub text: Option<String>,
    /// The maximum number of results.
    pub limit: u32,
}

/// A request for a part of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostFileRead {
    /// Its absolute path.
    pub path: String,
    /// The offset of the first byte.
    pub offset: u64,
    /// The maximum number of bytes.
    pub limit: u32,
}

/// A request to write a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostFileWrite {
    /// Its absolute path.
    pub path: String,
    /// The complete content, in base64 (RFC 4648).
    pub base64: String,
    /// Whether to reject the request if the file exists.
    pub new: bool,
}

/// The kind of a file system entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FileKind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link.
    Link,
    /// A device, a pipe or a socket.
    Other,
}

impl FileKind {
    /// Returns the kind that the metadata states.
    pub fn of(facts: &Metadata) -> Self {
        let kind = facts.file_type();
        if kind.is_file() {
            Self::File
        } else if kind.is_dir() {
            Self::Directory
        } else if kind.is_symlink() {
            Self::Link
        } else {
            Self::Other
        }
    }
}

/// The metadata of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FileFacts {
    /// Its path with links resolved.
    pub path: String,
    /// The kind of entry.
    pub kind: FileKind,
    /// Its size in bytes.
    pub size_bytes: u64,
    /// Its permissions in octal, such as `0644`.
    pub mode: String,
    /// The owner's user id.
    pub uid: u32,
    /// The group id.
    pub gid: u32,
    /// The time of the last write, RFC 3339.
    pub modified: String,
}

/// An entry of a directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FileEntry {
    /// Its name; bytes that are not UTF-8 are replaced.
    pub name: String,
    /// The kind of entry.
    pub kind: FileKind,
    /// Its size in bytes; only for files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size_bytes: Option<u64>,
    /// Its permissions in octal, such as `0644`.
    pub mode: String,
    /// The owner's user id.
    pub uid: u32,
    /// The group id.
    pub gid: u32,
    /// The time of the last write, RFC 3339.
    pub modified: String,
}

/// The entries of a directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileList {
    /// Its path with links resolved; absent for the list of readable root directories.
    #[serde(default)]
    pub path: Option<String>,
    /// The entries, sorted by name.
    pub entries: Vec<FileEntry>,
    /// The total number of entries.
    pub total: usize,
}

/// A file that matches a search.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FileMatch {
    /// Its path.
    pub path: String,
    /// The kind of entry.
    pub kind: FileKind,
    /// Its size in bytes; only for files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size_bytes: Option<u64>,
    /// The first line that contains the text, counted from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line_number: Option<u32>,
    /// That line; only its beginning if it is long.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<String>,
}

/// The result of a search.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileMatches {
    /// The matches in the order of the walk: a directory's own files first, sorted by name.
    pub matches: Vec<FileMatch>,
    /// How many files and directories were examined.
    pub looked_at: u32,
    /// Whether the search ended before it had examined everything.
    pub truncated: bool,
}

/// The result of writing a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FileWritten {
    /// Its path with links resolved.
    pub path: String,
    /// Its size in bytes.
    pub size_bytes: u64,
    /// Where the old version is kept; absent if there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub old_version: Option<String>,
}
