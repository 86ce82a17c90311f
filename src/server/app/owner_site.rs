//! Builds the owner's pages: their stores, and the host on behalf of the owner.

use std::sync::Arc;

use crate::notify::NotificationSender;
use crate::owner::{OwnerHost, OwnerSite};
use gatewren_base::config::{LiveSettings, Reach};
use gatewren_base::sys::Requester;
use gatewren_gate::auth::Logins;
use gatewren_host::backends::{Backups, Host, Journal, Lxc};
use gatewren_host::helper_client::HelperClient;
use gatewren_host::observer::Observer;
use gatewren_host::sampler::UsageSampler;
use gatewren_store::state::State;
use gatewren_store::vault::Vault;

/// The owner's pages.
pub fn site(
    vault: &Vault,
    state: &State,
    live: &LiveSettings,
    host: OwnerHost,
    notification_sender: NotificationSender,
) -> OwnerSite {
    OwnerSite {
        vault: vault.clone(),
        state: state.clone(),
        live: live.clone(),
        logins: Arc::new(Logins::new(vault.clone(), live.clone())),
        host,
        notification_sender,
        samples: Arc::default(),
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
