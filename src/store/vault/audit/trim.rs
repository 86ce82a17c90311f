//! Removes the oldest calls from the audit. A sealed checkpoint records the position that the kept rows continue
//! from.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use rusqlite::Connection;
use rusqlite::functions::FunctionFlags;

use super::chain::{self, ChainFault};
use super::chain_tail::ChainTail;
use super::checkpoint::{self, Checkpoint};
use super::entry::{AuditEntry, AuditId, AuditOutcome};
use super::exact;
use super::row::{UnnumberedRow, append};
use super::table::AuditTable;
use crate::vault::agents::keys::SecretKey;
use crate::vault::error::VaultError;
use crate::vault::job::Durability;
use crate::vault::row::to_column;
use crate::vault::shared::SharedVault;
use gatewren_base::sys::now_ms;

/// The SQL function that the triggers call. Without it they reject the statement.
const IS_TRIMMING: &str = "gatewren_is_trimming";

/// The limit of rows for one transaction, so that calls do not wait long for it.
const MAX_ROWS: i64 = 10_000;

/// The minimum number of rows for a checkpoint, unless the last trim is `LONG_AGO`.
const WORTHWHILE_ROWS: i64 = 1_000;

/// After this time a trim also runs for fewer rows.
const LONG_AGO: Duration = Duration::from_hours(24);

/// No call runs longer. A call of a front that was killed beside another one has no outcome, and holds up no trim.
const LONGEST_CALL_MS: u64 = 24 * 60 * 60 * 1_000;

/// The number of rows that a trim itself adds.
const OWN_ROWS: i64 = 2;

/// How much of the audit is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AuditRetention {
    /// Calls younger than this are kept.
    pub age: Duration,
    /// The maximum number of rows to keep. A call that only reads has one, any other has two.
    pub rows: u64,
}

/// The result of a trim.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TrimResult {
    /// The number of removed rows.
    pub rows: u64,
    /// Whether there may be more to remove.
    pub more: bool,
}

impl AuditTable<'_> {
    /// Removes whole calls from the oldest end, if they are too old or too many. The checkpoint and two audit rows
    /// about the trim are written in the same transaction. A call in progress, and everything written after it
    /// began, stays.
    ///
    /// Fails and removes nothing if the vault cannot be written, or if a row to be removed was altered. The
    /// evidence must not disappear before a person has seen it.
    pub async fn trim(&self, retention: AuditRetention) -> Result<TrimResult, VaultError> {
        let shared: &SharedVault = self.shared();
        let key = shared.key(checkpoint::KEY).await?;
        let trim = Trim {
            key,
            run_after: shared.audit_run_after.load(Ordering::Relaxed),
            call: AuditId::new(shared.ids.next()),
            tail: Arc::clone(&shared.trail.tail),
            retention,
        };
        let doing = "trim the audit";
        let work = move |connection: &Connection| trim.run(connection);
        let writer = &shared.writer;
        let trimmed = writer.write(doing, Durability::Power, work, |_| ()).await?;
        trimmed.map_err(|(seq, _)| VaultError::Tampered {
            seq: u64::try_from(seq).unwrap_or(0),
        })
    }
}

/// The data that a trim needs in the writing thread.
struct Trim {
    key: SecretKey,
    /// A call up to this row without an outcome never gets one.
    run_after: i64,
    call: AuditId,
    tail: Arc<ChainTail>,
    retention: AuditRetention,
}

