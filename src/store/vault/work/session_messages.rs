//! What a client has sent to one front about a call or a question of another: kept until that front has it, for a
//! short time.

use rusqlite::{Connection, Row, params};

use crate::vault::error::VaultError;
use crate::vault::row::{from_column, to_column};
use crate::vault::shared::SharedVault;
use gatewren_base::sys::now_ms;

/// A message that no front has taken after this time is about nothing that still runs.
const KEPT_MS: u64 = 60_000;

/// The maximum number of messages; further ones are dropped.
const MAX_MESSAGES: u32 = 1_024;

/// The part of the schema's seventeenth version.
pub(in crate::vault) const SCHEMA: &str = "
CREATE TABLE session_message (
    seq     INTEGER PRIMARY KEY AUTOINCREMENT,
    session TEXT NOT NULL,
    message TEXT NOT NULL CHECK (json_valid(message)),
    at_ms   INTEGER NOT NULL
) STRICT;
";

/// A message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RelayedMessage {
    /// Its number.
    pub seq: u64,
    /// The name of the session.
    pub session: String,
    /// The message, as JSON.
    pub message: String,
}

/// Access to the table.
pub struct RelayedMessageTable<'a>(&'a SharedVault);

impl<'a> RelayedMessageTable<'a> {
    pub(in crate::vault) fn new(shared: &'a SharedVault) -> Self {
        Self(shared)
    }

    /// Adds a message asynchronously, if there is room. Deletes those that are too old.
    pub fn enqueue(&self, session: String, message: String) {
        let work = move |connection: &Connection| {
            let now = now_ms();
            connection
                .prepare_cached("DELETE FROM session_message WHERE at_ms < ?1")?
                .execute([to_column(now.saturating_sub(KEPT_MS))])?;
            let add = "INSERT INTO session_message (session, message, at_ms) SELECT ?1, ?2, ?3
                       WHERE (SELECT count(*) FROM session_message) < ?4";
            connection
                .prepare_cached(add)?
                .execute(params![session, message, to_column(now), MAX_MESSAGES])
                .map(drop)
        };
        self.0.writer.enqueue_or_drop("pass on a message", work);
    }

    /// Returns all messages, oldest first.
    pub fn list(&self) -> Result<Vec<RelayedMessage>, VaultError> {
        self.0.read("list messages for other fronts", |connection| {
            let query = "SELECT seq, session, message FROM session_message ORDER BY seq";
            let mut select = connection.prepare_cached(query)?;
            select.query_map([], message)?.collect()
        })
    }

    /// Deletes a message asynchronously, because this front has it.
    pub fn enqueue_removal(&self, seq: u64) {
        let work = move |connection: &Connection| {
            connection
                .prepare_cached("DELETE FROM session_message WHERE seq = ?1")?
                .execute([to_column(seq)])
                .map(drop)
        };
        self.0.writer.enqueue_or_drop("take a message", work);
    }
}

fn message(row: &Row<'_>) -> Result<RelayedMessage, rusqlite::Error> {
    Ok(RelayedMessage {
        seq: from_column(row, "seq")?,
        session: row.get("session")?,
        message: row.get("message")?,
    })
}

#[cfg(test)]
mod tests {
    use crate::vault::store::Vault;
    use gatewren_base::sys::Scratch;

    #[tokio::test]
    async fn a_message_is_kept_until_it_is_taken() {
        let scratch = Scratch::new();
        let vault = Vault::open(&scratch.join("vault.db")).unwrap();
        let messages = || vault.session_messages();
        messages().enqueue("s".to_owned(), "{\"cancel\":1}".to_owned());
        messages().enqueue("s".to_owned(), "{\"cancel\":2}".to_owned());
        vault.probe().await.unwrap();
        let listed = messages().list().unwrap();
        assert_eq!(listed.len(), 2);
        assert_eq!(
            (&*listed[0].session, &*listed[0].message),
            ("s", "{\"cancel\":1}")
        );
        messages().enqueue_removal(listed[0].seq);
        vault.probe().await.unwrap();
        assert_eq!(messages().list().unwrap(), listed[1..]);
    }
}
