//! The chain through the audit: each row's hash covers the hash of the row before it.

use ring::digest::{SHA256, digest};
use rusqlite::types::{Value, ValueRef};
use rusqlite::{Connection, OptionalExtension as _, Row};

use super::audit_columns::{self, HASHED, hashed};
use super::checkpoint::{self, Checkpoint};
use super::exact;

/// What the hash of the first row covers in place of a row before it.
pub(super) const BEGINNING: [u8; 32] = [0; 32];

/// What a look at every row found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Chain {
    /// Every row is as it was written, in its order, and none is missing.
    Intact {
        /// How many rows there are.
        rows: u64,
        /// How many there were before them, as the checkpoint vouches for.
        trimmed: u64,
    },
    /// The first row that is not.
    Broken {
        /// Its number.
        seq: u64,
        /// What is wrong with it.
        fault: Fault,
    },
}

/// What can be wrong with a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// It is not there.
    Missing,
    /// It does not follow on the row before it.
    Misplaced,
    /// It is not what was written.
    Altered,
    /// It is the last one that was trimmed, and what says so is not what was written, or is told nowhere in
    /// the audit.
    Checkpoint,
    /// Its sealed arguments are missing or were altered.
    Exact,
}

impl Fault {
    /// What is wrong, in a word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Missing => "missing",
            Self::Misplaced => "misplaced",
            Self::Altered => "altered",
            Self::Checkpoint => "checkpoint",
            Self::Exact => "exact",
        }
    }
}

/// The SHA-256 of a row: its format, the hash before it, then each value with its type and length.
pub(super) fn hash<'a>(
    format: i64,
    previous: &[u8; 32],
    values: impl IntoIterator<Item = ValueRef<'a>>,
) -> [u8; 32] {
    // In one piece: fed in its fifty parts, the digest takes a quarter more instructions.
    let mut row = Vec::with_capacity(1024);
    row.extend_from_slice(format!("gatewren audit {format}\n").as_bytes());
    row.extend_from_slice(previous);
    let mut put = |kind: u8, bytes: &[u8]| {
        row.push(kind);
        row.extend_from_slice(&(bytes.len() as u64).to_be_bytes());
        row.extend_from_slice(bytes);
    };
    for value in values {
        match value {
            ValueRef::Null => put(0, &[]),
            ValueRef::Integer(number) => put(1, &number.to_be_bytes()),
            ValueRef::Real(number) => put(2, &number.to_bits().to_be_bytes()),
            ValueRef::Text(text) => put(3, text),
            ValueRef::Blob(bytes) => put(4, bytes),
        }
    }
    let mut sha256 = [0; 32];
    sha256.copy_from_slice(digest(&SHA256, &row).as_ref());
    sha256
}

/// The number for the next row, and the hash that it follows on.
///
/// The number is one more than any row ever had, so that a row taken from the end leaves a gap.
pub(super) fn end(connection: &Connection) -> Result<(i64, [u8; 32]), rusqlite::Error> {
    let last = connection
        .prepare_cached("SELECT sha256 FROM audit ORDER BY seq DESC LIMIT 1")?
        .query_row([], |row| row.get(0))
        .optional()?;
    Ok((highest(connection)? + 1, last.unwrap_or(BEGINNING)))
}

/// The number of the last row that is there; none where there is none.
pub(super) fn last(connection: &Connection) -> Result<Option<i64>, rusqlite::Error> {
    connection.query_row("SELECT max(seq) FROM audit", [], |row| row.get(0))
}

/// The highest number that a row ever had.
pub(super) fn highest(connection: &Connection) -> Result<i64, rusqlite::Error> {
    let highest = connection
        .prepare_cached("SELECT seq FROM sqlite_sequence WHERE name = 'audit'")?
        .query_row([], |row| row.get(0))
        .optional()?;
    Ok(highest.unwrap_or(0))
}

/// What the first kept row follows on.
pub(super) struct Start {
    /// The number of the row before it.
    pub trimmed: i64,
    /// When that was trimmed, in milliseconds since 1970; 0 if nothing ever was.
    pub at_ms: i64,
    sha256: [u8; 32],
    checkpoint: Option<Checkpoint>,
}

/// A number and what is wrong with the row that has it, or should have it.
type Broken = (i64, Fault);

/// What the kept rows follow on, if its seal is good.
pub(super) fn start(connection: &Connection) -> Result<Result<Start, Broken>, rusqlite::Error> {
    let Some((checkpoint, good)) = checkpoint::find(connection)? else {
        return Ok(Ok(Start {
            trimmed: 0,
            at_ms: 0,
            sha256: BEGINNING,
            checkpoint: None,
        }));
    };
    if !good {
        return Ok(Err((checkpoint.through, Fault::Checkpoint)));
    }
    Ok(Ok(Start {
        trimmed: checkpoint.through,
        at_ms: checkpoint.at_ms,
        sha256: checkpoint.sha256,
        checkpoint: Some(checkpoint),
    }))
}

