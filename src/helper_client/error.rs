//! Why the helper gave no answer.

use std::fmt;

/// What went wrong between the front and the helper; `Display` is for the caller, [`Self::for_log`] for us.
#[derive(Debug)]
pub enum HelperError {
    /// Nobody answers at its socket.
    Unreachable(String),
    /// Somebody listens there who is neither root nor this user.
    Stranger(u32),
    /// It went away in the middle; what it had started is dead.
    Lost(String),
    /// It said something that this version does not understand, or was asked for something unsayable.
    Protocol(String),
}

impl HelperError {
    /// The cause, for the journal.
    pub fn for_log(&self) -> String {
        match self {
            Self::Unreachable(cause) => format!("helper unreachable: {cause}"),
            Self::Stranger(uid) => format!("helper: its socket is user {uid}'s, who is not root"),
            Self::Lost(cause) => format!("helper lost during a call: {cause}"),
            Self::Protocol(cause) => format!("helper protocol: {cause}"),
        }
    }

    /// Whether the same call may go well when it is made again.
    pub fn retry_helps(&self) -> bool {
        !matches!(self, Self::Protocol(_) | Self::Stranger(_))
    }
}

impl fmt::Display for HelperError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unreachable(_) => {
                "the helper, which runs commands for this server, does not answer; \
                 try again in a moment, then ask the owner to look at gatewren-helper.service"
            }
            Self::Stranger(_) => {
                "the helper's socket belongs to somebody who is not root, and is not used; \
                 ask the owner to look at gatewren-helper.socket"
            }
            Self::Lost(_) => {
                "the helper stopped while this ran; everything it had started was killed; try again"
            }
            Self::Protocol(_) => {
                "the helper and this server do not understand each other; \
                 ask the owner to restart both, they must be of the same version"
            }
        })
    }
}

impl std::error::Error for HelperError {}
