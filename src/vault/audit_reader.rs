//! The audit looked at from outside: never written, beside a running server, without one, on a read-only disk.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, OptionalExtension as _};
use serde_json::{Map, Value};

use super::anchors::{self, Anchors, Compared};
use super::audit::RUN_AFTER;
use super::audit_call::{self, AuditCall, Wanted};
use super::audit_columns::{self, HASHED, UNHASHED};
use super::chain::{self, BEGINNING, Chain};
use super::checkpoint::{self, Checkpoint};
use super::error::VaultError;
use super::exact::{self, Exact, ExactError, ExactStanding, SealedArguments};
use super::keys::{self, STATE_AUTHOR_KEY};
use super::open;

/// The audit of a vault that is only read.
pub struct AuditReader {
    path: PathBuf,
    connection: Connection,
}

/// A line of an export.
#[derive(Debug, Clone, PartialEq)]
pub enum Line {
    /// The first: what the rows follow on.
    Beginning(Beginning),
    /// A row with all its columns; bytes are hexadecimal digits.
    Row(Map<String, Value>),
}

/// What an export says before its rows, so that somebody else can verify them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Beginning {
    /// The number of the row before the first.
    pub after: i64,
    /// The hash that the first row follows on.
    pub sha256: [u8; 32],
    /// The highest number that a row ever had.
    pub last: i64,
    /// What was trimmed, and whether its seal is good.
    pub checkpoint: Option<(Checkpoint, bool)>,
}

impl AuditReader {
    /// Opens the vault at `path` for reading alone.
    pub fn open(path: &Path) -> Result<Self, VaultError> {
        Ok(Self {
            connection: open::looking(path)?,
            path: path.to_owned(),
        })
    }

    /// Looks at the checkpoint and at every row, and says which is the first that was altered, moved or taken
    /// away.
    pub fn verify(&self) -> Result<Chain, VaultError> {
        chain::verify(&self.connection).map_err(|cause| self.said(&cause))
    }

    /// Compares the rows with those that the helper has noted. [`AuditReader::verify`] checks that the rows agree with
    /// each other; this finds a chain that was rewritten as a whole, and an end that was cut off.
    pub fn compare(&self, anchors: &Anchors) -> Result<Compared, VaultError> {
        anchors::compare(&self.connection, anchors).map_err(|cause| self.said(&cause))
    }

    /// The calls that are wanted, the newest first.
    pub fn calls(&self, wanted: &Wanted) -> Result<Vec<AuditCall>, VaultError> {
        audit_call::list(&self.connection, wanted).map_err(|cause| self.said(&cause))
    }

    /// The call with this id, this reference of its request, or this number of one of its rows; the newest if
    /// there are several.
    pub fn call(&self, name: &str) -> Result<Option<AuditCall>, VaultError> {
        audit_call::find(&self.connection, name).map_err(|cause| self.said(&cause))
    }

    /// The exact arguments of a call, sealed; nothing where its row shows them, or none are kept.
    pub fn sealed_arguments(
        &self,
        call: &AuditCall,
    ) -> Result<Option<Result<SealedArguments, ExactError>>, VaultError> {
        let Exact::Sealed(expected) = &call.exact else {
            return Ok(None);
        };
        let row = "SELECT arguments_sha256 FROM audit WHERE seq = ?1";
        let found = self
            .connection
            .query_row(row, [call.seq], |row| row.get(0))
            .and_then(|sha256| exact::find(&self.connection, &call.call, sha256, expected));
        found.map(Some).map_err(|cause| self.said(&cause))
    }

    /// How many calls have sealed arguments, and whether their keys are there.
    pub fn exact_standing(&self) -> Result<ExactStanding, VaultError> {
        exact::standing(&self.connection).map_err(|cause| self.said(&cause))
    }

    /// The key that seals what the server writes into the state; none before a server has made one.
    pub fn state_author_key(&self) -> Result<Option<[u8; 32]>, VaultError> {
        keys::find(&self.connection, STATE_AUTHOR_KEY).map_err(|cause| self.said(&cause))
    }

    /// The last row that was written before the server that ran last, or runs now, had begun: a call up to it
    /// that has no outcome never gets one.
    pub fn run_after(&self) -> Result<i64, VaultError> {
        let note = "SELECT value FROM meta WHERE key = ?1";
        let noted: Result<Option<String>, _> = self
            .connection
            .query_row(note, [RUN_AFTER], |row| row.get(0))
            .optional();
        let noted = noted.map_err(|cause| self.said(&cause))?;
        Ok(noted.and_then(|text| text.parse().ok()).unwrap_or(0))
    }

    /// Hands over what the rows follow on, then every row, the oldest first, until `take` has enough. They begin
    /// after row `after`, which must still be there, or with the first that is kept.
    pub fn rows(
        &self,
        after: Option<i64>,
        mut take: impl FnMut(Line) -> ControlFlow<()>,
    ) -> Result<(), VaultError> {
        let said = |cause| self.said(&cause);
        // One transaction, so that what is said before the rows holds for them.
        let transaction = self.connection.unchecked_transaction().map_err(said)?;
        let beginning = beginning(&transaction, after).map_err(said)?;
        let beginning = beginning.ok_or(VaultError::NoSuchRow(after.unwrap_or_default()))?;
        let after = beginning.after;
        if take(Line::Beginning(beginning)).is_continue() {
            each(&transaction, after, take).map_err(said)?;
        }
        Ok(())
    }

