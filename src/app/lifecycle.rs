//! From ready to stopped: reload, drain, and how it ends.

use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::Arc;

use tokio::net::TcpListener;
use tokio::task::JoinSet;

use super::{
    house::{House, follow},
    serving::{Accepting, Serving},
    signals::{Asked, Signals},
    watchdog,
};
use crate::dispatch::Engine;
use crate::http::{ListenError, bind, inherit};
use crate::sys::inherited_sockets;

/// The sockets to listen on: those that systemd hands over, or else these addresses.
pub async fn open_sockets(addresses: &[SocketAddr]) -> Result<Vec<TcpListener>, ListenError> {
    let inherited: Vec<TcpListener> = inherited_sockets()
        .into_iter()
        .filter_map(|socket| inherit(socket).ok())
        .collect();
    if !inherited.is_empty() {
        return Ok(inherited);
    }
    let mut sockets = Vec::new();
    for address in addresses {
        sockets.push(bind(*address).await?);
    }
    Ok(sockets)
}

/// Runs a house until it is told to stop; `announce` is called when it serves.
///
/// The first SIGTERM or SIGINT drains: no new connections, streams get their end, calls finish or are
/// killed by their class; exit 0. A second one, or the end of the drain's time, is exit 1.
pub async fn run(
    house: House,
    sockets: Vec<TcpListener>,
    announce: impl FnOnce(&House),
) -> ExitCode {
    let mut signals = match Signals::listen() {
        Ok(signals) => signals,
        Err(cause) => {
            tracing::error!(%cause, "cannot listen for signals");
            return ExitCode::FAILURE;
        }
    };
    let house = Arc::new(house);
    let accepting = house
        .serving
        .clone()
        .start(sockets, &house.stop.subscribe());
    let mut workers = JoinSet::new();
    house.start_workers(&mut workers);
    workers.spawn(watchdog::watch(house.clone()));
    workers.spawn(follow(house.clone()));
    workers.spawn(house.serving.front.endpoint.clone().keep_sessions());
    // The address comes first: who acts on READY=1 may rely on having been told where.
    announce(&house);
    house.notify.status(&format!("serving {}", house.url));
    house.notify.ready();
    while signals.next().await == Asked::Reload {
        house.reload();
    }
    tracing::info!("stopping");
    house.notify.stopping();
    house
        .notify
        .status("stopping: waiting for what is under way");
    house.stop.send_replace(true);
    let clean = drained(&house.serving, &house.engine, accepting, &mut signals).await;
    workers.shutdown().await;
    house.serving.front.endpoint.note_sessions().await;
    house.close_helper().await;
    if clean {
        tracing::info!("stopped");
        return ExitCode::SUCCESS;
    }
    tracing::warn!("stopped before everything had ended");
    ExitCode::FAILURE
}

/// Waits until everything has ended: false when the drain's time is over, or a second signal came.
pub async fn drained(
    serving: &Serving,
    engine: &Engine,
    accepting: Accepting,
    signals: &mut Signals,
) -> bool {
    let drain = async {
        accepting.gone().await;
        engine.idle().await;
    };
    tokio::select! {
        drained = tokio::time::timeout(serving.drain(), drain) => drained.is_ok(),
        () = told_again(signals) => false,
    }
}

/// Waits until it is told to stop once more.
pub async fn told_again(signals: &mut Signals) {
    while signals.next().await != Asked::Stop {}
}
