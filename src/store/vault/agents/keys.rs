//! Secret keys of the server, one row each.

use rusqlite::{Connection, OptionalExtension as _};

use gatewren_base::sys::Zeroizing;

/// The bytes of a key, which are overwritten when it is dropped.
pub type SecretKey = Zeroizing<[u8; 32]>;

/// The name of the key that seals the revisions which the server writes into the state.
pub const STATE_AUTHOR_KEY: &str = "state-author";

/// Returns the key with this name. Stores and returns `fresh` if there is none yet.
pub(in crate::vault) fn find_or_store(
    connection: &Connection,
    name: &'static str,
    fresh: SecretKey,
) -> Result<SecretKey, rusqlite::Error> {
    if let Some(known) = find(connection, name)? {
        return Ok(known);
    }
    let keep = "INSERT INTO key (name, bytes) VALUES (?1, ?2)";
    connection.execute(keep, (name, fresh.as_slice()))?;
    Ok(fresh)
}

/// Returns the key with this name, if there is one.
pub(in crate::vault) fn find(
    connection: &Connection,
    name: &str,
) -> Result<Option<SecretKey>, rusqlite::Error> {
    connection
        .query_row("SELECT bytes FROM key WHERE name = ?1", [name], |row| {
            row.get(0).map(SecretKey::new)
        })
        .optional()
}

#[cfg(test)]
mod tests {
    use crate::vault::audit::sealing::OpeningKey;
    use crate::vault::store::Vault;
    use gatewren_base::sys::{Scratch, ZeroizeOnDrop};

    #[tokio::test]
    async fn the_keys_of_the_vault_are_overwritten_when_they_are_dropped() {
        fn assert_wiped(_: &impl ZeroizeOnDrop) {}
        let scratch = Scratch::new();
        let vault = Vault::open(&scratch.join("vault.db")).unwrap();
        assert_wiped(&vault.key("session").await.unwrap());
        let owner = OpeningKey::from_bytes(&[7; 32]).unwrap();
        assert_wiped(&owner.to_bytes());
    }
}
