//! Compares the audit with the rows that the helper has recorded, to find rows that were cut off or rewritten
//! later.

use std::collections::BTreeMap;

use rusqlite::{Connection, OptionalExtension as _};

use super::chain;
use super::checkpoint;
use super::checkpoint::hex;
use crate::vault::row::to_column;

/// The limit of anchors to compare. Beyond it the anchor with the lowest row number is dropped, so the newest stay.
const MAX_ANCHORS: usize = 200_000;

/// Rows of the audit as the helper recorded them, in a log that the front cannot change.
#[derive(Debug, Clone, Default)]
pub struct Anchors(BTreeMap<AnchorKey, u64>);

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct AnchorKey {
    seq: i64,
    sha256: String,
}

/// The result of a comparison.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AnchorComparison {
    /// The number of anchors whose row is unchanged.
    pub good: u64,
    /// The number of anchors whose row was trimmed since. These cannot be compared.
    pub trimmed: u64,
    /// The contradicted anchor with the lowest row number: its row is missing or differs.
    pub first: Option<Discrepancy>,
}

/// An anchor that the audit contradicts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Discrepancy {
    /// The row's number.
    pub seq: u64,
    /// When the helper recorded it, in milliseconds since 1970.
    pub at_ms: u64,
    /// How the audit contradicts it.
    pub kind: DiscrepancyKind,
}

/// How the audit contradicts an anchor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DiscrepancyKind {
    /// The audit ends before the row.
    Cut,
    /// The row has another hash: it, or one before it, was rewritten.
    Rewritten,
}

impl DiscrepancyKind {
    /// Returns the kind as a word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Cut => "cut",
            Self::Rewritten => "rewritten",
        }
    }
}

impl Anchors {
    /// Adds one line of the helper's log: row `seq` had the hash `sha256` (64 hexadecimal digits) at `at_ms`
    /// milliseconds since 1970.
    pub fn add(&mut self, seq: u64, sha256: &str, at_ms: u64) {
        let key = AnchorKey {
            seq: to_column(seq),
            sha256: sha256.to_owned(),
        };
        let known = self.0.entry(key).or_insert(at_ms);
        *known = at_ms.min(*known);
        if self.0.len() > MAX_ANCHORS {
            self.0.pop_first();
        }
    }

    /// Returns whether there are no anchors.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Compares each anchor with the row that it names.
pub(in crate::vault) fn compare(
    connection: &Connection,
    anchors: &Anchors,
) -> rusqlite::Result<AnchorComparison> {
    // One transaction: a concurrent trim is visible either completely or not at all.
    let transaction = connection.unchecked_transaction()?;
    let checkpoint = checkpoint::find(&transaction)?.map(|(checkpoint, _)| checkpoint);
    let trimmed = checkpoint
        .as_ref()
        .map_or(0, |checkpoint| checkpoint.through);
    let last = chain::last(&transaction)?.unwrap_or(trimmed);
    let mut row = transaction.prepare("SELECT sha256 FROM audit WHERE seq = ?1")?;
    let mut compared = AnchorComparison::default();
    for (key, at_ms) in &anchors.0 {
        let known = match &checkpoint {
            // The checkpoint keeps the hash of the last trimmed row. The hashes of earlier rows are gone.
            Some(checkpoint) if key.seq == checkpoint.through => Some(hex(&checkpoint.sha256)),
            Some(checkpoint) if key.seq < checkpoint.through => {
                compared.trimmed += 1;
                continue;
            }
            _ => {
                let found: Option<[u8; 32]> =
                    row.query_row([key.seq], |row| row.get(0)).optional()?;
                found.map(|sha256| hex(&sha256))
            }
        };
        if known.as_ref() == Some(&key.sha256) {
            compared.good += 1;
            continue;
        }
        let kind = if key.seq > last {
            DiscrepancyKind::Cut
        } else {
            DiscrepancyKind::Rewritten
        };
        compared.first.get_or_insert(Discrepancy {
            seq: u64::try_from(key.seq).unwrap_or(0),
            at_ms: *at_ms,
            kind,
        });
    }
    Ok(compared)
}

#[cfg(test)]
mod tests {
    use rusqlite::params_from_iter;
    use rusqlite::types::{Value, ValueRef};
    use serde_json::json;

