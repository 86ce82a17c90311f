//! The hash of the token that only gives access to the metrics.

use rusqlite::Connection;

use super::keys;
use crate::vault::error::VaultError;
use crate::vault::job::Durability;
use crate::vault::shared::SharedVault;

/// The name of its row in the table of keys.
const NAME: &str = "metrics-token-sha256";

/// Access to the hash.
pub struct MetricsTokenTable<'a>(&'a SharedVault);

impl<'a> MetricsTokenTable<'a> {
    pub(in crate::vault) fn new(shared: &'a SharedVault) -> Self {
        Self(shared)
    }

    /// Returns the token's SHA-256, if there is one.
    pub fn hash(&self) -> Result<Option<[u8; 32]>, VaultError> {
        let work = |connection: &Connection| keys::find(connection, NAME);
        let found = self.0.read("find the token of the metrics", work)?;
        Ok(found.map(|hash| *hash))
    }

    /// Sets or removes the hash. Returns whether there was one before.
    pub async fn set(&self, sha256: Option<[u8; 32]>) -> Result<bool, VaultError> {
        let work = move |connection: &Connection| {
            let gone = connection.execute("DELETE FROM key WHERE name = ?1", [NAME])?;
            if let Some(sha256) = sha256 {
                let keep = "INSERT INTO key (name, bytes) VALUES (?1, ?2)";
                connection.execute(keep, (NAME, sha256))?;
            }
            Ok(gone > 0)
        };
        let doing = "store the token of the metrics";
        let writer = &self.0.writer;
        writer.write(doing, Durability::Power, work, |_| ()).await
    }
}

#[cfg(test)]
mod tests {
    use crate::vault::store::Vault;
    use gatewren_base::sys::Scratch;

    #[tokio::test]
    async fn there_is_one_or_none() {
        let scratch = Scratch::new();
        let vault = Vault::open(&scratch.join("vault.db")).unwrap();
        assert_eq!(vault.metrics_token().hash().unwrap(), None);
        assert!(!vault.metrics_token().set(Some([1; 32])).await.unwrap());
        assert!(vault.metrics_token().set(Some([2; 32])).await.unwrap());
        assert_eq!(vault.metrics_token().hash().unwrap(), Some([2; 32]));
        assert!(vault.metrics_token().set(None).await.unwrap());
        assert!(!vault.metrics_token().set(None).await.unwrap());
        assert_eq!(vault.metrics_token().hash().unwrap(), None);
    }
}
