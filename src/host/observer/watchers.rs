//! Creates, starts and stops the watchers together.

use std::future::Future;

use tokio::task::JoinSet;

use crate::backends::{Host, Lxc};
use gatewren_store::state::State;

use super::container_watch::ContainerWatch;
use super::handle::{Nudges, ObserverHandle};
use super::host_watch::HostWatch;
use super::notices::Notices;
use super::unit_watch::UnitWatch;
use super::units::Units;
use super::writer::Scribe;

/// Watches the host and writes its state into the document.
#[derive(Debug)]
pub struct Observer {
    containers: ContainerWatch,
    host: HostWatch,
    units: UnitWatch,
    notices: Notices,
    handle: ObserverHandle,
}

impl Observer {
    /// Creates an observer that has seen nothing yet.
    pub fn new(state: State, lxc: &Lxc, host: Host, units: Units) -> Self {
        let mut nudges = Nudges::default();
        let causes = nudges.causes();
        let scribe = || Scribe::new(state.clone(), causes.clone());
        Self {
            containers: ContainerWatch::new(lxc, scribe(), nudges.requests()),
            host: HostWatch::new(host, scribe(), nudges.requests()),
            units: UnitWatch::new(units, scribe(), nudges.requests()),
            notices: Notices::new(state.clone()),
            handle: nudges.handle(state),
        }
    }

    /// Returns a handle to request looks.
    pub fn handle(&self) -> ObserverHandle {
        self.handle.clone()
    }

    /// Watches until `stop` is ready.
    pub async fn run(self, stop: impl Future<Output = ()>) {
        let mut watchers = JoinSet::new();
        watchers.spawn(self.containers.run());
        watchers.spawn(self.host.run());
        watchers.spawn(self.units.run());
        watchers.spawn(self.notices.run());
        stop.await;
        watchers.shutdown().await;
    }
}
