//! Which containers run, of every runtime. To make this cheap, a container's init is remembered with its start time.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use tokio::time::{Instant, sleep};

use gatewren_base::config::RuntimeKind;
use gatewren_base::sys::lock;
use gatewren_base::sys::source::field;
use gatewren_base::telemetry::redact_text;
use gatewren_wire::operations::{ContainerRef, OperationRefusal, RefusalCode};

use super::definitions::{CONFIG, ContainerDefinitions};
use super::lxc_monitor::may_have_monitor;
use super::lxc_tools::question;
use super::orphans::Orphans;
pub use super::running_container::{CommandEntry, HELD, RunningContainer};
use super::running_container::{FROZEN, RUNNING, STOPPED};
use super::tools::output;
use crate::engines::clients::{EngineClients, refusal};
use crate::engines::podman_user::PodmanUser;
use crate::engines::{
    EngineError, EngineStatus, InspectedContainer, running_host_rights, running_user_rights,
};

/// The most containers remembered. One more clears them all, which costs one lxc-info for each.
const MAX_REMEMBERED: usize = 1024;

/// How long a command waits for a container that the helper has frozen, and how often it checks.
const HELD_TIME: Duration = Duration::from_secs(2);
const HELD_LOOK: Duration = Duration::from_millis(5);

/// The state of a container.
pub struct ContainerRunState {
    /// LXC's name for the state, if LXC reports one.
    pub state: Option<String>,
    /// Its init process, if it runs.
    pub running: Option<RunningContainer>,
    /// Why a container of a user that runs, as its engine says, has no init process here that can be used.
    pub unconfirmed: Option<String>,
    /// What its engine says about it; `None` for a container of LXC.
    pub engine: Option<InspectedContainer>,
}

impl ContainerRunState {
    /// A container of LXC in a state that is known without asking LXC.
    fn of_lxc(state: &str, running: Option<RunningContainer>) -> Self {
        Self {
            state: Some(state.to_owned()),
            running,
            unconfirmed: None,
            engine: None,
        }
    }
}

/// The containers of this host.
#[derive(Debug)]
pub struct HostContainers {
    definitions: ContainerDefinitions,
    /// The engines of the other runtimes.
    pub engines: EngineClients,
    orphans: Arc<Orphans>,
    remembered: Mutex<BTreeMap<ContainerRef, RunningContainer>>,
}

impl HostContainers {
    /// Creates the list over these definitions and engines.
    pub fn new(
        definitions: ContainerDefinitions,
        engines: EngineClients,
        orphans: Arc<Orphans>,
    ) -> Self {
        Self {
            definitions,
            engines,
            orphans,
            remembered: Mutex::default(),
        }
    }

    /// Where they are defined.
    pub fn definitions(&self) -> &ContainerDefinitions {
        &self.definitions
    }

    /// The directory where LXC keeps them.
    pub fn lxcpath(&self) -> &Path {
        self.definitions.lxcpath()
    }

    /// Checks that a container of LXC exists.
    pub fn check_exists(&self, name: &ContainerRef) -> Result<(), OperationRefusal> {
        if self.definitions.file(name).is_file() {
            return Ok(());
        }
        Err(self.absence_refusal(name))
    }

    /// The refusal for a container that does not exist.
    pub fn absence_refusal(&self, name: &ContainerRef) -> OperationRefusal {
        let message =
            format!("there is no container '{name}'; container_list shows those that exist");
        let name = redact_text(name.as_str());
        tracing::debug!(%name, lxcpath = %self.lxcpath().display(), "no such container");
        OperationRefusal::new(RefusalCode::NoSuchContainer, message)
    }

