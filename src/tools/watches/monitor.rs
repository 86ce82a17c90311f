//! Checks all watches at their times, and sends the messages that are due.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

use super::condition::{WatchKind, WatchSpec};
use super::message::notice;
use super::permission::check_permission;
use super::phase::{WatchReading, WatchState};
use super::probes::WatchProbes;
use gatewren_base::sys::{Requester, now_ms, on_behalf_of};
use gatewren_gate::auth::{Agents, AuthError};
use gatewren_store::state::{Author, Notifications};
use gatewren_store::vault::{StoredWatch, Vault};

/// The maximum number of checks at once; others wait for their turn.
const AT_ONCE: usize = 8;

/// The shortest time between two checks of the same watch, whatever happens.
const GAP: Duration = Duration::from_secs(1);

/// The longest pause between two looks at the list of watches.
const IDLE: Duration = Duration::from_mins(1);

/// How old the stored time of the last check may become before it is written again.
const WRITE_EVERY_MS: u64 = 60_000;

/// Checks the watches.
pub struct WatchMonitor {
    /// The watches.
    pub vault: Vault,
    /// The agents, with their permissions of now.
    pub agents: Agents,
    /// What checks read.
    pub probes: Arc<WatchProbes>,
    /// Where messages are added.
    pub notifications: Notifications,
}

/// A watch between two checks.
struct ScheduledWatch {
    watch: StoredWatch,
    spec: WatchSpec,
    state: WatchState,
    /// The earliest time of the next check after an event.
    ready: Instant,
    next: Instant,
    is_running: bool,
}

/// The end of a check.
struct FinishedCheck {
    id: String,
    /// The new state; `None` if the watch was removed.
    state: Option<WatchState>,
}

type Schedule = BTreeMap<String, ScheduledWatch>;

impl WatchMonitor {
    /// Checks the watches while it runs.
    pub async fn run(self) {
        let monitor = Arc::new(self);
        let mut changes = monitor.vault.watches().changes();
        let mut revisions = monitor.probes.state.watch_revision();
        let mut schedule = Schedule::new();
        let mut running: JoinSet<FinishedCheck> = JoinSet::new();
        monitor.load(&mut schedule);
        loop {
            monitor.start_due(&mut schedule, &mut running);
            let next = next_check(&schedule, running.len());
            tokio::select! {
                added = changes.changed() => {
                    if added.is_err() { return }
                    monitor.load(&mut schedule);
                }
                revised = revisions.changed() => {
                    if revised.is_err() { return }
                    check_soon(&mut schedule);
                }
                Some(ended) = running.join_next() => match ended {
                    Ok(finished) => finish(&mut schedule, finished),
                    Err(cause) => tracing::error!(%cause, "a check of a watch has failed"),
                },
                () = sleep_until(next) => {}
            }
        }
    }

    /// Reads the list of watches; those that are known keep their times.
    fn load(&self, schedule: &mut Schedule) {
        let all = match self.vault.watches().list() {
            Ok(all) => all,
            Err(cause) => {
                tracing::error!(%cause, "cannot read the watches");
                return;
            }
        };
        schedule.retain(|id, _| all.iter().any(|watch| watch.id == *id));
        let now = Instant::now();
        for watch in all {
            let known = schedule.get(&watch.id);
            if known.is_some_and(|known| known.watch.spec == watch.spec) {
                continue;
            }
            let parsed: Result<WatchSpec, _> = serde_json::from_str(&watch.spec);
            let stored: Result<WatchState, _> = serde_json::from_str(&watch.state);
            let (Ok(spec), Ok(stored)) = (parsed, stored) else {
                tracing::error!(
                    watch = watch.id,
                    "cannot read a watch; a newer gatewren wrote it"
                );
                continue;
            };
            // The state in memory may be newer than the stored one.
            let mut state = known.map_or(stored, |known| known.state.clone());
            if known.is_some_and(|known| known.spec.paused) && !spec.paused {
                state.resume(now_ms());
            }
            let one = ScheduledWatch {
                spec,
                state,
                ready: now,
                next: now,
                // A check that runs when the watch is paused or resumed ends as it began.
                is_running: known.is_some_and(|known| known.is_running),
                watch,
            };
            schedule.insert(one.watch.id.clone(), one);
        }
    }

