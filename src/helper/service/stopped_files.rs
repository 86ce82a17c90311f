//! Files of a container of Docker or Podman that does not run. Its root file system is not mounted then, so the engine is
//! asked for it.
//!
//! The engines follow links, and mount the container's volumes and directories of the host for it. So each component of a
//! path is looked at first: a path through a link is refused, and one into a mount too, as in a running container.

use std::collections::{BTreeMap, HashMap};
use std::io::{self, Read};

use tar::{Archive, Entry, EntryType};

use gatewren_wire::operations::{
    ContainerAction, ContainerRef, FileExcerpt, InsideEntry, InsideKind, InsidePath, OperationEnd,
    OperationRefusal,
};

use crate::context::operation_context::OperationContext;
use crate::engines::clients::refusal;
use crate::engines::{
    EngineApi, EngineContainerId, InspectedContainer, MAX_ARCHIVE_BYTES, PathKind,
};
use crate::lxc::files::{ENTRIES, NAMES, READ_BYTES, file_refusal, write_time};
use crate::processes::answers::line;
use crate::processes::printing::print;
use crate::processes::step_error::StepError;

/// The most paths that the engine is asked about for one call; then the call is refused. Each costs the engine a mount of
/// the container's root.
const MAX_LOOKS: usize = 128;

/// The most links that the place of one mount leads through.
const MAX_LINKS: usize = 8;

/// Lists a directory or reads a file.
pub async fn act(
    context: &mut OperationContext<'_>,
    container: &ContainerRef,
    stopped: &InspectedContainer,
    action: &ContainerAction,
) -> Result<OperationEnd, StepError> {
    let helper = context.helper;
    let api = context
        .relay
        .wait(helper.containers.api(container))
        .await??;
    let mut files = StoppedFiles {
        api,
        id: stopped.id.clone(),
        known: HashMap::new(),
    };
    let found = async {
        match action {
            ContainerAction::ListFiles { path, after, limit } => {
                files.check(path, stopped).await?;
                files.list(path, after.clone(), *limit).await
            }
            ContainerAction::ReadFile {
                path,
                offset,
                bytes,
            } => {
                files.check(path, stopped).await?;
                files.read(path, *offset, *bytes).await
            }
            _ => Err(OperationRefusal::failed("unsupported operation")),
        }
    };
    let found = context.relay.wait(found).await??;
    Ok(print(context.relay, move || Ok(found)).await?)
}

/// The files of one container, during one call.
struct StoppedFiles {
    api: EngineApi,
    id: EngineContainerId,
    /// What the engine has said about paths; `None` where nothing is.
    known: HashMap<String, Option<PathKind>>,
}

/// Where the components of a path lead.
enum Walk {
    /// Each exists, and none is a link.
    Plain,
    /// Nothing is at this path.
    Missing,
    /// This component is a link to that path; the rest follows.
    Link {
        at: String,
        target: String,
        rest: String,
    },
}

impl StoppedFiles {
    /// Refuses a path through a link or into a mount.
    async fn check(
        &mut self,
        path: &InsidePath,
        container: &InspectedContainer,
    ) -> Result<(), OperationRefusal> {
        let plain = normalized(path.relative());
        match self.walk(&plain).await? {
            Walk::Plain => {}
            Walk::Missing => return Err(file_refusal(path, &io::ErrorKind::NotFound.into())),
            Walk::Link { at, target, .. } => return Err(link_refusal(&at, &target)),
        }
        for mount in &container.mounts {
            let place = self.place_of(&mount.destination).await?;
            if is_within(&plain, &place) {
                return Err(file_refusal(path, &io::ErrorKind::CrossesDevices.into()));
            }
        }
        Ok(())
    }

    /// Returns where a mount really is: its path may lead through links.
    async fn place_of(&mut self, destination: &str) -> Result<String, OperationRefusal> {
        let mut place = normalized(destination);
        for _ in 0..MAX_LINKS {
            match self.walk(&place).await? {
                Walk::Plain | Walk::Missing => return Ok(place),
                Walk::Link { target, rest, .. } => {
                    place = normalized(&format!("{target}/{rest}"));
                }
            }
        }
        Err(OperationRefusal::failed(format!(
            "the mount {} of the container leads through too many links; start the container first",
            destination.escape_debug()
        )))
    }

