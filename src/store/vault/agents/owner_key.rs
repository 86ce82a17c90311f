//! The owner's key pairs: exact arguments are sealed to the public half, and the password opens the private half.

use ring::digest::{SHA256, digest};
use rusqlite::{Connection, OptionalExtension as _, Row, params};

use crate::vault::audit::checkpoint::hex;
use crate::vault::row::{from_column, from_optional, to_column};
use gatewren_base::sys::now_ms;

/// The part of the schema's eighth version.
pub(in crate::vault) const SCHEMA: &str = "
-- At most one without lost_ms: the current one. The others belong to passwords that were reset.
CREATE TABLE owner_key (
    id         TEXT PRIMARY KEY,
    public     BLOB NOT NULL CHECK (length(public) = 32),
    salt       BLOB NOT NULL,
    memory_kib INTEGER NOT NULL,
    passes     INTEGER NOT NULL,
    lanes      INTEGER NOT NULL,
    nonce      BLOB NOT NULL,
    private    BLOB NOT NULL,
    created_ms INTEGER NOT NULL,
    lost_ms    INTEGER
) STRICT;
CREATE UNIQUE INDEX owner_key_in_use ON owner_key (lost_ms IS NULL) WHERE lost_ms IS NULL;
";

/// The length of an encrypted private half: 32 bytes and a tag of 16 bytes.
const PRIVATE_BYTES: usize = 48;

/// A private half encrypted with the owner's password: `ChaCha20Poly1305` with a key that argon2id (RFC 9106)
/// derives from the password.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrappedKey {
    /// The salt of argon2id. It differs from the salt of the password's hash.
    pub salt: Vec<u8>,
    /// The memory of argon2id in KiB.
    pub memory_kib: u32,
    /// The number of passes over that memory.
    pub passes: u32,
    /// The number of lanes.
    pub lanes: u32,
    /// The nonce of the encryption: 12 bytes.
    pub nonce: Vec<u8>,
    /// The encrypted private half: 48 bytes.
    pub private: Vec<u8>,
}

/// A key pair of the owner, with the encrypted private half.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnerKey {
    /// The id: the first 16 hexadecimal digits of the SHA-256 of its public half.
    pub id: String,
    /// The public half, which seals.
    pub public: [u8; 32],
    /// The encrypted private half, which opens.
    pub wrapped: WrappedKey,
    /// When it was created, in milliseconds since 1970.
    pub created_ms: u64,
    /// When the password was reset without the current one, in milliseconds since 1970.
    pub lost_ms: Option<u64>,
}

/// The change of the owner's key when a password is set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeyChange {
    /// A new key. The previous one is lost with its password.
    New(OwnerKey),
    /// The same key, with its private half encrypted with the new password.
    Rewrapped {
        /// The key's id.
        id: String,
        /// The encrypted private half.
        wrapped: WrappedKey,
    },
}

impl OwnerKey {
    /// Returns the id of the key with this public half.
    pub fn id_of(public: &[u8; 32]) -> String {
        let digest = digest(&SHA256, public);
        hex(digest.as_ref().get(..8).unwrap_or_default())
    }

    /// Returns whether the key is consistent: the id matches the public half, and the private half has the right
    /// length.
    pub fn is_whole(&self) -> bool {
        self.id == Self::id_of(&self.public) && self.wrapped.private.len() == PRIVATE_BYTES
    }
}

/// Changes the key, in the transaction that sets the password.
pub(in crate::vault) fn change(
    connection: &Connection,
    change: &KeyChange,
) -> rusqlite::Result<()> {
    match change {
        KeyChange::New(key) => {
            let lost = "UPDATE owner_key SET lost_ms = ?1 WHERE lost_ms IS NULL";
            connection.execute(lost, [to_column(now_ms())])?;
            // A lost key without sealed arguments is not needed.
            let unused = "DELETE FROM owner_key WHERE lost_ms IS NOT NULL
                AND NOT EXISTS (SELECT 1 FROM audit_exact WHERE key = owner_key.id)";
            connection.execute(unused, [])?;
            insert(connection, key)
        }
        KeyChange::Rewrapped { id, wrapped } => {
            let again = "UPDATE owner_key SET salt = ?2, memory_kib = ?3, passes = ?4, lanes = ?5, nonce = ?6,
                private = ?7 WHERE id = ?1 AND lost_ms IS NULL";
            let changed = connection.execute(
                again,
                params![
                    id,
                    wrapped.salt,
                    wrapped.memory_kib,
                    wrapped.passes,
                    wrapped.lanes,
                    wrapped.nonce,
                    wrapped.private,
                ],
            )?;
            // Another process changed the key since it was read, so the password is not set either.
            if changed == 1 {
                Ok(())
            } else {
                Err(rusqlite::Error::StatementChangedRows(changed))
            }
        }
    }
}

/// Returns the key that arguments are sealed to.
pub(in crate::vault) fn in_use(connection: &Connection) -> rusqlite::Result<Option<OwnerKey>> {
    connection
        .prepare_cached("SELECT * FROM owner_key WHERE lost_ms IS NULL")?
        .query_row([], read)
        .optional()
}

/// Returns the key with this id.
pub(in crate::vault) fn find(
    connection: &Connection,
    id: &str,
) -> rusqlite::Result<Option<OwnerKey>> {
    connection
        .prepare_cached("SELECT * FROM owner_key WHERE id = ?1")?
        .query_row([id], read)
        .optional()
}

/// Stores a key.
pub(in crate::vault) fn insert(connection: &Connection, key: &OwnerKey) -> rusqlite::Result<()> {
    let OwnerKey {
        id,
        public,
        wrapped,
        created_ms,
        ..
    } = key;
    let insert = "INSERT INTO owner_key VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, NULL)";
    connection
        .execute(
            insert,
            params![
                id,
                public,
                wrapped.salt,
                wrapped.memory_kib,
                wrapped.passes,
                wrapped.lanes,
                wrapped.nonce,
                wrapped.private,
                to_column(*created_ms),
            ],
        )
        .map(drop)
}

fn read(row: &Row<'_>) -> rusqlite::Result<OwnerKey> {
    Ok(OwnerKey {
        id: row.get("id")?,
        public: row.get("public")?,
        wrapped: WrappedKey {
            salt: row.get("salt")?,
            memory_kib: row.get("memory_kib")?,
            passes: row.get("passes")?,
            lanes: row.get("lanes")?,
            nonce: row.get("nonce")?,
            private: row.get("private")?,
        },
        created_ms: from_column(row, "created_ms")?,
        lost_ms: from_optional(row, "lost_ms")?,
    })
}
