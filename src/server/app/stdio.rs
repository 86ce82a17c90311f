//! Serves one client on standard input and output: it started this process, which ends with its connection.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinSet;

#[cfg(feature = "everything")]
use super::fixtures::FixtureServer;
use super::lifecycle::wait_for_second_signal;
use super::running_server::Server;
use super::serving::ServeContext;
use super::signals::{ProcessSignals, SignalEvent};
use crate::dispatch::Engine;
use crate::transport::{DisconnectReason, serve_stdio};
use gatewren_base::sys::Secret;

/// Serves the holder of this token until its pipe closes, or until SIGTERM or SIGINT.
pub async fn run_stdio(server: Server, token: &Secret) -> ExitCode {
    let mut workers = JoinSet::new();
    server.start_workers(&mut workers);
    let talk = StdioSession {
        serving: &server.serving,
        engine: &server.engine,
        stop: &server.stop,
        drain: server.in_force.now().limits.drain,
    };
    let code = talk.run(Some(token)).await;
    workers.shutdown().await;
    server.close_helper().await;
    code
}

/// Serves fixtures to the process that started this one, until its pipe closes, or until SIGTERM or SIGINT.
#[cfg(feature = "everything")]
pub async fn run_fixtures_stdio(fixtures: FixtureServer) -> ExitCode {
    let talk = StdioSession {
        serving: &fixtures.serving,
        engine: &fixtures.engine,
        stop: &fixtures.stop,
        drain: fixtures.serving.drain(),
    };
    talk.run(None).await
}

/// The context of one client's connection.
struct StdioSession<'a> {
    serving: &'a ServeContext,
    engine: &'a Arc<Engine>,
    stop: &'a watch::Sender<bool>,
    /// How long running calls may take to end after their client is gone.
    drain: Duration,
}

impl StdioSession<'_> {
    async fn run(&self, token: Option<&Secret>) -> ExitCode {
        let client = match self.serving.front.guard.attach(token.map(Secret::expose)) {
            Ok(client) => client,
            Err(refusal) => return failed(&refusal.message),
        };
        let mut signals = match ProcessSignals::listen() {
            Ok(signals) => signals,
            Err(cause) => return failed(&format!("cannot listen for signals: {cause}")),
        };
        let (input, output) = (tokio::io::stdin(), tokio::io::stdout());
        let endpoint = &self.serving.front.endpoint;
        let mut served = Box::pin(serve_stdio(endpoint, &client, input, output));
        let ended = loop {
            tokio::select! {
                ended = &mut served => match ended {
                    Ok(ended) => break ended,
                    Err(refusal) => return failed(&refusal.message),
                },
                asked = signals.next() => match asked {
                    SignalEvent::Stop => drop(self.stop.send_replace(true)),
                    SignalEvent::Reload => {}
                },
            }
        };
        tracing::debug!(?ended, "the client's connection has ended");
        self.stop.send_replace(true);
        let clean = tokio::select! {
            idle = tokio::time::timeout(self.drain, self.engine.idle()) => idle.is_ok(),
            () = wait_for_second_signal(&mut signals) => false,
        };
        if !clean {
            tracing::warn!("stopped before all calls had ended");
        }
        match ended {
            DisconnectReason::AccessEnded(end) => return failed(&format!("access ended: {end}")),
            DisconnectReason::ReachChanged => {
                return failed("this agent's space has changed; connect again");
            }
            _ => {}
        }
        if !clean {
            return ExitCode::FAILURE;
        }
        ExitCode::SUCCESS
    }
}

fn failed(words: &str) -> ExitCode {
    tracing::error!("{words}");
    ExitCode::FAILURE
}

#[cfg(test)]
mod tests {
    #[cfg(feature = "everything")]
    #[tokio::test]
    async fn i6_a_unix_socket_frames_messages_as_a_pipe_does() {
        use serde_json::{Value, json};
        use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};

        use super::super::fixtures::{FixturePlan, FixtureServer};
        use crate::transport::{DisconnectReason, serve_stdio};

        let plan = FixturePlan {
            address: None,
            http_sse: false,
            tls: None,
            token: None,
        };
        let fixtures = FixtureServer::build(plan).unwrap();
        let (ours, theirs) = tokio::net::UnixStream::pair().unwrap();
        let served = tokio::spawn(async move {
            let front = &fixtures.serving.front;
            let client = front.guard.attach(None).unwrap();
            let (input, output) = ours.into_split();
            serve_stdio(&front.endpoint, &client, input, output).await
        });
        let (input, mut output) = theirs.into_split();
        let mut lines = BufReader::new(input).lines();
        for id in 1..=2 {
            let ping = json!({ "jsonrpc": "2.0", "id": id, "method": "ping" });
            output
                .write_all(format!("{ping}\n").as_bytes())
                .await
                .unwrap();
            let line = lines.next_line().await.unwrap().unwrap();
            let answer: Value = serde_json::from_str(&line).unwrap();
            assert_eq!(answer, json!({ "jsonrpc": "2.0", "id": id, "result": {} }));
        }
        drop(output);
        assert_eq!(served.await.unwrap().unwrap(), DisconnectReason::Finished);
        assert!(lines.next_line().await.unwrap().is_none());
    }
}
