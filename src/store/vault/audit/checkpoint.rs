//! The checkpoint of the audit: which rows were trimmed, sealed with a key of the vault.

use ring::hmac;
use rusqlite::{Connection, OptionalExtension as _, Row};
use serde_json::json;

use crate::vault::agents::keys;

/// The name of the key that seals it.
pub(in crate::vault) const KEY: &str = "audit-checkpoint";

/// The tool name in the audit's row about a trim. Names of clients' tools cannot contain a space.
pub(in crate::vault) const TOOL: &str = "audit trim";

/// The position that the kept rows continue from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checkpoint {
    /// The number of the last trimmed row. Rows have no gaps, so it is also the total number of trimmed rows.
    pub through: i64,
    /// The hash of that row, which the first kept row continues from.
    pub sha256: [u8; 32],
    /// The number of rows that the last trim removed.
    pub rows: i64,
    /// When that was, in milliseconds since 1970.
    pub at_ms: i64,
    /// The call in the audit that records the trim too.
    pub call: String,
}

impl Checkpoint {
    /// Returns the arguments of that call.
    pub(in crate::vault) fn arguments(&self) -> serde_json::Value {
        json!({ "through": self.through, "sha256": hex(&self.sha256), "rows": self.rows })
    }

    /// Replaces the previous checkpoint. The triggers reject this outside of a trim.
    pub(in crate::vault) fn write(
        &self,
        connection: &Connection,
        key: &[u8; 32],
    ) -> rusqlite::Result<()> {
        let key = hmac::Key::new(hmac::HMAC_SHA256, key);
        let seal = hmac::sign(&key, &self.sealed_bytes());
        connection.execute(
            "INSERT INTO audit_checkpoint (through, sha256, rows, at_ms, call, seal)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
            (
                self.through,
                self.sha256,
                self.rows,
                self.at_ms,
                &self.call,
                seal.as_ref(),
            ),
        )?;
        let older = "DELETE FROM audit_checkpoint WHERE through < ?1";
        connection.execute(older, [self.through]).map(drop)
    }

    /// The call comes last, because it is the only part without a fixed length.
    fn sealed_bytes(&self) -> Vec<u8> {
        let mut bytes = b"gatewren audit checkpoint 1\n".to_vec();
        for number in [self.through, self.rows, self.at_ms] {
            bytes.extend_from_slice(&number.to_be_bytes());
        }
        bytes.extend_from_slice(&self.sha256);
        bytes.extend_from_slice(self.call.as_bytes());
        bytes
    }
}

/// A checkpoint as stored in the table, and whether its seal is valid.
pub(in crate::vault) type FoundCheckpoint = Option<(Checkpoint, bool)>;

/// Returns the checkpoint, if rows were ever trimmed. If the table has more than one row, the seal counts as
/// invalid.
pub(in crate::vault) fn find(connection: &Connection) -> rusqlite::Result<FoundCheckpoint> {
    // A vault that is opened read-only may have a schema without this table.
    let table = "SELECT 1 FROM sqlite_schema WHERE name = 'audit_checkpoint'";
    if !connection.prepare_cached(table)?.exists([])? {
        return Ok(None);
    }
    let Some((count, checkpoint, seal)) = connection
        .prepare(
            "SELECT count(*) OVER () AS count, * FROM audit_checkpoint ORDER BY through DESC LIMIT 1",
        )?
        .query_row([], read)
        .optional()?
    else {
        return Ok(None);
    };
    let good = match keys::find(connection, KEY)? {
        Some(key) if count == 1 => {
            let key = hmac::Key::new(hmac::HMAC_SHA256, key.as_slice());
            hmac::verify(&key, &checkpoint.sealed_bytes(), &seal).is_ok()
        }
        _ => false,
    };
    Ok(Some((checkpoint, good)))
}

/// Returns whether a row of the audit, which still exists, records this checkpoint.
pub(in crate::vault) fn is_recorded(
    connection: &Connection,
    checkpoint: &Checkpoint,
) -> rusqlite::Result<bool> {
    let query = "SELECT count(*) FROM audit
        WHERE call = ?1 AND kind = 'intent' AND tool = ?2 AND arguments = ?3";
    let arguments = checkpoint.arguments().to_string();
    connection
        .prepare(query)?
        .query_row((&checkpoint.call, TOOL, arguments), |row| {
            row.get::<_, i64>(0)
        })
        .map(|count| count == 1)
}

fn read(row: &Row<'_>) -> rusqlite::Result<(i64, Checkpoint, [u8; 32])> {
    let checkpoint = Checkpoint {
        through: row.get("through")?,
        sha256: row.get("sha256")?,
        rows: row.get("rows")?,
        at_ms: row.get("at_ms")?,
        call: row.get("call")?,
    };
    Ok((row.get("count")?, checkpoint, row.get("seal")?))
}

/// Returns the bytes as hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    const DIGITS: [char; 16] = [
        '0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'a', 'b', 'c', 'd', 'e', 'f',
    ];
    let digit = |nibble: u8| DIGITS.get(usize::from(nibble)).copied().unwrap_or('?');
    bytes
        .iter()
        .flat_map(|byte| [digit(byte >> 4), digit(byte & 15)])
        .collect()
}
