//! The container runtimes that gatewren knows.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::error::UnknownWord;

/// A container runtime.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RuntimeKind {
    /// LXC, and the containers of Proxmox VE.
    Lxc,
    /// Docker.
    Docker,
    /// Podman, run by root.
    Podman,
    /// Docker inside containers of LXC. Its answers are not trusted: whoever is root in such a container makes them.
    DockerInLxc,
}

impl RuntimeKind {
    /// All runtimes.
    pub const ALL: [Self; 4] = [Self::Lxc, Self::Docker, Self::Podman, Self::DockerInLxc];

    /// Returns its word in settings.
    pub fn word(self) -> &'static str {
        match self {
            Self::Lxc => "lxc",
            Self::Docker => "docker",
            Self::Podman => "podman",
            Self::DockerInLxc => "docker-in-lxc",
        }
    }

    /// Returns the word before the names of its containers, which the state also has. That of Docker inside LXC is
    /// Docker's, since such a container also has a place: `docker:jellyfin@media`.
    pub fn prefix(self) -> &'static str {
        match self {
            Self::DockerInLxc => Self::Docker.word(),
            other => other.word(),
        }
    }

    /// Returns the runtime of the containers with this word before their names; `None` if there is none. A reference
    /// with a place has an `@` after the name.
    pub fn of_prefix(prefix: &str, has_place: bool) -> Option<Self> {
        let all = Self::ALL.into_iter();
        let mut named = all.filter(|kind| kind.prefix() == prefix);
        named.find(|kind| match kind {
            Self::Lxc | Self::Docker => !has_place,
            Self::Podman => true,
            Self::DockerInLxc => has_place,
        })
    }

    /// Returns the runtime without which this one is not served.
    pub fn needs(self) -> Option<Self> {
        (self == Self::DockerInLxc).then_some(Self::Lxc)
    }

    /// Returns its name in texts.
    pub fn title(self) -> &'static str {
        match self {
            Self::Lxc => "LXC",
            Self::Docker => "Docker",
            Self::Podman => "Podman",
            Self::DockerInLxc => "Docker inside LXC",
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
