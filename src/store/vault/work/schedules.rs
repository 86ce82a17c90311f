//! The table of schedules: creates, lists, pauses, ends and deletes them.

use std::sync::Arc;

use rusqlite::{Connection, OptionalExtension as _, params};

use super::change::canonical;
use super::schedule::{NewSchedule, Schedule, read_schedule};
use crate::vault::error::VaultError;
use crate::vault::row::to_column;
use crate::vault::shared::SharedVault;
use gatewren_base::sys::{now_ms, random_bytes};

/// The limit of schedules of one agent. At the limit a new one is refused.
pub const MAX_SCHEDULES_OF_AGENT: u32 = 32;

/// The limit of schedules of all agents together. At the limit a new one is refused.
pub const MAX_SCHEDULES: u32 = 256;

/// The part of the schema's eleventh version.
pub(in crate::vault) const SCHEMA: &str = "
CREATE TABLE schedule (
    id          TEXT PRIMARY KEY,
    agent       TEXT NOT NULL,
    space       TEXT NOT NULL,
    name        TEXT NOT NULL,
    tool        TEXT NOT NULL,
    target      TEXT,
    arguments   TEXT NOT NULL CHECK (json_valid(arguments)),
    at          TEXT NOT NULL,
    catch_up    INTEGER NOT NULL,
    preset      TEXT NOT NULL,
    overrides   TEXT NOT NULL CHECK (json_valid(overrides)),
    approval    TEXT,
    -- The digest of the columns above, as approved.
    binding     BLOB NOT NULL CHECK (length(binding) = 32),
    created_ms  INTEGER NOT NULL,
    paused      INTEGER NOT NULL DEFAULT 0,
    ended       TEXT,
    next_ms     INTEGER,
    last_due_ms INTEGER,
    run_now     INTEGER NOT NULL DEFAULT 0,
    failing     INTEGER NOT NULL DEFAULT 0,
    UNIQUE (agent, name)
) STRICT;
CREATE TABLE schedule_run (
    number    INTEGER PRIMARY KEY AUTOINCREMENT,
    schedule  TEXT NOT NULL REFERENCES schedule (id) ON DELETE CASCADE,
    due_ms    INTEGER NOT NULL,
    began_ms  INTEGER NOT NULL,
    ended_ms  INTEGER,
    caught_up INTEGER NOT NULL,
    outcome   TEXT CHECK (outcome IN ('ok', 'failed', 'unknown')),
    words     TEXT,
    ran_in    TEXT
) STRICT;
CREATE INDEX schedule_run_schedule ON schedule_run (schedule);
";

/// The result of creating a schedule.
#[derive(Debug)]
pub enum ScheduleCreation {
    /// It was created.
    New(Box<Schedule>),
    /// The agent has a schedule with this name.
    NameTaken,
    /// The limit of schedules is reached.
    NoRoom,
}

/// Access to the table.
pub struct ScheduleTable<'a>(pub(in crate::vault) &'a Arc<SharedVault>);

