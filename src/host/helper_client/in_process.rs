//! Answers the helper's operations in this process, for a demo: there is no helper, and nothing reaches the host.

use std::path::Path;
use std::sync::Arc;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{UnixListener, UnixStream};

use super::address::SocketPath;
use super::error::HelperError;
use super::helper::HelperClient;
use gatewren_base::config::HelperClass;
use gatewren_wire::operations::{
    Decoder, Frame, HelperRequest, MAX_FRAME_BYTES, Operation, OperationEnd, OperationRefusal,
    Stream,
};

/// Returns the output of an operation, or why it is refused.
type Answers = dyn Fn(&Operation) -> Result<Vec<u8>, OperationRefusal> + Send + Sync;

impl HelperClient {
    /// Returns a handle whose operations `answers` answers, over a socket in `directory`.
    ///
    /// # Errors
    /// When the socket cannot be created.
    pub fn answered_by(
        directory: &Path,
        answers: impl Fn(&Operation) -> Result<Vec<u8>, OperationRefusal> + Send + Sync + 'static,
    ) -> Result<Self, HelperError> {
        let failed = |cause: std::io::Error| HelperError::Unreachable(cause.to_string());
        let (address, listener) = SocketPath::listen_in(directory).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        let listener = UnixListener::from_std(listener).map_err(failed)?;
        tokio::spawn(accept(listener, Arc::new(answers)));
        Ok(Self::at(address))
    }
}

async fn accept(listener: UnixListener, answers: Arc<Answers>) {
    while let Ok((stream, _)) = listener.accept().await {
        let answers = answers.clone();
        tokio::spawn(async move {
            // A caller that hangs up needs no answer.
            let _ = answer(stream, &*answers).await;
        });
    }
}

async fn answer(mut stream: UnixStream, answers: &Answers) -> std::io::Result<()> {
    let Some(request) = read_request(&mut stream).await? else {
        return Ok(());
    };
    let mut frames = vec![Frame::Accepted];
    let is_endless = match &request.operation {
        Operation::Bounds {} => {
            let keys: Vec<&str> = HelperClass::ALL.into_iter().map(HelperClass::key).collect();
            let line = format!("{}\n", serde_json::json!(keys));
            frames.push(Frame::Output(Stream::Stdout, line.into_bytes()));
            true
        }
        Operation::JobEnds {} => true,
        other => {
            frames.extend(end_frames(answers(other)));
            false
        }
    };
    let mut bytes = Vec::new();
    for frame in frames {
        frame.encode(&mut bytes).map_err(std::io::Error::other)?;
    }
    stream.write_all(&bytes).await?;
    if is_endless {
        // The classes never change, and no job ends: the stream ends when the caller hangs up.
        stream.read_u8().await?;
    }
    Ok(())
}

fn end_frames(answered: Result<Vec<u8>, OperationRefusal>) -> Vec<Frame> {
    match answered {
        Ok(output) => {
            let parts = output.chunks(MAX_FRAME_BYTES);
            let parts = parts.map(|part| Frame::Output(Stream::Stdout, part.to_owned()));
            let end = Frame::End(OperationEnd::Exited { code: 0 });
            parts.chain([end]).collect()
        }
        Err(refusal) => vec![Frame::End(OperationEnd::Refused(refusal))],
    }
}

/// Reads the request; `None` if the caller hung up first.
async fn read_request(stream: &mut UnixStream) -> std::io::Result<Option<HelperRequest>> {
    let mut decoder = Decoder::default();
    let mut buffer = [0; 4096];
    loop {
        let whole = decoder.next_request().map_err(std::io::Error::other)?;
        if whole.is_some() {
            return Ok(whole);
        }
        match stream.read(&mut buffer).await? {
            0 => return Ok(None),
            read => decoder.push(buffer.get(..read).unwrap_or_default()),
        }
    }
}
