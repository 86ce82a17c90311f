//! An engine for tests: answers on a Unix socket with bytes that a test gives, however wrong they are.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{UnixListener, UnixStream};
use tokio::task::JoinHandle;

use super::api::EngineApi;
use super::engine_socket::EngineSocket;
use super::kind::EngineKind;
use gatewren_base::sys::{Scratch, lock};

/// A request without its headers, such as `GET /v1.41/info`, and its body.
pub(super) struct FakeRequest {
    pub(super) line: String,
    pub(super) body: String,
}

/// What the engine sends on a connection before it closes it: parts, each in a packet of its own.
pub(super) enum FakeAnswer {
    Parts(Vec<Vec<u8>>),
    /// The first part once and the second one until the client hangs up or so many bytes are sent.
    Flood(Vec<u8>, Vec<u8>, usize),
    /// Nothing, and the connection stays open.
    Silence,
}

type Script = dyn Fn(&FakeRequest) -> FakeAnswer + Send + Sync;

/// The engine; it ends when it is dropped.
pub(super) struct FakeEngine {
    pub(super) scratch: Scratch,
    requests: Arc<Mutex<Vec<String>>>,
    sent: Arc<Mutex<usize>>,
    task: JoinHandle<()>,
}

impl Drop for FakeEngine {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl FakeEngine {
    /// Starts an engine that answers by a script.
    pub(super) fn start(
        script: impl Fn(&FakeRequest) -> FakeAnswer + Send + Sync + 'static,
    ) -> Self {
        let scratch = Scratch::new();
        let listener = UnixListener::bind(scratch.join("engine.sock")).unwrap();
        let requests: Arc<Mutex<Vec<String>>> = Arc::default();
        let sent: Arc<Mutex<usize>> = Arc::default();
        let script: Arc<Script> = Arc::new(script);
        let (seen, count) = (Arc::clone(&requests), Arc::clone(&sent));
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(
                    stream,
                    Arc::clone(&script),
                    Arc::clone(&seen),
                    Arc::clone(&count),
                ));
            }
        });
        Self {
            scratch,
            requests,
            sent,
            task,
        }
    }

    /// Starts a Docker of version 1.41 that answers all requests but pings by a script.
    pub(super) fn docker(
        script: impl Fn(&FakeRequest) -> FakeAnswer + Send + Sync + 'static,
    ) -> Self {
        Self::start(move |request| {
            if request.line == "GET /_ping" {
                return pong("Api-Version: 1.41\r\n");
            }
            script(request)
        })
    }

    pub(super) fn socket(&self) -> PathBuf {
        self.scratch.join("engine.sock")
    }

    /// A client of it.
    pub(super) fn api(&self, kind: EngineKind) -> EngineApi {
        EngineApi::new(kind, EngineSocket::OfRoot(self.socket()))
    }

    /// The first lines of all requests so far, without the protocol.
    pub(super) fn requests(&self) -> Vec<String> {
        lock(&self.requests).clone()
    }

    /// How many bytes of bodies were sent so far.
    pub(super) fn sent(&self) -> usize {
        *lock(&self.sent)
    }
}

async fn serve(
    mut stream: UnixStream,
    script: Arc<Script>,
    seen: Arc<Mutex<Vec<String>>>,
    sent: Arc<Mutex<usize>>,
) {
    let Some(request) = read_request(&mut stream).await else {
        return;
    };
    let answer = script(&request);
    lock(&seen).push(request.line);
    match answer {
        FakeAnswer::Parts(parts) => {
            for part in parts {
                if stream.write_all(&part).await.is_err() {
                    return;
                }
                tokio::task::yield_now().await;
            }
        }
        FakeAnswer::Flood(first, part, most) => {
            let _ = stream.write_all(&first).await;
            while *lock(&sent) < most && stream.write_all(&part).await.is_ok() {
                *lock(&sent) += part.len();
            }
        }
        FakeAnswer::Silence => std::future::pending().await,
    }
}

async fn read_request(stream: &mut UnixStream) -> Option<FakeRequest> {
    let mut bytes = Vec::new();
    loop {
        let mut buffer = [0; 4096];
        let count = stream.read(&mut buffer).await.ok()?;
        if count == 0 {
            return None;
        }
        bytes.extend_from_slice(&buffer[..count]);
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| {
                line.to_lowercase()
                    .strip_prefix("content-length: ")?
                    .parse()
                    .ok()
            });
            if body.len() >= length.unwrap_or(0_usize) {
                let line = head.lines().next()?;
                return Some(FakeRequest {
                    line: line.strip_suffix(" HTTP/1.1")?.to_owned(),
                    body: body.to_owned(),
                });
            }
        }
    }
}

/// The answer to a ping, with these headers.
pub(super) fn pong(headers: &str) -> FakeAnswer {
    let answer = format!("HTTP/1.1 200 OK\r\n{headers}Content-Length: 2\r\n\r\nOK");
    FakeAnswer::Parts(vec![answer.into_bytes()])
}

/// An answer with a status and JSON.
pub(super) fn json(status: &str, body: &str) -> FakeAnswer {
    let length = body.len();
    let head = format!("HTTP/1.1 {status}\r\nContent-Type: application/json\r\n");
    let answer = format!("{head}Content-Length: {length}\r\n\r\n{body}");
    FakeAnswer::Parts(vec![answer.into_bytes()])
}

/// An answer with a chunked body.
pub(super) fn chunked(parts: &[&[u8]]) -> FakeAnswer {
    let mut all = vec![b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec()];
    for part in parts {
        let mut chunk = format!("{:x}\r\n", part.len()).into_bytes();
        chunk.extend_from_slice(part);
        chunk.extend_from_slice(b"\r\n");
        all.push(chunk);
    }
    all.push(b"0\r\n\r\n".to_vec());
    FakeAnswer::Parts(all)
}
