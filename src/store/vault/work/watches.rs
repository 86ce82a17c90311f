//! Watches: conditions that the server checks for an agent, and what it last found.

use std::sync::Arc;

use rusqlite::{Connection, OptionalExtension as _, Row, params};
use tokio::sync::watch;

use crate::vault::error::VaultError;
use crate::vault::job::Durability;
use crate::vault::row::{from_column, to_column};
use crate::vault::shared::SharedVault;
use gatewren_base::sys::{now_ms, random_bytes};

/// The limit of watches of one agent. At the limit [`WatchTable::add`] refuses.
pub const MAX_WATCHES_OF_AGENT: u32 = 32;

/// The limit of watches of all agents. At the limit [`WatchTable::add`] refuses.
pub const MAX_WATCHES: u32 = 256;

/// The part of the schema for watches.
pub(in crate::vault) const SCHEMA: &str = "
CREATE TABLE watch (
    id         TEXT PRIMARY KEY,
    agent      TEXT NOT NULL,
    name       TEXT NOT NULL,
    spec       TEXT NOT NULL CHECK (json_valid(spec)),
    state      TEXT NOT NULL CHECK (json_valid(state)),
    created_ms INTEGER NOT NULL,
    UNIQUE (agent, name)
) STRICT;
";

/// A watch as stored in the vault.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredWatch {
    /// The id: `watch_` and 16 hexadecimal digits.
    pub id: String,
    /// The id of the agent that it belongs to.
    pub agent: String,
    /// The name that the agent gave it; unique among the agent's watches.
    pub name: String,
    /// The condition, as JSON.
    pub spec: String,
    /// The last findings, as JSON.
    pub state: String,
    /// When it was created, in milliseconds since 1970.
    pub created_ms: u64,
}

/// A watch to add.
#[derive(Debug, Clone)]
pub struct NewWatch {
    /// The agent's id.
    pub agent: String,
    /// The name.
    pub name: String,
    /// What to watch, as JSON.
    pub spec: String,
    /// The first state, as JSON.
    pub state: String,
}

/// The result of adding a watch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AddedWatch {
    /// It was added.
    Added(StoredWatch),
    /// The agent has another watch of this name.
    NameInUse,
    /// The agent has [`MAX_WATCHES_OF_AGENT`] watches.
    TooManyOfAgent,
    /// All agents together have [`MAX_WATCHES`] watches.
    TooMany,
}

/// Access to the table.
pub struct WatchTable<'a>(&'a Arc<SharedVault>);

impl<'a> WatchTable<'a> {
    pub(in crate::vault) fn new(shared: &'a Arc<SharedVault>) -> Self {
        Self(shared)
    }

    /// Adds a watch, within the limits.
    pub async fn add(&self, new: NewWatch) -> Result<AddedWatch, VaultError> {
        let row = StoredWatch {
            id: format!("watch_{:016x}", u64::from_be_bytes(random_bytes()?)),
            agent: new.agent,
            name: new.name,
            spec: new.spec,
            state: new.state,
            created_ms: now_ms(),
        };
        self.change("add a watch", move |connection| insert(connection, row))
            .await
    }

    /// Removes a watch, given by its id or by the agent's name for it. Returns the removed one.
    pub async fn remove(&self, watch: WatchRef) -> Result<Option<StoredWatch>, VaultError> {
        let work = move |connection: &Connection| {
            let (clause, first, second) = match &watch {
                WatchRef::Id(id) => ("id = ?1 AND ?2 = ''", id.as_str(), ""),
                WatchRef::Name { agent, name } => {
                    ("agent = ?1 AND name = ?2", agent.as_str(), name.as_str())
                }
            };
            let sql = format!("DELETE FROM watch WHERE {clause} RETURNING *");
            connection.query_row(&sql, [first, second], read).optional()
        };
        self.change("remove a watch", work).await
    }

    /// Removes all watches of an agent. Returns their number.
    pub async fn remove_of_agent(&self, agent: &str) -> Result<usize, VaultError> {
        let agent = agent.to_owned();
        let work = move |c: &Connection| c.execute("DELETE FROM watch WHERE agent = ?1", [&agent]);
        self.change("remove an agent's watches", work).await
    }

    /// Replaces the specification of a watch that was read. Returns false if it has been changed or removed since.
    pub async fn replace_spec(&self, old: &StoredWatch, spec: String) -> Result<bool, VaultError> {
        let (id, old) = (old.id.clone(), old.spec.clone());
        let work = move |connection: &Connection| {
            let sql = "UPDATE watch SET spec = ?3 WHERE id = ?1 AND spec = ?2";
            Ok(connection.execute(sql, [&id, &old, &spec])? > 0)
        };
        self.change("change a watch", work).await
    }

    /// Stores the state of a watch. Returns false if the watch was removed. This is no change of the table that
    /// [`Self::changes`] counts.
    pub async fn set_state(&self, id: &str, state: String) -> Result<bool, VaultError> {
        let id = id.to_owned();
        let work = move |connection: &Connection| {
            let sql = "UPDATE watch SET state = ?2 WHERE id = ?1";
            Ok(connection.execute(sql, params![id, state])? > 0)
        };
        let writer = &self.0.writer;
        let doing = "store the state of a watch";
        writer.write(doing, Durability::Process, work, |_| ()).await
    }

    /// Returns an agent's watches, oldest first.
    pub fn list_of(&self, agent: &str) -> Result<Vec<StoredWatch>, VaultError> {
        let mut all = self.list()?;
        all.retain(|watch| watch.agent == agent);
        Ok(all)
    }

    /// Returns the watches of all agents, oldest first.
    pub fn list(&self) -> Result<Vec<StoredWatch>, VaultError> {
        self.0.read("list the watches", |connection| {
            connection
                .prepare_cached("SELECT * FROM watch ORDER BY created_ms, id")?
                .query_map([], read)?
                .collect()
        })
    }

