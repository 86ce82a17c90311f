//! The state that all calls of one helper share.

use std::ffi::CString;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::{Semaphore, watch};
use tokio::time::{sleep, timeout};

use gatewren_base::config::{HelperPolicy, LiveSettings};
use gatewren_base::sys::{
    Cgroup, is_static, lock, own_cgroup, own_pid, pid_namespace, process, sealed_copy, set_frozen,
    share_controllers, stale_cgroups,
};

use super::container_locks::ContainerLocks;
use super::containers::{HELD, HostContainers};
use super::definitions::ContainerDefinitions;
use super::jobs::JobTable;
use super::limits::{CallLimits, MAX_BOUNDS_STREAMS, MAX_EVENT_STREAMS, MAX_JOB_WAITS};
use super::log_limiter::LogLimiter;
use super::operation_slots::OperationSlots;
use super::orphans::Orphans;
use super::process_times::EarlierTimes;
use super::reaper_source::ReaperSource;
use crate::engines::clients::EngineClients;

/// How long the start waits to remove what a dead helper left. What is still busy stays for the next start.
const SWEEP_TIME: Duration = Duration::from_secs(2);

/// The name prefix of a call's cgroup. The rest of the name identifies the helper that created it.
const PREFIX: &str = "gatewren-exec-";

/// The helper's shared context.
#[derive(Debug)]
pub struct HelperContext {
    /// The containers.
    pub containers: HostContainers,
    /// The containers that are being copied, exchanged or removed.
    pub locks: ContainerLocks,
    /// The helper's child processes, including adopted orphans.
    pub orphans: Arc<Orphans>,
    /// Starts the reapers of commands on the host.
    pub reapers: ReaperSource,
    /// The places for concurrent operations.
    pub operations: Arc<OperationSlots>,
    /// One permit for each event stream.
    pub event_streams: Semaphore,
    /// One permit for each caller that waits for the end of a job.
    pub job_waits: Semaphore,
    /// The jobs, which run on without their callers.
    pub jobs: JobTable,
    /// The rate limit for log lines about refused requests.
    pub complaints: LogLimiter,
    /// One permit for each stream of the enabled classes or of job ends.
    pub bounds_streams: Semaphore,
    /// The owner's policy file, as it was last read.
    pub policy: LiveSettings<HelperPolicy>,
    /// True once the helper shuts down.
    pub shutdown: watch::Receiver<bool>,
    /// The CPU times of all processes at earlier moments.
    pub process_times: Arc<EarlierTimes>,
    /// The cgroup that host commands are started below.
    pub own_cgroup: Option<PathBuf>,
    /// The user that the front runs as.
    pub front_uid: u32,
    /// The helper's state directory, if it has one.
    pub state: Option<PathBuf>,
    reaper: Mutex<Option<Arc<File>>>,
    owner: String,
    calls: AtomicU64,
}

impl HelperContext {
    /// Creates the context with these definitions, the owner's policy and the existing jobs.
    pub fn new(
        definitions: ContainerDefinitions,
        policy: LiveSettings<HelperPolicy>,
        jobs: JobTable,
        shutdown: watch::Receiver<bool>,
        front_uid: u32,
    ) -> Self {
        let orphans = Arc::<Orphans>::default();
        Self {
            containers: HostContainers::new(
                definitions,
                EngineClients::new(policy.clone()),
                Arc::clone(&orphans),
            ),
            locks: ContainerLocks::default(),
            orphans,
            reapers: ReaperSource::default(),
            operations: Arc::default(),
            event_streams: Semaphore::new(MAX_EVENT_STREAMS),
            job_waits: Semaphore::new(MAX_JOB_WAITS),
            jobs,
            complaints: LogLimiter::default(),
            bounds_streams: Semaphore::new(MAX_BOUNDS_STREAMS),
            policy,
            shutdown,
            process_times: Arc::default(),
            own_cgroup: own_cgroup().inspect(|own| share(own)),
            front_uid,
            state: None,
            reaper: Mutex::default(),
            owner: owner(own_pid()).unwrap_or_default(),
            calls: AtomicU64::new(0),
        }
    }

    /// Sets the state directory.
    #[must_use]
    pub fn with_state(self, state: Option<PathBuf>) -> Self {
        Self { state, ..self }
    }

    /// Returns how many callers are connected that nothing runs for.
    pub fn listeners(&self) -> usize {
        let events = MAX_EVENT_STREAMS - self.event_streams.available_permits();
        let waits = MAX_JOB_WAITS - self.job_waits.available_permits();
        events + waits + MAX_BOUNDS_STREAMS - self.bounds_streams.available_permits()
    }

    /// Creates a cgroup below `parent` for one call; `None` if the host cannot provide one. A limit without its
    /// controller has no effect: `gatewren doctor` warns of that.
    pub fn cgroup(&self, parent: &Path, limits: CallLimits) -> Option<Cgroup> {
        let number = self.calls.fetch_add(1, Ordering::Relaxed);
        match Cgroup::create(parent, &format!("{PREFIX}{}-{number}", self.owner)) {
            Ok(cgroup) => {
                for (file, value) in limits.files() {
                    if let Err(cause) = cgroup.limit(file, value) {
                        tracing::debug!(%cause, file, "a limit of a call could not be set");
                    }
                }
                Some(cgroup)
            }
            Err(cause) => {
                tracing::debug!(%cause, ?parent, "no cgroup could be created for this call");
                None
            }
        }
    }

    /// Marks in a container's own cgroup that this helper froze it, so that it is unfrozen even if the helper dies.
    pub fn mark_held(&self, payload: &Path) -> io::Result<Cgroup> {
        let number = self.calls.fetch_add(1, Ordering::Relaxed);
        Cgroup::create(payload, &format!("{HELD}{}-{number}", self.owner))
    }

