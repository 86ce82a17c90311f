//! The inbox's table: proposals come in, are looked at, decided on and taken back.

use std::sync::Arc;

use rusqlite::{Connection, OptionalExtension as _, params};
use tokio::sync::watch;

use super::change::{Change, ChangeStatus, NewChange, canonical, read};
use super::commit::Durability;
use super::error::VaultError;
use super::row::{from_column, to_column};
use super::shared::Shared;
use crate::sys::{now_ms, random_bytes};

/// The most changes that a list has; of more, the newest.
const MAX_LISTED: u32 = 1000;

/// The part of the schema's fourth version.
pub(super) const SCHEMA: &str = "
CREATE TABLE change (
    id               TEXT PRIMARY KEY,
    agent            TEXT NOT NULL,
    space            TEXT NOT NULL,
    tool             TEXT NOT NULL,
    target           TEXT,
    arguments        TEXT NOT NULL,
    arguments_sha256 BLOB NOT NULL CHECK (length(arguments_sha256) = 32),
    rests_on         TEXT NOT NULL CHECK (json_valid(rests_on)),
    revision         INTEGER NOT NULL,
    reason           TEXT,
    created_ms       INTEGER NOT NULL,
    expires_ms       INTEGER NOT NULL,
    updated_ms       INTEGER NOT NULL,
    status           TEXT NOT NULL CHECK (status IN ('pending', 'approved', 'running', 'applied',
                     'failed', 'rejected', 'expired', 'withdrawn', 'unknown')),
    moved            INTEGER,
    decided_by       TEXT,
    decided_ms       INTEGER,
    note             TEXT,
    -- What the owner has approved: the row as it was shown.
    approved_sha256  BLOB CHECK (length(approved_sha256) = 32),
    words            TEXT,
    result           TEXT CHECK (json_valid(result)),
    proposed_in      TEXT,
    ran_in           TEXT,
    serial           INTEGER NOT NULL
) STRICT;
CREATE INDEX change_status ON change (status, expires_ms);
CREATE INDEX change_agent ON change (agent, status);
CREATE INDEX change_serial ON change (serial);
";

/// How many changes may be open at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChangeRoom {
    /// Of one agent.
    pub per_agent: u32,
    /// Of all agents.
    pub total: u32,
}

/// What came of a proposal.
#[derive(Debug)]
pub enum Added {
    /// It is in the inbox.
    New(Change),
    /// The same proposal of the same agent waits there already.
    Same(Change),
    /// There are as many as there may be.
    NoRoom,
}

/// What an owner says to a change.
#[derive(Debug, Clone)]
pub struct Decision {
    /// Who decides.
    pub by: String,
    /// What they say to it.
    pub note: Option<String>,
}

/// What came of a decision, or of taking a change back.
#[derive(Debug)]
pub enum Ruling {
    /// It holds; the change as it stands now.
    Done(Change),
    /// The change is not one that this can be said of any more.
    Past(ChangeStatus),
    /// The row is not the one that was shown, or its arguments are not those that were proposed.
    Altered,
    /// There is no such change.
    Absent,
}

/// The door to the table.
pub struct Changes<'a>(pub(super) &'a Arc<Shared>);

/// What every transition does beside setting the status.
pub(super) const NOTED: &str =
    "updated_ms = ?2, serial = (SELECT coalesce(max(serial), 0) + 1 FROM change)";

