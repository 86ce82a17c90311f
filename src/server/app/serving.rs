//! The accept loops: they accept connections, serve them, and wait for all of them at the end.

use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

use super::front::Front;
use gatewren_base::config::{LiveSettings, ip_prefix};
use gatewren_base::telemetry::{Heartbeat, HeartbeatPart, Metrics};
use gatewren_gate::http::{
    AcceptedConnection, ConnectionLimits, ConnectionSource, Connections, HttpServer,
    OpenConnection, Timeouts, TlsServer, accept,
};

/// Serves connections.
pub struct ServeContext {
    /// Answers requests.
    pub front: Arc<Front>,
    /// `None` for plain HTTP on loopback.
    pub tls: Option<Arc<TlsServer>>,
    /// The settings in force, with the limits and timeouts.
    pub live: LiveSettings,
    /// The counters.
    pub metrics: Arc<Metrics>,
    /// Updated by the accept loops.
    pub heartbeat: Arc<Heartbeat>,
}

impl ServeContext {
    /// Accepts connections until `stop`.
    pub fn start(
        self: Arc<Self>,
        sockets: Vec<TcpListener>,
        stop: &watch::Receiver<bool>,
    ) -> AcceptLoops {
        let (open, all_gone) = mpsc::channel(1);
        let connections = Connections::default();
        let mut loops = JoinSet::new();
        for socket in sockets {
            loops.spawn(self.clone().accept(
                socket,
                connections.clone(),
                stop.clone(),
                open.clone(),
            ));
        }
        AcceptLoops { loops, all_gone }
    }

    async fn accept(
        self: Arc<Self>,
        socket: TcpListener,
        connections: Connections,
        mut stop: watch::Receiver<bool>,
        open: mpsc::Sender<()>,
    ) {
        let server = self.server(&stop);
        let (mut asked, mut live) = (self.heartbeat.questions(), self.live.clone());
        // The accepted connection that waits for room; further ones wait in the kernel's queue.
        let mut accepted = None;
        loop {
            self.heartbeat.beat(HeartbeatPart::AcceptLoop);
            let connected = tokio::select! {
                _ = stop.wait_for(|stop| *stop) => return,
                // The question asks for the beat at the top of the loop.
                Ok(()) = asked.changed() => continue,
                () = live.changed() => continue,
                connected = self.admit(&socket, &mut accepted, &connections) => connected,
            };
            let (Some(connected), Some(accepted)) = (connected, accepted.take()) else {
                continue;
            };
            let (open, counted) = (open.clone(), self.metrics.connection());
            let mut server = server.clone();
            server.timeouts = self.timeouts();
            tokio::spawn(async move {
                server.serve(accepted, connected).await;
                drop((open, counted));
            });
        }
    }

    /// Accepts the next connection and waits until there is room for it. Returns `None` if it was closed at once.
    async fn admit(
        &self,
        socket: &TcpListener,
        accepted: &mut Option<AcceptedConnection>,
        connections: &Connections,
    ) -> Option<OpenConnection> {
        if accepted.is_none() {
            *accepted = Some(accept(socket).await);
        }
        let peer = accepted.as_ref()?.peer.ip();
        let (source, limits) = self.live.read(|settings| {
            let limits = &settings.limits;
            let is_shared = limits.is_shared(peer);
            let source = ConnectionSource {
                prefix: ip_prefix(peer),
                is_shared,
            };
            let of_source = if is_shared {
                limits.unauthenticated_per_proxy
            } else {
                limits.unauthenticated_per_address
            };
            let total = limits.max_connections;
            (source, ConnectionLimits { total, of_source })
        });
        if connections.is_penalised(source) {
            *accepted = None;
            return None;
        }
        Some(connections.admit(source, limits).await)
    }

    fn server(&self, stop: &watch::Receiver<bool>) -> HttpServer {
        let front = self.front.clone();
        HttpServer {
            tls: self.tls.as_ref().map(|tls| tls.acceptors()),
            timeouts: self.timeouts(),
            handler: Arc::new(move |request, peer| {
                let front = front.clone();
                Box::pin(async move { front.answer(request, peer).await })
            }),
            stop: stop.clone(),
        }
    }

    /// How long a stop waits for running calls.
    pub fn drain(&self) -> Duration {
        self.live.read(|settings| settings.limits.drain)
    }

    fn timeouts(&self) -> Timeouts {
        self.live.read(|settings| Timeouts {
            handshake: settings.limits.handshake_timeout,
            header: settings.limits.header_timeout,
        })
    }
}

/// The accept loops and their connections.
pub struct AcceptLoops {
    loops: JoinSet<()>,
    all_gone: mpsc::Receiver<()>,
}

impl AcceptLoops {
    /// Waits until the loops and every connection have ended.
    pub async fn wait_for_end(mut self) {
        while self.loops.join_next().await.is_some() {}
        // Nothing is ever sent: `recv` returns when the last connection has dropped its sender.
        while self.all_gone.recv().await.is_some() {}
    }
}
