//! From approval to result: each approved change starts at most once, and its result is recorded.

use rusqlite::{Connection, OptionalExtension as _, params};

use super::change::{Change, ChangeStatus, read};
use super::changes::{ChangeTable, NOTED, find};
use crate::vault::error::VaultError;
use crate::vault::row::to_column;
use gatewren_base::sys::now_ms;

/// How long a finished change is kept.
pub const KEPT_MS: u64 = 30 * 24 * 3_600_000;

/// The limit of finished changes that are kept for each agent. Beyond it the oldest are deleted.
const MAX_ENDED: u32 = 256;

/// The explanation for a change whose row differs from the approved one.
const ALTERED: &str =
    "The change in the vault differs from the one that the owner approved. Nothing was done.";

/// The explanation for a change that was running when the server ended.
const UNKNOWN: &str = "The server stopped while this change ran. It may have been applied in part or in full, and \
                       it is not run again. Check its target before you propose it again.";

/// Proof that an approved change was started, which happens once. No approved change runs without it.
#[derive(Debug)]
#[must_use = "the result of the change must be recorded"]
pub struct StartedChange(Change);

impl StartedChange {
    /// Returns the change as it was approved.
    pub fn change(&self) -> &Change {
        &self.0
    }
}

/// The result of a change that was started.
#[derive(Debug, Clone)]
pub struct ChangeEnd {
    /// Whether it was applied.
    pub applied: bool,
    /// An explanation of the result.
    pub words: Option<String>,
    /// The result of the call, as JSON.
    pub result: Option<String>,
    /// The audit id of the call.
    pub ran_in: Option<String>,
}

impl ChangeTable<'_> {
    /// Returns the approved changes, in the order of their approval.
    pub fn approved(&self) -> Result<Vec<Change>, VaultError> {
        let mut approved = self.list_where("status = 'approved'", None)?;
        approved.sort_by_key(|change| change.serial);
        Ok(approved)
    }

    /// Durably marks an approved change as running. Only then may it run.
    ///
    /// Returns `None` if it is no longer approved or has expired. If the row differs from the approved one, the
    /// change fails.
    pub async fn begin(&self, id: &str) -> Result<Option<StartedChange>, VaultError> {
        let id = id.to_owned();
        let work = move |connection: &Connection| {
            let now = to_column(now_ms());
            let select = "SELECT *, approved_sha256 FROM change
                          WHERE id = ?1 AND status = 'approved' AND expires_ms > ?2";
            let found = connection
                .prepare_cached(select)?
                .query_row(params![id, now], |row| {
                    Ok((read(row)?, row.get("approved_sha256")?))
                });
            let Some((change, approved)) = found.optional()? else {
                return Ok(None);
            };
            let approved: Option<[u8; 32]> = approved;
            if approved != Some(change.binding()) || change.proven_arguments().is_none() {
                fail(connection, &id, ALTERED)?;
                return Ok(None);
            }
            let sql = format!(
                "UPDATE change SET {NOTED}, status = 'running' WHERE id = ?1 AND status = 'approved'"
            );
            let begun = connection.prepare_cached(&sql)?.execute(params![id, now])?;
            let change = find(connection, &id)?.filter(|_| begun > 0);
            Ok(change.map(StartedChange))
        };
        self.change("begin a change", work).await
    }

    /// Records the result of a change that was started.
    pub async fn end(&self, begun: StartedChange, end: ChangeEnd) -> Result<(), VaultError> {
        let work = move |connection: &Connection| {
            let status = if end.applied {
                ChangeStatus::Applied
            } else {
                ChangeStatus::Failed
            };
            let sql = format!(
                "UPDATE change SET {NOTED}, status = ?3, words = ?4, result = ?5, ran_in = ?6
                 WHERE id = ?1 AND status = 'running'"
            );
            connection.prepare_cached(&sql)?.execute(params![
                begun.0.id,
                to_column(now_ms()),
                status.as_str(),
                end.words,
                end.result,
                end.ran_in,
            ])?;
            Ok(())
        };
        self.change("end a change", work).await
    }

    /// Ends an approved change that cannot be started, with the reason.
    pub async fn refuse(&self, id: &str, words: String) -> Result<(), VaultError> {
        let id = id.to_owned();
        let work = move |connection: &Connection| fail(connection, &id, &words);
        self.change("refuse a change", work).await
    }

    /// Asks the owner again about an approved change, because a dependency changed up to the revision `moved`.
    pub async fn ask_again(&self, id: &str, moved: u64, words: String) -> Result<(), VaultError> {
        let id = id.to_owned();
        let work = move |connection: &Connection| {
            let sql = format!(
                "UPDATE change SET {NOTED}, status = 'pending', moved = ?3, revision = ?3, words = ?4,
                    decided_by = NULL, decided_ms = NULL, note = NULL, approved_sha256 = NULL
                 WHERE id = ?1 AND status = 'approved'"
            );
            let row = params![id, to_column(now_ms()), to_column(moved), words];
            connection.prepare_cached(&sql)?.execute(row)?;
            Ok(())
        };
        self.change("return a change to the owner", work).await
    }

    /// Sets the status `unknown` for all changes that an earlier run of the server left running. Returns their
    /// number.
    pub async fn end_abandoned(&self) -> Result<usize, VaultError> {
        let work = |connection: &Connection| {
            let now = to_column(now_ms());
            let sql = "UPDATE change SET updated_ms = ?1, status = 'unknown', words = ?2,
                           serial = (SELECT max(serial) + 1 FROM change)
                       WHERE status = 'running'";
            connection.execute(sql, params![now, UNKNOWN])
        };
        self.change("end the changes of the last run", work).await
    }

    /// Withdraws the open proposals of a revoked agent.
    pub async fn withdraw_all(&self, agent: &str, words: String) -> Result<usize, VaultError> {
        let agent = agent.to_owned();
        let work = move |connection: &Connection| {
            let sql = format!(
                "UPDATE change SET {NOTED}, status = 'withdrawn', words = ?3
                 WHERE agent = ?1 AND status IN ('pending', 'approved')"
            );
            connection.execute(&sql, params![agent, to_column(now_ms()), words])
        };
        self.change("withdraw an agent's changes", work).await
    }

    /// Expires overdue changes, and deletes those that finished long ago. Returns when the next change expires, in
    /// milliseconds since 1970.
    pub async fn sweep(&self) -> Result<Option<u64>, VaultError> {
        let due = self.0.read("find old changes", |connection| {
            connection
                .prepare_cached(
                    "SELECT EXISTS (SELECT 1 FROM change WHERE status IN ('pending', 'approved')
                         AND expires_ms <= ?1)
                     OR EXISTS (SELECT 1 FROM change WHERE updated_ms <= ?2
                         AND status NOT IN ('pending', 'approved', 'running')
                         AND serial < (SELECT max(serial) FROM change))
                     OR EXISTS (SELECT 1 FROM change
                         WHERE status NOT IN ('pending', 'approved', 'running')
                         GROUP BY agent HAVING count(*) > ?3)",
                )?
                .query_row(bounds(), |row| row.get(0))
        })?;
        if due {
            self.change("end old changes", sweep).await?;
        }
        self.0.read("find the next change", |connection| {
            let next = "SELECT min(expires_ms) FROM change WHERE status IN ('pending', 'approved')";
            let next: Option<i64> = connection
                .prepare_cached(next)?
                .query_row([], |r| r.get(0))?;
            Ok(next.map(|next| u64::try_from(next).unwrap_or(0)))
        })
    }
}

