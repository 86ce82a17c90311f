//! The table of the inbox: adds, lists, approves, rejects and withdraws proposals.

use std::sync::Arc;

use rusqlite::{Connection, OptionalExtension as _, params};
use tokio::sync::watch;

use super::change::{Change, ChangeStatus, NewChange, canonical, read};
use crate::vault::error::VaultError;
use crate::vault::row::{from_column, to_column};
use crate::vault::shared::SharedVault;
use gatewren_base::sys::{now_ms, random_bytes};

/// The maximum number of changes in a list. The newest are listed.
const MAX_LISTED: u32 = 1000;

/// The part of the schema's fourth version.
pub(in crate::vault) const SCHEMA: &str = "
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
    -- The hash of the row that the owner was shown and approved.
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

/// The limits of open changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OpenChangeLimits {
    /// The limit for one agent.
    pub per_agent: u32,
    /// The limit for all agents together.
    pub total: u32,
}

/// The result of a proposal.
#[derive(Debug)]
pub enum ProposalOutcome {
    /// It was added to the inbox.
    New(Change),
    /// The agent has the same proposal pending already.
    Same(Change),
    /// The limit of open changes is reached.
    NoRoom,
}

/// The owner's decision on a change.
#[derive(Debug, Clone)]
pub struct Decision {
    /// Who decides.
    pub by: String,
    /// An optional note.
    pub note: Option<String>,
}

/// The result of a decision or a withdrawal.
#[derive(Debug)]
pub enum DecisionOutcome {
    /// It was recorded; contains the updated change.
    Done(Box<Change>),
    /// The change has a status that does not allow it any more.
    Past(ChangeStatus),
    /// The row differs from the one that was shown, or its arguments from those that were proposed.
    Altered,
    /// There is no such change.
    Absent,
}

/// Access to the table.
pub struct ChangeTable<'a>(pub(in crate::vault) &'a Arc<SharedVault>);

/// The columns of a list: all but the result.
const BUT_RESULT: &str = "id, agent, space, tool, target, arguments, arguments_sha256, rests_on, revision, reason,
     created_ms, expires_ms, updated_ms, status, moved, decided_by, decided_ms, note, words, proposed_in, ran_in, serial";

/// The assignments of each transition in addition to the status.
pub(in crate::vault) const NOTED: &str =
    "updated_ms = ?2, serial = (SELECT coalesce(max(serial), 0) + 1 FROM change)";

