//! The permissions of files on Unix: private ones belong to their owner, whatever the umask is.

use std::fs::{DirBuilder, File, Metadata, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{
    DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _, fchown,
};
use std::path::Path;

use super::file_error::FileError;

const PRIVATE_DIRECTORY: u32 = 0o700;
const PUBLIC_DIRECTORY: u32 = 0o755;
const PRIVATE_FILE: u32 = 0o600;
const PUBLIC_FILE: u32 = 0o644;
const WRITABLE_BY_ALL: u32 = 0o002;
const ANY_OF_OTHERS: u32 = 0o077;
const OF_OTHERS: u32 = 0o007;
const GROUP_WRITE: u32 = 0o020;

/// Returns the options to create a directory that only its owner may enter.
pub(super) fn private_folder() -> DirBuilder {
    let mut options = DirBuilder::new();
    options.mode(PRIVATE_DIRECTORY);
    options
}

/// Returns the options to create a file that only its owner may read and write.
pub(super) fn private_file() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.mode(PRIVATE_FILE);
    options
}

/// Lets everyone read a file.
pub(super) fn open_file(file: &File) -> io::Result<()> {
    file.set_permissions(Permissions::from_mode(PUBLIC_FILE))
}

/// Gives a file the group and mode of another one.
pub(super) fn copy_permissions(file: &File, other: &Metadata) -> io::Result<()> {
    fchown(file, None, Some(other.gid()))?;
    file.set_permissions(other.permissions())
}

/// Lets everyone enter a directory.
pub(super) fn open_folder(path: &Path) -> io::Result<()> {
    std::fs::set_permissions(path, Permissions::from_mode(PUBLIC_DIRECTORY))
}

/// Writes the entries of a directory to the disk.
pub(super) fn sync_folder(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

/// Whether every user may write to a directory.
pub(super) fn may_all_write(path: &Path) -> Result<bool, FileError> {
    Ok(mode(path)? & WRITABLE_BY_ALL != 0)
}

/// Whether users other than its owner have any permission for a file.
pub fn may_others_read(path: &Path) -> Result<bool, FileError> {
    Ok(mode(path)? & ANY_OF_OTHERS != 0)
}

/// Checks that others can neither read nor write a file, and that its group cannot write it.
pub(super) fn check_readers(path: &Path) -> io::Result<()> {
    let mode = std::fs::metadata(path)?.mode() & 0o7777;
    if mode & (OF_OTHERS | GROUP_WRITE) == 0 {
        return Ok(());
    }
    let shown = path.display();
    let words =
        format!("other users may read or write it (mode {mode:04o}); run: chmod 600 {shown}");
    Err(io::Error::other(words))
}

/// The permission bits of a file or directory, such as `0o600`.
pub fn mode(path: &Path) -> Result<u32, FileError> {
    std::fs::metadata(path)
        .map(|facts| facts.mode() & 0o7777)
        .map_err(|cause| FileError::new("read the metadata of", path, cause))
}

/// The user id of the owner of a file or directory.
pub fn owner(path: &Path) -> Result<u32, FileError> {
    std::fs::metadata(path)
        .map(|facts| facts.uid())
        .map_err(|cause| FileError::new("read the metadata of", path, cause))
}