    /// Returns a counter that changes whenever watches may have been added, changed or removed, also by another
    /// process.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.0.watch_changes.subscribe()
    }

    async fn change<T: Send + 'static>(
        &self,
        doing: &'static str,
        work: impl FnOnce(&Connection) -> Result<T, rusqlite::Error> + Send + 'static,
    ) -> Result<T, VaultError> {
        let count = self.0.watch_changes.clone();
        let then = move |_: &T| count.send_modify(|changes| *changes += 1);
        let writer = &self.0.writer;
        writer.write(doing, Durability::Power, work, then).await
    }
}

/// Names a watch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WatchRef {
    /// By its id.
    Id(String),
    /// By its agent and that agent's name for it.
    Name {
        /// The agent's id.
        agent: String,
        /// The name.
        name: String,
    },
}

fn insert(connection: &Connection, row: StoredWatch) -> Result<AddedWatch, rusqlite::Error> {
    let count = |sql: &str, value: &[&str]| -> Result<u32, rusqlite::Error> {
        connection.query_row(sql, rusqlite::params_from_iter(value), |row| row.get(0))
    };
    let (of_agent, all) = (
        "SELECT count(*) FROM watch WHERE agent = ?1",
        "SELECT count(*) FROM watch",
    );
    let same = "SELECT count(*) FROM watch WHERE agent = ?1 AND name = ?2";
    if count(same, &[&row.agent, &row.name])? > 0 {
        return Ok(AddedWatch::NameInUse);
    }
    if count(of_agent, &[&row.agent])? >= MAX_WATCHES_OF_AGENT {
        return Ok(AddedWatch::TooManyOfAgent);
    }
    if count(all, &[])? >= MAX_WATCHES {
        return Ok(AddedWatch::TooMany);
    }
    connection.execute(
        "INSERT INTO watch (id, agent, name, spec, state, created_ms) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        params![row.id, row.agent, row.name, row.spec, row.state, to_column(row.created_ms)],
    )?;
    Ok(AddedWatch::Added(row))
}

fn read(row: &Row<'_>) -> Result<StoredWatch, rusqlite::Error> {
    Ok(StoredWatch {
        id: row.get("id")?,
        agent: row.get("agent")?,
        name: row.get("name")?,
        spec: row.get("spec")?,
        state: row.get("state")?,
        created_ms: from_column(row, "created_ms")?,
    })
}

#[cfg(test)]
mod tests {
    use super::super::watches::*;
    use crate::vault::store::Vault;
    use gatewren_base::sys::Scratch;

    fn new(agent: &str, name: &str) -> NewWatch {
        NewWatch {
            agent: agent.to_owned(),
            name: name.to_owned(),
            spec: "{}".to_owned(),
            state: "{}".to_owned(),
        }
    }

    fn of(agent: &str, name: &str) -> WatchRef {
        WatchRef::Name {
            agent: agent.to_owned(),
            name: name.to_owned(),
        }
    }

    #[tokio::test]
    async fn a_watch_is_kept_until_its_agent_or_the_owner_removes_it() {
        let scratch = Scratch::new();
        let path = scratch.join("vault.db");
        let vault = Vault::open(&path).unwrap();
        let changes = vault.watches().changes();
        let AddedWatch::Added(a) = vault.watches().add(new("a", "x")).await.unwrap() else {
            panic!("there is room");
        };
        assert!(changes.has_changed().unwrap());
        let again = vault.watches().add(new("a", "x")).await.unwrap();
        assert_eq!(again, AddedWatch::NameInUse);
        vault.watches().add(new("b", "x")).await.unwrap();
        let table = vault.watches();
        let paused = r#"{"paused":true}"#.to_owned();
        assert!(table.replace_spec(&a, paused.clone()).await.unwrap());
        let late = table.replace_spec(&a, "{}".to_owned()).await.unwrap();
        assert!(!late, "it has changed since it was read");
        assert_eq!(table.list_of("a").unwrap()[0].spec, paused);
        let state = r#"{"phase":"fired"}"#.to_owned();
        assert!(
            vault
                .watches()
                .set_state(&a.id, state.clone())
                .await
                .unwrap()
        );
        drop(vault);
        let vault = Vault::open(&path).unwrap();
        let all = vault.watches().list().unwrap();
        assert_eq!((all.len(), &all[0].state), (2, &state));
        let gone = vault.watches().remove(of("c", "x")).await.unwrap();
        assert_eq!(gone, None, "another agent's");
        let gone = vault.watches().remove(of("a", "x")).await.unwrap();
        assert_eq!(gone.unwrap().id, a.id);
        assert!(!vault.watches().set_state(&a.id, state).await.unwrap());
        assert_eq!(vault.watches().remove_of_agent("b").await.unwrap(), 1);
        assert_eq!(vault.watches().list().unwrap(), []);
    }

    #[tokio::test]
    async fn an_agent_and_all_agents_together_have_so_many_watches() {
        let scratch = Scratch::new();
        let vault = Vault::open(&scratch.join("vault.db")).unwrap();
        for n in 0..MAX_WATCHES {
            let agent = format!("a{}", n / MAX_WATCHES_OF_AGENT);
            let added = vault
                .watches()
                .add(new(&agent, &n.to_string()))
                .await
                .unwrap();
            assert!(matches!(added, AddedWatch::Added(_)), "{n}");
        }
        let more = vault.watches().add(new("a0", "y")).await.unwrap();
        assert_eq!(more, AddedWatch::TooManyOfAgent);
        let more = vault.watches().add(new("z", "y")).await.unwrap();
        assert_eq!(more, AddedWatch::TooMany);
    }
}
