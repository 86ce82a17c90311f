//! Errors of the state database and of changes to it, each with its remedy.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use rusqlite::ErrorCode;

use super::patch::PatchError;
use super::pointer::InvalidPointer;

/// Why the state could not be opened, read or changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StateError {
    /// A newer gatewren wrote the file.
    Newer {
        /// The file.
        path: PathBuf,
        /// Its schema version.
        schema: u64,
        /// The newest schema version that this gatewren knows.
        known: u64,
    },
    /// The file is not an SQLite database.
    NotADatabase(PathBuf),
    /// The file is an SQLite database of another program.
    NotOurs(PathBuf),
    /// The system does not permit opening, creating, reading or writing the file.
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The system's error.
        cause: String,
    },
    /// The contents of the file are inconsistent.
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is inconsistent.
        cause: String,
    },
    /// The disk is full.
    Full(PathBuf),
    /// Another program kept the database locked for too long.
    Busy(PathBuf),
    /// Any other SQLite error.
    Failed {
        /// The file.
        path: PathBuf,
        /// SQLite's error.
        cause: String,
    },
    /// The patch is invalid or does not apply; nothing was changed.
    Patch(PatchError),
    /// The pointer is invalid.
    Pointer(InvalidPointer),
    /// The patch is too large for a revision.
    TooLarge {
        /// Its size as text, in bytes.
        bytes: usize,
        /// The largest size that is accepted.
        most: usize,
    },
    /// The revision does not exist yet.
    NotYet {
        /// The requested revision.
        revision: u64,
        /// The newest revision.
        newest: u64,
    },
    /// The document can no longer be shown at this revision.
    Trimmed {
        /// The requested revision.
        revision: u64,
        /// The oldest revision whose document can be shown.
        oldest: u64,
    },
    /// The writer thread has stopped.
    Stopped,
}

impl StateError {
    /// Returns whether the error is about the file, not about the requested change.
    pub fn is_of_the_file(&self) -> bool {
        !matches!(
            self,
            Self::Patch(_) | Self::Pointer(_) | Self::TooLarge { .. }
        )
    }

    /// Converts an SQLite error on the file at `path`.
    pub fn sqlite(path: &Path, error: &rusqlite::Error) -> Self {
        let path = path.to_owned();
        let cause = error.to_string();
        match error.sqlite_error_code() {
            Some(ErrorCode::NotADatabase) => Self::NotADatabase(path),
            Some(ErrorCode::DatabaseCorrupt) => Self::Damaged { path, cause },
            Some(ErrorCode::DiskFull) => Self::Full(path),
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Self::Busy(path),
            Some(ErrorCode::CannotOpen | ErrorCode::PermissionDenied | ErrorCode::ReadOnly) => {
                Self::Unreadable { path, cause }
            }
            _ => Self::Failed { path, cause },
        }
    }

    /// Converts an I/O error on the file at `path`.
    pub fn io(path: &Path, error: &io::Error) -> Self {
        let path = path.to_owned();
        if error.kind() == io::ErrorKind::StorageFull {
            return Self::Full(path);
        }
        let cause = error.to_string();
        Self::Unreadable { path, cause }
    }
}

impl fmt::Display for StateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Newer {
                path,
                schema,
                known,
            } => write!(
                f,
                "{}: the database was written by a newer gatewren (schema {schema}, this version \
                 supports up to {known}): install that version or move the file away",
                path.display()
            ),
            Self::NotADatabase(path) => write!(
                f,
                "{}: the file is not a SQLite database: move it away, or set another directory",
                path.display()
            ),
            Self::NotOurs(path) => write!(
                f,
                "{}: the database belongs to another program: move it away, or set another directory",
                path.display()
            ),
            Self::Unreadable { path, cause } => write!(
                f,
                "{}: cannot open the database ({cause}): check that its directory exists and that \
                 gatewren's user may write the file and the directory",
                path.display()
            ),
            Self::Damaged { path, cause } => write!(
                f,
                "{}: the database is damaged ({cause}): restart gatewren; it moves the file aside \
                 and creates a new one",
                path.display()
            ),
            Self::Full(path) => write!(f, "{}: the disk is full: free some space", path.display()),
            Self::Busy(path) => write!(
                f,
                "{}: another program keeps the database locked: try again, or find it with `fuser {}`",
                path.display(),
                path.display()
            ),
            Self::Failed { path, cause } => write!(f, "{}: {cause}", path.display()),
            Self::Patch(why) => write!(f, "the patch was rejected, nothing was changed: {why}"),
            Self::Pointer(why) => why.fmt(f),
            Self::TooLarge { bytes, most } => write!(
                f,
                "the change has {bytes} bytes, the limit is {most}: split it"
            ),
            Self::NotYet { revision, newest } => write!(
                f,
                "revision {revision} does not exist yet: the newest is {newest}"
            ),
            Self::Trimmed { revision, oldest } => write!(
                f,
                "the document of revision {revision} is no longer stored: the oldest stored one is \
                 that of revision {oldest}"
            ),
            Self::Stopped => f.write_str("the state's writer has stopped: restart gatewren"),
        }
    }
}

impl std::error::Error for StateError {}

impl From<PatchError> for StateError {
    fn from(why: PatchError) -> Self {
        Self::Patch(why)
    }
}

impl From<InvalidPointer> for StateError {
    fn from(why: InvalidPointer) -> Self {
        Self::Pointer(why)
    }
}
