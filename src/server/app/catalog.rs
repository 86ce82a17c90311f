//! The catalog of this host: one table of tools and resources over their backends and stores.

use std::sync::Arc;

use super::identity::identity;
use super::open_changes::OpenChangeCounts;
use super::own_logins::{changing_calls, own_logins};
use super::switched_off::{add_to_instructions, refused_tools};
use crate::dispatch::{ChangeResources, OpenSessionTable, ScheduleResources, session_tools};
use crate::dispatch::{change_tools, schedule_tools};
use gatewren_base::config::LiveSettings;
use gatewren_host::backends::{
    Backups, DiskReports, Firmware, HelperCapabilities, Host, HostConfiguration, HostFiles, Jobs,
    Journal, Lxc, MachineChanges, MachineLogins, Network, Power, Processes, Shell, Ssh, Storage,
    Systemd, SystemdUnits, Updates,
};
use gatewren_host::observer::ObserverHandle;
use gatewren_store::history::UsageHistory;
use gatewren_store::state::{Notifications, State, StateViews, Ui};
use gatewren_store::vault::Vault;
use gatewren_tools::notify::NotificationSender;
use gatewren_tools::toolsets::{
    self, AccessSources, AgentLimits, ChangeSources, DiagnosisSources, HistoryResources,
    HistorySources, LoginSources, OutputResources, StateResources,
};
use gatewren_tools::watches::{WatchProbes, WatchResources, WatchTools, tools as watch_tools};
use gatewren_wire::registry::{
    Catalog, CatalogError, CombinedResources, Dialect, LogOffer, ResourceSource,
};

/// The server's instructions, which a client gives to its model first.
const INSTRUCTIONS: &str = include_str!("../../../etc/instructions.md");

/// The backends of the tools.
pub struct Backends {
    /// LXC's containers.
    pub lxc: Lxc,
    /// The host.
    pub host: Host,
    /// Commands.
    pub shell: Shell,
    /// Commands that continue after their call.
    pub jobs: Jobs,
    /// The host's files.
    pub files: HostFiles,
    /// SSH keys.
    pub ssh: Ssh,
    /// The network around the host.
    pub network: Network,
    /// The host's storage.
    pub storage: Storage,
    /// Restarts and shutdowns.
    pub power: Power,
    /// The host's name, time and other settings.
    pub settings: HostConfiguration,
    /// Upgrades by apt.
    pub updates: Updates,
    /// Firmware updates by fwupd.
    pub firmware: Firmware,
    /// Backups of containers and directories.
    pub backups: Backups,
    /// Running processes.
    pub processes: Processes,
    /// The journal.
    pub journal: Journal,
    /// Who logged in.
    pub logins: MachineLogins,
    /// Packages and files that changed.
    pub machine_changes: MachineChanges,
    /// systemd's units.
    pub units: SystemdUnits,
    /// The owner's notification channels.
    pub notification_sender: NotificationSender,
}

/// What the catalog uses in addition to the backends.
pub struct CatalogSources<'a> {
    /// The host as a document.
    pub state: &'a State,
    /// Agents, changes and the audit.
    pub vault: &'a Vault,
    /// The open sessions.
    pub sessions: Arc<OpenSessionTable>,
    /// Waits until the state shows a change.
    pub observer: ObserverHandle,
    /// The helper's capabilities.
    pub bounds: HelperCapabilities,
    /// The settings.
    pub live: LiveSettings,
    /// The usage of the host and its containers over time.
    pub history: UsageHistory,
    /// What watches check.
    pub probes: Arc<WatchProbes>,
}

/// Which rows of the tables become tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolSelection {
    /// Those that this machine has the programs and hardware for.
    OfThisMachine,
    /// All of them.
    All,
}

impl ToolSelection {
    /// Whether to include rows that need something; `found` is whether this machine has it.
    fn have(self, found: bool) -> bool {
        found || self == Self::All
    }
}

/// Adds the tools that notify the owner; they exist while there is a channel that agents may use.
fn add_channels(
    catalog: &mut Catalog,
    notification_sender: NotificationSender,
    rows: ToolSelection,
) -> Result<(), CatalogError> {
    let asked = notification_sender.clone();
    let set = toolsets::notify(Arc::new(notification_sender));
    catalog.add(set.available_while(Arc::new(move || rows.have(asked.is_open_to_agents()))))
}

/// Adds the tools for those settings of the host that exist here.
fn add_settings(
    catalog: &mut Catalog,
    settings: Arc<HostConfiguration>,
    rows: ToolSelection,
) -> Result<(), CatalogError> {
    if rows.have(Systemd::runs_here()) {
        catalog.add(toolsets::settings(settings.clone()))?;
    }
    if rows.have(HostConfiguration::have_keyboards()) {
        catalog.add(toolsets::keyboard_tools(settings.clone()))?;
    }
    if rows.have(HostConfiguration::have_governors()) {
        catalog.add(toolsets::governor_tools(settings.clone()))?;
    }
    if rows.have(HostConfiguration::have_zram()) {
        catalog.add(toolsets::zram_tools(settings))?;
    }
    Ok(())
}

