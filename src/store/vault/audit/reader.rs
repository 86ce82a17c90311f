//! Read-only access to the audit: with or without a running server, and on a read-only disk.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, OptionalExtension as _};
use serde_json::{Map, Value};

use super::anchors::{self, AnchorComparison, Anchors};
use super::call;
use super::call::{AuditCall, CallFilter};
use super::chain::{self, BEGINNING, ChainVerification};
use super::checkpoint::{self, Checkpoint};
use super::columns;
use super::columns::{HASHED, UNHASHED};
use super::exact::{self, ExactArguments, ExactError, SealedArguments, SealedArgumentsCount};
use super::table::RUN_AFTER;
use crate::vault::agents::keys::{self, STATE_AUTHOR_KEY, SecretKey};
use crate::vault::error::VaultError;
use crate::vault::open;

/// The audit of a vault that is opened read-only.
pub struct AuditReader {
    path: PathBuf,
    connection: Connection,
}

/// A line of an export.
#[derive(Debug, Clone, PartialEq)]
pub enum AuditLine {
    /// The first line: the position and hash that the first row continues from.
    Beginning(AuditExportHeader),
    /// A row with all its columns. Bytes are hexadecimal digits.
    Row(Map<String, Value>),
}

/// The header of an export, with which others can verify its rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditExportHeader {
    /// The number of the row before the first exported row.
    pub after: i64,
    /// The hash that the first row continues from.
    pub sha256: [u8; 32],
    /// The highest row number that was ever assigned.
    pub last: i64,
    /// The checkpoint of the trimmed rows, and whether its seal is valid.
    pub checkpoint: Option<(Checkpoint, bool)>,
}

impl AuditReader {
    /// Opens the vault at `path` read-only.
    pub fn open(path: &Path) -> Result<Self, VaultError> {
        Ok(Self {
            connection: open::looking(path)?,
            path: path.to_owned(),
        })
    }

    /// Verifies the checkpoint and each row, and returns the first row that was altered, moved or removed.
    pub fn verify(&self) -> Result<ChainVerification, VaultError> {
        chain::verify(&self.connection).map_err(|cause| self.read_error(&cause))
    }

    /// Compares the rows with those that the helper has recorded. [`AuditReader::verify`] checks that the rows are
    /// consistent with each other. This check also finds a chain that was rewritten as a whole, and an end that was
    /// cut off.
    pub fn compare(&self, anchors: &Anchors) -> Result<AnchorComparison, VaultError> {
        anchors::compare(&self.connection, anchors).map_err(|cause| self.read_error(&cause))
    }

    /// Returns the matching calls, newest first.
    pub fn calls(&self, wanted: &CallFilter) -> Result<Vec<AuditCall>, VaultError> {
        call::list(&self.connection, wanted).map_err(|cause| self.read_error(&cause))
    }

    /// Returns the call with this call id, this request reference, or a row of this number. If several match,
    /// returns the newest.
    pub fn call(&self, name: &str) -> Result<Option<AuditCall>, VaultError> {
        call::find(&self.connection, name).map_err(|cause| self.read_error(&cause))
    }

    /// Returns the sealed exact arguments of a call. Returns `None` if its row shows them, or if they were not
    /// kept.
    pub fn sealed_arguments(
        &self,
        call: &AuditCall,
    ) -> Result<Option<Result<SealedArguments, ExactError>>, VaultError> {
        let ExactArguments::Sealed(expected) = &call.exact else {
            return Ok(None);
        };
        let row = "SELECT arguments_sha256 FROM audit WHERE seq = ?1";
        let found = self
            .connection
            .query_row(row, [call.seq], |row| row.get(0))
            .and_then(|sha256| exact::find(&self.connection, &call.call, sha256, expected));
        found.map(Some).map_err(|cause| self.read_error(&cause))
    }

    /// Returns how many calls have sealed arguments, and whether the keys are present.
    pub fn count_sealed_arguments(&self) -> Result<SealedArgumentsCount, VaultError> {
        exact::count_sealed(&self.connection).map_err(|cause| self.read_error(&cause))
    }