/// Returns the current time, the oldest end time that is kept, and the limit of finished changes for each agent.
fn bounds() -> (i64, i64, u32) {
    let now = now_ms();
    (
        to_column(now),
        to_column(now.saturating_sub(KEPT_MS)),
        MAX_ENDED,
    )
}

fn sweep(connection: &Connection) -> Result<(), rusqlite::Error> {
    let (now, kept_since, most) = bounds();
    connection.execute(
        "UPDATE change SET updated_ms = ?1, status = 'expired',
             serial = (SELECT max(serial) + 1 FROM change)
         WHERE status IN ('pending', 'approved') AND expires_ms <= ?1",
        [now],
    )?;
    // The newest row stays, because later serials continue from it.
    let ended = "status NOT IN ('pending', 'approved', 'running')";
    connection.execute(
        &format!(
            "DELETE FROM change WHERE {ended} AND serial < (SELECT max(serial) FROM change)
             AND (updated_ms <= ?1 OR id IN (
                 SELECT id FROM (SELECT id, row_number() OVER
                     (PARTITION BY agent ORDER BY serial DESC, id) AS age FROM change WHERE {ended})
                 WHERE age > ?2))"
        ),
        params![kept_since, most],
    )?;
    Ok(())
}

fn fail(connection: &Connection, id: &str, words: &str) -> Result<(), rusqlite::Error> {
    let sql = format!(
        "UPDATE change SET {NOTED}, status = 'failed', words = ?3 WHERE id = ?1 AND status = 'approved'"
    );
    let row = params![id, to_column(now_ms()), words];
    connection.prepare_cached(&sql)?.execute(row)?;
    Ok(())
}
