//! Runs the calls of schedules at their times: each run is judged, recorded in the audit, and reported if it fails.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use super::run::carry_out;
use crate::dispatch::engine::Engine;
use crate::dispatch::in_flight::DrainGuard;
use crate::dispatch::vault_worker::{RunningItems, VaultWorker, run_until_stop};
use gatewren_base::sys::{Calendar, now_ms};
use gatewren_gate::auth::AuthError;
use gatewren_store::state::{Author, Notice, Notifications};
use gatewren_store::vault::{DueRun, RunTurn, Schedule, Vault, VaultError};
use gatewren_wire::registry::Scope;

/// The maximum time between two checks, because the clock can be set.
const LOOK: Duration = Duration::from_secs(30);

/// A run that begins later than this after its time was missed, in milliseconds.
const MISSED_MS: u64 = 60_000;

/// A last run that is this far in the future was at a time of a wrong clock, in milliseconds.
const WRONG_CLOCK_MS: u64 = 86_400_000;

/// Marks the runs that a previous server left running as unknown. Must be called before any run is started.
pub async fn end_abandoned_runs(vault: &Vault) -> Result<(), VaultError> {
    let ended = vault.schedules().end_abandoned_runs().await?;
    if ended > 0 {
        tracing::warn!(
            ended,
            "scheduled calls were running when the previous server ended; their outcome is unknown"
        );
    }
    Ok(())
}

/// The decision about a schedule at a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Timing {
    /// A run is due.
    Due(DueTime),
    /// The next run is at this time, if there is one.
    Wait(Option<u64>),
    /// A run was missed and is not made up for; the next one is at this time.
    Skip(Option<u64>),
}

/// The time that a run is for, in milliseconds since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct DueTime {
    due_ms: u64,
    caught_up: bool,
    next_ms: Option<u64>,
}

/// Decides what to do about an active schedule.
fn timing(schedule: &Schedule, calendar: &Calendar, now: u64) -> Timing {
    let following = calendar.next_after(now);
    if schedule.run_now {
        return Timing::Due(DueTime {
            due_ms: now,
            caught_up: false,
            next_ms: following,
        });
    }
    match schedule.next_ms {
        Some(due_ms) if due_ms <= now => {
            let caught_up = now - due_ms > MISSED_MS;
            if caught_up && !schedule.catch_up {
                return Timing::Skip(following);
            }
            Timing::Due(DueTime {
                due_ms,
                caught_up,
                next_ms: following,
            })
        }
        // Calculated again each time: the clock or the time zone may have been changed.
        _ => {
            let last = schedule.last_due_ms.unwrap_or(0);
            let is_right = last <= now.saturating_add(WRONG_CLOCK_MS);
            let from = if is_right { last.max(now) } else { now };
            Timing::Wait(calendar.next_after(from))
        }
    }
}

/// The worker that runs schedules.
struct ScheduleRunner {
    engine: Arc<Engine>,
    vault: Vault,
}

impl Engine {
    /// Runs the calls of schedules at their times, and ends the schedules of agents without access, for as long as it
    /// runs. It starts none after the server begins to stop.
    pub async fn run_schedules(self: Arc<Self>) {
        let (Some(vault), true) = (self.vault.clone(), self.inbox.is_some()) else {
            return;
        };
        let runner = ScheduleRunner {
            engine: self.clone(),
            vault: vault.clone(),
        };
        run_until_stop(&self, &vault, runner).await;
    }
}

impl VaultWorker for ScheduleRunner {
    /// The id of the schedule.
    type Item = String;

    const READS: &'static str = "the schedules";

    const LOOK: Duration = LOOK;

    async fn start_due(
        &mut self,
        running: &mut RunningItems<String>,
    ) -> Result<Duration, VaultError> {
        let mut all = self.vault.schedules().list()?;
        all.retain(Schedule::is_active);
        self.end_without_access(&all).await?;
        let now = now_ms();
        let mut pause = LOOK;
        for schedule in all {
            let Ok(calendar) = schedule.at.parse::<Calendar>() else {
                let words = "Its times cannot be read.".to_owned();
                self.vault.schedules().end(&schedule.id, words).await?;
                continue;
            };
            // Runs of one schedule never overlap: a run that becomes due during another one starts after it.
            if running.any(|id| *id == schedule.id) {
                continue;
            }
            match timing(&schedule, &calendar, now) {
                Timing::Due(due) if running.has_room() => {
                    let (engine, vault) = (self.engine.clone(), self.vault.clone());
                    running.start(schedule.id.clone(), run_one(engine, vault, schedule, due));
                }
                Timing::Due(_) => {}
                Timing::Skip(next) => {
                    tracing::warn!(schedule = schedule.id, "a missed run is not made up for");
                    self.vault.schedules().set_next(&schedule.id, next).await?;
                }
                Timing::Wait(next) => {
                    if next != schedule.next_ms {
                        self.vault.schedules().set_next(&schedule.id, next).await?;
                    }
                    let left = next.map(|next| Duration::from_millis(next.saturating_sub(now) + 1));
                    pause = left.map_or(pause, |left| pause.min(left));
                }
            }
        }
        Ok(pause)
    }
}

impl ScheduleRunner {
    async fn end_without_access(&self, active: &[Schedule]) -> Result<(), VaultError> {
        let Some(inbox) = &self.engine.inbox else {
            return Ok(());
        };
        let agents: BTreeSet<&str> = active.iter().map(|one| one.agent.as_str()).collect();
        for agent in agents {
            let Err(error @ (AuthError::Revoked | AuthError::Unknown | AuthError::Expired)) =
                inbox.agents.present(agent)
            else {
                continue;
            };
            for schedule in active.iter().filter(|one| one.agent == agent) {
                let words = format!("Its agent has no access: {error}.");
                self.vault.schedules().end(&schedule.id, words).await?;
                tracing::warn!(
                    schedule = schedule.id,
                    agent,
                    "ended a schedule of an agent without access"
                );
            }
        }
        Ok(())
    }
}

