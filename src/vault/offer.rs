//! What the server offered when it was last started: the names that policies can speak of.

use rusqlite::{Connection, OptionalExtension as _};
use serde::{Deserialize, Serialize};

use super::error::VaultError;
use super::job::Durability;
use super::shared::Shared;
use crate::config::{HelperClass, Risk};

/// Where it stands in the table of single values.
const KEY: &str = "offered_tools";

/// A tool that was offered, as far as policies look at it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OfferedTool {
    /// Its name.
    pub name: String,
    /// The group that it belongs to.
    pub toolset: String,
    /// Its class.
    pub risk: Risk,
    /// Whether it exists only for agents that reach the host.
    pub needs_host: bool,
    /// Whether it exists only for agents that reach the whole box.
    pub needs_everything: bool,
    /// The key of the helper's file because of which it is not there, for nobody.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub off: Option<HelperClass>,
}

/// The door to it.
pub struct Offer<'a>(&'a Shared);

impl<'a> Offer<'a> {
    pub(super) fn new(shared: &'a Shared) -> Self {
        Self(shared)
    }

    /// Remembers these in the place of those of before.
    pub async fn keep(&self, tools: &[OfferedTool]) -> Result<(), VaultError> {
        let doing = "remember its tools";
        let text = serde_json::to_string(tools).map_err(|cause| VaultError::Refused {
            doing,
            cause: cause.to_string(),
        })?;
        let work = move |connection: &Connection| {
            connection
                .execute("INSERT OR REPLACE INTO meta VALUES (?1, ?2)", (KEY, text))
                .map(drop)
        };
        let writer = &self.0.writer;
        writer
            .write(doing, Durability::Process, work, |()| ())
            .await
    }

    /// The tools; none before the first start, or where a newer gatewren has written what is not understood here.
    pub fn tools(&self) -> Result<Vec<OfferedTool>, VaultError> {
        let text = self.0.read("read its tools", |connection| {
            let query = "SELECT value FROM meta WHERE key = ?1";
            connection
                .query_row(query, [KEY], |row| row.get::<_, String>(0))
                .optional()
        })?;
        let tools = text.and_then(|text| serde_json::from_str(&text).ok());
        Ok(tools.unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::super::store::Vault;
    use super::*;
    use crate::sys::Scratch;

    #[tokio::test]
    async fn the_last_start_counts() {
        let scratch = Scratch::new();
        let vault = Vault::open(&scratch.join("vault.db")).unwrap();
        assert_eq!(vault.offer().tools().unwrap(), []);
        let tool = |name: &str| OfferedTool {
            name: name.to_owned(),
            toolset: "server".to_owned(),
            risk: Risk::Read,
            needs_host: true,
            needs_everything: false,
            off: None,
        };
        vault.offer().keep(&[tool("a"), tool("b")]).await.unwrap();
        vault.offer().keep(&[tool("c")]).await.unwrap();
        assert_eq!(vault.offer().tools().unwrap(), [tool("c")]);
    }
}
