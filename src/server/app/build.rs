//! Builds the server: the only module that uses all others.

use std::fmt;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use tokio::sync::watch;

use super::background_work::end_abandoned_work;
use super::build_error::BuildError;
use super::catalog::{Backends, CatalogSources, catalog};
use super::connect::GuardedOAuth;
use super::demo;
use super::directory;
use super::front::Front;
use super::helper_capabilities::offered_tools;
use super::helper_plan::{HelperPlan, start_helper};
use super::host_parts::{backends, observer, sampler, watch_probes};
use super::limits::{inbox_limits, retention, task_limits};
use super::owner_site::{OwnerParts, owner_host, site};
use super::pair::PairingEndpoint;
use super::running_server::{Server, certificate, hosts, vault_file};
use super::scrape::MetricsScrape;
use super::serving::ServeContext;
use super::switched_off;
use crate::dispatch::{Engine, Inbox, OwnerPageAddress};
use crate::transport::{Endpoint, HttpSse, SessionStore, Sessions};
use gatewren_base::config::{LiveSettings, LiveSettingsSender, Settings};
use gatewren_base::sys::Requester;
use gatewren_base::telemetry::{Heartbeat, SdNotify};
use gatewren_gate::auth::{Agents, Links, Logins, Scrapers};
use gatewren_gate::guard::{Authenticator, Callers, EdgeCheck, Guard, RequiredHeader};
use gatewren_gate::http::TlsServer;
use gatewren_gate::oauth::AuthorizationServer;
use gatewren_gate::owner_actions::reached_at;
use gatewren_host::backends::{HelperCapabilities, Jobs, SystemBus, Systemd};
use gatewren_host::helper_client::{AuditHead, HelperClient};
use gatewren_owner::{OwnerSite, SampleHistory};
use gatewren_store::state::{State, StateError};
use gatewren_store::vault::{STATE_AUTHOR_KEY, Vault, VaultError, hex};
use gatewren_wire::registry::Catalog;

/// What to build.
#[derive(Debug, Clone)]
pub struct ServerPlan {
    /// All settings.
    pub settings: Settings,
    /// The file that they were read from, and that SIGHUP reads again; `None` without a file.
    pub file: Option<PathBuf>,
    /// Where the helper is.
    pub helper: HelperPlan,
    /// The bound address that clients use; `None` for the one client on standard input and output.
    pub address: Option<SocketAddr>,
    /// The name of this front from its command line, instead of the one in the settings.
    pub instance: Option<String>,
}

/// Builds a server: its stores, its certificate, its helper, the backends and tools, and its guard.
pub async fn build(plan: ServerPlan) -> Result<Server, BuildError> {
    let in_force = LiveSettingsSender::new(named(plan.settings, plan.instance.as_deref()));
    let (settings, live, address) = (in_force.now(), in_force.live(), plan.address);
    let (is_demo, stop) = (plan.helper.is_demo(), watch::Sender::new(false));
    let locks = directory::take(&settings, address, is_demo)?;
    let (child, helper) = start_helper(&plan.helper, &settings)?;
    let bounds = follow_capabilities(&helper, &stop);
    let is_first = locks.workers.is_held();
    let (vault, state, history) = stores(&settings, &helper, is_first, is_demo).await?;
    let tls = address.map(|_| load_tls(&settings)).transpose()?;
    let systemd = Systemd::new(SystemBus::new());
    let observing = helper.on_behalf_of(Requester::Observer);
    let observer = observer(&state, &systemd, &observing, &live, is_first);
    let sampler = sampler(&settings, &observing);
    let jobs = Jobs::new(observing.clone(), stop.subscribe());
    let scrape = MetricsScrape::new(&vault, &state, jobs, tls.clone(), vault_file(&settings));
    let host = owner_host(&helper, &observer, &sampler);
    let backends = backends(systemd, helper, live.clone(), vault.clone(), &stop);
    let probes = Arc::new(watch_probes(&backends, &observing, &state, tls.clone()));
    let notification_sender = backends.notification_sender.clone();
    let parts = OwnerParts::new(host, &notification_sender, history);
    let site = site(&vault, &state, &live, parts);
    let (guard, sessions) = admission(&vault, &state, &live, site.logins.clone()).await?;
    let sources = CatalogSources {
        state: &state,
        vault: &vault,
        sessions: sessions.clone(),
        observer: observer.handle(),
        bounds: bounds.clone(),
        live: live.clone(),
        history: sampler.history(),
        probes: probes.clone(),
    };
    let catalog = tools(sources, backends, &settings, is_demo).await?;
    let engine = engine(catalog, &vault, &guard, &settings, &stop).await?;
    let engine = Arc::new(engine.with_inbox(inbox(&vault, &state, &live, address)?));
    let endpoint = Endpoint::new(engine.clone(), guard, sessions, live.clone());
    let server = Server {
        url: address.map_or_else(|| "stdio".to_owned(), |a| format!("https://{a}/mcp")),
        in_force,
        file: plan.file,
        instance: plan.instance,
        note: Mutex::default(),
        state,
        vault,
        engine,
        serving: Arc::new(serve_context(endpoint, tls, live, Some(site), Some(scrape))),
        notify: Arc::new(SdNotify::from_env()),
        stop,
        bounds,
        notification_sender,
        probes,
        locks,
        observer: Mutex::new(Some(observer)),
        sampler: Mutex::new(Some(sampler)),
        helper: Mutex::new(child),
    };
    server.adopt(&settings);
    Ok(server)
}

