//! The permissions of files on Windows: a new file inherits those of its folder. In a user's profile, only that user,
//! the administrators and the system have access.

use std::fs::{DirBuilder, OpenOptions};
use std::io;
use std::path::Path;

use super::file_error::FileError;

/// Returns the options to create a directory.
pub(super) fn private_folder() -> DirBuilder {
    DirBuilder::new()
}

/// Returns the options to create a file.
pub(super) fn private_file() -> OpenOptions {
    OpenOptions::new()
}

/// Does nothing: Windows cannot sync a directory, and NTFS has a journal for its entries.
pub(super) fn sync_folder(_: &Path) -> io::Result<()> {
    Ok(())
}

/// Not checked: std has no access to the lists of permissions.
pub(super) fn may_all_write(_: &Path) -> Result<bool, FileError> {
    Ok(false)
}

/// Not checked: std has no access to the lists of permissions.
pub(super) fn check_readers(_: &Path) -> io::Result<()> {
    Ok(())
}

/// Not checked: std has no access to the lists of permissions.
pub fn may_others_read(_: &Path) -> Result<bool, FileError> {
    Ok(false)
}
