//! The agents: who may come in, by which token, allowed what.

use rusqlite::types::Type;
use rusqlite::{Connection, Row};
use tokio::sync::watch;

use super::error::VaultError;
use super::job::Durability;
use super::row::{from_column, from_optional, to_column};
use super::shared::Shared;
use crate::config::Preset;
use crate::sys::{now_ms, random_bytes};

/// Agents that are not revoked; at it, [`Agents::add`] refuses.
const MAX_AGENTS: i64 = 1000;

/// An agent as the vault knows it. Times are milliseconds since 1970.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Agent {
    /// Its id, `agent_` and 16 hexadecimal digits; never used again for another.
    pub id: String,
    /// What its owner calls it.
    pub name: String,
    /// The SHA-256 of its token.
    pub token_sha256: [u8; 32],
    /// What it may do.
    pub preset: Preset,
    /// What differs from the preset, as a JSON object.
    pub overrides: String,
    /// The space that it is kept in; `*` is the whole box, and none lets nobody in.
    pub space: Option<String>,
    /// When it was added.
    pub created_ms: u64,
    /// When its token ends by itself.
    pub expires_ms: Option<u64>,
    /// When it was revoked.
    pub revoked_ms: Option<u64>,
    /// When it was last seen, to about a minute.
    pub last_used_ms: Option<u64>,
}

impl Agent {
    /// Whether its token still lets it in: it was not revoked, and its time is not over.
    pub fn comes_in(&self) -> bool {
        self.revoked_ms.is_none() && self.expires_ms.is_none_or(|expires| expires > now_ms())
    }
}

/// An agent to be added.
#[derive(Debug, Clone)]
pub struct NewAgent {
    /// What its owner calls it.
    pub name: String,
    /// The SHA-256 of its token.
    pub token_sha256: [u8; 32],
    /// What it may do.
    pub preset: Preset,
    /// What differs from the preset, as a JSON object; `{}` for nothing.
    pub overrides: String,
    /// The space that it is kept in; `*` is the whole box.
    pub space: Option<String>,
    /// When its token ends by itself, in milliseconds since 1970.
    pub expires_ms: Option<u64>,
}

/// The door to the table.
pub struct Agents<'a>(&'a std::sync::Arc<Shared>);

const COLUMNS: &str = "id, name, token_sha256, preset, overrides, space, created_ms, expires_ms, \
                       revoked_ms, last_used_ms";

impl<'a> Agents<'a> {
    pub(super) fn new(shared: &'a std::sync::Arc<Shared>) -> Self {
        Self(shared)
    }

    /// Adds an agent; its token is good when the answer comes.
    pub async fn add(&self, new: NewAgent) -> Result<Agent, VaultError> {
        let agent = Agent {
            id: format!("agent_{:016x}", u64::from_be_bytes(random_bytes()?)),
            name: new.name,
            token_sha256: new.token_sha256,
            preset: new.preset,
            overrides: new.overrides,
            space: new.space,
            created_ms: now_ms(),
            expires_ms: new.expires_ms,
            revoked_ms: None,
            last_used_ms: None,
        };
        let row = agent.clone();
        let added = self
            .change("add an agent", move |connection| insert(connection, &row))
            .await?;
        if added {
            Ok(agent)
        } else {
            Err(VaultError::TooManyAgents)
        }
    }

    /// Writes what its owner can change of an agent: name, token, policy, space and expiry. False if the row is no
    /// longer as `before` says, or was revoked: nothing is changed then, and whoever asks looks again.
    pub async fn replace(&self, before: &Agent, after: &Agent) -> Result<bool, VaultError> {
        let (before, after) = (before.clone(), after.clone());
        let work = move |connection: &Connection| update(connection, &before, &after);
        self.change("change an agent", work).await
    }

    /// Ends an agent's access; false if there is no such agent, or it was ended before.
    pub async fn revoke(&self, id: &str) -> Result<bool, VaultError> {
        let id = id.to_owned();
        self.change("revoke an agent", move |connection| {
            let changed = connection.execute(
                "UPDATE agent SET revoked_ms = ?2 WHERE id = ?1 AND revoked_ms IS NULL",
                (id, to_column(now_ms())),
            )?;
            Ok(changed > 0)
        })
        .await
    }

