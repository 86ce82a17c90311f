//! The exact arguments of calls that redaction changed, sealed to the owner's key.

use std::collections::BTreeMap;
use std::fmt;

use ring::digest::{Context, SHA256, digest};
use rusqlite::{Connection, OptionalExtension as _, params};
use serde::Serialize;

use super::checkpoint::hex;
use super::sealing::{self, OpeningKey, SealError, SealedText};
use crate::vault::agents::owner_key;
use crate::vault::agents::owner_key::OwnerKey;
use crate::vault::row::to_column;
use gatewren_base::sys::rfc3339;

/// The part of the schema's eighth version.
pub(in crate::vault) const SCHEMA: &str = "
-- Where the row's exact arguments are: NULL if the row has them itself. Format 3 of the rows covers it.
ALTER TABLE audit ADD COLUMN exact TEXT;

CREATE TABLE audit_exact (
    call         TEXT PRIMARY KEY,
    key          TEXT NOT NULL,
    encapsulated BLOB NOT NULL CHECK (length(encapsulated) = 32),
    sealed       BLOB NOT NULL
) STRICT;
CREATE INDEX audit_exact_key ON audit_exact (key);
-- The number of sealed bytes of all rows, so that they are not counted for each row.
CREATE TABLE audit_exact_size (
    id    INTEGER PRIMARY KEY CHECK (id = 1),
    bytes INTEGER NOT NULL
) STRICT;
INSERT INTO audit_exact_size VALUES (1, 0);
CREATE TRIGGER audit_exact_is_never_replaced BEFORE INSERT ON audit_exact
    WHEN EXISTS (SELECT 1 FROM audit_exact WHERE call = NEW.call)
    BEGIN SELECT RAISE(ABORT, 'sealed arguments are never replaced'); END;
CREATE TRIGGER audit_exact_is_never_changed BEFORE UPDATE ON audit_exact
    BEGIN SELECT RAISE(ABORT, 'sealed arguments are never changed'); END;
CREATE TRIGGER audit_exact_is_trimmed_with_its_row BEFORE DELETE ON audit_exact
    WHEN NOT gatewren_is_trimming()
    BEGIN SELECT RAISE(ABORT, 'sealed arguments go with their row'); END;
CREATE TRIGGER audit_exact_grows AFTER INSERT ON audit_exact
    BEGIN UPDATE audit_exact_size SET bytes = bytes + length(NEW.sealed); END;
CREATE TRIGGER audit_exact_shrinks AFTER DELETE ON audit_exact
    BEGIN UPDATE audit_exact_size SET bytes = bytes - length(OLD.sealed); END;
";

/// The size limit for sealing, in bytes of JSON: twice the limit of an operation of the helper. For larger
/// arguments only the hash is kept, and the row has [`TOO_LARGE`].
const MAX_EXACT_BYTES: usize = 512 << 10;

/// The limit of all sealed texts together, in bytes. At the limit nothing is sealed until rows are trimmed, and the
/// rows have [`NO_ROOM`].
const MAX_ALL_BYTES: i64 = 256 << 20;

/// The purpose of the sealed text (HPKE `info`). A text that was sealed for another purpose does not open.
const INFO: &[u8] = b"gatewren audit exact arguments 1";

/// The prefix of the column's value if there is a sealed text. Its hash follows.
const SEALED: &str = "sealed:";

/// The column's values if redaction changed the arguments and nothing is sealed.
const NO_KEY: &str = "none: no owner key";
const TOO_LARGE: &str = "none: too large";
const NO_ROOM: &str = "none: no room";

/// Where the exact arguments of a call are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ExactArguments {
    /// In the row: redaction changed nothing.
    Shown,
    /// Sealed. Contains the hash of the sealed text, 64 hexadecimal digits.
    Sealed(String),
    /// Not kept. Contains the reason.
    None(String),
}

