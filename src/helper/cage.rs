//! The processes of one call: born together, and all gone when it is torn down.
//!
//! Layers, each of which holds where another does not: the reaper keeps what leaves the cgroup, the cgroup
//! keeps what outruns or kills the reaper, and the pipe to the reaper, which closes when the helper dies,
//! needs nobody alive to work.

use std::ffi::CString;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::sync::Arc;
use std::time::Duration;

use tokio::io::AsyncWriteExt as _;
use tokio::net::unix::pipe::Sender;
use tokio::time::{Instant, sleep, timeout};

use crate::exec::{Ending, Launch, Report};
use crate::sys::{Cgroup, Spawn, SpawnError, WithParent, pipe};

use super::{
    outputs::Outputs,
    programs::path_variable,
    reports::Reports,
    strays::{Kept, Strays},
};

/// How long the reaper may take to kill everything; then the cgroup is killed in one step.
const REAPER_TIME: Duration = Duration::from_millis(500);

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
}

/// A call's processes.
#[derive(Debug)]
pub struct Cage {
    child: Kept,
    control: Sender,
    reports: Reports,
    cgroup: Option<Cgroup>,
    ready: bool,
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
        };
        let child = match strays.start(&spawn) {
            Ok(child) => child,
            Err(error) => {
                abandon(recipe.cgroup.as_ref());
                return Err(spawn_error(error));
            }
        };
        let cage = Self {
            child,
            control,
            reports,
            cgroup: recipe.cgroup,
            ready: false,
        };
        Ok((cage, outputs))
    }

    /// Waits until the reaper stands; `false` when the way to it failed.
    pub async fn ready(&mut self) -> bool {
        self.ready = self.reports.next().await == Some(Report::Ready);
        self.ready
    }

    /// Hands the command over and waits until it has ended.
    pub async fn run(&mut self, launch: &Launch) -> Ending {
        if let Err(cause) = self.hand_over(launch).await {
            tracing::warn!(%cause, "the reaper did not take its command");
        }
        loop {
            match self.reports.next().await {
                Some(Report::Ended(ending)) => return ending,
                Some(Report::Ready | Report::Started) => {}
                // Somebody killed the reaper, and with it the command.
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

    /// Kills whatever is left; when this returns, nothing is, or the log says what.
    pub async fn tear_down(self) {
        let Self {
            child,
            control,
            mut reports,
            cgroup,
            ready,
        } = self;
        // The reaper reads this as the order to kill.
        drop(control);
        // A reaper that was not there yet has started nothing.
        if !ready || timeout(REAPER_TIME, reports.closed()).await.is_err() {
            child.kill();
            kill_group(cgroup.as_ref());
        }
        let begun = Instant::now();
        let rest = Rest { child, cgroup };
        if timeout(GONE_TIME, rest.gone(begun + REAPER_TIME))
            .await
            .is_ok()
        {
            return;
        }
        tracing::warn!(
            pid = rest.child.pid(),
            cgroup = ?rest.cgroup.as_ref().map(Cgroup::path),
            "processes of a call cannot be ended yet; is the container frozen?"
        );
        tokio::spawn(rest.later());
    }
}

/// What has been killed and is not gone yet.
struct Rest {
    child: Kept,
    cgroup: Option<Cgroup>,
}

impl Rest {
    /// Waits until the child is reaped and the cgroup is empty and removed; kills it again after `patience`.
    async fn gone(&self, patience: Instant) {
        // An error means that it has been waited for already.
        let _ = self.child.wait().await;
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
