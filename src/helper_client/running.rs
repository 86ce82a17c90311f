//! One operation while it runs; to drop it is to kill it.

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;

use crate::exec::{Decoder, Frame};

use super::error::HelperError;

/// Bytes asked of the socket at once.
const READ_BYTES: usize = 64 * 1024;

/// An operation in the helper; when this is dropped, everything that the operation started is killed.
#[derive(Debug)]
pub struct Running {
    stream: UnixStream,
    decoder: Decoder,
    buffer: Vec<u8>,
    ended: bool,
}

impl Running {
    pub(super) fn new(stream: UnixStream) -> Self {
        Self {
            stream,
            decoder: Decoder::default(),
            buffer: vec![0; READ_BYTES],
            ended: false,
        }
    }

    /// The next frame; the last is [`Frame::End`]. Safe to drop while it waits: no byte is lost.
    ///
    /// # Errors
    /// [`HelperError::Lost`] when the helper went away before the end, and after the end.
    pub async fn next(&mut self) -> Result<Frame, HelperError> {
        if self.ended {
            return Err(HelperError::Lost("asked for a frame after the end".into()));
        }
        loop {
            let whole = self.decoder.next_frame();
            if let Some(frame) = whole.map_err(|e| HelperError::Protocol(e.to_string()))? {
                self.ended = matches!(frame, Frame::End(_));
                return Ok(frame);
            }
            let read = self.stream.read(&mut self.buffer).await;
            match read.map_err(|e| HelperError::Lost(e.to_string()))? {
                0 => return Err(HelperError::Lost("end of file before the end".into())),
                n => self.decoder.push(self.buffer.get(..n).unwrap_or_default()),
            }
        }
    }

    /// Asks for the kill but stays for what was printed and for the end, `killed {cancelled}`.
    ///
    /// # Errors
    /// [`HelperError::Lost`] when the helper is gone.
    pub async fn cancel(&mut self) -> Result<(), HelperError> {
        let closed = self.stream.shutdown().await;
        closed.map_err(|e| HelperError::Lost(e.to_string()))
    }
}