    /// Notes that an agent was seen, some time soon. Call it at most once a minute for each.
    pub fn touch(&self, id: &str, at_ms: u64) {
        let id = id.to_owned();
        let work = move |connection: &Connection| {
            connection
                .prepare_cached("UPDATE agent SET last_used_ms = ?2 WHERE id = ?1")?
                .execute((id, to_column(at_ms)))?;
            Ok(())
        };
        self.0.writer.leave_or_forget("note an agent's use", work);
    }

    /// All agents, revoked and expired ones too, the oldest first.
    pub fn list(&self) -> Result<Vec<Agent>, VaultError> {
        let query = format!("SELECT {COLUMNS} FROM agent ORDER BY created_ms, id");
        self.0.read("list the agents", |connection| {
            connection
                .prepare(&query)?
                .query_map([], agent)?
                .collect::<Result<_, _>>()
        })
    }

    /// A number that changes whenever the agents may have changed, also through another process
    /// (noticed within a second). It changes only after the commit.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.0.agent_changes.subscribe()
    }

    async fn change(
        &self,
        doing: &'static str,
        work: impl FnOnce(&Connection) -> Result<bool, rusqlite::Error> + Send + 'static,
    ) -> Result<bool, VaultError> {
        let count = self.0.agent_changes.clone();
        let then = move |_: &bool| count.send_modify(|changes| *changes += 1);
        let writer = &self.0.writer;
        writer.write(doing, Durability::Power, work, then).await
    }
}

/// False if there are too many.
pub(super) fn insert(connection: &Connection, agent: &Agent) -> Result<bool, rusqlite::Error> {
    let count = "SELECT count(*) FROM agent WHERE revoked_ms IS NULL";
    let there: i64 = connection.query_row(count, [], |row| row.get(0))?;
    if there >= MAX_AGENTS {
        return Ok(false);
    }
    connection.execute(
        "INSERT INTO agent (id, name, token_sha256, preset, overrides, space, created_ms, expires_ms)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
        (
            &agent.id,
            &agent.name,
            &agent.token_sha256,
            agent.preset.as_str(),
            &agent.overrides,
            &agent.space,
            to_column(agent.created_ms),
            agent.expires_ms.map(to_column),
        ),
    )?;
    Ok(true)
}

/// False if the row is not as it was.
fn update(connection: &Connection, before: &Agent, after: &Agent) -> Result<bool, rusqlite::Error> {
    let changed = connection.execute(
        "UPDATE agent SET name = ?2, token_sha256 = ?3, preset = ?4, overrides = ?5, space = ?6, expires_ms = ?7
         WHERE id = ?1 AND name = ?8 AND token_sha256 = ?9 AND preset = ?10 AND overrides = ?11
           AND space IS ?12 AND expires_ms IS ?13 AND revoked_ms IS NULL",
        rusqlite::params![
            before.id,
            after.name,
            after.token_sha256,
            after.preset.as_str(),
            after.overrides,
            after.space,
            after.expires_ms.map(to_column),
            before.name,
            before.token_sha256,
            before.preset.as_str(),
            before.overrides,
            before.space,
            before.expires_ms.map(to_column),
        ],
    )?;
    Ok(changed > 0)
}

fn agent(row: &Row<'_>) -> Result<Agent, rusqlite::Error> {
    let preset: String = row.get("preset")?;
    let preset = preset.parse().map_err(|cause| {
        rusqlite::Error::FromSqlConversionFailure(3, Type::Text, Box::new(cause))
    })?;
    Ok(Agent {
        id: row.get("id")?,
        name: row.get("name")?,
        token_sha256: row.get("token_sha256")?,
        preset,
        overrides: row.get("overrides")?,
        space: row.get("space")?,
        created_ms: from_column(row, "created_ms")?,
        expires_ms: from_optional(row, "expires_ms")?,
        revoked_ms: from_optional(row, "revoked_ms")?,
        last_used_ms: from_optional(row, "last_used_ms")?,
    })
}

#[cfg(test)]
mod tests {
    use super::super::store::Vault;
    use super::*;
    use crate::sys::Scratch;

    fn new(name: &str, hash: u8) -> NewAgent {
        NewAgent {
            name: name.to_owned(),
            token_sha256: [hash; 32],
            preset: Preset::Operate,
            overrides: "{}".to_owned(),
            space: Some("media".to_owned()),
            expires_ms: Some(5),
        }
    }

