//! A row of the audit on its way into the table: its columns, its number, its hashes.

use ring::digest::{SHA256, digest};
use rusqlite::types::Value;
use rusqlite::{Connection, params_from_iter};

use super::audit_columns::{FORMAT, HASHED};
use super::audit_entry::{AuditId, Entry, Outcome};
use super::chain;
use super::row::to_column;
use super::tail::Tail;
use crate::sys::now_ms;
use crate::telemetry::{redact, redact_text};

/// A row but for its number and its hashes.
#[derive(Default)]
pub(super) struct Record {
    at_ms: u64,
    call: String,
    kind: &'static str,
    agent: Option<String>,
    session: Option<String>,
    request: Option<String>,
    address: Option<String>,
    tool: Option<String>,
    risk: Option<String>,
    arguments: Option<String>,
    arguments_sha256: Option<Vec<u8>>,
    target: Option<String>,
    decision: Option<String>,
    outcome: Option<String>,
    duration_ms: Option<i64>,
    revision: Option<i64>,
    token: Option<String>,
    space: Option<String>,
    mode: Option<String>,
    change: Option<String>,
    revision_before: Option<i64>,
}

impl Record {
    /// The row before a call.
    pub(super) fn of_intent(id: &AuditId, entry: &Entry<'_>) -> Self {
        let arguments = entry.arguments.to_string();
        let sha256 = digest(&SHA256, arguments.as_bytes());
        let owned = |text: Option<&str>| text.map(str::to_owned);
        Self {
            at_ms: now_ms(),
            call: id.as_str().to_owned(),
            kind: "intent",
            agent: Some(entry.agent.to_owned()),
            session: owned(entry.session),
            request: owned(entry.request),
            address: Some(entry.address.to_owned()),
            tool: Some(entry.tool.to_owned()),
            risk: Some(entry.risk.to_owned()),
            arguments: Some(redact(entry.arguments).to_string()),
            arguments_sha256: Some(sha256.as_ref().to_vec()),
            target: entry.target.map(|text| redact_text(text).into_owned()),
            decision: Some(entry.decision.to_owned()),
            token: owned(entry.token),
            space: owned(entry.space),
            mode: owned(entry.mode),
            change: owned(entry.change),
            ..Self::default()
        }
    }

    /// The row after it.
    pub(super) fn of_outcome(id: AuditId, outcome: Outcome) -> Self {
        Self {
            at_ms: now_ms(),
            call: id.into_text(),
            kind: "outcome",
            outcome: Some(outcome.status.to_owned()),
            duration_ms: Some(to_column(outcome.duration_ms)),
            revision: outcome.revision.map(to_column),
            revision_before: outcome.revision_before.map(to_column),
            ..Self::default()
        }
    }

    /// The values for the columns of [`HASHED`].
    fn values(self, seq: i64) -> [Value; HASHED.len()] {
        [
            seq.into(),
            to_column(self.at_ms).into(),
            self.call.into(),
            self.kind.to_owned().into(),
            self.agent.into(),
            self.session.into(),
            self.request.into(),
            self.address.into(),
            self.tool.into(),
            self.risk.into(),
            self.arguments.into(),
            self.arguments_sha256.into(),
            self.target.into(),
            self.decision.into(),
            self.outcome.into(),
            self.duration_ms.into(),
            self.revision.into(),
            self.token.into(),
            self.space.into(),
            self.mode.into(),
            self.change.into(),
            self.revision_before.into(),
        ]
    }
}

/// The columns are those of [`HASHED`] in their order, the two hashes and the format.
const INSERT: &str = "INSERT INTO audit (seq, at_ms, call, kind, agent, session, request, address, tool, risk,
        arguments, arguments_sha256, target, decision, outcome, duration_ms, revision, token, space, mode,
        change, revision_before, previous_sha256, sha256, format)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";

/// Adds a row behind the last one.
pub(super) fn append(
    connection: &Connection,
    tail: &Tail,
    record: Record,
) -> Result<(), rusqlite::Error> {
    let (seq, previous) = tail.end(connection)?;
    let values = record.values(seq);
    let sha256 = chain::hash(FORMAT, &previous, &values);
    let rest = [
        previous.to_vec().into(),
        sha256.to_vec().into(),
        FORMAT.into(),
    ];
    connection
        .prepare_cached(INSERT)?
        .execute(params_from_iter(values.into_iter().chain(rest)))?;
    tail.grew(seq, sha256);
    Ok(())
}
