//! Sessions that were ended before their time: a session's id is signed, so only these need keeping.

use std::collections::HashMap;
use std::sync::{PoisonError, RwLock};

use rusqlite::Connection;

use super::commit::Durability;
use super::error::VaultError;
use super::row::{from_column, to_column};
use super::writer::Writer;
use crate::sys::now_ms;

/// Sessions remembered as ended. At it the one that would expire first is forgotten: its id is then
/// good again, but only together with its agent's token.
const MAX_REVOKED: usize = 65_536;

/// The ids that are no longer good, each with the time from which it would not be anyway.
#[derive(Default)]
pub(super) struct Revoked(RwLock<HashMap<Box<str>, u64>>);

impl Revoked {
    /// Takes over what the table says, and what was revoked while it was read.
    pub(super) fn load(&self, connection: &Connection) -> Result<(), rusqlite::Error> {
        let mut statement =
            connection.prepare("SELECT id, until_ms FROM session WHERE until_ms > ?1")?;
        let rows = statement.query_map([to_column(now_ms())], |row| {
            Ok((row.get::<_, Box<str>>("id")?, from_column(row, "until_ms")?))
        })?;
        let found = rows.collect::<Result<Vec<_>, _>>()?;
        let mut ids = self.0.write().unwrap_or_else(PoisonError::into_inner);
        ids.extend(found);
        Ok(())
    }

    fn contains(&self, id: &str) -> bool {
        let ids = self.0.read().unwrap_or_else(PoisonError::into_inner);
        ids.contains_key(id)
    }

    fn insert(&self, id: &str, until_ms: u64) {
        let mut ids = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if ids.len() >= MAX_REVOKED {
            let now = now_ms();
            ids.retain(|_, until| *until > now);
        }
        if ids.len() >= MAX_REVOKED {
            let first = ids.iter().min_by_key(|(_, until)| **until);
            if let Some(first) = first.map(|(id, _)| id.clone()) {
                ids.remove(&first);
            }
        }
        ids.insert(id.into(), until_ms);
    }
}

/// The door to the list.
pub struct Sessions<'a> {
    writer: &'a Writer,
    revoked: &'a Revoked,
}

impl<'a> Sessions<'a> {
    pub(super) fn new(writer: &'a Writer, revoked: &'a Revoked) -> Self {
        Self { writer, revoked }
    }

    /// Ends a session: from now on in this process, and for good when the answer comes.
    ///
    /// `until_ms` is when its id expires by itself, in milliseconds since 1970.
    pub async fn revoke(&self, id: &str, until_ms: u64) -> Result<(), VaultError> {
        self.revoked.insert(id, until_ms);
        let id = id.to_owned();
        let work = move |connection: &Connection| {
            let now = to_column(now_ms());
            connection
                .prepare_cached("DELETE FROM session WHERE until_ms <= ?1")?
                .execute([now])?;
            connection
                .prepare_cached(
                    "INSERT INTO session (id, revoked_ms, until_ms) VALUES (?1, ?2, ?3)
                     ON CONFLICT (id) DO UPDATE SET until_ms = max(until_ms, excluded.until_ms)",
                )?
                .execute((id, now, to_column(until_ms)))?;
            Ok(())
        };
        let doing = "end a session";
        self.writer
            .write(doing, Durability::Process, work, |()| ())
            .await
    }

    /// Whether a session was ended. Asks memory only.
    pub fn is_revoked(&self, id: &str) -> bool {
        self.revoked.contains(id)
    }
}

#[cfg(test)]
mod tests {
    use super::super::store::Vault;
    use super::*;
    use crate::sys::Scratch;

    #[tokio::test]
    async fn an_ended_session_stays_ended_over_a_restart_until_its_time() {
        let scratch = Scratch::new();
        let path = scratch.join("vault.db");
        let vault = Vault::open(&path).unwrap();
        let later = now_ms() + 3_600_000;
        vault.sessions().revoke("long", later).await.unwrap();
        vault.sessions().revoke("over", now_ms() - 1).await.unwrap();
        assert!(vault.sessions().is_revoked("long"));
        assert!(!vault.sessions().is_revoked("another"));
        drop(vault);
        let vault = Vault::open(&path).unwrap();
        assert!(vault.sessions().is_revoked("long"));
        assert!(
            !vault.sessions().is_revoked("over"),
            "it is no good by itself"
        );
    }

    #[test]
    fn the_list_is_bounded_and_forgets_what_ends_first() {
        let revoked = Revoked::default();
        let far = u64::MAX / 2;
        revoked.insert("first", far);
        for n in 0..MAX_REVOKED as u64 {
            revoked.insert(&format!("s{n}"), far + 1 + n);
        }
        assert!(!revoked.contains("first"));
        assert!(revoked.contains("s0"));
        assert_eq!(revoked.0.read().unwrap().len(), MAX_REVOKED);
    }
}
