//! One client for each engine that the owner's policy serves.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Mutex;

use gatewren_base::config::{HelperPolicy, LiveSettings, RuntimeKind};
use gatewren_base::sys::lock;
use gatewren_wire::operations::{OperationRefusal, RefusalCode};

use super::{EngineApi, EngineError, EngineKind};

/// The clients of the engines.
pub struct EngineClients {
    policy: LiveSettings<HelperPolicy>,
    /// The clients by runtime, each with its socket. A client knows the version of its engine's API.
    clients: Mutex<BTreeMap<RuntimeKind, (PathBuf, EngineApi)>>,
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
        }
    }

    /// Returns the client of a runtime's engine.
    ///
    /// # Errors
    /// Fails if the policy does not serve the runtime, or if it has no API.
    pub fn api(&self, runtime: RuntimeKind) -> Result<EngineApi, OperationRefusal> {
        let policy = self.policy.now();
        let kind = engine_kind(runtime).filter(|_| policy.serves(runtime));
        let (Some(kind), Some(socket)) = (kind, policy.socket(runtime)) else {
            let message = format!(
                "{} is not one of the runtimes in helper.toml",
                runtime.title()
            );
            return Err(OperationRefusal::new(RefusalCode::Forbidden, message));
        };
        let mut clients = lock(&self.clients);
        match clients.get(&runtime) {
            Some((of, client)) if of == socket => Ok(client.clone()),
            _ => {
                let client = EngineApi::new(kind, socket.to_owned());
                clients.insert(runtime, (socket.to_owned(), client.clone()));
                Ok(client)
            }
        }
    }
}

/// Returns the engine of a runtime that has one.
fn engine_kind(runtime: RuntimeKind) -> Option<EngineKind> {
    match runtime {
        RuntimeKind::Lxc => None,
        RuntimeKind::Docker => Some(EngineKind::Docker),
        RuntimeKind::Podman => Some(EngineKind::Podman),
    }
}

/// Turns an error of an engine into a refusal.
pub fn refusal(error: &EngineError) -> OperationRefusal {
    OperationRefusal::failed(error.to_string())
}
