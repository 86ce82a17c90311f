//! Grants: calls that the owner allows an agent for a limited time without asking.

use std::sync::Arc;

use rusqlite::{Connection, Row, params};

use crate::vault::error::VaultError;
use crate::vault::row::{from_column, from_optional, to_column};
use crate::vault::shared::SharedVault;
use gatewren_base::sys::{now_ms, random_bytes};

/// The limit of active grants. At the limit [`GrantTable::add`] refuses.
const MAX_GRANTS: i64 = 1000;

/// How long a grant is kept after its end.
const KEPT_MS: u64 = 30 * 24 * 3_600_000;

/// The part of the schema's fourth version.
pub(in crate::vault) const SCHEMA: &str = "
CREATE TABLE agent_grant (
    id         TEXT PRIMARY KEY,
    agent      TEXT NOT NULL,
    tool       TEXT NOT NULL,
    target     TEXT,
    given_by   TEXT NOT NULL,
    given_ms   INTEGER NOT NULL,
    until_ms   INTEGER NOT NULL,
    ended_ms   INTEGER
) STRICT;
";

/// The part of the schema's seventh version: the bound of a grant in addition to agent, tool and target. Older
/// grants have no further bound.
pub(in crate::vault) const BOUND_SCHEMA: &str = "
ALTER TABLE agent_grant ADD COLUMN arguments_sha256 BLOB CHECK (length(arguments_sha256) = 32);
ALTER TABLE agent_grant ADD COLUMN command_prefix TEXT;
";

/// The calls that a grant allows, among the calls of its tool on its target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GrantBound {
    /// All calls, with any arguments.
    Any,
    /// Only calls whose arguments have exactly this SHA-256 ([`arguments_sha256`](crate::vault::arguments_sha256)).
    Arguments([u8; 32]),
    /// Only calls whose command begins with these words.
    Prefix(String),
}

/// A grant as stored in the vault. Times are milliseconds since 1970.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grant {
    /// The id: `grant_` and 16 hexadecimal digits.
    pub id: String,
    /// The agent that it allows to call.
    pub agent: String,
    /// The tool.
    pub tool: String,
    /// The target, such as a container's name. `None` allows each target that the agent can access.
    pub target: Option<String>,
    /// The bound on the calls.
    pub bound: GrantBound,
    /// Who granted it.
    pub given_by: String,
    /// When it was granted.
    pub given_ms: u64,
    /// When it expires.
    pub until_ms: u64,
    /// When it was ended before that.
    pub ended_ms: Option<u64>,
}

/// A grant to add.
#[derive(Debug, Clone)]
pub struct NewGrant {
    /// The agent that it allows to call.
    pub agent: String,
    /// The tool.
    pub tool: String,
    /// The target. `None` allows each target that the agent can access.
    pub target: Option<String>,
    /// The bound on the calls.
    pub bound: GrantBound,
    /// Who grants it.
    pub given_by: String,
    /// When it expires, in milliseconds since 1970.
    pub until_ms: u64,
}

impl Grant {
    /// Returns whether it is active at a time.
    pub fn is_active_at(&self, ms: u64) -> bool {
        self.ended_ms.is_none() && self.until_ms > ms
    }
}

/// Access to the table.
pub struct GrantTable<'a>(&'a Arc<SharedVault>);

impl<'a> GrantTable<'a> {
    pub(in crate::vault) fn new(shared: &'a Arc<SharedVault>) -> Self {
        Self(shared)
    }

    /// Adds a grant. It is active once this returns.
    pub async fn add(&self, new: NewGrant) -> Result<Grant, VaultError> {
        let grant = Grant {
            id: format!("grant_{:016x}", u64::from_be_bytes(random_bytes()?)),
            agent: new.agent,
            tool: new.tool,
            target: new.target,
            bound: new.bound,
            given_by: new.given_by,
            given_ms: now_ms(),
            until_ms: new.until_ms,
            ended_ms: None,
        };
        let row = grant.clone();
        let work = move |connection: &Connection| insert(connection, &row);
        if self.change("add a grant", work).await? {
            Ok(grant)
        } else {
            Err(VaultError::TooManyGrants)
        }
    }

    /// Ends a grant. Returns false if there is no active grant with this id.
    pub async fn end(&self, id: &str) -> Result<bool, VaultError> {
        let id = id.to_owned();
        let work = move |connection: &Connection| {
            let sql = "UPDATE agent_grant SET ended_ms = ?2
                       WHERE id = ?1 AND ended_ms IS NULL AND until_ms > ?2";
            Ok(connection.execute(sql, params![id, to_column(now_ms())])? > 0)
        };
        self.change("end a grant", work).await
    }

    /// Returns the active grants, newest first.
    pub fn holding(&self) -> Result<Vec<Grant>, VaultError> {
        let query = "SELECT * FROM agent_grant WHERE ended_ms IS NULL AND until_ms > ?1
                     ORDER BY given_ms DESC, id";
        self.0.read("list the grants", |connection| {
            connection
                .prepare_cached(query)?
                .query_map([to_column(now_ms())], read)?
                .collect()
        })
    }

    async fn change(
        &self,
        doing: &'static str,
        work: impl FnOnce(&Connection) -> Result<bool, rusqlite::Error> + Send + 'static,
    ) -> Result<bool, VaultError> {
        self.0.write_inbox(doing, work).await
    }
}

