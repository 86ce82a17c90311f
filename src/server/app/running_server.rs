//! The running server and its background tasks.

use std::io;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::disk_notices::notify_of_disks;
use super::inbox_notices::notify_of_changes;
use super::names::{server_addresses, server_names};
use super::notice_logs::log_notifications;
use super::notifier::send_notifications;
use super::serving::ServeContext;
use super::token_warnings::warn_of_expiring_tokens;
use super::unguarded_agents::log_unguarded_agents;
use super::{audit, helper_capabilities, session_notices};
use crate::dispatch::Engine;
use crate::notify::NotificationSender;
use crate::watches::{WatchMonitor, WatchProbes};
use gatewren_base::config::{LiveSettingsSender, Settings, TlsMode, WorkerSettings};
use gatewren_base::sys::{DirectoryLock, KernelEvents, hold_few_program_pages, lock, rfc3339};
use gatewren_base::telemetry::SdNotify;
use gatewren_gate::auth::Agents;
use gatewren_gate::guard::AllowedHosts;
use gatewren_gate::http::{
    CertificateSubject, CertificateSubjects, InvalidCertificateSubject, TlsServer, TlsSource,
};
use gatewren_host::backends::{HelperCapabilities, Storage};
use gatewren_host::helper_client::HelperChild;
use gatewren_host::observer::Observer;
use gatewren_host::sampler::UsageSampler;
use gatewren_store::state::{Notifications, State};
use gatewren_store::vault::Vault;

/// How often the host's names and addresses are checked without a notification by the kernel.
const LOOK: Duration = Duration::from_mins(10);

/// The same if the kernel sends no notifications.
const LOOK_UNHINTED: Duration = Duration::from_secs(30);

/// The pause between two checks, so that simultaneous changes are handled together.
const SETTLE: Duration = Duration::from_secs(1);

/// How often the certificate is checked without a change, because it expires.
const RENEWAL: Duration = Duration::from_hours(12);

/// A running gatewren.
pub struct Server {
    /// The URL for clients; `stdio` if the only client is the one that started it.
    pub url: String,
    /// The settings in force.
    pub in_force: LiveSettingsSender,
    /// The file that a reload reads; `None` if the settings were not read from a file.
    pub(super) file: Option<PathBuf>,
    /// What the last reload has left for the owner to do.
    pub(super) note: Mutex<Option<String>>,
    /// The host as a document.
    pub state: State,
    /// Agents, keys, the audit, and other stored secrets.
    pub vault: Vault,
    /// Answers calls.
    pub engine: Arc<Engine>,
    /// Serves connections.
    pub serving: Arc<ServeContext>,
    /// The service manager.
    pub notify: Arc<SdNotify>,
    /// Set to true to stop.
    pub stop: watch::Sender<bool>,
    /// The helper's capabilities.
    pub(super) bounds: HelperCapabilities,
    pub(super) notification_sender: NotificationSender,
    /// What watches check.
    pub(super) probes: Arc<WatchProbes>,
    pub(super) _lock: DirectoryLock,
    pub(super) observer: Mutex<Option<Observer>>,
    pub(super) sampler: Mutex<Option<UsageSampler>>,
    pub(super) helper: Mutex<Option<HelperChild>>,
}

impl Server {
    /// Starts the background tasks, without those that the owner has switched off.
    pub fn start_workers(&self, workers: &mut JoinSet<()>) {
        let on = if self.engine.catalog.is_demo {
            WorkerSettings::NONE
        } else {
            self.in_force.now().workers
        };
        self.start_observer(workers, on.observer);
        if on.sweeper {
            let engine = self.engine.clone();
            workers.spawn(async move { engine.sweep_tasks().await });
            workers.spawn(audit::keep(self.vault.clone(), self.in_force.live()));
        }
        workers.spawn(self.engine.clone().run_approved());
        if on.jobs {
            workers.spawn(self.engine.clone().run_schedules());
            self.start_watches(workers);
        }
        workers.spawn(hold_few_program_pages());
        if on.notifier {
            self.start_notifier(workers);
        }
        log_unguarded_agents(&self.vault, &self.in_force.now().spaces);
        let off = on.switched_off().join(" ");
        if !off.is_empty() {
            tracing::info!(off, "background work is switched off");
        }
        if let Some(messages) = self.engine.catalog.session_message_sender() {
            workers.spawn(log_notifications(self.state.clone(), messages.clone()));
            let endpoint = self.serving.front.endpoint.clone();
            match session_notices::listen(&self.in_force.now().state_dir) {
                Ok(socket) => {
                    workers.spawn(session_notices::serve(socket, messages, endpoint));
                }
                Err(cause) => tracing::warn!(%cause, "gatewren session notify will not work"),
            }
        }
        workers.spawn(helper_capabilities::announce(
            self.engine.clone(),
            self.vault.clone(),
            self.bounds.clone(),
        ));
    }

