//! The tokens that the owner was warned about before they expire, so that each warning is sent once.

use rusqlite::{Connection, params};

use crate::vault::error::VaultError;
use crate::vault::job::Durability;
use crate::vault::row::to_column;
use crate::vault::shared::SharedVault;

/// The part of the schema's ninth version.
pub(in crate::vault) const SCHEMA: &str = "
CREATE TABLE token_warning (
    agent      TEXT PRIMARY KEY,
    expires_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
";

/// Access to the table.
pub struct TokenWarningTable<'a>(&'a SharedVault);

impl<'a> TokenWarningTable<'a> {
    pub(in crate::vault) fn new(shared: &'a SharedVault) -> Self {
        Self(shared)
    }

    /// Records a warning about an agent's token, which expires at `expires_ms` (milliseconds since 1970). Returns
    /// false if it was recorded before. Deletes the warnings for agents that are gone.
    pub async fn begin(&self, agent: &str, expires_ms: u64) -> Result<bool, VaultError> {
        let agent = agent.to_owned();
        let work = move |connection: &Connection| {
            let forget = "DELETE FROM token_warning
                          WHERE agent NOT IN (SELECT id FROM agent WHERE revoked_ms IS NULL)";
            connection.execute(forget, [])?;
            let note = "INSERT INTO token_warning (agent, expires_ms) VALUES (?1, ?2)
                        ON CONFLICT (agent) DO UPDATE SET expires_ms = ?2 WHERE expires_ms <> ?2";
            let noted = connection.execute(note, params![agent, to_column(expires_ms)])?;
            Ok(noted > 0)
        };
        let (doing, writer) = ("record a warning about a token", &self.0.writer);
        writer.write(doing, Durability::Power, work, |_| ()).await
    }
}

#[cfg(test)]
mod tests {
    use super::super::table::NewAgent;
    use crate::vault::store::Vault;
    use gatewren_base::config::Preset;
    use gatewren_base::sys::Scratch;

    #[tokio::test]
    async fn the_owner_is_warned_once_of_each_end_of_a_token() {
        let scratch = Scratch::new();
        let vault = Vault::open(&scratch.join("vault.db")).unwrap();
        let new = NewAgent {
            name: "a".to_owned(),
            token_sha256: [1; 32],
            preset: Preset::Observe,
            overrides: "{}".to_owned(),
            space: None,
            expires_ms: Some(5),
        };
        let agent = vault.agents().add(new).await.unwrap().id;
        let warnings = vault.token_warnings();
        assert!(warnings.begin(&agent, 5).await.unwrap());
        assert!(!warnings.begin(&agent, 5).await.unwrap());
        assert!(warnings.begin(&agent, 6).await.unwrap());
        vault.agents().revoke(&agent).await.unwrap();
        assert!(warnings.begin(&agent, 6).await.unwrap(), "it was forgotten");
    }
}
