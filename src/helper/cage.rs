//! The processes of one call: born together, and all gone when it is torn down.
//!
//! Four layers; each holds where another fails. The reaper kills what left the cgroup. The cgroup kills
//! what outruns the reaper. The host's process table shows what did both: left the cgroup and ended its reaper. The
//! pipe to the reaper, which closes when the helper dies, needs no living helper.

use std::ffi::CString;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::AsyncWriteExt as _;
use tokio::net::unix::pipe::Sender;
use tokio::time::{Instant, sleep, timeout};

use crate::exec::{Ending, Launch, Report};
use crate::sys::{AuditSession, Cgroup, Exit, Spawn, SpawnError, WithParent, pipe};

use super::{
    call_processes::{CallProcesses, Survivors},
    containers::Running,
    frost::kill_frozen,
    house::House,
    outputs::Outputs,
    programs::path_variable,
    reports::Reports,
    strays::{Kept, Strays},
};

/// How long the reaper may take to kill everything; then the helper does it from outside.
const REAPER_TIME: Duration = Duration::from_millis(500);

/// How long a reaper may take to end when the helper has killed everything below it; then it counts as lost.
const SLOW_REAPER_TIME: Duration = Duration::from_secs(5);

/// The pause between two rounds of that.
const ROUND: Duration = Duration::from_millis(20);

/// How many rounds in a row must find nothing before all processes of a call count as dead: with a session, or when
/// those that were found died frozen; without; and when the reaper was lost and nothing could be frozen. The end of a
/// reaper that was not lost shows that it has no child left, so that a session then misses none.
const ROUNDS_OF_SESSION: u32 = 1;
const ROUNDS_WITHOUT: u32 = 4;
const ROUNDS_OF_LOST: u32 = 16;

/// How long the caller waits for the last process to go; one that the kernel cannot end, such as a frozen
/// one, is waited for in the background and named in the log.
const GONE_TIME: Duration = Duration::from_secs(2);

/// The longest wait in the background; then a later helper's sweep has it.
const PATIENCE: Duration = Duration::from_mins(10);

/// What is to be started, up to the reaper.
#[derive(Debug)]
pub struct Recipe<'a> {
    /// The file to execute.
    pub program: CString,
    /// All its arguments; the last of them start the reaper.
    pub argv: Vec<CString>,
    /// The reaper's own program, for whoever finds it as descriptor 5.
    pub reaper: BorrowedFd<'a>,
    /// Where all of it is born.
    pub cgroup: Option<Cgroup>,
    /// Version 1 groups to enter besides, as open `cgroup.procs` files.
    pub memberships: Vec<File>,
    /// The container that it runs in; none on the host.
    pub container: Option<Running>,
}

/// How the end of a call's processes went.
#[derive(Debug)]
pub struct TornDown {
    /// What happened to a reaper that did not do its work to the end.
    pub lost: Option<&'static str>,
    /// What lived when the reaper had ended, and was killed.
    pub survivors: Survivors,
    /// The audit session that all of it was in, where there was one.
    pub session: Option<u32>,
    /// Whether the kernel killed one of them because a cgroup, the call's or one above it, had no memory left.
    pub was_out_of_memory: bool,
}

/// A call's processes.
#[derive(Debug)]
pub struct Cage {
    child: Kept,
    control: Sender,
    reports: Reports,
    cgroup: Option<Cgroup>,
    container: Option<Running>,
    processes: Arc<CallProcesses>,
    ready: bool,
    told: bool,
}

impl Cage {
    /// Starts the way to the reaper; must be called from the helper's main thread, with whose end the
    /// child is killed.
    pub fn spawn(recipe: Recipe<'_>, strays: &Arc<Strays>) -> io::Result<(Self, Outputs)> {
        let (control_reader, control) = pipe()?;
        let (status, status_writer) = pipe()?;
        let (outputs, writers) = Outputs::open()?;
        let nothing = File::open("/dev/null")?;
        let reports = Reports::new(status)?;
        let control = Sender::from_owned_fd(control)?;
        let spawn = Spawn {
            programs: vec![recipe.program],
            argv: recipe.argv,
            env: vec![c"LANG=C.UTF-8".to_owned(), path_variable()],
            fds: vec![
                nothing.as_fd(),
                writers.stdout.as_fd(),
                writers.stderr.as_fd(),
                control_reader.as_fd(),
                status_writer.as_fd(),
                recipe.reaper,
            ],
            directories: vec![c"/".to_owned()],
            cgroup: recipe.cgroup.as_ref().map(Cgroup::fd),
            memberships: recipe.memberships.iter().map(|file| file.as_fd()).collect(),
            with_parent: WithParent::Dies,
            identity: None,
            // On the host root keeps the right to rule the kernel's audit, as auditctl(8) does.
            audit_session: match recipe.container {
                Some(_) => AuditSession::OwnForGood,
                None => AuditSession::Own,
            },
        };
        let child = match strays.start(&spawn) {
            Ok(child) => child,
            Err(error) => {
                abandon(recipe.cgroup.as_ref());
                return Err(spawn_error(error));
            }
        };
        let cage = Self {
            processes: Arc::new(CallProcesses::of(child.pid())),
            child,
            control,
            reports,
            cgroup: recipe.cgroup,
            container: recipe.container,
            ready: false,
            told: false,
        };
        Ok((cage, outputs))
    }

