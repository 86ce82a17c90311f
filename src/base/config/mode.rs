//! The modes of a policy, from the most permissive to the strictest.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::error::UnknownWord;

/// How a policy treats a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// It runs.
    Allow,
    /// The person at the client is asked first.
    Confirm,
    /// The owner is asked first, in the inbox. If the client can wait, the call waits for the decision.
    #[serde(rename = "confirm-owner")]
    ConfirmOwner,
    /// It waits in the inbox for the owner's decision.
    Propose,
    /// The tool does not exist for this agent.
    Deny,
}

impl Mode {
    /// All modes, from the most permissive to the strictest.
    pub const ALL: [Self; 5] = [
        Self::Allow,
        Self::Confirm,
        Self::ConfirmOwner,
        Self::Propose,
        Self::Deny,
    ];

    /// Returns the word for it in policies, on the command line and in the audit.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Confirm => "confirm",
            Self::ConfirmOwner => "confirm-owner",
            Self::Propose => "propose",
            Self::Deny => "deny",
        }
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Mode {
    type Err = UnknownWord;

    fn from_str(word: &str) -> Result<Self, UnknownWord> {
        let known = Self::ALL.into_iter().find(|mode| mode.as_str() == word);
        known.ok_or_else(|| UnknownWord::new(word, &Self::ALL.map(Self::as_str)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_mode_is_read_as_it_is_written() {
        for mode in Mode::ALL {
            assert_eq!(mode.to_string().parse(), Ok(mode));
            let json = serde_json::to_value(mode).unwrap();
            assert_eq!(json, mode.as_str());
            assert_eq!(serde_json::from_value::<Mode>(json).unwrap(), mode);
        }
        assert!(Mode::ALL.is_sorted());
    }
}