impl Changes<'_> {
    /// Adds a proposal, which is there for good when the answer comes. The same one again, while it waits, is
    /// the one that is there.
    pub async fn add(&self, new: NewChange, room: ChangeRoom) -> Result<Added, VaultError> {
        let id = format!("chg_{:016x}", u64::from_be_bytes(random_bytes()?));
        let work = move |connection: &Connection| add(connection, &id, new, room);
        self.change("add a change", work).await
    }

    /// Approves a change as it was shown: `seen` is its [`Change::binding`] then.
    pub async fn approve(
        &self,
        id: &str,
        seen: [u8; 32],
        decision: Decision,
    ) -> Result<Ruling, VaultError> {
        let id = id.to_owned();
        let work = move |connection: &Connection| {
            let Some(change) = find(connection, &id)? else {
                return Ok(Ruling::Absent);
            };
            if change.status != ChangeStatus::Pending {
                return Ok(Ruling::Past(change.status));
            }
            if change.binding() != seen || change.proven_arguments().is_none() {
                return Ok(Ruling::Altered);
            }
            let set = "status = 'approved', approved_sha256 = ?3, decided_by = ?4, decided_ms = ?2,
                       note = ?5, words = NULL";
            let guard = "status = 'pending' AND expires_ms > ?2";
            let sql = format!("UPDATE change SET {NOTED}, {set} WHERE id = ?1 AND {guard}");
            let now = to_column(now_ms());
            let row = params![id, now, seen, decision.by, decision.note];
            let done = connection.prepare_cached(&sql)?.execute(row)?;
            ruling(connection, &id, done)
        };
        self.change("approve a change", work).await
    }

    /// Refuses a change that has not begun.
    pub async fn reject(&self, id: &str, decision: Decision) -> Result<Ruling, VaultError> {
        let id = id.to_owned();
        let work = move |connection: &Connection| {
            let set = "status = 'rejected', decided_by = ?3, decided_ms = ?2, note = ?4";
            let guard = "status IN ('pending', 'approved')";
            let sql = format!("UPDATE change SET {NOTED}, {set} WHERE id = ?1 AND {guard}");
            let row = params![id, to_column(now_ms()), decision.by, decision.note];
            let done = connection.prepare_cached(&sql)?.execute(row)?;
            ruling(connection, &id, done)
        };
        self.change("reject a change", work).await
    }

    /// Takes back an agent's own change that has not begun; another agent's is as if it were not there.
    pub async fn withdraw(&self, agent: &str, id: &str) -> Result<Ruling, VaultError> {
        let (agent, id) = (agent.to_owned(), id.to_owned());
        let work = move |connection: &Connection| {
            let guard = "agent = ?3 AND status IN ('pending', 'approved')";
            let sql = format!(
                "UPDATE change SET {NOTED}, status = 'withdrawn' WHERE id = ?1 AND {guard}"
            );
            let row = params![id, to_column(now_ms()), agent];
            let done = connection.prepare_cached(&sql)?.execute(row)?;
            match find(connection, &id)? {
                Some(change) if change.agent == agent => ruling(connection, &id, done),
                _ => Ok(Ruling::Absent),
            }
        };
        self.change("withdraw a change", work).await
    }

    /// A change, whoever's it is.
    pub fn get(&self, id: &str) -> Result<Option<Change>, VaultError> {
        self.0
            .read("find a change", |connection| find(connection, id))
    }

    /// An agent's change; another agent's is as if it were not there.
    pub fn get_of(&self, agent: &str, id: &str) -> Result<Option<Change>, VaultError> {
        let found = self.get(id)?;
        Ok(found.filter(|change| change.agent == agent))
    }

    /// The serial of the row that changed last; 0 where there is none.
    pub fn newest(&self) -> Result<u64, VaultError> {
        self.0.read("look at the changes", |connection| {
            connection
                .prepare_cached("SELECT coalesce(max(serial), 0) AS newest FROM change")?
                .query_row([], |row| from_column(row, "newest"))
        })
    }

    /// All changes, the newest first; those that are open, if only they are asked for.
    pub fn list(&self, only_open: bool) -> Result<Vec<Change>, VaultError> {
        self.listed(if only_open { OPEN } else { "TRUE" }, None)
    }

    /// An agent's changes, the newest first; those that are open, if only they are asked for.
    pub fn list_of(&self, agent: &str, only_open: bool) -> Result<Vec<Change>, VaultError> {
        self.listed(if only_open { OPEN } else { "TRUE" }, Some(agent))
    }

    /// A number that changes whenever a change or a grant may have changed, also through another process
    /// (noticed within a second). It changes only after the commit.
    pub fn bell(&self) -> watch::Receiver<u64> {
        self.0.inbox_changes.subscribe()
    }

    pub(super) fn listed(
        &self,
        which: &str,
        agent: Option<&str>,
    ) -> Result<Vec<Change>, VaultError> {
        let query = format!(
            "SELECT * FROM change WHERE {which} AND (?1 IS NULL OR agent = ?1)
             ORDER BY created_ms DESC, serial DESC LIMIT {MAX_LISTED}"
        );
        self.0.read("list the changes", |connection| {
            connection
                .prepare_cached(&query)?
                .query_map([agent], read)?
                .collect()
        })
    }

    pub(super) async fn change<T: Send + 'static>(
        &self,
        doing: &'static str,
        work: impl FnOnce(&Connection) -> Result<T, rusqlite::Error> + Send + 'static,
    ) -> Result<T, VaultError> {
        let bell = self.0.inbox_changes.clone();
        let then = move |_: &T| bell.send_modify(|changes| *changes += 1);
        let writer = &self.0.writer;
        writer.write(doing, Durability::Power, work, then).await
    }
}

