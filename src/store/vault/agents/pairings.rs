//! Pairings: agents that are added when a client presents the code.

use rusqlite::{Connection, OptionalExtension as _, params};

use super::table::{Agent, Checked, NewAgent, check_free, insert};
use crate::vault::error::VaultError;
use crate::vault::job::Durability;
use crate::vault::row::{from_optional, to_column};
use crate::vault::shared::SharedVault;
use gatewren_base::sys::{now_ms, random_bytes};

/// The part of the schema's sixth version.
pub(in crate::vault) const SCHEMA: &str = "
-- The policy of the agent to be created. A row is deleted when its code is used, or after its expiry with the next one.
CREATE TABLE pairing (
    code_sha256 BLOB PRIMARY KEY CHECK (length(code_sha256) = 32),
    name        TEXT NOT NULL,
    preset      TEXT NOT NULL,
    overrides   TEXT NOT NULL CHECK (json_valid(overrides)),
    space       TEXT,
    expires_ms  INTEGER,
    until_ms    INTEGER NOT NULL
) STRICT;
";

/// The limit of valid codes. At the limit a new one is refused.
const MAX_OPEN: i64 = 16;

/// The id of an agent that is not added yet.
const NO_AGENT: &str = "";

/// Access to the table.
pub struct PairingTable<'a>(&'a SharedVault);

impl<'a> PairingTable<'a> {
    pub(in crate::vault) fn new(shared: &'a SharedVault) -> Self {
        Self(shared)
    }

    /// Stores an agent until a client presents the code with this SHA-256, at most until `until_ms`. The token hash
    /// in `agent` is ignored. Returns false and stores nothing if the limit of codes is reached. The name is checked
    /// as by [`AgentTable::add`](super::table::AgentTable::add), now and when the code is redeemed.
    pub async fn keep(
        &self,
        code_sha256: [u8; 32],
        agent: NewAgent,
        until_ms: u64,
    ) -> Result<bool, VaultError> {
        let work = move |connection: &Connection| {
            if let Err(refusal) = check_free(connection, &agent.name, NO_AGENT)? {
                return Ok(Err(refusal));
            }
            let now = to_column(now_ms());
            connection.execute("DELETE FROM pairing WHERE until_ms <= ?1", [now])?;
            let count = "SELECT count(*) FROM pairing";
            let open: i64 = connection.query_row(count, [], |row| row.get(0))?;
            if open >= MAX_OPEN {
                return Ok(Ok(false));
            }
            connection.execute(
                "INSERT INTO pairing VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
                params![
                    code_sha256,
                    agent.name,
                    agent.preset.as_str(),
                    agent.overrides,
                    agent.space,
                    agent.expires_ms.map(to_column),
                    to_column(until_ms),
                ],
            )?;
            Ok(Ok(true))
        };
        let writer = &self.0.writer;
        writer
            .write("store a pairing", Durability::Power, work, |_| ())
            .await?
    }

    /// Returns the name of the future agent. `None` if the code is not valid.
    pub fn name_of(&self, code_sha256: [u8; 32]) -> Result<Option<String>, VaultError> {
        self.0.read("find a pairing", |connection| {
            let query = "SELECT name FROM pairing WHERE code_sha256 = ?1 AND until_ms > ?2";
            let row = params![code_sha256, to_column(now_ms())];
            connection
                .query_row(query, row, |row| row.get(0))
                .optional()
        })
    }

    /// Adds the agent, with the token of this SHA-256, and invalidates the code. `None` if the code is wrong, used or
    /// expired. After an error, such as a name that is taken by then, the code stays valid.
    pub async fn redeem(
        &self,
        code_sha256: [u8; 32],
        token_sha256: [u8; 32],
    ) -> Result<Option<Agent>, VaultError> {
        let id = format!("agent_{:016x}", u64::from_be_bytes(random_bytes()?));
        let work = move |connection: &Connection| redeem(connection, code_sha256, token_sha256, id);
        let count = self.0.agent_changes.clone();
        let notify =
            move |_: &Result<Option<Agent>, VaultError>| count.send_modify(|changes| *changes += 1);
        let writer = &self.0.writer;
        writer
            .write("redeem a pairing", Durability::Power, work, notify)
            .await?
    }
}

