//! The agents: their tokens and their permissions.

use rusqlite::types::Type;
use rusqlite::{Connection, OptionalExtension as _, Row};
use tokio::sync::watch;

use super::names::{NameHolder, free_name, is_fit};
use crate::vault::error::VaultError;
use crate::vault::job::Durability;
use crate::vault::row::{from_column, from_optional, to_column};
use crate::vault::shared::SharedVault;
use gatewren_base::config::Preset;
use gatewren_base::sys::{now_ms, random_bytes};

/// The limit of agents that are not revoked. At the limit [`AgentTable::add`] refuses.
const MAX_AGENTS: i64 = 1000;

/// Inside the transaction: what SQLite failed at, else what the vault refuses. A refusal changes nothing.
pub(in crate::vault) type Checked<T> = Result<Result<T, VaultError>, rusqlite::Error>;

/// Returns an error if a text cannot be the name of a new agent. Whether the name is free is only known in the
/// transaction that takes it.
pub fn check_agent_name(name: &str) -> Result<(), VaultError> {
    if is_fit(name) {
        return Ok(());
    }
    Err(VaultError::UnfitAgentName(name.to_owned()))
}

/// An agent as stored in the vault. Times are milliseconds since 1970.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Agent {
    /// The id: `agent_` and 16 hexadecimal digits. An id is never reused.
    pub id: String,
    /// The name that the owner gave it. Agents of older versions may share one, and it may be any text.
    pub name: String,
    /// The SHA-256 of its token.
    pub token_sha256: [u8; 32],
    /// The preset of its policy.
    pub preset: Preset,
    /// The differences from the preset, as a JSON object.
    pub overrides: String,
    /// The space that limits what the agent can see. `*` means the host and all containers; `None` denies access.
    pub space: Option<String>,
    /// When it was added.
    pub created_ms: u64,
    /// When the token expires; `None` if it never does.
    pub expires_ms: Option<u64>,
    /// When it was revoked; `None` if it was not.
    pub revoked_ms: Option<u64>,
    /// When the agent last sent a request, accurate to about a minute.
    pub last_used_ms: Option<u64>,
}

impl Agent {
    /// Returns whether the token is valid: neither revoked nor expired.
    pub fn has_valid_token(&self) -> bool {
        self.revoked_ms.is_none() && self.expires_ms.is_none_or(|expires| expires > now_ms())
    }
}

/// An agent to add.
#[derive(Debug, Clone)]
pub struct NewAgent {
    /// The name that the owner gives it.
    pub name: String,
    /// The SHA-256 of its token.
    pub token_sha256: [u8; 32],
    /// The preset of its policy.
    pub preset: Preset,
    /// The differences from the preset, as a JSON object; `{}` for none.
    pub overrides: String,
    /// The space that limits what the agent can see. `*` means the host and all containers.
    pub space: Option<String>,
    /// When the token expires, in milliseconds since 1970; `None` if it never does.
    pub expires_ms: Option<u64>,
}

/// Access to the table of agents.
pub struct AgentTable<'a>(&'a std::sync::Arc<SharedVault>);

const COLUMNS: &str = "id, name, token_sha256, preset, overrides, space, created_ms, expires_ms, \
                       revoked_ms, last_used_ms";

impl<'a> AgentTable<'a> {
    pub(in crate::vault) fn new(shared: &'a std::sync::Arc<SharedVault>) -> Self {
        Self(shared)
    }