    /// Starts the observer and the sampler. While they are off they are dropped: no caller waits for their looks.
    fn start_observer(&self, workers: &mut JoinSet<()>, is_on: bool) {
        let (observer, sampler) = (lock(&self.observer).take(), lock(&self.sampler).take());
        if let Some(observer) = observer.filter(|_| is_on) {
            let mut stop = self.stop.subscribe();
            workers.spawn(observer.run(async move {
                let _ = stop.wait_for(|stop| *stop).await;
            }));
        }
        if let Some(sampler) = sampler.filter(|_| is_on) {
            if let Some(site) = &self.serving.front.site {
                workers.spawn(site.keep_samples(sampler.readings()));
            }
            workers.spawn(sampler.run());
        }
    }

    /// Starts what notifies the owner.
    fn start_notifier(&self, workers: &mut JoinSet<()>) {
        workers.spawn(notify_of_changes(self.vault.clone(), self.state.clone()));
        workers.spawn(warn_of_expiring_tokens(
            self.vault.clone(),
            self.state.clone(),
        ));
        if Storage::has_health() {
            workers.spawn(notify_of_disks(
                self.probes.storage.clone(),
                self.state.clone(),
            ));
        }
        workers.spawn(send_notifications(
            self.vault.clone(),
            self.state.clone(),
            self.in_force.live(),
            self.notification_sender.clone(),
        ));
    }

    /// Starts the checks of the agents' watches.
    fn start_watches(&self, workers: &mut JoinSet<()>) {
        let agents = match Agents::new(self.vault.clone(), self.in_force.live()) {
            Ok(agents) => agents,
            Err(cause) => {
                tracing::error!(%cause, "cannot read the agents; watches are not checked");
                return;
            }
        };
        let monitor = WatchMonitor {
            vault: self.vault.clone(),
            agents,
            probes: self.probes.clone(),
            notifications: Notifications::new(self.state.clone()),
        };
        workers.spawn(monitor.run());
    }

    /// Updates the host's names and addresses, and loads the certificate that fits them.
    pub fn refresh(&self) {
        let settings = self.in_force.now();
        self.answer_to(&settings);
        let Some(tls) = &self.serving.tls else { return };
        let renewed = certificate(&settings)
            .map_err(|error| error.to_string())
            .and_then(|source| tls.reload_from(source).map_err(|error| error.to_string()));
        match renewed {
            Ok(()) => {
                self.answer_to(&settings);
                let certificate = certificate_words(tls);
                tracing::info!(certificate, "the certificate is in use");
            }
            Err(cause) => {
                tracing::error!(
                    cause,
                    "the certificate was not renewed; the old one stays in use"
                );
            }
        }
    }

    /// Applies the hosts and origins of these settings, and the names of a certificate of the owner's: by
    /// installing it, the owner declared them to be this host's names.
    pub(super) fn answer_to(&self, settings: &Settings) {
        let mut hosts = hosts(settings);
        let given = self.serving.tls.iter();
        let given = given.filter(|_| settings.tls.mode == TlsMode::Files);
        for subject in given.flat_map(|tls| tls.subjects()) {
            match subject {
                CertificateSubject::Name(name) => hosts.names.push(name),
                CertificateSubject::Address(address) => hosts.addresses.push(address),
            }
        }
        self.serving.front.guard.set_hosts(hosts);
    }

