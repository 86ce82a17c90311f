//! A row of the audit before it is inserted: its columns, its number and its hashes.

use std::borrow::Cow;

use ring::digest::{SHA256, digest};
use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{CachedStatement, Connection, params_from_iter};
use serde_json::{Map, Value};

use super::chain;
use super::chain_tail::ChainTail;
use super::columns::{FORMAT, HASHED, WITHOUT_REASON};
use super::entry::{AuditEntry, AuditId, AuditOutcome, MAX_ERROR, MAX_REASON};
use super::exact::{self, UnsealedArguments};
use crate::vault::row::to_column;
use gatewren_base::sys::{now_ms, shorten};
use gatewren_base::telemetry::{redact, redact_text};

/// A row without its number and its hashes.
///
/// Fast path: it borrows its texts. With two others it saves a quarter of the instructions of `tools/call`.
pub(in crate::vault) struct UnnumberedRow {
    at_ms: u64,
    kind: &'static str,
    call: AuditId,
    outcome: Option<&'static str>,
    texts: RowTexts,
    arguments_sha256: Option<[u8; 32]>,
    duration_ms: Option<i64>,
    revision: Option<i64>,
    revision_before: Option<i64>,
    /// The exact arguments, if the row does not show them.
    unsealed: Option<Box<UnsealedArguments>>,
}

/// The text columns of a call.
#[derive(Clone, Copy)]
enum Column {
    Agent,
    Session,
    Request,
    Address,
    Tool,
    Risk,
    Arguments,
    Target,
    Decision,
    Token,
    Space,
    Mode,
    Change,
    Error,
    Reason,
}

/// The texts of a row in a single allocation. A row has up to fifteen.
#[derive(Default)]
struct RowTexts {
    all: String,
    places: [Option<(u32, u32)>; Column::Reason as usize + 1],
}

impl RowTexts {
    fn put(&mut self, column: Column, text: &str) {
        let begin = self.all.len();
        self.all.push_str(text);
        // The texts are shorter than a request, and a request is shorter than `u32::MAX`.
        let ends = (u32::try_from(begin), u32::try_from(self.all.len()));
        if let ((Ok(begin), Ok(end)), Some(place)) = (ends, self.places.get_mut(column as usize)) {
            *place = Some((begin, end));
        }
    }

    fn get(&self, column: Column) -> ValueRef<'_> {
        let place = self.places.get(column as usize).copied().flatten();
        let text = place.and_then(|(begin, end)| self.all.get(begin as usize..end as usize));
        text.map_or(ValueRef::Null, ValueRef::from)
    }
}

impl UnnumberedRow {
    /// Makes the intent row of a call.
    pub(in crate::vault) fn of_intent(id: &AuditId, entry: &AuditEntry<'_>) -> Self {
        let KeptArguments {
            shown: arguments,
            sha256,
            unsealed,
        } = kept_arguments(entry.arguments);
        let target = entry.target.map(redact_text);
        let reason = entry.reason.map(|reason| kept_text(reason, MAX_REASON));
        let texts = [
            (Column::Agent, Some(entry.agent)),
            (Column::Session, entry.session),
            (Column::Request, entry.request),
            (Column::Address, Some(entry.address)),
            (Column::Tool, Some(entry.tool)),
            (Column::Risk, Some(entry.risk)),
            (Column::Arguments, Some(&*arguments)),
            (Column::Target, target.as_deref()),
            (Column::Decision, Some(entry.decision)),
            (Column::Token, entry.token),
            (Column::Space, entry.space),
            (Column::Mode, entry.mode),
            (Column::Change, entry.change),
            (Column::Reason, reason.as_deref()),
        ];
        Self {
            at_ms: now_ms(),
            kind: "intent",
            call: id.clone(),
            outcome: None,
            texts: Self::join_texts(&texts),
            arguments_sha256: Some(sha256),
            duration_ms: None,
            revision: None,
            revision_before: None,
            unsealed,
        }
    }

    /// Makes the only row of a call from its intent: the row of a call that only read.
    pub(in crate::vault) fn ended(mut self, outcome: AuditOutcome<'_>) -> Self {
        if let Some(error) = outcome.error {
            self.texts.put(Column::Error, &kept_text(error, MAX_ERROR));
        }
        Self {
            outcome: Some(outcome.outcome),
            duration_ms: Some(to_column(outcome.duration_ms)),
            revision: outcome.revision.map(to_column),
            revision_before: outcome.revision_before.map(to_column),
            ..self
        }
    }