    use super::super::anchors::*;
    use super::super::chain::{BEGINNING, ChainVerification};
    use super::super::chain_tail::ChainHead;
    use super::super::columns::{HASHED, WITHOUT_REASON};
    use super::super::entry::{AuditEntry, AuditOutcome};
    use super::super::reader::AuditReader;
    use crate::vault::store::Vault;
    use gatewren_base::sys::Scratch;

    /// A vault with ten calls, and the head of its audit after each call, as the helper would have recorded it.
    async fn anchored_vault(scratch: &Scratch) -> (Vault, Anchors) {
        let vault = Vault::open(&scratch.join("vault.db")).unwrap();
        let head = vault.audit().head_source();
        let mut anchors = Anchors::default();
        for n in 1..=10 {
            let arguments = json!({ "n": n });
            let entry = AuditEntry {
                agent: "agent_1",
                token: None,
                space: None,
                session: None,
                request: Some("r1"),
                address: "192.0.2.1",
                tool: "container_start",
                risk: "write",
                arguments: &arguments,
                reason: None,
                target: None,
                mode: None,
                decision: "allow",
                change: None,
            };
            let id = vault.audit().intent(entry).await.unwrap();
            let ChainHead { seq, sha256 } = head().unwrap();
            anchors.add(seq, &hex(&sha256), n * 1000);
            let outcome = AuditOutcome {
                outcome: "ok",
                duration_ms: 1,
                revision_before: None,
                revision: None,
                error: None,
            };
            vault.audit().outcome(&id, outcome).unwrap();
            vault.probe().await.unwrap();
        }
        (vault, anchors)
    }

    fn compare_anchors(scratch: &Scratch, anchors: &Anchors) -> AnchorComparison {
        let audit = AuditReader::open(&scratch.join("vault.db")).unwrap();
        assert!(
            matches!(audit.verify().unwrap(), ChainVerification::Intact { .. }),
            "the chain itself is intact"
        );
        audit.compare(anchors).unwrap()
    }