/// Whether the audit itself tells of the checkpoint, which somebody who has read its key could have sealed.
pub(super) fn told(
    connection: &Connection,
    start: &Start,
) -> Result<Result<(), Broken>, rusqlite::Error> {
    match &start.checkpoint {
        Some(known) if !checkpoint::is_told(connection, known)? => {
            Ok(Err((known.through, Fault::Checkpoint)))
        }
        _ => Ok(Ok(())),
    }
}

/// Looks at the checkpoint and at every row in its order.
pub(super) fn verify(connection: &Connection) -> Result<Chain, rusqlite::Error> {
    // One transaction, so that rows written meanwhile are not half seen.
    let transaction = connection.unchecked_transaction()?;
    let start = match start(&transaction)? {
        Ok(start) => start,
        Err((seq, fault)) => return Ok(broken(seq, fault)),
    };
    let last = match walk(&transaction, &start, i64::MAX)? {
        Ok((last, _)) => last,
        Err((seq, fault)) => return Ok(broken(seq, fault)),
    };
    if highest(&transaction)? > last {
        return Ok(broken(last + 1, Fault::Missing));
    }
    if let Err((seq, fault)) = told(&transaction, &start)? {
        return Ok(broken(seq, fault));
    }
    if let Some(seq) = unsealed_row(&transaction)? {
        return Ok(broken(seq, Fault::Exact));
    }
    let counted = |number: i64| u64::try_from(number).unwrap_or(0);
    Ok(Chain::Intact {
        rows: counted(last - start.trimmed),
        trimmed: counted(start.trimmed),
    })
}

/// The first row with sealed arguments that are missing or altered. The hashes in the rows were verified before.
fn unsealed_row(connection: &Connection) -> Result<Option<i64>, rusqlite::Error> {
    if !audit_columns::has(connection, "exact")? {
        return Ok(None);
    }
    let query = "SELECT seq, call, exact FROM audit WHERE exact IS NOT NULL ORDER BY seq";
    let mut statement = connection.prepare(query)?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let (seq, call, exact): (i64, String, String) = row.try_into()?;
        if !exact::is_as_written(connection, &call, &exact)? {
            return Ok(Some(seq));
        }
    }
    Ok(None)
}

/// Goes from row to row as far as `through`; the number and the hash of the last one if all are as they were
/// written.
pub(super) fn walk(
    connection: &Connection,
    start: &Start,
    through: i64,
) -> Result<Result<(i64, [u8; 32]), Broken>, rusqlite::Error> {
    let columns = audit_columns::all(connection)?;
    let query = format!("SELECT {columns} FROM audit WHERE seq <= ?1 ORDER BY seq");
    let mut statement = connection.prepare(&query)?;
    let mut rows = statement.query([through])?;
    let (mut last, mut previous) = (start.trimmed, start.sha256);
    while let Some(row) = rows.next()? {
        match fault(row, last + 1, &previous)? {
            Ok(sha256) => previous = sha256,
            Err(broken) => return Ok(Err(broken)),
        }
        last += 1;
    }
    Ok(Ok((last, previous)))
}

/// The row's hash if it is the expected one, else what is wrong with which number.
type Checked = Result<[u8; 32], Broken>;

fn fault(row: &Row<'_>, expected: i64, previous: &[u8; 32]) -> Result<Checked, rusqlite::Error> {
    let seq: i64 = row.get("seq")?;
    if seq != expected {
        // What was trimmed and has come back is as foreign as what follows on a gap.
        return Ok(Err((expected, Fault::Missing)));
    }
    let values = (0..HASHED.len())
        .map(|column| row.get(column))
        .collect::<Result<Vec<Value>, _>>()?;
    let format: i64 = row.get("format")?;
    let sha256: [u8; 32] = row.get("sha256")?;
    let follows: [u8; 32] = row.get("previous_sha256")?;
    let covered = covered(format, &values);
    if covered
        .is_none_or(|covered| hash(format, &follows, covered.iter().map(ValueRef::from)) != sha256)
    {
        return Ok(Err((seq, Fault::Altered)));
    }
    if follows != *previous {
        return Ok(Err((seq, Fault::Misplaced)));
    }
    Ok(Ok(sha256))
}

/// The values that the hash covers, if the format is known and the others are empty.
fn covered(format: i64, values: &[Value]) -> Option<&[Value]> {
    let (covered, rest) = values.split_at_checked(hashed(format)?)?;
    rest.iter()
        .all(|value| *value == Value::Null)
        .then_some(covered)
}

fn broken(seq: i64, fault: Fault) -> Chain {
    Chain::Broken {
        seq: u64::try_from(seq).unwrap_or(0),
        fault,
    }
}
