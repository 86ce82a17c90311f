//! The runs of schedules: each begins durably before the call, and its result is recorded.

use rusqlite::{Connection, OptionalExtension as _, Row, params};

use super::schedule::{Schedule, read_schedule};
use super::schedules::{ScheduleTable, end_schedule};
use crate::vault::error::VaultError;
use crate::vault::row::{from_column, from_optional, to_column};
use gatewren_base::sys::now_ms;

/// The number of runs of a schedule that are kept. Older ones are deleted.
const MAX_RUNS: u32 = 10;

/// The reason for the end of a schedule whose row differs from the approved one.
const ALTERED: &str = "The schedule in the vault differs from the approved one. It does not run.";

/// The explanation for a run that was running when the server ended.
const ABANDONED: &str =
    "The server stopped during this run. It may have been done in part or in full.";

/// Proof that a run of a schedule was recorded, which happens before its call.
#[derive(Debug)]
#[must_use = "the result of the run must be recorded"]
pub struct StartedRun {
    schedule: Schedule,
    number: i64,
}

impl StartedRun {
    /// Returns the schedule as it was approved.
    pub fn schedule(&self) -> &Schedule {
        &self.schedule
    }
}

/// A run to begin.
#[derive(Debug, Clone, Copy)]
pub struct DueRun {
    /// The time that the run is for, in milliseconds since 1970.
    pub due_ms: u64,
    /// The time of the run after it, in milliseconds since 1970.
    pub next_ms: Option<u64>,
    /// Whether the run was missed and is made up for now.
    pub caught_up: bool,
}

/// The result of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunOutcome {
    /// It succeeded.
    Ok,
    /// It failed, or it was refused.
    Failed,
    /// The server stopped while it ran.
    Unknown,
}

impl RunOutcome {
    /// Returns the word for it in the vault and in answers.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Failed => "failed",
            Self::Unknown => "unknown",
        }
    }
}

/// The end of a run.
#[derive(Debug, Clone)]
pub struct RunEnd {
    /// The result.
    pub outcome: RunOutcome,
    /// The first line of the error, if it did not succeed.
    pub words: Option<String>,
    /// The audit id of the call.
    pub ran_in: Option<String>,
}

/// How the end of a run differs from the end of the run before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunTurn {
    /// Both succeeded, or both failed.
    Same,
    /// It failed, and the one before did not.
    Broke,
    /// It succeeded, and the one before failed.
    Recovered,
}

/// A run as stored in the vault. Times are milliseconds since 1970.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScheduleRun {
    /// The time that the run was for.
    pub due_ms: u64,
    /// When it began.
    pub began_ms: u64,
    /// When it ended; `None` while it runs.
    pub ended_ms: Option<u64>,
    /// Whether it was missed and made up for later.
    pub caught_up: bool,
    /// `ok`, `failed` or `unknown`; `None` while it runs.
    pub outcome: Option<String>,
    /// The first line of the error.
    pub words: Option<String>,
    /// The audit id of the call.
    pub ran_in: Option<String>,
}

impl ScheduleTable<'_> {
    /// Durably begins a run, and sets the time of the next one. Only then may the call run.
    ///
    /// Returns `None` if the schedule is gone, paused or ended. If the row differs from the approved one, the schedule
    /// ends.
    pub async fn begin(&self, id: &str, due: DueRun) -> Result<Option<StartedRun>, VaultError> {
        let id = id.to_owned();
        let work = move |connection: &Connection| begin(connection, &id, due);
        self.change("begin a run of a schedule", work).await
    }

    /// Records the end of a run.
    pub async fn end_run(&self, begun: StartedRun, end: RunEnd) -> Result<RunTurn, VaultError> {
        let work = move |connection: &Connection| {
            let sql = "UPDATE schedule_run SET ended_ms = ?2, outcome = ?3, words = ?4, ran_in = ?5
                       WHERE number = ?1";
            let outcome = end.outcome.as_str();
            let row = params![
                begun.number,
                to_column(now_ms()),
                outcome,
                end.words,
                end.ran_in
            ];
            connection.execute(sql, row)?;
            let failed = match end.outcome {
                RunOutcome::Ok => false,
                RunOutcome::Failed => true,
                RunOutcome::Unknown => return Ok(RunTurn::Same),
            };
            let sql = "UPDATE schedule SET failing = ?2 WHERE id = ?1 AND failing <> ?2";
            let turned = connection.execute(sql, params![begun.schedule.id, failed])? > 0;
            Ok(match (turned, failed) {
                (false, _) => RunTurn::Same,
                (true, true) => RunTurn::Broke,
                (true, false) => RunTurn::Recovered,
            })
        };
        self.change("end a run of a schedule", work).await
    }

    /// Ends the runs that an earlier run of the server left running. Returns their number.
    pub async fn end_abandoned_runs(&self) -> Result<usize, VaultError> {
        let work = |connection: &Connection| {
            let sql = "UPDATE schedule_run SET ended_ms = ?1, outcome = 'unknown', words = ?2
                       WHERE ended_ms IS NULL";
            connection.execute(sql, params![to_column(now_ms()), ABANDONED])
        };
        self.change("end the scheduled runs of the last server", work)
            .await
    }

    /// Returns the newest runs of a schedule, newest first.
    pub fn runs(&self, id: &str) -> Result<Vec<ScheduleRun>, VaultError> {
        let query = "SELECT * FROM schedule_run WHERE schedule = ?1 ORDER BY number DESC LIMIT ?2";
        self.0.read("list the runs of a schedule", |connection| {
            connection
                .prepare_cached(query)?
                .query_map(params![id, MAX_RUNS], read_run)?
                .collect()
        })
    }
}

