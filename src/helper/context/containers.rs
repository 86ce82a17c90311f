//! Which containers run, of every runtime. To make this cheap, a container's init is remembered with its start time.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use tokio::time::{Instant, sleep};

use gatewren_base::config::{HelperClass, HelperPolicy, RuntimeKind};
use gatewren_base::sys::source::field;
use gatewren_base::sys::{cgroup2_mount, freezer_state, limiting_groups, lock, process};
use gatewren_base::telemetry::redact_text;
use gatewren_wire::operations::{ContainerRef, OperationRefusal, RefusalCode};

use super::definitions::{CONFIG, ContainerDefinitions};
use super::lxc_tools::question;
use super::orphans::Orphans;
use super::tools::output;
use crate::engines::clients::{EngineClients, refusal};
use crate::engines::oci::{OciContainer, find_container};
use crate::engines::{EngineError, EngineStatus, InspectedContainer, running_host_rights};

/// The most containers remembered. One more clears them all, which costs one lxc-info for each.
const MAX_REMEMBERED: usize = 1024;

/// The name prefix of an empty cgroup that marks a container, in its own cgroup, as frozen by a helper.
pub const HELD: &str = "gatewren-held-";

/// How long a command waits for a container that the helper has frozen, and how often it checks.
const HELD_TIME: Duration = Duration::from_secs(2);
const HELD_LOOK: Duration = Duration::from_millis(5);

/// A running container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunningContainer {
    /// Its init process, by its id on the host.
    pub init: i32,
    /// The start time of init, in clock ticks from boot.
    pub started: u64,
    /// Its own version 2 cgroup; `None` on a host without version 2.
    pub payload: Option<PathBuf>,
    /// Its version 1 cgroups for devices and limits, on a host that still has version 1.
    pub limiting: Vec<PathBuf>,
    /// How a command enters it.
    pub entry: CommandEntry,
    /// What gives its processes the rights of the host's root, a phrase each. Not known of containers of LXC, where
    /// the owner's definition decides.
    pub host_rights: Vec<String>,
    /// The state file of version 1's freezer, on a host that still has it.
    freezer: Option<PathBuf>,
}

/// How a command enters a running container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CommandEntry {
    /// By lxc-attach.
    LxcAttach,
    /// By the OCI runtime that started the container.
    OciRuntime(Arc<OciContainer>),
    /// Not at all, for this reason.
    None(Arc<str>),
}