/// Returns false if the limit is reached. Deletes grants that ended long ago.
fn insert(connection: &Connection, grant: &Grant) -> Result<bool, rusqlite::Error> {
    let now = now_ms();
    let old = "DELETE FROM agent_grant WHERE min(until_ms, coalesce(ended_ms, until_ms)) <= ?1";
    connection.execute(old, [to_column(now.saturating_sub(KEPT_MS))])?;
    let count = "SELECT count(*) FROM agent_grant WHERE ended_ms IS NULL AND until_ms > ?1";
    let there: i64 = connection.query_row(count, [to_column(now)], |row| row.get(0))?;
    if there >= MAX_GRANTS {
        return Ok(false);
    }
    let (sha256, prefix) = match &grant.bound {
        GrantBound::Any => (None, None),
        GrantBound::Arguments(sha256) => (Some(sha256), None),
        GrantBound::Prefix(prefix) => (None, Some(prefix)),
    };
    connection.execute(
        "INSERT INTO agent_grant (id, agent, tool, target, given_by, given_ms, until_ms, arguments_sha256, command_prefix)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
        params![
            grant.id,
            grant.agent,
            grant.tool,
            grant.target,
            grant.given_by,
            to_column(grant.given_ms),
            to_column(grant.until_ms),
            sha256,
            prefix,
        ],
    )?;
    Ok(true)
}

fn read(row: &Row<'_>) -> Result<Grant, rusqlite::Error> {
    let prefix: Option<String> = row.get("command_prefix")?;
    let bound = match (row.get("arguments_sha256")?, prefix) {
        (Some(sha256), _) => GrantBound::Arguments(sha256),
        (None, Some(prefix)) => GrantBound::Prefix(prefix),
        (None, None) => GrantBound::Any,
    };
    Ok(Grant {
        id: row.get("id")?,
        agent: row.get("agent")?,
        tool: row.get("tool")?,
        target: row.get("target")?,
        bound,
        given_by: row.get("given_by")?,
        given_ms: from_column(row, "given_ms")?,
        until_ms: from_column(row, "until_ms")?,
        ended_ms: from_optional(row, "ended_ms")?,
    })
}

#[cfg(test)]
mod tests {
    use super::super::grants::*;
    use crate::vault::migration::STEPS;
    use crate::vault::open::writing;
    use crate::vault::store::Vault;
    use gatewren_base::sys::Scratch;

    #[tokio::test]
    async fn a_grant_holds_until_its_time_or_its_end() {
        let scratch = Scratch::new();
        let vault = Vault::open(&scratch.join("vault.db")).unwrap();
        let grants = vault.grants();
        let inbox_changes = vault.changes().watch_inbox();
        let new = |until_ms| NewGrant {
            agent: "a".into(),
            tool: "container_restart".into(),
            target: Some("jellyfin".into()),
            bound: GrantBound::Any,
            given_by: "local:root".into(),
            until_ms,
        };
        let grant = grants.add(new(now_ms() + 3_600_000)).await.unwrap();
        assert!(inbox_changes.has_changed().unwrap());
        assert!(grant.is_active_at(grant.until_ms - 1) && !grant.is_active_at(grant.until_ms));
        let over = grants.add(new(now_ms())).await.unwrap();
        assert_eq!(grants.holding().unwrap(), std::slice::from_ref(&grant));
        assert!(!grants.end(&over.id).await.unwrap());
        assert!(grants.end(&grant.id).await.unwrap());
        assert!(!grants.end(&grant.id).await.unwrap());
        assert_eq!(grants.holding().unwrap(), []);
    }

    #[tokio::test]
    async fn what_a_grant_is_bound_to_is_kept() {
        let scratch = Scratch::new();
        let vault = Vault::open(&scratch.join("vault.db")).unwrap();
        for bound in [
            GrantBound::Any,
            GrantBound::Arguments([7; 32]),
            GrantBound::Prefix("systemctl status".into()),
        ] {
            let new = NewGrant {
                agent: "a".into(),
                tool: "system_shell".into(),
                target: None,
                bound: bound.clone(),
                given_by: "owner".into(),
                until_ms: now_ms() + 3_600_000,
            };
            let grant = vault.grants().add(new).await.unwrap();
            let held = vault.grants().holding().unwrap();
            let held = held.iter().find(|held| held.id == grant.id).unwrap();
            assert_eq!(held.bound, bound);
        }
    }

    #[test]
    fn a_grant_of_an_older_vault_stays_as_it_was_granted() {
        let scratch = Scratch::new();
        let path = scratch.join("vault.db");
        let is_new = |step: &&[&str]| step.contains(&BOUND_SCHEMA);
        let before = STEPS.iter().position(is_new).unwrap();
        let old = writing(&path, &STEPS[..before]).unwrap();
        old.execute(
            "INSERT INTO agent_grant (id, agent, tool, given_by, given_ms, until_ms)
             VALUES ('grant_1', 'a', 'system_shell', 'owner', 1, ?1)",
            [i64::MAX],
        )
        .unwrap();
        drop(old);
        let vault = Vault::open(&path).unwrap();
        let held = vault.grants().holding().unwrap();
        assert_eq!((held.len(), &held[0].bound), (1, &GrantBound::Any));
    }
}