    /// Adds an agent. Its token is valid once this returns. Returns an error if the name does not fit, or another
    /// agent has it and is not revoked. An expired agent keeps its name, because its owner can renew it.
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
        let work = move |connection: &Connection| insert(connection, &row);
        self.change("add an agent", work).await??;
        Ok(agent)
    }

    /// Makes a name of any text that a new agent could have now.
    pub fn free_name(&self, text: &str) -> Result<String, VaultError> {
        let agents = self.list()?;
        let has = |name: &str| {
            let mut all = agents.iter();
            all.any(|agent| agent.revoked_ms.is_none() && agent.name == name)
        };
        Ok(free_name(text, has))
    }

    /// Writes the fields that the owner can change: name, token, policy, space and expiry.
    ///
    /// Returns false and changes nothing if the row no longer equals `before` or the agent was revoked. The caller
    /// then has to read the row again. A new name is checked as by [`AgentTable::add`]; an old one may stay.
    pub async fn replace(&self, before: &Agent, after: &Agent) -> Result<bool, VaultError> {
        let (before, after) = (before.clone(), after.clone());
        let work = move |connection: &Connection| update(connection, &before, &after);
        self.change("change an agent", work).await?
    }

    /// Revokes an agent. Returns false if there is no such agent or it was revoked before.
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

    /// Records asynchronously that an agent was used. Call it at most once a minute for each agent.
    pub fn touch(&self, id: &str, at_ms: u64) {
        let id = id.to_owned();
        let work = move |connection: &Connection| {
            connection
                .prepare_cached("UPDATE agent SET last_used_ms = ?2 WHERE id = ?1")?
                .execute((id, to_column(at_ms)))?;
            Ok(())
        };
        self.0.writer.enqueue_or_drop("record an agent's use", work);
    }

    /// Returns all agents, oldest first, including revoked and expired ones.
    pub fn list(&self) -> Result<Vec<Agent>, VaultError> {
        let query = format!("SELECT {COLUMNS} FROM agent ORDER BY created_ms, id");
        self.0.read("list the agents", |connection| {
            connection
                .prepare_cached(&query)?
                .query_map([], agent)?
                .collect::<Result<_, _>>()
        })
    }

    /// Returns a counter that changes whenever the agents may have changed. Changes by another process are noticed
    /// within a second. The counter changes only after the commit.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.0.agent_changes.subscribe()
    }

    async fn change<T: Send + 'static>(
        &self,
        doing: &'static str,
        work: impl FnOnce(&Connection) -> Result<T, rusqlite::Error> + Send + 'static,
    ) -> Result<T, VaultError> {
        let count = self.0.agent_changes.clone();
        let then = move |_: &T| count.send_modify(|changes| *changes += 1);
        let writer = &self.0.writer;
        writer.write(doing, Durability::Power, work, then).await
    }
}

