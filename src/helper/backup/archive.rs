//! Archives of directories: packs, lists and unpacks them with the host's tar.
//!
//! They are compressed with zstd and have numeric owners, extended attributes and ACLs.

use std::num::NonZero;
use std::path::Path;
use std::thread::available_parallelism;

use gatewren_wire::operations::OperationRefusal;

use crate::context::operation_context::OperationContext;
use crate::processes::step_error::StepError;

/// Options that packing and unpacking share.
const KEPT: [&str; 4] = [
    "--numeric-owner",
    "--xattrs",
    "--xattrs-include=*",
    "--acls",
];

/// Decompresses while unpacking and listing. One thread: zstd has no more for that.
const DECOMPRESS: &str = "--zstd";

/// The most threads that compress. Each needs about 30 MB, and zstd counts against the limit of a command's processes.
const MOST_THREADS: usize = 8;

/// The longest entry name that is checked. No backup has a longer one.
const NAME_BYTES: usize = 64 * 1024;

/// tar's exit status when files changed while they were read.
const CHANGED: i32 = 1;

/// What goes into an archive.
#[derive(Debug)]
pub struct ArchiveContents {
    /// The directory that the entry names are relative to.
    pub directory: String,
    /// The parts of it to archive.
    pub members: Vec<ArchiveMember>,
    /// Paths to leave out, beginning with a member's name.
    pub without: Vec<String>,
}

/// A part of a directory to archive.
#[derive(Debug)]
pub struct ArchiveMember {
    /// Its path in the directory: `.`, or `./` and a name. With another path in the archive: a number, `/`, and `.` or a
    /// name.
    pub name: String,
    /// Its path in the archive, of letters, digits and `./_-`; the same when absent.
    pub stored: Option<String>,
}

impl ArchiveMember {
    /// A member that is stored under its own name.
    pub fn plain(name: String) -> Self {
        Self { name, stored: None }
    }

    /// The option of tar that changes the names of its entries, also as targets of hard links. No other member's names
    /// begin with the same number.
    fn rename(&self) -> Option<String> {
        let stored = self.stored.as_ref()?;
        let (number, rest) = self.name.split_once('/')?;
        let rest = if rest == "." { r"\." } else { ".*" };
        Some(format!(
            "--transform=flags=rhS;s,^{number}/{rest},{stored},"
        ))
    }
}

/// Escapes a path in an archive for a basic regular expression of tar, with `,` as the delimiter.
fn literal(name: &str) -> String {
    let mut pattern = String::new();
    for c in name.chars() {
        if r"\.*[]^$,".contains(c) {
            pattern.push('\\');
        }
        pattern.push(c);
    }
    pattern
}

/// The result of packing.
#[derive(Debug)]
pub struct PackedArchive {
    /// The number of entries.
    pub entries: u64,
    /// Whether some files changed while they were read.
    pub changed: bool,
}

/// Creates an archive. Files on other file systems are not included.
pub async fn pack(
    context: &mut OperationContext<'_>,
    contents: &ArchiveContents,
    archive: &Path,
) -> Result<PackedArchive, StepError> {
    let mut args = vec![
        "--create".to_owned(),
        "--verbose".to_owned(),
        "--quoting-style=escape".to_owned(),
        format!("--file={}", archive.display()),
        "--format=posix".to_owned(),
        "--sparse".to_owned(),
        "--one-file-system".to_owned(),
        "--warning=no-file-ignored".to_owned(),
    ];
    args.push(compress());
    args.extend(KEPT.map(str::to_owned));
    args.push(format!("--directory={}", contents.directory));
    args.extend(["--anchored", "--no-wildcards"].map(str::to_owned));
    args.extend(
        contents
            .without
            .iter()
            .map(|out| format!("--exclude={out}")),
    );
    args.extend(contents.members.iter().filter_map(ArchiveMember::rename));
    args.push("--".to_owned());
    args.extend(contents.members.iter().map(|member| member.name.clone()));
    let mut entries = 0;
    let count = |bytes: &[u8]| entries += lines(bytes);
    let (code, complaint) = context.run_program("tar", args, count).await?;
    if code != 0 && code != CHANGED {
        return Err(failed("the archive cannot be created", &complaint).into());
    }
    let changed = code == CHANGED;
    Ok(PackedArchive { entries, changed })
}

/// Returns the option that compresses with all cores.
fn compress() -> String {
    let cores = available_parallelism().map_or(1, NonZero::get);
    format!("--use-compress-program=zstd -T{}", cores.min(MOST_THREADS))
}

/// What the names of an archive's entries tell about it.
#[derive(Debug)]
pub struct ArchiveEntries {
    /// How many it has.
    pub count: u64,
    /// One that belongs outside the directory that the archive is unpacked into.
    pub outside: Option<String>,
}

