//! What can be wrong with the state database or with a change to it, and what to do about it.

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
        /// Its schema.
        schema: u64,
        /// The newest that is known here.
        known: u64,
    },
    /// The file is no SQLite database.
    NotADatabase(PathBuf),
    /// The file is a SQLite database of some other program.
    NotOurs(PathBuf),
    /// The system does not let us open, create, read or write the file.
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system said.
        cause: String,
    },
    /// The file's contents contradict themselves.
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong in it.
        cause: String,
    },
    /// The disk is full.
    Full(PathBuf),
    /// Another program has kept the database locked for too long.
    Busy(PathBuf),
    /// SQLite refused for a reason that has no name here.
    Failed {
        /// The file.
        path: PathBuf,
        /// What SQLite said.
        cause: String,
    },
    /// The patch is none, or does not apply; nothing was changed.
    Patch(PatchError),
    /// The pointer is none.
    Pointer(InvalidPointer),
    /// The patch would be too large a revision.
    TooLarge {
        /// Its size as text.
        bytes: usize,
        /// The most that is taken.
        most: usize,
    },
    /// There is no such revision yet.
    NotYet {
        /// What was asked for.
        revision: u64,
        /// The newest one.
        newest: u64,
    },
    /// The document can no longer be shown at this revision.
    Trimmed {
        /// What was asked for.
        revision: u64,
        /// The oldest revision at which it can.
        oldest: u64,
    },
    /// The thread that writes is gone.
    Stopped,
}

impl StateError {
    /// Whether it says something of the file, not of what was asked for.
    pub fn is_of_the_file(&self) -> bool {
        !matches!(
            self,
            Self::Patch(_) | Self::Pointer(_) | Self::TooLarge { .. }
        )
    }

    /// What SQLite says of the file at `path`.
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

    /// What the system says of the file at `path`.
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
                "{}: this database was written by a newer gatewren (schema {schema}, this one knows \
                 {known}): install that version or move the file away",
                path.display()
            ),
            Self::NotADatabase(path) => write!(
                f,
                "{}: this is not a SQLite database: move it away, or name another directory",
                path.display()
            ),
            Self::NotOurs(path) => write!(
                f,
                "{}: this is another program's database: move it away, or name another directory",
                path.display()
            ),
            Self::Unreadable { path, cause } => write!(
                f,
                "{}: cannot be opened ({cause}): see that its directory exists and that gatewren's \
                 user may write the file and the directory",
                path.display()
            ),
            Self::Damaged { path, cause } => write!(
                f,
                "{}: the database is damaged ({cause}): restart gatewren, which moves it aside and \
                 builds a new one",
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
            Self::Patch(why) => write!(f, "the patch was refused, nothing is changed: {why}"),
            Self::Pointer(why) => why.fmt(f),
            Self::TooLarge { bytes, most } => {
                write!(f, "the change has {bytes} bytes, at most {most}: split it")
            }
            Self::NotYet { revision, newest } => write!(
                f,
                "there is no revision {revision} yet: the newest is {newest}"
            ),
            Self::Trimmed { revision, oldest } => write!(
                f,
                "the document of revision {revision} is no longer kept: the oldest that can be shown \
                 is that of revision {oldest}"
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
