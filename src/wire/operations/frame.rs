//! The frames on the helper's socket: a byte for the kind, four for the length (big-endian), then the payload.

use std::fmt;

use serde::de::DeserializeOwned;

use super::outcome::OperationEnd;
use super::request::{HelperRequest, Release};

/// The maximum payload of a frame; a longer one ends the connection.
pub const MAX_FRAME_BYTES: usize = 256 * 1024;

/// The size of kind and length before a payload.
const HEADER_BYTES: usize = 5;

const REQUEST: u8 = 1;
const ACCEPTED: u8 = 2;
const STDOUT: u8 = 3;
const STDERR: u8 = 4;
const END: u8 = 5;
const STARTED: u8 = 6;
const RELEASE: u8 = 7;

/// An output stream of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// A frame from the helper, sent in the order of events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Frame {
    /// The request was accepted; always the first frame.
    Accepted,
    /// A job has begun: from now on it survives the end of the connection.
    Started,
    /// Bytes that the command printed.
    Output(Stream, Vec<u8>),
    /// The end of the operation; always the last frame.
    End(OperationEnd),
}

impl Frame {
    /// Appends the frame's bytes to `out`.
    ///
    /// # Errors
    /// [`FrameError::TooLong`] when the payload exceeds [`MAX_FRAME_BYTES`]; `out` is then unchanged.
    pub fn encode(&self, out: &mut Vec<u8>) -> Result<(), FrameError> {
        match self {
            Self::Accepted => put(out, ACCEPTED, &[]),
            Self::Started => put(out, STARTED, &[]),
            Self::Output(Stream::Stdout, bytes) => put(out, STDOUT, bytes),
            Self::Output(Stream::Stderr, bytes) => put(out, STDERR, bytes),
            Self::End(ending) => put(out, END, &json(ending)?),
        }
    }

    fn from_parts(kind: u8, payload: Vec<u8>) -> Result<Self, FrameError> {
        match kind {
            ACCEPTED if payload.is_empty() => Ok(Self::Accepted),
            STARTED if payload.is_empty() => Ok(Self::Started),
            ACCEPTED | STARTED => Err(FrameError::NotEmpty(payload.len())),
            STDOUT => Ok(Self::Output(Stream::Stdout, payload)),
            STDERR => Ok(Self::Output(Stream::Stderr, payload)),
            END => serde_json::from_slice(&payload)
                .map(Self::End)
                .map_err(FrameError::Payload),
            other => Err(FrameError::UnknownKind(other)),
        }
    }
}

impl HelperRequest {
    /// Encodes the request as the one frame that opens a connection.
    ///
    /// # Errors
    /// [`FrameError::TooLong`] when it exceeds [`MAX_FRAME_BYTES`].
    pub fn encode(&self) -> Result<Vec<u8>, FrameError> {
        let mut out = Vec::new();
        put(&mut out, REQUEST, &json(self)?)?;
        Ok(out)
    }
}

impl Release {
    /// Encodes the release as a frame.
    ///
    /// # Errors
    /// [`FrameError::TooLong`] when it exceeds [`MAX_FRAME_BYTES`].
    pub fn encode(&self) -> Result<Vec<u8>, FrameError> {
        let mut out = Vec::new();
        put(&mut out, RELEASE, &json(self)?)?;
        Ok(out)
    }
}

/// Splits received bytes into frames, whatever the sizes of the reads.
///
/// The buffer holds at most one frame and one more read. An error is final, because the bytes after it cannot be
/// interpreted.
#[derive(Debug, Default)]
pub struct Decoder {
    pending: Vec<u8>,
}