    /// Starts the checks that are due, the most overdue first.
    fn start_due(self: &Arc<Self>, schedule: &mut Schedule, running: &mut JoinSet<FinishedCheck>) {
        let now = Instant::now();
        let mut due: Vec<&mut ScheduledWatch> = schedule
            .values_mut()
            .filter(|one| !one.is_running && !one.spec.paused && one.next <= now)
            .collect();
        due.sort_by_key(|one| one.next);
        for one in due {
            if running.len() >= AT_ONCE {
                return;
            }
            one.is_running = true;
            let (watch, spec, state) = (one.watch.clone(), one.spec.clone(), one.state.clone());
            let monitor = Arc::clone(self);
            running.spawn(async move {
                let requester = Requester::Agent(watch.agent.as_str().into());
                let id = watch.id.clone();
                let check = Box::pin(monitor.check(watch, spec, state));
                let state = on_behalf_of(requester, check).await;
                FinishedCheck { id, state }
            });
        }
    }

    /// Checks one watch, and returns its new state; `None` if it no longer exists.
    async fn check(
        &self,
        watch: StoredWatch,
        spec: WatchSpec,
        before: WatchState,
    ) -> Option<WatchState> {
        let reading = match self.agents.present(&watch.agent) {
            Ok(who) => match check_permission(&who, &spec) {
                Ok(()) => self.probes.read(&spec, who.reach(), &watch.id).await,
                Err(why) => WatchReading::Stopped(why),
            },
            Err(why @ (AuthError::Revoked | AuthError::Unknown)) => {
                self.end_watches_of(&watch.agent, why).await;
                return None;
            }
            Err(AuthError::Unavailable) => {
                WatchReading::Unknown("the agents cannot be read at the moment".to_owned())
            }
            Err(why) => WatchReading::Stopped(format!("its agent has no access: {why}")),
        };
        let (mut state, now) = (before.clone(), now_ms());
        let due = state.advance(reading, u64::from(spec.for_s) * 1_000, now);
        if !state.is_worth_writing(&before, WRITE_EVERY_MS) {
            return Some(before);
        }
        // Stored before it is sent, so that no message is sent twice.
        let stored = match serde_json::to_string(&state) {
            Ok(text) => self.vault.watches().set_state(&watch.id, text).await,
            Err(cause) => {
                tracing::error!(%cause, watch = watch.id, "cannot write a watch as JSON");
                return Some(before);
            }
        };
        match stored {
            Ok(false) => return None,
            Ok(true) => {}
            Err(cause) => {
                tracing::error!(%cause, watch = watch.id, "cannot store the state of a watch");
                return Some(before);
            }
        }
        if let Some(due) = due {
            let notice = notice(due, &watch, &spec, &state);
            tracing::info!(
                watch = watch.id,
                title = notice.title,
                "a watch notifies the owner"
            );
            if let Err(cause) = self.notifications.add(&Author::observer(), notice).await {
                tracing::error!(%cause, watch = watch.id, "cannot store a notification");
            }
        }
        Some(state)
    }

    async fn end_watches_of(&self, agent: &str, why: AuthError) {
        match self.vault.watches().remove_of_agent(agent).await {
            Ok(ended) => tracing::info!(agent, ended, %why, "the watches of an agent have ended"),
            Err(cause) => tracing::error!(%cause, agent, "cannot remove an agent's watches"),
        }
    }
}

/// When the loop must look again without an event.
fn next_check(schedule: &Schedule, running: usize) -> Instant {
    let idle = Instant::now() + IDLE;
    if running >= AT_ONCE {
        return idle;
    }
    let waiting = schedule
        .values()
        .filter(|one| !one.is_running && !one.spec.paused);
    waiting.map(|one| one.next).min().unwrap_or(idle).min(idle)
}

/// Brings forward the checks that only read the state document, because it has changed.
fn check_soon(schedule: &mut Schedule) {
    for one in schedule.values_mut() {
        if one.spec.kind == WatchKind::Container {
            one.next = one.next.min(one.ready);
        }
    }
}

/// Plans the next check of a watch.
fn finish(schedule: &mut Schedule, finished: FinishedCheck) {
    let FinishedCheck { id, state } = finished;
    let Some(state) = state else {
        schedule.remove(&id);
        return;
    };
    let Some(one) = schedule.get_mut(&id) else {
        return;
    };
    let every = Duration::from_secs(one.spec.every_s.into());
    let for_ms = u64::from(one.spec.for_s) * 1_000;
    let fires_in = state
        .fires_in_ms(for_ms, now_ms())
        .map(Duration::from_millis);
    let pause = fires_in.map_or(every, |fires| fires.min(every)).max(GAP);
    let now = Instant::now();
    (one.ready, one.next) = (now + GAP, now + pause);
    (one.state, one.is_running) = (state, false);
}
