//! The host as the owner's pages show and change it.

use std::sync::Arc;

use gatewren_host::backends::{BackupsView, Host, JournalView, LxcView};
use gatewren_host::observer::ObserverHandle;
use gatewren_store::history::UsageHistory;

/// The host, its containers, and their usage. The views reach everything, on behalf of the owner.
pub struct OwnerHost {
    /// The host, for the samples.
    pub host: Arc<Host>,
    /// The containers.
    pub lxc: LxcView,
    /// The backups.
    pub backups: BackupsView,
    /// The journals.
    pub journal: JournalView,
    /// The usage of the host and its containers over time.
    pub history: UsageHistory,
    /// Writes into the state what an action of the owner has changed.
    pub observer: ObserverHandle,
}