/// Reads an archive to its end and lists its entries.
pub async fn list(
    context: &mut OperationContext<'_>,
    archive: &Path,
) -> Result<ArchiveEntries, StepError> {
    let args = [
        "--list".to_owned(),
        "--quoting-style=escape".to_owned(),
        DECOMPRESS.to_owned(),
        "--absolute-names".to_owned(),
        format!("--file={}", archive.display()),
    ];
    read_names(context, args.into(), "the archive cannot be read").await
}

/// Unpacks an archive into a new directory. tar itself creates links after all files, so that no file can be written
/// elsewhere through one. It writes no file above the directory: from a name that leads there it removes that part.
pub async fn unpack(
    context: &mut OperationContext<'_>,
    archive: &Path,
    into: &str,
) -> Result<ArchiveEntries, StepError> {
    extract(context, archive, into, Vec::new()).await
}

/// Unpacks one part of an archive, as `unpack` does. The part itself becomes the directory, with its owner and mode.
pub async fn unpack_part(
    context: &mut OperationContext<'_>,
    archive: &Path,
    part: &str,
    into: &str,
) -> Result<(), StepError> {
    let rename = format!("--transform=flags=rhS;s,^{}\\(/\\|$\\),./,", literal(part));
    let more = ["--anchored", "--no-wildcards", &rename, "--", part];
    let more = more.map(str::to_owned).into();
    extract(context, archive, into, more).await.map(drop)
}

async fn extract(
    context: &mut OperationContext<'_>,
    archive: &Path,
    into: &str,
    more: Vec<String>,
) -> Result<ArchiveEntries, StepError> {
    let mut args = vec![
        "--extract".to_owned(),
        "--verbose".to_owned(),
        "--quoting-style=escape".to_owned(),
        format!("--file={}", archive.display()),
        DECOMPRESS.to_owned(),
        "--same-owner".to_owned(),
        "--same-permissions".to_owned(),
        format!("--directory={into}"),
    ];
    args.extend(KEPT.map(str::to_owned));
    args.extend(more);
    read_names(context, args, "the archive cannot be unpacked").await
}

/// Runs a tar that prints the names of entries.
async fn read_names(
    context: &mut OperationContext<'_>,
    args: Vec<String>,
    failure: &str,
) -> Result<ArchiveEntries, StepError> {
    let mut names = Names::default();
    let (code, complaint) = context
        .run_program("tar", args, |bytes| names.read(bytes))
        .await?;
    if code != 0 {
        return Err(failed(failure, &complaint).into());
    }
    let Names { count, outside, .. } = names;
    Ok(ArchiveEntries { count, outside })
}

/// The refusal for a backup that could not be written.
pub fn write_refusal(cause: &dyn std::fmt::Display) -> OperationRefusal {
    OperationRefusal::failed(format!("the backup cannot be written: {cause}"))
}

fn failed(what: &str, complaint: &str) -> OperationRefusal {
    let cause = complaint.lines().next().unwrap_or("no reason given");
    OperationRefusal::failed(format!("{what}: {cause}"))
}

/// Counts the line ends in `bytes`.
pub fn lines(bytes: &[u8]) -> u64 {
    let parts = bytes.split_inclusive(|byte| *byte == b'\n');
    parts.filter(|part| part.ends_with(b"\n")).count() as u64
}

/// The entry names of an archive, one a line, parsed as they arrive.
#[derive(Debug, Default)]
struct Names {
    rest: Vec<u8>,
    count: u64,
    outside: Option<String>,
}

impl Names {
    fn read(&mut self, bytes: &[u8]) {
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            let room = NAME_BYTES.saturating_sub(self.rest.len());
            self.rest.extend(part.iter().take(room));
            if part.len() > room {
                self.outside = Some("an unterminated name".to_owned());
            }
            if part.ends_with(b"\n") {
                let name = std::mem::take(&mut self.rest);
                self.count += 1;
                let name = String::from_utf8_lossy(&name);
                let leads_out =
                    name.starts_with('/') || name.trim_end().split('/').any(|p| p == "..");
                if leads_out {
                    self.outside = Some(name.chars().take(200).collect());
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::archive::*;

    #[test]
    fn names_that_lead_out_are_found_however_they_come() {
        let read = |parts: &[&str]| {
            let mut names = Names::default();
            for part in parts {
                names.read(part.as_bytes());
            }
            (names.count, names.outside)
        };
        let good = ["./\n./a", "\n./a/..b\n", "./a\\n/etc\n"];
        assert_eq!(read(&good), (4, None));
        for bad in [
            &["/etc/passwd\n"][..],
            &["./a/", "../../b\n"],
            &["..\n"],
            &["./a/..\n"],
            &["./a\n/", "b\n./c\n"],
        ] {
            assert!(read(bad).1.is_some(), "{bad:?}");
        }
        let long = "x".repeat(NAME_BYTES + 1);
        assert!(read(&[&long]).1.is_some());
    }
}