    /// Waits until the reaper is ready; `false` when the way to it failed.
    pub async fn ready(&mut self) -> bool {
        self.ready = self.reports.next().await == Some(Report::Ready);
        if self.ready {
            self.processes.reaper_is_ready();
        }
        self.ready
    }

    /// Hands the command over and waits until it has ended.
    pub async fn run(&mut self, launch: &Launch) -> Ending {
        let mut launch = launch.clone();
        if let Some((name, value)) = self.processes.variable() {
            launch.env.insert(name.to_owned(), value.to_owned());
        }
        if let Err(cause) = self.hand_over(&launch).await {
            tracing::warn!(%cause, "the reaper did not take its command");
        }
        let processes = Arc::clone(&self.processes);
        let mut watching = pin!(processes.watch());
        loop {
            let report = tokio::select! {
                report = self.reports.next() => report,
                () = &mut watching => continue,
            };
            match report {
                Some(Report::Ended(ending)) => {
                    self.told = true;
                    return ending;
                }
                Some(Report::Ready | Report::Started) => {}
                // The reaper is dead, and the command, which is tied to its life, too.
                None => return Ending::Signalled { signal: 9 },
            }
        }
    }

    async fn hand_over(&mut self, launch: &Launch) -> io::Result<()> {
        let bytes = serde_json::to_vec(launch)?;
        let length = u32::try_from(bytes.len()).map_err(io::Error::other)?;
        self.control.write_all(&length.to_be_bytes()).await?;
        self.control.write_all(&bytes).await
    }

    /// Kills all processes of the call. Those that still live when this returns are named in the log.
    pub async fn tear_down(self, house: &House) -> TornDown {
        let Self {
            child,
            control,
            mut reports,
            cgroup,
            container,
            processes,
            ready,
            told,
        } = self;
        // The reaper reads this as the order to kill.
        drop(control);
        let closed = ready && timeout(REAPER_TIME, reports.closed()).await.is_ok();
        let slow = match (closed, ready) {
            (true, _) => Slow::Ended,
            (_, true) => end_slow_reaper(&mut reports, &processes, cgroup.as_ref()).await,
            // A reaper that was not there yet has started nothing.
            _ => Slow::Killed,
        };
        if slow != Slow::Ended {
            child.kill();
            kill_group(cgroup.as_ref());
        }
        let exit = timeout(GONE_TIME, child.wait()).await;
        let finished = matches!(exit, Ok(Ok(Exit::Code(0))));
        let told_twice = told && reports.told_again();
        let lost = lost_reaper(slow, finished || has_ended(container.as_ref()), told_twice);
        let empty_rounds = match lost {
            Some(_) => kill_lost(house, (cgroup.as_ref(), container.as_ref()), &processes).await,
            None if processes.session().is_none() => ROUNDS_WITHOUT,
            None => ROUNDS_OF_SESSION,
        };
        let was_out_of_memory = has_oom_kills(cgroup.as_ref());
        let rest = Rest {
            child,
            cgroup,
            processes,
            empty_rounds,
        };
        let patience = Instant::now() + REAPER_TIME;
        let is_gone = timeout(GONE_TIME, rest.gone(patience)).await.is_ok();
        // The end of a container kills them all: then the processes found were not survivors, but dying.
        let survivors = (finished || lost.is_some()).then(|| rest.processes.survivors());
        let torn_down = TornDown {
            lost,
            survivors: survivors.unwrap_or_default(),
            session: rest.processes.session(),
            was_out_of_memory,
        };
        if !is_gone {
            tracing::warn!(
                pid = rest.child.pid(),
                cgroup = ?rest.cgroup.as_ref().map(Cgroup::path),
                "processes of a call cannot be ended yet; is the container frozen?"
            );
            tokio::spawn(rest.later());
        }
        torn_down
    }
}

