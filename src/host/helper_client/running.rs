//! A running operation; dropping it kills it.

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;

use gatewren_wire::operations::{Decoder, Frame, Release};

use super::error::HelperError;

/// Bytes per read from the socket.
const READ_BYTES: usize = 64 * 1024;

/// An operation that runs in the helper. Dropping it kills everything that the operation started.
#[derive(Debug)]
pub struct RunningOperation {
    stream: UnixStream,
    decoder: Decoder,
    buffer: Vec<u8>,
    ended: bool,
}

impl RunningOperation {
    pub(super) fn new(stream: UnixStream) -> Self {
        Self {
            stream,
            decoder: Decoder::default(),
            buffer: vec![0; READ_BYTES],
            ended: false,
        }
    }

    /// Returns the next frame; the last one is [`Frame::End`]. Cancel safe: no byte is lost when
    /// the future is dropped.
    ///
    /// # Errors
    /// [`HelperError::Lost`] when the helper disconnected before the end, and after the end.
    pub async fn next(&mut self) -> Result<Frame, HelperError> {
        if self.ended {
            return Err(HelperError::Lost("read after the last frame".into()));
        }
        loop {
            let whole = self.decoder.next_frame();
            if let Some(frame) = whole.map_err(|e| HelperError::Protocol(e.to_string()))? {
                self.ended = matches!(frame, Frame::End(_));
                return Ok(frame);
            }
            let read = self.stream.read(&mut self.buffer).await;
            match read.map_err(|e| HelperError::Lost(e.to_string()))? {
                0 => {
                    return Err(HelperError::Lost(
                        "end of file before the last frame".into(),
                    ));
                }
                n => self.decoder.push(self.buffer.get(..n).unwrap_or_default()),
            }
        }
    }

    /// Lets a held command run.
    pub(super) async fn release(&mut self, release: &Release) -> Result<(), HelperError> {
        let bytes = release.encode();
        let bytes = bytes.map_err(|e| HelperError::Protocol(e.to_string()))?;
        // Fails if the helper has refused the command and closed the connection; the next frame says why.
        let _ = self.stream.write_all(&bytes).await;
        Ok(())
    }

    /// Asks the helper to kill the operation, but keeps the connection for the remaining output and
    /// the end, `killed {cancelled}`.
    ///
    /// # Errors
    /// [`HelperError::Lost`] when the helper is gone.
    pub async fn cancel(&mut self) -> Result<(), HelperError> {
        let closed = self.stream.shutdown().await;
        closed.map_err(|e| HelperError::Lost(e.to_string()))
    }
}