/// Makes one run; if it cannot be recorded, the error is logged.
async fn run_one(engine: Arc<Engine>, vault: Vault, schedule: Schedule, due: DueTime) {
    // Counted before `stop` is read: either the drain waits for this run, or the run sees `stop`.
    let _in_flight = DrainGuard::begin(&engine.in_flight);
    if *engine.stop.borrow() {
        return;
    }
    if let Err(cause) = attempt(&engine, &vault, &schedule, due).await {
        tracing::error!(%cause, schedule = schedule.id, "cannot record a run of a schedule");
        tokio::time::sleep(LOOK).await;
    }
}

async fn attempt(
    engine: &Arc<Engine>,
    vault: &Vault,
    schedule: &Schedule,
    due: DueTime,
) -> Result<(), VaultError> {
    let table = vault.schedules();
    let due = DueRun {
        due_ms: due.due_ms,
        next_ms: due.next_ms,
        caught_up: due.caught_up,
    };
    let Some(begun) = table.begin(&schedule.id, due).await? else {
        return Ok(());
    };
    let end = carry_out(engine, &begun).await;
    tracing::info!(
        schedule = schedule.id,
        outcome = end.outcome.as_str(),
        caught_up = due.caught_up,
        "a scheduled call of {} has ended",
        schedule.tool
    );
    let turn = table.end_run(begun, end).await?;
    notify_owner(engine, schedule, turn).await;
    Ok(())
}

/// Notifies the owner when a schedule begins to fail, and when it succeeds again. The notification contains no
/// argument and no agent: others who may access the container can read it.
async fn notify_owner(engine: &Engine, schedule: &Schedule, turn: RunTurn) {
    let Some(inbox) = &engine.inbox else { return };
    let (level, title) = match turn {
        RunTurn::Same => return,
        RunTurn::Broke => ("error", "a scheduled call failed"),
        RunTurn::Recovered => ("info", "a scheduled call succeeds again"),
    };
    let tool = engine.catalog.tool(&schedule.tool);
    let is_container = tool.is_some_and(|tool| match tool.scope() {
        Scope::Container(argument) | Scope::HostOr(argument) => schedule
            .arguments()
            .is_some_and(|a| a.contains_key(argument)),
        Scope::Server | Scope::Host | Scope::Within | Scope::Stack(_) => false,
    });
    let notice = Notice {
        container: schedule.target.clone().filter(|_| is_container),
        level,
        title: title.to_owned(),
        message: format!(
            "{}: gatewren schedule show {} has its runs and their errors.",
            schedule.tool, schedule.id
        ),
        change: None,
    };
    let notifications = Notifications::new(inbox.state.clone());
    if let Err(cause) = notifications.add(&Author::observer(), notice).await {
        tracing::warn!(%cause, "cannot store a notification");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gatewren_base::sys::moment_ms;

    fn at(text: &str) -> u64 {
        moment_ms(&format!("2026-11-{text}Z")).unwrap()
    }

    fn nightly(next: Option<&str>, last: Option<&str>, catch_up: bool) -> Schedule {
        Schedule {
            id: "sch_1".to_owned(),
            agent: "a".to_owned(),
            space: "*".to_owned(),
            name: "n".to_owned(),
            tool: "t".to_owned(),
            target: None,
            arguments: "{}".to_owned(),
            at: "03:00 UTC".to_owned(),
            catch_up,
            preset: "operate".to_owned(),
            overrides: "{}".to_owned(),
            approval: None,
            created_ms: 0,
            paused: false,
            ended: None,
            next_ms: next.map(at),
            last_due_ms: last.map(at),
            run_now: false,
            failing: false,
        }
    }

    fn decide(schedule: &Schedule, now: &str) -> Timing {
        timing(schedule, &"03:00 UTC".parse().unwrap(), at(now))
    }

    #[test]
    fn a_run_is_due_at_its_time_and_a_missed_one_is_made_up_for_once() {
        let next = Some("26T03:00:00");
        let due = |caught_up, next_ms| {
            Timing::Due(DueTime {
                due_ms: at("26T03:00:00"),
                caught_up,
                next_ms: Some(at(next_ms)),
            })
        };
        let one = nightly(next, None, true);
        let wait = Timing::Wait(Some(at("26T03:00:00")));
        assert_eq!(decide(&one, "26T02:59:59"), wait);
        assert_eq!(decide(&one, "26T03:00:00"), due(false, "27T03:00:00"));
        assert_eq!(decide(&one, "29T12:00:00"), due(true, "30T03:00:00"));
        let one = nightly(next, None, false);
        assert_eq!(decide(&one, "26T03:00:30"), due(false, "27T03:00:00"));
        let skip = Timing::Skip(Some(at("30T03:00:00")));
        assert_eq!(decide(&one, "29T12:00:00"), skip);
    }

    #[test]
    fn a_clock_that_is_set_back_repeats_no_run_and_a_wrong_clock_delays_none() {
        // Set back by some minutes after the run.
        let one = nightly(Some("27T03:00:00"), Some("26T03:00:00"), true);
        let wait = Timing::Wait(Some(at("27T03:00:00")));
        assert_eq!(decide(&one, "26T02:50:00"), wait);
        // The clock was days ahead.
        let one = nightly(Some("29T03:00:00"), Some("28T03:00:00"), true);
        let wait = Timing::Wait(Some(at("26T03:00:00")));
        assert_eq!(decide(&one, "25T12:00:00"), wait);
    }
}