/// Everything that clients may use on this host.
pub fn catalog(
    sources: CatalogSources<'_>,
    backends: Backends,
    dialect: Dialect,
) -> Result<Catalog, CatalogError> {
    catalog_of(sources, backends, ToolSelection::OfThisMachine, dialect)
}

/// The same for the given rows.
pub fn catalog_of(
    sources: CatalogSources<'_>,
    backends: Backends,
    rows: ToolSelection,
    dialect: Dialect,
) -> Result<Catalog, CatalogError> {
    let mut catalog = Catalog::new(identity());
    let workers = sources.live.read(|settings| settings.workers);
    let told = add_to_instructions(INSTRUCTIONS, workers);
    catalog.instructions = Some(told.clone());
    catalog.dialect = dialect;
    let views = StateViews::new(sources.state.clone());
    catalog.add(toolsets::access(Arc::new(access_sources(&sources))))?;
    add_channels(&mut catalog, backends.notification_sender.clone(), rows)?;
    let outputs = backends.shell.outputs().clone();
    add_container_names(&mut catalog, backends.lxc.clone());
    add_records(&mut catalog, &sources, &backends, &views)?;
    add_host(&mut catalog, backends, rows, &sources)?;
    add_stores(&mut catalog, &sources, &views)?;
    for prompt in toolsets::prompts() {
        catalog.add_prompt(prompt);
    }
    let completed = views.clone();
    catalog.set_completer(Box::new(move |viewer, asked| {
        toolsets::complete(&completed, viewer, asked)
    }));
    let resources = StateResources::new(views, told, dialect);
    let resources = CombinedResources::new(Arc::new(resources), OutputResources(outputs));
    let history = HistoryResources(sources.history.clone());
    let resources = CombinedResources::new(Arc::new(resources), history);
    let changes = ChangeResources(sources.vault.clone());
    let resources = CombinedResources::new(Arc::new(resources), changes);
    let schedules = ScheduleResources(sources.vault.clone());
    let resources = CombinedResources::new(Arc::new(resources), schedules);
    let watches = WatchResources(sources.vault.clone());
    let resources = CombinedResources::new(Arc::new(resources), watches);
    let resources: Arc<dyn ResourceSource> = Arc::new(resources);
    catalog.add(toolsets::library(resources.clone()))?;
    catalog.add(toolsets::proposals())?;
    catalog.require_portable_names()?;
    catalog.offer_tool_changes();
    catalog.offer_logging(LogOffer::Sessions);
    let _ = catalog.message_sessions();
    let (bounds, observer) = (sources.bounds, sources.observer);
    catalog.bound_by(Box::new(move |class| bounds.allows(class)));
    catalog.set_resources(resources);
    if workers.observer {
        catalog.set_settle(Box::new(move |audit_id| {
            Box::pin(observer.begin(audit_id).wait_for_revision())
        }));
    }
    Ok(catalog)
}

/// Adds the tools that read records of the host, its containers and this server.
fn add_records(
    catalog: &mut Catalog,
    sources: &CatalogSources<'_>,
    backends: &Backends,
    views: &StateViews,
) -> Result<(), CatalogError> {
    let logins = Arc::new(LoginSources {
        logins: backends.logins.clone(),
        own: own_logins(sources.vault.clone()),
    });
    catalog.add(toolsets::logins(logins.clone()))?;
    catalog.add(toolsets::changes(Arc::new(ChangeSources {
        views: views.clone(),
        machine: backends.machine_changes.clone(),
        logins,
        calls: changing_calls(sources.vault.clone()),
    })))
}

/// What `whoami` reads.
fn access_sources(sources: &CatalogSources<'_>) -> AccessSources {
    let counts = OpenChangeCounts::new(sources.vault.clone());
    let live = sources.live.clone();
    AccessSources {
        bounds: sources.bounds.clone(),
        limits: Box::new(move || {
            live.read(|settings| AgentLimits {
                calls_per_minute: settings.limits.agent_rate,
                concurrent_calls: settings.limits.agent_calls,
                open_changes: settings.inbox.per_agent,
            })
        }),
        open_changes: Box::new(move |agent| counts.of(agent)),
    }
}

/// Lets calls name containers that the state does not have yet.
fn add_container_names(catalog: &mut Catalog, lxc: Lxc) {
    catalog.set_containers(Box::new(move |reach, reference| {
        let lxc = lxc.view_for(reach, reference);
        Box::pin(async move {
            let listed = lxc.list().await.unwrap_or_default();
            listed.iter().map(ToString::to_string).collect()
        })
    }));
}

