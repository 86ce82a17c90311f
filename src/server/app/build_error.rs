//! Why the server cannot be built, and whether a retry helps.

use std::fmt;

/// Why the server cannot be built, in one sentence with what to do.
#[derive(Debug)]
pub struct BuildError {
    words: String,
    kind: Kind,
}

#[derive(Debug, PartialEq, Eq)]
enum Kind {
    /// A retry may help.
    Passing,
    InUse,
    Lasting,
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.words)
    }
}

impl std::error::Error for BuildError {}

impl BuildError {
    /// Creates an error that a retry may fix.
    pub fn new(cause: impl fmt::Display) -> Self {
        Self {
            words: cause.to_string(),
            kind: Kind::Passing,
        }
    }

    /// Another process uses the same state directory.
    pub fn in_use(cause: impl fmt::Display) -> Self {
        Self {
            words: cause.to_string(),
            kind: Kind::InUse,
        }
    }

    /// Creates an error that no retry fixes: a person has to.
    pub fn lasting(cause: impl fmt::Display) -> Self {
        Self {
            words: cause.to_string(),
            kind: Kind::Lasting,
        }
    }

    /// Whether another process uses the same state directory.
    pub fn is_in_use(&self) -> bool {
        self.kind == Kind::InUse
    }

    /// Whether no retry fixes it.
    pub fn is_lasting(&self) -> bool {
        self.kind == Kind::Lasting
    }
}