    /// Returns a copy of this program that a container may see, created at the first call that needs it.
    ///
    /// # Errors
    /// `Unsupported` if this build needs shared libraries, which a container does not have.
    pub fn reaper(&self) -> io::Result<Arc<File>> {
        let mut reaper = lock(&self.reaper);
        if let Some(file) = reaper.as_ref() {
            return Ok(Arc::clone(file));
        }
        if !is_static()? {
            return Err(io::ErrorKind::Unsupported.into());
        }
        let file = Arc::new(sealed_copy()?);
        *reaper = Some(Arc::clone(&file));
        Ok(file)
    }
}

/// The helper's own cgroup, below the one that systemd has delegated to it.
const LEAF: &str = "helper";

/// Enables limits for calls on the host, where the controllers are available.
fn share(own: &Path) {
    match share_controllers(own, LEAF) {
        Ok(controllers) => tracing::debug!(?controllers, "limits of calls"),
        Err(cause) => tracing::warn!(%cause, ?own, "calls on the host have no limits"),
    }
}

/// Kills and removes the cgroups that a dead helper left. Those of a live helper are not touched.
pub async fn sweep() {
    let (held, cgroups) = abandoned();
    // Unfreezes first: frozen processes cannot be killed everywhere.
    for held in held {
        let gone_on = held
            .path()
            .parent()
            .map(|container| set_frozen(container, false));
        tracing::warn!(path = ?held.path(), ?gone_on, "unfroze a container that a previous helper had frozen");
        let _ = held.remove();
    }
    for cgroup in cgroups.iter().filter(|cgroup| cgroup.populated()) {
        let killed = cgroup.kill();
        tracing::warn!(path = ?cgroup.path(), ?killed, "killed processes that a previous helper left");
    }
    let removed = timeout(SWEEP_TIME, async {
        for cgroup in &cgroups {
            while cgroup
                .remove()
                .is_err_and(|e| e.kind() == io::ErrorKind::ResourceBusy)
            {
                sleep(Duration::from_millis(2)).await;
            }
        }
    });
    if removed.await.is_err() {
        tracing::warn!("some cgroups of a previous helper remain until the next start");
    }
}

/// Returns what dead helpers left: marks of frozen containers, and cgroups of calls. A host has hundreds of cgroups,
/// so one walk finds both.
fn abandoned() -> (Vec<Cgroup>, Vec<Cgroup>) {
    let own_namespace = namespace().unwrap_or_default();
    let alive = |pid| process(pid).map(|p| p.started);
    let (mut held, mut of_calls) = (Vec::new(), Vec::new());
    for path in stale_cgroups(&[HELD, PREFIX]) {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let is_left = |prefix| is_stale(&name, prefix, &own_namespace, alive);
        let left = match (is_left(HELD), is_left(PREFIX)) {
            (true, _) => &mut held,
            (_, true) => &mut of_calls,
            _ => continue,
        };
        left.extend(Cgroup::open(path));
    }
    (held, of_calls)
}

/// The path of descriptor 5, which every child on the way to a reaper inherits.
pub const REAPER_PATH: &std::ffi::CStr = c"/proc/self/fd/5";

/// The arguments that make this program a reaper.
pub fn reaper_argv() -> [CString; 2] {
    [REAPER_PATH.to_owned(), c"__reaper".to_owned()]
}

/// Identifies the creator of a cgroup. The process id alone would not be unique: ids are reused.
fn owner(pid: i32) -> Option<String> {
    Some(format!("{}-{pid}-{}", namespace()?, process(pid)?.started))
}

/// A process id is unique only in one pid namespace, and nested namespaces show their cgroups to the outer one.
fn namespace() -> Option<String> {
    let link = pid_namespace(own_pid())?;
    let digits = link.to_str()?.chars().filter(char::is_ascii_digit);
    Some(digits.collect())
}

fn is_stale(
    name: &str,
    prefix: &str,
    own_namespace: &str,
    started: impl Fn(i32) -> Option<u64>,
) -> bool {
    let parts = name
        .strip_prefix(prefix)
        .map(|rest| rest.split('-').collect::<Vec<_>>());
    let Some([namespace, pid, began, _number]) = parts.as_deref() else {
        return false;
    };
    let (Ok(pid), Ok(began)) = (pid.parse::<i32>(), began.parse::<u64>()) else {
        return false;
    };
    *namespace == own_namespace && started(pid) != Some(began)
}

#[cfg(test)]
mod tests {
    use super::super::helper_context::*;

    #[test]
    fn only_a_dead_owner_of_our_own_namespace_makes_a_cgroup_stale() {
        let alive = |pid| (pid == 7).then_some(100);
        assert!(is_stale("gatewren-exec-40-8-100-1", PREFIX, "40", alive));
        assert!(is_stale("gatewren-exec-40-7-99-1", PREFIX, "40", alive));
        assert!(!is_stale("gatewren-exec-40-7-100-1", PREFIX, "40", alive));
        assert!(!is_stale("gatewren-exec-41-8-100-1", PREFIX, "40", alive));
        assert!(!is_stale("gatewren-exec-40-x-100-1", PREFIX, "40", alive));
        assert!(!is_stale("gatewren-exec-", PREFIX, "40", alive));
        assert!(!is_stale("other", PREFIX, "40", alive));
    }

    #[test]
    fn a_helper_knows_its_own_cgroups_as_alive() {
        let name = format!("{PREFIX}{}-0", owner(own_pid()).unwrap());
        let started = |pid| process(pid).map(|p| p.started);
        assert!(!is_stale(&name, PREFIX, &namespace().unwrap(), started));
    }
}
