//! Errors of a request to the helper.

use std::fmt;

/// A failure between the front and the helper. `Display` is for the caller, [`Self::for_log`] for
/// the log.
#[derive(Debug)]
pub enum HelperError {
    /// No process accepts connections on the helper's socket.
    Unreachable(String),
    /// The process listening on the socket runs neither as root nor as this user; its uid.
    Stranger(u32),
    /// The helper disconnected during a call; everything that it had started was killed.
    Lost(String),
    /// The intent of the call cannot be written to the audit, so nothing ran.
    Unrecorded,
    /// The helper sent something that this version does not understand, or the request could not be
    /// encoded.
    Protocol(String),
}

impl HelperError {
    /// Returns the cause, for the journal.
    pub fn for_log(&self) -> String {
        match self {
            Self::Unreachable(cause) => format!("helper unreachable: {cause}"),
            Self::Stranger(uid) => format!("helper: its socket belongs to user {uid}, not to root"),
            Self::Lost(cause) => format!("helper lost during a call: {cause}"),
            Self::Unrecorded => "the intent of the call was not written".to_owned(),
            Self::Protocol(cause) => format!("helper protocol: {cause}"),
        }
    }

    /// Whether the same call may succeed when it is retried.
    pub fn retry_helps(&self) -> bool {
        !matches!(self, Self::Protocol(_) | Self::Stranger(_))
    }
}

impl fmt::Display for HelperError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unreachable(_) => {
                "the helper, which runs commands for this server, does not answer; try again in a moment, then ask \
                 the owner to check gatewren-helper.service"
            }
            Self::Stranger(_) => {
                "the helper's socket does not belong to root, so it is not used; ask the owner to check \
                 gatewren-helper.socket"
            }
            Self::Lost(_) => {
                "the helper stopped while this ran, and everything it had started was killed; try again"
            }
            Self::Unrecorded => {
                "the audit cannot be written, so nothing ran; ask the owner to look at the server's log"
            }
            Self::Protocol(_) => {
                "the helper and this server do not understand each other; ask the owner to restart both, because \
                 they must have the same version"
            }
        })
    }
}

impl std::error::Error for HelperError {}
