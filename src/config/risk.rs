//! What a tool may do to the box, as a class: the policy, the audit and the hints all come from it.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::error::UnknownWord;

/// A tool's class, by what it can do and not by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Risk {
    /// Looks.
    Read,
    /// Sends packets to addresses that the caller chooses, as a scan of the network does.
    Scan,
    /// Changes something that can be changed back.
    Write,
    /// Stops, destroys or cuts access.
    Disrupt,
    /// Runs code.
    Execute,
    /// May show secrets.
    Reveal,
    /// Creates lasting access (keys, users, units), or writes bytes that a root process may execute, on the host or in a
    /// container.
    Persist,
}

impl Risk {
    /// Every class.
    pub const ALL: [Self; 7] = [
        Self::Read,
        Self::Scan,
        Self::Write,
        Self::Disrupt,
        Self::Execute,
        Self::Reveal,
        Self::Persist,
    ];

    /// The class's name in policies, the audit and the journal.
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

    /// Whether a call of this class runs to its end when the client goes: half a restart is worse
    /// than a whole one. A shell dies with its request.
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
