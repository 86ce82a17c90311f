//! Creates the vault's file, or opens it and checks that it is intact, ours, private and of this version.

use std::fs::{OpenOptions, Permissions};
use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};

use super::error::VaultError;
use super::migration::{self, APPLICATION_ID};
use gatewren_base::sys::{FileError, files, immutable_database_uri, random_bytes};

/// How long a statement waits for another process that has locked the file.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// Opens the writing connection to a checked vault. Creates the vault first if there is none.
pub(super) fn writing(path: &Path, steps: &[&[&str]]) -> Result<Connection, VaultError> {
    if !path
        .try_exists()
        .map_err(|cause| FileError::new("read", path, cause))?
    {
        create(path, steps)?;
    }
    make_private(path)?;
    let mut connection = connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    check(&connection, path)?;
    // Before the first write: a file of a newer version must stay unchanged.
    migration::version(&connection, path, steps)?;
    connection
        .pragma_update(None, "journal_mode", "WAL")
        .map_err(|cause| VaultError::from_sqlite(path, "be opened", &cause))?;
    migration::migrate(&mut connection, path, steps)?;
    Ok(connection)
}

/// Opens the connection for reads, separate from the writing one.
pub(super) fn reading(path: &Path) -> Result<Connection, VaultError> {
    // Not read-only for SQLite: a reader of a WAL database must be able to create the shared index.
    let connection = connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    connection
        .pragma_update(None, "query_only", true)
        .map_err(|cause| VaultError::from_sqlite(path, "be opened", &cause))?;
    Ok(connection)
}

/// Opens a read-only connection, which changes nothing. Other processes may have the file open.
///
/// SQLite needs two small files next to the database for reading, and creates them. If it cannot create them and no
/// other process has the file open, only the file itself is read.
pub(super) fn looking(path: &Path) -> Result<Connection, VaultError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY;
    let connection = connect(path, flags)?;
    let seen = recognise(&connection, path);
    let refused = matches!(&seen, Err(VaultError::Refused { .. }));
    if !refused || std::fs::metadata(sibling_path(path, "-wal")).is_ok_and(|log| log.len() > 0) {
        return seen.map(|()| connection);
    }
    let connection = connect(
        &immutable_database_uri(path),
        flags | OpenFlags::SQLITE_OPEN_URI,
    )?;
    recognise(&connection, path).map(|()| connection)
}

/// Creates a complete vault under a temporary name first, so that an empty file is never opened as a vault.
fn create(path: &Path, steps: &[&[&str]]) -> Result<(), VaultError> {
    let passing = passing_name(path)?;
    files::create_private(&passing)?;
    let made = fill(&passing, steps)
        .map_err(|cause| VaultError::from_sqlite(path, "be created", &cause))
        // Not a rename: it would replace a vault that another process created in the meantime.
        .and_then(|()| match std::fs::hard_link(&passing, path) {
            Err(cause) if cause.kind() != ErrorKind::AlreadyExists => {
                Err(FileError::new("make", path, cause).into())
            }
            _ => Ok(()),
        });
    // Best effort: a leftover file is an empty vault that no process opens.
    let _ = std::fs::remove_file(&passing);
    made?;
    Ok(files::sync_directory_of(path)?)
}

fn fill(path: &Path, steps: &[&[&str]]) -> Result<(), rusqlite::Error> {
    let mut connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    migration::run(&mut connection, 0, steps)?;
    connection.close().map_err(|(_, cause)| cause)
}

fn passing_name(path: &Path) -> Result<PathBuf, VaultError> {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{:016x}.new", u64::from_ne_bytes(random_bytes()?)));
    Ok(PathBuf::from(name))
}

/// Returns the path of a file that SQLite keeps next to the database.
fn sibling_path(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

fn connect(path: &Path, flags: OpenFlags) -> Result<Connection, VaultError> {
    let refused = |cause: rusqlite::Error| VaultError::from_sqlite(path, "be opened", &cause);
    // A connection belongs to one thread at a time. SQLite's own lock takes a tenth of a row of the audit.
    let flags = flags | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags).map_err(refused)?;
    connection.busy_timeout(BUSY_TIMEOUT).map_err(refused)?;
    Ok(connection)
}

/// Checks that SQLite finds the file intact and that it is a vault.
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
    recognise(connection, path)
}

/// Checks that the file is a vault.
fn recognise(connection: &Connection, path: &Path) -> Result<(), VaultError> {
    let id: u32 = connection
        .pragma_query_value(None, "application_id", |row| row.get(0))
        .map_err(|cause| VaultError::from_sqlite(path, "be opened", &cause))?;
    if id != APPLICATION_ID {
        return Err(VaultError::Foreign {
            path: path.to_owned(),
        });
    }
    Ok(())
}