/// How a reaper ended that had more to kill than it could in its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Slow {
    /// By itself.
    Ended,
    /// The helper has to kill it, and it is not to blame.
    Killed,
    /// The helper has to kill it: what kept it from its work.
    Lost(&'static str),
}

/// What happened to a reaper that did not do its work to the end, or in whose name the command spoke.
fn lost_reaper(slow: Slow, is_well: bool, told_twice: bool) -> Option<&'static str> {
    match slow {
        Slow::Lost(how) => Some(how),
        Slow::Ended if !is_well => Some("it was killed"),
        // The reaper reports once.
        Slow::Ended if told_twice => Some("the command sent a report in its name"),
        Slow::Ended | Slow::Killed => None,
    }
}

/// Kills from outside what a reaper has not killed, and waits for the end of the reaper. What is frozen cannot end by
/// itself.
async fn end_slow_reaper(
    reports: &mut Reports,
    processes: &Arc<CallProcesses>,
    cgroup: Option<&Cgroup>,
) -> Slow {
    let deadline = Instant::now() + SLOW_REAPER_TIME;
    loop {
        processes.kill_commands().await;
        if timeout(ROUND, reports.closed()).await.is_ok() {
            return Slow::Ended;
        }
        if cgroup.is_some_and(Cgroup::is_frozen) {
            return Slow::Killed;
        }
        if processes.is_reaper_stopped() {
            return Slow::Lost("it was stopped");
        }
        if Instant::now() > deadline {
            return Slow::Lost("it did not end");
        }
    }
}

/// Kills what a lost reaper left; how many rounds that find nothing it then takes.
async fn kill_lost(
    house: &House,
    (cgroup, container): (Option<&Cgroup>, Option<&Running>),
    processes: &Arc<CallProcesses>,
) -> u32 {
    kill_group(cgroup);
    match container {
        Some(container) if kill_frozen(house, container, processes).await => ROUNDS_OF_SESSION,
        _ => ROUNDS_OF_LOST,
    }
}

/// Whether the kernel killed a process of a cgroup for want of memory.
fn has_oom_kills(cgroup: Option<&Cgroup>) -> bool {
    cgroup.is_some_and(|cgroup| cgroup.counted("memory.events", "oom_kill") > 0)
}

/// Whether a container has ended: its end kills what runs in it.
fn has_ended(container: Option<&Running>) -> bool {
    container.is_some_and(|container| !container.still_runs())
}

/// What has been killed and is not gone yet.
struct Rest {
    child: Kept,
    cgroup: Option<Cgroup>,
    processes: Arc<CallProcesses>,
    empty_rounds: u32,
}

impl Rest {
    /// Waits until the child is reaped, nothing of the call lives, and the cgroup is empty and removed; kills the
    /// cgroup again after `patience`.
    async fn gone(&self, patience: Instant) {
        // An error means that it has been waited for already.
        let _ = self.child.wait().await;
        self.processes.kill_all(self.empty_rounds).await;
        let Some(cgroup) = &self.cgroup else {
            return;
        };
        let mut killed = false;
        while cgroup.populated() {
            if !killed && Instant::now() > patience {
                kill_group(Some(cgroup));
                killed = true;
            }
            sleep(Duration::from_millis(1)).await;
        }
        while let Err(cause) = cgroup.remove() {
            if cause.kind() != io::ErrorKind::ResourceBusy {
                tracing::warn!(%cause, cgroup = ?cgroup.path(), "a cgroup could not be removed");
                return;
            }
            sleep(Duration::from_millis(1)).await;
        }
    }

    async fn later(self) {
        let _ = timeout(PATIENCE, self.gone(Instant::now())).await;
    }
}

fn kill_group(cgroup: Option<&Cgroup>) {
    if let Some(Err(cause)) = cgroup.map(Cgroup::kill) {
        tracing::warn!(%cause, "a cgroup could not be killed");
    }
}

/// A cgroup in which nothing was born.
fn abandon(cgroup: Option<&Cgroup>) {
    if let Some(Err(cause)) = cgroup.map(Cgroup::remove) {
        tracing::debug!(%cause, "an unused cgroup stays");
    }
}

fn spawn_error(error: SpawnError) -> io::Error {
    io::Error::new(error.cause.kind(), error)
}