    async fn walk(&mut self, path: &str) -> Result<Walk, OperationRefusal> {
        let mut at = String::new();
        let mut rest = path.split('/').filter(|part| !part.is_empty());
        while let Some(part) = rest.next() {
            at = format!("{at}/{part}");
            match self.kind(&at).await? {
                None => return Ok(Walk::Missing),
                Some(PathKind::Link(target)) => {
                    let rest = rest.collect::<Vec<_>>().join("/");
                    return Ok(Walk::Link { at, target, rest });
                }
                Some(PathKind::Directory | PathKind::Other) => {}
            }
        }
        Ok(Walk::Plain)
    }

    async fn kind(&mut self, path: &str) -> Result<Option<PathKind>, OperationRefusal> {
        if let Some(known) = self.known.get(path) {
            return Ok(known.clone());
        }
        if self.known.len() >= MAX_LOOKS {
            return Err(OperationRefusal::failed(format!(
                "more than {MAX_LOOKS} paths must be looked at for the mounts of this container; start it first"
            )));
        }
        let kind = self.api.path_kind(&self.id, path).await;
        let kind = kind.map_err(|error| refusal(&error))?;
        self.known.insert(path.to_owned(), kind.clone());
        Ok(kind)
    }

    async fn list(
        &self,
        path: &InsidePath,
        after: Option<String>,
        limit: u32,
    ) -> Result<Vec<u8>, OperationRefusal> {
        let limit = usize::try_from(limit.min(ENTRIES)).unwrap_or_default();
        let plain = normalized(path.relative());
        let listed = self.api.archive(&self.id, &plain, move |archive| {
            list_entries(archive, after.as_deref(), limit)
        });
        let listed = listed.await.map_err(|error| refusal(&error))?;
        let entries = listed.map_err(|error| archive_refusal(path, &error))?;
        Ok(entries.iter().flat_map(line).collect())
    }

    async fn read(
        &self,
        path: &InsidePath,
        offset: u64,
        bytes: u32,
    ) -> Result<Vec<u8>, OperationRefusal> {
        let plain = normalized(path.relative());
        let bytes = bytes.min(READ_BYTES);
        let read = self.api.archive(&self.id, &plain, move |archive| {
            read_part(archive, offset, bytes)
        });
        let read = read.await.map_err(|error| refusal(&error))?;
        read.map_err(|error| archive_refusal(path, &error))
    }
}

/// Returns a path without `.` and empty components.
fn normalized(path: &str) -> String {
    let parts = path.split('/').filter(|part| !matches!(*part, "" | "."));
    format!("/{}", parts.collect::<Vec<_>>().join("/"))
}

/// Whether a path is this mount or below it.
fn is_within(path: &str, mount: &str) -> bool {
    let below = path.strip_prefix(mount);
    below.is_some_and(|below| below.is_empty() || below.starts_with('/'))
}