impl ScheduleTable<'_> {
    /// Creates a schedule, which is durable once this returns.
    pub async fn add(&self, new: NewSchedule) -> Result<ScheduleCreation, VaultError> {
        let id = format!("sch_{:016x}", u64::from_be_bytes(random_bytes()?));
        let work = move |connection: &Connection| add(connection, id, new);
        self.change("add a schedule", work).await
    }

    /// Returns all schedules, oldest first.
    pub fn list(&self) -> Result<Vec<Schedule>, VaultError> {
        self.list_of(None)
    }

    /// Returns the schedules of an agent, or of all, oldest first.
    pub fn list_of(&self, agent: Option<&str>) -> Result<Vec<Schedule>, VaultError> {
        let query = "SELECT * FROM schedule WHERE ?1 IS NULL OR agent = ?1 ORDER BY created_ms, id";
        self.0.read("list the schedules", |connection| {
            connection
                .prepare_cached(query)?
                .query_map([agent], read_schedule)?
                .collect()
        })
    }

    /// Returns an agent's schedule with this id or name. A schedule of another agent is treated as absent.
    pub fn find_of(&self, agent: &str, named: &str) -> Result<Option<Schedule>, VaultError> {
        let all = self.list_of(Some(agent))?;
        Ok(all
            .into_iter()
            .find(|one| one.id == named || one.name == named))
    }

    /// Deletes a schedule with its runs; returns false if there is none.
    pub async fn delete(&self, id: &str) -> Result<bool, VaultError> {
        let id = id.to_owned();
        let work = move |connection: &Connection| {
            connection.execute("DELETE FROM schedule_run WHERE schedule = ?1", [&id])?;
            let deleted = connection.execute("DELETE FROM schedule WHERE id = ?1", [&id])?;
            Ok(deleted > 0)
        };
        self.change("delete a schedule", work).await
    }

    /// Pauses or resumes a schedule. Returns false if there is none that is active.
    pub async fn pause(&self, id: &str, paused: bool) -> Result<bool, VaultError> {
        let id = id.to_owned();
        let work = move |connection: &Connection| {
            let sql =
                "UPDATE schedule SET paused = ?2, next_ms = NULL WHERE id = ?1 AND ended IS NULL";
            Ok(connection.execute(sql, params![id, paused])? > 0)
        };
        self.change("pause a schedule", work).await
    }

    /// Asks for a run now. Returns false if there is no schedule that is active.
    pub async fn request_run(&self, id: &str) -> Result<bool, VaultError> {
        let id = id.to_owned();
        let work = move |connection: &Connection| {
            let sql =
                "UPDATE schedule SET run_now = 1 WHERE id = ?1 AND ended IS NULL AND paused = 0";
            Ok(connection.execute(sql, [id])? > 0)
        };
        self.change("ask for a run of a schedule", work).await
    }

    /// Sets the time of the next run of a schedule that is active.
    pub async fn set_next(&self, id: &str, next_ms: Option<u64>) -> Result<(), VaultError> {
        let id = id.to_owned();
        let work = move |connection: &Connection| {
            let sql =
                "UPDATE schedule SET next_ms = ?2 WHERE id = ?1 AND ended IS NULL AND paused = 0";
            connection
                .execute(sql, params![id, next_ms.map(to_column)])
                .map(drop)
        };
        self.change("set the time of a schedule", work).await
    }

    /// Ends a schedule: it does not run again.
    pub async fn end(&self, id: &str, why: String) -> Result<(), VaultError> {
        let id = id.to_owned();
        let work = move |connection: &Connection| end_schedule(connection, &id, &why);
        self.change("end a schedule", work).await
    }

    pub(in crate::vault) async fn change<T: Send + 'static>(
        &self,
        doing: &'static str,
        work: impl FnOnce(&Connection) -> Result<T, rusqlite::Error> + Send + 'static,
    ) -> Result<T, VaultError> {
        self.0.write_inbox(doing, work).await
    }
}

pub(in crate::vault) fn end_schedule(
    connection: &Connection,
    id: &str,
    why: &str,
) -> Result<(), rusqlite::Error> {
    let sql = "UPDATE schedule SET ended = ?2, next_ms = NULL, run_now = 0
               WHERE id = ?1 AND ended IS NULL";
    connection.execute(sql, params![id, why]).map(drop)
}

fn add(
    connection: &Connection,
    id: String,
    new: NewSchedule,
) -> Result<ScheduleCreation, rusqlite::Error> {
    let count = "SELECT count(*), count(*) FILTER (WHERE agent = ?1),
                 count(*) FILTER (WHERE agent = ?1 AND name = ?2) FROM schedule";
    let (total, of_agent, of_name): (u32, u32, u32) =
        connection.query_row(count, params![new.agent, new.name], |row| row.try_into())?;
    if of_name > 0 {
        return Ok(ScheduleCreation::NameTaken);
    }
    if total >= MAX_SCHEDULES || of_agent >= MAX_SCHEDULES_OF_AGENT {
        return Ok(ScheduleCreation::NoRoom);
    }
    let (arguments, _) = canonical(new.arguments);
    let schedule = Schedule {
        id,
        agent: new.agent,
        space: new.space,
        name: new.name,
        tool: new.tool,
        target: new.target,
        arguments,
        at: new.at,
        catch_up: new.catch_up,
        preset: new.preset,
        overrides: new.overrides,
        approval: new.approval,
        created_ms: now_ms(),
        paused: false,
        ended: None,
        next_ms: Some(new.next_ms),
        last_due_ms: None,
        run_now: false,
        failing: false,
    };
    insert(connection, &schedule)?;
    let query = "SELECT * FROM schedule WHERE id = ?1";
    let stored = connection
        .query_row(query, [&schedule.id], read_schedule)
        .optional()?;
    Ok(ScheduleCreation::New(Box::new(stored.unwrap_or(schedule))))
}

fn insert(connection: &Connection, new: &Schedule) -> Result<(), rusqlite::Error> {
    let sql = "INSERT INTO schedule (id, agent, space, name, tool, target, arguments, at, catch_up, preset,
                   overrides, approval, binding, created_ms, next_ms)
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15)";
    let row = params![
        new.id,
        new.agent,
        new.space,
        new.name,
        new.tool,
        new.target,
        new.arguments,
        new.at,
        new.catch_up,
        new.preset,
        new.overrides,
        new.approval,
        new.binding(),
        to_column(new.created_ms),
        new.next_ms.map(to_column),
    ];
    connection.execute(sql, row).map(drop)
}