/// Rejects an empty file, which SQLite would treat as a new database, and removes other users' access.
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
        let part = sibling_path(path, suffix);
        let open_to_others = files::mode(&part).is_ok_and(|mode| mode & 0o077 != 0);
        if open_to_others {
            tracing::warn!(file = %part.display(), "other users could open this file of the vault; its mode is now 0600");
            std::fs::set_permissions(&part, Permissions::from_mode(0o600))
                .map_err(|cause| FileError::new("make private", &part, cause))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::migration::STEPS;
    use super::*;
    use gatewren_base::sys::Scratch;

    const TWO_STEPS: &[&[&str]] = &[
        &["CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT"],
        &[
            "ALTER TABLE meta ADD COLUMN extra TEXT",
            "INSERT INTO meta VALUES ('new', 'x', 'y')",
        ],
    ];

    fn open_error(path: &Path) -> String {
        match writing(path, STEPS) {
            Ok(_) => panic!("this should not have been opened"),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn a_damaged_file_is_left_as_it_is() {
        let scratch = Scratch::new();
        let path = scratch.join("vault.db");
        drop(writing(&path, STEPS).unwrap());
        let mut bytes = std::fs::read(&path).unwrap();
        for (at, byte) in bytes.iter_mut().enumerate().skip(4096).step_by(3) {
            *byte = u8::try_from(at % 251).unwrap();
        }
        std::fs::write(&path, &bytes).unwrap();
        let error = open_error(&path);
        let start = format!("the vault {} is damaged (", path.display());
        assert!(error.starts_with(&start), "{error}");
        assert!(
            error.contains("Nothing was changed. Restore a copy of it, or move it away"),
            "{error}"
        );
        assert_eq!(std::fs::read(&path).unwrap(), bytes);
    }

    #[test]
    fn what_is_no_database_or_empty_is_damaged_too() {
        let scratch = Scratch::new();
        let path = scratch.join("vault.db");
        std::fs::write(&path, "this is a letter, not a database. ".repeat(100)).unwrap();
        assert!(
            open_error(&path).contains("is damaged (file is not a database)"),
            "{}",
            open_error(&path)
        );
        std::fs::write(&path, "").unwrap();
        assert!(open_error(&path).contains("is damaged (the file is empty)"));
        assert_eq!(std::fs::read(&path).unwrap(), b"");
    }

    #[test]
    fn somebody_elses_database_is_not_taken() {
        let scratch = Scratch::new();
        let path = scratch.join("vault.db");
        Connection::open(&path)
            .unwrap()
            .execute_batch("CREATE TABLE song (name)")
            .unwrap();
        let error = open_error(&path);
        assert!(
            error.ends_with("move it away or set another state_dir"),
            "{error}"
        );
    }

    #[test]
    fn a_newer_one_is_not_touched() {
        let scratch = Scratch::new();
        let path = scratch.join("vault.db");
        let connection = writing(&path, STEPS).unwrap();
        connection.pragma_update(None, "user_version", 99).unwrap();
        connection
            .pragma_update(None, "journal_mode", "DELETE")
            .unwrap();
        drop(connection);
        let bytes = std::fs::read(&path).unwrap();
        let error = open_error(&path);
        assert_eq!(std::fs::read(&path).unwrap(), bytes);
        let known = STEPS.len();
        let words =
            format!("written by a newer gatewren (schema 99, this version supports up to {known})");
        assert!(error.contains(&words), "{error}");
    }

    #[test]
    fn an_older_one_is_copied_before_it_is_brought_forward() {
        let scratch = Scratch::new();
        let path = scratch.join("vault.db");
        let old = writing(&path, &TWO_STEPS[..1]).unwrap();
        old.execute("INSERT INTO meta VALUES ('kept', 'v')", [])
            .unwrap();
        drop(old);
        let new = writing(&path, TWO_STEPS).unwrap();
        let rows: i64 = new
            .query_row("SELECT count(extra) FROM meta", [], |row| row.get(0))
            .unwrap();
        assert_eq!(rows, 1);
        let copies: Vec<PathBuf> = std::fs::read_dir(scratch.path())
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.to_string_lossy().contains(".schema-1."))
            .collect();
        assert_eq!(copies.len(), 1);
        assert_eq!(files::mode(&copies[0]).unwrap(), 0o600);
        let copy = writing(&copies[0], &TWO_STEPS[..1]).unwrap();
        let kept: String = copy
            .query_row("SELECT value FROM meta", [], |row| row.get(0))
            .unwrap();
        assert_eq!(kept, "v");
        drop(new);
        writing(&path, TWO_STEPS).unwrap();
        let now = std::fs::read_dir(scratch.path()).unwrap().count();
        assert!(now <= 6, "opening the newest version makes no copy");
    }

    #[test]
    fn a_step_that_fails_leaves_the_old_version() {
        let scratch = Scratch::new();
        let path = scratch.join("vault.db");
        drop(writing(&path, &TWO_STEPS[..1]).unwrap());
        let steps = [TWO_STEPS[0], TWO_STEPS[1], &["CREATE NONSENSE"]];
        let error = writing(&path, &steps).unwrap_err().to_string();
        assert!(
            error.starts_with("the vault could not be migrated: "),
            "{error}"
        );
        let copies = std::fs::read_dir(scratch.path()).unwrap();
        let mut copies = copies.map(|entry| entry.unwrap().file_name());
        assert!(!copies.any(|name| name.to_string_lossy().contains(".schema-")));
        let old = writing(&path, &TWO_STEPS[..1]).unwrap();
        assert!(old.prepare("SELECT extra FROM meta").is_err());
    }

    #[test]
    fn one_that_others_could_read_is_closed_to_them() {
        let scratch = Scratch::new();
        let path = scratch.join("vault.db");
        drop(writing(&path, STEPS).unwrap());
        std::fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
        drop(writing(&path, STEPS).unwrap());
        assert_eq!(files::mode(&path).unwrap(), 0o600);
    }

    #[test]
    fn a_missing_directory_is_named() {
        let error = open_error(Path::new("/nonexistent/vault.db"));
        assert!(
            error.starts_with("cannot create /nonexistent/vault.db"),
            "{error}"
        );
        assert!(
            error.ends_with("must belong to the user that gatewren runs as"),
            "{error}"
        );
    }
}
