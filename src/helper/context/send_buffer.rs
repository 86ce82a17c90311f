//! The send buffer of a connection to the front.
//!
//! It holds one frame at a time, so that a slow reader slows the command.

use std::io;

use tokio::net::UnixStream;

use gatewren_wire::operations::Frame;

/// Bytes that the socket has not taken yet.
#[derive(Debug, Default)]
pub struct SendBuffer {
    bytes: Vec<u8>,
    sent: usize,
}

impl SendBuffer {
    /// Adds a frame.
    pub fn put(&mut self, frame: &Frame) {
        if self.is_empty() {
            self.bytes.clear();
            self.sent = 0;
        }
        // The helper's frames are a quarter of the size limit. Dropping one that is too long does the least harm.
        if let Err(cause) = frame.encode(&mut self.bytes) {
            tracing::error!(%cause, "a frame was dropped");
        }
    }

    /// Returns whether everything has been sent.
    pub fn is_empty(&self) -> bool {
        self.sent == self.bytes.len()
    }

    /// Sends what the socket accepts now. Cancel safe.
    pub async fn send_some(&mut self, stream: &UnixStream) -> io::Result<()> {
        stream.writable().await?;
        match stream.try_write(self.bytes.get(self.sent..).unwrap_or_default()) {
            Ok(n) => self.sent += n,
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => {}
            Err(e) => return Err(e),
        }
        Ok(())
    }

    /// Sends everything.
    pub async fn send_all(&mut self, stream: &UnixStream) -> io::Result<()> {
        while !self.is_empty() {
            self.send_some(stream).await?;
        }
        Ok(())
    }
}
