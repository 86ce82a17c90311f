//! From an approval to what came of it: a change begins once, and what became of it is written down.

use rusqlite::{Connection, OptionalExtension as _, params};

use super::change::{Change, ChangeStatus, read};
use super::changes::{Changes, NOTED, find};
use super::error::VaultError;
use super::row::to_column;
use crate::sys::now_ms;

/// How long a change is kept after its end.
pub const KEPT_MS: u64 = 30 * 24 * 3_600_000;

/// The most changes of one agent that are kept after their end; beyond it its oldest go.
const MAX_ENDED: u32 = 256;

/// Said of a change whose row is not the one that was approved.
const ALTERED: &str = "What stands in the vault is not what the owner approved. Nothing was done.";

/// Said of a change that ran when the server ended.
const UNKNOWN: &str = "The server ended while this ran. It may have been done in part or whole; it is not run \
                       again. Look at its target before it is proposed anew.";

/// An approved change that was begun, which happens once: without it nothing approved runs.
#[derive(Debug)]
#[must_use = "what became of it has to be written down"]
pub struct Begun(Change);

impl Begun {
    /// The change as it was approved.
    pub fn change(&self) -> &Change {
        &self.0
    }
}

/// What became of a change that was begun.
#[derive(Debug, Clone)]
pub struct ChangeEnd {
    /// Whether it was done.
    pub applied: bool,
    /// What is to be said of it.
    pub words: Option<String>,
    /// The result of the call, as JSON.
    pub result: Option<String>,
    /// The audit id of the call.
    pub ran_in: Option<String>,
}

impl Changes<'_> {
    /// The approved changes, in the order in which they were approved.
    pub fn approved(&self) -> Result<Vec<Change>, VaultError> {
        let mut approved = self.listed("status = 'approved'", None)?;
        approved.sort_by_key(|change| change.serial);
        Ok(approved)
    }

    /// Marks an approved change as running, durably: only then may it run. Nothing when it is approved no more,
    /// or its time is over; one whose row is not what was approved has failed.
    pub async fn begin(&self, id: &str) -> Result<Option<Begun>, VaultError> {
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
            Ok(change.map(Begun))
        };
        self.change("begin a change", work).await
    }

    /// Writes down what became of a change that was begun.
    pub async fn end(&self, begun: Begun, end: ChangeEnd) -> Result<(), VaultError> {
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

    /// Ends an approved change that cannot be begun, and says why.
    pub async fn refuse(&self, id: &str, words: String) -> Result<(), VaultError> {
        let id = id.to_owned();
        let work = move |connection: &Connection| fail(connection, &id, &words);
        self.change("refuse a change", work).await
    }

    /// Puts an approved change before the owner again, because what it rests on moved up to this revision.
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
        self.change("ask for a change again", work).await
    }

    /// Says of all changes that a server which is no more left running that nobody knows; how many there were.
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

    /// Withdraws what an agent that is no more has proposed.
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

    /// Ends the changes whose time is over, and takes away those that ended long ago. When the next one's time is
    /// over, in milliseconds since 1970.
    pub async fn sweep(&self) -> Result<Option<u64>, VaultError> {
        let due = self.0.read("look for old changes", |connection| {
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
        self.0.read("look for the next change", |connection| {
            let next = "SELECT min(expires_ms) FROM change WHERE status IN ('pending', 'approved')";
            let next: Option<i64> = connection
                .prepare_cached(next)?
                .query_row([], |r| r.get(0))?;
            Ok(next.map(|next| u64::try_from(next).unwrap_or(0)))
        })
    }
}

/// Now, since when a change may have ended, and how many of an agent may have.
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
    // The newest row stays: the numbers of later ones go on from it.
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