impl ExactArguments {
    /// Reads it from the columns of a row.
    pub(in crate::vault) fn read(
        column: Option<&str>,
        arguments: Option<&str>,
        sha256: Option<&[u8]>,
    ) -> Self {
        if let Some(text) = column {
            let hash = text.strip_prefix(SEALED);
            return hash.map_or_else(
                || Self::None(text.trim_start_matches("none: ").to_owned()),
                |hash| Self::Sealed(hash.to_owned()),
            );
        }
        let shown = digest(&SHA256, arguments.unwrap_or_default().as_bytes());
        if sha256.is_none_or(|sha256| sha256 == shown.as_ref()) {
            Self::Shown
        } else {
            Self::None("written before arguments were sealed".to_owned())
        }
    }
}

impl fmt::Display for ExactArguments {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Shown => f.write_str("as shown"),
            Self::Sealed(_) => f.write_str("sealed"),
            Self::None(why) => write!(f, "none ({why})"),
        }
    }
}

impl Serialize for ExactArguments {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Exact arguments that the writing thread has to seal.
pub(in crate::vault) struct UnsealedArguments {
    /// The arguments as received, as JSON.
    pub text: Box<str>,
    /// Their SHA-256, which the row has too.
    pub sha256: [u8; 32],
}

/// Seals the exact arguments of a call, and returns the value of the row's column. Runs in the writing thread, in
/// the transaction that writes the row.
pub(in crate::vault) fn keep(
    connection: &Connection,
    call: &str,
    unsealed: &UnsealedArguments,
) -> rusqlite::Result<String> {
    let Some(key) = owner_key::in_use(connection)? else {
        return Ok(NO_KEY.to_owned());
    };
    if unsealed.text.len() > MAX_EXACT_BYTES {
        return Ok(TOO_LARGE.to_owned());
    }
    let all = "SELECT bytes FROM audit_exact_size";
    let all: i64 = connection
        .prepare_cached(all)?
        .query_row([], |row| row.get(0))?;
    if all.saturating_add(to_column(unsealed.text.len() as u64)) > MAX_ALL_BYTES {
        return Ok(NO_ROOM.to_owned());
    }
    let refused = |cause: SealError| rusqlite::Error::ToSqlConversionFailure(Box::new(cause));
    // An altered key may be an attacker's key: the attacker could open the text and the owner could not.
    if !key.is_whole() {
        return Err(refused(SealError::Key));
    }
    let bound = associated_data(call, &unsealed.sha256);
    let text = sealing::seal(&key.public, INFO, &bound, unsealed.text.as_bytes());
    let text = text.map_err(refused)?;
    let insert =
        "INSERT INTO audit_exact (call, key, encapsulated, sealed) VALUES (?1, ?2, ?3, ?4)";
    let mut insert = connection.prepare_cached(insert)?;
    insert.execute(params![call, key.id, text.encapsulated, text.sealed])?;
    Ok(format!("{SEALED}{}", hash(&key.id, &text)))
}

/// Returns the associated data of a sealed text: the hash that the opened text must have, and the call.
fn associated_data(call: &str, sha256: &[u8; 32]) -> Vec<u8> {
    [sha256, call.as_bytes()].concat()
}

/// Returns the hash of a sealed text for its row. It covers the key's id, the encapsulated key and the ciphertext.
fn hash(key: &str, text: &SealedText) -> String {
    let mut digest = Context::new(&SHA256);
    digest.update(key.as_bytes());
    digest.update(&text.encapsulated);
    digest.update(&text.sealed);
    hex(digest.finish().as_ref())
}

/// Deletes the sealed arguments of the calls up to a row. The caller deletes those rows in the same transaction.
/// Fails outside of a trim.
pub(in crate::vault) fn trim(connection: &Connection, through: i64) -> rusqlite::Result<()> {
    let gone = "DELETE FROM audit_exact WHERE call IN (SELECT call FROM audit WHERE seq <= ?1)";
    connection.execute(gone, [through]).map(drop)
}

/// The sealed exact arguments of one call.
pub struct SealedArguments {
    /// The key that they are sealed to.
    pub key: OwnerKey,
    text: SealedText,
    call: String,
    sha256: [u8; 32],
}

/// Why sealed arguments cannot be opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ExactError {
    /// The row has the hash of a sealed text, but the text is missing.
    Missing,
    /// The sealed text is not the one that the row was written with.
    Altered,
    /// The key that it is sealed to is missing or was altered.
    NoKey(String),
    /// The text does not open with this key, or opens to other arguments than the row was written with.
    NotOpened,
}

