//! The container engines that have this API.

use std::fmt;

/// An engine. Podman has the API of Docker, with differences.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EngineKind {
    /// Docker, also where it is called Moby.
    Docker,
    /// Podman's API service.
    Podman,
}

impl fmt::Display for EngineKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Docker => "Docker",
            Self::Podman => "Podman",
        })
    }
}
