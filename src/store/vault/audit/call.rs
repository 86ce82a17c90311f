//! A call as recorded in the audit: its intent row joined with its outcome row.

use rusqlite::types::{FromSql, ValueRef};
use rusqlite::{Connection, OptionalExtension as _, Row, named_params};
use serde::Serialize;
use serde_json::Value;

use super::checkpoint::hex;
use super::columns;
use super::exact::ExactArguments;

/// A filter for calls. An absent field matches every call.
#[derive(Debug, Clone, Default)]
pub struct CallFilter {
    /// The agent's id or name.
    pub agent: Option<String>,
    /// The tool's name.
    pub tool: Option<String>,
    /// The target: a container, unit or JSON Pointer.
    pub target: Option<String>,
    /// The decision.
    pub decision: Option<String>,
    /// The outcome; `unknown` matches calls without one.
    pub outcome: Option<String>,
    /// The earliest start, in milliseconds since 1970.
    pub since_ms: Option<i64>,
    /// The end of the period (exclusive), in milliseconds since 1970.
    pub until_ms: Option<i64>,
    /// The maximum number of calls to return.
    pub limit: u32,
}

/// A call. Times are milliseconds since 1970.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AuditCall {
    /// The number of its intent row.
    pub seq: i64,
    /// Its id in the audit.
    pub call: String,
    /// The reference of its request, as shown in the journal and to the client.
    pub request: Option<String>,
    /// When the intent was recorded.
    pub at_ms: i64,
    /// The agent's id.
    pub agent: Option<String>,
    /// The agent's current name.
    pub agent_name: Option<String>,
    /// The token's identifier: part of its hash, no secret.
    pub token: Option<String>,
    /// The agent's space.
    pub space: Option<String>,
    /// The session's id.
    pub session: Option<String>,
    /// The address that the request came from.
    pub address: Option<String>,
    /// The tool.
    pub tool: Option<String>,
    /// The tool's risk class.
    pub risk: Option<String>,
    /// The target of the call.
    pub target: Option<String>,
    /// The arguments without their secrets, as JSON.
    pub arguments: Option<String>,
    /// The reason that the agent gave.
    pub reason: Option<String>,
    /// The SHA-256 of the arguments as received.
    pub arguments_sha256: Option<String>,
    /// Where the exact arguments are.
    pub exact: ExactArguments,
    /// The mode that the policy sets for such calls.
    pub mode: Option<String>,
    /// The decision about this call.
    pub decision: Option<String>,
    /// The change of the inbox that this call applies.
    pub change: Option<String>,
    /// The outcome, if it was recorded: in a row of its own, or in the only row of a call that only read.
    pub ended: Option<RecordedOutcome>,
}

/// The outcome of a call.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RecordedOutcome {
    /// The number of the row that has it.
    pub seq: i64,
    /// When the call ended.
    pub at_ms: i64,
    /// The outcome as one word.
    pub outcome: Option<String>,
    /// The duration of the call.
    pub duration_ms: Option<i64>,
    /// The revision of the state before the call.
    pub revision_before: Option<i64>,
    /// The revision of the state that includes the effect of the call.
    pub revision: Option<i64>,
    /// The reason for which the call failed or was refused: the first 300 characters of its error, without secrets.
    pub error: Option<String>,
}

/// The columns of a call, in the order in which [`read`] takes them: looking each up by its name took longer than the
/// query.
const CALLS: &str = "SELECT
        iif(i.outcome IS NULL, o.seq, i.seq) AS end_seq,
        iif(i.outcome IS NULL, o.at_ms, i.at_ms + i.duration_ms),
        coalesce(i.outcome, o.outcome) AS end_outcome,
        coalesce(i.duration_ms, o.duration_ms),
        coalesce(i.revision_before, o.revision_before),
        coalesce(i.revision, o.revision),
        coalesce(i.error, o.error),
        i.arguments_sha256, i.arguments, i.exact, i.seq, i.call, i.request, i.at_ms, i.agent, agent.name, i.token,
        i.space, i.session, i.address, i.tool, i.risk, i.target, i.reason, i.mode, i.decision, i.change
    FROM rows i
        LEFT JOIN rows o ON i.outcome IS NULL AND o.call = i.call AND o.kind = 'outcome'
        LEFT JOIN agent ON agent.id = i.agent
    WHERE i.kind = 'intent'";

