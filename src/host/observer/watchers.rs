//! Creates, starts and stops the watchers together.

use std::future::Future;

use tokio::task::JoinSet;

use crate::backends::{Host, Lxc};
use gatewren_store::state::State;

use super::container_watch::ContainerWatch;
use super::handle::{ObserverHandle, ObserverHandleBuilder};
use super::host_watch::HostWatch;
use super::kept_parts::KeptParts;
use super::notices::NotificationWatch;
use super::unit_watch::UnitWatch;
use super::units::ObservedUnits;
use super::writer::WatcherOutput;

/// Watches the host and writes its state into the document.
#[derive(Debug)]
pub struct Observer {
    containers: ContainerWatch,
    host: HostWatch,
    units: UnitWatch,
    notices: NotificationWatch,
    kept: KeptParts,
    state: State,
    handle: ObserverHandle,
}

impl Observer {
    /// Creates an observer that has seen nothing yet.
    pub fn new(state: State, lxc: &Lxc, host: Host, units: ObservedUnits) -> Self {
        let mut nudges = ObserverHandleBuilder::default();
        let causes = nudges.causes();
        let kept = KeptParts::default();
        let writer = || WatcherOutput::new(state.clone(), causes.clone(), kept.clone());
        Self {
            containers: ContainerWatch::new(lxc, writer(), nudges.requests()),
            host: HostWatch::new(host, writer(), nudges.requests()),
            units: UnitWatch::new(units, writer(), nudges.requests()),
            notices: NotificationWatch::new(state.clone()),
            state: state.clone(),
            kept,
            handle: nudges.handle(state),
        }
    }

    /// Returns a handle to request looks.
    pub fn handle(&self) -> ObserverHandle {
        self.handle.clone()
    }

    /// Watches until `stop` is ready.
    pub async fn run(self, stop: impl Future<Output = ()>) {
        self.handle.set_waiting(false);
        let mut watchers = JoinSet::new();
        watchers.spawn(self.containers.run());
        watchers.spawn(self.host.run());
        watchers.spawn(self.units.run());
        watchers.spawn(self.notices.run());
        watchers.spawn(self.kept.keep(self.state));
        stop.await;
        watchers.shutdown().await;
    }
}
