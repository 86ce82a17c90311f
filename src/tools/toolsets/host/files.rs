//! `file_*`: the host's files, below the directories that `helper.toml` names.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::toolsets::bounded_number::BoundedNumber;
use crate::toolsets::failure::failed;
use gatewren_host::backends::{
    FileEntry, FileFacts, FileMatch, FilePart, FileWritten, HostFileList, HostFileRead,
    HostFileSearch, HostFiles, neutralise,
};
use gatewren_wire::registry::{Cx, HelperClass, Result, Risk, Scope, ToolError, Toolset};

/// The maximum number of bytes of a binary file in one answer: base64 adds a third.
const BINARY_BYTES: usize = 30_000;

/// The maximum size of a written file; the helper has the same limit.
const WRITE_BYTES: usize = 128 * 1024;

/// The toolset.
pub fn tools(files: Arc<HostFiles>) -> Toolset<HostFiles> {
    Toolset::new(files)
        .with_name("files")
        .tool("file_list", Risk::Read, list)
        .about(Scope::Host)
        .through(HelperClass::HostFileReads)
        .titled("List host files")
        .tool("file_search", Risk::Read, search)
        .about(Scope::Host)
        .through(HelperClass::HostFileReads)
        .titled("Search host files")
        .tool("file_read", Risk::Reveal, read)
        .about(Scope::Host)
        .through(HelperClass::HostFileReads)
        .titled("Read a host file")
        .tool("file_write", Risk::Persist, write)
        .about(Scope::Host)
        .through(HelperClass::HostFileWrites)
        .titled("Write a host file")
}

/// List a host directory, sorted by name: each entry's type, size, permissions, owner and modification time. Without
/// `path`, lists the directories that the owner allows; paths outside them cannot be read. `file_read` reads a file;
/// `file_search` finds files.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct List {
    /// The directory's absolute path.
    path: Option<String>,
    /// Entries to skip: `next_offset` of the previous answer.
    #[serde(default)]
    offset: u32,
    /// Maximum entries, 1 to 200.
    #[serde(default)]
    limit: BoundedNumber<1, 200, 100>,
}

#[derive(Serialize, JsonSchema)]
struct Listed {
    /// The resolved path of the directory; absent when none was named.
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<String>,
    /// Sorted by name.
    entries: Vec<FileEntry>,
    /// Total number of entries.
    total: usize,
    /// The next offset; absent at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_offset: Option<u32>,
}

async fn list(files: Arc<HostFiles>, asked: List, cx: Cx) -> Result<Listed> {
    let request = HostFileList {
        path: asked.path,
        offset: asked.offset,
        limit: asked.limit.get(),
    };
    let next = request.offset.saturating_add(request.limit);
    let list = files.list(request, cx.reference()).await.map_err(failed)?;
    let is_more = list.path.is_some() && (next as usize) < list.total;
    Ok(Listed {
        path: list.path,
        entries: list.entries,
        total: list.total,
        next_offset: is_more.then_some(next),
    })
}

/// Find files and directories below a host directory, by name, by text in them, or both. `truncated` means that the
/// search stopped early. `file_read` reads a result.
///
/// Searches only the first MB of each file. Does not follow links or leave the file system.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Search {
    /// The absolute path of the directory to search.
    path: String,
    /// A name pattern, such as `*.conf`. Give this, `text` or both.
    name: Option<String>,
    /// Exact, case-sensitive text within one line of the file.
    text: Option<String>,
    /// Maximum results, 1 to 200.
    #[serde(default)]
    limit: BoundedNumber<1, 200, 50>,
}

#[derive(Serialize, JsonSchema)]
struct Found {
    /// A directory's own files before its subdirectories; by name.
    matches: Vec<FileMatch>,
    /// How many files and directories were searched.
    looked_at: u32,
    /// Whether there may be more.
    truncated: bool,
}

async fn search(files: Arc<HostFiles>, asked: Search, cx: Cx) -> Result<Found> {
    let asked = HostFileSearch {
        path: asked.path,
        name: asked.name,
        text: asked.text,
        limit: asked.limit.get(),
    };
    let found = files.search(asked, cx.reference()).await.map_err(failed)?;
    Ok(Found {
        matches: found.matches,
        looked_at: found.looked_at,
        truncated: found.truncated,
    })
}

/// Read a host file, or a part of it: text as `text`, anything else as `base64`. Continue at `next_offset`. `file_list`
/// and `file_search` find files.
///
/// Paths that the owner does not allow are rejected.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Read {
    /// The absolute path.
    path: String,
    /// First byte to read: `next_offset` of the previous answer.
    #[serde(default)]
    offset: u64,
    /// Maximum bytes, 1 to 40000.
    #[serde(default)]
    limit: BoundedNumber<1, 40_000, 40_000>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Part {
    #[serde(flatten)]
    file: FileFacts,
    /// The bytes, as text.
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    /// Whether control characters were escaped, so that the text differs from the file.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    altered: bool,
    /// The bytes in base64, when not text.
    #[serde(skip_serializing_if = "Option::is_none")]
    base64: Option<String>,
    /// The next offset; absent at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_offset: Option<u64>,
}