impl Decoder {
    /// Appends received bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        self.pending.extend_from_slice(bytes);
    }

    /// Whether all received bytes have been consumed.
    pub fn is_empty(&self) -> bool {
        self.pending.is_empty()
    }

    /// Returns the next complete frame from the helper, or `None` if more bytes are needed.
    ///
    /// # Errors
    /// When the bytes are not a frame.
    pub fn next_frame(&mut self) -> Result<Option<Frame>, FrameError> {
        self.next_parts()?
            .map(|(kind, payload)| Frame::from_parts(kind, payload))
            .transpose()
    }

    /// Returns the request that opens a connection, or `None` if more bytes are needed.
    ///
    /// # Errors
    /// When the bytes are not a request.
    pub fn next_request(&mut self) -> Result<Option<HelperRequest>, FrameError> {
        self.next_of(REQUEST)
    }

    /// Returns the release of a held command, or `None` if more bytes are needed.
    ///
    /// # Errors
    /// When the bytes are not a release.
    pub fn next_release(&mut self) -> Result<Option<Release>, FrameError> {
        self.next_of(RELEASE)
    }

    fn next_of<T: DeserializeOwned>(&mut self, expected: u8) -> Result<Option<T>, FrameError> {
        match self.next_parts()? {
            None => Ok(None),
            Some((kind, payload)) if kind == expected => serde_json::from_slice(&payload)
                .map(Some)
                .map_err(FrameError::Payload),
            Some((kind, _)) => Err(FrameError::UnknownKind(kind)),
        }
    }

    fn next_parts(&mut self) -> Result<Option<(u8, Vec<u8>)>, FrameError> {
        let Some((&[kind, a, b, c, d], rest)) = self.pending.split_first_chunk::<HEADER_BYTES>()
        else {
            return Ok(None);
        };
        let length = u32::from_be_bytes([a, b, c, d]) as usize;
        if length > MAX_FRAME_BYTES {
            return Err(FrameError::TooLong(length));
        }
        let Some(payload) = rest.get(..length) else {
            return Ok(None);
        };
        let payload = payload.to_vec();
        self.pending.drain(..HEADER_BYTES + length);
        Ok(Some((kind, payload)))
    }
}

/// Why bytes are not a valid frame.
#[derive(Debug)]
pub enum FrameError {
    /// A kind that this version does not know.
    UnknownKind(u8),
    /// Longer than [`MAX_FRAME_BYTES`].
    TooLong(usize),
    /// A kind without payload came with this many bytes.
    NotEmpty(usize),
    /// The payload does not match its kind.
    Payload(serde_json::Error),
}

impl fmt::Display for FrameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownKind(kind) => write!(f, "unknown frame kind {kind}"),
            Self::TooLong(len) => write!(f, "frame of {len} bytes, at most {MAX_FRAME_BYTES}"),
            Self::NotEmpty(len) => write!(f, "a frame that must be empty has {len} bytes"),
            Self::Payload(cause) => write!(f, "frame payload: {cause}"),
        }
    }
}

impl std::error::Error for FrameError {}

fn json(value: &impl serde::Serialize) -> Result<Vec<u8>, FrameError> {
    serde_json::to_vec(value).map_err(FrameError::Payload)
}

