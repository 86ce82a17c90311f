//! The container runtimes that gatewren knows.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::error::UnknownWord;

/// A container runtime.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RuntimeKind {
    /// LXC, and the containers of Proxmox VE.
    Lxc,
    /// Docker.
    Docker,
    /// Podman, run by root.
    Podman,
}

impl RuntimeKind {
    /// All runtimes.
    pub const ALL: [Self; 3] = [Self::Lxc, Self::Docker, Self::Podman];

    /// Returns its word: in references to containers, in settings and in the state.
    pub fn word(self) -> &'static str {
        match self {
            Self::Lxc => "lxc",
            Self::Docker => "docker",
            Self::Podman => "podman",
        }
    }

    /// Returns its name in texts.
    pub fn title(self) -> &'static str {
        match self {
            Self::Lxc => "LXC",
            Self::Docker => "Docker",
            Self::Podman => "Podman",
        }
    }
}

impl fmt::Display for RuntimeKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

impl FromStr for RuntimeKind {
    type Err = UnknownWord;

    fn from_str(word: &str) -> Result<Self, UnknownWord> {
        let found = Self::ALL.into_iter().find(|kind| kind.word() == word);
        found.ok_or_else(|| UnknownWord::new(word, &Self::ALL.map(Self::word)))
    }
}