fn redeem(
    connection: &Connection,
    code_sha256: [u8; 32],
    token_sha256: [u8; 32],
    id: String,
) -> Checked<Option<Agent>> {
    let query = "SELECT name, preset, overrides, space, expires_ms FROM pairing
                 WHERE code_sha256 = ?1 AND until_ms > ?2";
    let found = connection.query_row(query, params![code_sha256, to_column(now_ms())], |row| {
        let preset: String = row.get("preset")?;
        Ok(Agent {
            id,
            name: row.get("name")?,
            token_sha256,
            preset: preset.parse().map_err(|_| rusqlite::Error::InvalidQuery)?,
            overrides: row.get("overrides")?,
            space: row.get("space")?,
            created_ms: now_ms(),
            expires_ms: from_optional(row, "expires_ms")?,
            revoked_ms: None,
            last_used_ms: None,
        })
    });
    let Some(agent) = found.optional()? else {
        return Ok(Ok(None));
    };
    if let Err(refusal) = insert(connection, &agent)? {
        return Ok(Err(refusal));
    }
    connection.execute("DELETE FROM pairing WHERE code_sha256 = ?1", [code_sha256])?;
    Ok(Ok(Some(agent)))
}

#[cfg(test)]
mod tests {
    use super::super::pairings::*;
    use crate::vault::store::Vault;
    use gatewren_base::config::Preset;
    use gatewren_base::sys::Scratch;

    fn agent(name: &str) -> NewAgent {
        NewAgent {
            name: name.to_owned(),
            token_sha256: [0; 32],
            preset: Preset::Operate,
            overrides: r#"{"calls_per_minute":5}"#.to_owned(),
            space: Some("media".to_owned()),
            expires_ms: Some(now_ms() + 60_000),
        }
    }

    #[tokio::test]
    async fn a_code_makes_one_agent_in_its_time() {
        let scratch = Scratch::new();
        let vault = Vault::open(&scratch.join("vault.db")).unwrap();
        let pairings = vault.pairings();
        let soon = now_ms() + 60_000;
        assert!(pairings.keep([1; 32], agent("a"), soon).await.unwrap());
        assert!(pairings.keep([2; 32], agent("b"), now_ms()).await.unwrap());
        assert!(vault.agents().list().unwrap().is_empty());
        assert_eq!(pairings.name_of([1; 32]).unwrap().as_deref(), Some("a"));
        for none in [2, 3] {
            assert_eq!(pairings.name_of([none; 32]).unwrap(), None);
            let redeemed = pairings.redeem([none; 32], [9; 32]).await.unwrap();
            assert_eq!(redeemed, None);
        }
        let changes = vault.agents().changes();
        let made = pairings.redeem([1; 32], [7; 32]).await.unwrap();
        let made = made.expect("the code was good");
        assert!(changes.has_changed().unwrap());
        assert_eq!(vault.agents().list().unwrap(), std::slice::from_ref(&made));
        let expected = agent("a");
        assert_eq!((made.name, made.preset), (expected.name, expected.preset));
        assert_eq!(
            (made.overrides, made.space),
            (expected.overrides, expected.space)
        );
        assert_eq!(made.token_sha256, [7; 32]);
        let again = pairings.redeem([1; 32], [8; 32]).await.unwrap();
        assert_eq!(again, None);
        assert_eq!(vault.agents().list().unwrap().len(), 1);
    }

    #[tokio::test]
    async fn a_code_is_for_a_name_that_is_free_and_waits_until_it_is_again() {
        let scratch = Scratch::new();
        let vault = Vault::open(&scratch.join("vault.db")).unwrap();
        let pairings = vault.pairings();
        let soon = now_ms() + 60_000;
        let is_taken = |outcome| matches!(outcome, Err(VaultError::AgentNameTaken(_)));
        let unfit = pairings.keep([9; 32], agent("Mac mini"), soon).await;
        assert!(matches!(unfit, Err(VaultError::UnfitAgentName(_))));
        for code in [1, 2] {
            assert!(pairings.keep([code; 32], agent("a"), soon).await.unwrap());
        }
        let first = pairings.redeem([1; 32], [7; 32]).await.unwrap().unwrap();
        assert!(is_taken(pairings.redeem([2; 32], [8; 32]).await.map(drop)));
        assert!(is_taken(
            pairings.keep([3; 32], agent("a"), soon).await.map(drop)
        ));
        vault.agents().revoke(&first.id).await.unwrap();
        let second = pairings.redeem([2; 32], [8; 32]).await.unwrap().unwrap();
        assert_eq!((second.name, second.token_sha256), (first.name, [8; 32]));
    }

    #[tokio::test]
    async fn so_many_codes_are_open_and_no_more() {
        let scratch = Scratch::new();
        let vault = Vault::open(&scratch.join("vault.db")).unwrap();
        let pairings = vault.pairings();
        let soon = now_ms() + 60_000;
        assert!(pairings.keep([99; 32], agent("late"), 1).await.unwrap());
        for n in 0..16 {
            let kept = pairings.keep([n; 32], agent("a"), soon).await.unwrap();
            assert!(kept, "{n}: what is over takes no room");
        }
        assert!(!pairings.keep([50; 32], agent("a"), soon).await.unwrap());
        pairings.redeem([0; 32], [7; 32]).await.unwrap();
        assert!(pairings.keep([50; 32], agent("b"), soon).await.unwrap());
    }
}
