//! One client for each engine that the owner's policy serves.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Mutex;

use gatewren_base::config::{HelperPolicy, LiveSettings, RuntimeKind};
use gatewren_base::sys::lock;
use gatewren_wire::operations::{ContainerRef, OperationRefusal, RefusalCode};

use super::podman_user::PodmanUser;
use super::{EngineApi, EngineError, EngineKind, EngineSocket, InnerSocket, KeptAnswers};

/// The most clients of Docker inside LXC that are kept. One more clears them all, which costs a request to each daemon.
const MAX_INNER_CLIENTS: usize = 256;

/// The clients of the engines.
pub struct EngineClients {
    policy: LiveSettings<HelperPolicy>,
    /// The clients by runtime, each with its socket. A client knows the version of its engine's API.
    clients: Mutex<BTreeMap<RuntimeKind, (EngineSocket, EngineApi)>>,
    /// The clients of users' Podman by the user; the policy limits their number.
    of_users: Mutex<BTreeMap<String, (EngineSocket, EngineApi)>>,
    /// The clients of Docker inside LXC, by the container of LXC, each with its socket.
    inner: Mutex<BTreeMap<ContainerRef, (InnerSocket, EngineApi)>>,
    /// The answers of the engines that root runs on this host, by runtime.
    kept: Mutex<BTreeMap<RuntimeKind, KeptAnswers>>,
}

impl fmt::Debug for EngineClients {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EngineClients").finish_non_exhaustive()
    }
}

impl EngineClients {
    /// Creates no client yet.
    pub fn new(policy: LiveSettings<HelperPolicy>) -> Self {
        Self {
            policy,
            clients: Mutex::default(),
            of_users: Mutex::default(),
            inner: Mutex::default(),
            kept: Mutex::default(),
        }
    }

    /// Returns the kept answers of a runtime's engine that root runs on this host.
    pub fn kept(&self, runtime: RuntimeKind) -> KeptAnswers {
        lock(&self.kept).entry(runtime).or_default().clone()
    }

    /// Returns whether the policy serves a runtime.
    pub fn serves(&self, runtime: RuntimeKind) -> bool {
        self.policy.now().serves(runtime)
    }

    /// Returns the client of the engine that has a container; not of Docker inside LXC.
    ///
    /// # Errors
    /// Fails if the policy does not serve the container's runtime in its place.
    pub fn api_of(&self, container: &ContainerRef) -> Result<EngineApi, OperationRefusal> {
        match (container.runtime(), container.place()) {
            (runtime, None) => self.api(runtime),
            (RuntimeKind::Podman, Some(user)) => self.api_of_user(user),
            (_, Some(_)) => Err(forbidden("this place is not served")),
        }
    }

    /// Returns the client of a user's Podman.
    ///
    /// # Errors
    /// Fails if the policy does not serve the Podman of this user, or if there is no such user.
    pub fn api_of_user(&self, name: &str) -> Result<EngineApi, OperationRefusal> {
        if !self.policy.now().serves_podman_of(name) {
            return Err(forbidden("this user is not in podman_users in helper.toml"));
        }
        let user = PodmanUser::find(name)?;
        let socket = EngineSocket::OfUser(user.socket(), user.uid());
        let mut clients = lock(&self.of_users);
        Ok(client_at(
            &mut clients,
            name.to_owned(),
            EngineKind::Podman,
            socket,
        ))
    }

    /// Returns the client of a runtime's engine that root runs on this host.
    ///
    /// # Errors
    /// Fails if the policy does not serve the runtime, or if it has no API.
    pub fn api(&self, runtime: RuntimeKind) -> Result<EngineApi, OperationRefusal> {
        let policy = self.policy.now();
        let kind = engine_kind(runtime).filter(|_| policy.serves(runtime));
        let (Some(kind), Some(socket)) = (kind, policy.socket(runtime)) else {
            return Err(not_served(runtime));
        };
        let socket = EngineSocket::OfRoot(socket.to_owned());
        Ok(client_at(&mut lock(&self.clients), runtime, kind, socket))
    }

    /// Returns the client of the Docker inside a container of LXC, with its socket, by the container's first process and
    /// when that started. Does not check whether the policy serves Docker inside LXC.
    pub fn inner(&self, outer: &ContainerRef, init: i32, started: u64) -> (InnerSocket, EngineApi) {
        let mut clients = lock(&self.inner);
        match clients.get(outer) {
            Some((socket, client)) if socket.is_of(init, started) => {
                (socket.clone(), client.clone())
            }
            known => {
                if known.is_none() && clients.len() >= MAX_INNER_CLIENTS {
                    clients.clear();
                }
                let socket = InnerSocket::new(outer.as_str(), init, started);
                let client =
                    EngineApi::new(EngineKind::Docker, EngineSocket::InLxc(socket.clone()));
                clients.insert(outer.clone(), (socket.clone(), client.clone()));
                (socket, client)
            }
        }
    }
}

fn forbidden(why: &str) -> OperationRefusal {
    OperationRefusal::new(RefusalCode::Forbidden, why)
}

/// Returns the client that exists for this socket, or a new one.
fn client_at<K: Ord>(
    clients: &mut BTreeMap<K, (EngineSocket, EngineApi)>,
    key: K,
    kind: EngineKind,
    socket: EngineSocket,
) -> EngineApi {
    match clients.get(&key) {
        Some((of, client)) if *of == socket => client.clone(),
        _ => {
            let client = EngineApi::new(kind, socket.clone());
            clients.insert(key, (socket, client.clone()));
            client
        }
    }
}

/// The refusal for a runtime that the policy does not serve.
pub fn not_served(runtime: RuntimeKind) -> OperationRefusal {
    let title = runtime.title();
    forbidden(&format!(
        "{title} is not one of the runtimes in helper.toml"
    ))
}

/// Returns the engine of a runtime that has one on the host.
fn engine_kind(runtime: RuntimeKind) -> Option<EngineKind> {
    match runtime {
        RuntimeKind::Lxc | RuntimeKind::DockerInLxc => None,
        RuntimeKind::Docker => Some(EngineKind::Docker),
        RuntimeKind::Podman => Some(EngineKind::Podman),
    }
}

/// Turns an error of an engine into a refusal.
pub fn refusal(error: &EngineError) -> OperationRefusal {
    OperationRefusal::failed(error.to_string())
}