    /// Returns the key that seals the server's writes to the state; `None` before a server has made one.
    pub fn state_author_key(&self) -> Result<Option<SecretKey>, VaultError> {
        keys::find(&self.connection, STATE_AUTHOR_KEY).map_err(|cause| self.read_error(&cause))
    }

    /// Returns the last row before the start of the newest run of the server. A call up to this row that has no
    /// outcome never gets one.
    pub fn run_after(&self) -> Result<i64, VaultError> {
        let note = "SELECT value FROM meta WHERE key = ?1";
        let noted: Result<Option<String>, _> = self
            .connection
            .query_row(note, [RUN_AFTER], |row| row.get(0))
            .optional();
        let noted = noted.map_err(|cause| self.read_error(&cause))?;
        Ok(noted.and_then(|text| text.parse().ok()).unwrap_or(0))
    }

    /// Passes the `AuditExportHeader` and then each row, oldest first, to `take` until it breaks. The rows begin after
    /// row `after`, which must still exist, or with the oldest row.
    pub fn rows(
        &self,
        after: Option<i64>,
        mut take: impl FnMut(AuditLine) -> ControlFlow<()>,
    ) -> Result<(), VaultError> {
        let to_error = |cause| self.read_error(&cause);
        // One transaction, so that the header matches the rows.
        let transaction = self.connection.unchecked_transaction().map_err(to_error)?;
        let beginning = export_header(&transaction, after).map_err(to_error)?;
        let beginning = beginning.ok_or(VaultError::NoSuchRow(after.unwrap_or_default()))?;
        let after = beginning.after;
        if take(AuditLine::Beginning(beginning)).is_continue() {
            each(&transaction, after, take).map_err(to_error)?;
        }
        Ok(())
    }

    fn read_error(&self, cause: &rusqlite::Error) -> VaultError {
        VaultError::from_sqlite(&self.path, "read the audit", cause)
    }
}

fn each(
    connection: &Connection,
    after: i64,
    mut take: impl FnMut(AuditLine) -> ControlFlow<()>,
) -> rusqlite::Result<()> {
    let columns = columns::all(connection)?;
    let query = format!("SELECT {columns} FROM audit WHERE seq > ?1 ORDER BY seq");
    let mut statement = connection.prepare(&query)?;
    let mut rows = statement.query([after])?;
    while let Some(row) = rows.next()? {
        let mut fields = Map::new();
        for (at, name) in HASHED.iter().chain(&UNHASHED).enumerate() {
            fields.insert((*name).to_owned(), call::as_json(row.get_ref(at)?));
        }
        if take(AuditLine::Row(fields)).is_break() {
            break;
        }
    }
    Ok(())
}

/// Returns the position that the rows after `after` continue from; `None` if that row does not exist.
fn export_header(
    connection: &Connection,
    after: Option<i64>,
) -> rusqlite::Result<Option<AuditExportHeader>> {
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
    Ok(sha256.map(|sha256| AuditExportHeader {
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

    use super::super::entry::{AuditEntry, AuditOutcome};
    use super::super::reader::*;
    use crate::vault::migration::STEPS;
    use crate::vault::store::Vault;
    use gatewren_base::sys::Scratch;

    async fn one_call(path: &Path) {
        let vault = Vault::open(path).unwrap();
        let arguments = json!({ "container": "web" });
        let entry = AuditEntry {
            agent: "agent_1",
            token: Some("0123abcd"),
            space: Some("media"),
            session: None,
            request: Some("r1"),
            address: "192.0.2.1",
            tool: "container_start",
            risk: "write",
            arguments: &arguments,
            reason: None,
            target: Some("web"),
            mode: Some("allow"),
            decision: "allow",
            change: None,
        };
        let id = vault.audit().intent(entry).await;
        let outcome = AuditOutcome {
            outcome: "ok",
            duration_ms: 3,
            revision_before: Some(4),
            revision: Some(5),
            error: None,
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
        let expected = ChainVerification::Intact {
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
        let expected = ChainVerification::Intact {
            rows: 0,
            trimmed: 0,
        };
        assert_eq!(audit.verify().unwrap(), expected);
        assert_eq!(audit.calls(&CallFilter::default()).unwrap(), []);
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
