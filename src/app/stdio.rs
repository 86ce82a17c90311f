//! One client on standard input and output: it has started us, is served alone, and its end is ours.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinSet;

#[cfg(feature = "everything")]
use super::fixtures::Fixtures;
use super::{
    house::House,
    serving::Serving,
    signals::{Asked, Signals},
};
use crate::dispatch::Engine;
use crate::sys::Secret;
use crate::transport::{Ended, serve_stdio};

/// Serves the holder of this token until its pipe closes, or SIGTERM or SIGINT.
pub async fn run_stdio(house: House, token: &Secret) -> ExitCode {
    let mut workers = JoinSet::new();
    house.start_workers(&mut workers);
    let talk = Talk {
        serving: &house.serving,
        engine: &house.engine,
        stop: &house.stop,
        drain: house.settings.limits.drain,
    };
    let code = talk.run(Some(token)).await;
    workers.shutdown().await;
    house.close_helper().await;
    code
}

/// Serves fixtures to whoever started us, until its pipe closes, or SIGTERM or SIGINT.
#[cfg(feature = "everything")]
pub async fn run_fixtures_stdio(fixtures: Fixtures) -> ExitCode {
    let talk = Talk {
        serving: &fixtures.serving,
        engine: &fixtures.engine,
        stop: &fixtures.stop,
        drain: fixtures.serving.limits.drain,
    };
    talk.run(None).await
}

/// What talking to one client takes.
struct Talk<'a> {
    serving: &'a Serving,
    engine: &'a Arc<Engine>,
    stop: &'a watch::Sender<bool>,
    /// What was begun and outlives its client may take so long to its end.
    drain: Duration,
}

impl Talk<'_> {
    async fn run(&self, token: Option<&Secret>) -> ExitCode {
        let client = match self.serving.front.guard.attach(token.map(Secret::expose)) {
            Ok(client) => client,
            Err(refusal) => {
                tracing::error!("{}", refusal.message);
                return ExitCode::FAILURE;
            }
        };
        let mut signals = match Signals::listen() {
            Ok(signals) => signals,
            Err(cause) => {
                tracing::error!(%cause, "cannot listen for signals");
                return ExitCode::FAILURE;
            }
        };
        let (input, output) = (tokio::io::stdin(), tokio::io::stdout());
        let endpoint = &self.serving.front.endpoint;
        let mut served = Box::pin(serve_stdio(endpoint, &client, input, output));
        let ended = loop {
            tokio::select! {
                ended = &mut served => break ended,
                asked = signals.next() => match asked {
                    Asked::Stop => drop(self.stop.send_replace(true)),
                    Asked::Reload => {}
                },
            }
        };
        tracing::debug!(?ended, "the client's connection has ended");
        self.stop.send_replace(true);
        let idle = tokio::time::timeout(self.drain, self.engine.idle()).await;
        if idle.is_err() {
            tracing::warn!("stopped before everything had ended");
        }
        if ended == Ended::Expelled {
            tracing::error!("this agent's token was revoked or has expired");
        }
        if idle.is_err() || ended == Ended::Expelled {
            return ExitCode::FAILURE;
        }
        ExitCode::SUCCESS
    }
}