    fn said(&self, cause: &rusqlite::Error) -> VaultError {
        VaultError::from_sqlite(&self.path, "read the audit", cause)
    }
}

fn each(
    connection: &Connection,
    after: i64,
    mut take: impl FnMut(Line) -> ControlFlow<()>,
) -> rusqlite::Result<()> {
    let columns = audit_columns::all(connection)?;
    let query = format!("SELECT {columns} FROM audit WHERE seq > ?1 ORDER BY seq");
    let mut statement = connection.prepare(&query)?;
    let mut rows = statement.query([after])?;
    while let Some(row) = rows.next()? {
        let mut fields = Map::new();
        for (at, name) in HASHED.iter().chain(&UNHASHED).enumerate() {
            fields.insert((*name).to_owned(), audit_call::as_json(row.get_ref(at)?));
        }
        if take(Line::Row(fields)).is_break() {
            break;
        }
    }
    Ok(())
}

/// What the rows after `after` follow on; nothing if that row is not there.
fn beginning(connection: &Connection, after: Option<i64>) -> rusqlite::Result<Option<Beginning>> {
    let checkpoint = checkpoint::find(connection)?;
    let trimmed = checkpoint
        .as_ref()
        .map(|(known, _)| (known.through, known.sha256));
    let trimmed = trimmed.unwrap_or((0, BEGINNING));
    let after = after.unwrap_or(trimmed.0);
    let sha256 = if after == trimmed.0 {
        Some(trimmed.1)
    } else {
        let hash = "SELECT sha256 FROM audit WHERE seq = ?1";
        connection
            .query_row(hash, [after], |row| row.get(0))
            .optional()?
    };
    let last = chain::highest(connection)?;
    Ok(sha256.map(|sha256| Beginning {
        after,
        sha256,
        last,
        checkpoint,
    }))
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt as _;

    use serde_json::json;

    use super::super::audit::Promise;
    use super::super::audit_entry::{Entry, Outcome};
    use super::super::migration::STEPS;
    use super::super::store::Vault;
    use super::*;
    use crate::sys::Scratch;

    async fn one_call(path: &Path) {
        let vault = Vault::open(path).unwrap();
        let arguments = json!({ "container": "web" });
        let entry = Entry {
            agent: "agent_1",
            token: Some("0123abcd"),
            space: Some("media"),
            session: None,
            request: Some("r1"),
            address: "192.0.2.1",
            tool: "container_start",
            risk: "write",
            arguments: &arguments,
            target: Some("web"),
            mode: Some("allow"),
            decision: "allow",
            change: None,
        };
        let id = vault.audit().intent(entry, Promise::Committed).await;
        let outcome = Outcome {
            status: "ok",
            duration_ms: 3,
            revision_before: Some(4),
            revision: Some(5),
        };
        vault.audit().outcome(&id.unwrap(), outcome).unwrap();
    }

    #[tokio::test]
    async fn reading_writes_nothing_and_needs_no_right_to() {
        let scratch = Scratch::new();
        let path = scratch.join("vault.db");
        one_call(&path).await;
        let before = fs::read(&path).unwrap();
        let mode =
            |mode| fs::set_permissions(scratch.path(), Permissions::from_mode(mode)).unwrap();
        mode(0o555);
        let audit = AuditReader::open(&path).unwrap();
        let verified = audit.verify();
        let call = audit.call("r1").unwrap().unwrap();
        mode(0o755);
        let expected = Chain::Intact {
            rows: 2,
            trimmed: 0,
        };
        assert_eq!(verified.unwrap(), expected);
        assert_eq!(call.space.as_deref(), Some("media"));
        assert_eq!(call.ended.unwrap().revision_before, Some(4));
        let written = audit.connection.execute("DELETE FROM meta", []);
        assert!(written.is_err(), "a reader cannot write");
        assert_eq!(fs::read(&path).unwrap(), before);
    }

    #[test]
    fn a_copy_that_an_earlier_version_left_can_still_be_read() {
        let scratch = Scratch::new();
        let path = scratch.join("vault.db");
        drop(open::writing(&path, STEPS.get(..3).unwrap()).unwrap());
        let audit = AuditReader::open(&path).unwrap();
        let expected = Chain::Intact {
            rows: 0,
            trimmed: 0,
        };
        assert_eq!(audit.verify().unwrap(), expected);
        assert_eq!(audit.calls(&Wanted::default()).unwrap(), []);
        let mut lines = Vec::new();
        let rows = audit.rows(None, |line| {
            lines.push(line);
            ControlFlow::Continue(())
        });
        rows.unwrap();
        assert_eq!(lines.len(), 1, "{lines:?}");
    }

    #[test]
    fn what_is_no_vault_says_so() {
        let scratch = Scratch::new();
        let path = scratch.join("vault.db");
        fs::write(&path, "text".repeat(999)).unwrap();
        assert!(matches!(
            AuditReader::open(&path),
            Err(VaultError::Damaged { .. })
        ));
        fs::write(&path, "").unwrap();
        assert!(matches!(
            AuditReader::open(&path),
            Err(VaultError::Foreign { .. })
        ));
    }
}