impl ChangeTable<'_> {
    /// Adds a proposal, which is durable once this returns. An equal proposal that is still pending is returned
    /// instead of adding a second one.
    pub async fn add(
        &self,
        new: NewChange,
        room: OpenChangeLimits,
    ) -> Result<ProposalOutcome, VaultError> {
        let id = format!("chg_{:016x}", u64::from_be_bytes(random_bytes()?));
        let work = move |connection: &Connection| add(connection, &id, new, room);
        self.change("add a change", work).await
    }

    /// Approves a change as it was shown: `seen` is its [`Change::binding`] at that time.
    pub async fn approve(
        &self,
        id: &str,
        seen: [u8; 32],
        decision: Decision,
    ) -> Result<DecisionOutcome, VaultError> {
        let id = id.to_owned();
        let work = move |connection: &Connection| {
            let Some(change) = find(connection, &id)? else {
                return Ok(DecisionOutcome::Absent);
            };
            if change.status != ChangeStatus::Pending {
                return Ok(DecisionOutcome::Past(change.status));
            }
            if change.binding() != seen || change.proven_arguments().is_none() {
                return Ok(DecisionOutcome::Altered);
            }
            let set = "status = 'approved', approved_sha256 = ?3, decided_by = ?4, decided_ms = ?2,
                       note = ?5, words = NULL";
            let guard = "status = 'pending' AND expires_ms > ?2";
            let sql = format!("UPDATE change SET {NOTED}, {set} WHERE id = ?1 AND {guard}");
            let now = to_column(now_ms());
            let row = params![id, now, seen, decision.by, decision.note];
            let done = connection.prepare_cached(&sql)?.execute(row)?;
            decision_outcome(connection, &id, done)
        };
        self.change("approve a change", work).await
    }

    /// Rejects a change that has not started.
    pub async fn reject(
        &self,
        id: &str,
        decision: Decision,
    ) -> Result<DecisionOutcome, VaultError> {
        let id = id.to_owned();
        let work = move |connection: &Connection| {
            let set = "status = 'rejected', decided_by = ?3, decided_ms = ?2, note = ?4";
            let guard = "status IN ('pending', 'approved')";
            let sql = format!("UPDATE change SET {NOTED}, {set} WHERE id = ?1 AND {guard}");
            let row = params![id, to_column(now_ms()), decision.by, decision.note];
            let done = connection.prepare_cached(&sql)?.execute(row)?;
            decision_outcome(connection, &id, done)
        };
        self.change("reject a change", work).await
    }

    /// Withdraws an agent's own change that has not started. A change of another agent is treated as absent.
    pub async fn withdraw(&self, agent: &str, id: &str) -> Result<DecisionOutcome, VaultError> {
        let (agent, id) = (agent.to_owned(), id.to_owned());
        let work = move |connection: &Connection| {
            let guard = "agent = ?3 AND status IN ('pending', 'approved')";
            let sql = format!(
                "UPDATE change SET {NOTED}, status = 'withdrawn' WHERE id = ?1 AND {guard}"
            );
            let row = params![id, to_column(now_ms()), agent];
            let done = connection.prepare_cached(&sql)?.execute(row)?;
            match find(connection, &id)? {
                Some(change) if change.agent == agent => decision_outcome(connection, &id, done),
                _ => Ok(DecisionOutcome::Absent),
            }
        };
        self.change("withdraw a change", work).await
    }

    /// Returns a change of any agent.
    pub fn get(&self, id: &str) -> Result<Option<Change>, VaultError> {
        self.0
            .read("find a change", |connection| find(connection, id))
    }

    /// Returns a change of this agent. A change of another agent is treated as absent.
    pub fn get_of(&self, agent: &str, id: &str) -> Result<Option<Change>, VaultError> {
        let found = self.get(id)?;
        Ok(found.filter(|change| change.agent == agent))
    }

    /// Returns the serial of the row that changed last; 0 if there is none.
    pub fn newest(&self) -> Result<u64, VaultError> {
        self.0.read("read the changes", |connection| {
            connection
                .prepare_cached("SELECT coalesce(max(serial), 0) AS newest FROM change")?
                .query_row([], |row| from_column(row, "newest"))
        })
    }

    /// Returns the agents with open changes.
    pub fn open_agents(&self) -> Result<Vec<String>, VaultError> {
        let query = format!("SELECT DISTINCT agent FROM change WHERE {OPEN}");
        self.0.read("list the agents of changes", |connection| {
            connection
                .prepare_cached(&query)?
                .query_map([], |row| row.get(0))?
                .collect()
        })
    }

    /// Returns all changes, or only the open ones, without their results, newest first.
    pub fn list(&self, only_open: bool) -> Result<Vec<Change>, VaultError> {
        self.list_where(if only_open { OPEN } else { "TRUE" }, None)
    }

    /// Returns an agent's changes, or only the open ones, without their results, newest first.
    pub fn list_of(&self, agent: &str, only_open: bool) -> Result<Vec<Change>, VaultError> {
        self.list_where(if only_open { OPEN } else { "TRUE" }, Some(agent))
    }

    /// Returns a counter that changes whenever a change or a grant may have changed. Changes by another process are
    /// noticed within a second. The counter changes only after the commit.
    pub fn watch_inbox(&self) -> watch::Receiver<u64> {
        self.0.inbox_changes.subscribe()
    }

    pub(in crate::vault) fn list_where(
        &self,
        which: &str,
        agent: Option<&str>,
    ) -> Result<Vec<Change>, VaultError> {
        // Results are large, and a list does not need them.
        let query = format!(
            "SELECT {BUT_RESULT}, NULL AS result FROM change WHERE {which} AND (?1 IS NULL OR agent = ?1)
             ORDER BY created_ms DESC, serial DESC LIMIT {MAX_LISTED}"
        );
        self.0.read("list the changes", |connection| {
            connection
                .prepare_cached(&query)?
                .query_map([agent], read)?
                .collect()
        })
    }

    pub(in crate::vault) async fn change<T: Send + 'static>(
        &self,
        doing: &'static str,
        work: impl FnOnce(&Connection) -> Result<T, rusqlite::Error> + Send + 'static,
    ) -> Result<T, VaultError> {
        self.0.write_inbox(doing, work).await
    }
}

