//! Makes the vault's file, or opens it and makes sure that it is whole, ours, private and of this version.

use std::fs::{OpenOptions, Permissions};
use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};

use super::error::VaultError;
use super::migration::{self, APPLICATION_ID};
use crate::sys::{FileError, files, random_bytes};

/// How long a statement waits for another process that holds the file.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// The connection that writes, to a vault that is known to be good; made first if there is none.
pub(super) fn writing(path: &Path, steps: &[&str]) -> Result<Connection, VaultError> {
    if !path
        .try_exists()
        .map_err(|cause| FileError::new("look at", path, cause))?
    {
        create(path, steps)?;
    }
    make_private(path)?;
    let mut connection = connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    check(&connection, path)?;
    migration::migrate(&mut connection, path, steps)?;
    Ok(connection)
}

/// A connection that reads beside the one that writes.
pub(super) fn reading(path: &Path) -> Result<Connection, VaultError> {
    // Not read-only for SQLite: a reader of a WAL database must be able to make the shared index.
    let connection = connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    connection
        .pragma_update(None, "query_only", true)
        .map_err(|cause| VaultError::from_sqlite(path, "be opened", &cause))?;
    Ok(connection)
}

/// Makes a new vault whole under another name first, so that an empty file is never taken for one.
fn create(path: &Path, steps: &[&str]) -> Result<(), VaultError> {
    let passing = passing_name(path)?;
    files::create_private(&passing)?;
    let made = fill(&passing, steps)
        .map_err(|cause| VaultError::from_sqlite(path, "be made", &cause))
        // Not a rename: that would replace a vault made by somebody else meanwhile.
        .and_then(|()| match std::fs::hard_link(&passing, path) {
            Err(cause) if cause.kind() != ErrorKind::AlreadyExists => {
                Err(FileError::new("make", path, cause).into())
            }
            _ => Ok(()),
        });
    // Best effort: what is left over is an empty vault that nobody opens.
    let _ = std::fs::remove_file(&passing);
    made?;
    Ok(files::sync_directory_of(path)?)
}

fn fill(path: &Path, steps: &[&str]) -> Result<(), rusqlite::Error> {
    let mut connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    migration::run(&mut connection, 0, steps)?;
    connection.close().map_err(|(_, cause)| cause)
}

fn passing_name(path: &Path) -> Result<PathBuf, VaultError> {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{:016x}.new", u64::from_ne_bytes(random_bytes()?)));
    Ok(PathBuf::from(name))
}

fn connect(path: &Path, flags: OpenFlags) -> Result<Connection, VaultError> {
    let refused = |cause: rusqlite::Error| VaultError::from_sqlite(path, "be opened", &cause);
    let connection = Connection::open_with_flags(path, flags).map_err(refused)?;
    connection.busy_timeout(BUSY_TIMEOUT).map_err(refused)?;
    Ok(connection)
}

/// Whether SQLite finds the file whole, and whether it is a vault.
fn check(connection: &Connection, path: &Path) -> Result<(), VaultError> {
    let refused = |cause: rusqlite::Error| VaultError::from_sqlite(path, "be checked", &cause);
    let finding: String = connection
        .pragma_query_value(None, "quick_check", |row| row.get(0))
        .map_err(refused)?;
    if finding != "ok" {
        return Err(VaultError::Damaged {
            path: path.to_owned(),
            detail: finding.lines().next().unwrap_or_default().to_owned(),
        });
    }
    let id: u32 = connection
        .pragma_query_value(None, "application_id", |row| row.get(0))
        .map_err(refused)?;
    if id != APPLICATION_ID {
        return Err(VaultError::Foreign {
            path: path.to_owned(),
        });
    }
    connection
        .pragma_update(None, "journal_mode", "WAL")
        .map_err(refused)
}

/// Refuses what SQLite would take for a new database, and closes the file to others.
fn make_private(path: &Path) -> Result<(), VaultError> {
    let file = OpenOptions::new().read(true).write(true).open(path);
    let length = file
        .and_then(|file| file.metadata())
        .map_err(|cause| FileError::new("open", path, cause))?
        .len();
    if length == 0 {
        return Err(VaultError::Damaged {
            path: path.to_owned(),
            detail: "the file is empty".to_owned(),
        });
    }
    for suffix in ["", "-wal", "-shm"] {
        let mut name = path.as_os_str().to_owned();
        name.push(suffix);
        let part = PathBuf::from(name);
        let open_to_others = files::mode(&part).is_ok_and(|mode| mode & 0o077 != 0);
        if open_to_others {
            tracing::warn!(file = %part.display(), "others could open this file of the vault; it is private now");
            std::fs::set_permissions(&part, Permissions::from_mode(0o600))
                .map_err(|cause| FileError::new("make private", &part, cause))?;
        }
    }
    Ok(())
}
