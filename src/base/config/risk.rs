//! Risk classes of tools. The policy, the audit and the hints for clients depend on them.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::error::UnknownWord;

/// A tool's class, according to its possible effects, not its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Risk {
    /// Only reads.
    Read,
    /// Sends packets to addresses that the caller chooses, such as a network scan.
    Scan,
    /// Makes a reversible change.
    Write,
    /// Stops, destroys or cuts access.
    Disrupt,
    /// Runs code.
    Execute,
    /// May show secrets.
    Reveal,
    /// Creates lasting access (keys, users, units), or writes bytes that a root process may execute, on the host or
    /// in a container.
    Persist,
}

impl Risk {
    /// All classes.
    pub const ALL: [Self; 7] = [
        Self::Read,
        Self::Scan,
        Self::Write,
        Self::Disrupt,
        Self::Execute,
        Self::Reveal,
        Self::Persist,
    ];

    /// Returns the class's name in policies, the audit and the journal.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Scan => "scan",
            Self::Write => "write",
            Self::Disrupt => "disrupt",
            Self::Execute => "execute",
            Self::Reveal => "reveal",
            Self::Persist => "persist",
        }
    }

    /// Describes what a tool of this class does, for people: "It ...".
    pub fn effect(self) -> &'static str {
        match self {
            Self::Read => "only reads",
            Self::Scan => "sends packets to other machines or ports",
            Self::Write => "makes reversible changes",
            Self::Disrupt => "stops, destroys or cuts access",
            Self::Execute => "runs code",
            Self::Reveal => "may show secrets",
            Self::Persist => "creates lasting access, or writes what root may run",
        }
    }

    /// Returns whether a call of this class continues when the client disconnects: an incomplete restart is worse
    /// than a complete one. A shell is killed with its request.
    pub fn outlives_its_client(self) -> bool {
        matches!(self, Self::Write | Self::Disrupt | Self::Persist)
    }
}

impl fmt::Display for Risk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Risk {
    type Err = UnknownWord;

    fn from_str(word: &str) -> Result<Self, UnknownWord> {
        let known = Self::ALL.into_iter().find(|risk| risk.as_str() == word);
        known.ok_or_else(|| UnknownWord::new(word, &Self::ALL.map(Self::as_str)))
    }
}
