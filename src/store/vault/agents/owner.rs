//! The hash of the owner's password, and the number of wrong guesses.

use rusqlite::{Connection, OptionalExtension as _, Row, params};

use super::logins;
use super::owner_key::{self, KeyChange, OwnerKey};
use crate::vault::error::VaultError;
use crate::vault::job::Durability;
use crate::vault::row::{from_column, to_column};
use crate::vault::shared::SharedVault;
use gatewren_base::sys::now_ms;

/// The part of the schema's fourth version.
pub(in crate::vault) const SCHEMA: &str = "
-- At most one row: there is one owner.
CREATE TABLE owner (
    id         INTEGER PRIMARY KEY CHECK (id = 1),
    salt       BLOB NOT NULL,
    hash       BLOB NOT NULL,
    memory_kib INTEGER NOT NULL,
    passes     INTEGER NOT NULL,
    lanes      INTEGER NOT NULL,
    changed_ms INTEGER NOT NULL
) STRICT;
-- Failed guesses since the last right one; stored, so that a restart does not reset the limit.
CREATE TABLE owner_guesses (
    id      INTEGER PRIMARY KEY CHECK (id = 1),
    count   INTEGER NOT NULL,
    last_ms INTEGER NOT NULL
) STRICT;
INSERT INTO owner_guesses VALUES (1, 0, 0);
";

/// The part of the schema's fifth version.
pub(in crate::vault) const CODE_SCHEMA: &str = "
-- The code for setting the first password in a browser; at most one row, and none once a password is set.
CREATE TABLE owner_code (
    id         INTEGER PRIMARY KEY CHECK (id = 1),
    sha256     BLOB NOT NULL CHECK (length(sha256) = 32),
    expires_ms INTEGER NOT NULL
) STRICT;
";

/// A password hash of argon2id (RFC 9106), with its parameters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredPassword {
    /// The random salt.
    pub salt: Vec<u8>,
    /// The hash.
    pub hash: Vec<u8>,
    /// The memory in KiB.
    pub memory_kib: u32,
    /// The number of passes over that memory.
    pub passes: u32,
    /// The number of lanes.
    pub lanes: u32,
}

/// The failed attempts since the last successful one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FailedGuesses {
    /// Their number.
    pub count: u64,
    /// When the last one was, in milliseconds since 1970.
    pub last_ms: u64,
}

/// Access to the tables.
pub struct OwnerTable<'a>(&'a SharedVault);

impl<'a> OwnerTable<'a> {
    pub(in crate::vault) fn new(shared: &'a SharedVault) -> Self {
        Self(shared)
    }

    /// Returns the password's hash; `None` before a password is set.
    pub fn password(&self) -> Result<Option<StoredPassword>, VaultError> {
        self.0.read("read the owner's password", |connection| {
            let query = "SELECT salt, hash, memory_kib, passes, lanes FROM owner";
            connection.query_row(query, [], read_password).optional()
        })
    }

    /// Sets the password and changes the owner's key with it, in one transaction. Ends all logins of the owner and
    /// resets the guesses.
    pub async fn set_password(
        &self,
        password: StoredPassword,
        key: KeyChange,
    ) -> Result<(), VaultError> {
        let work = move |connection: &Connection| {
            owner_key::change(connection, &key)?;
            keep(connection, &password)
        };
        self.change("set the owner's password", work).await
    }

    /// Sets the password like `set_password`, authorized by a code. Returns false and sets nothing if the
    /// code is wrong, used or expired.
    pub async fn set_password_by_code(
        &self,
        code_sha256: [u8; 32],
        password: StoredPassword,
        key: KeyChange,
    ) -> Result<bool, VaultError> {
        let work = move |connection: &Connection| {
            let taken = "DELETE FROM owner_code WHERE sha256 = ?1 AND expires_ms > ?2";
            if connection.execute(taken, params![code_sha256, to_column(now_ms())])? == 0 {
                return Ok(false);
            }
            owner_key::change(connection, &key)?;
            keep(connection, &password).map(|()| true)
        };
        self.change("set the owner's password", work).await
    }

