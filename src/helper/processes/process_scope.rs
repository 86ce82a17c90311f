//! The processes of one call: started together, and all killed when the call is torn down.
//!
//! Four layers cover each other's gaps. The reaper kills processes that left the cgroup. The cgroup kills processes
//! that fork faster than the reaper can kill. A scan of the host's process table finds processes that left the cgroup
//! and killed their reaper. The pipe to the reaper closes when the helper dies, so this layer works without the
//! helper.

use std::fs::File;
use std::io;
use std::os::fd::AsFd as _;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::AsyncWriteExt as _;
use tokio::net::unix::pipe::Sender;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};

use gatewren_base::sys::{Cgroup, Exit, HugePages, OnParentExit, Spawn, SpawnError, pipe};
use gatewren_wire::operations::{OperationEnd, ReaperLaunch, ReaperReport};

use super::call_processes::CallProcesses;
use super::freeze_guard::kill_frozen;
use super::killed_processes::{KilledProcesses, abandon, kill_group};
use super::reports::ReaperReports;
use super::spawn_spec::SpawnSpec;
use super::surviving_processes::SurvivingProcesses;
use crate::context::containers::RunningContainer;
use crate::context::helper_context::HelperContext;
use crate::context::orphans::TrackedChild;
use crate::context::outputs::CommandOutputs;

/// How long the reaper may take to kill everything. After that the helper kills from outside.
const REAPER_TIME: Duration = Duration::from_millis(500);

/// How long a reaper may take to exit after the helper killed everything below it. After that it counts as lost.
const SLOW_REAPER_TIME: Duration = Duration::from_secs(5);

/// The pause between two rounds of that.
const ROUND: Duration = Duration::from_millis(20);

/// How many rounds in a row must find nothing before all processes of a call count as dead. One with a session, or
/// when those found died frozen; more without a session; most when the reaper was lost and nothing could be frozen. A
/// reaper that exits normally has no child left, so a scan by session then misses none.
const ROUNDS_OF_SESSION: u32 = 1;
const ROUNDS_WITHOUT: u32 = 4;
const ROUNDS_OF_LOST: u32 = 16;

/// How long the caller waits for the last process to exit. A process that the kernel cannot end, such as a frozen
/// one, is awaited in the background and named in the log.
const GONE_TIME: Duration = Duration::from_secs(2);

/// How tearing down a call's processes went.
#[derive(Debug)]
pub struct TeardownResult {
    /// What happened to a reaper that did not finish its work.
    pub lost: Option<&'static str>,
    /// Processes that were alive after the reaper exited, and were killed.
    pub survivors: SurvivingProcesses,
    /// The audit session of the processes, if they had one.
    pub session: Option<u32>,
    /// Whether the kernel killed one of them because a cgroup, the call's or one above it, was out of memory.
    pub was_out_of_memory: bool,
}

/// A call's processes.
#[derive(Debug)]
pub struct ProcessScope {
    child: TrackedChild,
    control: Sender,
    reports: ReaperReports,
    cgroup: Option<Cgroup>,
    /// The cgroup of a program that runs as a user. The reaper does not start in the call's cgroup then.
    client_cgroup: Option<Cgroup>,
    runs_as_user: bool,
    container: Option<RunningContainer>,
    processes: Arc<CallProcesses>,
    ready: bool,
    reported: bool,
    /// The look for further processes that began with the report of the command's end.
    early_look: Option<JoinHandle<bool>>,
}

impl ProcessScope {
    /// Starts the chain of programs that leads to the reaper. Must be called from the helper's main thread: the child
    /// is killed when the thread that started it exits.
    pub fn spawn(
        spec: SpawnSpec<'_>,
        helper: &HelperContext,
    ) -> io::Result<(Self, CommandOutputs)> {
        let (control_reader, control) = pipe()?;
        let (status, status_writer) = pipe()?;
        let (outputs, writers) = CommandOutputs::open()?;
        let nothing = File::open("/dev/null")?;
        let reports = ReaperReports::new(status)?;
        let control = Sender::from_owned_fd(control)?;
        let mut fds = vec![
            nothing.as_fd(),
            writers.stdout.as_fd(),
            writers.stderr.as_fd(),
            control_reader.as_fd(),
            status_writer.as_fd(),
            spec.reaper,
        ];
        fds.extend(spec.description.as_ref().map(|file| file.as_fd()));
        let user = spec.runs_as.as_ref();
        let spawn = Spawn {
            programs: vec![spec.program.clone()],
            argv: spec.argv.clone(),
            env: spec.environment(),
            fds,
            directories: vec![c"/".to_owned()],
            cgroup: spec.first_cgroup().map(Cgroup::fd),
            memberships: spec.memberships.iter().map(|file| file.as_fd()).collect(),
            with_parent: OnParentExit::Dies,
            identity: user.map(|user| user.credentials.clone()),
            audit_session: spec.audit_session(),
            huge_pages: HugePages::Inherited,
        };
        let child = match start(helper, &spec, &spawn) {
            Ok(child) => child,
            Err(error) => {
                abandon(spec.cgroup.as_ref());
                abandon(user.and_then(|user| user.cgroup.as_ref()));
                return Err(spawn_error(error));
            }
        };
        let is_reaper = spec.container.is_none();
        let mut scope = Self {
            processes: Arc::new(CallProcesses::of(child.pid(), is_reaper)),
            child,
            control,
            reports,
            cgroup: spec.cgroup,
            runs_as_user: spec.runs_as.is_some(),
            client_cgroup: spec.runs_as.and_then(|user| user.cgroup),
            container: spec.container,
            ready: is_reaper,
            reported: false,
            early_look: None,
        };
        if scope.runs_as_user {
            scope.child.leaves_monitor();
        }
        Ok((scope, outputs))
    }

