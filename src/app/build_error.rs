//! Why there is no house, and whether trying again helps.

use std::fmt;

/// Why the house cannot be built, in one sentence with what to do.
#[derive(Debug)]
pub struct BuildError {
    words: String,
    kind: Kind,
}

#[derive(Debug, PartialEq, Eq)]
enum Kind {
    /// Trying again may help.
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
    /// From whatever went wrong.
    pub fn new(cause: impl fmt::Display) -> Self {
        Self {
            words: cause.to_string(),
            kind: Kind::Passing,
        }
    }

    /// Another process keeps its state where this one should.
    pub fn in_use(cause: impl fmt::Display) -> Self {
        Self {
            words: cause.to_string(),
            kind: Kind::InUse,
        }
    }

    /// From what goes wrong again however often it is tried, until somebody mends it.
    pub fn lasting(cause: impl fmt::Display) -> Self {
        Self {
            words: cause.to_string(),
            kind: Kind::Lasting,
        }
    }

    /// Whether another process keeps its state where this one should.
    pub fn is_in_use(&self) -> bool {
        self.kind == Kind::InUse
    }

    /// Whether it goes wrong again until somebody mends it.
    pub fn is_lasting(&self) -> bool {
        self.kind == Kind::Lasting
    }
}
