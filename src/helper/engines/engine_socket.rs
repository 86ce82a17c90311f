//! Where an engine listens, and how far its answers are trusted.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use tokio::net::UnixStream;

use super::error::EngineError;
use super::inner_socket::InnerSocket;
use super::kind::EngineKind;
use super::socket::{EngineOwner, connect};

/// The most bytes of an answer; a longer one is an error, and the connection is closed.
const MAX_ANSWER_BYTES: usize = 16 * 1024 * 1024;
/// The same for an engine that is not trusted.
const MAX_UNTRUSTED_ANSWER_BYTES: usize = 2 * 1024 * 1024;

/// How long an engine that is not trusted may take for a request that only reads.
const UNTRUSTED_TIMEOUT: Duration = Duration::from_secs(3);

/// Where an engine listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EngineSocket {
    /// At this path, which root controls.
    OfRoot(PathBuf),
    /// At this path, which the user with this id controls.
    OfUser(PathBuf, u32),
    /// Inside a container of LXC.
    InLxc(InnerSocket),
}

impl EngineSocket {
    /// Connects, after checking that the socket is the one that it is meant to be.
    pub(super) async fn connect(&self, kind: EngineKind) -> Result<UnixStream, EngineError> {
        match self {
            Self::OfRoot(path) => connect(kind, path, EngineOwner::Root).await,
            Self::OfUser(path, uid) => connect(kind, path, EngineOwner::User(*uid)).await,
            Self::InLxc(socket) => socket.connect().await,
        }
    }

    /// The most bytes of an answer.
    pub(super) fn max_answer_bytes(&self) -> usize {
        match self {
            Self::OfRoot(_) => MAX_ANSWER_BYTES,
            Self::OfUser(..) | Self::InLxc(_) => MAX_UNTRUSTED_ANSWER_BYTES,
        }
    }

    /// How long a request may take: `usual`, or less if it only reads and the engine is not trusted.
    pub(super) fn timeout(&self, usual: Duration, only_reads: bool) -> Duration {
        match self {
            Self::OfUser(..) | Self::InLxc(_) if only_reads => usual.min(UNTRUSTED_TIMEOUT),
            _ => usual,
        }
    }

    /// Records that a request was not answered in time.
    pub(super) fn note_silence(&self) {
        if let Self::InLxc(socket) = self {
            socket.note_silence();
        }
    }
}

impl fmt::Display for EngineSocket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OfRoot(path) | Self::OfUser(path, _) => path.display().fmt(f),
            Self::InLxc(socket) => socket.fmt(f),
        }
    }
}