    /// Returns the container if a command can be run in it now.
    ///
    /// # Errors
    /// Fails if it does not exist, is not running, or is frozen: entering a frozen container would hang. Waits for a
    /// container that the helper has frozen for a moment.
    pub async fn running(&self, name: &ContainerRef) -> Result<RunningContainer, OperationRefusal> {
        let running = self.alive(name).await?;
        let held_until = Instant::now() + HELD_TIME;
        while running.is_frozen() && running.is_held() && Instant::now() < held_until {
            sleep(HELD_LOOK).await;
        }
        if running.is_frozen() {
            let is = match name.runtime() {
                RuntimeKind::Lxc => "frozen",
                RuntimeKind::Docker | RuntimeKind::Podman | RuntimeKind::DockerInLxc => "paused",
            };
            let message =
                format!("container '{name}' is {is}; let it go on first (container_unfreeze)");
            return Err(OperationRefusal::new(RefusalCode::Frozen, message));
        }
        Ok(running)
    }

    /// Returns the container if it has processes, frozen or not.
    ///
    /// # Errors
    /// Fails if it does not exist or is not running.
    pub async fn alive(&self, name: &ContainerRef) -> Result<RunningContainer, OperationRefusal> {
        // The name of another runtime's container may have become another container's.
        if name.runtime() == RuntimeKind::Lxc
            && let Some(running) = self.recall(name)
        {
            return Ok(running);
        }
        let standing = self.ask(name).await?;
        if let Some(why) = standing.unconfirmed {
            let message = format!("container '{name}' cannot be used: {why}");
            return Err(OperationRefusal::failed(message));
        }
        standing.running.ok_or_else(|| {
            let state = standing.state.as_deref().unwrap_or("STOPPED");
            if state == "RUNNING" {
                let message = format!(
                    "container '{name}' runs by the word of its engine, but its first process was not found"
                );
                return OperationRefusal::failed(message);
            }
            let state = state.to_lowercase();
            let message =
                format!("container '{name}' is {state}; start it first (container_start)");
            OperationRefusal::new(RefusalCode::NotRunning, message)
        })
    }

    /// Asks the container's runtime for its state, and remembers its init. LXC is not asked about a container that is
    /// known to run, nor about one without a monitor: `lxc-info` takes 10 ms or more for each.
    pub async fn ask(&self, name: &ContainerRef) -> Result<ContainerRunState, OperationRefusal> {
        match name.runtime() {
            RuntimeKind::Lxc => self.ask_lxc(name).await,
            RuntimeKind::Docker | RuntimeKind::Podman => self.ask_engine(name).await,
            RuntimeKind::DockerInLxc => self.ask_inner(name).await,
        }
    }

    /// Asks the engine of a container about it.
    ///
    /// # Errors
    /// Fails if the engine does not answer, or has no container of exactly this name.
    pub async fn inspect(
        &self,
        name: &ContainerRef,
    ) -> Result<InspectedContainer, OperationRefusal> {
        let api = self.api(name).await?;
        match api.inspect(name.name()).await {
            Ok(found) if found.name == name.name() => Ok(found),
            // A reference holds a name, and this is the id of a container.
            Ok(_) | Err(EngineError::NotFound(_)) => Err(self.absence_refusal(name)),
            Err(error) => Err(refusal(&error)),
        }
    }

    async fn ask_engine(&self, name: &ContainerRef) -> Result<ContainerRunState, OperationRefusal> {
        let engine = self.inspect(name).await?;
        Ok(self.state_of(name, engine))
    }

    /// Returns the state of a container of an engine on this host, by the engine's answer about it, and remembers its
    /// init.
    pub fn state_of(&self, name: &ContainerRef, engine: InspectedContainer) -> ContainerRunState {
        let pid = engine.state.pid.and_then(|pid| i32::try_from(pid).ok());
        // A daemon that names the host's first process is in another pid namespace.
        let pid = pid.filter(|pid| *pid > 1);
        let found = match (pid, name.place()) {
            (None, _) => Ok(None),
            (Some(init), None) => Ok(self.running_of_root(name, &engine, init)),
            (Some(init), Some(user)) => running_of_user(user, &engine, init).map(Some),
        };
        let (running, unconfirmed) = match found {
            Ok(running) => (running, None),
            Err(why) => (None, Some(why)),
        };
        self.remember(name, running.clone());
        ContainerRunState {
            state: Some(lxc_word(engine.state.status).to_owned()),
            running,
            unconfirmed,
            engine: Some(engine),
        }
    }