/// Returns the matching calls, newest first.
pub(in crate::vault) fn list(
    connection: &Connection,
    wanted: &CallFilter,
) -> rusqlite::Result<Vec<AuditCall>> {
    let query = format!(
        "{}
          AND (:agent IS NULL OR i.agent = :agent OR agent.name = :agent)
          AND (:tool IS NULL OR i.tool = :tool)
          AND (:target IS NULL OR i.target = :target)
          AND (:decision IS NULL OR i.decision = :decision)
          AND (:outcome IS NULL OR end_outcome = :outcome OR (:outcome = 'unknown' AND end_seq IS NULL))
          AND (:since IS NULL OR i.at_ms >= :since)
          AND (:until IS NULL OR i.at_ms < :until)
        ORDER BY i.seq DESC LIMIT :limit",
        calls(connection)?
    );
    let mut statement = connection.prepare_cached(&query)?;
    let values = named_params! {
        ":agent": wanted.agent, ":tool": wanted.tool, ":target": wanted.target,
        ":decision": wanted.decision, ":outcome": wanted.outcome,
        ":since": wanted.since_ms, ":until": wanted.until_ms, ":limit": wanted.limit,
    };
    statement.query_map(values, read)?.collect()
}

/// Returns the newest call with this call id, this request reference, or a row of this number.
pub(in crate::vault) fn find(
    connection: &Connection,
    name: &str,
) -> rusqlite::Result<Option<AuditCall>> {
    let query = format!(
        "{} AND (i.call = ?1 OR i.request = ?1 OR i.seq = ?2 OR o.seq = ?2) ORDER BY i.seq DESC LIMIT 1",
        calls(connection)?
    );
    let seq = name.parse::<i64>().ok();
    let mut statement = connection.prepare_cached(&query)?;
    statement.query_row((name, seq), read).optional()
}

fn calls(connection: &Connection) -> rusqlite::Result<String> {
    let columns = columns::all(connection)?;
    Ok(format!(
        "WITH rows AS NOT MATERIALIZED (SELECT {columns} FROM audit) {CALLS}"
    ))
}

/// The values of a row, one after the other.
struct RowValues<'r> {
    row: &'r Row<'r>,
    next: usize,
}

impl RowValues<'_> {
    fn get<T: FromSql>(&mut self) -> rusqlite::Result<T> {
        self.next += 1;
        self.row.get(self.next - 1)
    }

    /// Takes a text even if someone put invalid UTF-8 into the column, so that an altered row can still be shown.
    fn text(&mut self) -> rusqlite::Result<Option<String>> {
        self.next += 1;
        Ok(match self.row.get_ref(self.next - 1)? {
            ValueRef::Text(bytes) => Some(String::from_utf8_lossy(bytes).into_owned()),
            _ => None,
        })
    }
}

fn read(row: &Row<'_>) -> rusqlite::Result<AuditCall> {
    let mut values = RowValues { row, next: 0 };
    let (end_seq, end_at_ms) = (values.get()?, values.get::<Option<i64>>()?);
    let outcome = RecordedOutcome {
        seq: 0,
        at_ms: end_at_ms.unwrap_or_default(),
        outcome: values.text()?,
        duration_ms: values.get()?,
        revision_before: values.get()?,
        revision: values.get()?,
        error: values.text()?,
    };
    let ended = |seq: i64| RecordedOutcome { seq, ..outcome };
    let ended = Option::map(end_seq, ended);
    let sha256: Option<Vec<u8>> = values.get()?;
    let arguments = values.text()?;
    let exact = values.text()?;
    let exact = ExactArguments::read(exact.as_deref(), arguments.as_deref(), sha256.as_deref());
    // In the order of the columns, which is that of evaluation.
    Ok(AuditCall {
        arguments_sha256: sha256.as_deref().map(hex),
        arguments,
        exact,
        seq: values.get()?,
        call: values.text()?.unwrap_or_default(),
        request: values.text()?,
        at_ms: values.get()?,
        agent: values.text()?,
        agent_name: values.text()?,
        token: values.text()?,
        space: values.text()?,
        session: values.text()?,
        address: values.text()?,
        tool: values.text()?,
        risk: values.text()?,
        target: values.text()?,
        reason: values.text()?,
        mode: values.text()?,
        decision: values.text()?,
        change: values.text()?,
        ended,
    })
}

/// Converts a column's value to JSON. Bytes become hexadecimal digits.
pub(in crate::vault) fn as_json(value: ValueRef<'_>) -> Value {
    match value {
        ValueRef::Null => Value::Null,
        ValueRef::Integer(number) => number.into(),
        ValueRef::Real(number) => number.into(),
        ValueRef::Text(bytes) => String::from_utf8_lossy(bytes).into(),
        ValueRef::Blob(bytes) => hex(bytes).into(),
    }
}
