//! Files of the host: lists a directory, reads a part of a file, writes a file and keeps its old version.

use std::ffi::OsStr;
use std::fs::{self, DirEntry, File, Metadata, OpenOptions, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::{FileExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;

use gatewren_base::sys::{random_bytes, rfc3339};
use gatewren_wire::operations::{
    FileEntry, FileFacts, FileKind, FileList, FileWritten, HostFileList, HostFileRead,
    HostFileWrite, Operation, OperationEnd, OperationRefusal,
};

use super::allowed_paths::{AllowedDirectories, AllowedPath, path_refusal};
use super::search::search;
use crate::context::operation_context::OperationContext;
use crate::processes::printing::print;

/// The most entries of one response.
const ANSWER_ENTRIES: u32 = 1000;

/// The most bytes of one response.
const ANSWER_BYTES: u32 = 256 * 1024;

/// The largest file that can be written: a request is one frame, and base64 adds a third.
const WRITE_BYTES: usize = 128 * 1024;

/// The mode of a new file: root, its owner, may write, all may read.
const NEW_MODE: u32 = 0o644;

/// The permission bits that a replaced file keeps. As with any write, set-user-ID and set-group-ID are dropped.
const KEPT_MODE: u32 = 0o1777;

/// The suffix of an old version's name. Most programs that read all files of a directory ignore such names.
const OLD: &str = "~";

/// Performs one of the operations on the host's files.
pub async fn perform(
    context: &mut OperationContext<'_>,
    operation: &Operation,
) -> Result<OperationEnd, OperationRefusal> {
    let policy = context.helper.policy.now();
    let allowed =
        |key, roots: &[String]| AllowedDirectories::new(context.helper, key, roots.to_vec());
    let reads = || allowed("host_file_reads", &policy.host_file_reads);
    match operation.clone() {
        Operation::HostFileList(request) => {
            let allowed = reads();
            print(context.relay, move || Ok(json(&list(&allowed, &request)?))).await
        }
        Operation::HostFileSearch(request) => {
            let allowed = reads();
            print(context.relay, move || {
                Ok(json(&search(&allowed, &request)?))
            })
            .await
        }
        Operation::HostFileRead(request) => {
            let allowed = reads();
            print(context.relay, move || read(&allowed, &request)).await
        }
        Operation::HostFileWrite(request) => {
            let allowed = allowed("host_file_writes", &policy.host_file_writes);
            print(context.relay, move || Ok(json(&write(&allowed, &request)?))).await
        }
        _ => Err(OperationRefusal::failed("unsupported file operation")),
    }
}

fn list(
    allowed: &AllowedDirectories,
    request: &HostFileList,
) -> Result<FileList, OperationRefusal> {
    let Some(path) = &request.path else {
        let facts = |root: &String| Some(entry(root.clone(), &fs::metadata(root).ok()?));
        let entries: Vec<FileEntry> = allowed.roots().iter().filter_map(facts).collect();
        return Ok(FileList {
            path: None,
            total: entries.len(),
            entries,
        });
    };
    let place = allowed.find(path)?;
    let mut names = place.entries()?;
    names.sort_by_key(DirEntry::file_name);
    // An entry that no longer exists is left out. A link is listed as a link, not as its target.
    let listed = names.iter().skip(request.offset as usize);
    let listed = listed.take(request.limit.min(ANSWER_ENTRIES) as usize);
    let listed = listed.filter_map(|found| {
        let name = found.file_name().to_string_lossy().into_owned();
        Some(entry(name, &found.metadata().ok()?))
    });
    Ok(FileList {
        path: Some(place.path.to_string_lossy().into_owned()),
        entries: listed.collect(),
        total: names.len(),
    })
}

fn read(allowed: &AllowedDirectories, request: &HostFileRead) -> Result<Vec<u8>, OperationRefusal> {
    let place = allowed.find(&request.path)?;
    let file = place.open()?;
    let mut bytes = vec![0; request.limit.min(ANSWER_BYTES) as usize];
    let mut filled = 0;
    while let Some(rest) = bytes.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        let at = request.offset.saturating_add(filled as u64);
        match file.read_at(rest, at) {
            Ok(0) => break,
            Ok(more) => filled += more,
            Err(cause) if cause.kind() == io::ErrorKind::Interrupted => {}
            Err(cause) => return Err(path_refusal(&request.path, &cause)),
        }
    }
    bytes.truncate(filled);
    let mut answer = json(&facts(&place));
    answer.push(b'\n');
    answer.extend(bytes);
    Ok(answer)
}

/// The new version is renamed into place in one step: a reader, or a power failure, sees the old file or the new one.
fn write(
    allowed: &AllowedDirectories,
    request: &HostFileWrite,
) -> Result<FileWritten, OperationRefusal> {
    let path = Path::new(&request.path);
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(OperationRefusal::bad_command(
            "the path does not name a file",
        ));
    };
    let bytes = STANDARD.decode(&request.base64);
    let bytes = bytes.map_err(|_| OperationRefusal::bad_command("the content is not base64"))?;
    if bytes.len() > WRITE_BYTES {
        let most = format!("a file that is written may have {WRITE_BYTES} bytes at most");
        return Err(OperationRefusal::bad_command(most));
    }
    let directory = allowed.find(&parent.to_string_lossy())?;
    if !directory.facts.is_dir() {
        return Err(directory.is_no("directory"));
    }
    let old = old_version(allowed, &directory, name, request.new)?;
    let at = directory.path.join(name);
    let written = replace(&directory, name, &bytes, old.as_ref());
    let old_name = written.map_err(|e| path_refusal(&at.to_string_lossy(), &e))?;
    Ok(FileWritten {
        path: at.to_string_lossy().into_owned(),
        size_bytes: bytes.len() as u64,
        old_version: old_name
            .map(|old_name| directory.path.join(old_name).to_string_lossy().into_owned()),
    })
}