    /// Waits until the reaper is ready; `false` if it could not be started. One on the host is the call's first process,
    /// which is known at once: its command waits in the pipe until it is ready.
    pub async fn ready(&mut self) -> bool {
        if self.ready {
            return true;
        }
        self.ready = self.reports.next().await == Some(ReaperReport::Ready);
        if self.ready && self.runs_as_user {
            self.processes.find_reaper(&self.reports.pipe());
            self.ready = self.move_reaper();
        } else if self.ready {
            self.processes.reaper_is_ready();
        }
        self.ready
    }

    /// Moves a reaper that a user's Podman has started into the cgroup of the call. Without one, the reaper and the
    /// audit session alone identify the call's processes.
    fn move_reaper(&self) -> bool {
        let (Some(cgroup), Some(reaper)) = (&self.cgroup, self.processes.reaper()) else {
            return self.cgroup.is_none();
        };
        let moved = cgroup.add(reaper.pid);
        if let Err(cause) = &moved {
            tracing::warn!(%cause, cgroup = ?cgroup.path(), "a reaper could not be moved into its cgroup");
        }
        moved.is_ok()
    }

    /// Sends the command to the reaper and waits until it has ended.
    pub async fn run(&mut self, launch: &ReaperLaunch) -> OperationEnd {
        let mut launch = launch.clone();
        if let Some((name, value)) = self.processes.variable() {
            launch.env.insert(name.to_owned(), value.to_owned());
        }
        if let Err(cause) = self.hand_over(&launch).await {
            tracing::warn!(%cause, "the reaper did not accept its command");
        }
        let processes = Arc::clone(&self.processes);
        let mut watching = pin!(processes.watch());
        let mut reaper_ended = pin!(processes.reaper_ended());
        loop {
            let report = tokio::select! {
                // What the reaper has reported before its end is read first.
                biased;
                report = self.reports.next() => report,
                () = &mut reaper_ended => None,
                () = &mut watching => continue,
            };
            match report {
                Some(ReaperReport::Ended(ending)) => {
                    self.reported = true;
                    if self.container.is_none() {
                        self.early_look = processes.look_early();
                    }
                    return ending;
                }
                Some(ReaperReport::Ready | ReaperReport::Started) => {}
                // The reaper is dead. The command, which is tied to its life, is dead too.
                None => return OperationEnd::Signalled { signal: 9 },
            }
        }
    }

    async fn hand_over(&mut self, launch: &ReaperLaunch) -> io::Result<()> {
        let bytes = serde_json::to_vec(launch)?;
        let length = u32::try_from(bytes.len()).map_err(io::Error::other)?;
        self.control.write_all(&length.to_be_bytes()).await?;
        self.control.write_all(&bytes).await
    }