    fn running_of_root(
        &self,
        name: &ContainerRef,
        engine: &InspectedContainer,
        init: i32,
    ) -> Option<RunningContainer> {
        let id = engine.id.as_str();
        let known = self.recall(name).filter(|known| known.is_of(id, init));
        known.or_else(|| {
            let rights = running_host_rights(engine, init);
            RunningContainer::of_engine(id, init, rights)
        })
    }

    async fn ask_lxc(&self, name: &ContainerRef) -> Result<ContainerRunState, OperationRefusal> {
        self.check_exists(name)?;
        if let Some(running) = self.recall(name) {
            return Ok(ContainerRunState::of_lxc(
                running.lxc_state(),
                Some(running),
            ));
        }
        if !may_have_monitor(self.lxcpath(), name).await {
            self.remember(name, None);
            return Ok(ContainerRunState::of_lxc(STOPPED, None));
        }
        let text = output(&question(name, self.lxcpath()), &self.orphans).await?;
        let running = init_of(&text).and_then(RunningContainer::of);
        let state = field(&text, "State", ':').map(str::to_owned);
        // What is remembered is taken as running or frozen until it ends, so it must have started.
        let has_started = matches!(state.as_deref(), Some(RUNNING | FROZEN));
        self.remember(name, running.clone().filter(|_| has_started));
        // LXC knows nothing yet of a container that Proxmox has never started.
        let unborn = || !self.definitions.directory(name).join(CONFIG).exists();
        let state = state.or_else(|| unborn().then(|| STOPPED.to_owned()));
        Ok(ContainerRunState {
            state,
            running,
            unconfirmed: None,
            engine: None,
        })
    }

    /// Returns the containers that were running when last asked about and still are.
    pub fn still_running(&self) -> Vec<(ContainerRef, RunningContainer)> {
        let remembered = self.lock_remembered().clone();
        remembered
            .into_iter()
            .filter(|(_, running)| running.still_runs())
            .collect()
    }

    pub(super) fn recall(&self, name: &ContainerRef) -> Option<RunningContainer> {
        let found = self.lock_remembered().get(name).cloned();
        found.filter(RunningContainer::still_runs)
    }

    pub(super) fn remember(&self, name: &ContainerRef, running: Option<RunningContainer>) {
        let mut remembered = self.lock_remembered();
        if remembered.len() >= MAX_REMEMBERED {
            remembered.clear();
        }
        match running {
            Some(running) => remembered.insert(name.clone(), running),
            None => remembered.remove(name),
        };
    }

    fn lock_remembered(&self) -> MutexGuard<'_, BTreeMap<ContainerRef, RunningContainer>> {
        lock(&self.remembered)
    }
}

/// Returns a running container of a user's Podman. Nothing about it is remembered: the user may change all of it.
fn running_of_user(
    user: &str,
    engine: &InspectedContainer,
    init: i32,
) -> Result<RunningContainer, String> {
    let user = PodmanUser::find(user).map_err(|refusal| refusal.message)?;
    let rights = running_user_rights(engine, &user, init);
    RunningContainer::of_user(&user, engine.id.as_str(), init, rights)
}

/// Returns LXC's word for a state of an engine.
pub(super) fn lxc_word(status: EngineStatus) -> &'static str {
    match status {
        EngineStatus::Running => "RUNNING",
        EngineStatus::Paused => "FROZEN",
        EngineStatus::Restarting => "STARTING",
        EngineStatus::Removing => "STOPPING",
        EngineStatus::Created
        | EngineStatus::Exited
        | EngineStatus::Dead
        | EngineStatus::Unknown => "STOPPED",
    }
}

fn init_of(info: &str) -> Option<i32> {
    field(info, "PID", ':')?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::super::containers::*;

    #[test]
    fn lxc_info_is_understood() {
        let running = "Name:           alpha\nState:          RUNNING\nPID:            1234\n";
        assert_eq!(init_of(running), Some(1234));
        let stopped = "State:          STOPPED\n";
        assert_eq!(init_of(stopped), None);
    }
}
