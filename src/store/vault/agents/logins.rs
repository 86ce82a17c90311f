//! Logins with a cookie: the owner, and agents that exchanged their token for a cookie.

use std::sync::Arc;
use std::time::Duration;

use rusqlite::{Connection, OptionalExtension as _, Row, params};

use crate::vault::error::VaultError;
use crate::vault::job::Durability;
use crate::vault::row::{from_column, to_column};
use crate::vault::shared::SharedVault;
use gatewren_base::sys::{now_ms, random_bytes};

/// The owner's id where agents have theirs. Ids of agents begin with `agent_`.
pub const OWNER: &str = "owner";

/// The limit of logins of the owner, and of each agent. Beyond it the least recently used one is signed out.
const MOST_EACH: i64 = 16;

/// The part of the schema's fourth version.
pub(in crate::vault) const SCHEMA: &str = "
CREATE TABLE login (
    token_sha256 BLOB PRIMARY KEY CHECK (length(token_sha256) = 32),
    id           TEXT NOT NULL UNIQUE,
    -- The SHA-256 of the agent's token: a new token ends the login. NULL is the owner.
    agent        BLOB CHECK (length(agent) = 32),
    address      TEXT NOT NULL,
    created_ms   INTEGER NOT NULL,
    used_ms      INTEGER NOT NULL
) STRICT;
CREATE INDEX login_agent ON login (agent);
";

/// The part of the schema's tenth version: when the password was last typed. For older logins this is 0 (never).
pub(in crate::vault) const PASSWORD_SCHEMA: &str =
    "ALTER TABLE login ADD COLUMN password_ms INTEGER NOT NULL DEFAULT 0;";

/// A login. Times are milliseconds since 1970.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Login {
    /// The id: `login_` and 16 hexadecimal digits.
    pub id: String,
    /// The SHA-256 of the agent's token; `None` for the owner.
    pub agent: Option<[u8; 32]>,
    /// The address that signed in.
    pub address: String,
    /// When it signed in.
    pub created_ms: u64,
    /// When it was last used, accurate to about a minute.
    pub used_ms: u64,
    /// When the password or the agent's token was last typed for it.
    pub password_ms: u64,
}

/// A login to add.
#[derive(Debug, Clone)]
pub struct NewLogin {
    /// The SHA-256 of the cookie.
    pub token_sha256: [u8; 32],
    /// The SHA-256 of the agent's token; `None` for the owner.
    pub agent: Option<[u8; 32]>,
    /// The address that signs in.
    pub address: String,
}

/// How long a login lasts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoginLifetime {
    /// The time without use after which it expires.
    pub idle: Duration,
    /// The maximum time.
    pub most: Duration,
}

impl Default for LoginLifetime {
    fn default() -> Self {
        Self {
            idle: Duration::from_hours(12),
            most: Duration::from_hours(30 * 24),
        }
    }
}

impl LoginLifetime {
    /// Returns the earliest last use and the earliest start of a login that is still valid.
    fn since(&self, now: u64) -> (u64, u64) {
        let before = |time: Duration| {
            now.saturating_sub(u64::try_from(time.as_millis()).unwrap_or(u64::MAX))
        };
        (before(self.idle), before(self.most))
    }
}

/// Access to the table.
pub struct LoginTable<'a>(&'a Arc<SharedVault>);

const COLUMNS: &str = "id, agent, address, created_ms, used_ms, password_ms";

impl<'a> LoginTable<'a> {
    pub(in crate::vault) fn new(shared: &'a Arc<SharedVault>) -> Self {
        Self(shared)
    }

