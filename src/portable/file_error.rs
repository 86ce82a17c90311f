//! A failed operation on a file.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// A failed operation on a file, with its cause.
#[derive(Debug)]
pub struct FileError {
    doing: &'static str,
    path: PathBuf,
    cause: io::Error,
}

impl FileError {
    /// Creates an error with the operation and the file that it belongs to, such as `"read"`.
    pub fn new(doing: &'static str, path: &Path, cause: io::Error) -> Self {
        Self {
            doing,
            path: path.to_owned(),
            cause,
        }
    }

    /// The kind of the system's error, for example to distinguish a missing file from a locked one.
    pub fn kind(&self) -> io::ErrorKind {
        self.cause.kind()
    }
}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { doing, path, cause } = self;
        write!(f, "cannot {doing} {}: {cause}", path.display())
    }
}

impl std::error::Error for FileError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.cause)
    }
}
