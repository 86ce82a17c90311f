//! The audit: records the intent before a call runs and the outcome after it.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use rusqlite::Connection;
use tokio::sync::OwnedSemaphorePermit;

use super::chain;
#[cfg(test)]
use super::chain::ChainVerification;
use super::chain_tail::ChainHead;
use super::entry::{AuditEntry, AuditId, AuditOutcome};
use super::row::{UnnumberedRow, append};
use super::row_job::AuditRowJob;
use crate::vault::error::VaultError;
use crate::vault::job::Durability;
#[cfg(test)]
use crate::vault::open;
use crate::vault::shared::SharedVault;
use crate::vault::writer::{QueuedWrite, WriteKind};

/// The row of `meta` with the number of the last audit row before this run of the server.
pub(in crate::vault) const RUN_AFTER: &str = "audit_run_after";

/// The record of a call that only reads. It becomes one row when the call ends, and none if it is dropped.
pub struct ReadRecord {
    id: AuditId,
    row: UnnumberedRow,
    slot: OwnedSemaphorePermit,
}

impl ReadRecord {
    /// The call's id in the audit.
    pub fn id(&self) -> &AuditId {
        &self.id
    }
}

/// The wait until an intent is on the disk and survives a power cut.
pub type WrittenIntent = Pin<Box<dyn Future<Output = Result<(), VaultError>> + Send>>;

/// Access to the table.
pub struct AuditTable<'a> {
    shared: &'a SharedVault,
}

impl<'a> AuditTable<'a> {
    pub(in crate::vault) fn new(shared: &'a SharedVault) -> Self {
        Self { shared }
    }