/// The tools and resources of this server, once the helper has answered.
async fn tools(
    sources: CatalogSources<'_>,
    backends: Backends,
    settings: &Settings,
    is_demo: bool,
) -> Result<Catalog, BuildError> {
    let bounds = sources.bounds.clone();
    let catalog = catalog(sources, backends, settings.tools.dialect).map_err(failed)?;
    bounds.wait_for_answer().await;
    Ok(demo::marked(catalog, is_demo))
}

/// The settings with the name of this front from its command line.
pub(super) fn named(mut settings: Settings, instance: Option<&str>) -> Settings {
    if let Some(name) = instance {
        name.clone_into(&mut settings.sessions.instance);
    }
    settings
}

/// Where the owner's page is, by the settings in force.
fn owner_page(live: &LiveSettings) -> Box<OwnerPageAddress> {
    let live = live.clone();
    Box::new(move || format!("https://{}", live.read(reached_at)))
}

/// The inbox with the proposals.
fn inbox(
    vault: &Vault,
    state: &State,
    live: &LiveSettings,
    address: Option<SocketAddr>,
) -> Result<Inbox, BuildError> {
    let agents = Agents::new(vault.clone(), live.clone()).map_err(failed)?;
    let limits = live.read(|settings| inbox_limits(&settings.inbox));
    let inbox = Inbox::new(agents, state.clone(), limits);
    // A server on standard input and output has no page.
    Ok(inbox.with_owner_page(address.map(|_| owner_page(live))))
}

/// Builds the engine.
async fn engine(
    catalog: Catalog,
    vault: &Vault,
    guard: &Arc<Guard>,
    settings: &Settings,
    stop: &watch::Sender<bool>,
) -> Result<Engine, BuildError> {
    vault
        .offer()
        .keep(&offered_tools(&catalog))
        .await
        .map_err(failed)?;
    let key = vault.key("request-state").await.map_err(failed)?;
    let limits = task_limits(&settings.tasks);
    let vault = Some(vault.clone());
    let engine = Engine::new(catalog, vault, &key, stop.subscribe(), limits);
    engine.name_tasks(&settings.sessions.instance);
    let guard = guard.clone();
    Ok(engine.with_principal_updates(Arc::new(move |who| {
        let guard = guard.clone();
        Box::pin(async move { guard.wait_for_change(&who).await.ok() })
    })))
}

/// The helper's capabilities, updated until the server stops.
fn follow_capabilities(helper: &HelperClient, stop: &watch::Sender<bool>) -> HelperCapabilities {
    let bounds = HelperCapabilities::unknown();
    let (capabilities, helper, mut stop) = (bounds.clone(), helper.clone(), stop.subscribe());
    tokio::spawn(async move {
        tokio::select! {
            never = capabilities.follow(&helper) => match never {},
            _ = stop.wait_for(|stop| *stop) => {}
        }
    });
    bounds
}