fn begin(
    connection: &Connection,
    id: &str,
    due: DueRun,
) -> Result<Option<StartedRun>, rusqlite::Error> {
    let select = "SELECT * FROM schedule WHERE id = ?1 AND ended IS NULL AND paused = 0";
    let found = connection
        .prepare_cached(select)?
        .query_row([id], |row| Ok((read_schedule(row)?, row.get("binding")?)))
        .optional()?;
    let Some((schedule, binding)) = found else {
        return Ok(None);
    };
    let binding: [u8; 32] = binding;
    if binding != schedule.binding() {
        end_schedule(connection, id, ALTERED)?;
        return Ok(None);
    }
    let (due_ms, next_ms) = (to_column(due.due_ms), due.next_ms.map(to_column));
    connection.execute(
        "UPDATE schedule SET next_ms = ?2, last_due_ms = ?3, run_now = 0 WHERE id = ?1",
        params![id, next_ms, due_ms],
    )?;
    connection.execute(
        "INSERT INTO schedule_run (schedule, due_ms, began_ms, caught_up) VALUES (?1, ?2, ?3, ?4)",
        params![id, due_ms, to_column(now_ms()), due.caught_up],
    )?;
    let number = connection.last_insert_rowid();
    connection.execute(
        "DELETE FROM schedule_run WHERE schedule = ?1 AND number NOT IN
         (SELECT number FROM schedule_run WHERE schedule = ?1 ORDER BY number DESC LIMIT ?2)",
        params![id, MAX_RUNS],
    )?;
    Ok(Some(StartedRun { schedule, number }))
}

