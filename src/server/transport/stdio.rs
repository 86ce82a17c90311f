//! stdio: one JSON message per line, over any pair of byte streams.

use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _, BufReader};
use tokio::sync::mpsc;

use super::duplex::{ClientInput, DisconnectReason, DuplexConnection, refusal_error};
use super::endpoint::Endpoint;
use super::relay::ClientLine;
use crate::dispatch::CallContext;
use gatewren_base::sys::LineReader;
use gatewren_gate::guard::{AttachedClient, Refusal};
use gatewren_wire::protocol::{RpcBody, RpcError, RpcMessage, read};

/// The maximum number of queued input lines; if the queue is full, the client is not read.
const QUEUED: usize = 8;

/// How long a client that still reads has to read the rest after the end.
const FLUSH: Duration = Duration::from_secs(5);

/// Serves one client until either end closes or the server stops. Only messages are written.
pub async fn serve(
    endpoint: &Arc<Endpoint>,
    client: &AttachedClient,
    input: impl AsyncRead + Send + Unpin + 'static,
    output: impl AsyncWrite + Send + Unpin + 'static,
) -> Result<DisconnectReason, Refusal> {
    let caller = CallContext::of(client.who().clone(), None);
    let (link, lines) = DuplexConnection::open(endpoint, caller.clone())?;
    let (sender, arrivals) = mpsc::channel(QUEUED);
    let input = LineReader::new(BufReader::new(input), endpoint.guard().largest_message());
    let reading = tokio::spawn(read_all(input, endpoint.clone(), caller.clone(), sender));
    let writing = tokio::spawn(write_all(output, lines));
    let ended = link.run(arrivals).await;
    reading.abort();
    // The link is dropped, so the writer ends after the last line.
    let _ = tokio::time::timeout(FLUSH, writing).await;
    Ok(ended)
}

async fn read_all(
    mut lines: LineReader<impl AsyncRead + Unpin>,
    endpoint: Arc<Endpoint>,
    caller: CallContext,
    arrivals: mpsc::Sender<ClientInput>,
) {
    loop {
        let arrival = match lines.next().await {
            Ok(Some(Ok(line))) if line.trim_ascii().is_empty() => continue,
            Ok(Some(Ok(line))) => match read(&line) {
                Ok(messages) => charge_message(&endpoint, &caller, messages),
                Err((id, error)) => ClientInput::Broken(id, error),
            },
            Ok(Some(Err(_))) => {
                ClientInput::Broken(None, too_long(endpoint.guard().largest_message()))
            }
            Ok(None) => return,
            Err(cause) => return tracing::debug!(%cause, "cannot read from the client any more"),
        };
        if arrivals.send(arrival).await.is_err() {
            return;
        }
    }
}

/// Charges the agent for messages that need an answer; others may be what an answer waits for.
fn charge_message(endpoint: &Endpoint, caller: &CallContext, messages: RpcBody) -> ClientInput {
    let id = match &messages {
        RpcBody::Single(RpcMessage::Request(request)) => Some(request.id.clone()),
        RpcBody::Single(_) => return ClientInput::Whole(messages, None),
        RpcBody::Batch(_) => None,
    };
    // The agent's limits may have changed. If its access has ended, the message is refused where it is served.
    let Ok(who) = endpoint.guard().current(&caller.who) else {
        return ClientInput::Whole(messages, None);
    };
    match endpoint.guard().charge_agent(&who) {
        Ok(()) => ClientInput::Whole(messages, None),
        Err(refusal) => ClientInput::Broken(id, refusal_error(refusal)),
    }
}

async fn write_all(mut output: impl AsyncWrite + Unpin, mut lines: mpsc::Receiver<ClientLine>) {
    while let Some(line) = lines.recv().await {
        let Some(mut bytes) = line.into_bytes() else {
            continue;
        };
        // JSON as this server writes it contains no newline.
        bytes.push(b'\n');
        let written = async {
            output.write_all(&bytes).await?;
            output.flush().await
        };
        if let Err(cause) = written.await {
            return tracing::debug!(%cause, "cannot write to the client any more");
        }
    }
}

fn too_long(longest: usize) -> RpcError {
    RpcError::invalid_request(format!("a message may have at most {longest} bytes"))
}

/// Reads the lines of a text in pieces; `None` for each line that is too long.
#[cfg(any(test, feature = "testing"))]
pub async fn lines_of(text: &[u8], piece: usize, longest: usize) -> Vec<Option<Vec<u8>>> {
    let mut lines = LineReader::new(BufReader::with_capacity(piece, text), longest);
    let mut found = Vec::new();
    while let Ok(Some(line)) = lines.next().await {
        found.push(line.ok());
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn lines(text: &[u8], longest: usize) -> Vec<Option<String>> {
        let found = lines_of(text, 4, longest).await.into_iter();
        found
            .map(|line| line.map(|line| String::from_utf8(line).unwrap()))
            .collect()
    }

    #[tokio::test]
    async fn lines_are_cut_at_newlines_wherever_the_reads_fall() {
        let whole = |texts: &[&str]| {
            texts
                .iter()
                .map(|t| Some((*t).to_owned()))
                .collect::<Vec<_>>()
        };
        assert_eq!(lines(b"", 9).await, whole(&[]));
        assert_eq!(lines(b"\n", 9).await, whole(&[""]));
        assert_eq!(
            lines(b"abcd\nefghi\r\n", 9).await,
            whole(&["abcd", "efghi\r"])
        );
        assert_eq!(lines(b"abc\nlast", 9).await, whole(&["abc", "last"]));
    }

    #[tokio::test]
    async fn a_line_that_is_too_long_is_skipped_and_the_next_one_read() {
        let found = lines(b"123456789\n1234567890\n12345678901234567890\nok\n", 9).await;
        let ok = |text: &str| Some(text.to_owned());
        assert_eq!(found, [ok("123456789"), None, None, ok("ok")]);
        assert_eq!(lines(b"1234567890", 9).await, [None]);
    }
}