/// The changes that are not finished.
const OPEN: &str = "status IN ('pending', 'approved', 'running')";

pub(in crate::vault) fn find(
    connection: &Connection,
    id: &str,
) -> Result<Option<Change>, rusqlite::Error> {
    connection
        .prepare_cached("SELECT * FROM change WHERE id = ?1")?
        .query_row([id], read)
        .optional()
}

/// Interprets a guarded update that changed `done` rows.
fn decision_outcome(
    connection: &Connection,
    id: &str,
    done: usize,
) -> Result<DecisionOutcome, rusqlite::Error> {
    Ok(match find(connection, id)? {
        None => DecisionOutcome::Absent,
        Some(change) if done > 0 => DecisionOutcome::Done(Box::new(change)),
        // A pending row that the update did not match has expired, even if the sweep has not recorded it yet.
        Some(change) if change.status == ChangeStatus::Pending => {
            DecisionOutcome::Past(ChangeStatus::Expired)
        }
        Some(change) => DecisionOutcome::Past(change.status),
    })
}

fn add(
    connection: &Connection,
    id: &str,
    new: NewChange,
    room: OpenChangeLimits,
) -> Result<ProposalOutcome, rusqlite::Error> {
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
        return there.map(ProposalOutcome::Same);
    }
    let count = format!(
        "SELECT count(*), count(*) FILTER (WHERE agent = ?1) FROM change WHERE {OPEN}
         AND (status = 'running' OR expires_ms > ?2)"
    );
    let (total, of_agent): (u32, u32) = connection
        .prepare_cached(&count)?
        .query_row(params![new.agent, now], |row| row.try_into())?;
    if total >= room.total || of_agent >= room.per_agent {
        return Ok(ProposalOutcome::NoRoom);
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
    Ok(ProposalOutcome::New(added))
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;

    use serde_json::json;

    use super::super::change_runs::ChangeEnd;
    use super::super::changes::*;
    use crate::vault::store::Vault;
    use gatewren_base::sys::Scratch;

    const ROOM: OpenChangeLimits = OpenChangeLimits {
        per_agent: 2,
        total: 3,
    };

    fn vault() -> (Vault, Scratch) {
        let scratch = Scratch::new();
        (Vault::open(&scratch.join("vault.db")).unwrap(), scratch)
    }

    fn new(agent: &str, line: &str) -> NewChange {
        NewChange {
            agent: agent.into(),
            space: "media".into(),
            tool: "container_shell".into(),
            target: Some("jellyfin".into()),
            arguments: json!({ "container": "jellyfin", "command": line })
                .as_object()
                .unwrap()
                .clone(),
            rests_on: vec!["/public/packageData/jellyfin/status".into()],
            revision: 7,
            reason: None,
            expires_ms: now_ms() + 3_600_000,
            proposed_in: None,
        }
    }

    fn by_owner() -> Decision {
        Decision {
            by: "local:root".into(),
            note: Some("go on".into()),
        }
    }

    async fn add_change(vault: &Vault, new: NewChange) -> Change {
        match vault.changes().add(new, ROOM).await.unwrap() {
            ProposalOutcome::New(change) => change,
            other => panic!("{other:?}"),
        }
    }

    async fn approve_change(vault: &Vault, change: &Change) -> Change {
        let changes = vault.changes();
        match changes
            .approve(&change.id, change.binding(), by_owner())
            .await
        {
            Ok(DecisionOutcome::Done(change)) => *change,
            other => panic!("{other:?}"),
        }
    }

    fn status(vault: &Vault, change: &Change) -> ChangeStatus {
        vault.changes().get(&change.id).unwrap().unwrap().status
    }

    fn successful_end() -> ChangeEnd {
        ChangeEnd {
            applied: true,
            words: None,
            result: Some("{}".into()),
            ran_in: Some("a1".into()),
        }
    }

    #[tokio::test]
    async fn a_change_lives_from_its_proposal_to_its_end_and_no_step_is_taken_twice() {
        let (vault, _scratch) = vault();
        let changes = vault.changes();
        let change = add_change(&vault, new("a", "x")).await;
        assert_eq!(change.status, ChangeStatus::Pending);
        assert!(changes.begin(&change.id).await.unwrap().is_none());
        let decided = approve_change(&vault, &change).await;
        assert_eq!(decided.decided_by.as_deref(), Some("local:root"));
        assert!(decided.serial > change.serial);
        let again = changes.approve(&change.id, decided.binding(), by_owner());
        assert!(matches!(
            again.await,
            Ok(DecisionOutcome::Past(ChangeStatus::Approved))
        ));
        let begun = changes.begin(&change.id).await.unwrap().unwrap();
        assert!(changes.begin(&change.id).await.unwrap().is_none());
        let late = changes.withdraw("a", &change.id).await;
        assert!(matches!(
            late,
            Ok(DecisionOutcome::Past(ChangeStatus::Running))
        ));
        let late = changes.reject(&change.id, by_owner()).await;
        assert!(matches!(
            late,
            Ok(DecisionOutcome::Past(ChangeStatus::Running))
        ));
        changes.end(begun, successful_end()).await.unwrap();
        let ended = changes.get(&change.id).unwrap().unwrap();
        assert_eq!(ended.status, ChangeStatus::Applied);
        assert_eq!(ended.note.as_deref(), Some("go on"));
        assert_eq!(ended.ran_in.as_deref(), Some("a1"));
    }

    #[tokio::test]
    async fn an_agent_has_its_own_changes_alone() {
        let (vault, _scratch) = vault();
        let changes = vault.changes();
        let change = add_change(&vault, new("a", "x")).await;
        assert!(changes.get_of("b", &change.id).unwrap().is_none());
        assert!(changes.list_of("b", false).unwrap().is_empty());
        let others = changes.withdraw("b", &change.id).await;
        assert!(matches!(others, Ok(DecisionOutcome::Absent)));
        assert_eq!(status(&vault, &change), ChangeStatus::Pending);
        let own = changes.withdraw("a", &change.id).await;
        assert!(matches!(own, Ok(DecisionOutcome::Done(_))));
        assert_eq!(changes.list_of("a", true).unwrap(), []);
        assert_eq!(changes.list_of("a", false).unwrap().len(), 1);
    }

    #[tokio::test]
    async fn the_same_proposal_is_the_same_change_while_it_waits() {
        let (vault, _scratch) = vault();
        let changes = vault.changes();
        let change = add_change(&vault, new("a", "x")).await;
        let same = changes.add(new("a", "x"), ROOM).await.unwrap();
        assert!(matches!(same, ProposalOutcome::Same(there) if there.id == change.id));
        let other = add_change(&vault, new("b", "x")).await;
        assert_ne!(other.id, change.id);
        changes.reject(&change.id, by_owner()).await.unwrap();
        assert_ne!(add_change(&vault, new("a", "x")).await.id, change.id);
    }

    #[tokio::test]
    async fn there_is_room_for_so_many_and_ends_make_room() {
        let (vault, _scratch) = vault();
        let changes = vault.changes();
        let first = add_change(&vault, new("a", "1")).await;
        add_change(&vault, new("a", "2")).await;
        let full = changes.add(new("a", "3"), ROOM).await.unwrap();
        assert!(matches!(full, ProposalOutcome::NoRoom), "of one agent");
        add_change(&vault, new("b", "1")).await;
        let full = changes.add(new("c", "1"), ROOM).await.unwrap();
        assert!(matches!(full, ProposalOutcome::NoRoom), "of all");
        changes.withdraw("a", &first.id).await.unwrap();
        add_change(&vault, new("c", "1")).await;
    }

    #[tokio::test]
    async fn what_is_past_its_time_is_neither_approved_nor_begun() {
        let (vault, _scratch) = vault();
        let changes = vault.changes();
        let over = NewChange {
            expires_ms: now_ms(),
            ..new("a", "x")
        };
        let change = add_change(&vault, over).await;
        let late = changes.approve(&change.id, change.binding(), by_owner());
        assert!(matches!(
            late.await,
            Ok(DecisionOutcome::Past(ChangeStatus::Expired))
        ));
        assert_eq!(changes.sweep().await.unwrap(), None);
        assert_eq!(status(&vault, &change), ChangeStatus::Expired);
        let lasting = add_change(&vault, new("a", "y")).await;
        assert_eq!(changes.sweep().await.unwrap(), Some(lasting.expires_ms));
        assert_eq!(status(&vault, &lasting), ChangeStatus::Pending);
    }

    #[tokio::test]
    async fn a_row_that_was_worked_on_is_refused() {
        let (vault, scratch) = vault();
        let changes = vault.changes();
        let other = Connection::open(scratch.join("vault.db")).unwrap();
        let worked_on = |sql: &str, change: &Change| {
            let sql = format!("UPDATE change SET {sql} WHERE id = ?1");
            assert_eq!(other.execute(&sql, [&change.id]).unwrap(), 1);
        };
        let bad = "arguments = replace(arguments, 'jellyfin', 'postgres')";
        let pending = add_change(&vault, new("a", "x")).await;
        worked_on(bad, &pending);
        let decided = changes.approve(&pending.id, pending.binding(), by_owner());
        assert!(
            matches!(decided.await, Ok(DecisionOutcome::Altered)),
            "before it"
        );
        let shown = changes.get(&pending.id).unwrap().unwrap();
        let decided = changes.approve(&pending.id, shown.binding(), by_owner());
        assert!(
            matches!(decided.await, Ok(DecisionOutcome::Altered)),
            "and as it is"
        );
        changes.withdraw("a", &pending.id).await.unwrap();
        for bad in [
            bad,
            "tool = 'system_shell'",
            "agent = 'b'",
            "space = '*'",
            "revision = 99",
        ] {
            let change = add_change(&vault, new("a", bad)).await;
            approve_change(&vault, &change).await;
            worked_on(bad, &change);
            assert!(changes.begin(&change.id).await.unwrap().is_none(), "{bad}");
            let refused = changes.get(&change.id).unwrap().unwrap();
            assert_eq!(refused.status, ChangeStatus::Failed, "{bad}");
            assert!(
                refused
                    .words
                    .unwrap()
                    .contains("differs from the one that the owner approved")
            );
        }
    }

    #[tokio::test]
    async fn what_ran_when_the_server_ended_is_unknown_and_never_begun_again() {
        let (vault, scratch) = vault();
        let change = add_change(&vault, new("a", "x")).await;
        approve_change(&vault, &change).await;
        drop(vault.changes().begin(&change.id).await.unwrap().unwrap());
        drop(vault);
        let vault = Vault::open(&scratch.join("vault.db")).unwrap();
        let changes = vault.changes();
        assert_eq!(changes.end_abandoned().await.unwrap(), 1);
        assert_eq!(status(&vault, &change), ChangeStatus::Unknown);
        assert!(changes.begin(&change.id).await.unwrap().is_none());
        assert_eq!(changes.end_abandoned().await.unwrap(), 0);
    }

    /// Opens the file eight times to simulate eight processes: they share nothing.
    #[test]
    fn of_many_who_approve_or_begin_at_once_one_does() {
        let (vault, scratch) = vault();
        let runtime = || {
            let mut builder = tokio::runtime::Builder::new_current_thread();
            builder.build().unwrap()
        };
        let change = runtime().block_on(add_change(&vault, new("a", "x")));
        let path = scratch.join("vault.db");
        let start = Barrier::new(8);
        let done: Vec<(bool, bool)> = std::thread::scope(|scope| {
            let racer = || {
                let vault = Vault::open(&path).unwrap();
                start.wait();
                runtime().block_on(async {
                    let changes = vault.changes();
                    let decided = changes.approve(&change.id, change.binding(), by_owner());
                    let approved = matches!(decided.await, Ok(DecisionOutcome::Done(_)));
                    let begun = changes.begin(&change.id).await.unwrap();
                    (approved, begun.is_some())
                })
            };
            let racers: Vec<_> = (0..8).map(|_| scope.spawn(racer)).collect();
            racers.into_iter().map(|r| r.join().unwrap()).collect()
        });
        assert_eq!(done.iter().filter(|(approved, _)| *approved).count(), 1);
        assert_eq!(done.iter().filter(|(_, begun)| *begun).count(), 1);
    }

    #[tokio::test]
    async fn the_bell_rings_for_other_processes_too() {
        let (ours, scratch) = vault();
        let theirs = Vault::open(&scratch.join("vault.db")).unwrap();
        let change = add_change(&ours, new("a", "x")).await;
        let mut inbox_changes = ours.changes().watch_inbox();
        inbox_changes.mark_unchanged();
        approve_change(&theirs, &change).await;
        let rung = tokio::time::timeout(std::time::Duration::from_mins(2), inbox_changes.changed());
        rung.await.unwrap().unwrap();
        let mut found = ours.changes().approved().unwrap();
        assert_eq!(found.pop().map(|change| change.id), Some(change.id));
    }

    #[tokio::test]
    async fn what_ended_long_ago_is_taken_away_and_numbers_go_on() {
        let (vault, scratch) = vault();
        let changes = vault.changes();
        let old = add_change(&vault, new("a", "1")).await;
        let newest = add_change(&vault, new("a", "2")).await;
        for change in [&old, &newest] {
            changes.reject(&change.id, by_owner()).await.unwrap();
        }
        let other = Connection::open(scratch.join("vault.db")).unwrap();
        other
            .execute("UPDATE change SET updated_ms = 0", [])
            .unwrap();
        for _ in 0..2 {
            changes.sweep().await.unwrap();
            assert!(changes.get(&old.id).unwrap().is_none());
        }
        let newest = changes.get(&newest.id).unwrap().unwrap();
        assert!(add_change(&vault, new("a", "3")).await.serial > newest.serial);
    }

    #[tokio::test]
    async fn so_many_ends_of_an_agent_are_kept_and_no_other_agent_pays_for_them() {
        let (vault, scratch) = vault();
        let changes = vault.changes();
        let others = add_change(&vault, new("b", "x")).await;
        changes.withdraw("b", &others.id).await.unwrap();
        let first = add_change(&vault, new("a", "x")).await;
        changes.withdraw("a", &first.id).await.unwrap();
        let many = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 256)
            INSERT INTO change SELECT 'x' || i, agent, space, tool, target, arguments, arguments_sha256,
                rests_on, revision, reason, created_ms, expires_ms, updated_ms, status, moved, decided_by,
                decided_ms, note, approved_sha256, words, result, proposed_in, ran_in, serial + i
            FROM change, n WHERE agent = 'a'";
        let other = Connection::open(scratch.join("vault.db")).unwrap();
        assert_eq!(other.execute(many, []).unwrap(), 256);
        changes.sweep().await.unwrap();
        assert!(changes.get(&first.id).unwrap().is_none());
        assert!(changes.get("x1").unwrap().is_some());
        assert!(changes.get(&others.id).unwrap().is_some());
    }
}
