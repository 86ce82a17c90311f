//! The life cycle of the server: ready, reload, drain, exit.

use std::net::{IpAddr, SocketAddr};
use std::pin::pin;
use std::process::ExitCode;
use std::sync::Arc;

use tokio::net::TcpListener;
use tokio::task::JoinSet;

use super::running_server::{Server, follow};
use super::serving::{AcceptLoops, ServeContext};
use super::signals::{ProcessSignals, SignalEvent};
use super::watchdog;
use crate::dispatch::Engine;
use gatewren_base::config::Settings;
use gatewren_base::sys::inherited_sockets;
use gatewren_gate::http::{ListenError, bind, inherit};

/// Opens the sockets to listen on: those that systemd passes, and those of the addresses that they do not cover.
///
/// If systemd passes sockets, the default address is ignored: otherwise an owner who has moved the port in the
/// .socket unit would have the old port open as well.
pub async fn open_sockets(addresses: &[SocketAddr]) -> Result<Vec<TcpListener>, ListenError> {
    let mut sockets = Vec::new();
    for handed_over in inherited_sockets() {
        sockets.push(inherit(handed_over)?);
    }
    let bound = sockets.iter().map(TcpListener::local_addr);
    let bound: Vec<SocketAddr> = bound.filter_map(Result::ok).collect();
    if !bound.is_empty() && addresses == Settings::default().listen {
        return Ok(sockets);
    }
    for address in addresses {
        if !bound.iter().any(|bound| covers(bound, address)) {
            sockets.push(bind(*address).await?);
        }
    }
    Ok(sockets)
}

/// The maximum number of connections that [`reject_connections`] closes: more than the kernel queues,
/// `net.core.somaxconn`.
const MAX_REJECTED: usize = 8192;

/// Closes the waiting connections before an exit that a restart would not fix. Otherwise systemd would start us
/// again at once, as long as they wait. Each later connection makes systemd try once.
pub fn reject_connections(sockets: Vec<TcpListener>) {
    for socket in sockets.into_iter().filter_map(|s| s.into_std().ok()) {
        for _ in 0..MAX_REJECTED {
            if socket.accept().is_err() {
                break;
            }
        }
    }
}

/// Whether a connection to `address` arrives at the socket bound to `bound`.
fn covers(bound: &SocketAddr, address: &SocketAddr) -> bool {
    let everywhere = match bound.ip() {
        // Unless configured otherwise, an IPv6 wildcard socket also gets IPv4 connections (ipv6(7)).
        IpAddr::V6(ip) => ip.is_unspecified(),
        IpAddr::V4(ip) => ip.is_unspecified() && address.is_ipv4(),
    };
    bound.port() == address.port() && (everywhere || bound.ip() == address.ip())
}

/// Runs a server until a signal stops it; calls `announce` when it serves.
///
/// The first SIGTERM or SIGINT drains: no new connections, streams get their end, calls finish or are killed by
/// their class; exit 0. A second one, or the drain's timeout, is exit 1.
pub async fn run(
    server: Server,
    sockets: Vec<TcpListener>,
    announce: impl FnOnce(&Server),
) -> ExitCode {
    let mut signals = match ProcessSignals::listen() {
        Ok(signals) => signals,
        Err(cause) => {
            tracing::error!(%cause, "cannot listen for signals");
            return ExitCode::FAILURE;
        }
    };
    let server = Arc::new(server);
    let accepting = server
        .serving
        .clone()
        .start(sockets, &server.stop.subscribe());
    let mut workers = JoinSet::new();
    server.start_workers(&mut workers);
    workers.spawn(watchdog::watch(server.clone()));
    workers.spawn(follow(server.clone()));
    workers.spawn(server.serving.front.endpoint.clone().keep_sessions());
    // The address comes first: a program that acts on READY=1 may rely on it.
    announce(&server);
    server.notify.status(&format!("serving {}", server.url));
    server.notify.ready();
    serve_until_stop(&server, &mut signals, &mut workers).await;
    tracing::info!("stopping");
    server.notify.stopping();
    server.notify.status("stopping: waiting for running calls");
    server.stop.send_replace(true);
    let clean = drain_calls(&server.serving, &server.engine, accepting, &mut signals).await;
    workers.shutdown().await;
    server.serving.front.endpoint.note_sessions().await;
    server.close_helper().await;
    if clean {
        tracing::info!("stopped");
        return ExitCode::SUCCESS;
    }
    tracing::warn!("stopped before all calls had ended");
    ExitCode::FAILURE
}

/// Handles signals until one of them stops the server, and takes over the background work when it can.
async fn serve_until_stop(
    server: &Server,
    signals: &mut ProcessSignals,
    workers: &mut JoinSet<()>,
) {
    let mut takes_over = pin!(server.locks.workers.take_over());
    let mut is_waiting = true;
    loop {
        tokio::select! {
            event = signals.next() => match event {
                SignalEvent::Reload => server.reload(),
                SignalEvent::Stop => return,
            },
            () = &mut takes_over, if is_waiting => {
                is_waiting = false;
                server.take_over(workers).await;
            }
        }
    }
}

/// Waits until everything has ended; false on the drain's timeout or a second signal.
pub async fn drain_calls(
    serving: &ServeContext,
    engine: &Engine,
    accepting: AcceptLoops,
    signals: &mut ProcessSignals,
) -> bool {
    let drain = async {
        accepting.wait_for_end().await;
        engine.idle().await;
    };
    tokio::select! {
        drained = tokio::time::timeout(serving.drain(), drain) => drained.is_ok(),
        () = wait_for_second_signal(signals) => false,
    }
}

/// Waits for another signal to stop.
pub async fn wait_for_second_signal(signals: &mut ProcessSignals) {
    while signals.next().await != SignalEvent::Stop {}
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;
    use std::net;
    use std::time::Duration;

    use super::*;

    #[tokio::test]
    async fn who_waits_is_turned_away() {
        let socket = net::TcpListener::bind("127.0.0.1:0").unwrap();
        // Like systemd, which keeps the socket open.
        let ours = socket.try_clone().unwrap();
        ours.set_nonblocking(true).unwrap();
        let connect = || net::TcpStream::connect(socket.local_addr().unwrap()).unwrap();
        let waiting = [connect(), connect()];
        reject_connections(vec![TcpListener::from_std(ours).unwrap()]);
        for mut client in waiting {
            let time_limit = Some(Duration::from_mins(2));
            client.set_read_timeout(time_limit).unwrap();
            assert_eq!(client.read(&mut [0]).unwrap(), 0, "it is closed");
        }
        connect();
    }

    #[test]
    fn what_systemd_listens_on_already_is_not_bound_again() {
        let cases = [
            ("[::]:8443", "0.0.0.0:8443", true),
            ("[::]:8443", "192.0.2.1:8443", true),
            ("[::]:8443", "0.0.0.0:9443", false),
            ("0.0.0.0:8443", "127.0.0.1:8443", true),
            ("0.0.0.0:8443", "[::1]:8443", false),
            ("127.0.0.1:8443", "127.0.0.1:8443", true),
            ("127.0.0.1:8443", "192.0.2.1:8443", false),
        ];
        for (bound, address, expected) in cases {
            let (bound, address) = (bound.parse().unwrap(), address.parse().unwrap());
            assert_eq!(covers(&bound, &address), expected, "{bound} {address}");
        }
    }
}