/// Opens the vault and the state, and fills those of a demo. The helper logs the vault's audit head, and a key of the
/// vault seals the state's revisions.
async fn stores(
    settings: &Settings,
    helper: &HelperClient,
    is_first: bool,
    is_demo: bool,
) -> Result<(Vault, State, Option<SampleHistory>), BuildError> {
    let vault = open_vault(&vault_file(settings))?;
    if is_first {
        // Beside another front this is no new run: calls without an outcome may still run there.
        vault.audit().begin_run().await.map_err(failed)?;
    }
    let ended = end_abandoned_work(&vault, is_first, &settings.sessions.instance).await;
    ended.map_err(failed)?;
    send_audit_head(helper, &vault);
    let state = state(settings)?;
    let key = vault.key(STATE_AUTHOR_KEY).await.map_err(failed)?;
    state.seal_with(&key);
    let recorded = switched_off::record(&state, settings.workers).await;
    recorded.map_err(failed)?;
    let samples = if is_demo {
        Some(demo::fill(&settings.state_dir, &vault, &state).await?)
    } else {
        None
    };
    Ok((vault, state, samples))
}

/// Makes the helper log the end of the audit with each operation.
fn send_audit_head(helper: &HelperClient, vault: &Vault) {
    let head = vault.audit().head_source();
    helper.send_audit_head(move || {
        let head = head()?;
        AuditHead::new(head.seq, hex(&head.sha256)).ok()
    });
}

fn load_tls(settings: &Settings) -> Result<Arc<TlsServer>, BuildError> {
    let source = certificate(settings).map_err(failed)?;
    TlsServer::load(source).map(Arc::new).map_err(failed)
}

/// Builds the guard, and the sessions of admitted clients.
async fn admission(
    vault: &Vault,
    state: &State,
    live: &LiveSettings,
    logins: Arc<Logins>,
) -> Result<(Arc<Guard>, Arc<Sessions>), BuildError> {
    let callers = Callers {
        agents: Agents::new(vault.clone(), live.clone()).map_err(failed)?,
        logins,
        links: Links::new(vault.clone()),
        scrapers: Scrapers::new(vault.clone()),
        live: live.clone(),
    };
    let hosts = live.read(hosts);
    let guard = Guard::new(Authenticator::Agents(callers), hosts, live.clone());
    guard.set_edge(EdgeCheck::of(&live.now().edge_jwt).map_err(failed)?);
    guard.set_required_header(RequiredHeader::of(&live.now().access).map_err(failed)?);
    let key = vault.key("session").await.map_err(failed)?;
    let store = SessionStore {
        vault: vault.clone(),
        database: state.database_id().to_owned(),
        revision: state.watch_revision(),
    };
    let sessions = Sessions::open(&key, live.clone(), Some(store)).map_err(failed)?;
    let sessions = sessions.with_instance(&live.now().sessions.instance);
    Ok((Arc::new(guard), Arc::new(sessions)))
}

fn state(settings: &Settings) -> Result<State, BuildError> {
    let retention = retention(&settings.state);
    State::open_keeping(&settings.state_dir.join("state.db"), retention).map_err(
        |error| match error {
            StateError::Newer { .. } | StateError::NotOurs(_) => BuildError::lasting(error),
            _ => failed(error),
        },
    )
}

fn open_vault(path: &Path) -> Result<Vault, BuildError> {
    Vault::open(path).map_err(|error| match error {
        VaultError::Newer { .. } | VaultError::Damaged { .. } | VaultError::Foreign { .. } => {
            BuildError::lasting(error)
        }
        _ => failed(error),
    })
}

/// Puts an endpoint behind a socket. With an owner, programs may also request access.
pub fn serve_context(
    endpoint: Arc<Endpoint>,
    tls: Option<Arc<TlsServer>>,
    live: LiveSettings,
    site: Option<OwnerSite>,
    scrape: Option<MetricsScrape>,
) -> ServeContext {
    let (guard, metrics) = (endpoint.guard().clone(), endpoint.engine().metrics.clone());
    let connect = site.as_ref().map(|site| GuardedOAuth {
        guard: guard.clone(),
        oauth: AuthorizationServer::new(site.vault.clone(), live.clone(), site.logins.clone()),
    });
    let pairing = site.as_ref().map(|site| PairingEndpoint {
        guard: guard.clone(),
        vault: site.vault.clone(),
        tls: tls.clone(),
    });
    ServeContext {
        front: Arc::new(Front {
            guard,
            connect,
            pairing,
            http_sse: HttpSse::new(endpoint.clone()),
            live: live.clone(),
            endpoint,
            site,
            scrape,
            metrics: metrics.clone(),
        }),
        tls,
        live,
        metrics,
        heartbeat: Arc::new(Heartbeat::new()),
    }
}

fn failed(cause: impl fmt::Display) -> BuildError {
    BuildError::new(cause)
}
