//! Builds the owner's pages: their stores, and the host on behalf of the owner.

use std::sync::Arc;

use gatewren_base::config::{LiveSettings, Reach};
use gatewren_base::sys::Requester;
use gatewren_gate::auth::Logins;
use gatewren_host::backends::{Backups, Host, Journal, Lxc};
use gatewren_host::helper_client::HelperClient;
use gatewren_host::observer::Observer;
use gatewren_host::sampler::UsageSampler;
use gatewren_owner::{OwnerHost, OwnerSite, SampleHistory, Samples};
use gatewren_store::state::{State, StateLogReader};
use gatewren_store::vault::{AuditReaders, Vault};
use gatewren_tools::notify::NotificationSender;

/// What the owner's pages use beside the databases.
pub struct OwnerParts {
    host: OwnerHost,
    notification_sender: NotificationSender,
    history: Option<SampleHistory>,
}

impl OwnerParts {
    /// What the owner may do to the host, where a test notification goes, and the samples of a demo if it is one.
    pub fn new(
        host: OwnerHost,
        notification_sender: &NotificationSender,
        history: Option<SampleHistory>,
    ) -> Self {
        Self {
            host,
            notification_sender: notification_sender.clone(),
            history,
        }
    }
}

/// The owner's pages.
pub fn site(vault: &Vault, state: &State, live: &LiveSettings, parts: OwnerParts) -> OwnerSite {
    OwnerSite {
        is_demo: parts.history.is_some(),
        vault: vault.clone(),
        audit: Arc::new(AuditReaders::of(vault)),
        state: state.clone(),
        state_log: StateLogReader::beside(state),
        live: live.clone(),
        logins: Arc::new(Logins::new(vault.clone(), live.clone())),
        host: parts.host,
        notification_sender: parts.notification_sender,
        samples: Arc::new(Samples::begin(parts.history.unwrap_or_default())),
        readers: Arc::default(),
    }
}

/// The host as the owner's pages show and change it.
pub fn owner_host(helper: &HelperClient, observer: &Observer, sampler: &UsageSampler) -> OwnerHost {
    const REFERENCE: &str = "the owner's page";
    let (helper, reach) = (helper.on_behalf_of(Requester::Owner), Reach::everything());
    OwnerHost {
        host: Arc::new(Host::new(helper.clone())),
        lxc: Lxc::new(helper.clone()).view_for(&reach, REFERENCE),
        backups: Backups::new(helper.clone()).view_for(&reach, REFERENCE),
        journal: Journal::new(helper).view_for(&reach, REFERENCE),
        history: sampler.history(),
        observer: observer.handle(),
    }
}