    /// Runs `work` without the audit's triggers, then creates them again.
    fn without_triggers(path: &std::path::Path, work: impl Fn(&Connection)) {
        let other = Connection::open(path).unwrap();
        let triggers =
            "SELECT name, sql FROM sqlite_schema WHERE type = 'trigger' AND tbl_name LIKE 'audit%'";
        let triggers: Vec<(String, String)> = other
            .prepare(triggers)
            .unwrap()
            .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))
            .unwrap()
            .map(Result::unwrap)
            .collect();
        for (name, _) in &triggers {
            other
                .execute_batch(&format!("DROP TRIGGER {name}"))
                .unwrap();
        }
        work(&other);
        for (_, sql) in &triggers {
            other.execute_batch(sql).unwrap();
        }
    }

    #[tokio::test]
    async fn a_head_is_only_told_when_a_power_cut_cannot_take_it_back() {
        let scratch = Scratch::new();
        let vault = Vault::open(&scratch.join("vault.db")).unwrap();
        let head = vault.audit().head_source();
        vault.audit().begin_run().await.unwrap();
        assert_eq!(head(), None);
        drop(vault);
        let (vault, _) = anchored_vault(&scratch).await;
        let head = vault.audit().head_source();
        // The outcome of the last call did not wait for the disk.
        assert_eq!(head().unwrap().seq, 19);
    }

    #[tokio::test]
    async fn an_audit_as_it_was_agrees_with_every_anchor() {
        let scratch = Scratch::new();
        let (_vault, anchors) = anchored_vault(&scratch).await;
        let expected = AnchorComparison {
            good: 10,
            trimmed: 0,
            first: None,
        };
        assert_eq!(compare_anchors(&scratch, &anchors), expected);
    }

    #[tokio::test]
    async fn an_end_that_was_cut_off_is_found() {
        let scratch = Scratch::new();
        let (vault, anchors) = anchored_vault(&scratch).await;
        drop(vault);
        without_triggers(&scratch.join("vault.db"), |other| {
            let cut = "DELETE FROM audit WHERE seq > 6; UPDATE sqlite_sequence SET seq = 6 WHERE name = 'audit'";
            other.execute_batch(cut).unwrap();
        });
        let found = compare_anchors(&scratch, &anchors);
        assert_eq!(found.good, 3);
        let expected = Discrepancy {
            seq: 7,
            at_ms: 4000,
            kind: DiscrepancyKind::Cut,
        };
        assert_eq!(found.first, Some(expected));
    }

    /// Changes a row, and recomputes each hash from that row on.
    fn rewrite(other: &Connection, seq: i64) {
        // None of these rows has a reason.
        let covered = HASHED.len() - 1;
        let columns = HASHED.join(", ");
        let set = format!("UPDATE audit SET tool = 'whoami' WHERE seq = {seq}");
        other.execute_batch(&set).unwrap();
        let mut rows = other
            .prepare(&format!("SELECT {columns} FROM audit ORDER BY seq"))
            .unwrap();
        let rows: Vec<Vec<Value>> = rows
            .query_map([], |row| (0..covered).map(|at| row.get(at)).collect())
            .unwrap()
            .map(Result::unwrap)
            .collect();
        let mut previous = BEGINNING;
        for row in rows {
            let sha256 = chain::hash(WITHOUT_REASON, &previous, row.iter().map(ValueRef::from));
            let hashes = [
                previous.to_vec().into(),
                sha256.to_vec().into(),
                row[0].clone(),
            ];
            let update = "UPDATE audit SET previous_sha256 = ?1, sha256 = ?2 WHERE seq = ?3";
            other
                .execute(update, params_from_iter::<[Value; 3]>(hashes))
                .unwrap();
            previous = sha256;
        }
    }

    #[tokio::test]
    async fn a_record_that_was_rewritten_with_good_hashes_is_found() {
        let scratch = Scratch::new();
        let (vault, anchors) = anchored_vault(&scratch).await;
        drop(vault);
        without_triggers(&scratch.join("vault.db"), |other| rewrite(other, 5));
        let found = compare_anchors(&scratch, &anchors);
        assert_eq!(found.good, 2);
        let expected = Discrepancy {
            seq: 5,
            at_ms: 3000,
            kind: DiscrepancyKind::Rewritten,
        };
        assert_eq!(found.first, Some(expected));
    }

    #[tokio::test]
    async fn rows_that_were_trimmed_are_not_taken_for_cut_ones() {
        let scratch = Scratch::new();
        let (vault, anchors) = anchored_vault(&scratch).await;
        let retention = super::super::trim::AuditRetention {
            age: std::time::Duration::from_hours(1),
            rows: 6,
        };
        assert_eq!(vault.audit().trim(retention).await.unwrap().rows, 14);
        let found = compare_anchors(&scratch, &anchors);
        let expected = AnchorComparison {
            good: 3,
            trimmed: 7,
            first: None,
        };
        assert_eq!(found, expected);
    }

    #[test]
    fn the_newest_anchors_are_kept() {
        let mut anchors = Anchors::default();
        for seq in 1..=MAX_ANCHORS as u64 + 5 {
            anchors.add(seq, "00", 1);
        }
        let first = anchors.0.first_key_value().unwrap().0.seq;
        assert_eq!((anchors.0.len(), first), (MAX_ANCHORS, 6));
    }
}
