//! The running server and its background tasks.

use std::io;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;

use super::directory::ServerLocks;
use super::names::{server_addresses, server_names};
use super::serving::ServeContext;
use crate::dispatch::Engine;
use gatewren_base::config::{LiveSettingsSender, Settings, TlsMode};
use gatewren_base::sys::{KernelEvents, lock, rfc3339};
use gatewren_base::telemetry::SdNotify;
use gatewren_gate::guard::AllowedHosts;
use gatewren_gate::http::{
    CertificateSubject, CertificateSubjects, InvalidCertificateSubject, TlsServer, TlsSource,
};
use gatewren_host::backends::HelperCapabilities;
use gatewren_host::helper_client::HelperChild;
use gatewren_host::observer::Observer;
use gatewren_host::sampler::UsageSampler;
use gatewren_store::state::State;
use gatewren_store::vault::Vault;
use gatewren_tools::notify::NotificationSender;
use gatewren_tools::watches::WatchProbes;

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
    /// The name of this front from its command line.
    pub(super) instance: Option<String>,
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
    pub(super) locks: ServerLocks,
    pub(super) observer: Mutex<Option<Observer>>,
    pub(super) sampler: Mutex<Option<UsageSampler>>,
    pub(super) helper: Mutex<Option<HelperChild>>,
}

impl Server {
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

/// The vault's file, for those who read the audit beside the vault.
pub(super) fn vault_file(settings: &Settings) -> PathBuf {
    settings.state_dir.join("vault.db")
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