/// The state of a container.
pub struct ContainerRunState {
    /// LXC's name for the state, if LXC reports one.
    pub state: Option<String>,
    /// Its init process, if it runs.
    pub running: Option<RunningContainer>,
    /// What its engine says about it; `None` for a container of LXC.
    pub engine: Option<InspectedContainer>,
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
                RuntimeKind::Docker | RuntimeKind::Podman => "paused",
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
        standing.running.ok_or_else(|| {
            let state = standing
                .state
                .as_deref()
                .unwrap_or("STOPPED")
                .to_lowercase();
            let message =
                format!("container '{name}' is {state}; start it first (container_start)");
            OperationRefusal::new(RefusalCode::NotRunning, message)
        })
    }

    /// Asks the container's runtime for its state, and remembers its init.
    pub async fn ask(&self, name: &ContainerRef) -> Result<ContainerRunState, OperationRefusal> {
        match name.runtime() {
            RuntimeKind::Lxc => self.ask_lxc(name).await,
            RuntimeKind::Docker | RuntimeKind::Podman => self.ask_engine(name).await,
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
        let api = self.engines.api(name.runtime())?;
        match api.inspect(name.name()).await {
            Ok(found) if found.name == name.name() => Ok(found),
            // A reference holds a name, and this is the id of a container.
            Ok(_) | Err(EngineError::NotFound(_)) => Err(self.absence_refusal(name)),
            Err(error) => Err(refusal(&error)),
        }
    }

    async fn ask_engine(&self, name: &ContainerRef) -> Result<ContainerRunState, OperationRefusal> {
        let engine = self.inspect(name).await?;
        let pid = engine.state.pid.and_then(|pid| i32::try_from(pid).ok());
        // A daemon that names the host's first process is in another pid namespace.
        let running = pid.filter(|pid| *pid > 1).and_then(|init| {
            let known = self
                .recall(name)
                .filter(|known| known.is_of(engine.id.as_str(), init));
            known.or_else(|| {
                let rights = running_host_rights(&engine, init);
                RunningContainer::of_engine(engine.id.as_str(), init, rights)
            })
        });
        self.remember(name, running.clone());
        Ok(ContainerRunState {
            state: Some(lxc_word(engine.state.status).to_owned()),
            running,
            engine: Some(engine),
        })
    }

    async fn ask_lxc(&self, name: &ContainerRef) -> Result<ContainerRunState, OperationRefusal> {
        self.check_exists(name)?;
        let text = output(&question(name, self.lxcpath()), &self.orphans).await?;
        let running = init_of(&text).and_then(RunningContainer::of);
        self.remember(name, running.clone());
        let state = field(&text, "State", ':').map(str::to_owned);
        // LXC knows nothing yet of a container that Proxmox has never started.
        let unborn = || !self.definitions.directory(name).join(CONFIG).exists();
        let state = state.or_else(|| unborn().then(|| "STOPPED".to_owned()));
        Ok(ContainerRunState {
            state,
            running,
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

    fn recall(&self, name: &ContainerRef) -> Option<RunningContainer> {
        let found = self.lock_remembered().get(name).cloned();
        found.filter(RunningContainer::still_runs)
    }

    fn remember(&self, name: &ContainerRef, running: Option<RunningContainer>) {
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

impl RunningContainer {
    fn of(init: i32) -> Option<Self> {
        let process = process(init)?;
        let groups = fs::read_to_string(format!("/proc/{init}/cgroup")).ok()?;
        let payload = cgroup2_mount().and_then(|mount| payload(&mount, &groups));
        Some(Self {
            init,
            started: process.started,
            payload,
            limiting: limiting_groups(init),
            entry: CommandEntry::LxcAttach,
            host_rights: Vec::new(),
            freezer: freezer_state(init),
        })
    }

    /// Returns the container with this full id and first process, as the OCI runtime and the kernel describe it.
    fn of_engine(id: &str, init: i32, host_rights: Vec<String>) -> Option<Self> {
        let process = process(init)?;
        let (payload, entry) = match find_container(id, init) {
            Ok(oci) => (oci.cgroup.clone(), CommandEntry::OciRuntime(Arc::new(oci))),
            Err(refusal) => (None, CommandEntry::None(refusal.message.into())),
        };
        Some(Self {
            init,
            started: process.started,
            payload,
            limiting: Vec::new(),
            entry,
            host_rights,
            freezer: None,
        })
    }

    /// Whether it is the running container with this id and first process.
    fn is_of(&self, id: &str, init: i32) -> bool {
        matches!(&self.entry, CommandEntry::OciRuntime(oci) if oci.id == id && oci.init == init)
    }

    /// Rejects what would run with the rights of the host's root, unless the owner's policy allows commands on the host
    /// and the front judged this as one.
    pub fn check_host_rights(
        &self,
        container: &ContainerRef,
        policy: &HelperPolicy,
        on_host: bool,
    ) -> Result<(), OperationRefusal> {
        let Some(right) = self.host_rights.first() else {
            return Ok(());
        };
        let allowed = policy.allows(HelperClass::HostShell);
        if allowed && on_host {
            return Ok(());
        }
        let needs = if allowed {
            "it needs the right to run commands on the host"
        } else {
            "it needs host_shell in helper.toml"
        };
        let message = format!(
            "a program in container '{container}' has the rights of the host's root ({right}), so {needs}"
        );
        Err(OperationRefusal::new(RefusalCode::Forbidden, message))
    }

    /// Whether init is still the same process and not exiting.
    pub fn still_runs(&self) -> bool {
        process(self.init).is_some_and(|p| p.started == self.started && !p.is_ending)
    }

    /// Whether a helper has marked it as frozen by itself.
    fn is_held(&self) -> bool {
        let groups = self
            .payload
            .as_ref()
            .and_then(|path| fs::read_dir(path).ok());
        let is_mark =
            |entry: fs::DirEntry| entry.file_name().as_bytes().starts_with(HELD.as_bytes());
        groups.into_iter().flatten().flatten().any(is_mark)
    }

    /// Whether its processes are frozen.
    pub fn is_frozen(&self) -> bool {
        let says = |file: &Path, word: &str| {
            fs::read_to_string(file).is_ok_and(|text| text.lines().any(|line| line == word))
        };
        let events = self.payload.as_ref().map(|path| path.join("cgroup.events"));
        events.is_some_and(|file| says(&file, "frozen 1"))
            || self
                .freezer
                .as_ref()
                .is_some_and(|file| says(file, "FROZEN"))
    }
}

/// Returns the container's own cgroup: the path of its init up to the component that LXC created. With systemd
/// inside, init is deeper than that, and LXC appends a number after a clash of names. So the path is read, never
/// constructed.
fn payload(mount: &Path, groups: &str) -> Option<PathBuf> {
    let path = groups.lines().find_map(|line| line.strip_prefix("0::"))?;
    let mut found = mount.to_owned();
    for component in path.split('/').filter(|component| !component.is_empty()) {
        found.push(component);
        if component.starts_with("lxc.payload") {
            return Some(found);
        }
    }
    None
}

/// Returns LXC's word for a state of an engine.
fn lxc_word(status: EngineStatus) -> &'static str {
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
    fn the_payload_is_found_however_deep_init_is() {
        let mount = Path::new("/sys/fs/cgroup");
        let at = |groups: &str| payload(mount, groups).map(|p| p.display().to_string());
        let deep = "3:cpuset:/lxc.payload.x\n0::/lxc.payload.alpha-1/init.scope\n";
        assert_eq!(at(deep).unwrap(), "/sys/fs/cgroup/lxc.payload.alpha-1");
        let nested = "0::/lxc/lxc.payload.alpha\n";
        assert_eq!(at(nested).unwrap(), "/sys/fs/cgroup/lxc/lxc.payload.alpha");
        for none in [
            "",
            "0::/\n",
            "0::/system.slice\n",
            "9:freezer:/lxc.payload.alpha\n",
        ] {
            assert_eq!(at(none), None, "{none}");
        }
    }

    #[test]
    fn lxc_info_is_understood() {
        let running = "Name:           alpha\nState:          RUNNING\nPID:            1234\n";
        assert_eq!(init_of(running), Some(1234));
        let stopped = "State:          STOPPED\n";
        assert_eq!(init_of(stopped), None);
    }
}