impl Trim {
    fn run(
        &self,
        connection: &Connection,
    ) -> rusqlite::Result<Result<TrimResult, (i64, ChainFault)>> {
        let (begun, now) = (Instant::now(), now_ms());
        let start = match chain::start(connection)? {
            Ok(start) => start,
            Err(broken) => return Ok(Err(broken)),
        };
        if let Err(broken) = chain::check_checkpoint_row(connection, &start)? {
            return Ok(Err(broken));
        }
        let due = self.last_due_row(connection, start.trimmed, now)?;
        let long_ago = to_column(now).saturating_sub(start.at_ms) >= millis(LONG_AGO);
        let least = if long_ago {
            OWN_ROWS + 1
        } else {
            WORTHWHILE_ROWS
        };
        if due - start.trimmed < least {
            return Ok(Ok(TrimResult::default()));
        }
        let end = due.min(start.trimmed + MAX_ROWS);
        let running = RunningCalls {
            after: self.run_after,
            since_ms: to_column(now.saturating_sub(LONGEST_CALL_MS)),
        };
        let Some(through) = last_quiet(connection, start.trimmed, end, &running)? else {
            tracing::warn!("the audit is not trimmed: a call was running at every possible end");
            return Ok(Ok(TrimResult::default()));
        };
        let (_, sha256) = match chain::walk(connection, &start, through)? {
            Ok(end) => end,
            Err(broken) => return Ok(Err(broken)),
        };
        let rows = through - start.trimmed;
        let checkpoint = Checkpoint {
            through,
            sha256,
            rows,
            at_ms: to_column(now),
            call: self.call.to_string(),
        };
        run_as_trim(connection, || {
            self.carry_out(connection, &checkpoint, begun)
        })?;
        Ok(Ok(TrimResult {
            rows: u64::try_from(rows).unwrap_or(0),
            more: due > end,
        }))
    }

    /// Returns the number of the last row that need not be kept.
    fn last_due_row(
        &self,
        connection: &Connection,
        trimmed: i64,
        now: u64,
    ) -> rusqlite::Result<i64> {
        let oldest = to_column(now).saturating_sub(millis(self.retention.age));
        let highest: i64 =
            connection.query_row("SELECT coalesce(max(seq), 0) FROM audit", [], |row| {
                row.get(0)
            })?;
        let too_many = highest.saturating_sub(to_column(self.retention.rows));
        // The clock may have been set back. The old rows end at the first row that is young enough.
        let young = "SELECT min(seq) FROM (SELECT seq FROM audit WHERE seq > ?1 AND at_ms >= ?2
                     ORDER BY seq LIMIT 1)";
        let young: Option<i64> =
            connection.query_row(young, (trimmed, oldest), |row| row.get(0))?;
        let too_old = young.map_or(highest, |seq| seq - 1);
        Ok(too_old.max(too_many))
    }

    fn carry_out(
        &self,
        connection: &Connection,
        checkpoint: &Checkpoint,
        begun: Instant,
    ) -> rusqlite::Result<()> {
        checkpoint.write(connection, &self.key)?;
        let arguments = checkpoint.arguments();
        let intent = UnnumberedRow::of_intent(&self.call, &trim_entry(&arguments));
        append(connection, &self.tail, &intent)?;
        exact::trim(connection, checkpoint.through)?;
        let gone = connection.execute("DELETE FROM audit WHERE seq <= ?1", [checkpoint.through])?;
        debug_assert_eq!(i64::try_from(gone), Ok(checkpoint.rows));
        let outcome = AuditOutcome {
            outcome: "ok",
            duration_ms: u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX),
            revision_before: None,
            revision: None,
            error: None,
        };
        append(
            connection,
            &self.tail,
            &UnnumberedRow::of_outcome(&self.call, outcome),
        )
    }
}

/// Returns the audit entry of the trim.
fn trim_entry(arguments: &serde_json::Value) -> AuditEntry<'_> {
    AuditEntry {
        agent: "gatewren",
        token: None,
        space: None,
        session: None,
        request: None,
        address: "local",
        tool: checkpoint::TOOL,
        risk: "disrupt",
        arguments,
        reason: None,
        target: None,
        mode: None,
        decision: "settings",
        change: None,
    }
}

/// Which calls without an outcome may still run.
struct RunningCalls {
    /// Those after this row: earlier ones ended with an earlier run of the server.
    after: i64,
    /// Those since this time: earlier ones ended with another front, which was killed.
    since_ms: i64,
}

