//! A call as the audit tells it: the row before it and the row after it, joined.

use rusqlite::types::ValueRef;
use rusqlite::{Connection, OptionalExtension as _, Row, named_params};
use serde::Serialize;
use serde_json::Value;

use super::audit_columns;
use super::checkpoint::hex;
use super::exact::Exact;

/// Which calls are wanted; what is absent does not matter.
#[derive(Debug, Clone, Default)]
pub struct Wanted {
    /// Of the agent with this id or name.
    pub agent: Option<String>,
    /// Of this tool.
    pub tool: Option<String>,
    /// About this container, unit or pointer.
    pub target: Option<String>,
    /// So decided.
    pub decision: Option<String>,
    /// So ended.
    pub outcome: Option<String>,
    /// Begun at this time or later, in milliseconds since 1970.
    pub since_ms: Option<i64>,
    /// Begun before this time.
    pub until_ms: Option<i64>,
    /// At most so many.
    pub limit: u32,
}

/// A call. Times are milliseconds since 1970.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AuditCall {
    /// The number of the row before it.
    pub seq: i64,
    /// Its id in the audit.
    pub call: String,
    /// The reference of its request, as the journal and the client have it.
    pub request: Option<String>,
    /// When it was to begin.
    pub at_ms: i64,
    /// The agent's id.
    pub agent: Option<String>,
    /// What the agent is called now.
    pub agent_name: Option<String>,
    /// Which of its tokens.
    pub token: Option<String>,
    /// Its space.
    pub space: Option<String>,
    /// Its session.
    pub session: Option<String>,
    /// From where.
    pub address: Option<String>,
    /// The tool.
    pub tool: Option<String>,
    /// The tool's class of risk.
    pub risk: Option<String>,
    /// What it is about.
    pub target: Option<String>,
    /// The arguments without their secrets, as JSON.
    pub arguments: Option<String>,
    /// The SHA-256 of the arguments as they came.
    pub arguments_sha256: Option<String>,
    /// Where the exact arguments are.
    pub exact: Exact,
    /// What the policy says of such calls.
    pub mode: Option<String>,
    /// What was decided of this one.
    pub decision: Option<String>,
    /// The change of the inbox that it carries out.
    pub change: Option<String>,
    /// The row after it, if there is one.
    pub ended: Option<AuditEnd>,
}

/// How a call ended.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AuditEnd {
    /// The number of the row.
    pub seq: i64,
    /// When it was written.
    pub at_ms: i64,
    /// One word.
    pub outcome: Option<String>,
    /// How long the call took.
    pub duration_ms: Option<i64>,
    /// The revision of the state before it.
    pub revision_before: Option<i64>,
    /// The revision of the state that shows what it did.
    pub revision: Option<i64>,
}

const CALLS: &str = "SELECT i.*, agent.name AS agent_name, o.seq AS end_seq, o.at_ms AS end_at_ms,
        o.outcome AS end_outcome, o.duration_ms AS end_duration_ms,
        o.revision_before AS end_revision_before, o.revision AS end_revision
    FROM rows i
        LEFT JOIN rows o ON o.call = i.call AND o.kind = 'outcome'
        LEFT JOIN agent ON agent.id = i.agent
    WHERE i.kind = 'intent'";

/// The calls that are wanted, the newest first.
pub(super) fn list(connection: &Connection, wanted: &Wanted) -> rusqlite::Result<Vec<AuditCall>> {
    let query = format!(
        "{}
          AND (:agent IS NULL OR i.agent = :agent OR agent.name = :agent)
          AND (:tool IS NULL OR i.tool = :tool)
          AND (:target IS NULL OR i.target = :target)
          AND (:decision IS NULL OR i.decision = :decision)
          AND (:outcome IS NULL OR o.outcome = :outcome OR (:outcome = 'unknown' AND o.seq IS NULL))
          AND (:since IS NULL OR i.at_ms >= :since)
          AND (:until IS NULL OR i.at_ms < :until)
        ORDER BY i.seq DESC LIMIT :limit",
        calls(connection)?
    );
    let mut statement = connection.prepare(&query)?;
    let values = named_params! {
        ":agent": wanted.agent, ":tool": wanted.tool, ":target": wanted.target,
        ":decision": wanted.decision, ":outcome": wanted.outcome,
        ":since": wanted.since_ms, ":until": wanted.until_ms, ":limit": wanted.limit,
    };
    statement.query_map(values, read)?.collect()
}

/// The newest call of this id, of this request, or with a row of this number.
pub(super) fn find(connection: &Connection, name: &str) -> rusqlite::Result<Option<AuditCall>> {
    let query = format!(
        "{} AND (i.call = ?1 OR i.request = ?1 OR i.seq = ?2 OR o.seq = ?2) ORDER BY i.seq DESC LIMIT 1",
        calls(connection)?
    );
    let seq = name.parse::<i64>().ok();
    let mut statement = connection.prepare(&query)?;
    statement.query_row((name, seq), read).optional()
}

fn calls(connection: &Connection) -> rusqlite::Result<String> {
    let columns = audit_columns::all(connection)?;
    Ok(format!(
        "WITH rows AS NOT MATERIALIZED (SELECT {columns} FROM audit) {CALLS}"
    ))
}

fn read(row: &Row<'_>) -> rusqlite::Result<AuditCall> {
    let ended = match row.get("end_seq")? {
        None => None,
        Some(seq) => Some(AuditEnd {
            seq,
            at_ms: row.get("end_at_ms")?,
            outcome: text(row, "end_outcome")?,
            duration_ms: row.get("end_duration_ms")?,
            revision_before: row.get("end_revision_before")?,
            revision: row.get("end_revision")?,
        }),
    };
    let sha256: Option<Vec<u8>> = row.get("arguments_sha256")?;
    let arguments = text(row, "arguments")?;
    let exact = text(row, "exact")?;
    let exact = Exact::read(exact.as_deref(), arguments.as_deref(), sha256.as_deref());
    Ok(AuditCall {
        seq: row.get("seq")?,
        call: text(row, "call")?.unwrap_or_default(),
        request: text(row, "request")?,
        at_ms: row.get("at_ms")?,
        agent: text(row, "agent")?,
        agent_name: text(row, "agent_name")?,
        token: text(row, "token")?,
        space: text(row, "space")?,
        session: text(row, "session")?,
        address: text(row, "address")?,
        tool: text(row, "tool")?,
        risk: text(row, "risk")?,
        target: text(row, "target")?,
        arguments,
        arguments_sha256: sha256.as_deref().map(hex),
        exact,
        mode: text(row, "mode")?,
        decision: text(row, "decision")?,
        change: text(row, "change")?,
        ended,
    })
}

/// A text also where somebody has put bytes that are none: a row that was altered can still be looked at.
fn text(row: &Row<'_>, column: &str) -> rusqlite::Result<Option<String>> {
    Ok(match row.get_ref(column)? {
        ValueRef::Text(bytes) => Some(String::from_utf8_lossy(bytes).into_owned()),
        _ => None,
    })
}

/// A value of a row as JSON: bytes become hexadecimal digits.
pub(super) fn as_json(value: ValueRef<'_>) -> Value {
    match value {
        ValueRef::Null => Value::Null,
        ValueRef::Integer(number) => number.into(),
        ValueRef::Real(number) => number.into(),
        ValueRef::Text(bytes) => String::from_utf8_lossy(bytes).into(),
        ValueRef::Blob(bytes) => hex(bytes).into(),
    }
}