/// Adds the tools that use the host.
fn add_host(
    catalog: &mut Catalog,
    on: Backends,
    rows: ToolSelection,
    sources: &CatalogSources<'_>,
) -> Result<(), CatalogError> {
    let host = Arc::new(on.host);
    let processes = Arc::new(on.processes);
    let journal = Arc::new(on.journal);
    let lxc = Arc::new(on.lxc);
    add_usage(
        catalog,
        DiagnosisSources {
            lxc: lxc.clone(),
            host: host.clone(),
            processes: processes.clone(),
            journal: journal.clone(),
            history: sources.history.clone(),
        },
        &refused_tools(sources.live.read(|settings| settings.workers)),
    )?;
    catalog.add(toolsets::server(host.clone()))?;
    catalog.add(toolsets::processes(processes))?;
    catalog.add(toolsets::network(host.clone()))?;
    let reports = DiskReports::new(host.clone(), &on.storage);
    catalog.add(toolsets::disk_space(Arc::new(reports)))?;
    catalog.add(toolsets::disks(host))?;
    add_hardware(catalog, on.network, on.storage, rows)?;
    catalog.add(toolsets::ssh(Arc::new(on.ssh)))?;
    catalog.add(toolsets::files(Arc::new(on.files)))?;
    add_containers(catalog, lxc, journal.clone())?;
    catalog.add(toolsets::shell(Arc::new(on.shell)))?;
    catalog.add(toolsets::jobs(Arc::new(on.jobs)))?;
    // Also on a host without systemd: its containers may run it.
    catalog.add(toolsets::units(Arc::new(on.units)))?;
    if rows.have(Systemd::runs_here()) {
        catalog.add(toolsets::power(Arc::new(on.power)))?;
    }
    add_settings(catalog, Arc::new(on.settings), rows)?;
    catalog.add(toolsets::kernel_logs(journal.clone()))?;
    if rows.have(Journal::is_available()) {
        catalog.add(toolsets::logs(journal))?;
    }
    if rows.have(Updates::are_here()) {
        catalog.add(toolsets::updates(Arc::new(on.updates)))?;
    }
    if rows.have(Firmware::is_available()) {
        catalog.add(toolsets::firmware(Arc::new(on.firmware)))?;
    }
    if rows.have(Backups::are_here()) {
        catalog.add(toolsets::backups(Arc::new(on.backups)))?;
    }
    Ok(())
}

/// Adds the tools about usage over time.
fn add_usage(
    catalog: &mut Catalog,
    sources: DiagnosisSources,
    refused: &[(&str, &'static str)],
) -> Result<(), CatalogError> {
    let history = Arc::new(HistorySources {
        lxc: sources.lxc.clone(),
        history: sources.history.clone(),
    });
    catalog.add(toolsets::server_history(history.clone()).refusing(refused))?;
    catalog.add(toolsets::container_history(history).refusing(refused))?;
    catalog.add(toolsets::container_diagnosis(Arc::new(sources)))
}

fn add_containers(
    catalog: &mut Catalog,
    lxc: Arc<Lxc>,
    journal: Arc<Journal>,
) -> Result<(), CatalogError> {
    catalog.add(toolsets::containers(lxc.clone()))?;
    catalog.add(toolsets::container_settings(lxc.clone()))?;
    catalog.add(toolsets::stacks(lxc.clone()))?;
    catalog.add(toolsets::container_copies(lxc.clone()))?;
    catalog.add(toolsets::container_moves(lxc.clone()))?;
    catalog.add(toolsets::container_files(lxc.clone()))?;
    catalog.add(toolsets::container_logs(lxc, journal))
}

/// Adds the tools for programs and hardware that a host may lack.
fn add_hardware(
    catalog: &mut Catalog,
    network: Network,
    storage: Storage,
    rows: ToolSelection,
) -> Result<(), CatalogError> {
    let (network, storage) = (Arc::new(network), Arc::new(storage));
    let with_firewall = rows.have(Network::has_firewall());
    catalog.add(toolsets::probes(network.clone(), with_firewall))?;
    if rows.have(Network::has_tunnels()) {
        catalog.add(toolsets::tunnels(network.clone()))?;
    }
    if rows.have(Network::has_wifi()) {
        catalog.add(toolsets::wifi(network.clone()))?;
    }
    if rows.have(Network::has_country()) {
        catalog.add(toolsets::wifi_country(network))?;
    }
    if rows.have(Storage::has_repair()) {
        catalog.add(toolsets::repairs(storage.clone()))?;
    }
    catalog.add(toolsets::storage(storage, rows.have(Storage::has_health())))
}

/// Adds the tools that use this server's own stores.
fn add_stores(
    catalog: &mut Catalog,
    sources: &CatalogSources<'_>,
    views: &StateViews,
) -> Result<(), CatalogError> {
    catalog.add(toolsets::state(Arc::new(views.clone())))?;
    let ui = Ui::new(sources.state.clone());
    catalog.add(toolsets::state_put(Arc::new(ui)))?;
    let notifications = Notifications::new(sources.state.clone());
    catalog.add(toolsets::notifications(Arc::new(notifications)))?;
    catalog.add(change_tools(Arc::new(sources.vault.clone())))?;
    let refused = refused_tools(sources.live.read(|settings| settings.workers));
    let schedules = schedule_tools(Arc::new(sources.vault.clone()));
    catalog.add(schedules.refusing(&refused))?;
    let watching = watch_tools(Arc::new(WatchTools {
        vault: sources.vault.clone(),
        live: sources.live.clone(),
        probes: sources.probes.clone(),
    }));
    catalog.add(watching.refusing(&refused))?;
    catalog.add(session_tools(sources.sessions.clone()))
}