    /// Kills all processes of the call. Those still alive when this returns are named in the log.
    pub async fn tear_down(self, helper: &HelperContext) -> TeardownResult {
        let Self {
            child,
            control,
            mut reports,
            cgroup,
            client_cgroup,
            runs_as_user,
            container,
            processes,
            ready,
            reported,
            early_look,
        } = self;
        // The reaper takes the closed pipe as the order to kill.
        drop(control);
        let closed = ready && timeout(REAPER_TIME, reports.wait_closed()).await.is_ok();
        let slow = match (closed, ready) {
            (true, _) => Slow::Ended,
            (_, true) => end_slow_reaper(&mut reports, &processes, cgroup.as_ref()).await,
            // A reaper that was not ready has started nothing.
            _ => Slow::Killed,
        };
        if slow != Slow::Ended {
            child.kill();
            kill_group(cgroup.as_ref());
        }
        let exit = timeout(GONE_TIME, child.wait()).await;
        let finished = matches!(exit, Ok(Ok(Exit::Code(0))));
        let is_forged = reported && reports.has_second_end();
        let lost = lost_reaper(slow, finished || has_ended(container.as_ref()), is_forged);
        let empty_rounds = match lost {
            Some(_) => kill_lost(helper, cgroup.as_ref(), container.as_ref(), &processes).await,
            None if found_none(early_look).await => 0,
            None => rounds_after(&processes, runs_as_user).await,
        };
        let was_out_of_memory = has_oom_kills(cgroup.as_ref());
        let rest = KilledProcesses {
            child,
            cgroup,
            client_cgroup,
            processes,
            empty_rounds,
        };
        let patience = Instant::now() + REAPER_TIME;
        let is_gone = timeout(GONE_TIME, rest.wait_gone(patience)).await.is_ok();
        // The end of a container kills all its processes: those found then were dying, not survivors.
        let survivors = (finished || lost.is_some()).then(|| rest.processes.survivors());
        let torn_down = TeardownResult {
            lost,
            survivors: survivors.unwrap_or_default(),
            session: rest.processes.session(),
            was_out_of_memory,
        };
        if !is_gone {
            rest.continue_later();
        }
        torn_down
    }
}

/// Starts the reaper, or in a container the program that leads to it.
fn start(
    helper: &HelperContext,
    spec: &SpawnSpec<'_>,
    spawn: &Spawn<'_>,
) -> Result<TrackedChild, SpawnError> {
    match spec.container {
        Some(_) => helper.orphans.start(spawn),
        None => helper.reapers.reaper(&helper.orphans, spawn),
    }
}

/// How a slow reaper ended: one that had more to kill than it could in its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Slow {
    /// It exited on its own.
    Ended,
    /// The helper has to kill it, through no fault of the reaper.
    Killed,
    /// The helper has to kill it, for this reason.
    Lost(&'static str),
}

/// Returns what happened to a reaper that did not finish its work, or whose reports the command forged.
fn lost_reaper(slow: Slow, is_well: bool, is_forged: bool) -> Option<&'static str> {
    match slow {
        Slow::Lost(how) => Some(how),
        Slow::Ended if !is_well => Some("it was killed"),
        // The reaper sends this report once.
        Slow::Ended if is_forged => Some("the command sent a forged report"),
        Slow::Ended | Slow::Killed => None,
    }
}

/// Kills from outside what the reaper has not killed, and waits for the reaper to exit. A frozen process cannot exit
/// on its own.
async fn end_slow_reaper(
    reports: &mut ReaperReports,
    processes: &Arc<CallProcesses>,
    cgroup: Option<&Cgroup>,
) -> Slow {
    let deadline = Instant::now() + SLOW_REAPER_TIME;
    loop {
        processes.kill_commands().await;
        if timeout(ROUND, reports.wait_closed()).await.is_ok() {
            return Slow::Ended;
        }
        if cgroup.is_some_and(Cgroup::is_frozen) {
            return Slow::Killed;
        }
        if processes.is_reaper_stopped() {
            return Slow::Lost("it was stopped");
        }
        if Instant::now() > deadline {
            return Slow::Lost("it did not exit");
        }
    }
}

/// Kills what a lost reaper left. Returns how many empty rounds are then needed.
async fn kill_lost(
    helper: &HelperContext,
    cgroup: Option<&Cgroup>,
    container: Option<&RunningContainer>,
    processes: &Arc<CallProcesses>,
) -> u32 {
    kill_group(cgroup);
    match container {
        Some(container) if kill_frozen(helper, container, processes).await => ROUNDS_OF_SESSION,
        _ => ROUNDS_OF_LOST,
    }
}

/// Returns whether the early look found no process but the reaper.
async fn found_none(early_look: Option<JoinHandle<bool>>) -> bool {
    match early_look {
        Some(look) => look.await.unwrap_or(false),
        None => false,
    }
}

/// Returns how many empty rounds are needed after a reaper that did its work. Waits for what a user's Podman does then.
async fn rounds_after(processes: &CallProcesses, runs_as_user: bool) -> u32 {
    if runs_as_user {
        processes.wait_for_leading(REAPER_TIME).await;
    }
    match processes.session() {
        Some(_) => ROUNDS_OF_SESSION,
        None => ROUNDS_WITHOUT,
    }
}

/// Returns whether the kernel killed a process of a cgroup because memory ran out.
fn has_oom_kills(cgroup: Option<&Cgroup>) -> bool {
    cgroup.is_some_and(|cgroup| cgroup.counter("memory.events", "oom_kill") > 0)
}

/// Returns whether a container has ended, which kills all its processes.
fn has_ended(container: Option<&RunningContainer>) -> bool {
    container.is_some_and(|container| !container.still_runs())
}

fn spawn_error(error: SpawnError) -> io::Error {
    io::Error::new(error.cause.kind(), error)
}
