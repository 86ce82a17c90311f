//! Files in a container, running or not. Paths are resolved inside the container, whatever its links point to.

use std::ffi::OsString;
use std::fs::Metadata;
use std::io;
use std::os::unix::fs::MetadataExt as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use gatewren_base::sys::rfc3339;
use gatewren_wire::operations::{
    ContainerAction, ContainerRef, FileExcerpt, InsideEntry, InsideKind, InsidePath, OperationEnd,
    OperationRefusal,
};

use super::paths::inside;
use crate::context::helper_context::HelperContext;
use crate::context::operation_context::OperationContext;
use crate::processes::answers::{line, to_its_end};
use crate::processes::printing::print;

/// The most bytes of a file in one response; the rest is cut off.
pub const READ_BYTES: u32 = 1024 * 1024;

/// The most entries in one response; the rest are omitted.
pub const ENTRIES: u32 = 1000;

/// The most names of a directory that are read; the rest are omitted.
pub const NAMES: usize = 100_000;

/// Performs an action on files in a container.
pub async fn act(
    context: &mut OperationContext<'_>,
    container: &ContainerRef,
    action: &ContainerAction,
) -> Result<OperationEnd, OperationRefusal> {
    match action {
        ContainerAction::ListFiles { path, after, limit } => {
            list(context, container, path, after.clone(), *limit).await
        }
        ContainerAction::ReadFile {
            path,
            offset,
            bytes,
        } => read(context, container, path, *offset, *bytes).await,
        ContainerAction::WriteFile {
            path,
            content,
            mode,
            on_host: _,
        } => write(context.helper, container, path, content, *mode).await,
        _ => Err(OperationRefusal::failed("unsupported operation")),
    }
}

/// Prints the entries of a directory, sorted by name.
async fn list(
    context: &mut OperationContext<'_>,
    container: &ContainerRef,
    path: &InsidePath,
    after: Option<String>,
    limit: u32,
) -> Result<OperationEnd, OperationRefusal> {
    let root = inside(context.helper, container).await?;
    let path = path.clone();
    let limit = usize::try_from(limit.min(ENTRIES)).unwrap_or_default();
    print(context.relay, move || {
        let wanted = |mut names: Vec<OsString>| {
            let behind = |name: &OsString| after.as_ref().is_none_or(|a| *name > **a);
            names.retain(behind);
            names.sort();
            names.truncate(limit);
            names
        };
        let found = root.list(path.relative(), wanted, NAMES);
        let found = found.map_err(|e| file_refusal(&path, &e))?;
        Ok(found
            .iter()
            .flat_map(|(name, facts)| line(&entry(name, facts)))
            .collect())
    })
    .await
}

/// Prints a part of a file.
async fn read(
    context: &mut OperationContext<'_>,
    container: &ContainerRef,
    path: &InsidePath,
    offset: u64,
    bytes: u32,
) -> Result<OperationEnd, OperationRefusal> {
    let root = inside(context.helper, container).await?;
    let path = path.clone();
    print(context.relay, move || {
        let read = root.read(path.relative(), offset, bytes.min(READ_BYTES).into());
        let (bytes, facts) = read.map_err(|e| file_refusal(&path, &e))?;
        let size_bytes = facts.len();
        let mut out = line(&FileExcerpt { size_bytes, offset });
        out.extend(bytes);
        Ok(out)
    })
    .await
}

/// Writes a file.
async fn write(
    helper: &HelperContext,
    container: &ContainerRef,
    path: &InsidePath,
    content: &str,
    mode: Option<u32>,
) -> Result<OperationEnd, OperationRefusal> {
    let content = STANDARD.decode(content);
    let content =
        content.map_err(|_| OperationRefusal::bad_command("the content is not base64"))?;
    let root = inside(helper, container).await?;
    let path = path.clone();
    to_its_end(move || {
        let (directory, name) = path
            .split()
            .ok_or_else(|| OperationRefusal::bad_command(format!("{path} does not name a file")))?;
        root.write(directory, name, &content, mode)
            .map_err(|e| file_refusal(&path, &e))
    })
    .await?;
    Ok(OperationEnd::SUCCESS)
}

fn entry(name: &OsString, facts: &Metadata) -> InsideEntry {
    let kind = facts.file_type();
    let kind = match () {
        () if kind.is_file() => InsideKind::File,
        () if kind.is_dir() => InsideKind::Directory,
        () if kind.is_symlink() => InsideKind::Link,
        () => InsideKind::Other,
    };
    InsideEntry {
        name: name.to_string_lossy().into_owned(),
        kind,
        size_bytes: (kind == InsideKind::File).then_some(facts.len()),
        mode: format!("{:04o}", facts.mode() & 0o7777),
        uid: facts.uid(),
        gid: facts.gid(),
        modified: write_time(facts.mtime()),
    }
}

/// Formats the time of a write; a time before 1970 is written as 1970.
pub fn write_time(seconds: i64) -> String {
    rfc3339(
        u64::try_from(seconds)
            .unwrap_or_default()
            .saturating_mul(1000),
    )
}

/// Converts an error to a refusal; `path` is the one that the caller named.
pub fn file_refusal(path: &InsidePath, cause: &io::Error) -> OperationRefusal {
    use io::ErrorKind::{CrossesDevices, InvalidInput, NotADirectory, NotFound};
    let path = path.to_string();
    let path = path.escape_debug();
    match cause.kind() {
        NotFound => OperationRefusal::bad_command(format!("there is no {path} in the container")),
        NotADirectory => OperationRefusal::bad_command(format!("{path} is not a directory")),
        CrossesDevices => OperationRefusal::bad_command(format!(
            "{path} is on a separate mount, which this tool does not enter; use container_shell"
        )),
        InvalidInput => OperationRefusal::bad_command(format!("{path}: {cause}")),
        _ => OperationRefusal::failed(format!("{path}: {cause}")),
    }
}
