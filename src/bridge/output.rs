//! The output to the client: one JSON message a line, in order.

use serde_json::Value;
use tokio::io::{AsyncWrite, AsyncWriteExt as _};
use tokio::sync::mpsc;

use gatewren_protocol::{RequestId, RpcError, RpcResponse, code};

/// Queue length for a slow reader. When the queue is full, the server's streams are not read.
const QUEUED: usize = 16;

/// A queue of messages for the client.
#[derive(Clone)]
pub struct ClientOutput(mpsc::Sender<Vec<u8>>);

impl ClientOutput {
    /// Returns an output and the receiver of its lines.
    pub fn new() -> (Self, mpsc::Receiver<Vec<u8>>) {
        let (sender, lines) = mpsc::channel(QUEUED);
        (Self(sender), lines)
    }

    /// Sends a message. Replacing newlines is safe: JSON strings contain none, so a newline can
    /// only be whitespace.
    pub async fn send(&self, mut message: Vec<u8>) {
        for byte in &mut message {
            if matches!(byte, b'\n' | b'\r') {
                *byte = b' ';
            }
        }
        message.push(b'\n');
        // If the reader is gone, the bridge ends soon anyway.
        let _ = self.0.send(message).await;
    }

    /// Sends a message of the bridge itself.
    pub async fn notify(&self, message: &Value) {
        self.send(message.to_string().into_bytes()).await;
    }

    /// Rejects a request with an internal error.
    pub async fn fail(&self, id: &RequestId, words: &str) {
        let error = RpcError::new(code::INTERNAL, words.to_owned());
        self.reject(Some(id), &error).await;
    }

    /// Rejects a message that cannot be forwarded.
    pub async fn reject(&self, id: Option<&RequestId>, error: &RpcError) {
        self.send(RpcResponse::write::<()>(id, Err(error))).await;
    }

    /// Waits until the client no longer reads.
    pub async fn closed(&self) {
        self.0.closed().await;
    }
}

/// Writes messages until all senders are dropped or the client no longer reads.
pub async fn write_all(mut output: impl AsyncWrite + Unpin, mut lines: mpsc::Receiver<Vec<u8>>) {
    while let Some(line) = lines.recv().await {
        let written = async {
            output.write_all(&line).await?;
            output.flush().await
        };
        if let Err(cause) = written.await {
            return tracing::debug!(%cause, "writing to the client failed");
        }
    }
}
