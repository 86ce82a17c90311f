//! The chain through the audit: each row's hash covers the hash of the row before it.

use std::fmt;

use ring::digest::{SHA256, digest};
use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension as _, Row};

/// The columns that a row's hash covers, in the order in which it does.
pub(super) const HASHED: [&str; 17] = [
    "seq",
    "at_ms",
    "call",
    "kind",
    "agent",
    "session",
    "request",
    "address",
    "tool",
    "risk",
    "arguments",
    "arguments_sha256",
    "target",
    "decision",
    "outcome",
    "duration_ms",
    "revision",
];

/// What the hash of the first row covers in place of a row before it.
pub(super) const BEGINNING: [u8; 32] = [0; 32];

/// What a look at every row found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Chain {
    /// Every row is as it was written, in its order, and none is missing.
    Intact {
        /// How many rows there are.
        rows: u64,
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
}

impl fmt::Display for Chain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Intact { rows } => write!(f, "all {rows} rows of the audit are intact"),
            Self::Broken { seq, fault } => {
                let fault = match fault {
                    Fault::Missing => "is missing",
                    Fault::Misplaced => "does not follow on the row before it",
                    Fault::Altered => "was altered",
                };
                write!(
                    f,
                    "row {seq} of the audit {fault}; the rows before it are intact"
                )
            }
        }
    }
}

/// The SHA-256 of a row: the hash before it, then each value with its type and length.
pub(super) fn hash(previous: &[u8; 32], values: &[Value]) -> [u8; 32] {
    // In one piece: fed in its fifty parts, the digest takes a quarter more instructions.
    let mut row = Vec::with_capacity(1024);
    row.extend_from_slice(b"gatewren audit 1\n");
    row.extend_from_slice(previous);
    let mut put = |kind: u8, bytes: &[u8]| {
        row.push(kind);
        row.extend_from_slice(&(bytes.len() as u64).to_be_bytes());
        row.extend_from_slice(bytes);
    };
    for value in values {
        match value {
            Value::Null => put(0, &[]),
            Value::Integer(number) => put(1, &number.to_be_bytes()),
            Value::Real(number) => put(2, &number.to_bits().to_be_bytes()),
            Value::Text(text) => put(3, text.as_bytes()),
            Value::Blob(bytes) => put(4, bytes),
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

/// The highest number that a row ever had.
fn highest(connection: &Connection) -> Result<i64, rusqlite::Error> {
    let highest = connection
        .prepare_cached("SELECT seq FROM sqlite_sequence WHERE name = 'audit'")?
        .query_row([], |row| row.get(0))
        .optional()?;
    Ok(highest.unwrap_or(0))
}

/// Looks at every row in its order.
pub(super) fn verify(connection: &Connection) -> Result<Chain, rusqlite::Error> {
    // One transaction, so that rows written meanwhile are not half seen.
    let transaction = connection.unchecked_transaction()?;
    let query = format!(
        "SELECT {}, previous_sha256, sha256 FROM audit ORDER BY seq",
        HASHED.join(", ")
    );
    let mut statement = transaction.prepare(&query)?;
    let mut rows = statement.query([])?;
    let (mut count, mut previous) = (0, BEGINNING);
    while let Some(row) = rows.next()? {
        match fault(row, count + 1, &previous)? {
            Ok(sha256) => previous = sha256,
            Err((seq, fault)) => return Ok(broken(seq, fault)),
        }
        count += 1;
    }
    if highest(&transaction)? > count {
        return Ok(broken(count + 1, Fault::Missing));
    }
    let rows = u64::try_from(count).unwrap_or(0);
    Ok(Chain::Intact { rows })
}

/// The row's hash if it is the expected one, else what is wrong with which number.
type Checked = Result<[u8; 32], (i64, Fault)>;

fn fault(row: &Row<'_>, expected: i64, previous: &[u8; 32]) -> Result<Checked, rusqlite::Error> {
    let seq: i64 = row.get("seq")?;
    if seq != expected {
        return Ok(Err((expected, Fault::Missing)));
    }
    let values = (0..HASHED.len())
        .map(|column| row.get(column))
        .collect::<Result<Vec<Value>, _>>()?;
    let sha256: [u8; 32] = row.get("sha256")?;
    let follows: [u8; 32] = row.get("previous_sha256")?;
    if hash(&follows, &values) != sha256 {
        return Ok(Err((seq, Fault::Altered)));
    }
    if follows != *previous {
        return Ok(Err((seq, Fault::Misplaced)));
    }
    Ok(Ok(sha256))
}

fn broken(seq: i64, fault: Fault) -> Chain {
    Chain::Broken {
        seq: u64::try_from(seq).unwrap_or(0),
        fault,
    }
}