impl fmt::Display for ExactError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing => f.write_str("the sealed arguments of this call were removed"),
            Self::Altered => {
                f.write_str("the sealed arguments of this call were altered")
            }
            Self::NoKey(id) => write!(
                f,
                "the owner key {id} that sealed them is missing from the vault or was altered; a backup of the \
                 vault may contain it"
            ),
            Self::NotOpened => f.write_str(
                "the sealed arguments do not belong to this call: they cannot be opened, or they differ from the \
                 arguments that the row was written with",
            ),
        }
    }
}

impl std::error::Error for ExactError {}

impl SealedArguments {
    /// Opens the arguments as received, as JSON.
    ///
    /// # Errors
    /// [`ExactError::NotOpened`] if the text belongs to another call, was altered, or does not match the hash in
    /// the audit's row.
    pub fn open(&self, key: &OpeningKey) -> Result<String, ExactError> {
        let opened = key.open(INFO, &associated_data(&self.call, &self.sha256), &self.text);
        let opened = opened.ok_or(ExactError::NotOpened)?;
        if digest(&SHA256, &opened).as_ref() != self.sha256 {
            return Err(ExactError::NotOpened);
        }
        String::from_utf8(opened).map_err(|_| ExactError::NotOpened)
    }
}

/// Returns the sealed arguments of a call. Its row has the hashes of the exact arguments (`sha256`) and of the
/// sealed text (`expected`).
pub(in crate::vault) fn find(
    connection: &Connection,
    call: &str,
    sha256: [u8; 32],
    expected: &str,
) -> rusqlite::Result<Result<SealedArguments, ExactError>> {
    let Some(row) = row(connection, call)? else {
        return Ok(Err(ExactError::Missing));
    };
    if hash(&row.key, &row.text) != expected {
        return Ok(Err(ExactError::Altered));
    }
    let key = owner_key::find(connection, &row.key)?.filter(OwnerKey::is_whole);
    Ok(key
        .ok_or(ExactError::NoKey(row.key))
        .map(|key| SealedArguments {
            key,
            text: row.text,
            call: call.to_owned(),
            sha256,
        }))
}

/// Returns whether the sealed text of a row is unchanged.
pub(in crate::vault) fn is_as_written(
    connection: &Connection,
    call: &str,
    column: &str,
) -> rusqlite::Result<bool> {
    let Some(expected) = column.strip_prefix(SEALED) else {
        return Ok(true);
    };
    let row = row(connection, call)?;
    Ok(row.is_some_and(|row| hash(&row.key, &row.text) == expected))
}

/// A row of the table.
struct ExactRow {
    key: String,
    text: SealedText,
}

fn row(connection: &Connection, call: &str) -> rusqlite::Result<Option<ExactRow>> {
    let query = "SELECT key, encapsulated, sealed FROM audit_exact WHERE call = ?1";
    let read = |row: &rusqlite::Row<'_>| {
        Ok(ExactRow {
            key: row.get("key")?,
            text: SealedText {
                encapsulated: row.get("encapsulated")?,
                sealed: row.get("sealed")?,
            },
        })
    };
    connection
        .prepare_cached(query)?
        .query_row([call], read)
        .optional()
}

/// The number of calls with sealed arguments, by key.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct SealedArgumentsCount {
    /// The number of calls with sealed arguments.
    pub sealed: u64,
    /// Keys whose password was reset, with their calls.
    pub lost: Vec<LostKey>,
    /// The number of calls for each key that is missing or was altered.
    pub without_key: BTreeMap<String, u64>,
    /// Whether the key in use was altered.
    pub key_is_altered: bool,
}

