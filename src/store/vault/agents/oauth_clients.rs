//! The programs that ask for access over OAuth: those that registered here, and the agent that the owner made for
//! each.

use std::sync::Arc;

use rusqlite::types::Type;
use rusqlite::{Connection, OptionalExtension as _, Row, params};

use crate::vault::error::VaultError;
use crate::vault::job::Durability;
use crate::vault::row::to_column;
use crate::vault::shared::SharedVault;
use gatewren_base::sys::{now_ms, random_bytes};

/// The limit of programs without an agent. Beyond it the least recently used one is deleted, because anyone who can
/// connect to the server can register.
const MOST_UNUSED: i64 = 256;

/// The limit of programs with an agent, with the same rule.
const MOST_USED: i64 = 1000;

/// A program without an agent is deleted after this time.
const UNUSED_KEPT_MS: u64 = 7 * 24 * 3_600_000;

/// The part of the schema's fifth version.
pub(in crate::vault) const SCHEMA: &str = "
CREATE TABLE oauth_client (
    -- The id that we issued at its registration, or the address of its client metadata document.
    id            TEXT PRIMARY KEY,
    name          TEXT NOT NULL,
    -- The addresses that answers may go to; empty if its document has them.
    redirect_uris TEXT NOT NULL CHECK (json_valid(redirect_uris)),
    -- The agent that the owner created for it; NULL if there is none yet.
    agent         TEXT,
    used_ms       INTEGER NOT NULL
) STRICT;
";

/// A program that asks for access.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OauthClient {
    /// The id: `client_` and 32 hexadecimal digits if it registered here; otherwise a URL.
    pub id: String,
    /// The name that it gave.
    pub name: String,
    /// The redirect URIs, if it registered here.
    pub redirect_uris: Vec<String>,
    /// The id of the agent that the owner made for it.
    pub agent: Option<String>,
}

/// Access to the table.
pub struct OauthClientTable<'a>(&'a Arc<SharedVault>);

impl<'a> OauthClientTable<'a> {
    pub(in crate::vault) fn new(shared: &'a Arc<SharedVault>) -> Self {
        Self(shared)
    }

    /// Registers a program and returns its id.
    pub async fn register(
        &self,
        name: String,
        redirect_uris: Vec<String>,
    ) -> Result<String, VaultError> {
        let random = u128::from_be_bytes(random_bytes()?);
        let id = format!("client_{random:032x}");
        let client = OauthClient {
            id: id.clone(),
            name,
            redirect_uris,
            agent: None,
        };
        let work = move |connection: &Connection| keep(connection, &client);
        self.write("register a client", work).await?;
        Ok(id)
    }

    /// Returns the program with this id, if it is known.
    pub fn find(&self, id: &str) -> Result<Option<OauthClient>, VaultError> {
        self.0.read("find a client", |connection| {
            let query = "SELECT id, name, redirect_uris, agent FROM oauth_client WHERE id = ?1";
            let mut select = connection.prepare_cached(query)?;
            select.query_row([id], read).optional()
        })
    }

    /// Records which agent the owner made for a program.
    pub async fn note_agent(&self, client: OauthClient) -> Result<(), VaultError> {
        let work = move |connection: &Connection| keep(connection, &client);
        self.write("record a client's agent", work).await
    }

    async fn write(
        &self,
        doing: &'static str,
        work: impl FnOnce(&Connection) -> Result<(), rusqlite::Error> + Send + 'static,
    ) -> Result<(), VaultError> {
        let writer = &self.0.writer;
        writer.write(doing, Durability::Power, work, |()| ()).await
    }
}

/// Stores a program, and deletes others beyond the limits.
fn keep(connection: &Connection, client: &OauthClient) -> Result<(), rusqlite::Error> {
    let now = now_ms();
    let uris = serde_json::Value::from(client.redirect_uris.clone()).to_string();
    connection.execute(
        "INSERT OR REPLACE INTO oauth_client (id, name, redirect_uris, agent, used_ms)
         VALUES (?1, ?2, ?3, ?4, ?5)",
        params![client.id, client.name, uris, client.agent, to_column(now)],
    )?;
    connection.execute(
        "DELETE FROM oauth_client WHERE agent IS NULL AND used_ms <= ?1",
        [to_column(now.saturating_sub(UNUSED_KEPT_MS))],
    )?;
    let crowded = |which: &str| {
        format!(
            "DELETE FROM oauth_client WHERE id IN (SELECT id FROM oauth_client WHERE agent IS {which}
             ORDER BY used_ms DESC, rowid DESC LIMIT -1 OFFSET ?1)"
        )
    };
    connection.execute(&crowded("NULL"), [MOST_UNUSED])?;
    connection
        .execute(&crowded("NOT NULL"), [MOST_USED])
        .map(drop)
}

fn read(row: &Row<'_>) -> Result<OauthClient, rusqlite::Error> {
    let uris: String = row.get("redirect_uris")?;
    let redirect_uris = serde_json::from_str(&uris).map_err(|cause| {
        rusqlite::Error::FromSqlConversionFailure(2, Type::Text, Box::new(cause))
    })?;
    Ok(OauthClient {
        id: row.get("id")?,
        name: row.get("name")?,
        redirect_uris,
        agent: row.get("agent")?,
    })
}

#[cfg(test)]
mod tests {
    use super::super::oauth_clients::*;
    use crate::vault::store::Vault;
    use gatewren_base::sys::Scratch;

    #[tokio::test]
    async fn one_that_registered_is_found_with_its_agent() {
        let scratch = Scratch::new();
        let vault = Vault::open(&scratch.join("vault.db")).unwrap();
        let clients = vault.oauth_clients();
        let uris = vec!["https://chat.example/back".to_owned()];
        let id = clients.register("Chat".into(), uris.clone()).await.unwrap();
        assert_eq!(id.len(), 39);
        let found = clients.find(&id).unwrap().unwrap();
        assert_eq!((&found.redirect_uris, &found.agent), (&uris, &None));
        let agent = Some("agent_1".to_owned());
        let known = OauthClient { agent, ..found };
        clients.note_agent(known.clone()).await.unwrap();
        assert_eq!(clients.find(&id).unwrap(), Some(known));
        assert_eq!(clients.find("client_x").unwrap(), None);
    }

    #[tokio::test]
    async fn strangers_who_register_again_and_again_make_room_for_themselves_alone() {
        let scratch = Scratch::new();
        let path = scratch.join("vault.db");
        let vault = Vault::open(&path).unwrap();
        let clients = vault.oauth_clients();
        let first = clients.register("first".into(), vec![]).await.unwrap();
        let used = OauthClient {
            id: "https://chat.example/client.json".into(),
            name: "Chat".into(),
            redirect_uris: vec![],
            agent: Some("agent_1".into()),
        };
        clients.note_agent(used.clone()).await.unwrap();
        for _ in 0..MOST_UNUSED {
            clients.register("more".into(), vec![]).await.unwrap();
        }
        assert_eq!(clients.find(&first).unwrap(), None);
        assert_eq!(clients.find(&used.id).unwrap(), Some(used));
        let other = Connection::open(&path).unwrap();
        let count = |sql: &str| other.query_row(sql, [], |row| row.get::<_, i64>(0));
        let all = "SELECT count(*) FROM oauth_client";
        assert_eq!(count(all), Ok(MOST_UNUSED + 1));
        other
            .execute("UPDATE oauth_client SET used_ms = 0", [])
            .unwrap();
        clients.register("last".into(), vec![]).await.unwrap();
        assert_eq!(count(all), Ok(2), "those of long ago are gone");
    }
}