/// Returns the last row after `trimmed`, up to `end`, after which no call is in progress; `None` if a call always is.
fn last_quiet(
    connection: &Connection,
    trimmed: i64,
    end: i64,
    running: &RunningCalls,
) -> rusqlite::Result<Option<i64>> {
    let mut statement = connection.prepare(
        "SELECT i.seq, i.call, i.outcome IS NOT NULL,
                i.kind = 'intent' AND o.seq IS NULL AND (i.seq <= ?3 OR i.at_ms < ?4)
         FROM audit i LEFT JOIN audit o ON o.call = i.call AND o.kind = 'outcome'
         WHERE i.seq > ?1 AND i.seq <= ?2 ORDER BY i.seq",
    )?;
    let mut rows = statement.query((trimmed, end, running.after, running.since_ms))?;
    let mut unfinished = HashSet::new();
    let mut quiet = None;
    while let Some(row) = rows.next()? {
        let (seq, call, ends, never_ends): (i64, String, bool, bool) = row.try_into()?;
        if ends {
            unfinished.remove(&call);
        } else if !never_ends {
            unfinished.insert(call);
        }
        if unfinished.is_empty() {
            quiet = Some(seq);
        }
    }
    Ok(quiet)
}

/// Runs `work` with the permission that the triggers require.
fn run_as_trim(
    connection: &Connection,
    work: impl FnOnce() -> rusqlite::Result<()>,
) -> rusqlite::Result<()> {
    let flags = FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_INNOCUOUS;
    connection.create_scalar_function(IS_TRIMMING, 0, flags, |_| Ok(true))?;
    let done = work();
    connection.remove_function(IS_TRIMMING, 0).and(done)
}

