//! The audit: before a call runs what it is about to do, after it what came of it.

use std::fmt;
use std::path::Path;

use ring::digest::{SHA256, digest};
use rusqlite::types::Value;
use rusqlite::{Connection, params_from_iter};

use super::chain::{self, Chain, HASHED};
use super::commit::Durability;
use super::error::VaultError;
use super::open;
use super::redact::redact;
use super::row::to_column;
use super::writer::Writer;
use crate::sys::{now_ms, random_bytes};

/// A call that is about to run.
#[derive(Debug, Clone)]
pub struct Entry<'a> {
    /// The id of the agent that calls.
    pub agent: &'a str,
    /// The session it calls in, in the eras that have them.
    pub session: Option<&'a str>,
    /// The id that its request has in our log.
    pub request: Option<&'a str>,
    /// Where it calls from.
    pub address: &'a str,
    /// The tool.
    pub tool: &'a str,
    /// The tool's class of risk.
    pub risk: &'a str,
    /// The arguments as they came: only their redacted form and their hash are kept.
    pub arguments: &'a serde_json::Value,
    /// What it is about, such as a container's name.
    pub target: Option<&'a str>,
    /// What the policy said.
    pub decision: &'a str,
}

/// When the intent counts as written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Promise {
    /// When it would survive a power cut: for whatever changes something.
    Committed,
    /// When it has its place in the queue: for what only reads.
    Queued,
}

/// What came of a call.
#[derive(Debug, Clone, Copy)]
pub struct Outcome {
    /// One word, such as `ok`, `error`, `denied`, `cancelled`.
    pub status: &'static str,
    /// How long it took.
    pub duration_ms: u64,
    /// The revision of the state that it led to.
    pub revision: Option<u64>,
}

/// Joins the two rows of a call: 32 hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct AuditId(String);

impl fmt::Display for AuditId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The door to the table.
pub struct Audit<'a> {
    writer: &'a Writer,
    path: &'a Path,
}

impl<'a> Audit<'a> {
    pub(super) fn new(writer: &'a Writer, path: &'a Path) -> Self {
        Self { writer, path }
    }

    /// Writes down what is about to be done; nothing may run before the answer comes.
    pub async fn intent(&self, entry: Entry<'_>, promise: Promise) -> Result<AuditId, VaultError> {
        let id = AuditId(format!("{:032x}", u128::from_be_bytes(random_bytes()?)));
        let record = Record::of_intent(&id, &entry);
        let work = move |connection: &Connection| append(connection, record);
        let doing = "write to the audit";
        match promise {
            Promise::Committed => {
                let durability = Durability::Power;
                self.writer.write(doing, durability, work, |()| ()).await?;
            }
            Promise::Queued => self.writer.leave(doing, work).await?,
        }
        Ok(id)
    }

    /// Writes down what came of a call, some time soon. It never waits, so that it can also be said
    /// where a call was dropped; there are no more of these than calls at once.
    pub fn outcome(&self, id: AuditId, outcome: Outcome) -> Result<(), VaultError> {
        let record = Record::of_outcome(id, outcome);
        let work = move |connection: &Connection| append(connection, record);
        self.writer.leave_uncounted("write to the audit", work)
    }

    /// Looks at every row and says which is the first that was altered, moved or taken away.
    ///
    /// This reads the whole audit and blocks while it does.
    pub fn verify(&self) -> Result<Chain, VaultError> {
        let connection = open::reading(self.path)?;
        chain::verify(&connection)
            .map_err(|cause| VaultError::from_sqlite(self.path, "read the audit", &cause))
    }
}

/// A row but for its number and its hashes.
#[derive(Default)]
struct Record {
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
}

impl Record {
    fn of_intent(id: &AuditId, entry: &Entry<'_>) -> Self {
        let arguments = entry.arguments.to_string();
        let sha256 = digest(&SHA256, arguments.as_bytes());
        Self {
            at_ms: now_ms(),
            call: id.0.clone(),
            kind: "intent",
            agent: Some(entry.agent.to_owned()),
            session: entry.session.map(str::to_owned),
            request: entry.request.map(str::to_owned),
            address: Some(entry.address.to_owned()),
            tool: Some(entry.tool.to_owned()),
            risk: Some(entry.risk.to_owned()),
            arguments: Some(redact(entry.arguments).to_string()),
            arguments_sha256: Some(sha256.as_ref().to_vec()),
            target: entry.target.map(str::to_owned),
            decision: Some(entry.decision.to_owned()),
            ..Self::default()
        }
    }

    fn of_outcome(id: AuditId, outcome: Outcome) -> Self {
        Self {
            at_ms: now_ms(),
            call: id.0,
            kind: "outcome",
            outcome: Some(outcome.status.to_owned()),
            duration_ms: Some(to_column(outcome.duration_ms)),
            revision: outcome.revision.map(to_column),
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
        ]
    }
}

/// The columns are those of [`HASHED`] and the two hashes, in the order in which the table has them.
const INSERT: &str =
    "INSERT INTO audit VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";

fn append(connection: &Connection, record: Record) -> Result<(), rusqlite::Error> {
    let (seq, previous) = chain::end(connection)?;
    let values = record.values(seq);
    let sha256 = chain::hash(&previous, &values);
    let hashes = [previous.to_vec().into(), sha256.to_vec().into()];
    connection
        .prepare_cached(INSERT)?
        .execute(params_from_iter(values.into_iter().chain(hashes)))?;
    Ok(())
}