    /// Adds a login, which is durable once this returns. Deletes expired logins.
    pub async fn add(&self, new: NewLogin, stay: LoginLifetime) -> Result<Login, VaultError> {
        let now = now_ms();
        let login = Login {
            id: format!("login_{:016x}", u64::from_be_bytes(random_bytes()?)),
            agent: new.agent,
            address: new.address,
            created_ms: now,
            used_ms: now,
            password_ms: now,
        };
        let row = login.clone();
        let work = move |connection: &Connection| {
            let (used, created) = stay.since(now);
            connection.execute(
                "DELETE FROM login WHERE used_ms <= ?1 OR created_ms <= ?2",
                [to_column(used), to_column(created)],
            )?;
            connection.execute(
                "DELETE FROM login WHERE token_sha256 IN (SELECT token_sha256 FROM login
                 WHERE agent IS ?1 ORDER BY used_ms DESC LIMIT -1 OFFSET ?2)",
                params![row.agent, MOST_EACH - 1],
            )?;
            let insert = "INSERT INTO login (token_sha256, id, agent, address, created_ms, used_ms, password_ms)
                          VALUES (?1, ?2, ?3, ?4, ?5, ?5, ?5)";
            connection.execute(
                insert,
                params![
                    new.token_sha256,
                    row.id,
                    row.agent,
                    row.address,
                    to_column(now)
                ],
            )?;
            Ok(())
        };
        self.change("sign in", work).await?;
        Ok(login)
    }

    /// Returns the login with this cookie, unless it has expired.
    pub fn find(
        &self,
        token_sha256: [u8; 32],
        stay: LoginLifetime,
    ) -> Result<Option<Login>, VaultError> {
        let (used, created) = stay.since(now_ms());
        let query = format!(
            "SELECT {COLUMNS} FROM login WHERE token_sha256 = ?1 AND used_ms > ?2 AND created_ms > ?3"
        );
        self.0.read("find a login", |connection| {
            let parameters = params![token_sha256, to_column(used), to_column(created)];
            let mut select = connection.prepare_cached(&query)?;
            select.query_row(parameters, login).optional()
        })
    }

    /// Records asynchronously that a login was used. Call it at most once a minute for each.
    pub fn touch(&self, token_sha256: [u8; 32], at_ms: u64) {
        let work = move |connection: &Connection| {
            let update = "UPDATE login SET used_ms = max(used_ms, ?2) WHERE token_sha256 = ?1";
            connection
                .prepare_cached(update)?
                .execute(params![token_sha256, to_column(at_ms)])
                .map(drop)
        };
        self.0.writer.enqueue_or_drop("record a login's use", work);
    }

    /// Records that the owner has typed the password again; durable once this returns. Returns false if this cookie
    /// has no login of the owner.
    pub async fn note_password(&self, token_sha256: [u8; 32]) -> Result<bool, VaultError> {
        let now = now_ms();
        let work = move |connection: &Connection| {
            let note =
                "UPDATE login SET password_ms = ?2 WHERE token_sha256 = ?1 AND agent IS NULL";
            connection.execute(note, params![token_sha256, to_column(now)])
        };
        Ok(self
            .change("record the use of the owner's password", work)
            .await?
            > 0)
    }

    /// Ends the login with this cookie. Returns false if there is none.
    pub async fn end(&self, token_sha256: [u8; 32]) -> Result<bool, VaultError> {
        let work = move |connection: &Connection| {
            let gone = "DELETE FROM login WHERE token_sha256 = ?1";
            connection.execute(gone, params![token_sha256])
        };
        Ok(self.change("sign out", work).await? > 0)
    }

    /// Ends the login with this id. Returns false if there is none.
    pub async fn end_by_id(&self, id: &str) -> Result<bool, VaultError> {
        let id = id.to_owned();
        let work = move |connection: &Connection| {
            connection.execute("DELETE FROM login WHERE id = ?1", [id])
        };
        Ok(self.change("sign out", work).await? > 0)
    }

    /// Ends all logins of the owner. Returns their number.
    pub async fn end_owners(&self) -> Result<usize, VaultError> {
        self.change("sign out", remove_owners).await
    }

    /// Returns all logins in the table, newest first. Expired ones may be among them.
    pub fn list(&self) -> Result<Vec<Login>, VaultError> {
        let query = format!("SELECT {COLUMNS} FROM login ORDER BY created_ms DESC, id");
        self.0.read("list the logins", |connection| {
            let mut select = connection.prepare_cached(&query)?;
            select.query_map([], login)?.collect()
        })
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

pub(in crate::vault) fn remove_owners(connection: &Connection) -> Result<usize, rusqlite::Error> {
    connection.execute("DELETE FROM login WHERE agent IS NULL", [])
}

fn login(row: &Row<'_>) -> Result<Login, rusqlite::Error> {
    Ok(Login {
        id: row.get("id")?,
        agent: row.get("agent")?,
        address: row.get("address")?,
        created_ms: from_column(row, "created_ms")?,
        used_ms: from_column(row, "used_ms")?,
        password_ms: from_column(row, "password_ms")?,
    })
}

#[cfg(test)]
mod tests {
    use super::super::logins::*;
    use crate::vault::store::Vault;
    use gatewren_base::sys::Scratch;

    fn new(token: u8, agent: Option<u8>) -> NewLogin {
        NewLogin {
            token_sha256: [token; 32],
            agent: agent.map(|byte| [byte; 32]),
            address: "192.0.2.1".to_owned(),
        }
    }

    #[tokio::test]
    async fn a_login_is_found_until_it_ends() {
        let scratch = Scratch::new();
        let path = scratch.join("vault.db");
        let vault = Vault::open(&path).unwrap();
        let stay = LoginLifetime::default();
        let owner = vault.logins().add(new(1, None), stay).await.unwrap();
        let agent = vault.logins().add(new(2, Some(7)), stay).await.unwrap();
        drop(vault);
        let vault = Vault::open(&path).unwrap();
        let find = |token| vault.logins().find([token; 32], stay).unwrap();
        assert_eq!(find(1), Some(owner));
        assert_eq!(find(2).unwrap().agent, Some([7; 32]));
        assert_eq!(find(3), None);
        assert!(vault.logins().end([1; 32]).await.unwrap());
        assert!(!vault.logins().end([1; 32]).await.unwrap());
        assert_eq!(find(1), None);
        assert!(vault.logins().end_by_id(&agent.id).await.unwrap());
        assert_eq!(vault.logins().list().unwrap(), []);
    }

    #[tokio::test]
    async fn its_time_ends_it_used_or_not() {
        let scratch = Scratch::new();
        let vault = Vault::open(&scratch.join("vault.db")).unwrap();
        vault
            .logins()
            .add(new(1, None), LoginLifetime::default())
            .await
            .unwrap();
        let age = |used: u64, created: u64| {
            let now = now_ms();
            let other = Connection::open(scratch.join("vault.db")).unwrap();
            let set = "UPDATE login SET used_ms = ?1, created_ms = ?2";
            other
                .execute(set, [to_column(now - used), to_column(now - created)])
                .unwrap();
            let found = vault.logins().find([1; 32], LoginLifetime::default());
            found.unwrap().is_some()
        };
        let hour = 3_600_000;
        assert!(age(11 * hour, 20 * hour));
        assert!(!age(13 * hour, 20 * hour), "it rested too long");
        assert!(!age(hour, 31 * 24 * hour), "it is too old");
        vault
            .logins()
            .add(new(2, None), LoginLifetime::default())
            .await
            .unwrap();
        assert_eq!(vault.logins().list().unwrap().len(), 1, "it made room");
    }

    #[tokio::test]
    async fn one_who_signs_in_again_and_again_signs_out_nobody_else() {
        let scratch = Scratch::new();
        let vault = Vault::open(&scratch.join("vault.db")).unwrap();
        let add = async |token, agent| {
            let login = new(token, agent);
            vault
                .logins()
                .add(login, LoginLifetime::default())
                .await
                .unwrap();
        };
        add(200, None).await;
        for token in 0..20 {
            add(token, Some(7)).await;
        }
        assert_eq!(vault.logins().list().unwrap().len(), 17);
        for token in 100..120 {
            add(token, None).await;
        }
        let found = vault
            .logins()
            .find([119; 32], LoginLifetime::default())
            .unwrap();
        assert!(found.is_some(), "the newest stays");
        assert_eq!(vault.logins().list().unwrap().len(), 32);
    }
}
