//! Private files: created with restricted permissions, written atomically, read up to a limit.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

#[cfg(unix)]
use super::permissions::{copy_permissions, open_file, open_folder};
use super::permissions::{may_all_write, private_file, private_folder, sync_folder};
use super::random::random_bytes;

pub use super::file_error::FileError;
pub use super::permissions::may_others_read;
#[cfg(unix)]
pub use super::permissions::{mode, owner};

/// Creates a directory that only its owner may enter (0700), and its missing parents.
///
/// An existing directory stays unchanged: it may be a user's home. It is rejected when it is writable by everyone,
/// because then its contents cannot be trusted.
pub fn private_dir(path: &Path) -> Result<(), FileError> {
    let made = private_folder().recursive(true).create(path);
    made.map_err(|cause| FileError::new("create the directory", path, cause))?;
    if may_all_write(path)? {
        let cause = io::Error::other(
            "every user may write to it; use a directory that only gatewren may write to",
        );
        return Err(FileError::new("use the directory", path, cause));
    }
    Ok(())
}

/// Creates a directory that everyone may read (0755), regardless of the umask, if it is missing. An existing
/// directory stays unchanged.
#[cfg(unix)]
pub fn public_dir(path: &Path) -> Result<(), FileError> {
    if path.is_dir() {
        return Ok(());
    }
    let wrong = |cause| FileError::new("create the directory", path, cause);
    std::fs::create_dir_all(path).map_err(wrong)?;
    open_folder(path).map_err(wrong)
}

/// Creates a new, empty file that only its owner may read and write (0600). An existing file is an error of kind
/// `AlreadyExists`.
pub fn create_private(path: &Path) -> Result<File, FileError> {
    private_file()
        .write(true)
        .create_new(true)
        .open(path)
        .map_err(|cause| FileError::new("create", path, cause))
}

/// Writes a file that only its owner may read (0600) atomically: readers see the old bytes or the new ones, even
/// after a power cut.
pub fn write_private(path: &Path, bytes: &[u8]) -> Result<(), FileError> {
    write_whole(path, bytes, |_| Ok(()))
}

/// Like `write_private`, for a file that everyone may read (0644).
#[cfg(unix)]
pub fn write_public(path: &Path, bytes: &[u8]) -> Result<(), FileError> {
    write_whole(path, bytes, open_file)
}

/// Like `write_private`, for a file with the group and mode of another one, such as the file that it replaces.
#[cfg(unix)]
pub fn write_like(path: &Path, bytes: &[u8], other: &Path) -> Result<(), FileError> {
    let like = std::fs::metadata(other).map_err(|cause| FileError::new("read", other, cause))?;
    write_whole(path, bytes, |file| copy_permissions(file, &like))
}

fn write_whole(
    path: &Path,
    bytes: &[u8],
    set_mode: impl Fn(&File) -> io::Result<()>,
) -> Result<(), FileError> {
    let wrong = |cause| FileError::new("write", path, cause);
    let passing = passing_name(path).map_err(wrong)?;
    let mut file = create_private(&passing)?;
    let written = set_mode(&file)
        .and_then(|()| file.write_all(bytes))
        .and_then(|()| file.sync_all())
        .and_then(|()| std::fs::rename(&passing, path));
    if let Err(cause) = written {
        // Best effort: the earlier error is the one that matters.
        let _ = std::fs::remove_file(&passing);
        return Err(wrong(cause));
    }
    sync_directory_of(path)
}

/// Syncs a file's directory, so that renames in it survive a power cut.
pub fn sync_directory_of(path: &Path) -> Result<(), FileError> {
    let directory = directory_of(path);
    sync_folder(directory).map_err(|cause| FileError::new("sync the directory", directory, cause))
}

/// Reads a file of at most `max` bytes. A longer one is an error, even if it grows during the read.
pub fn read_bounded(path: &Path, max: usize) -> Result<Vec<u8>, FileError> {
    let wrong = |cause| FileError::new("read", path, cause);
    let file = File::open(path).map_err(wrong)?;
    let mut bytes = Vec::new();
    let one_more = u64::try_from(max).unwrap_or(u64::MAX).saturating_add(1);
    file.take(one_more).read_to_end(&mut bytes).map_err(wrong)?;
    if bytes.len() > max {
        let long = format!("it is longer than {max} bytes");
        return Err(wrong(io::Error::new(io::ErrorKind::FileTooLarge, long)));
    }
    Ok(bytes)
}