    /// Makes the outcome row of a call.
    pub(in crate::vault) fn of_outcome(id: &AuditId, outcome: AuditOutcome<'_>) -> Self {
        let mut texts = RowTexts::default();
        if let Some(error) = outcome.error {
            texts.put(Column::Error, &kept_text(error, MAX_ERROR));
        }
        Self {
            at_ms: now_ms(),
            kind: "outcome",
            call: id.clone(),
            outcome: Some(outcome.outcome),
            texts,
            arguments_sha256: None,
            duration_ms: Some(to_column(outcome.duration_ms)),
            revision: outcome.revision.map(to_column),
            revision_before: outcome.revision_before.map(to_column),
            unsealed: None,
        }
    }

    fn join_texts(texts: &[(Column, Option<&str>)]) -> RowTexts {
        let bytes = texts.iter().map(|(_, text)| text.map_or(0, str::len)).sum();
        let mut together = RowTexts {
            all: String::with_capacity(bytes),
            ..RowTexts::default()
        };
        for (column, text) in texts {
            if let Some(text) = text {
                together.put(*column, text);
            }
        }
        together
    }

    /// Returns the values for the columns of [`HASHED`].
    fn values<'r>(&'r self, seq: i64, exact: Option<&'r str>) -> [ValueRef<'r>; HASHED.len()] {
        let text = |column| self.texts.get(column);
        let number = |number: Option<i64>| number.map_or(ValueRef::Null, ValueRef::Integer);
        let sha256 = self.arguments_sha256.as_ref();
        [
            ValueRef::Integer(seq),
            ValueRef::Integer(to_column(self.at_ms)),
            ValueRef::from(self.call.as_str()),
            ValueRef::from(self.kind),
            text(Column::Agent),
            text(Column::Session),
            text(Column::Request),
            text(Column::Address),
            text(Column::Tool),
            text(Column::Risk),
            text(Column::Arguments),
            sha256.map_or(ValueRef::Null, |bytes| ValueRef::Blob(bytes)),
            text(Column::Target),
            text(Column::Decision),
            self.outcome.map_or(ValueRef::Null, ValueRef::from),
            number(self.duration_ms),
            number(self.revision),
            text(Column::Token),
            text(Column::Space),
            text(Column::Mode),
            text(Column::Change),
            number(self.revision_before),
            exact.map_or(ValueRef::Null, ValueRef::from),
            text(Column::Error),
            text(Column::Reason),
        ]
    }
}

/// Returns a text as stored in the audit: without secrets, and then shortened, so that no secret is cut in half.
fn kept_text(text: &str, max: usize) -> String {
    shorten(&redact_text(text), max)
}

/// The arguments of a call as stored in the audit.
struct KeptArguments {
    /// The arguments without secrets, as text.
    shown: Cow<'static, str>,
    /// The hash of the exact arguments.
    sha256: [u8; 32],
    /// The exact arguments, if redaction changed the text.
    unsealed: Option<Box<UnsealedArguments>>,
}

/// The text of no arguments, and its SHA-256: many tools that read take none, and a hash costs 2,500 instructions.
const NO_ARGUMENTS: &str = "{}";
#[rustfmt::skip]
const NO_ARGUMENTS_SHA256: [u8; 32] = [
    0x44, 0x13, 0x6f, 0xa3, 0x55, 0xb3, 0x67, 0x8a, 0x11, 0x46, 0xad, 0x16, 0xf7, 0xe8, 0x64, 0x9e,
    0x94, 0xfb, 0x4f, 0xc2, 0x1f, 0xe7, 0x7e, 0x83, 0x10, 0xc0, 0x60, 0xf6, 0x1c, 0xaa, 0xff, 0x8a,
];

fn kept_arguments(arguments: &Value) -> KeptArguments {
    if arguments.as_object().is_some_and(Map::is_empty) {
        return KeptArguments {
            shown: Cow::Borrowed(NO_ARGUMENTS),
            sha256: NO_ARGUMENTS_SHA256,
            unsealed: None,
        };
    }
    let came = arguments.to_string();
    let mut sha256 = [0; 32];
    sha256.copy_from_slice(digest(&SHA256, came.as_bytes()).as_ref());
    let shown = redact(arguments).to_string();
    let unsealed = (shown != came).then(|| {
        Box::new(UnsealedArguments {
            text: came.into_boxed_str(),
            sha256,
        })
    });
    KeptArguments {
        shown: Cow::Owned(shown),
        sha256,
        unsealed,
    }
}

/// The columns of [`HASHED`] in their order, then the two hashes and the format; for a row with a reason.
const INSERT_WITH_REASON: &str = "INSERT INTO audit (seq, at_ms, call, kind, agent, session, request, address, tool, risk,
        arguments, arguments_sha256, target, decision, outcome, duration_ms, revision, token, space, mode,
        change, revision_before, exact, error, reason, previous_sha256, sha256, format)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";

