//! The errors of the vault, with advice on what to do.

use std::fmt;
use std::path::{Path, PathBuf};

use rusqlite::ErrorCode;

use super::agents::names::{NameHolder, write_unfit};
use gatewren_base::sys::{FileError, RandomError};

/// An error of the vault.
#[derive(Debug)]
pub enum VaultError {
    /// The file cannot be created, inspected or opened.
    File(FileError),
    /// SQLite reports a corrupt file. It is left unchanged.
    Damaged {
        /// The vault's file.
        path: PathBuf,
        /// The message of SQLite.
        detail: String,
    },
    /// A newer version of gatewren has written the file.
    Newer {
        /// The vault's file.
        path: PathBuf,
        /// The version of its schema.
        found: u32,
        /// The newest version that this program knows.
        known: u32,
    },
    /// A database of another program.
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// SQLite refused an operation.
    Refused {
        /// The operation.
        doing: &'static str,
        /// The message of SQLite.
        cause: String,
    },
    /// The audit was altered, so it is not trimmed.
    Tampered {
        /// The first altered row.
        seq: u64,
    },
    /// The audit has no row with this number, or no longer.
    NoSuchRow(i64),
    /// The limit of agents is reached.
    TooManyAgents,
    /// This text cannot be the name of a new agent.
    UnfitAgentName(String),
    /// Another agent has the name, and is not revoked.
    AgentNameTaken(NameHolder),
    /// The limit of grants is reached.
    TooManyGrants,
    /// The system returned no random bytes for a key or an id.
    Random(RandomError),
    /// The writing thread has ended, because gatewren is stopping.
    Stopped,
}

/// An unknown status in the vault.
#[derive(Debug)]
pub(super) struct UnknownStatus(pub String);

impl fmt::Display for UnknownStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} is not a status of a change", self.0)
    }
}

impl std::error::Error for UnknownStatus {}

impl VaultError {
    /// Converts an SQLite error for the vault at `path`.
    pub(super) fn from_sqlite(path: &Path, doing: &'static str, cause: &rusqlite::Error) -> Self {
        match cause.sqlite_error_code() {
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => Self::Damaged {
                path: path.to_owned(),
                detail: cause.to_string(),
            },
            _ => Self::Refused {
                doing,
                cause: cause.to_string(),
            },
        }
    }
}

impl fmt::Display for VaultError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(cause) => write!(
                f,
                "{cause}; the vault and its directory must belong to the user that gatewren runs as"
            ),
            Self::Damaged { path, detail } => {
                let path = path.display();
                write!(
                    f,
                    "the vault {path} is damaged ({detail}). Nothing was changed. Restore a copy \
                     of it, or move it away ({path}, {path}-wal and {path}-shm) to start with an \
                     empty one: every agent then needs a new token"
                )
            }
            Self::Newer { path, found, known } => write!(
                f,
                "the vault {} was written by a newer gatewren (schema {found}, this version supports \
                 up to {known}). Install that version again, or restore the copy that it made \
                 beside the vault at its first start",
                path.display()
            ),
            Self::Foreign { path } => write!(
                f,
                "{} is a database, but not gatewren's vault; move it away or set another \
                 state_dir",
                path.display()
            ),
            Self::Refused { doing, cause } => write!(
                f,
                "the vault could not {doing}: {cause}. Check the disk for space and errors"
            ),
            Self::Tampered { seq } => write!(
                f,
                "the audit was altered from row {seq} on, so it is not trimmed; run `gatewren audit verify` \
                 for details"
            ),
            Self::NoSuchRow(seq) => write!(
                f,
                "row {seq} does not exist in the audit or was trimmed; omit the number to begin with the first row"
            ),
            Self::TooManyAgents => {
                f.write_str("the limit of agents is reached; revoke one that is not used")
            }
            Self::UnfitAgentName(name) => write_unfit(f, name),
            Self::AgentNameTaken(holder) => holder.fmt(f),
            Self::TooManyGrants => {
                f.write_str("the limit of grants is reached; end one with gatewren inbox ungrant")
            }
            Self::Random(cause) => cause.fmt(f),
            Self::Stopped => f.write_str("the vault is closed: gatewren is stopping"),
        }
    }
}

impl std::error::Error for VaultError {}

impl From<FileError> for VaultError {
    fn from(cause: FileError) -> Self {
        Self::File(cause)
    }
}

impl From<RandomError> for VaultError {
    fn from(cause: RandomError) -> Self {
        Self::Random(cause)
    }
}
