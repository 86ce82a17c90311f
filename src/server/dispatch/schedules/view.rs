//! A schedule as its agent and its owner see it.

use serde::Serialize;
use serde_json::Value;

use super::times::upcoming;
use gatewren_base::sys::{Calendar, rfc3339};
use gatewren_store::vault::{Schedule, ScheduleRun, Vault, VaultError};

/// Longer arguments are left out of a list, in bytes. A list of all schedules stays below 40 kB.
const LISTED_ARGUMENTS_BYTES: usize = 300;

/// A schedule.
#[derive(Debug, Serialize)]
pub(in crate::dispatch) struct ScheduleView {
    /// Its id.
    pub schedule: String,
    /// Its name.
    pub name: String,
    /// `active`, `paused`, `done` or `ended`.
    pub status: &'static str,
    /// Why it has ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// The tool.
    pub tool: String,
    /// The tool's arguments; absent from a list if they are long.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Value>,
    /// Its times, in systemd's calendar syntax.
    pub at: String,
    /// Its times in words.
    pub times: String,
    /// The next three times.
    pub next: Vec<String>,
    /// Whether a missed run is made up for once.
    pub catch_up: bool,
    /// Its last runs, newest first.
    pub runs: Vec<RunView>,
}

/// A run of a schedule.
#[derive(Debug, Serialize)]
pub(in crate::dispatch) struct RunView {
    /// The time that it was for.
    pub due: String,
    /// When it began.
    pub began: String,
    /// How long it took, in seconds; absent while it runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seconds: Option<f64>,
    /// `running`, `ok`, `failed` or `unknown`.
    pub outcome: String,
    /// Whether it was missed and made up for later.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub caught_up: bool,
    /// The first line of the error.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// An agent's own schedules.
#[derive(Debug, Serialize)]
pub(in crate::dispatch) struct ListedSchedules {
    /// The schedules, oldest first.
    pub schedules: Vec<ScheduleView>,
}

impl ListedSchedules {
    /// Reads all schedules of an agent, each with its newest run.
    ///
    /// # Errors
    /// When the vault cannot be read.
    pub(in crate::dispatch) fn of(vault: &Vault, agent: &str) -> Result<Self, VaultError> {
        let table = vault.schedules();
        let all = table.list_of(Some(agent))?;
        let views = all
            .iter()
            .map(|one| Ok(ScheduleView::in_short(one, &table.runs(&one.id)?)));
        Ok(Self {
            schedules: views.collect::<Result<_, VaultError>>()?,
        })
    }
}

impl ScheduleView {
    /// The view of a schedule with these runs.
    pub(in crate::dispatch) fn of(schedule: &Schedule, runs: &[ScheduleRun]) -> Self {
        let calendar = schedule.at.parse::<Calendar>().ok();
        let next = calendar.as_ref().filter(|_| schedule.is_active());
        let next = next.map_or_else(Vec::new, upcoming);
        let status = match (&schedule.ended, schedule.paused) {
            (Some(_), _) => "ended",
            (None, true) => "paused",
            (None, false) if next.is_empty() => "done",
            (None, false) => "active",
        };
        Self {
            schedule: schedule.id.clone(),
            name: schedule.name.clone(),
            status,
            why: schedule.ended.clone(),
            tool: schedule.tool.clone(),
            arguments: serde_json::from_str(&schedule.arguments).ok(),
            at: schedule.at.clone(),
            times: calendar.map_or_else(String::new, |calendar| calendar.words()),
            next,
            catch_up: schedule.catch_up,
            runs: runs.iter().map(RunView::of).collect(),
        }
    }

    /// The view for a list: with the newest run, and without long arguments.
    pub(in crate::dispatch) fn in_short(schedule: &Schedule, runs: &[ScheduleRun]) -> Self {
        let mut view = Self::of(schedule, runs.get(..1).unwrap_or_default());
        if schedule.arguments.len() > LISTED_ARGUMENTS_BYTES {
            view.arguments = None;
        }
        view
    }
}

impl RunView {
    fn of(run: &ScheduleRun) -> Self {
        let millis = run.ended_ms.map(|ended| ended.saturating_sub(run.began_ms));
        let outcome = run.outcome.as_deref().unwrap_or("running");
        #[expect(
            clippy::cast_precision_loss,
            reason = "a run lasts less than 2^52 milliseconds"
        )]
        let seconds = millis.map(|millis| millis as f64 / 1_000.0);
        Self {
            due: rfc3339(run.due_ms),
            began: rfc3339(run.began_ms),
            seconds,
            outcome: outcome.to_owned(),
            caught_up: run.caught_up,
            error: run.words.clone(),
        }
    }
}