fn put(out: &mut Vec<u8>, kind: u8, payload: &[u8]) -> Result<(), FrameError> {
    let too_long = || FrameError::TooLong(payload.len());
    if payload.len() > MAX_FRAME_BYTES {
        return Err(too_long());
    }
    let length = u32::try_from(payload.len()).map_err(|_| too_long())?;
    out.push(kind);
    out.extend_from_slice(&length.to_be_bytes());
    out.extend_from_slice(payload);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::audit_head::AuditHead;
    use super::super::command::{Command, Program};
    use super::super::limits::OperationLimits;
    use super::super::operation::Operation;
    use super::super::outcome::KillReason;
    use super::super::refusal::{OperationRefusal, RefusalCode};
    use super::*;

    fn frames() -> Vec<Frame> {
        vec![
            Frame::Accepted,
            Frame::Started,
            Frame::Output(Stream::Stdout, b"out\0\xff".to_vec()),
            Frame::Output(Stream::Stderr, Vec::new()),
            Frame::End(OperationEnd::Exited { code: 3 }),
            Frame::End(OperationEnd::Killed {
                why: KillReason::Timeout,
            }),
            Frame::End(OperationRefusal::new(RefusalCode::Busy, "later").into()),
        ]
    }

    #[test]
    fn what_is_encoded_comes_out_again_however_it_is_cut() {
        let mut bytes = Vec::new();
        for frame in frames() {
            frame.encode(&mut bytes).unwrap();
        }
        for size in [1, 2, 3, 7, bytes.len()] {
            let mut decoder = Decoder::default();
            let mut out = Vec::new();
            for piece in bytes.chunks(size) {
                decoder.push(piece);
                while let Some(frame) = decoder.next_frame().unwrap() {
                    out.push(frame);
                }
            }
            assert_eq!(out, frames(), "in pieces of {size}");
        }
    }

    #[test]
    fn a_request_comes_out_again() {
        let request = HelperRequest {
            operation: Operation::HostCommand {
                command: Command {
                    program: Program::Argv(vec!["id".into(), "-u".into()]),
                    user: Some("app".into()),
                    cwd: None,
                    env: [("A".to_owned(), "b c".to_owned())].into(),
                },
            },
            limits: OperationLimits {
                timeout_ms: 1000,
                output_bytes: 10,
                processes: 5,
            },
            reference: "r1".into(),
            requester: Some(gatewren_base::sys::Requester::Agent("a1".into())),
            audit: AuditHead::new(7, "0f".repeat(32)).ok(),
            held: true,
        };
        let mut decoder = Decoder::default();
        decoder.push(&request.encode().unwrap());
        assert_eq!(decoder.next_request().unwrap(), Some(request));
        assert!(decoder.next_request().unwrap().is_none());
    }

    #[test]
    fn a_release_comes_out_again_and_is_no_request() {
        for audit in [None, AuditHead::new(8, "0e".repeat(32)).ok()] {
            let release = Release { audit };
            let bytes = release.encode().unwrap();
            let mut decoder = Decoder::default();
            decoder.push(&bytes[..3]);
            assert!(decoder.next_release().unwrap().is_none());
            decoder.push(&bytes[3..]);
            assert_eq!(decoder.next_release().unwrap(), Some(release));
            decoder.push(&bytes);
            assert!(decoder.next_request().is_err());
        }
    }

    #[test]
    fn a_request_says_nothing_that_is_not_read() {
        let limits = r#"{"timeout_ms":1,"output_bytes":1,"processes":1}"#;
        let request = |operation: &str| {
            let text = format!(r#"{{"operation":{operation},"limits":{limits},"reference":"r"}}"#);
            let mut bytes = Vec::new();
            put(&mut bytes, REQUEST, text.as_bytes()).unwrap();
            let mut decoder = Decoder::default();
            decoder.push(&bytes);
            decoder.next_request()
        };
        assert!(request(r#"{"do":"container_list"}"#).unwrap().is_some());
        for more in [
            r#"{"do":"container_list","container":"web"}"#,
            r#"{"do":"ping","x":1}"#,
            r#"{"do":"container_info","container":"web","x":1}"#,
        ] {
            assert!(request(more).is_err(), "{more}");
        }
    }

    #[test]
    fn a_frame_beyond_the_bound_is_refused_before_its_payload_arrives() {
        let mut decoder = Decoder::default();
        decoder.push(&[STDOUT, 0xff, 0xff, 0xff, 0xff]);
        assert!(matches!(decoder.next_frame(), Err(FrameError::TooLong(_))));
        let long = Frame::Output(Stream::Stdout, vec![0; MAX_FRAME_BYTES + 1]);
        let mut out = Vec::new();
        assert!(matches!(long.encode(&mut out), Err(FrameError::TooLong(_))));
        assert!(out.is_empty());
    }

    #[test]
    fn a_frame_that_carries_nothing_is_empty() {
        let mut decoder = Decoder::default();
        decoder.push(&[ACCEPTED, 0, 0, 0, 1, b'x']);
        assert!(matches!(decoder.next_frame(), Err(FrameError::NotEmpty(1))));
    }

    #[test]
    fn no_bytes_make_the_decoder_panic() {
        // A small generator instead of a crate: it yields the same bytes in every run.
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        for round in 0..20_000_u64 {
            let mut bytes = Vec::new();
            for _ in 0..(round % 40) {
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1);
                bytes.push(state.to_be_bytes()[0] >> (round % 8));
            }
            let (mut answers, mut requests) = (Decoder::default(), Decoder::default());
            answers.push(&bytes);
            requests.push(&bytes);
            while let Ok(Some(_)) = answers.next_frame() {}
            while let Ok(Some(_)) = requests.next_request() {}
        }
    }
}