fn directory_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    }
}

/// Returns an unused name next to `path`; the leading dot keeps it out of globs.
fn passing_name(path: &Path) -> io::Result<PathBuf> {
    let name = path
        .file_name()
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "the path has no file name"))?;
    let random = random_bytes::<8>().map_err(io::Error::other)?;
    let passing = format!(
        ".{}.{:016x}.new",
        name.to_string_lossy(),
        u64::from_ne_bytes(random)
    );
    Ok(directory_of(path).join(passing))
}

#[cfg(all(test, unix))]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};

    use super::super::scratch::Scratch;
    use super::*;

    #[test]
    fn a_new_directory_is_0700_and_an_old_one_is_left_as_it_is() {
        let scratch = Scratch::new();
        let deep = scratch.join("a/b");
        private_dir(&deep).unwrap();
        assert_eq!(mode(&deep).unwrap(), 0o700);
        std::fs::set_permissions(&deep, Permissions::from_mode(0o755)).unwrap();
        private_dir(&deep).unwrap();
        assert_eq!(mode(&deep).unwrap(), 0o755);
        std::fs::set_permissions(&deep, Permissions::from_mode(0o1777)).unwrap();
        assert!(
            private_dir(&deep)
                .unwrap_err()
                .to_string()
                .contains("every user may write to it")
        );
    }

    #[test]
    fn a_private_file_is_0600_and_replaces_the_old_one() {
        let scratch = Scratch::new();
        let path = scratch.join("token");
        std::fs::write(&path, "old and longer").unwrap();
        std::fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
        write_private(&path, b"new").unwrap();
        assert_eq!(mode(&path).unwrap(), 0o600);
        assert_eq!(std::fs::read(&path).unwrap(), b"new");
        let left = std::fs::read_dir(scratch.path()).unwrap().count();
        assert_eq!(left, 1, "nothing passing is left behind");
    }

    #[test]
    fn a_file_like_another_has_its_mode_and_group() {
        let scratch = Scratch::new();
        let (path, other) = (scratch.join("new"), scratch.join("other"));
        std::fs::write(&other, "old").unwrap();
        std::fs::set_permissions(&other, Permissions::from_mode(0o640)).unwrap();
        // Only root can choose a group; for others it is the process's own.
        let group = std::os::unix::fs::chown(&other, None, Some(12345)).is_ok();
        write_like(&path, b"new", &other).unwrap();
        assert_eq!(mode(&path).unwrap(), 0o640);
        let gid = std::fs::metadata(&path).unwrap().gid();
        assert_eq!(gid == 12345, group);
        write_like(&other, b"replaced", &other).unwrap();
        assert_eq!(std::fs::read(&other).unwrap(), b"replaced");
        assert_eq!(std::fs::metadata(&other).unwrap().gid(), gid);
    }

    #[test]
    fn a_failed_write_leaves_nothing_and_says_where() {
        let scratch = Scratch::new();
        let path = scratch.join("taken");
        std::fs::create_dir_all(path.join("by a directory")).unwrap();
        let error = write_private(&path, b"x").unwrap_err();
        assert!(error.to_string().starts_with("cannot write "), "{error}");
        assert!(error.to_string().contains("taken"), "{error}");
        assert_eq!(std::fs::read_dir(scratch.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_read_stops_at_its_bound() {
        let scratch = Scratch::new();
        let path = scratch.join("f");
        std::fs::write(&path, [7; 100]).unwrap();
        assert_eq!(read_bounded(&path, 100).unwrap().len(), 100);
        let error = read_bounded(&path, 99).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::FileTooLarge);
        assert!(
            error.to_string().contains("longer than 99 bytes"),
            "{error}"
        );
        let missing = read_bounded(&scratch.join("none"), 1).unwrap_err();
        assert_eq!(missing.kind(), io::ErrorKind::NotFound);
    }
}