    /// Stores the code that can set the password until `expires_ms`. An earlier code becomes invalid.
    pub async fn store_code(&self, sha256: [u8; 32], expires_ms: u64) -> Result<(), VaultError> {
        let work = move |connection: &Connection| {
            let kept = "INSERT OR REPLACE INTO owner_code VALUES (1, ?1, ?2)";
            connection
                .execute(kept, params![sha256, to_column(expires_ms)])
                .map(drop)
        };
        self.change("store a code", work).await
    }

    /// Returns whether there is a valid code.
    pub fn has_code(&self) -> Result<bool, VaultError> {
        self.0.read("find a code", |connection| {
            let query = "SELECT count(*) FROM owner_code WHERE expires_ms > ?1";
            let found: i64 =
                connection.query_row(query, [to_column(now_ms())], |row| row.get(0))?;
            Ok(found > 0)
        })
    }

    /// Returns whether this is the SHA-256 of a valid code.
    pub fn is_code(&self, sha256: [u8; 32]) -> Result<bool, VaultError> {
        self.0.read("find a code", |connection| {
            let query = "SELECT count(*) FROM owner_code WHERE sha256 = ?1 AND expires_ms > ?2";
            let found: i64 =
                connection.query_row(query, params![sha256, to_column(now_ms())], |row| {
                    row.get(0)
                })?;
            Ok(found > 0)
        })
    }

    async fn change<T: Send + 'static>(
        &self,
        doing: &'static str,
        work: impl FnOnce(&Connection) -> Result<T, rusqlite::Error> + Send + 'static,
    ) -> Result<T, VaultError> {
        let changes = self.0.agent_changes.clone();
        let notify = move |_: &T| changes.send_modify(|changes| *changes += 1);
        let writer = &self.0.writer;
        writer.write(doing, Durability::Power, work, notify).await
    }

    /// Returns the key that exact arguments are sealed to. `None` until the owner sets a password with a version of
    /// gatewren that makes such a key.
    pub fn key(&self) -> Result<Option<OwnerKey>, VaultError> {
        self.0.read("read the owner's key", owner_key::in_use)
    }

    /// Returns how many calls have exact arguments sealed to the key with this id.
    pub fn sealed_to(&self, id: &str) -> Result<u64, VaultError> {
        self.0.read("count sealed arguments", |connection| {
            let count = "SELECT count(*) AS count FROM audit_exact WHERE key = ?1";
            connection.query_row(count, [id], |row| from_column(row, "count"))
        })
    }

    /// Stores a first key for a password that was set before there were keys. Returns false and stores nothing if
    /// there is a key by now, a key of sealed arguments is missing, or the password is no longer `seen`.
    pub async fn add_key(&self, key: OwnerKey, seen: StoredPassword) -> Result<bool, VaultError> {
        let work = move |connection: &Connection| {
            let same = "SELECT count(*) FROM owner WHERE hash = ?1 AND salt = ?2";
            let same: i64 =
                connection.query_row(same, params![seen.hash, seen.salt], |row| row.get(0))?;
            let missing =
                "SELECT count(*) FROM audit_exact WHERE key NOT IN (SELECT id FROM owner_key)";
            let missing: i64 = connection.query_row(missing, [], |row| row.get(0))?;
            // A removed key is an error to report, and is not replaced silently.
            if same == 0 || missing > 0 || owner_key::in_use(connection)?.is_some() {
                return Ok(false);
            }
            owner_key::insert(connection, &key).map(|()| true)
        };
        let writer = &self.0.writer;
        let doing = "store the owner's key";
        writer.write(doing, Durability::Power, work, |_| ()).await
    }

    /// Returns the failed attempts.
    pub fn guesses(&self) -> Result<FailedGuesses, VaultError> {
        self.0.read("read the guesses", |connection| {
            let query = "SELECT count, last_ms FROM owner_guesses";
            connection.query_row(query, [], |row| {
                Ok(FailedGuesses {
                    count: from_column(row, "count")?,
                    last_ms: from_column(row, "last_ms")?,
                })
            })
        })
    }

    /// Counts a guess before it is checked, so that a crash does not undo it.
    pub async fn note_guess(&self, at_ms: u64) -> Result<(), VaultError> {
        let work = move |connection: &Connection| {
            let counted = "UPDATE owner_guesses SET count = count + 1, last_ms = ?1";
            connection.execute(counted, [to_column(at_ms)]).map(drop)
        };
        self.0.write("record a guess", work).await
    }

    /// Resets the guesses after a successful attempt.
    pub async fn forget_guesses(&self) -> Result<(), VaultError> {
        self.0.write("clear the guesses", forget_guesses).await
    }
}

