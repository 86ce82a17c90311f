//! The helper's main loop: listens, accepts only the front, and kills everything when it ends.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::AsyncReadExt as _;
use tokio::net::UnixStream;
use tokio::net::unix::pipe::Receiver;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Interval, MissedTickBehavior, interval, sleep, timeout};

use gatewren_base::config::{ConfigError, HelperPolicy, LiveSettingsSender};
use gatewren_base::sys::{adopt_orphans, hold_few_program_pages};
use gatewren_base::telemetry::SdNotify;

use super::connection::serve_connection;
use super::container_move::settle_all;
use crate::context::definitions::ContainerDefinitions;
use crate::context::helper_context::{HelperContext, sweep};
use crate::context::jobs::JobTable;
use crate::context::limits::MAX_CONNECTIONS;
use crate::processes::reaper::reap;

/// How long killing the running calls may take when the helper ends. Their processes die with the helper in any case.
const STOP_TIME: Duration = Duration::from_secs(5);

/// The pause after a failed accept, for example when no descriptor is free.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// How often to look for orphans while a call runs that starts processes for its caller.
const STRAY_TIME: Duration = Duration::from_secs(1);

/// The same while only event streams are open, which a front always has.
const QUIET_STRAY_TIME: Duration = Duration::from_secs(30);

/// The directory of the jobs, below the state directory.
const JOBS: &str = "jobs";

/// The status for `systemctl status`.
const SERVING: &str = "serving the front";

/// A pipe that the parent of the helper holds open as long as the helper is to run.
#[derive(Debug)]
pub struct Lifeline(pub OwnedFd);

/// Reads the owner's policy file.
pub type ReadPolicy = Box<dyn Fn(&Path) -> Result<HelperPolicy, ConfigError> + Send + Sync>;

/// The settings of a helper.
pub struct HelperOptions {
    /// The socket where the front connects.
    pub listener: UnixListener,
    /// The directory of the containers.
    pub lxcpath: PathBuf,
    /// The directory of Proxmox VE's definitions, on a host that has it.
    pub proxmox: PathBuf,
    /// The only user whose connections are accepted.
    pub allow_uid: u32,
    /// The owner's policy.
    pub policy: HelperPolicy,
    /// The policy file, which is read again on SIGHUP.
    pub policy_file: PathBuf,
    /// Reads the policy file.
    pub read_policy: ReadPolicy,
    /// The state directory; without it no job can start.
    pub state: Option<PathBuf>,
    /// Stops the helper when it closes.
    pub lifeline: Option<Lifeline>,
}

/// Serves until SIGTERM, SIGINT or the end of the lifeline. Then kills every call and job and returns.
///
/// # Errors
/// Fails if the socket or the signals cannot be used.
pub async fn serve(settings: HelperOptions) -> io::Result<()> {
    if let Err(cause) = adopt_orphans() {
        tracing::error!(%cause, "orphans cannot be adopted here (is this an emulator?); all commands are refused");
    }
    sweep().await;
    settings.listener.set_nonblocking(true)?;
    let listener = tokio::net::UnixListener::from_std(settings.listener)?;
    let mut shutdown = ShutdownEvents::new(settings.lifeline)?;
    let (stop, stopping) = watch::channel(false);
    let definitions = ContainerDefinitions::new(settings.lxcpath, settings.proxmox);
    let policy = LiveSettingsSender::new(settings.policy);
    let jobs = JobTable::open(settings.state.as_ref().map(|state| state.join(JOBS)));
    let (live, front_uid) = (policy.live(), settings.allow_uid);
    let helper = HelperContext::new(definitions, live, jobs, stopping, front_uid);
    let helper = Arc::new(helper.with_state(settings.state));
    helper.reapers.start(&helper.orphans, reap);
    let mut calls = JoinSet::new();
    let mut few_pages = pin!(hold_few_program_pages());
    let mut children = signal(SignalKind::child())?;
    let mut reloads = signal(SignalKind::hangup())?;
    let (mut tick, mut quiet_tick) = (tick_interval(STRAY_TIME), tick_interval(QUIET_STRAY_TIME));
    let notify = SdNotify::from_env();
    // Three notifications in the watchdog's timeout.
    let mut sign_of_life = notify.watchdog().map(|limit| interval(limit / 3));
    tracing::info!(uid = settings.allow_uid, lxcpath = ?helper.containers.lxcpath(), "helper is listening");
    tokio::spawn(settle_all(Arc::clone(&helper)));
    notify.status(SERVING);
    notify.ready();
    let why = loop {
        tokio::select! {
            why = shutdown.next() => break why,
            accepted = listener.accept(), if calls.len() < MAX_CONNECTIONS => match accepted {
                Ok((stream, _)) if may_enter(&stream, settings.allow_uid, &helper) => {
                    calls.spawn(serve_connection(Arc::clone(&helper), stream));
                }
                Ok(_) => {}
                Err(cause) => {
                    tracing::warn!(%cause, "accept");
                    sleep(ACCEPT_PAUSE).await;
                }
            },
            Some(ended) = calls.join_next() => {
                if let Err(cause) = ended {
                    tracing::error!(%cause, "a call's task failed");
                }
            }
            _ = children.recv() => drop(helper.orphans.sweep()),
            _ = reloads.recv() => reload(&settings.policy_file, &settings.read_policy, &policy, &notify),
            _ = tick.tick(), if calls.len() > helper.listeners() || helper.jobs.running() > 0 => drop(helper.orphans.sweep()),
            () = wait_for_tick(sign_of_life.as_mut()) => notify.alive(),
            () = &mut few_pages => {}
            _ = quiet_tick.tick(), if !calls.is_empty() => drop(helper.orphans.sweep()),
        }
    };
    notify.stopping();
    tracing::info!(why, calls = calls.len(), "helper is stopping");
    stop.send_replace(true);
    end_calls(&helper, calls).await;
    Ok(())
}