    #[tokio::test]
    async fn an_agent_is_kept_as_it_was_added() {
        let scratch = Scratch::new();
        let path = scratch.join("vault.db");
        let vault = Vault::open(&path).unwrap();
        let added = vault.agents().add(new("a", 1)).await.unwrap();
        assert_eq!(added.id.len(), 22);
        drop(vault);
        let vault = Vault::open(&path).unwrap();
        assert_eq!(vault.agents().list().unwrap(), std::slice::from_ref(&added));
        assert_eq!(vault.agents().list().unwrap(), [added]);
    }

    #[tokio::test]
    async fn each_change_is_told_after_its_commit() {
        let scratch = Scratch::new();
        let vault = Vault::open(&scratch.join("vault.db")).unwrap();
        let changes = vault.agents().changes();
        let agent = vault.agents().add(new("a", 1)).await.unwrap();
        assert!(changes.has_changed().unwrap());
        let before = *changes.borrow();
        assert!(vault.agents().revoke(&agent.id).await.unwrap());
        assert!(*changes.borrow() > before);
        assert!(
            !vault.agents().revoke(&agent.id).await.unwrap(),
            "only once"
        );
        assert!(!vault.agents().revoke("nobody").await.unwrap());
        assert!(vault.agents().list().unwrap()[0].revoked_ms.is_some());
    }

    #[tokio::test]
    async fn a_change_is_made_only_of_what_was_seen() {
        let scratch = Scratch::new();
        let vault = Vault::open(&scratch.join("vault.db")).unwrap();
        let agents = vault.agents();
        let before = agents.add(new("a", 1)).await.unwrap();
        let after = Agent {
            name: "b".to_owned(),
            token_sha256: [2; 32],
            preset: Preset::Observe,
            overrides: r#"{"calls_per_minute":1}"#.to_owned(),
            space: None,
            expires_ms: None,
            ..before.clone()
        };
        let changes = *agents.changes().borrow();
        assert!(agents.replace(&before, &after).await.unwrap());
        assert!(*agents.changes().borrow() > changes);
        assert!(
            !agents.replace(&before, &after).await.unwrap(),
            "it has changed"
        );
        assert_eq!(agents.list().unwrap(), std::slice::from_ref(&after));
        assert!(agents.replace(&after, &before).await.unwrap());
        agents.revoke(&before.id).await.unwrap();
        assert!(
            !agents.replace(&before, &after).await.unwrap(),
            "it was revoked"
        );
    }

    #[tokio::test]
    async fn two_agents_never_share_a_token_and_overrides_are_json() {
        let scratch = Scratch::new();
        let vault = Vault::open(&scratch.join("vault.db")).unwrap();
        vault.agents().add(new("a", 1)).await.unwrap();
        assert!(vault.agents().add(new("b", 1)).await.is_err());
        let broken = NewAgent {
            overrides: "{".to_owned(),
            ..new("c", 3)
        };
        assert!(vault.agents().add(broken).await.is_err());
        assert_eq!(vault.agents().list().unwrap().len(), 1);
    }

    #[tokio::test]
    async fn a_use_is_noted() {
        let scratch = Scratch::new();
        let vault = Vault::open(&scratch.join("vault.db")).unwrap();
        let agent = vault.agents().add(new("a", 1)).await.unwrap();
        vault.agents().touch(&agent.id, 1234);
        vault.probe().await.unwrap();
        assert_eq!(vault.agents().list().unwrap()[0].last_used_ms, Some(1234));
    }

    #[tokio::test]
    async fn there_is_a_bound() {
        let scratch = Scratch::new();
        let vault = Vault::open(&scratch.join("vault.db")).unwrap();
        let fill = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000)
            INSERT INTO agent (id, name, token_sha256, preset, overrides, created_ms)
            SELECT 'x' || i, 'x', randomblob(32), 'observe', '{}', 0 FROM n";
        let other = Connection::open(scratch.join("vault.db")).unwrap();
        other.execute(fill, []).unwrap();
        let error = vault.agents().add(new("a", 1)).await.unwrap_err();
        assert!(matches!(error, VaultError::TooManyAgents), "{error}");
        vault.agents().revoke("x1").await.unwrap();
        vault.agents().add(new("a", 1)).await.unwrap();
    }
}