    pub(in crate::vault) fn shared(&self) -> &'a SharedVault {
        self.shared
    }

    /// Marks the start of a run of the server. A call without an outcome at this point was interrupted by the end
    /// of the previous run.
    pub async fn begin_run(&self) -> Result<(), VaultError> {
        let work = |connection: &Connection| {
            let (next, _) = chain::end(connection)?;
            let note = "INSERT OR REPLACE INTO meta (key, value) VALUES (?1, ?2)";
            connection.execute(note, (RUN_AFTER, (next - 1).to_string()))?;
            Ok(next - 1)
        };
        let doing = "record the first row of this run in the audit";
        let writer = &self.shared.writer;
        let last = writer
            .write(doing, Durability::Process, work, |_| ())
            .await?;
        self.shared.audit_run_after.store(last, Ordering::Relaxed);
        Ok(())
    }

    /// Records the intent of a call. When this returns, the row is on the disk and survives a power cut. The call must
    /// not run before.
    pub async fn intent(&self, entry: AuditEntry<'_>) -> Result<AuditId, VaultError> {
        let id = AuditId::new(self.shared.ids.next());
        self.write_intent(UnnumberedRow::of_intent(&id, &entry))
            .await?;
        Ok(id)
    }

    /// Queues the intent of a call, and returns the wait for it. Until that is over the call may prepare what it does, but
    /// do nothing. An outcome that is queued afterwards is written after the intent.
    pub async fn queue_intent(
        &self,
        entry: AuditEntry<'_>,
    ) -> Result<(AuditId, WrittenIntent), VaultError> {
        let id = AuditId::new(self.shared.ids.next());
        let row = UnnumberedRow::of_intent(&id, &entry);
        let written = self.queue_row(row).await?;
        Ok((id, Box::pin(written.committed())))
    }

    async fn write_intent(&self, row: UnnumberedRow) -> Result<(), VaultError> {
        self.queue_row(row).await?.committed().await
    }

    async fn queue_row(&self, row: UnnumberedRow) -> Result<QueuedWrite<()>, VaultError> {
        let kind = WriteKind {
            doing: "write to the audit",
            durability: Durability::Power,
        };
        let tail = Arc::clone(&self.shared.trail.tail);
        let work = move |connection: &Connection| append(connection, &tail, &row);
        let shared = Arc::clone(&self.shared.trail);
        let writer = &self.shared.writer;
        let slot = writer.slot().await?;
        writer.queue(slot, kind, work, move |()| shared.succeeded())
    }

    /// Begins the record of a call that only reads, and reserves the place of its row in the queue. The call must not
    /// run before this returns. Returns `None` if the newest rows could not be written: the call then needs an
    /// [`Self::intent`], which fails as long as the audit cannot be written.
    pub async fn begin_read(
        &self,
        entry: AuditEntry<'_>,
    ) -> Result<Option<ReadRecord>, VaultError> {
        if self.shared.trail.is_failing() {
            return Ok(None);
        }
        let id = AuditId::new(self.shared.ids.next());
        let row = UnnumberedRow::of_intent(&id, &entry);
        let writer = &self.shared.writer;
        // Boxed: otherwise the future of each call would reserve space for the wait.
        let slot = match writer.free_slot() {
            Some(slot) => slot,
            None => Box::pin(writer.slot()).await?,
        };
        Ok(Some(ReadRecord { id, row, slot }))
    }

    /// Turns the record of a call that only reads into an intent, which is on the disk when this returns.
    pub async fn read_to_intent(&self, record: ReadRecord) -> Result<AuditId, VaultError> {
        self.write_intent(record.row).await?;
        Ok(record.id)
    }

    /// Queues the row of a call that only read. It never waits, so it can also run in `drop`.
    pub fn end_read(
        &self,
        record: ReadRecord,
        outcome: AuditOutcome<'_>,
    ) -> Result<(), VaultError> {
        let ReadRecord { row, slot, .. } = record;
        let row = AuditRowJob::new(&self.shared.trail, row.ended(outcome));
        self.shared.writer.enqueue_row(row, slot)
    }

    /// Queues the outcome of a call. It never waits, so it can also run in `drop`. The number of concurrent calls
    /// bounds the number of queued outcomes.
    pub fn outcome(&self, id: &AuditId, outcome: AuditOutcome<'_>) -> Result<(), VaultError> {
        let record = UnnumberedRow::of_outcome(id, outcome);
        let row = AuditRowJob::new(&self.shared.trail, record);
        self.shared.writer.enqueue_row_uncounted(row)
    }

    /// Returns a function that returns the head of the audit. It also works after the vault is closed. It returns
    /// `None` until this process has written a row that survives a power cut.
    pub fn head_source(&self) -> impl Fn() -> Option<ChainHead> + Send + Sync + 'static {
        let tail = Arc::clone(&self.shared.trail.tail);
        move || tail.durable()
    }

    /// Verifies each row, like [`super::reader::AuditReader::verify`].
    #[cfg(test)]
    pub fn verify(&self) -> Result<ChainVerification, VaultError> {
        let path = &self.shared.trail.path;
        let connection = open::reading(path)?;
        chain::verify(&connection)
            .map_err(|cause| VaultError::from_sqlite(path, "read the audit", &cause))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use ring::digest::{SHA256, digest};
    use rusqlite::params_from_iter;
    use rusqlite::types::{Value, ValueRef};

    use super::super::call::{AuditCall, CallFilter};
    use super::super::chain::ChainFault;
    use super::super::columns::{HASHED, UNHASHED, WITHOUT_REASON};
    use super::super::reader::AuditReader;
    use super::super::readers::AuditReaders;
    use super::super::table::*;
    use crate::vault::migration::STEPS;
    use crate::vault::store::Vault;
    use gatewren_base::sys::Scratch;

    const UNLOCK: &str = "DROP TRIGGER audit_is_never_changed;
        DROP TRIGGER audit_is_trimmed_behind_a_checkpoint;";

    fn entry(arguments: &serde_json::Value) -> AuditEntry<'_> {
        AuditEntry {
            agent: "agent_1",
            token: Some("0123abcd"),
            space: None,
            session: None,
            request: Some("r1"),
            address: "192.0.2.1",
            tool: "container_start",
            risk: "write",
            arguments,
            reason: None,
            target: Some("web"),
            mode: Some("allow"),
            decision: "allow",
            change: None,
        }
    }

    fn ok() -> AuditOutcome<'static> {
        AuditOutcome {
            outcome: "ok",
            duration_ms: 12,
            revision_before: Some(5),
            revision: Some(7),
            error: None,
        }
    }

    /// A vault with three calls (six rows), and a second connection to its file.
    async fn six_rows(scratch: &Scratch) -> (Vault, Connection) {
        let path = scratch.join("vault.db");
        let vault = Vault::open(&path).unwrap();
        for n in 0..3 {
            let arguments = json!({ "container": "web", "n": n });
            let id = vault.audit().intent(entry(&arguments)).await.unwrap();
            vault.audit().outcome(&id, ok()).unwrap();
        }
        vault.probe().await.unwrap();
        (vault, Connection::open(path).unwrap())
    }

    /// Runs `sql` on the file of six rows, and returns the result of the verification.
    async fn after(sql: &str) -> ChainVerification {
        let scratch = Scratch::new();
        let (vault, other) = six_rows(&scratch).await;
        assert_eq!(vault.audit().verify().unwrap(), intact_chain(6));
        other.execute_batch(UNLOCK).unwrap();
        other.execute_batch(sql).unwrap();
        vault.audit().verify().unwrap()
    }

    #[tokio::test]
    async fn the_calls_since_a_time_are_counted_and_those_that_were_refused() {
        let scratch = Scratch::new();
        let (vault, other) = six_rows(&scratch).await;
        let arguments = json!({});
        let id = vault.audit().intent(entry(&arguments)).await.unwrap();
        let refused = AuditOutcome {
            outcome: "refused",
            ..ok()
        };
        vault.audit().outcome(&id, refused).unwrap();
        vault.probe().await.unwrap();
        let counts = |since_ms| {
            let counts = vault.audit().count_calls(since_ms).unwrap();
            (counts.calls, counts.refused)
        };
        assert_eq!(counts(0), (4, 1));
        assert_eq!(counts(u64::MAX >> 1), (0, 0));
        other.execute_batch(UNLOCK).unwrap();
        other
            .execute_batch("UPDATE audit SET at_ms = 5 WHERE seq <= 2")
            .unwrap();
        assert_eq!(counts(6), (3, 1));
    }

    #[tokio::test]
    async fn a_reader_that_is_used_again_sees_the_rows_of_meanwhile() {
        let scratch = Scratch::new();
        let (vault, _) = six_rows(&scratch).await;
        let readers = AuditReaders::of(&vault);
        let calls = || readers.read(|audit| audit.calls(&nine())).unwrap().len();
        assert_eq!(calls(), 3);
        vault.audit().intent(entry(&json!({}))).await.unwrap();
        assert_eq!(calls(), 4);
        let failed = readers.read(|_| Err::<(), _>(VaultError::Stopped));
        assert!(failed.is_err());
        let both = readers.read(|outer| {
            let inner = readers.read(|inner| inner.calls(&nine()))?;
            Ok::<_, VaultError>((outer.calls(&nine())?.len(), inner.len()))
        });
        assert_eq!(both.unwrap(), (4, 4), "two at the same time");
    }

    #[tokio::test]
    async fn the_calls_of_an_agent_are_counted_by_the_hour_and_those_that_were_refused() {
        let scratch = Scratch::new();
        let (vault, other) = six_rows(&scratch).await;
        other.execute_batch(UNLOCK).unwrap();
        let hour = 3_600_000;
        other
            .execute_batch(
                "UPDATE audit SET at_ms = 3600000 * 5 + 7 WHERE seq <= 4;
                 UPDATE audit SET at_ms = 3600000 * 7 WHERE seq > 4;
                 UPDATE audit SET outcome = 'refused' WHERE seq = 4",
            )
            .unwrap();
        let counted = |since_ms| {
            let mut hours = vault.audit().calls_by_hour(since_ms).unwrap();
            hours.sort_by_key(|one| one.begin_ms);
            let counts = hours
                .iter()
                .map(|one| (one.begin_ms / hour, one.counts.calls, one.counts.refused));
            counts.collect::<Vec<_>>()
        };
        assert_eq!(counted(0), [(5, 2, 1), (7, 1, 0)]);
        assert_eq!(counted(6 * hour), [(7, 1, 0)]);
        assert_eq!(counted(8 * hour), []);
    }

    fn nine() -> CallFilter {
        CallFilter {
            limit: 9,
            ..CallFilter::default()
        }
    }

    fn intact_chain(rows: u64) -> ChainVerification {
        ChainVerification::Intact { rows, trimmed: 0 }
    }

    fn broken(seq: u64, fault: ChainFault) -> ChainVerification {
        ChainVerification::Broken { seq, fault }
    }

    #[tokio::test]
    async fn a_call_is_two_rows_that_belong_together() {
        let scratch = Scratch::new();
        let (_vault, other) = six_rows(&scratch).await;
        let row = "SELECT i.tool, i.arguments, o.outcome, o.duration_ms, o.revision
            FROM audit i JOIN audit o USING (call) WHERE i.kind = 'intent' AND o.kind = 'outcome'
            ORDER BY i.seq LIMIT 1";
        let row: (String, String, String, i64, i64) =
            other.query_row(row, [], |row| row.try_into()).unwrap();
        let arguments = "{\"container\":\"web\",\"n\":0}";
        assert_eq!(
            row,
            (
                "container_start".into(),
                arguments.into(),
                "ok".into(),
                12,
                7
            )
        );
    }

    #[tokio::test]
    async fn a_call_that_only_reads_is_one_row_when_it_ends() {
        let scratch = Scratch::new();
        let path = scratch.join("vault.db");
        let vault = Vault::open(&path).unwrap();
        let (audit, arguments) = (vault.audit(), json!({ "container": "web" }));
        let begin = async || {
            let begun = audit.begin_read(entry(&arguments)).await;
            begun.unwrap().unwrap()
        };
        let (ended, dropped, kept) = (begin().await, begin().await, begin().await);
        vault.probe().await.unwrap();
        assert_eq!(audit.verify().unwrap(), intact_chain(0), "none has ended");
        audit.end_read(ended, ok()).unwrap();
        drop(dropped);
        // One that proposes another call has an intent, as any call that changes something.
        let id = audit.read_to_intent(kept).await.unwrap();
        assert_eq!(audit.verify().unwrap(), intact_chain(2));
        audit.outcome(&id, ok()).unwrap();
        vault.probe().await.unwrap();
        let reader = AuditReader::open(&path).unwrap();
        let [proposed, read] = &reader.calls(&nine()).unwrap()[..] else {
            panic!("two calls");
        };
        let end = |call: &AuditCall| call.ended.clone().unwrap();
        assert_eq!((read.seq, end(read).seq), (1, 1));
        assert_eq!((proposed.seq, end(proposed).seq), (2, 3));
        assert_eq!(end(read).at_ms, read.at_ms + 12);
        assert_eq!(end(read).outcome, end(proposed).outcome);
        assert_eq!(end(read).revision, Some(7));
        let unknown = CallFilter {
            outcome: Some("unknown".to_owned()),
            ..nine()
        };
        assert_eq!(reader.calls(&unknown).unwrap(), []);
    }

    #[tokio::test]
    async fn while_rows_cannot_be_written_no_read_begins() {
        let scratch = Scratch::new();
        let path = scratch.join("vault.db");
        let vault = Vault::open(&path).unwrap();
        let (audit, arguments) = (vault.audit(), json!({}));
        let other = Connection::open(&path).unwrap();
        let refuse =
            "CREATE TRIGGER refuse BEFORE INSERT ON audit BEGIN SELECT RAISE(ABORT, 'full'); END";
        other.execute_batch(refuse).unwrap();
        let first = audit.begin_read(entry(&arguments)).await.unwrap();
        audit.end_read(first.unwrap(), ok()).unwrap();
        vault.probe().await.unwrap();
        let second = audit.begin_read(entry(&arguments)).await.unwrap();
        assert!(second.is_none());
        let intent = audit.intent(entry(&arguments)).await;
        assert!(intent.unwrap_err().to_string().contains("full"));
        other.execute_batch("DROP TRIGGER refuse").unwrap();
        audit.intent(entry(&arguments)).await.unwrap();
        let third = audit.begin_read(entry(&arguments)).await.unwrap();
        assert!(third.is_some());
    }

    #[tokio::test]
    async fn no_secret_is_written_but_the_hash_is_of_what_came() {
        let scratch = Scratch::new();
        let path = scratch.join("vault.db");
        let vault = Vault::open(&path).unwrap();
        let arguments = json!({ "command": "login --password hunter2", "token": "s3cr3t" });
        vault.audit().intent(entry(&arguments)).await.unwrap();
        let other = Connection::open(&path).unwrap();
        let row = "SELECT arguments, arguments_sha256 FROM audit";
        let (text, sha256): (String, Vec<u8>) =
            other.query_row(row, [], |row| row.try_into()).unwrap();
        assert_eq!(
            text,
            "{\"command\":\"login --password [redacted]\",\"token\":\"[redacted]\"}"
        );
        let expected = digest(&SHA256, arguments.to_string().as_bytes());
        assert_eq!(sha256, expected.as_ref());
        drop(vault);
        for file in ["vault.db", "vault.db-wal"] {
            let bytes = std::fs::read(scratch.join(file)).unwrap_or_default();
            assert!(!bytes.windows(7).any(|w| w == b"hunter2"), "{file}");
        }
    }

    #[tokio::test]
    async fn the_triggers_refuse_changes() {
        let scratch = Scratch::new();
        let (_vault, other) = six_rows(&scratch).await;
        for sql in ["UPDATE audit SET tool = 'x'", "DELETE FROM audit"] {
            let error = other.execute(sql, []).unwrap_err().to_string();
            let refused = error.contains("only ever added to");
            let nobody_may = error.contains("no such function: gatewren_is_trimming");
            assert!(refused || nobody_may, "{error}");
        }
    }

    #[tokio::test]
    async fn a_replaced_row_is_found() {
        let columns = [HASHED.as_slice(), &UNHASHED].concat();
        let values: Vec<&str> = columns
            .iter()
            .map(|name| if *name == "tool" { "'x'" } else { *name })
            .collect();
        let (columns, values) = (columns.join(", "), values.join(", "));
        let replaced = format!(
            "INSERT OR REPLACE INTO audit ({columns}) SELECT {values} FROM audit WHERE seq = 3"
        );
        assert_eq!(after(&replaced).await, broken(3, ChainFault::Altered));
    }

    #[tokio::test]
    async fn an_altered_row_is_found() {
        for column in HASHED
            .iter()
            .filter(|column| !["seq", "kind"].contains(column))
        {
            let value = if column.ends_with("_ms") || column.starts_with("revision") {
                "coalesce(VALUE, 0) + 1"
            } else if column.ends_with("sha256") {
                "x'00'"
            } else {
                "coalesce(VALUE, '') || 'x'"
            };
            let value = value.replace("VALUE", column);
            let chain = after(&format!(
                "UPDATE audit SET {column} = {value} WHERE seq = 3"
            ))
            .await;
            assert_eq!(chain, broken(3, ChainFault::Altered), "{column}");
        }
    }

    #[tokio::test]
    async fn a_missing_row_is_found_wherever_it_was() {
        for seq in 1..=6 {
            let chain = after(&format!("DELETE FROM audit WHERE seq = {seq}")).await;
            assert_eq!(chain, broken(seq, ChainFault::Missing));
        }
        assert_eq!(
            after("DELETE FROM audit").await,
            broken(1, ChainFault::Missing)
        );
        let renumbered =
            "DELETE FROM audit WHERE seq = 2; UPDATE audit SET seq = seq - 1 WHERE seq > 2";
        assert_eq!(after(renumbered).await, broken(2, ChainFault::Altered));
    }

    #[tokio::test]
    async fn reordered_rows_are_found() {
        let swapped =
            "UPDATE audit SET seq = 100 WHERE seq = 3; UPDATE audit SET seq = 3 WHERE seq = 4;
            UPDATE audit SET seq = 4 WHERE seq = 100";
        assert_eq!(after(swapped).await, broken(3, ChainFault::Altered));
    }

    #[tokio::test]
    async fn a_row_that_was_made_to_fit_is_out_of_place() {
        let scratch = Scratch::new();
        let (vault, other) = six_rows(&scratch).await;
        other.execute_batch(UNLOCK).unwrap();
        let columns = HASHED.join(", ");
        let row = format!("SELECT {columns}, previous_sha256 FROM audit WHERE seq = 3");
        let (mut values, previous): (Vec<Value>, [u8; 32]) = other
            .query_row(&row, [], |row| {
                // The row has no reason.
                let values = (0..HASHED.len() - 1)
                    .map(|at| row.get(at))
                    .collect::<Result<_, _>>()?;
                Ok((values, row.get(HASHED.len())?))
            })
            .unwrap();
        values[8] = Value::Text("harmless_tool".to_owned());
        let sha256 = chain::hash(WITHOUT_REASON, &previous, values.iter().map(ValueRef::from));
        other
            .execute(
                "UPDATE audit SET tool = 'harmless_tool', sha256 = ?1 WHERE seq = 3",
                [sha256],
            )
            .unwrap();
        assert_eq!(
            vault.audit().verify().unwrap(),
            broken(4, ChainFault::Misplaced)
        );
    }

    #[tokio::test]
    async fn a_row_taken_from_the_end_stays_missing_when_others_follow() {
        let scratch = Scratch::new();
        let (vault, other) = six_rows(&scratch).await;
        other.execute_batch(UNLOCK).unwrap();
        other
            .execute("DELETE FROM audit WHERE seq = 6", [])
            .unwrap();
        let arguments = json!({});
        vault.audit().intent(entry(&arguments)).await.unwrap();
        assert_eq!(
            vault.audit().verify().unwrap(),
            broken(6, ChainFault::Missing)
        );
    }

    #[tokio::test]
    async fn rows_of_the_first_format_stay_good() {
        let scratch = Scratch::new();
        let path = scratch.join("vault.db");
        let old = open::writing(&path, &STEPS[..3]).unwrap();
        let mut previous = chain::BEGINNING;
        for seq in 1..=2 {
            let mut values = vec![Value::Null; 17];
            values[0] = seq.into();
            values[1] = 1_700_000_000_000_i64.into();
            values[2] = "call".to_owned().into();
            let kind = if seq == 1 { "intent" } else { "outcome" };
            values[3] = kind.to_owned().into();
            let sha256 = chain::hash(1, &previous, values.iter().map(ValueRef::from));
            values.extend([previous.to_vec().into(), sha256.to_vec().into()]);
            let marks = ["?"; 19].join(", ");
            let insert = format!("INSERT INTO audit VALUES ({marks})");
            old.execute(&insert, params_from_iter(values)).unwrap();
            previous = sha256;
        }
        drop(old);
        let vault = Vault::open(&path).unwrap();
        let arguments = json!({});
        let id = vault.audit().intent(entry(&arguments)).await;
        vault.audit().outcome(&id.unwrap(), ok()).unwrap();
        vault.probe().await.unwrap();
        assert_eq!(vault.audit().verify().unwrap(), intact_chain(4));
        let other = Connection::open(&path).unwrap();
        other.execute_batch(UNLOCK).unwrap();
        for sql in [
            "UPDATE audit SET space = 'media' WHERE seq = 2",
            "UPDATE audit SET format = 2, space = NULL WHERE seq = 2",
            "UPDATE audit SET format = 3 WHERE seq = 2",
            "UPDATE audit SET format = 1, error = 'it was refused' WHERE seq = 2",
        ] {
            other.execute_batch(sql).unwrap();
            assert_eq!(
                vault.audit().verify().unwrap(),
                broken(2, ChainFault::Altered)
            );
        }
    }

    #[tokio::test]
    async fn the_chain_goes_on_over_a_restart() {
        let scratch = Scratch::new();
        let (vault, _) = six_rows(&scratch).await;
        drop(vault);
        let vault = Vault::open(&scratch.join("vault.db")).unwrap();
        let arguments = json!({});
        vault.audit().intent(entry(&arguments)).await.unwrap();
        let chain = vault.audit().verify().unwrap();
        assert_eq!(chain, intact_chain(7));
    }

    #[tokio::test]
    async fn many_calls_at_once_make_one_chain() {
        let scratch = Scratch::new();
        let vault = Vault::open(&scratch.join("vault.db")).unwrap();
        let calls = (0..200).map(|n| {
            let vault = vault.clone();
            tokio::spawn(async move {
                let arguments = json!({ "n": n });
                let audit = vault.audit();
                if n % 2 == 0 {
                    let id = audit.intent(entry(&arguments)).await.unwrap();
                    audit.outcome(&id, ok()).unwrap();
                } else {
                    let read = audit.begin_read(entry(&arguments)).await.unwrap();
                    audit.end_read(read.unwrap(), ok()).unwrap();
                }
            })
        });
        for call in calls.collect::<Vec<_>>() {
            call.await.unwrap();
        }
        vault.probe().await.unwrap();
        assert_eq!(vault.audit().verify().unwrap(), intact_chain(300));
    }

    #[tokio::test]
    async fn two_processes_that_write_in_turn_make_one_chain() {
        let scratch = Scratch::new();
        let path = scratch.join("vault.db");
        let (ours, theirs) = (Vault::open(&path).unwrap(), Vault::open(&path).unwrap());
        for vault in [&ours, &theirs, &theirs, &ours, &ours, &theirs] {
            let arguments = json!({});
            let id = vault.audit().intent(entry(&arguments)).await;
            vault.audit().outcome(&id.unwrap(), ok()).unwrap();
            vault.probe().await.unwrap();
        }
        assert_eq!(ours.audit().verify().unwrap(), intact_chain(12));
    }

    /// Writes the outcomes of three calls in one group, in which `spoil` makes some writes fail.
    async fn in_one_group(spoil: &'static str) -> (Vault, Scratch) {
        let scratch = Scratch::new();
        let vault = Vault::open(&scratch.join("vault.db")).unwrap();
        let (go, wait) = std::sync::mpsc::channel::<()>();
        let writer = &vault.shared.writer;
        let held = writer.enqueue_uncounted("wait", move |_| {
            wait.recv().unwrap();
            Ok(())
        });
        held.unwrap();
        let outcome = |id: u8| {
            let id = AuditId::new([id; 32]);
            vault.audit().outcome(&id, ok()).unwrap();
        };
        outcome(b'1');
        let spoiled =
            writer.enqueue_uncounted("spoil", |connection| connection.execute_batch(spoil));
        spoiled.unwrap();
        outcome(b'1');
        outcome(b'2');
        go.send(()).unwrap();
        vault.probe().await.ok();
        outcome(b'3');
        vault.probe().await.unwrap();
        (vault, scratch)
    }

    #[tokio::test]
    async fn a_row_that_is_refused_leaves_no_gap() {
        let (vault, _scratch) = in_one_group("SELECT 1").await;
        assert_eq!(vault.audit().verify().unwrap(), intact_chain(3));
    }

    #[tokio::test]
    async fn a_group_that_is_undone_leaves_no_gap() {
        let (vault, _scratch) = in_one_group("ROLLBACK").await;
        assert_eq!(vault.audit().verify().unwrap(), intact_chain(1));
    }
}