/// The same for a row without a reason.
///
/// Fast path: one more column is 2,900 of the instructions of a row.
const INSERT: &str = "INSERT INTO audit (seq, at_ms, call, kind, agent, session, request, address, tool, risk,
        arguments, arguments_sha256, target, decision, outcome, duration_ms, revision, token, space, mode,
        change, revision_before, exact, error, previous_sha256, sha256, format)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";

/// Appends rows with a statement that is prepared for the first of them.
///
/// Fast path: to look the statement up for each row takes 3,400 of its 50,000 instructions.
pub(in crate::vault) struct RowInserter<'c> {
    connection: &'c Connection,
    statement: Option<CachedStatement<'c>>,
}

impl<'c> RowInserter<'c> {
    pub(in crate::vault) fn new(connection: &'c Connection) -> Self {
        Self {
            connection,
            statement: None,
        }
    }

    /// Appends a row, and seals the exact arguments if the row does not show them. Either both are written or neither.
    pub(in crate::vault) fn append(
        &mut self,
        tail: &ChainTail,
        record: &UnnumberedRow,
    ) -> Result<(), rusqlite::Error> {
        let Some(unsealed) = &record.unsealed else {
            return self.insert(tail, record, None);
        };
        let connection = self.connection;
        let run = |statement: &str| -> rusqlite::Result<()> {
            connection.prepare_cached(statement)?.execute([]).map(drop)
        };
        run("SAVEPOINT exact")?;
        let added = exact::keep(connection, record.call.as_str(), unsealed)
            .and_then(|exact| self.insert(tail, record, Some(&exact)));
        if added.is_err() {
            // If SQLite rolled back the whole transaction, the savepoint is gone and this fails. Only the first error
            // counts.
            let _ = run("ROLLBACK TO exact");
            let _ = run("RELEASE exact");
            return added;
        }
        run("RELEASE exact")
    }

    fn insert(
        &mut self,
        tail: &ChainTail,
        record: &UnnumberedRow,
        exact: Option<&str>,
    ) -> Result<(), rusqlite::Error> {
        let (seq, previous) = tail.end(self.connection)?;
        let values = record.values(seq, exact);
        let has_reason = values.last() != Some(&ValueRef::Null);
        let format = if has_reason { FORMAT } else { WITHOUT_REASON };
        let covered = values.len() - usize::from(!has_reason);
        let values = || values.into_iter().take(covered);
        let sha256 = chain::hash(format, &previous, values());
        let rest = [
            ValueRef::Blob(&previous),
            ValueRef::Blob(&sha256),
            ValueRef::Integer(format),
        ];
        let values = values().chain(rest).map(ToSqlOutput::Borrowed);
        if has_reason {
            let mut statement = self.connection.prepare_cached(INSERT_WITH_REASON)?;
            statement.execute(params_from_iter(values))?;
        } else {
            let statement = match &mut self.statement {
                Some(statement) => statement,
                none => none.insert(self.connection.prepare_cached(INSERT)?),
            };
            statement.execute(params_from_iter(values))?;
        }
        tail.append(seq, sha256);
        Ok(())
    }
}

/// Appends a single row.
pub(in crate::vault) fn append(
    connection: &Connection,
    tail: &ChainTail,
    record: &UnnumberedRow,
) -> Result<(), rusqlite::Error> {
    RowInserter::new(connection).append(tail, record)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_error_is_kept_without_secrets_and_not_longer_than_its_bound() {
        assert_eq!(kept_text("web is stopped", MAX_ERROR), "web is stopped");
        let secret = kept_text("cannot run: mysql --password hunter2", MAX_ERROR);
        assert_eq!(secret, "cannot run: mysql --password [redacted]");
        // The secret crosses the bound.
        let long = format!("{} --password hunter2", "x".repeat(MAX_ERROR - 15));
        let kept = kept_text(&long, MAX_ERROR);
        assert!(!kept.contains("hun"), "{kept}");
        assert_eq!(kept.chars().count(), MAX_ERROR);
        assert!(kept.ends_with('…'), "{kept}");
    }

    #[test]
    fn the_hash_is_that_of_the_text_also_of_no_arguments() {
        for arguments in [json!({}), json!({ "a": 1 }), json!([]), Value::Null] {
            let kept = kept_arguments(&arguments);
            let text = arguments.to_string();
            assert_eq!(kept.sha256, digest(&SHA256, text.as_bytes()).as_ref());
            assert_eq!(kept.shown, text);
            assert!(kept.unsealed.is_none());
        }
        let secret = json!({ "password": "open sesame" });
        let kept = kept_arguments(&secret);
        let text = secret.to_string();
        assert_eq!(kept.sha256, digest(&SHA256, text.as_bytes()).as_ref());
        let unsealed = kept.unsealed.unwrap();
        assert!(*unsealed.text == *text && kept.shown != text && unsealed.sha256 == kept.sha256);
    }
}
