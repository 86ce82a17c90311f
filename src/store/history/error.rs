//! Errors of the history.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use rusqlite::ErrorCode;

/// Why the history cannot be read or written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UsageHistoryError {
    /// The file is damaged or no history; it is set aside.
    Damaged {
        /// The file.
        path: PathBuf,
        /// SQLite's words.
        cause: String,
    },
    /// A newer version has written it; it is not changed.
    Newer {
        /// The file.
        path: PathBuf,
        /// Its schema.
        schema: i64,
    },
    /// The disk is full, or the file has reached its limit.
    Full(PathBuf),
    /// Another failure.
    Failed {
        /// The file.
        path: PathBuf,
        /// The cause.
        cause: String,
    },
}

impl UsageHistoryError {
    /// Converts an SQLite error on the file at `path`.
    pub(super) fn sqlite(path: &Path, error: &rusqlite::Error) -> Self {
        let path = path.to_owned();
        let cause = error.to_string();
        match error.sqlite_error_code() {
            Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt) => {
                Self::Damaged { path, cause }
            }
            Some(ErrorCode::DiskFull) => Self::Full(path),
            _ => Self::Failed { path, cause },
        }
    }

    /// Converts an I/O error on the file at `path`.
    pub(super) fn io(path: &Path, error: &io::Error) -> Self {
        let path = path.to_owned();
        if error.kind() == io::ErrorKind::StorageFull {
            return Self::Full(path);
        }
        let cause = error.to_string();
        Self::Failed { path, cause }
    }
}

impl fmt::Display for UsageHistoryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Damaged { path, cause } => {
                write!(
                    f,
                    "the usage history {} is damaged ({cause})",
                    path.display()
                )
            }
            Self::Newer { path, schema } => write!(
                f,
                "the usage history {} was written by a newer gatewren (schema {schema}): install that version or move \
                 the file away",
                path.display()
            ),
            Self::Full(path) => write!(
                f,
                "the usage history {} cannot be written, because the disk is full: free some space",
                path.display()
            ),
            Self::Failed { path, cause } => write!(
                f,
                "the usage history {} cannot be read or written: {cause}",
                path.display()
            ),
        }
    }
}

impl std::error::Error for UsageHistoryError {}
