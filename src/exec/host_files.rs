//! What is asked about the host's files, and what is told of them.

use std::fs::Metadata;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What stands in a directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostFileList {
    /// Its absolute path; when absent, the directories that may be read are told.
    #[serde(default)]
    pub path: Option<String>,
    /// How many entries to pass over.
    pub offset: u32,
    /// How many entries to tell at most.
    pub limit: u32,
}

/// Which files are looked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostFileSearch {
    /// Below which directory; an absolute path.
    pub path: String,
    /// A pattern that the name fits, where `*` stands for any run of characters and `?` for one byte.
    #[serde(default)]
    pub name: Option<String>,
    /// A text that stands in it.
    #[serde(default)]
    pub text: Option<String>,
    /// How many to tell at most.
    pub limit: u32,
}

/// A part of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostFileRead {
    /// Its absolute path.
    pub path: String,
    /// The first byte.
    pub offset: u64,
    /// How many bytes at most.
    pub limit: u32,
}

/// A file as it is to be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostFileWrite {
    /// Its absolute path.
    pub path: String,
    /// All that it is to hold, in base64 (RFC 4648).
    pub base64: String,
    /// Whether to refuse when there is one already.
    pub new: bool,
}

/// What an entry of a directory is.
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
    /// By what the system says of it.
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

/// What is known of a file without opening it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FileFacts {
    /// Where it is, links resolved.
    pub path: String,
    /// What it is.
    pub kind: FileKind,
    /// Its size in bytes.
    pub size_bytes: u64,
    /// Its permissions in octal, such as `0644`.
    pub mode: String,
    /// The number of the user that owns it.
    pub uid: u32,
    /// The number of its group.
    pub gid: u32,
    /// When it was last written, RFC 3339.
    pub modified: String,
}

/// An entry of a directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FileEntry {
    /// Its name; bytes that are not UTF-8 are replaced.
    pub name: String,
    /// What it is.
    pub kind: FileKind,
    /// Its size in bytes; absent for what is no file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size_bytes: Option<u64>,
    /// Its permissions in octal, such as `0644`.
    pub mode: String,
    /// The number of the user that owns it.
    pub uid: u32,
    /// The number of its group.
    pub gid: u32,
    /// When it was last written, RFC 3339.
    pub modified: String,
}

/// What stands in a directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileList {
    /// Where it is, links resolved; absent where the directories that may be read are told.
    #[serde(default)]
    pub path: Option<String>,
    /// Sorted by name.
    pub entries: Vec<FileEntry>,
    /// How many there are in all.
    pub total: usize,
}

/// A file that was looked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FileMatch {
    /// Where it is.
    pub path: String,
    /// What it is.
    pub kind: FileKind,
    /// Its size in bytes; absent for what is no file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size_bytes: Option<u64>,
    /// The first line that has the text, counted from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line_number: Option<u32>,
    /// That line, the beginning of it when it is long.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<String>,
}

/// What a search has found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileMatches {
    /// In the order of the walk: a directory's own files first, sorted by name.
    pub matches: Vec<FileMatch>,
    /// How many files and directories were looked at.
    pub looked_at: u32,
    /// Whether it ended before it had looked at everything.
    pub truncated: bool,
}

/// What became of a file that was written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FileWritten {
    /// Where it is, links resolved.
    pub path: String,
    /// Its size in bytes.
    pub size_bytes: u64,
    /// Where the old version was kept; absent when there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub old_version: Option<String>,
}
