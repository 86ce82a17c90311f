//! What a tool may do to the box, as a class: the policy, the audit and the hints all come from it.

use crate::protocol::ToolAnnotations;

/// A tool's class, by what it can do and not by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Risk {
    /// Looks.
    Read,
    /// Changes something that can be changed back.
    Write,
    /// Stops, destroys or cuts access.
    Disrupt,
    /// Runs code.
    Execute,
    /// May show secrets.
    Reveal,
    /// Creates lasting access: keys, users, units.
    Persist,
}

impl Risk {
    /// Every class.
    pub const ALL: [Self; 6] = [
        Self::Read,
        Self::Write,
        Self::Disrupt,
        Self::Execute,
        Self::Reveal,
        Self::Persist,
    ];

    /// The class's name in the audit and the journal.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
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

    /// The hints of `tools/list`; they cannot contradict the policy because both come from here.
    pub fn annotations(self) -> ToolAnnotations {
        let reads = matches!(self, Self::Read | Self::Reveal);
        ToolAnnotations {
            read_only_hint: reads,
            destructive_hint: matches!(self, Self::Disrupt | Self::Execute),
            idempotent_hint: reads,
            open_world_hint: self == Self::Execute,
        }
    }
}