/// Returns the metadata of the file at this name, if there is one and it may be replaced.
fn old_version(
    allowed: &AllowedDirectories,
    directory: &AllowedPath,
    name: &OsStr,
    must_be_new: bool,
) -> Result<Option<Metadata>, OperationRefusal> {
    let at = directory.path.join(name);
    let shown = at.to_string_lossy();
    let facts = match fs::symlink_metadata(directory.descriptor_path().join(name)) {
        Ok(facts) => facts,
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(cause) => return Err(path_refusal(&shown, &cause)),
    };
    if must_be_new {
        return Err(OperationRefusal::failed(format!("{shown} already exists")));
    }
    if facts.is_symlink() {
        let message = format!("{shown} is a symbolic link; name its target instead");
        return Err(OperationRefusal::failed(message));
    }
    if !facts.is_file() || allowed.excludes(&at, &facts) {
        let message = format!("{shown} is not a file that may be replaced");
        return Err(OperationRefusal::failed(message));
    }
    Ok(Some(facts))
}

/// Writes a temporary file, links the old version to its own name, and renames. Returns the name of the old version.
fn replace(
    directory: &AllowedPath,
    name: &OsStr,
    bytes: &[u8],
    old: Option<&Metadata>,
) -> io::Result<Option<PathBuf>> {
    let folder = directory.descriptor_path();
    let random = random_bytes::<8>().map_err(io::Error::other)?;
    let passing = folder.join(format!(".gatewren-{:016x}", u64::from_ne_bytes(random)));
    let old_name = old.map(|_| {
        let mut old_name = name.to_owned();
        old_name.push(OLD);
        PathBuf::from(old_name)
    });
    let done = create(&passing, bytes, old).and_then(|()| match &old_name {
        Some(old_name) => {
            // Only the name is removed: the version kept before.
            match fs::remove_file(folder.join(old_name)) {
                Err(cause) if cause.kind() != io::ErrorKind::NotFound => return Err(cause),
                _ => {}
            }
            fs::hard_link(folder.join(name), folder.join(old_name))?;
            fs::rename(&passing, folder.join(name))
        }
        // Fails if another process has taken the name, instead of replacing its file.
        None => fs::hard_link(&passing, folder.join(name)),
    });
    if done.is_err() || old_name.is_none() {
        // Best effort: the first error is the one that matters.
        let _ = fs::remove_file(&passing);
    }
    done?;
    File::open(&folder)?.sync_all()?;
    Ok(old_name)
}

/// Creates a file with the owner and permissions of the old one.
fn create(path: &Path, bytes: &[u8], old: Option<&Metadata>) -> io::Result<()> {
    let mut options = OpenOptions::new();
    let mut file = options
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?;
    file.write_all(bytes)?;
    if let Some(old) = old {
        std::os::unix::fs::fchown(&file, Some(old.uid()), Some(old.gid()))?;
    }
    let mode = old.map_or(NEW_MODE, |old| old.mode() & KEPT_MODE);
    file.set_permissions(Permissions::from_mode(mode))?;
    file.sync_all()
}

fn facts(place: &AllowedPath) -> FileFacts {
    let entry = entry(String::new(), &place.facts);
    FileFacts {
        path: place.path.to_string_lossy().into_owned(),
        kind: entry.kind,
        size_bytes: place.facts.len(),
        mode: entry.mode,
        uid: entry.uid,
        gid: entry.gid,
        modified: entry.modified,
    }
}

fn entry(name: String, facts: &Metadata) -> FileEntry {
    let kind = FileKind::of(facts);
    let modified_ms = facts.mtime().saturating_mul(1000);
    FileEntry {
        name,
        kind,
        size_bytes: (kind == FileKind::File).then_some(facts.len()),
        mode: format!("{:04o}", facts.mode() & 0o7777),
        uid: facts.uid(),
        gid: facts.gid(),
        modified: rfc3339(u64::try_from(modified_ms).unwrap_or(0)),
    }
}

/// Plain numbers and strings always serialize.
fn json(value: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(value).unwrap_or_default()
}