fn millis(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::chain::ChainVerification;
    use super::super::trim::*;
    use crate::vault::agents::keys;
    use crate::vault::store::Vault;
    use gatewren_base::sys::Scratch;

    /// Everything that may be removed is removed.
    const NOTHING: AuditRetention = AuditRetention {
        age: Duration::ZERO,
        rows: 0,
    };

    async fn begin(vault: &Vault, n: u64) -> AuditId {
        let arguments = json!({ "n": n });
        let entry = AuditEntry {
            tool: "container_start",
            ..trim_entry(&arguments)
        };
        vault.audit().intent(entry).await.unwrap()
    }

    const ENDED: AuditOutcome<'static> = AuditOutcome {
        outcome: "ok",
        duration_ms: 1,
        revision_before: None,
        revision: None,
        error: None,
    };

    async fn end(vault: &Vault, id: AuditId) {
        vault.audit().outcome(&id, ENDED).unwrap();
        vault.probe().await.unwrap();
    }

    async fn calls(vault: &Vault, count: u64) {
        for n in 0..count {
            let id = begin(vault, n).await;
            end(vault, id).await;
        }
    }

    fn intact_chain(rows: u64, trimmed: u64) -> ChainVerification {
        ChainVerification::Intact { rows, trimmed }
    }

    fn broken(seq: u64, fault: ChainFault) -> ChainVerification {
        ChainVerification::Broken { seq, fault }
    }

    #[tokio::test]
    async fn reads_are_trimmed_row_by_row() {
        let scratch = Scratch::new();
        let vault = Vault::open(&scratch.join("vault.db")).unwrap();
        let arguments = json!({});
        for _ in 0..5 {
            let read = vault.audit().begin_read(trim_entry(&arguments)).await;
            vault
                .audit()
                .end_read(read.unwrap().unwrap(), ENDED)
                .unwrap();
        }
        vault.probe().await.unwrap();
        let retention = AuditRetention {
            age: Duration::from_hours(1),
            rows: 2,
        };
        let trimmed = vault.audit().trim(retention).await.unwrap();
        assert_eq!(trimmed.rows, 3);
        assert_eq!(vault.audit().verify().unwrap(), intact_chain(4, 3));
    }

    /// Two kept calls after three trimmed ones, and a second connection without the triggers that guard them.
    async fn trimmed_vault(scratch: &Scratch) -> (Vault, Connection) {
        let path = scratch.join("vault.db");
        let vault = Vault::open(&path).unwrap();
        calls(&vault, 5).await;
        let retention = AuditRetention {
            age: Duration::from_hours(1),
            rows: 4,
        };
        let trimmed = vault.audit().trim(retention).await.unwrap();
        let expected = TrimResult {
            rows: 6,
            more: false,
        };
        assert_eq!(trimmed, expected);
        assert_eq!(vault.audit().verify().unwrap(), intact_chain(6, 6));
        let other = Connection::open(path).unwrap();
        let triggers = "SELECT group_concat('DROP TRIGGER ' || name, ';') FROM sqlite_schema
                        WHERE type = 'trigger' AND name LIKE 'audit%'";
        let triggers: String = other.query_row(triggers, [], |row| row.get(0)).unwrap();
        other.execute_batch(&triggers).unwrap();
        (vault, other)
    }

    /// Adds enough rows for a trim.
    async fn add_enough_rows(vault: &Vault) {
        for _ in 0..WORTHWHILE_ROWS {
            let outcome = UnnumberedRow::of_outcome(&AuditId::new(vault.shared.ids.next()), ENDED);
            let tail = Arc::clone(&vault.shared.trail.tail);
            let work = move |connection: &Connection| append(connection, &tail, &outcome);
            vault.shared.writer.enqueue_uncounted("add", work).unwrap();
        }
        vault.probe().await.unwrap();
    }

    async fn after(sql: &str) -> ChainVerification {
        let scratch = Scratch::new();
        let (vault, other) = trimmed_vault(&scratch).await;
        other.execute_batch(sql).unwrap();
        vault.audit().verify().unwrap()
    }

    #[tokio::test]
    async fn what_is_kept_follows_on_what_was_trimmed() {
        let scratch = Scratch::new();
        let (vault, _) = trimmed_vault(&scratch).await;
        calls(&vault, 1).await;
        drop(vault);
        let vault = Vault::open(&scratch.join("vault.db")).unwrap();
        calls(&vault, 1).await;
        assert_eq!(vault.audit().verify().unwrap(), intact_chain(10, 6));
        // A few more rows are not worth a checkpoint within `LONG_AGO`.
        let again = vault.audit().trim(NOTHING).await.unwrap();
        assert_eq!(again, TrimResult::default());
    }

    #[tokio::test]
    async fn a_trimming_follows_on_the_one_before() {
        let scratch = Scratch::new();
        let (vault, _) = trimmed_vault(&scratch).await;
        add_enough_rows(&vault).await;
        let trimmed = vault.audit().trim(NOTHING).await.unwrap();
        assert_eq!(trimmed.rows, 1006);
        assert_eq!(vault.audit().verify().unwrap(), intact_chain(2, 1012));
    }

    #[tokio::test]
    async fn calls_go_whole_and_never_while_they_are_under_way() {
        let scratch = Scratch::new();
        let path = scratch.join("vault.db");
        let vault = Vault::open(&path).unwrap();
        begin(&vault, 7).await;
        calls(&vault, 3).await;
        let halved = AuditRetention {
            age: Duration::from_hours(1),
            rows: 4,
        };
        // Three of the seven rows may be removed, but the first belongs to a call that has not ended.
        assert_eq!(vault.audit().trim(halved).await.unwrap().rows, 0);
        calls(&vault, 1).await;
        assert_eq!(vault.audit().verify().unwrap(), intact_chain(9, 0));
        drop(vault);
        // The next run knows that the call never gets an outcome.
        let vault = Vault::open(&path).unwrap();
        vault.audit().begin_run().await.unwrap();
        let trimmed = vault.audit().trim(halved).await.unwrap();
        assert_eq!(trimmed.rows, 5);
        assert_eq!(vault.audit().verify().unwrap(), intact_chain(6, 5));
    }

    #[tokio::test]
    async fn a_checkpoint_that_is_not_ours_is_found() {
        for column in ["through", "rows", "at_ms"] {
            let sql = format!("UPDATE audit_checkpoint SET {column} = {column} + 1");
            let at = if column == "through" { 7 } else { 6 };
            assert_eq!(
                after(&sql).await,
                broken(at, ChainFault::Checkpoint),
                "{sql}"
            );
        }
        for sql in [
            "UPDATE audit_checkpoint SET call = call || 'x'",
            "UPDATE audit_checkpoint SET sha256 = zeroblob(32)",
            "UPDATE audit_checkpoint SET seal = zeroblob(32)",
            "INSERT INTO audit_checkpoint SELECT 1, sha256, rows, at_ms, call, seal FROM audit_checkpoint",
            "UPDATE key SET bytes = zeroblob(32)",
            "DELETE FROM key",
        ] {
            assert_eq!(after(sql).await, broken(6, ChainFault::Checkpoint), "{sql}");
        }
        let moved = "DELETE FROM audit WHERE seq <= 8; UPDATE audit_checkpoint SET through = 8,
            sha256 = (SELECT previous_sha256 FROM audit WHERE seq = 9)";
        assert_eq!(after(moved).await, broken(8, ChainFault::Checkpoint));
    }

    #[tokio::test]
    async fn a_checkpoint_that_is_gone_leaves_its_rows_missing() {
        assert_eq!(
            after("DELETE FROM audit_checkpoint").await,
            broken(1, ChainFault::Missing)
        );
    }

    #[tokio::test]
    async fn a_checkpoint_sealed_by_somebody_who_has_the_key_is_told_nowhere() {
        let scratch = Scratch::new();
        let (vault, other) = trimmed_vault(&scratch).await;
        let row = "SELECT previous_sha256 FROM audit WHERE seq = 9";
        let forged = Checkpoint {
            through: 8,
            sha256: other.query_row(row, [], |row| row.get(0)).unwrap(),
            rows: 2,
            at_ms: 1,
            call: "none".to_owned(),
        };
        let key = keys::find(&other, checkpoint::KEY).unwrap().unwrap();
        forged.write(&other, &key).unwrap();
        let sql = "DELETE FROM audit WHERE seq <= 8";
        other.execute_batch(sql).unwrap();
        let found = vault.audit().verify().unwrap();
        assert_eq!(found, broken(8, ChainFault::Checkpoint));
        let refused = vault.audit().trim(NOTHING).await;
        assert!(matches!(refused, Err(VaultError::Tampered { seq: 8 })));
    }

    #[tokio::test]
    async fn what_was_tampered_with_is_not_trimmed_away() {
        for (sql, seq) in [
            ("UPDATE audit SET tool = 'x' WHERE seq = 9", 9),
            ("DELETE FROM audit WHERE seq = 7", 7),
            ("UPDATE audit_checkpoint SET at_ms = 0", 6),
            ("DELETE FROM audit_checkpoint", 1),
        ] {
            let scratch = Scratch::new();
            let (vault, other) = trimmed_vault(&scratch).await;
            add_enough_rows(&vault).await;
            other.execute_batch(sql).unwrap();
            let rows = |connection: &Connection| -> i64 {
                let count = "SELECT count(*) FROM audit";
                connection.query_row(count, [], |row| row.get(0)).unwrap()
            };
            let before = rows(&other);
            let error = vault.audit().trim(NOTHING).await.unwrap_err().to_string();
            let start = format!("the audit was altered from row {seq} on");
            assert!(error.starts_with(&start), "{sql}: {error}");
            assert_eq!(rows(&other), before);
        }
    }

    #[tokio::test]
    async fn what_is_wrong_with_a_kept_row_is_still_found() {
        let swapped =
            "UPDATE audit SET seq = 99 WHERE seq = 8; UPDATE audit SET seq = 8 WHERE seq = 9;
            UPDATE audit SET seq = 9 WHERE seq = 99";
        for (sql, seq, fault) in [
            ("DELETE FROM audit WHERE seq = 7", 7, ChainFault::Missing),
            ("DELETE FROM audit WHERE seq = 9", 9, ChainFault::Missing),
            ("DELETE FROM audit WHERE seq >= 11", 11, ChainFault::Missing),
            ("DELETE FROM audit", 7, ChainFault::Missing),
            (
                "UPDATE audit SET tool = 'x' WHERE seq = 7",
                7,
                ChainFault::Altered,
            ),
            (
                "UPDATE audit SET format = 1 WHERE seq = 8",
                8,
                ChainFault::Altered,
            ),
            (
                "UPDATE audit SET seq = 6 WHERE seq = 7",
                7,
                ChainFault::Missing,
            ),
            (swapped, 8, ChainFault::Altered),
        ] {
            assert_eq!(after(sql).await, broken(seq, fault), "{sql}");
        }
    }

    #[tokio::test]
    async fn nobody_else_trims() {
        let scratch = Scratch::new();
        let path = scratch.join("vault.db");
        let vault = Vault::open(&path).unwrap();
        calls(&vault, 5).await;
        assert_eq!(vault.audit().trim(NOTHING).await.unwrap().rows, 10);
        calls(&vault, 1).await;
        let other = Connection::open(&path).unwrap();
        for sql in [
            "DELETE FROM audit",
            "DELETE FROM audit WHERE seq = 11",
            "DELETE FROM audit_checkpoint",
            "INSERT OR REPLACE INTO audit_checkpoint SELECT * FROM audit_checkpoint",
            "INSERT INTO audit_checkpoint SELECT seq, sha256, 1, 1, '', sha256 FROM audit WHERE seq = 13",
            "UPDATE audit_checkpoint SET through = 99",
        ] {
            let refused = |error: &str| {
                let by_trigger = error.contains("a checkpoint of the audit is never changed");
                assert!(
                    by_trigger || error.contains("no such function"),
                    "{sql}: {error}"
                );
            };
            refused(&other.execute_batch(sql).unwrap_err().to_string());
            // Not even the writing thread can do it outside of a trim.
            let work = move |connection: &Connection| connection.execute_batch(sql);
            let writer = &vault.shared.writer;
            let written = writer
                .write("try", Durability::Process, work, |()| ())
                .await;
            refused(&written.unwrap_err().to_string());
        }
        assert_eq!(vault.audit().verify().unwrap(), intact_chain(4, 10));
    }

    #[tokio::test]
    async fn a_trimming_that_fails_leaves_everything_as_it_was() {
        let scratch = Scratch::new();
        let path = scratch.join("vault.db");
        let vault = Vault::open(&path).unwrap();
        calls(&vault, 5).await;
        let other = Connection::open(&path).unwrap();
        let full = "CREATE TRIGGER full BEFORE INSERT ON audit WHEN NEW.tool = 'audit trim'
            BEGIN SELECT RAISE(ABORT, 'the disk is full'); END";
        other.execute_batch(full).unwrap();
        let error = vault.audit().trim(NOTHING).await.unwrap_err().to_string();
        assert!(error.contains("the disk is full"), "{error}");
        assert_eq!(vault.audit().verify().unwrap(), intact_chain(10, 0));
        calls(&vault, 1).await;
        other.execute_batch("DROP TRIGGER full").unwrap();
        assert_eq!(vault.audit().trim(NOTHING).await.unwrap().rows, 12);
        assert_eq!(vault.audit().verify().unwrap(), intact_chain(2, 12));
    }
}
