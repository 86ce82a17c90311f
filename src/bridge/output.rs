//! What the client is told: one JSON message a line, in the order in which it was said.

use serde_json::Value;
use tokio::io::{AsyncWrite, AsyncWriteExt as _};
use tokio::sync::mpsc;

use crate::protocol::{Id, Response, RpcError, code};

/// Messages wait here for a slow reader; beyond these, the streams that bring them are not read on.
const QUEUED: usize = 16;

/// Where messages for the client go.
#[derive(Clone)]
pub struct Output(mpsc::Sender<Vec<u8>>);

impl Output {
    /// An output and what is to be written.
    pub fn new() -> (Self, mpsc::Receiver<Vec<u8>>) {
        let (sender, lines) = mpsc::channel(QUEUED);
        (Self(sender), lines)
    }

    /// Says a message. A newline in it stands between its parts, for in a text of JSON there is none.
    pub async fn say(&self, mut message: Vec<u8>) {
        for byte in &mut message {
            if matches!(byte, b'\n' | b'\r') {
                *byte = b' ';
            }
        }
        message.push(b'\n');
        // A reader that is gone ends everything a moment later.
        let _ = self.0.send(message).await;
    }

    /// Says something of our own.
    pub async fn tell(&self, message: &Value) {
        self.say(message.to_string().into_bytes()).await;
    }

    /// Answers a request with an error of ours.
    pub async fn fail(&self, id: &Id, words: &str) {
        let error = RpcError::new(code::INTERNAL, words.to_owned());
        self.reject(Some(id), &error).await;
    }

    /// Answers what cannot be carried.
    pub async fn reject(&self, id: Option<&Id>, error: &RpcError) {
        self.say(Response::write::<()>(id, Err(error))).await;
    }

    /// When nobody reads any more.
    pub async fn closed(&self) {
        self.0.closed().await;
    }
}

/// Writes what is said until nobody says or reads any more.
pub async fn write_all(mut output: impl AsyncWrite + Unpin, mut lines: mpsc::Receiver<Vec<u8>>) {
    while let Some(line) = lines.recv().await {
        let written = async {
            output.write_all(&line).await?;
            output.flush().await
        };
        if let Err(cause) = written.await {
            return tracing::debug!(%cause, "the client can no longer be written to");
        }
    }
}