    /// Stops the helper that this server started, if any, with everything that it runs.
    pub async fn close_helper(&self) {
        let helper = lock(&self.helper).take();
        if let Some(helper) = helper {
            helper.stop().await;
        }
    }
}

/// The names in the certificate and when it expires.
pub fn certificate_words(tls: &TlsServer) -> String {
    let subjects: Vec<String> = tls.subjects().iter().map(ToString::to_string).collect();
    let expires_ms = u64::try_from(tls.expires())
        .unwrap_or(0)
        .saturating_mul(1_000);
    format!("{} until {}", subjects.join(" "), rfc3339(expires_ms))
}

/// Keeps names, addresses and certificate up to date, while it runs.
pub async fn follow(server: Arc<Server>) {
    let hints = Hinted::new();
    let known = || {
        let settings = server.in_force.now();
        (server_names(&settings.names), server_addresses())
    };
    let mut before = known();
    let mut looked = Instant::now();
    loop {
        hints.next().await;
        let now = known();
        if now != before || looked.elapsed() >= RENEWAL {
            tracing::info!(
                "this host's names or addresses have changed, or a check of the certificate is due"
            );
            (before, looked) = (now, Instant::now());
            server.refresh();
        }
    }
}

/// Notifications that names or addresses may have changed; without them, a timer is used.
struct Hinted {
    network: Option<KernelEvents>,
    name: Option<KernelEvents>,
}

impl Hinted {
    fn new() -> Self {
        let name = KernelEvents::changes_of(Path::new("/proc/sys/kernel/hostname"));
        Self {
            network: usable(KernelEvents::network()),
            name: usable(name),
        }
    }

    /// Waits for the next check. Even with many changes, checks are at least a second apart.
    async fn next(&self) {
        tokio::time::sleep(SETTLE).await;
        let hinted = self.network.is_some() && self.name.is_some();
        let look = if hinted { LOOK } else { LOOK_UNHINTED };
        tokio::select! {
            () = wait_for_event(self.network.as_ref()) => {}
            () = wait_for_event(self.name.as_ref()) => {}
            () = tokio::time::sleep(look) => {}
        }
    }
}

fn usable(hints: io::Result<KernelEvents>) -> Option<KernelEvents> {
    let warn = |cause: &_| tracing::warn!(%cause, "changes of names or addresses are noticed late");
    hints.inspect_err(warn).ok()
}

async fn wait_for_event(hints: Option<&KernelEvents>) {
    let next = match hints {
        Some(hints) => hints.next().await.is_ok(),
        None => false,
    };
    if !next {
        std::future::pending::<()>().await;
    }
}

/// The source of the certificate, and the names that it must have now.
pub fn certificate(settings: &Settings) -> Result<TlsSource, InvalidCertificateSubject> {
    if let (TlsMode::Files, Some(cert), Some(key)) = (
        settings.tls.mode,
        settings.tls.cert.clone(),
        settings.tls.key.clone(),
    ) {
        return Ok(TlsSource::Files { cert, key });
    }
    let asked: Result<Vec<CertificateSubject>, _> =
        settings.names.iter().map(|name| name.parse()).collect();
    let names = server_names(&[])
        .into_iter()
        .filter_map(|name| name.parse().ok());
    let found = names
        .chain(
            server_addresses()
                .into_iter()
                .map(CertificateSubject::Address),
        )
        .collect();
    Ok(TlsSource::Own {
        directory: settings.state_dir.join("tls"),
        subjects: CertificateSubjects {
            asked: asked?,
            found,
        },
    })
}

/// The hosts and origins that are allowed now.
pub fn hosts(settings: &Settings) -> AllowedHosts {
    let mut names = server_names(&settings.names);
    let mut addresses = server_addresses();
    names.extend_from_slice(&settings.access.allowed_hosts);
    // An address of a router that forwards a port to this host is no address of its interfaces.
    let parsed = names.iter().filter_map(|name| name.parse::<IpAddr>().ok());
    addresses.extend(parsed.map(|address| address.to_canonical()));
    AllowedHosts {
        names,
        addresses,
        origins: settings.access.allowed_origins.clone(),
    }
}