/// Changes of which something can still come.
const OPEN: &str = "status IN ('pending', 'approved', 'running')";

pub(super) fn find(connection: &Connection, id: &str) -> Result<Option<Change>, rusqlite::Error> {
    connection
        .prepare_cached("SELECT * FROM change WHERE id = ?1")?
        .query_row([id], read)
        .optional()
}

/// What a guarded update means that has changed so many rows.
fn ruling(connection: &Connection, id: &str, done: usize) -> Result<Ruling, rusqlite::Error> {
    Ok(match find(connection, id)? {
        None => Ruling::Absent,
        Some(change) if done > 0 => Ruling::Done(change),
        // What waits past its time has expired, though nobody has written that down yet.
        Some(change) if change.status == ChangeStatus::Pending => {
            Ruling::Past(ChangeStatus::Expired)
        }
        Some(change) => Ruling::Past(change.status),
    })
}

fn add(
    connection: &Connection,
    id: &str,
    new: NewChange,
    room: ChangeRoom,
) -> Result<Added, rusqlite::Error> {
    let now = to_column(now_ms());
    let (arguments, sha256) = canonical(new.arguments);
    let same = "SELECT id FROM change WHERE agent = ?1 AND space = ?2 AND tool = ?3
                AND arguments_sha256 = ?4 AND status = 'pending' AND expires_ms > ?5";
    let same: Option<String> = connection
        .prepare_cached(same)?
        .query_row(params![new.agent, new.space, new.tool, sha256, now], |r| {
            r.get(0)
        })
        .optional()?;
    if let Some(there) = same.and_then(|id| find(connection, &id).transpose()) {
        return there.map(Added::Same);
    }
    let count = format!(
        "SELECT count(*), count(*) FILTER (WHERE agent = ?1) FROM change WHERE {OPEN}
         AND (status = 'running' OR expires_ms > ?2)"
    );
    let (total, of_agent): (u32, u32) = connection
        .prepare_cached(&count)?
        .query_row(params![new.agent, now], |row| row.try_into())?;
    if total >= room.total || of_agent >= room.per_agent {
        return Ok(Added::NoRoom);
    }
    let insert = "INSERT INTO change (id, updated_ms, serial, agent, space, tool, target, arguments,
            arguments_sha256, rests_on, revision, reason, created_ms, expires_ms, proposed_in, status)
        VALUES (?1, ?2, (SELECT coalesce(max(serial), 0) + 1 FROM change), ?3, ?4, ?5, ?6, ?7, ?8, ?9,
            ?10, ?11, ?2, ?12, ?13, 'pending')";
    connection.prepare_cached(insert)?.execute(params![
        id,
        now,
        new.agent,
        new.space,
        new.tool,
        new.target,
        arguments,
        sha256,
        serde_json::Value::from(new.rests_on).to_string(),
        to_column(new.revision),
        new.reason,
        to_column(new.expires_ms),
        new.proposed_in,
    ])?;
    let added = find(connection, id)?.ok_or(rusqlite::Error::QueryReturnedNoRows)?;
    Ok(Added::New(added))
}