/// Waits for the next tick; forever if there is no interval.
async fn wait_for_tick(pace: Option<&mut Interval>) {
    match pace {
        Some(pace) => drop(pace.tick().await),
        None => std::future::pending().await,
    }
}

/// Handles `systemctl reload`: reads the policy file again. Running calls go on. If the file is invalid, the previous
/// policy stays in force.
fn reload(
    file: &Path,
    read: &ReadPolicy,
    policy: &LiveSettingsSender<HelperPolicy>,
    notify: &SdNotify,
) {
    notify.reloading();
    match read(file) {
        Ok(read) => {
            let same = *policy.now() == read;
            policy.replace(read);
            let what = if same { "the same" } else { "another" };
            tracing::info!(file = %file.display(), "reloaded; {what} policy is in force");
            notify.status(SERVING);
        }
        Err(error) => {
            let wrong = error.summary();
            tracing::error!("not reloaded; the previous policy stays in force: {wrong}");
            notify.status(&format!("{SERVING}; not reloaded: {wrong}"));
        }
    }
    notify.ready();
}

/// Missed ticks are not made up for: after a quiet hour one sweep is enough.
fn tick_interval(every: Duration) -> Interval {
    let mut ticks = interval(every);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks
}

async fn end_calls(helper: &HelperContext, mut calls: JoinSet<()>) {
    let all = async {
        while calls.join_next().await.is_some() {}
        helper.jobs.idle().await;
    };
    if timeout(STOP_TIME, all).await.is_err() {
        tracing::warn!("some calls did not end in time");
    }
    // Killing one stray may make its children the helper's.
    for _ in 0..100 {
        if helper.orphans.sweep() == 0 {
            break;
        }
        sleep(Duration::from_millis(5)).await;
    }
}

/// The socket's mode already keeps other users out. This check still holds if the mode was changed.
fn may_enter(stream: &UnixStream, allow_uid: u32, helper: &HelperContext) -> bool {
    match stream.peer_cred() {
        Ok(peer) if peer.uid() == allow_uid => true,
        Ok(peer) => {
            helper.complaints.log(|suppressed| {
                tracing::warn!(
                    uid = peer.uid(),
                    pid = peer.pid(),
                    suppressed,
                    "refused a connection from another user"
                );
            });
            false
        }
        Err(cause) => {
            helper.complaints.log(|suppressed| {
                tracing::warn!(%cause, suppressed, "refused a connection without credentials");
            });
            false
        }
    }
}

/// The events that end the helper.
struct ShutdownEvents {
    terminate: Signal,
    interrupt: Signal,
    lifeline: Option<Receiver>,
}

impl ShutdownEvents {
    fn new(lifeline: Option<Lifeline>) -> io::Result<Self> {
        let lifeline = lifeline.map(|Lifeline(pipe)| Receiver::from_owned_fd(pipe));
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            lifeline: lifeline.transpose()?,
        })
    }

    async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.terminate.recv() => "SIGTERM",
            _ = self.interrupt.recv() => "SIGINT",
            () = wait_until_closed(self.lifeline.as_mut()) => "the lifeline closed",
        }
    }
}

async fn wait_until_closed(lifeline: Option<&mut Receiver>) {
    let Some(pipe) = lifeline else {
        return std::future::pending().await;
    };
    // Nothing is ever sent over the pipe; unexpected bytes are discarded.
    while let Ok(1..) = pipe.read(&mut [0; 64]).await {}
}
