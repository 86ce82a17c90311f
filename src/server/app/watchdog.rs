//! Sends watchdog keep-alives to the service manager, only while all important parts respond.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::running_server::Server;
use crate::dispatch::{Call, CallContext};
use gatewren_base::config::Preset;
use gatewren_base::telemetry::HeartbeatPart;
use gatewren_gate::auth::Principal;
use gatewren_wire::protocol::{Params, RequestId};

/// How often the parts are checked if no service manager sets the interval.
const PACE: Duration = Duration::from_secs(15);

/// Sends keep-alives while the server runs.
pub async fn watch(server: Arc<Server>) {
    let pace = pace(server.notify.watchdog());
    loop {
        let since = Instant::now();
        server.serving.heartbeat.ask();
        // Bounded, so that a part that hangs does not block this loop.
        let _ = tokio::time::timeout(pace, examine(&server)).await;
        tokio::time::sleep(pace.saturating_sub(since.elapsed())).await;
        let missing: Vec<&str> = server
            .serving
            .heartbeat
            .missing_since(since)
            .map(HeartbeatPart::as_str)
            .collect();
        if missing.is_empty() {
            server.notify.alive();
            server.notify.status(&server.status());
        } else {
            tracing::error!(missing = missing.join(" "), "some parts do not respond");
            server
                .notify
                .status(&format!("no response from: {}", missing.join(", ")));
        }
    }
}

/// Three keep-alives in the service manager's timeout, so a late one does no harm.
fn pace(limit: Option<Duration>) -> Duration {
    limit.map_or(PACE, |limit| limit / 3)
}

async fn examine(server: &Server) {
    match (server.state.probe().await, server.vault.probe().await) {
        (Ok(()), Ok(())) => server.serving.heartbeat.beat(HeartbeatPart::Store),
        (Err(cause), _) => tracing::error!(%cause, "cannot read the state"),
        (_, Err(cause)) => tracing::error!(%cause, "cannot read the vault"),
    }
    if server.engine.answer(probe()).outcome.await.is_ok() {
        server.serving.heartbeat.beat(HeartbeatPart::Probe);
    }
}

/// A call like a client's.
fn probe() -> Call {
    Call {
        id: RequestId::Number(0),
        method: "server/discover".into(),
        params: Params::default(),
        context: CallContext::of(Principal::without_token("watchdog", Preset::Observe), None),
        inputs: None,
        held: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sign_of_life_may_be_late() {
        let minute = Duration::from_mins(1);
        assert!(2 * pace(Some(minute)) < minute);
        assert_eq!(pace(None), PACE);
    }
}
