//! The reference fixtures behind the same guard, transport and engine as the server, without access to the host.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::build::serve_context;
use super::build_error::BuildError;
use super::lifecycle::drain_calls;
use super::limits::task_limits;
use super::running_server::{certificate, hosts};
use super::serving::ServeContext;
use super::signals::{ProcessSignals, SignalEvent};
use crate::dispatch::Engine;
use crate::transport::{Endpoint, Sessions};
use gatewren_base::config::{LiveSettings, Overrides, Policy, Preset, Settings, TaskSettings};
use gatewren_base::sys::{Secret, random_bytes};
use gatewren_fixtures;
use gatewren_gate::auth::{FixedToken, Principal};
use gatewren_gate::guard::{Authenticator, Guard};
use gatewren_gate::http::TlsServer;
use gatewren_gate::policy::ALL_TOOLSETS;

/// Fixtures become tasks soon: they take seconds at most, and some exist to become a task.
const TASK_AFTER: Duration = Duration::from_millis(200);

/// How to serve the fixtures.
#[derive(Debug)]
pub struct FixturePlan {
    /// The bound address; `None` for the one client on standard input and output.
    pub address: Option<SocketAddr>,
    /// Whether to serve HTTP+SSE too.
    pub http_sse: bool,
    /// The directory of the authority's files; plain HTTP if `None`.
    pub tls: Option<PathBuf>,
    /// The token that callers need; if `None`, callers are not authenticated.
    pub token: Option<Secret>,
}

/// Fixtures that are ready to be served.
pub struct FixtureServer {
    /// The URL for clients.
    pub url: String,
    pub(super) engine: Arc<Engine>,
    pub(super) serving: Arc<ServeContext>,
    pub(super) stop: watch::Sender<bool>,
}

impl FixtureServer {
    /// Builds the fixtures. Sessions and sealed state end with the process, because their keys are random.
    pub fn build(plan: FixturePlan) -> Result<Self, BuildError> {
        let mut settings = Settings {
            state_dir: plan.tls.clone().unwrap_or_default(),
            ..Settings::default()
        };
        settings.access.http_sse = plan.http_sse;
        let tls = match &plan.tls {
            Some(_) => Some(Arc::new(
                TlsServer::load(certificate(&settings).map_err(BuildError::new)?)
                    .map_err(BuildError::new)?,
            )),
            None => None,
        };
        let stop = watch::Sender::new(false);
        let catalog = gatewren_fixtures::catalog().map_err(BuildError::new)?;
        let key = random_bytes().map_err(BuildError::new)?;
        let limits = task_limits(&TaskSettings {
            after: TASK_AFTER,
            ..settings.tasks.clone()
        });
        let engine = Arc::new(Engine::new(catalog, None, &key, stop.subscribe(), limits));
        let live = LiveSettings::from(settings.clone());
        let guard = Guard::new(identity(plan.token), hosts(&settings), live.clone());
        let key = random_bytes().map_err(BuildError::new)?;
        let sessions = Sessions::open(&key, live.clone(), None).map_err(BuildError::new)?;
        let path = if plan.http_sse { "sse" } else { "mcp" };
        let scheme = if tls.is_some() { "https" } else { "http" };
        let (guard, sessions) = (Arc::new(guard), Arc::new(sessions));
        let endpoint = Endpoint::new(engine.clone(), guard, sessions, live.clone());
        let serving = serve_context(endpoint, tls, live, None, None);
        Ok(Self {
            url: plan
                .address
                .map_or_else(|| "stdio".to_owned(), |a| format!("{scheme}://{a}/{path}")),
            engine,
            serving: Arc::new(serving),
            stop,
        })
    }
}

/// Serves fixtures until SIGTERM or SIGINT; calls `announce` when they are served.
pub async fn run_fixtures(
    fixtures: FixtureServer,
    sockets: Vec<TcpListener>,
    announce: impl FnOnce(&FixtureServer),
) -> ExitCode {
    let mut signals = match ProcessSignals::listen() {
        Ok(signals) => signals,
        Err(cause) => {
            tracing::error!(%cause, "cannot listen for signals");
            return ExitCode::FAILURE;
        }
    };
    let accepting = fixtures
        .serving
        .clone()
        .start(sockets, &fixtures.stop.subscribe());
    let mut workers = JoinSet::new();
    workers.spawn(fixtures.serving.front.endpoint.clone().keep_sessions());
    announce(&fixtures);
    while signals.next().await == SignalEvent::Reload {}
    fixtures.stop.send_replace(true);
    if drain_calls(&fixtures.serving, &fixtures.engine, accepting, &mut signals).await {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

fn identity(token: Option<Secret>) -> Authenticator {
    // Toolsets are named, so that the list has the schemas of answers.
    let toolsets = Some(vec![ALL_TOOLSETS.to_owned()]);
    let policy = Policy {
        preset: Preset::Admin,
        overrides: Overrides {
            toolsets,
            ..Overrides::default()
        },
    };
    let who = Principal::without_token("everything", policy);
    match token {
        Some(token) => Authenticator::Fixed(FixedToken::new(token, who)),
        None => Authenticator::Anybody(who),
    }
}