/// Returns the entries of the directory that an archive begins with, sorted by name: those after a name, up to a limit.
fn list_entries(
    archive: impl Read,
    after: Option<&str>,
    limit: usize,
) -> io::Result<Vec<InsideEntry>> {
    let mut archive = Archive::new(archive);
    let mut entries = archive.entries()?;
    let first = entries.next().ok_or(io::ErrorKind::UnexpectedEof)??;
    if first.header().entry_type() != EntryType::Directory {
        return Err(io::ErrorKind::NotADirectory.into());
    }
    let directory = trimmed(&first.path_bytes()).to_vec();
    let mut found = BTreeMap::new();
    for (number, entry) in entries.enumerate() {
        if number == NAMES {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        let entry = entry?;
        let path = entry.path_bytes();
        let Some(name) = child(&directory, &path) else {
            continue;
        };
        let name = String::from_utf8_lossy(name).into_owned();
        if after.is_none_or(|after| name.as_str() > after) {
            found.insert(name.clone(), inside_entry(name, &entry)?);
        }
        if found.len() > limit {
            found.pop_last();
        }
    }
    Ok(found.into_values().collect())
}

/// Returns a part of the file that an archive begins with, after a line with its facts.
fn read_part(archive: impl Read, offset: u64, bytes: u32) -> io::Result<Vec<u8>> {
    let mut archive = Archive::new(archive);
    let mut entries = archive.entries()?;
    let mut file = entries.next().ok_or(io::ErrorKind::UnexpectedEof)??;
    match file.header().entry_type() {
        EntryType::Regular => {}
        EntryType::Directory => return Err(invalid("it is a directory")),
        _ => return Err(invalid("it is not a regular file")),
    }
    let size_bytes = file.size();
    let mut part = line(&FileExcerpt { size_bytes, offset });
    let skipped = offset.min(size_bytes);
    let wanted = u64::from(bytes).min(size_bytes - skipped);
    let mut read = io::copy(&mut file.by_ref().take(skipped), &mut io::sink())?;
    read += io::copy(&mut file.take(wanted), &mut part)?;
    if read < skipped + wanted {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(part)
}

fn invalid(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, why)
}

/// Returns a path of an archive without `./` and slashes around it.
fn trimmed(path: &[u8]) -> &[u8] {
    let path = path.strip_prefix(b".").unwrap_or(path);
    let path = path.strip_prefix(b"/").unwrap_or(path);
    path.strip_suffix(b"/").unwrap_or(path)
}

/// Returns the name of an entry that is directly in a directory.
fn child<'p>(directory: &[u8], path: &'p [u8]) -> Option<&'p [u8]> {
    let path = trimmed(path);
    let name = match directory {
        [] => path,
        _ => path.strip_prefix(directory)?.strip_prefix(b"/")?,
    };
    (!name.is_empty() && !name.contains(&b'/')).then_some(name)
}

fn inside_entry(name: String, entry: &Entry<'_, impl Read>) -> io::Result<InsideEntry> {
    let header = entry.header();
    let kind = match header.entry_type() {
        // A hard link has its content in an earlier entry.
        EntryType::Regular | EntryType::Link => InsideKind::File,
        EntryType::Directory => InsideKind::Directory,
        EntryType::Symlink => InsideKind::Link,
        _ => InsideKind::Other,
    };
    let id = |id: io::Result<u64>| Ok::<_, io::Error>(u32::try_from(id?).unwrap_or(u32::MAX));
    Ok(InsideEntry {
        name,
        kind,
        size_bytes: (header.entry_type() == EntryType::Regular).then_some(entry.size()),
        mode: format!("{:04o}", header.mode()? & 0o7777),
        uid: id(header.uid())?,
        gid: id(header.gid())?,
        modified: write_time(i64::try_from(header.mtime()?).unwrap_or(i64::MAX)),
    })
}

fn link_refusal(at: &str, target: &str) -> OperationRefusal {
    let (at, target) = (at.escape_debug(), target.escape_debug());
    OperationRefusal::bad_command(format!(
        "{at} is a symbolic link to {target}, and links are not followed in a container that does not run; name the \
         path that it leads to"
    ))
}

/// Converts an error of reading an archive to a refusal.
fn archive_refusal(path: &InsidePath, cause: &io::Error) -> OperationRefusal {
    if cause.kind() != io::ErrorKind::FileTooLarge {
        return file_refusal(path, cause);
    }
    let path = path.to_string();
    let mib = MAX_ARCHIVE_BYTES >> 20;
    OperationRefusal::failed(format!(
        "{} needs more than {mib} MiB or {NAMES} entries of the container's files: from a container that does not run, \
         the engine gives a directory only with everything below it, and a file only from its start; start the \
         container, or name a smaller directory",
        path.escape_debug()
    ))
}

#[cfg(test)]
mod tests {
    use tar::{Builder, Header};

    use super::*;

    /// Returns an archive of these entries: path, kind and content.
    fn archive(entries: &[(&str, EntryType, &str)]) -> Vec<u8> {
        let mut builder = Builder::new(Vec::new());
        for (path, kind, content) in entries {
            let mut header = Header::new_gnu();
            header.set_entry_type(*kind);
            header.set_size(content.len() as u64);
            header.set_mode(0o640);
            header.set_uid(1000);
            header.set_gid(7);
            header.set_mtime(5);
            // `set_path` accepts no absolute path, and Podman's archives have some.
            let name = &mut header.as_old_mut().name;
            name[..path.len()].copy_from_slice(path.as_bytes());
            header.set_cksum();
            builder.append(&header, content.as_bytes()).unwrap();
        }
        builder.into_inner().unwrap()
    }

