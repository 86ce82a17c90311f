//! The containers of Docker inside containers of LXC: which engine to ask, and which process is a container's first.

use std::sync::Arc;

use tokio::task::spawn_blocking;

use gatewren_base::config::RuntimeKind;
use gatewren_base::sys::sanitize;
use gatewren_wire::operations::{ContainerRef, OperationRefusal, RefusalCode};

use super::containers::{ContainerRunState, HostContainers, lxc_word};
use super::running_container::{CommandEntry, RunningContainer};
use crate::engines::clients::not_served;
use crate::engines::inner_container::{InnerInit, find_init, read_container};
use crate::engines::{EngineApi, EngineContainerId, InnerSocket, InspectedContainer, host_rights};

/// The most rights over its container of LXC that are named of a container.
const MAX_RIGHTS: usize = 8;

/// The Docker inside a running container of LXC.
#[derive(Clone)]
pub struct InnerDaemon {
    /// The container of LXC.
    pub outer: ContainerRef,
    /// Its processes and cgroups.
    pub running: RunningContainer,
    /// Its socket.
    pub socket: InnerSocket,
    /// Its client.
    pub api: EngineApi,
}

impl HostContainers {
    /// Returns the client of the engine that has a container.
    ///
    /// # Errors
    /// Fails if the policy does not serve the engine, and for Docker inside LXC if the container of LXC does not run.
    pub async fn api(&self, name: &ContainerRef) -> Result<EngineApi, OperationRefusal> {
        match name.outer() {
            Some(outer) => Ok(self.inner_daemon(name, outer).await?.api),
            None => self.engines.api_of(name),
        }
    }

    /// Returns the Docker inside a container of LXC. `asked` is the container that the caller named.
    pub async fn inner_daemon(
        &self,
        asked: &ContainerRef,
        outer: ContainerRef,
    ) -> Result<InnerDaemon, OperationRefusal> {
        if !self.engines.serves(RuntimeKind::DockerInLxc) {
            return Err(not_served(RuntimeKind::DockerInLxc));
        }
        let running = match Box::pin(self.alive(&outer)).await {
            Err(refusal) if refusal.code == RefusalCode::NoSuchContainer => {
                return Err(self.absence_refusal(asked));
            }
            running => running?,
        };
        if running.is_frozen() {
            let message =
                format!("container '{outer}' is frozen; let it go on first (container_unfreeze)");
            return Err(OperationRefusal::new(RefusalCode::Frozen, message));
        }
        Ok(self.daemon_in(outer, running))
    }

    /// Returns the Docker that a running container of LXC would have inside.
    pub fn daemon_in(&self, outer: ContainerRef, running: RunningContainer) -> InnerDaemon {
        let (socket, api) = self.engines.inner(&outer, running.init, running.started);
        InnerDaemon {
            outer,
            running,
            socket,
            api,
        }
    }

    /// Returns the containers of LXC that run.
    pub async fn running_lxc(&self) -> Vec<(ContainerRef, RunningContainer)> {
        let mut found = Vec::new();
        for name in self.definitions().names().unwrap_or_default() {
            if let Ok(running) = self.alive(&name).await {
                found.push((name, running));
            }
        }
        found
    }

    /// Asks the Docker inside a container of LXC about a container, and the kernel for its first process.
    pub(super) async fn ask_inner(
        &self,
        name: &ContainerRef,
    ) -> Result<ContainerRunState, OperationRefusal> {
        let outer = name.outer().ok_or_else(|| self.absence_refusal(name))?;
        let daemon = self.inner_daemon(name, outer).await?;
        let engine = self.inspect(name).await?;
        let pid = engine.state.pid.and_then(|pid| i32::try_from(pid).ok());
        // The first process of the container of LXC is none of Docker's.
        let running = match pid.filter(|pid| *pid > 1) {
            Some(pid) => {
                let known = self.recall(name);
                match known.filter(|known| known.is_of_inner(&engine.id, pid)) {
                    Some(known) => Some(known),
                    None => daemon.find(&engine, pid).await,
                }
            }
            None => None,
        };
        self.remember(name, running.clone());
        Ok(ContainerRunState {
            state: Some(lxc_word(engine.state.status).to_owned()),
            running,
            unconfirmed: None,
            engine: Some(engine),
        })
    }
}

impl InnerDaemon {
    /// Finds a container's first process, whose id in the container of LXC is `pid` by Docker's word.
    async fn find(&self, engine: &InspectedContainer, pid: i32) -> Option<RunningContainer> {
        let (payload, id) = (self.running.payload.clone()?, engine.id.clone());
        let found = spawn_blocking(move || find_init(&payload, &id, pid)).await;
        let init = found.ok().flatten()?;
        let entry = match read_container(&self.socket, &engine.id, &init).await {
            Ok(oci) => CommandEntry::OciInLxc {
                outer: self.outer.clone(),
                inner_pid: pid,
                oci: Arc::new(oci),
            },
            Err(why) => CommandEntry::None(why.into()),
        };
        Some(RunningContainer::of_inner(init, entry, lxc_rights(engine)))
    }
}

impl RunningContainer {
    fn of_inner(init: InnerInit, entry: CommandEntry, lxc_rights: Vec<String>) -> Self {
        Self {
            init: init.pid,
            started: init.started,
            payload: Some(init.cgroup),
            limiting: Vec::new(),
            entry,
            host_rights: Vec::new(),
            lxc_rights,
            freezer: None,
        }
    }

    /// Whether it is the running container with this id, whose first process has this id in its container of LXC.
    fn is_of_inner(&self, id: &EngineContainerId, pid: i32) -> bool {
        matches!(
            &self.entry,
            CommandEntry::OciInLxc { inner_pid, oci, .. } if oci.id == id.as_str() && *inner_pid == pid
        )
    }
}

/// Returns what gives the processes of a container the rights of root in the container of LXC that its Docker runs in, a
/// phrase each: what would be rights over the host in a container of the host's Docker.
pub fn lxc_rights(container: &InspectedContainer) -> Vec<String> {
    let rights = host_rights(container).into_iter().take(MAX_RIGHTS);
    let phrases = rights.map(|right| right.to_string().replace("the host", "the LXC container"));
    phrases.map(|phrase| sanitize(&phrase)).collect()
}
