//! `container_file_*`: files in containers, running or not.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::toolsets::bounded_number::BoundedNumber;
use crate::toolsets::failure::failed;
use gatewren_host::backends::{
    ContainerRef, DirectoryPage, InsidePart, InsidePath, Lxc, NewFileContent, PART_BYTES,
    from_base64,
};
use gatewren_wire::registry::{Cx, HelperClass, Result, Risk, Scope, ToolError, Toolset};

/// The maximum size of a write: what fits into one message to the helper.
const WRITE_BYTES: usize = 128 * 1024;

/// The toolset.
pub fn tools(lxc: Arc<Lxc>) -> Toolset<Lxc> {
    Toolset::new(lxc)
        .with_name("containers")
        .tool("container_file_list", Risk::Read, list)
        .about(Scope::Container("container"))
        .through(HelperClass::ContainerFiles)
        .titled("List files in a container")
        .tool("container_file_read", Risk::Reveal, read)
        .about(Scope::Container("container"))
        .through(HelperClass::ContainerFiles)
        .titled("Read a file in a container")
        .tool("container_file_write", Risk::Persist, write)
        .about(Scope::Container("container"))
        .through(HelperClass::ContainerFiles)
        .titled("Write a file in a container")
}

/// List a directory in the root file system of a running or stopped container, sorted by name. `container_file_read`
/// reads a file.
///
/// Links are resolved inside the container; separate mounts are not entered.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct List {
    /// The container's name. `container_list` shows it.
    container: ContainerRef,
    /// The directory's path inside the container, such as `/etc`.
    path: InsidePath,
    /// Only names after this one: the last name of the previous page.
    after: Option<String>,
    /// The maximum number of entries.
    #[serde(default)]
    limit: BoundedNumber<1, 500, 200>,
}

async fn list(lxc: Arc<Lxc>, asked: List, cx: Cx) -> Result<DirectoryPage> {
    let lxc = lxc.view_for(&cx.caller().reach, cx.reference());
    let limit = asked.limit.get();
    let page = lxc.list_files(&asked.container, asked.path, asked.after, limit);
    page.await.map_err(failed)
}

/// Read a file in the root file system of a running or stopped container: text as it is, other content as base64. A
/// long file comes in parts; `next_offset` starts the next one. `container_file_list` lists files.
///
/// No link leads out of the container.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Read {
    /// The container's name. `container_list` shows it.
    container: ContainerRef,
    /// The file's path inside the container, such as `/etc/hosts`.
    path: InsidePath,
    /// The byte to start at.
    #[serde(default)]
    offset: u64,
    /// The maximum number of bytes to return.
    #[serde(default)]
    bytes: BoundedNumber<1, PART_BYTES, PART_BYTES>,
}

async fn read(lxc: Arc<Lxc>, asked: Read, cx: Cx) -> Result<InsidePart> {
    let lxc = lxc.view_for(&cx.caller().reach, cx.reference());
    let bytes = asked.bytes.get();
    let part = lxc.read_file(&asked.container, asked.path, asked.offset, bytes);
    part.await.map_err(failed)
}

/// Write a file in the root file system of a container, completely or not at all, and return its size. The old content
/// is lost; `container_file_read` shows it first.
///
/// The directory must exist. Fails for a link. Owner and permissions are kept; a new file gets the directory's owner.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Write {
    /// The container's name. `container_list` shows it.
    container: ContainerRef,
    /// The file's path inside the container, such as `/etc/hosts`.
    path: InsidePath,
    /// The new content as text. Give this or `base64`.
    text: Option<String>,
    /// The new content in base64, for binary files.
    base64: Option<String>,
    /// The file's permissions in octal, such as `0644`.
    mode: Option<FileMode>,
}

#[derive(Serialize, JsonSchema)]
struct Written {
    /// The file's new size in bytes.
    size_bytes: usize,
}

async fn write(lxc: Arc<Lxc>, asked: Write, cx: Cx) -> Result<Written> {
    let content = match (asked.text, asked.base64) {
        (Some(text), None) => text.into_bytes(),
        (None, Some(base64)) => from_base64(&base64).map_err(failed)?,
        _ => return Err(ToolError::new("give either text or base64").into()),
    };
    if content.len() > WRITE_BYTES {
        let words = format!("one call writes at most {WRITE_BYTES} bytes");
        return Err(ToolError::new(words).into());
    }
    let file = NewFileContent {
        path: asked.path,
        content: &content,
        mode: asked.mode.map(|mode| mode.0),
        on_host: cx.is_on_host(),
    };
    let lxc = lxc.view_for(&cx.caller().reach, cx.reference());
    lxc.write_file(&asked.container, file)
        .await
        .map_err(failed)?;
    Ok(Written {
        size_bytes: content.len(),
    })
}

/// Permissions in octal, as `chmod` accepts them.
#[derive(Deserialize, JsonSchema)]
#[serde(try_from = "String")]
#[schemars(with = "String", description = "", extend("pattern" = "^0*[0-7]{1,3}$"))]
struct FileMode(u32);

impl TryFrom<String> for FileMode {
    type Error = &'static str;

    fn try_from(text: String) -> std::result::Result<Self, &'static str> {
        let digits = text.bytes().all(|b| matches!(b, b'0'..=b'7'));
        let mode = u32::from_str_radix(&text, 8).ok().filter(|_| digits);
        let mode = mode.filter(|mode| *mode <= 0o777).map(Self);
        mode.ok_or("permissions must be octal and at most 0777, such as 0644")
    }
}