/// Refuses at the limit, and a name that does not fit or is taken.
pub(in crate::vault) fn insert(connection: &Connection, agent: &Agent) -> Checked<()> {
    let count = "SELECT count(*) FROM agent WHERE revoked_ms IS NULL";
    let there: i64 = connection.query_row(count, [], |row| row.get(0))?;
    if there >= MAX_AGENTS {
        return Ok(Err(VaultError::TooManyAgents));
    }
    if let Err(refusal) = check_free(connection, &agent.name, &agent.id)? {
        return Ok(Err(refusal));
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
    Ok(Ok(()))
}

/// Refuses a new name that does not fit, or that another agent than the one with this id has.
pub(in crate::vault) fn check_free(connection: &Connection, name: &str, id: &str) -> Checked<()> {
    if let Err(refusal) = check_agent_name(name) {
        return Ok(Err(refusal));
    }
    // Agents of older versions may share the name: the one in use is named.
    let query = format!(
        "SELECT {COLUMNS} FROM agent WHERE name = ?1 AND id <> ?2 AND revoked_ms IS NULL
         ORDER BY coalesce(expires_ms <= ?3, 0), last_used_ms DESC LIMIT 1"
    );
    let holder = connection.query_row(&query, (name, id, to_column(now_ms())), agent);
    Ok(holder.optional()?.map_or(Ok(()), |holder| {
        Err(VaultError::AgentNameTaken(NameHolder {
            expired: !holder.has_valid_token(),
            name: holder.name,
            preset: holder.preset,
            last_used_ms: holder.last_used_ms,
        }))
    }))
}

/// Returns false if the row no longer equals `before`. Refuses a new name that does not fit or is taken.
fn update(connection: &Connection, before: &Agent, after: &Agent) -> Checked<bool> {
    if after.name != before.name
        && let Err(refusal) = check_free(connection, &after.name, &before.id)?
    {
        return Ok(Err(refusal));
    }
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
    Ok(Ok(changed > 0))
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
    use super::super::table::*;
    use crate::vault::store::Vault;
    use gatewren_base::sys::Scratch;

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

    fn is_taken(outcome: &Result<impl Sized, VaultError>) -> bool {
        matches!(outcome, Err(VaultError::AgentNameTaken(_)))
    }

    #[tokio::test]
    async fn a_name_belongs_to_one_agent_until_it_is_revoked() {
        let scratch = Scratch::new();
        let vault = Vault::open(&scratch.join("vault.db")).unwrap();
        let agents = vault.agents();
        let lasting = |name: &str, hash| NewAgent {
            expires_ms: None,
            ..new(name, hash)
        };
        let laptop = agents.add(lasting("laptop", 1)).await.unwrap();
        let day = 24 * 3_600_000;
        for (used, words) in [
            (None, "never used"),
            (Some(now_ms()), "last used today"),
            (Some(now_ms() - day), "last used yesterday"),
            (Some(now_ms() - 3 * day), "last used 3 days ago"),
        ] {
            if let Some(ms) = used {
                agents.touch(&laptop.id, ms);
            }
            let refusal = agents.add(lasting("laptop", 2)).await.unwrap_err();
            let expected = format!(
                "there is already an agent \"laptop\" (operate, {words}). New token for it: gatewren agent rotate \
                 laptop"
            );
            assert_eq!(refusal.to_string(), expected);
        }
        assert_eq!(agents.free_name("Laptop").unwrap(), "laptop-2");
        assert!(agents.revoke(&laptop.id).await.unwrap());
        assert_eq!(agents.free_name("Laptop").unwrap(), "laptop");
        // The second one is expired from the beginning: its owner may renew it, so it keeps the name.
        let second = agents.add(new("laptop", 2)).await.unwrap();
        let refusal = agents.add(new("laptop", 3)).await.unwrap_err().to_string();
        assert!(
            refusal.contains("(operate, expired)") && refusal.ends_with("agent revoke laptop"),
            "{refusal}"
        );
        let refusal = agents.add(new("Mac mini", 3)).await.unwrap_err();
        assert!(
            refusal.to_string().ends_with("for example mac-mini"),
            "{refusal}"
        );
        assert_eq!(agents.list().unwrap().len(), 2);
        assert_eq!(agents.list().unwrap()[1], second);
    }

    #[tokio::test]
    async fn an_agent_is_renamed_only_to_a_name_that_fits_and_is_free() {
        let scratch = Scratch::new();
        let vault = Vault::open(&scratch.join("vault.db")).unwrap();
        let agents = vault.agents();
        let first = agents.add(new("first", 1)).await.unwrap();
        let second = agents.add(new("second", 2)).await.unwrap();
        let renamed = |name: &str| Agent {
            name: name.to_owned(),
            ..second.clone()
        };
        assert!(is_taken(&agents.replace(&second, &renamed("first")).await));
        let unfit = agents.replace(&second, &renamed("se cond")).await;
        assert!(
            matches!(unfit, Err(VaultError::UnfitAgentName(_))),
            "{unfit:?}"
        );
        assert_eq!(agents.list().unwrap()[1], second);
        agents.revoke(&first.id).await.unwrap();
        assert!(agents.replace(&second, &renamed("first")).await.unwrap());
    }

    #[tokio::test]
    async fn agents_of_an_older_vault_keep_their_names() {
        let scratch = Scratch::new();
        let path = scratch.join("vault.db");
        drop(Vault::open(&path).unwrap());
        let old = "INSERT INTO agent (id, name, token_sha256, preset, overrides, created_ms) VALUES
            ('agent_1', 'twin', randomblob(32), 'observe', '{}', 1),
            ('agent_2', 'twin', randomblob(32), 'admin', '{}', 2),
            ('agent_3', 'Mac mini', randomblob(32), 'observe', '{}', 3)";
        Connection::open(&path).unwrap().execute(old, []).unwrap();
        let vault = Vault::open(&path).unwrap();
        let agents = vault.agents();
        assert!(is_taken(&agents.add(new("twin", 1)).await));
        for before in agents.list().unwrap() {
            let after = Agent {
                preset: Preset::Suggest,
                ..before.clone()
            };
            assert!(agents.replace(&before, &after).await.unwrap(), "{before:?}");
        }
        let [first, second, mini] = agents.list().unwrap().try_into().unwrap();
        for (before, name) in [(&mini, "mac-mini"), (&first, "twin-1")] {
            let after = Agent {
                name: name.to_owned(),
                ..before.clone()
            };
            assert!(agents.replace(before, &after).await.unwrap());
        }
        assert!(
            is_taken(&agents.add(new("twin", 1)).await),
            "the second one has it"
        );
        agents.revoke(&second.id).await.unwrap();
        agents.add(new("twin", 1)).await.unwrap();
    }

    #[tokio::test]
    async fn of_two_processes_that_add_the_same_name_one_succeeds() {
        let scratch = Scratch::new();
        let path = scratch.join("vault.db");
        let vaults = [Vault::open(&path).unwrap(), Vault::open(&path).unwrap()];
        for round in 0..30 {
            let name = format!("racer-{round}");
            let [one, other] = [0, 1].map(|n| {
                let agent = new(&name, 2 * round + n);
                let vault = vaults[usize::from(n)].clone();
                tokio::spawn(async move { vault.agents().add(agent).await })
            });
            let outcomes = [one.await.unwrap(), other.await.unwrap()];
            let added = outcomes.iter().filter(|outcome| outcome.is_ok()).count();
            assert_eq!(added, 1, "{outcomes:?}");
            assert!(outcomes.iter().any(is_taken));
        }
        assert_eq!(vaults[0].agents().list().unwrap().len(), 30);
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
