//! Backup copies of a database, made beside it before a schema migration: complete, private and few.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use super::clock::{now_ms, rfc3339};
use gatewren_portable::files::{FileError, create_private, sync_directory_of};

/// The most copies of one database that are kept, including the new one; above this the oldest is removed. Each new
/// schema adds a copy, and so does each attempt that a power cut interrupts.
const MAX_KEPT: usize = 3;

/// Separates the name of the database from its version, which is followed by the time of the copy.
const MARK: &str = ".schema-";

/// The suffix of a copy that is not complete: it is being made, or a power cut interrupted it.
const UNFINISHED: &str = ".new";

/// Copies `path`, a database of schema `version`. Returns the path of the copy: `<path>.schema-<version>.<time>`,
/// 0600.
///
/// `fill` writes the copy into an empty file. If it fails, the file is removed.
pub fn keep_copy<E>(
    path: &Path,
    version: u64,
    fill: impl FnOnce(&Path) -> Result<(), E>,
    refused: impl Fn(FileError) -> E,
) -> Result<PathBuf, E> {
    remove_old_copies(path);
    let stamp = rfc3339(now_ms()).replace(':', "-");
    let copy = with_suffix(path, &format!("{MARK}{version}.{stamp}"));
    let passing = with_suffix(&copy, UNFINISHED);
    // Created here first, because `fill` would create it with the permissions that the umask allows.
    create_private(&passing).map_err(&refused)?;
    let finish = || {
        let wrong = |cause| FileError::new("write the copy", &copy, cause);
        File::open(&passing)
            .and_then(|file| file.sync_all())
            .and_then(|()| fs::rename(&passing, &copy))
            .map_err(wrong)?;
        sync_directory_of(&copy)
    };
    let made = fill(&passing).and_then(|()| finish().map_err(&refused));
    if let Err(cause) = made {
        // Best effort: the earlier error is the one that matters.
        let _ = fs::remove_file(&passing);
        return Err(cause);
    }
    Ok(copy)
}

/// Makes room for one more copy, and removes incomplete ones. Files that cannot be removed stay.
fn remove_old_copies(path: &Path) {
    let (unfinished, mut kept): (Vec<_>, Vec<_>) = copies(path)
        .into_iter()
        .partition(|copy| copy.to_string_lossy().ends_with(UNFINISHED));
    kept.sort_by_key(|copy| stamp(path, copy));
    let surplus = (kept.len() + 1).saturating_sub(MAX_KEPT);
    for old in kept.drain(..surplus) {
        tracing::info!(copy = %old.display(), "an old copy is removed; the newest ones are kept");
        let _ = fs::remove_file(old);
    }
    for passing in unfinished {
        let _ = fs::remove_file(passing);
    }
}

fn copies(path: &Path) -> Vec<PathBuf> {
    let beside = path.parent().map(fs::read_dir);
    let Some(Ok(beside)) = beside else {
        return Vec::new();
    };
    let found = beside.filter_map(|entry| Some(entry.ok()?.path()));
    found.filter(|copy| stamp(path, copy).is_some()).collect()
}

/// Returns the time of a copy from its name; the times sort like numbers. `None` if it is not a copy of `path`.
fn stamp(path: &Path, copy: &Path) -> Option<String> {
    let name = copy.file_name()?.to_str()?;
    let rest = name.strip_prefix(path.file_name()?.to_str()?)?;
    let (version, stamp) = rest.strip_prefix(MARK)?.split_once('.')?;
    let is_number = !version.is_empty() && version.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| stamp.to_owned())
}

fn with_suffix(path: &Path, end: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(end);
    PathBuf::from(name)
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;
    use gatewren_portable::Scratch;
    use gatewren_portable::files::mode;

    fn copy(path: &Path, version: u64) -> io::Result<PathBuf> {
        let fill = |to: &Path| fs::write(to, fs::read(path)?);
        keep_copy(path, version, fill, io::Error::other)
    }

    fn names(scratch: &Scratch) -> Vec<String> {
        let entries = fs::read_dir(scratch.path()).unwrap();
        let mut names: Vec<_> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn it_is_whole_and_private() {
        let scratch = Scratch::new();
        let path = scratch.join("vault.db");
        fs::write(&path, "old").unwrap();
        let made = copy(&path, 7).unwrap();
        assert_eq!(fs::read(&made).unwrap(), b"old");
        assert_eq!(mode(&made).unwrap(), 0o600);
        let name = made.file_name().unwrap().to_string_lossy().into_owned();
        assert!(name.starts_with("vault.db.schema-7.20"), "{name}");
        assert_eq!(names(&scratch), ["vault.db".to_owned(), name]);
    }

    #[test]
    fn the_newest_three_stay_and_what_is_not_whole_goes() {
        let scratch = Scratch::new();
        let path = scratch.join("vault.db");
        for name in [
            "vault.db",
            "vault.db.schema-9.2026-01-01T00-00-00.000Z",
            "vault.db.schema-10.2026-02-01T00-00-00.000Z",
            "vault.db.schema-2.2026-03-01T00-00-00.000Z",
            "vault.db.schema-2.2026-04-01T00-00-00.000Z.new",
            "vault.db.schema-notes.txt",
            "state.db.schema-1.2026-01-01T00-00-00.000Z",
        ] {
            fs::write(scratch.join(name), "x").unwrap();
        }
        let made = copy(&path, 11).unwrap();
        let mut left = [
            "state.db.schema-1.2026-01-01T00-00-00.000Z",
            "vault.db",
            "vault.db.schema-10.2026-02-01T00-00-00.000Z",
            "vault.db.schema-2.2026-03-01T00-00-00.000Z",
            "vault.db.schema-notes.txt",
            made.file_name().unwrap().to_str().unwrap(),
        ];
        left.sort_unstable();
        assert_eq!(names(&scratch), left);
    }

    #[test]
    fn one_that_fails_leaves_nothing() {
        let scratch = Scratch::new();
        let path = scratch.join("vault.db");
        fs::write(&path, "old").unwrap();
        let fill = |to: &Path| {
            fs::write(to, "half")?;
            Err(io::Error::from(io::ErrorKind::StorageFull))
        };
        let error = keep_copy(&path, 1, fill, io::Error::other).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        assert_eq!(names(&scratch), ["vault.db"]);
    }
}