    fn names(entries: &[InsideEntry]) -> Vec<&str> {
        entries.iter().map(|entry| entry.name.as_str()).collect()
    }

    #[test]
    fn a_directory_has_its_own_entries_sorted_and_in_pages() {
        use EntryType::{Directory, Regular, Symlink};
        for (top, prefix) in [
            ("d/", "d/"),
            ("d", "d/"),
            ("/", "/"),
            ("./", "./"),
            ("/", ""),
        ] {
            let of = |name: &str| format!("{prefix}{name}");
            let (z, sub, below, link) = (of("z"), of("sub/"), of("sub/y"), of("l"));
            let bytes = archive(&[
                (top, Directory, ""),
                (&z, Regular, "12"),
                (&sub, Directory, ""),
                (&below, Regular, "x"),
                (&link, Symlink, ""),
            ]);
            let all = list_entries(&bytes[..], None, 10).unwrap();
            assert_eq!(names(&all), ["l", "sub", "z"], "{top} {prefix}");
            let page = list_entries(&bytes[..], Some("l"), 1).unwrap();
            assert_eq!(names(&page), ["sub"]);
            let kinds: Vec<_> = all.iter().map(|entry| entry.kind).collect();
            assert_eq!(
                kinds,
                [InsideKind::Link, InsideKind::Directory, InsideKind::File]
            );
            assert_eq!((all[2].size_bytes, all[1].size_bytes), (Some(2), None));
            assert_eq!(
                (all[2].mode.as_str(), all[2].uid, all[2].gid),
                ("0640", 1000, 7)
            );
        }
        let file = archive(&[("f", Regular, "x")]);
        let error = list_entries(&file[..], None, 10).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotADirectory);
    }

    #[test]
    fn a_part_of_a_file_is_read_and_nothing_but_a_file() {
        let bytes = archive(&[("f", EntryType::Regular, "0123456789")]);
        let part = |offset, bytes_wanted| {
            let part = read_part(&bytes[..], offset, bytes_wanted).unwrap();
            let end = part.iter().position(|byte| *byte == b'\n').unwrap();
            let excerpt: FileExcerpt = serde_json::from_slice(&part[..end]).unwrap();
            assert_eq!((excerpt.size_bytes, excerpt.offset), (10, offset));
            String::from_utf8(part[end + 1..].to_vec()).unwrap()
        };
        assert_eq!(part(0, 100), "0123456789");
        assert_eq!(part(4, 3), "456");
        assert_eq!(part(10, 3), "");
        assert_eq!(part(u64::MAX, 3), "");
        for kind in [
            EntryType::Directory,
            EntryType::Symlink,
            EntryType::Link,
            EntryType::Fifo,
            EntryType::Char,
            EntryType::Block,
        ] {
            let bytes = archive(&[("f", kind, "")]);
            let error = read_part(&bytes[..], 0, 3).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidInput, "{kind:?}");
        }
    }

    #[test]
    fn an_archive_that_ends_or_is_none_is_an_error() {
        let bytes = archive(&[("f", EntryType::Regular, "0123456789")]);
        assert!(read_part(&bytes[..515], 0, 10).is_err());
        assert!(read_part(&b"no archive"[..], 0, 10).is_err());
        assert!(read_part(&[7; 2048][..], 0, 10).is_err());
        assert!(read_part(&[][..], 0, 10).is_err());
        assert!(list_entries(&[][..], None, 10).is_err());
    }

    #[test]
    fn a_path_is_within_a_mount_by_whole_components() {
        assert!(is_within("/data", "/data"));
        assert!(is_within("/data/x", "/data"));
        assert!(!is_within("/database", "/data"));
        assert!(!is_within("/", "/data"));
        assert_eq!(normalized("a//./b/"), "/a/b");
        assert_eq!(normalized("."), "/");
    }
}