async fn read(files: Arc<HostFiles>, asked: Read, cx: Cx) -> Result<Part> {
    let request = HostFileRead {
        path: asked.path,
        offset: asked.offset,
        limit: asked.limit.get(),
    };
    let part = files.read(request, cx.reference()).await;
    Ok(as_text(part.map_err(failed)?, asked.offset))
}

/// Returns text if the bytes are text; a character that the end of the part would split is left for the next part.
fn as_text(part: FilePart, offset: u64) -> Part {
    let FilePart {
        facts: file,
        mut bytes,
    } = part;
    let whole = match std::str::from_utf8(&bytes) {
        Ok(_) => Some(bytes.len()),
        Err(cut) if cut.error_len().is_none() && cut.valid_up_to() > 0 => Some(cut.valid_up_to()),
        Err(_) => None,
    };
    let whole = whole.filter(|_| !bytes.contains(&0));
    bytes.truncate(whole.unwrap_or(BINARY_BYTES));
    let next = offset.saturating_add(bytes.len() as u64);
    let text = whole.map(|_| String::from_utf8_lossy(&bytes).into_owned());
    let shown = text.as_deref().map(|text| neutralise(text).into_owned());
    Part {
        altered: shown != text,
        base64: text.is_none().then(|| STANDARD.encode(&bytes)),
        text: shown,
        next_offset: (next < file.size_bytes && !bytes.is_empty()).then_some(next),
        file,
    }
}

/// Write a whole host file atomically, as root. An existing file keeps
/// owner and permissions; its old version is kept as the name plus `~`, replacing an older one. To change a part, first
/// `file_read` all of it.
///
/// The directory must exist; fails for a link. A new file is root's, readable by others.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Write {
    /// The absolute path.
    path: String,
    /// The whole content; readers never see a partial file. Give this or `base64`; at most 128 KiB.
    text: Option<String>,
    /// The content, if binary.
    base64: Option<String>,
    /// Write only if the file does not exist.
    #[serde(default)]
    only_new: bool,
}

async fn write(files: Arc<HostFiles>, asked: Write, cx: Cx) -> Result<FileWritten> {
    let bytes = match (asked.text, asked.base64) {
        (Some(text), None) => text.into_bytes(),
        (None, Some(base64)) => STANDARD.decode(base64).map_err(|cause| {
            ToolError::new(format!("`base64` is not valid: {cause}")).hint("Nothing was done.")
        })?,
        _ => {
            return Err(ToolError::new("give either `text` or `base64`")
                .hint("Nothing was done.")
                .into());
        }
    };
    if bytes.len() > WRITE_BYTES {
        let most = format!("a file may have {WRITE_BYTES} bytes at most");
        return Err(ToolError::new(most).hint("Nothing was done.").into());
    }
    let write = files.write(asked.path, &bytes, asked.only_new, cx.reference());
    write.await.map_err(failed)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, from_value, json};

    use super::super::files::*;

    fn part(bytes: &[u8], size_bytes: u64, offset: u64) -> Value {
        let facts = json!({ "path": "/srv/a", "kind": "file", "size_bytes": size_bytes, "mode": "0644", "uid": 0,
            "gid": 0, "modified": "2026-07-28T09:30:00.000Z" });
        let part = FilePart {
            facts: from_value(facts).unwrap(),
            bytes: bytes.to_owned(),
        };
        json!(as_text(part, offset))
    }

    #[test]
    fn text_ends_at_a_whole_character_and_says_where_to_go_on() {
        let all = part("grün".as_bytes(), 5, 0);
        assert_eq!(
            (&all["text"], all.get("next_offset")),
            (&json!("grün"), None)
        );
        let cut = part(&"grün".as_bytes()[..3], 5, 0);
        assert_eq!(
            (&cut["text"], &cut["next_offset"]),
            (&json!("gr"), &json!(2))
        );
        let end = part(b"", 5, 9);
        assert_eq!((&end["text"], end.get("next_offset")), (&json!(""), None));
        let colours = part(b"\x1b[31mred", 8, 0);
        assert_eq!(
            (&colours["text"], &colours["altered"]),
            (&json!("^[[31mred"), &json!(true))
        );
    }

    #[test]
    fn what_is_no_text_is_base64() {
        for bytes in [&b"a\0b"[..], b"\xff\xfe", b"\xc3"] {
            let part = part(bytes, 100, 7);
            assert_eq!(part["base64"], STANDARD.encode(bytes));
            assert_eq!(part["next_offset"], 7 + bytes.len());
            assert!(part.get("text").is_none() && part.get("altered").is_none());
        }
        let long = part(&vec![0; 40_000], 40_000, 0);
        assert_eq!(long["next_offset"], BINARY_BYTES);
    }
}
