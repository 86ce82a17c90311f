//! The frames on the helper's socket: one byte of kind, four of length (big-endian), then the payload.

use std::fmt;

use super::ending::Ending;

/// The most that one frame carries; a longer one ends the connection.
pub const MAX_FRAME_BYTES: usize = 256 * 1024;

/// Which of a command's two outputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// What the helper sends back, in the order in which it happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Frame {
    /// Bytes that the command printed.
    Output(Stream, Vec<u8>),
    /// The end; nothing follows.
    End(Ending),
}

/// Why bytes are no frame.
#[derive(Debug)]
pub enum FrameError {
    /// A kind that this version does not know.
    UnknownKind(u8),
    /// Longer than [`MAX_FRAME_BYTES`].
    TooLong(usize),
    /// The payload is not what its kind says.
    Payload(serde_json::Error),
}

impl fmt::Display for FrameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownKind(kind) => write!(f, "unknown frame kind {kind}"),
            Self::TooLong(len) => write!(f, "frame of {len} bytes, at most {MAX_FRAME_BYTES}"),
            Self::Payload(cause) => write!(f, "frame payload: {cause}"),
        }
    }
}

impl std::error::Error for FrameError {}