/// A key whose password was reset.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LostKey {
    /// The key's id.
    pub key: String,
    /// The number of calls sealed to it.
    pub sealed: u64,
    /// When its password was reset, in milliseconds since 1970.
    pub lost_ms: u64,
}

impl SealedArgumentsCount {
    /// Returns whether each key is present. Lost keys count as present.
    pub fn is_whole(&self) -> bool {
        self.without_key.is_empty() && !self.key_is_altered
    }

    /// Returns a sentence for the owner about each problem.
    pub fn words(&self) -> Vec<String> {
        let mut words = Vec::new();
        for lost in &self.lost {
            words.push(format!(
                "{} sealed entries cannot be opened: their key {} was lost when the password was reset at {}",
                lost.sealed,
                lost.key,
                rfc3339(lost.lost_ms)
            ));
        }
        for (id, count) in &self.without_key {
            words.push(format!(
                "{count} sealed entries cannot be opened: their key {id} is missing from the vault, or was altered"
            ));
        }
        if self.key_is_altered {
            words.push("the owner's key was altered: calls with secrets are rejected until the owner sets the password again".to_owned());
        }
        words
    }
}

/// Checks each key that arguments are sealed to.
pub(in crate::vault) fn count_sealed(
    connection: &Connection,
) -> rusqlite::Result<SealedArgumentsCount> {
    let mut counts = SealedArgumentsCount::default();
    // A vault that is opened read-only may have a schema without this table.
    let table = "SELECT 1 FROM sqlite_schema WHERE name = 'audit_exact'";
    if !connection.prepare(table)?.exists([])? {
        return Ok(counts);
    }
    let in_use = owner_key::in_use(connection)?;
    counts.key_is_altered = in_use.is_some_and(|key| !key.is_whole());
    let mut by_key =
        connection.prepare("SELECT key, count(*) FROM audit_exact GROUP BY key ORDER BY key")?;
    let mut rows = by_key.query([])?;
    while let Some(row) = rows.next()? {
        let (id, count): (String, i64) = row.try_into()?;
        let count = u64::try_from(count).unwrap_or(0);
        counts.sealed += count;
        match owner_key::find(connection, &id)?.filter(OwnerKey::is_whole) {
            None => drop(counts.without_key.insert(id, count)),
            Some(key) => counts.lost.extend(key.lost_ms.map(|lost_ms| LostKey {
                key: id,
                sealed: count,
                lost_ms,
            })),
        }
    }
    Ok(counts)
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;
    use std::time::Duration;

    use serde_json::{Value, json};

    use super::super::call::AuditCall;
    use super::super::chain::{ChainFault, ChainVerification};
    use super::super::entry::{AuditEntry, AuditOutcome};
    use super::super::exact::*;
    use super::super::reader::AuditReader;
    use super::super::sealing::KeyPair;
    use super::super::trim::AuditRetention;
    use crate::vault::agents::owner::StoredPassword;
    use crate::vault::agents::owner_key::{KeyChange, WrappedKey};
    use crate::vault::error::VaultError;
    use crate::vault::store::Vault;
    use gatewren_base::sys::Scratch;

    /// A payload with a secret's name as key, as an agent would send it.
    fn payload() -> Value {
        json!({ "command": "eval \"$DB_PASSWORD\"", "env": { "DB_PASSWORD": "touch /tmp/taken" } })
    }

    struct TestVault {
        scratch: Scratch,
        vault: Vault,
    }

    impl TestVault {
        fn new() -> Self {
            let scratch = Scratch::new();
            let vault = Vault::open(&scratch.join("vault.db")).unwrap();
            Self { scratch, vault }
        }

        fn file(&self) -> PathBuf {
            self.scratch.join("vault.db")
        }

        fn change(public: [u8; 32]) -> KeyChange {
            let wrapped = WrappedKey {
                salt: vec![1; 16],
                memory_kib: 8,
                passes: 1,
                lanes: 1,
                nonce: vec![1; 12],
                private: vec![1; 48],
            };
            KeyChange::New(OwnerKey {
                id: OwnerKey::id_of(&public),
                public,
                wrapped,
                created_ms: 1,
                lost_ms: None,
            })
        }

        /// Sets a password with a new key, and returns the key's private half.
        async fn new_key(&self) -> OpeningKey {
            let KeyPair { public, private } = KeyPair::new().unwrap();
            let password = StoredPassword {
                salt: vec![1; 16],
                hash: vec![1; 32],
                memory_kib: 8,
                passes: 1,
                lanes: 1,
            };
            let set = self.vault.owner();
            set.set_password(password, Self::change(public))
                .await
                .unwrap();
            private
        }

        async fn try_call(&self, arguments: &Value) -> Result<String, VaultError> {
            let entry = AuditEntry {
                agent: "agent_1",
                token: None,
                space: None,
                session: None,
                request: None,
                address: "192.0.2.1",
                tool: "system_shell",
                risk: "execute",
                arguments,
                reason: None,
                target: None,
                mode: None,
                decision: "allow",
                change: None,
            };
            let id = self.vault.audit().intent(entry).await?;
            let outcome = AuditOutcome {
                outcome: "ok",
                duration_ms: 1,
                revision_before: None,
                revision: None,
                error: None,
            };
            self.vault.audit().outcome(&id, outcome).unwrap();
            self.vault.probe().await.unwrap();
            Ok(id.to_string())
        }

        async fn call(&self, arguments: &Value) -> String {
            self.try_call(arguments).await.unwrap()
        }

        fn reader(&self) -> AuditReader {
            AuditReader::open(&self.file()).unwrap()
        }

        fn find_call(&self, call: &str) -> AuditCall {
            self.reader().call(call).unwrap().unwrap()
        }

        fn open_arguments(&self, call: &str, key: &OpeningKey) -> Result<String, ExactError> {
            let found = self.reader().sealed_arguments(&self.find_call(call));
            found.unwrap().unwrap()?.open(key)
        }

        fn sql(&self, sql: &str) {
            let other = Connection::open(self.file()).unwrap();
            let triggers = "SELECT group_concat('DROP TRIGGER ' || name, ';') FROM sqlite_schema
                            WHERE type = 'trigger' AND name LIKE 'audit%'";
            let triggers: Option<String> = other.query_row(triggers, [], |row| row.get(0)).unwrap();
            other.execute_batch(&triggers.unwrap_or_default()).unwrap();
            other.execute_batch(sql).unwrap();
        }
    }

    fn broken(seq: u64) -> ChainVerification {
        ChainVerification::Broken {
            seq,
            fault: ChainFault::Exact,
        }
    }

    #[tokio::test]
    async fn a_payload_behind_the_name_of_a_secret_is_told_exactly_and_nowhere_in_plain() {
        let our = TestVault::new();
        let key = our.new_key().await;
        let call = our.call(&payload()).await;
        let shown = our.find_call(&call);
        assert!(shown.arguments.unwrap().contains("[redacted]"));
        assert!(matches!(shown.exact, ExactArguments::Sealed(_)));
        assert_eq!(
            our.open_arguments(&call, &key).unwrap(),
            payload().to_string()
        );
        let harmless = our.call(&json!({ "command": "uptime" })).await;
        assert_eq!(our.find_call(&harmless).exact, ExactArguments::Shown);
        let rows = our.reader().verify().unwrap();
        assert_eq!(
            rows,
            ChainVerification::Intact {
                rows: 4,
                trimmed: 0
            }
        );
        for file in ["vault.db", "vault.db-wal"] {
            let bytes = std::fs::read(our.scratch.join(file)).unwrap();
            let found = bytes.windows(16).any(|part| part == b"touch /tmp/taken");
            assert!(!found, "{file}");
        }
    }

    #[tokio::test]
    async fn what_was_shortened_is_sealed_too_up_to_a_size() {
        let our = TestVault::new();
        let key = our.new_key().await;
        let long = json!({ "command": "x".repeat(10_000) });
        let call = our.call(&long).await;
        assert_eq!(our.open_arguments(&call, &key).unwrap(), long.to_string());
        let call = our
            .call(&json!({ "command": "x".repeat(MAX_EXACT_BYTES) }))
            .await;
        assert_eq!(our.find_call(&call).exact.to_string(), "none (too large)");
    }

    #[tokio::test]
    async fn nothing_more_is_sealed_when_the_room_is_used_up() {
        let our = TestVault::new();
        our.new_key().await;
        let full = format!("UPDATE audit_exact_size SET bytes = {MAX_ALL_BYTES}");
        Connection::open(our.file())
            .unwrap()
            .execute_batch(&full)
            .unwrap();
        let call = our.call(&payload()).await;
        assert_eq!(our.find_call(&call).exact.to_string(), "none (no room)");
    }

    #[tokio::test]
    async fn without_a_key_the_row_says_so() {
        let our = TestVault::new();
        let call = our.call(&payload()).await;
        assert_eq!(
            our.find_call(&call).exact.to_string(),
            "none (no owner key)"
        );
        // A row that was written with a key cannot be changed to claim that there was none.
        our.new_key().await;
        our.call(&payload()).await;
        our.sql("UPDATE audit SET exact = 'none: no owner key' WHERE seq = 3");
        let altered = ChainVerification::Broken {
            seq: 3,
            fault: ChainFault::Altered,
        };
        assert_eq!(our.reader().verify().unwrap(), altered);
    }

    #[tokio::test]
    async fn a_sealed_text_cannot_be_moved_to_another_row() {
        let our = TestVault::new();
        let key = our.new_key().await;
        let harmful = our.call(&payload()).await;
        let harmless = our
            .call(&json!({ "command": "login", "password": "x" }))
            .await;
        our.sql(&format!(
            "UPDATE audit_exact SET call = 'x' WHERE call = '{harmful}';
             UPDATE audit_exact SET call = '{harmful}' WHERE call = '{harmless}';
             UPDATE audit_exact SET call = '{harmless}' WHERE call = 'x'"
        ));
        assert_eq!(our.open_arguments(&harmful, &key), Err(ExactError::Altered));
        assert_eq!(our.reader().verify().unwrap(), broken(1));
        // Also if the row itself was changed to match.
        let other = Connection::open(our.file()).unwrap();
        let moved = hash(
            &our.vault.owner().key().unwrap().unwrap().id,
            &row(&other, &harmful).unwrap().unwrap().text,
        );
        let sha256 = "SELECT arguments_sha256 FROM audit WHERE call = ?1 AND kind = 'intent'";
        let sha256 = other
            .query_row(sha256, [&harmful], |row| row.get(0))
            .unwrap();
        let found = find(&other, &harmful, sha256, &moved).unwrap().unwrap();
        assert_eq!(found.open(&key), Err(ExactError::NotOpened));
    }

    #[tokio::test]
    async fn a_sealed_text_that_was_altered_or_taken_away_is_found() {
        for (sql, expected) in [
            ("DELETE FROM audit_exact", ExactError::Missing),
            (
                "UPDATE audit_exact SET sealed = zeroblob(30)",
                ExactError::Altered,
            ),
            (
                "UPDATE audit_exact SET encapsulated = zeroblob(32)",
                ExactError::Altered,
            ),
            ("UPDATE audit_exact SET key = 'other'", ExactError::Altered),
        ] {
            let our = TestVault::new();
            let key = our.new_key().await;
            our.call(&json!({})).await;
            let call = our.call(&payload()).await;
            our.sql(sql);
            assert_eq!(our.open_arguments(&call, &key), Err(expected), "{sql}");
            assert_eq!(our.reader().verify().unwrap(), broken(3), "{sql}");
        }
    }

    #[tokio::test]
    async fn the_tables_refuse_changes_from_elsewhere() {
        let our = TestVault::new();
        our.new_key().await;
        our.call(&payload()).await;
        let other = Connection::open(our.file()).unwrap();
        for sql in [
            "DELETE FROM audit_exact",
            "UPDATE audit_exact SET key = 'x'",
            "INSERT OR REPLACE INTO audit_exact SELECT * FROM audit_exact",
        ] {
            assert!(other.execute(sql, []).is_err(), "{sql}");
        }
    }

    #[tokio::test]
    async fn what_is_sealed_goes_with_its_row() {
        let our = TestVault::new();
        our.new_key().await;
        our.call(&payload()).await;
        our.call(&payload()).await;
        let kept = our.call(&payload()).await;
        let retention = AuditRetention {
            age: Duration::from_hours(1),
            rows: 2,
        };
        assert_eq!(our.vault.audit().trim(retention).await.unwrap().rows, 4);
        let other = Connection::open(our.file()).unwrap();
        let left =
            "SELECT call, (SELECT bytes FROM audit_exact_size) - length(sealed) FROM audit_exact";
        let left: (String, i64) = other.query_row(left, [], |row| row.try_into()).unwrap();
        assert_eq!(left, (kept, 0));
        let rows = our.reader().verify().unwrap();
        assert_eq!(
            rows,
            ChainVerification::Intact {
                rows: 4,
                trimmed: 4
            }
        );
    }

    #[tokio::test]
    async fn what_a_reset_has_lost_is_counted_and_the_next_is_sealed_to_a_new_key() {
        let our = TestVault::new();
        let first = our.new_key().await;
        let before = our.call(&payload()).await;
        let second = our.new_key().await;
        let after = our.call(&payload()).await;
        let counts = our.reader().count_sealed_arguments().unwrap();
        assert!(counts.is_whole());
        assert_eq!((counts.sealed, counts.lost.len()), (2, 1));
        assert_eq!(counts.lost[0].sealed, 1);
        let words = counts.words().remove(0);
        let expected = "1 sealed entries cannot be opened: their key ";
        assert!(words.starts_with(expected), "{words}");
        // An owner who remembers the old password can still open the old arguments.
        assert!(our.open_arguments(&before, &first).is_ok());
        assert_eq!(
            our.open_arguments(&after, &first),
            Err(ExactError::NotOpened)
        );
        assert!(our.open_arguments(&after, &second).is_ok());
        // A key that nothing was sealed to is deleted.
        our.new_key().await;
        our.new_key().await;
        let keys = "SELECT count(*) FROM owner_key";
        let other = Connection::open(our.file()).unwrap();
        let keys: i64 = other.query_row(keys, [], |row| row.get(0)).unwrap();
        assert_eq!(keys, 3);
    }

    #[tokio::test]
    async fn a_key_that_was_taken_away_or_replaced_is_an_error() {
        let our = TestVault::new();
        let key = our.new_key().await;
        let call = our.call(&payload()).await;
        let other = KeyPair::new().unwrap().public;
        our.sql(&format!("UPDATE owner_key SET public = x'{}'", hex(&other)));
        let refused = our.try_call(&payload()).await.unwrap_err().to_string();
        assert!(refused.contains("public key in the vault"), "{refused}");
        assert!(our.try_call(&json!({ "command": "uptime" })).await.is_ok());
        for sql in ["", "DELETE FROM owner_key"] {
            our.sql(sql);
            let password = our.vault.owner().password().unwrap().unwrap();
            let KeyChange::New(another) = TestVault::change(KeyPair::new().unwrap().public) else {
                panic!("no new key");
            };
            let kept = our.vault.owner().add_key(another, password).await;
            assert!(!kept.unwrap(), "no key takes its place by itself");
            let counts = our.reader().count_sealed_arguments().unwrap();
            assert!(
                !counts.is_whole() && !counts.words().is_empty(),
                "{counts:?}"
            );
            let opened = our.open_arguments(&call, &key);
            assert!(matches!(opened, Err(ExactError::NoKey(_))), "{opened:?}");
        }
    }
}
