//! Builds what reads and changes the host: the observer, the samples, the backends of the tools and the watches' probes.

use std::sync::Arc;

use tokio::sync::watch;

use super::catalog::Backends;
use gatewren_base::config::{LiveSettings, Settings};
use gatewren_gate::http::TlsServer;
use gatewren_host::backends::{
    Backups, Firmware, Host, HostConfiguration, HostFiles, Jobs, Journal, Lxc, MachineChanges,
    MachineLogins, Mail, Network, Power, Processes, Shell, Ssh, Storage, SystemBus, Systemd,
    SystemdUnits, Updates,
};
use gatewren_host::helper_client::HelperClient;
use gatewren_host::observer::{ObservedUnits, Observer};
use gatewren_host::sampler::UsageSampler;
use gatewren_store::history::UsageHistory;
use gatewren_store::state::State;
use gatewren_store::vault::Vault;
use gatewren_tools::notify::NotificationSender;
use gatewren_tools::watches::WatchProbes;

/// The observer, which keeps the state in sync with the host. Beside another front it waits until that one has ended.
pub fn observer(
    state: &State,
    systemd: &Systemd,
    helper: &HelperClient,
    live: &LiveSettings,
    is_first: bool,
) -> Observer {
    let (units, lxc) = (
        ObservedUnits::new(systemd, live.clone()),
        Lxc::new(helper.clone()),
    );
    let observer = Observer::new(state.clone(), &lxc, Host::new(helper.clone()), units);
    observer.handle().set_waiting(!is_first);
    observer
}

/// Takes the samples of the history.
pub fn sampler(settings: &Settings, helper: &HelperClient) -> UsageSampler {
    let history = UsageHistory::at(settings.state_dir.join("usage.db"));
    let host = Arc::new(Host::new(helper.clone()));
    UsageSampler::new(host, Lxc::new(helper.clone()), history)
}

/// The backends of the tools.
pub fn backends(
    systemd: Systemd,
    helper: HelperClient,
    live: LiveSettings,
    vault: Vault,
    stop: &watch::Sender<bool>,
) -> Backends {
    Backends {
        lxc: Lxc::new(helper.clone()),
        host: Host::new(helper.clone()),
        shell: Shell::new(helper.clone(), stop.subscribe()),
        jobs: Jobs::new(helper.clone(), stop.subscribe()),
        files: HostFiles::new(helper.clone()),
        ssh: Ssh::new(helper.clone()),
        network: Network::new(helper.clone(), SystemBus::new()),
        storage: Storage::new(helper.clone()),
        power: Power::new(helper.clone()),
        settings: HostConfiguration::new(helper.clone()),
        processes: Processes::new(helper.clone()),
        journal: Journal::new(helper.clone()),
        logins: MachineLogins::new(helper.clone()),
        machine_changes: MachineChanges::new(helper.clone()),
        units: SystemdUnits::new(systemd, helper.clone()),
        backups: Backups::new(helper.clone()),
        firmware: Firmware::new(helper.clone()),
        notification_sender: NotificationSender::new(live, Mail::new(helper.clone()), vault),
        updates: Updates::new(helper),
    }
}

/// What watches check.
pub fn watch_probes(
    backends: &Backends,
    helper: &HelperClient,
    state: &State,
    certificate: Option<Arc<TlsServer>>,
) -> WatchProbes {
    WatchProbes {
        state: state.clone(),
        lxc: backends.lxc.clone(),
        units: backends.units.clone(),
        network: backends.network.clone(),
        host: Host::new(helper.clone()),
        backups: backends.backups.clone(),
        storage: Storage::new(helper.clone()),
        certificate,
    }
}
