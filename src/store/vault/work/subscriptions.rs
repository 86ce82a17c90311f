//! The subscriptions of the sessions: one row per session and URI.

use rusqlite::{Connection, Row};

use super::session_changes;
use crate::vault::error::VaultError;
use crate::vault::row::{from_column, to_column};
use crate::vault::shared::SharedVault;

/// A subscription of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subscription {
    /// The session's id.
    pub session: String,
    /// The resource's URI.
    pub uri: String,
    /// The newest revision when it was made. Earlier revisions are not notified.
    pub since: u64,
}

/// Access to the table. The caller limits the number of rows of a session.
pub struct SubscriptionTable<'a>(&'a SharedVault);

impl<'a> SubscriptionTable<'a> {
    pub(in crate::vault) fn new(shared: &'a SharedVault) -> Self {
        Self(shared)
    }

    /// Returns the subscriptions of all sessions.
    pub fn list(&self) -> Result<Vec<Subscription>, VaultError> {
        self.0.read("list the subscriptions", |connection| {
            connection
                .prepare("SELECT session, uri, since FROM subscription")?
                .query_map([], subscription)?
                .collect()
        })
    }

    /// Returns the subscriptions of one session.
    pub fn of(&self, session: &str) -> Result<Vec<Subscription>, VaultError> {
        self.0.read("list a session's subscriptions", |connection| {
            connection
                .prepare_cached("SELECT session, uri, since FROM subscription WHERE session = ?1")?
                .query_map([session], subscription)?
                .collect()
        })
    }

    /// Adds a subscription, unless it exists already or its session does not exist. It survives a restart once this
    /// returns.
    pub async fn add(&self, added: Subscription) -> Result<(), VaultError> {
        let row = (added.session, added.uri, to_column(added.since));
        self.0
            .write("add a subscription", move |connection| {
                connection
                    .prepare_cached(
                        "INSERT OR IGNORE INTO subscription (session, uri, since)
                     SELECT ?1, ?2, ?3 WHERE EXISTS (SELECT 1 FROM session WHERE id = ?1)",
                    )?
                    .execute(row)?;
                session_changes::count(connection)
            })
            .await
    }

    /// Removes a subscription.
    pub async fn remove(&self, session: &str, uri: &str) -> Result<(), VaultError> {
        let row = (session.to_owned(), uri.to_owned());
        self.0
            .write("end a subscription", move |connection| {
                connection
                    .prepare_cached("DELETE FROM subscription WHERE session = ?1 AND uri = ?2")?
                    .execute(row)?;
                session_changes::count(connection)
            })
            .await
    }
}

fn subscription(row: &Row<'_>) -> Result<Subscription, rusqlite::Error> {
    Ok(Subscription {
        session: row.get("session")?,
        uri: row.get("uri")?,
        since: from_column(row, "since")?,
    })
}

/// Removes the subscriptions of one session, as part of another job.
pub(in crate::vault) fn remove_all(
    connection: &Connection,
    session: &str,
) -> Result<(), rusqlite::Error> {
    connection
        .prepare_cached("DELETE FROM subscription WHERE session = ?1")?
        .execute([session])
        .map(drop)
}

#[cfg(test)]
mod tests {
    use super::super::subscriptions::*;
    use crate::vault::store::Vault;
    use gatewren_base::sys::Scratch;

    fn to(session: &str, uri: &str, since: u64) -> Subscription {
        Subscription {
            session: session.to_owned(),
            uri: uri.to_owned(),
            since,
        }
    }

    #[tokio::test]
    async fn subscriptions_are_kept_and_go_with_their_session() {
        let scratch = Scratch::new();
        let path = scratch.join("vault.db");
        let vault = Vault::open(&path).unwrap();
        let subscriptions = vault.subscriptions();
        vault.sessions().add("s1", "a").await.unwrap();
        vault.sessions().add("s2", "a").await.unwrap();
        for (session, uri, since) in [
            ("s1", "u", 3),
            ("s1", "u", 9),
            ("s1", "v", 4),
            ("s2", "u", 5),
            ("s3", "u", 6),
        ] {
            subscriptions.add(to(session, uri, since)).await.unwrap();
        }
        subscriptions.remove("s1", "v").await.unwrap();
        drop(vault);
        let vault = Vault::open(&path).unwrap();
        let listed = vault.subscriptions().list().unwrap();
        assert_eq!(
            listed,
            [to("s1", "u", 3), to("s2", "u", 5)],
            "the first word stands, and a session that is not there has none"
        );
        vault.sessions().remove("s1").await.unwrap();
        assert_eq!(vault.subscriptions().list().unwrap(), [to("s2", "u", 5)]);
    }
}