/// A new password invalidates the code for setting one and ends the owner's logins.
fn keep(connection: &Connection, password: &StoredPassword) -> Result<(), rusqlite::Error> {
    connection.execute(
        "INSERT OR REPLACE INTO owner VALUES (1, ?1, ?2, ?3, ?4, ?5, ?6)",
        params![
            password.salt,
            password.hash,
            password.memory_kib,
            password.passes,
            password.lanes,
            to_column(now_ms()),
        ],
    )?;
    connection.execute("DELETE FROM owner_code", [])?;
    forget_guesses(connection)?;
    logins::remove_owners(connection).map(drop)
}

fn forget_guesses(connection: &Connection) -> Result<(), rusqlite::Error> {
    let forgotten = "UPDATE owner_guesses SET count = 0, last_ms = 0";
    connection.execute(forgotten, []).map(drop)
}

fn read_password(row: &Row<'_>) -> Result<StoredPassword, rusqlite::Error> {
    Ok(StoredPassword {
        salt: row.get("salt")?,
        hash: row.get("hash")?,
        memory_kib: row.get("memory_kib")?,
        passes: row.get("passes")?,
        lanes: row.get("lanes")?,
    })
}

#[cfg(test)]
mod tests {
    use super::super::logins::{LoginLifetime, NewLogin};
    use super::super::owner::*;
    use super::super::owner_key::WrappedKey;
    use crate::vault::store::Vault;
    use gatewren_base::sys::Scratch;

    fn some_key() -> KeyChange {
        let public = gatewren_base::sys::random_bytes().unwrap();
        KeyChange::New(OwnerKey {
            id: OwnerKey::id_of(&public),
            public,
            wrapped: WrappedKey {
                salt: Vec::new(),
                memory_kib: 8,
                passes: 1,
                lanes: 1,
                nonce: Vec::new(),
                private: vec![0; 48],
            },
            created_ms: 1,
            lost_ms: None,
        })
    }

    fn password(byte: u8) -> StoredPassword {
        StoredPassword {
            salt: vec![byte; 16],
            hash: vec![byte; 32],
            memory_kib: 8,
            passes: 1,
            lanes: 1,
        }
    }

    #[tokio::test]
    async fn a_new_password_signs_the_owner_out_and_forgets_guesses() {
        let scratch = Scratch::new();
        let vault = Vault::open(&scratch.join("vault.db")).unwrap();
        assert_eq!(vault.owner().password().unwrap(), None);
        let set = async |byte| vault.owner().set_password(password(byte), some_key()).await;
        set(1).await.unwrap();
        vault.owner().note_guess(5).await.unwrap();
        vault.owner().note_guess(6).await.unwrap();
        let guesses = FailedGuesses {
            count: 2,
            last_ms: 6,
        };
        assert_eq!(vault.owner().guesses().unwrap(), guesses);
        for (token, agent) in [([1; 32], None), ([2; 32], Some([9; 32]))] {
            let login = NewLogin {
                token_sha256: token,
                agent,
                address: "192.0.2.1".to_owned(),
            };
            vault
                .logins()
                .add(login, LoginLifetime::default())
                .await
                .unwrap();
        }
        let changes = vault.agents().changes();
        set(2).await.unwrap();
        assert!(changes.has_changed().unwrap(), "open streams hear of it");
        assert_eq!(vault.owner().password().unwrap(), Some(password(2)));
        assert_eq!(vault.owner().guesses().unwrap(), FailedGuesses::default());
        let left = vault.logins().list().unwrap();
        assert_eq!(left.len(), 1, "the agent's stays: {left:?}");
    }
}