fn read_run(row: &Row<'_>) -> Result<ScheduleRun, rusqlite::Error> {
    Ok(ScheduleRun {
        due_ms: from_column(row, "due_ms")?,
        began_ms: from_column(row, "began_ms")?,
        ended_ms: from_optional(row, "ended_ms")?,
        caught_up: row.get("caught_up")?,
        outcome: row.get("outcome")?,
        words: row.get("words")?,
        ran_in: row.get("ran_in")?,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::schedule::NewSchedule;
    use super::super::schedules::{MAX_SCHEDULES_OF_AGENT, ScheduleCreation};
    use super::*;
    use crate::vault::store::Vault;
    use gatewren_base::sys::Scratch;

    fn new(agent: &str, name: &str) -> NewSchedule {
        NewSchedule {
            agent: agent.to_owned(),
            space: "*".to_owned(),
            name: name.to_owned(),
            tool: "backup_create".to_owned(),
            target: None,
            arguments: json!({ "target": "usb" }).as_object().unwrap().clone(),
            at: "daily".to_owned(),
            catch_up: true,
            preset: "operate".to_owned(),
            overrides: "{}".to_owned(),
            approval: Some("chg_1".to_owned()),
            next_ms: 1_000,
        }
    }

    async fn add(vault: &Vault, agent: &str, name: &str) -> Schedule {
        match vault.schedules().add(new(agent, name)).await.unwrap() {
            ScheduleCreation::New(schedule) => *schedule,
            other => panic!("{other:?}"),
        }
    }

    const DUE: DueRun = DueRun {
        due_ms: 1_000,
        next_ms: Some(2_000),
        caught_up: false,
    };

    async fn run(vault: &Vault, id: &str, outcome: RunOutcome) -> RunTurn {
        let begun = vault.schedules().begin(id, DUE).await.unwrap().unwrap();
        let end = RunEnd {
            outcome,
            words: Some("x".to_owned()),
            ran_in: None,
        };
        vault.schedules().end_run(begun, end).await.unwrap()
    }

    #[tokio::test]
    async fn a_schedule_that_was_altered_in_the_vault_never_runs() {
        let scratch = Scratch::new();
        let vault = Vault::open(&scratch.join("vault.db")).unwrap();
        for column in [
            "arguments = '{}'",
            "tool = 'x'",
            "at = 'hourly'",
            "agent = 'b'",
            "approval = 'chg_2'",
            "preset = 'admin'",
        ] {
            let schedule = add(&vault, "a", column).await;
            let id = schedule.id.clone();
            let alter = move |connection: &Connection| {
                let sql = format!("UPDATE schedule SET {column} WHERE id = ?1");
                connection.execute(&sql, [id])
            };
            vault.schedules().change("alter", alter).await.unwrap();
            let begun = vault.schedules().begin(&schedule.id, DUE).await.unwrap();
            assert!(begun.is_none(), "{column}");
            let all = vault.schedules().list().unwrap();
            let now = all.iter().find(|one| one.id == schedule.id).unwrap();
            assert_eq!(now.ended.as_deref(), Some(ALTERED), "{column}");
        }
    }

    #[tokio::test]
    async fn runs_are_kept_and_a_failure_is_reported_once_until_a_success() {
        let scratch = Scratch::new();
        let vault = Vault::open(&scratch.join("vault.db")).unwrap();
        let id = add(&vault, "a", "n").await.id;
        assert_eq!(run(&vault, &id, RunOutcome::Ok).await, RunTurn::Same);
        assert_eq!(run(&vault, &id, RunOutcome::Failed).await, RunTurn::Broke);
        assert_eq!(run(&vault, &id, RunOutcome::Failed).await, RunTurn::Same);
        assert_eq!(run(&vault, &id, RunOutcome::Unknown).await, RunTurn::Same);
        assert_eq!(run(&vault, &id, RunOutcome::Ok).await, RunTurn::Recovered);
        for _ in 0..20 {
            let _ = run(&vault, &id, RunOutcome::Ok).await;
        }
        assert_eq!(
            vault.schedules().runs(&id).unwrap().len(),
            MAX_RUNS as usize
        );
        let _running = vault.schedules().begin(&id, DUE).await.unwrap().unwrap();
        assert_eq!(vault.schedules().end_abandoned_runs().await.unwrap(), 1);
        let newest = vault.schedules().runs(&id).unwrap().remove(0);
        assert_eq!(newest.outcome.as_deref(), Some("unknown"));
        assert!(vault.schedules().delete(&id).await.unwrap());
        assert!(vault.schedules().runs(&id).unwrap().is_empty());
    }

    #[tokio::test]
    async fn a_paused_or_ended_schedule_begins_no_run_and_each_agent_has_few() {
        let scratch = Scratch::new();
        let vault = Vault::open(&scratch.join("vault.db")).unwrap();
        let id = add(&vault, "a", "n").await.id;
        let table = vault.schedules();
        assert!(table.pause(&id, true).await.unwrap());
        assert!(table.begin(&id, DUE).await.unwrap().is_none());
        assert!(!table.request_run(&id).await.unwrap());
        assert!(table.pause(&id, false).await.unwrap());
        table.end(&id, "gone".to_owned()).await.unwrap();
        assert!(table.begin(&id, DUE).await.unwrap().is_none());
        assert!(!table.pause(&id, false).await.unwrap());
        let same = table.add(new("a", "n")).await.unwrap();
        assert!(matches!(same, ScheduleCreation::NameTaken));
        for number in 1..MAX_SCHEDULES_OF_AGENT {
            add(&vault, "a", &number.to_string()).await;
        }
        let more = table.add(new("a", "more")).await.unwrap();
        assert!(matches!(more, ScheduleCreation::NoRoom));
        add(&vault, "b", "n").await;
        assert!(table.find_of("b", &id).unwrap().is_none());
    }
}
